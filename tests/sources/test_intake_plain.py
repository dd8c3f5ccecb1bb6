"""The short way through the intake and the long one come to the same, whatever a source puts into the fields."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from intake_samples import NOW, taken_from

from evidentia.contracts.access import AccessRule
from evidentia.contracts.retrieval import Candidate
from evidentia.contracts.settings import SourceSettings
from evidentia.contracts.vocabulary import Classification, ContentType
from evidentia.sources.intake import read_plain
from soak import cases

if TYPE_CHECKING:
    from collections.abc import Mapping

SMALL = SourceSettings(most_candidates=6, most_chars=40, most_reply_chars=120)


class Inherited(Candidate, frozen=True, kw_only=True):
    """A `Candidate` in everything but its exact type, which is what the short way asks for."""


class LyingText(str):
    """A text that says of itself what is not so."""

    __slots__ = ()

    def isascii(self) -> bool:
        return True

    def isprintable(self) -> bool:
        return True

    def __len__(self) -> int:
        """Lie."""
        return 1

    def __eq__(self, _other: object) -> bool:
        """Lie."""
        return True

    def __hash__(self) -> int:
        """Lie."""
        return 0


class LyingDict(dict[str, str]):
    """A mapping that says it is empty."""

    def __bool__(self) -> bool:
        """Lie."""
        return False

    def __len__(self) -> int:
        """Lie."""
        return 0


class LateMoment(datetime):
    """A moment that says it is earlier than every other."""

    def __le__(self, _other: object) -> bool:
        """Lie."""
        return True

    def __gt__(self, _other: object) -> bool:
        """Lie."""
        return False


TEXTS = st.one_of(
    st.sampled_from(
        ["", " ", "plain", "two words", " edge", "edge ", "two  spaces", "line\nline", "tab\t", "a\u200bb", "e\u0301", "\ud800", "é"]
    ),
    st.text(max_size=60),
    st.text(alphabet="ab c", max_size=300),
)
STRANGE = st.one_of(st.none(), st.integers(), st.booleans(), st.binary(max_size=20), st.builds(object), TEXTS.map(LyingText))
NUMBERS = st.one_of(st.none(), st.floats(0, 1), st.floats(), st.booleans(), st.integers(-1, 2), st.just(math.nan), TEXTS)
MOMENTS = st.one_of(
    st.none(),
    st.datetimes(datetime(2025, 1, 1), datetime(2027, 1, 1)),  # noqa: DTZ001  # one without a zone is what a source may send
    st.datetimes(datetime(2025, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001  # the zone is given beside
    st.sampled_from(
        [NOW, NOW + timedelta(microseconds=1), NOW.astimezone(timezone(timedelta(hours=2))), LateMoment(2027, 1, 1, tzinfo=UTC)]
    ),
    TEXTS,
)
FIELDS = st.fixed_dictionaries(
    {"content": st.one_of(TEXTS, st.text(alphabet="ab.c ", min_size=1, max_size=45), STRANGE)},
    optional={
        "own_id": st.one_of(st.sampled_from(["a", "b", "c"]), TEXTS, STRANGE),
        "score": NUMBERS,
        "origin": st.one_of(TEXTS, STRANGE),
        "title": st.one_of(TEXTS, STRANGE),
        "updated_at": MOMENTS,
        "media_type": st.one_of(st.sampled_from(["text/plain", "text/html", LyingText("text/html")]), STRANGE),
        "content_type": st.one_of(st.sampled_from([*ContentType, "code", "unknown"]), STRANGE),
        "confidence": NUMBERS,
        "access": st.sampled_from([None, AccessRule(), AccessRule(classification=Classification.RESTRICTED), {"tenant": "acme"}, "all"]),
        "metadata": st.sampled_from([{}, {"a": "b"}, {"tenant": "x"}, LyingDict(a="b"), None, "text"]),
    },
)


@given(st.lists(FIELDS, max_size=8), st.sampled_from([SMALL, SourceSettings()]))
@settings(max_examples=cases(133, of=400), deadline=None)
def test_both_ways_through_the_intake_come_to_the_same(replies: list[Mapping[str, object]], limits: SourceSettings) -> None:
    short = taken_from([Candidate(**fields) for fields in replies], settings=limits)  # type: ignore[arg-type]  # whatever a source sends
    long = taken_from([Inherited(**fields) for fields in replies], settings=limits)  # type: ignore[arg-type]  # likewise

    assert long == short
    assert [msgspec.json.encode(each) for each in long.candidates] == [msgspec.json.encode(each) for each in short.candidates]


def test_a_candidate_of_plain_values_takes_the_short_way() -> None:
    plain = Candidate(content="A crane.\nIt is tall.", own_id="a", score=0.5, origin="memory://a", title="Cranes", updated_at=NOW)

    assert ("A crane.\nIt is tall.", "a", 1 << 31, "memory://a", "Cranes", NOW, ContentType.DOCUMENTATION) == read_plain(
        plain, most=100, latest=NOW
    )
    assert read_plain(Inherited(content="A crane."), most=100, latest=NOW) is None
    assert read_plain(plain, most=10, latest=NOW) is None
