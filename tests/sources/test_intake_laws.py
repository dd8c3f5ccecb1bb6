"""Laws of the intake over whatever hypothesis can think of: it never raises, its limits hold, and scores make arrival irrelevant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from intake_samples import ASK, taken_from

from evidentia.contracts.canonical import encode_struct, sha256_hex
from evidentia.contracts.ids import chunk_parts
from evidentia.contracts.retrieval import Candidate
from evidentia.contracts.settings import SourceSettings
from evidentia.contracts.vocabulary import AuthorityTier, Classification
from evidentia.sources.intake_fields import Fault, clean_text

if TYPE_CHECKING:
    from evidentia.sources.intake import Taken

SMALL = SourceSettings(most_candidates=6, most_chars=40, most_reply_chars=200)


class Hostile:
    """Raises on one of the attributes that are read, and gives nonsense for the others."""

    def __init__(self, trap: str, error: type[Exception], other: object) -> None:
        self.__dict__["_told"] = (trap, error, other)

    def __getattr__(self, name: str) -> object:
        """Raise, or give nonsense."""
        trap, error, other = self.__dict__["_told"]
        if name == trap:
            raise error(name)
        if name.startswith("__"):
            raise AttributeError(name)
        return other

    def __str__(self) -> str:
        """Raise."""
        raise RuntimeError

    __repr__ = __str__


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=True),
    st.text(st.characters(codec=None, exclude_categories=()), max_size=60),
    st.binary(max_size=60),
    st.datetimes(),
    st.datetimes(timezones=st.just(UTC)),
    st.just(10**400),
)
HOSTILE = st.builds(
    Hostile,
    st.sampled_from(["page_content", "node", "content", "metadata", "meta", "id", "score", "get_content", "items"]),
    st.sampled_from([RuntimeError, AttributeError, KeyError, MemoryError, RecursionError]),
    SCALARS,
)
VALUES = st.recursive(
    SCALARS | HOSTILE,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.tuples(inner, inner), st.dictionaries(st.text(max_size=8) | st.integers(), inner, max_size=4)
    ),
    max_leaves=4,
)
NAMES = (
    "content",
    "text",
    "page_content",
    "id",
    "own_id",
    "score",
    "origin",
    "title",
    "updated_at",
    "media_type",
    "content_type",
    "confidence",
    "access",
)
MAPPINGS = st.fixed_dictionaries({}, optional=dict.fromkeys((*NAMES, "metadata"), VALUES))
PROPOSALS = st.one_of(
    VALUES,
    MAPPINGS,
    st.tuples(MAPPINGS, VALUES),
    MAPPINGS.map(lambda fields: SimpleNamespace(**fields)),
    st.builds(Candidate, content=st.text(max_size=80)),
)
SCORED = st.fixed_dictionaries(
    {"content": st.text("abc. \u0301", min_size=1, max_size=12), "score": st.sampled_from([0, 0.25, 0.5, 0.5 + 2**-40, 1])},
    optional={"id": st.sampled_from("xyz"), "title": st.sampled_from("tu"), "updated_at": st.just("2026-01-01T00:00:00Z")},
)


@given(st.lists(PROPOSALS, max_size=12))
def test_nothing_raises_and_every_limit_holds(proposed: list[object]) -> None:
    found = taken_from(proposed, settings=SMALL)

    check(found)


@given(
    st.fixed_dictionaries(
        {name: st.one_of(SCALARS, st.lists(SCALARS), st.dictionaries(st.text(), SCALARS)) for name in (*NAMES, "metadata")}
    )
)
def test_plain_values_can_always_be_read(fields: dict[str, object]) -> None:
    """What is unreadable raises by itself; were it our own mistake, it would hide here."""
    assert "unreadable" not in taken_from([fields, SimpleNamespace(**fields), fields["content"]]).faults


def check(found: Taken) -> None:
    candidates = found.candidates
    assert len(candidates) <= SMALL.most_candidates
    assert list(range(1, len(candidates) + 1)) == [each.rank for each in candidates]
    assert len(candidates) == len({each.document_id for each in candidates}) == len({each.chunk_id for each in candidates})
    assert set(found.faults) <= {fault.value for fault in Fault}
    assert all(count > 0 for count in found.faults.values())
    for each in candidates:
        assert each.content.strip()
        assert clean_text(each.content) == each.content
        assert len(each.content) <= SMALL.most_chars
        assert each.received_length <= 4 * SMALL.most_reply_chars
        assert sha256_hex(each.content.encode()) == each.content_hash
        assert chunk_parts(each.chunk_id) == (each.document_id, 0, each.content_hash[:16])
        assert each.updated_at is None or each.updated_at <= ASK.as_of
        assert AuthorityTier.DERIVED is each.authority_tier
        assert each.access.classification.rank >= Classification.INTERNAL.rank
        assert len(each.metadata) <= 32
        assert encode_struct(each)


@given(st.lists(SCORED, max_size=8).flatmap(lambda reply: st.tuples(st.just(reply), st.permutations(reply))))
def test_with_scores_the_order_of_arrival_has_no_say(replies: tuple[list[object], list[object]]) -> None:
    first, second = (taken_from(each) for each in replies)

    assert first == second


@given(st.lists(SCORED, max_size=8))
def test_without_scores_the_order_of_the_reply_holds(reply: list[dict[str, object]]) -> None:
    unscored = [{**each, "score": None, "id": f"{number:02}"} for number, each in enumerate(reply)]

    found = taken_from(unscored)

    assert [f"wiki:{number:02}" for number, each in enumerate(reply) if clean_text(str(each["content"])).strip()] == [
        each.document_id for each in found.candidates
    ]


@given(st.datetimes(timezones=st.timezones(), max_value=datetime(9998, 1, 1), min_value=datetime(2, 1, 1)))  # noqa: DTZ001  # hypothesis asks for these without a zone
def test_a_moment_is_kept_unless_it_is_after_what_was_asked_about(moment: datetime) -> None:
    found = taken_from([{"content": "text", "updated_at": moment}])

    expected = None if moment.astimezone(UTC) > ASK.as_of else moment.astimezone(UTC)
    assert expected == found.candidates[0].updated_at
    assert expected is None or timedelta(0) == expected.utcoffset()
