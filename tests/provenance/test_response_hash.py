"""Whatever is changed in an answer is found, by anyone in what the hash covers and by the base in the rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import msgspec.inspect
import pytest
import stranger
from hypothesis import given
from hypothesis import strategies as st

from evidentia import EvidenceResponse, connect
from evidentia.contracts import evidence as messages
from evidentia.contracts.access import Principal
from evidentia.contracts.ids import PrincipalId, ReceiptId, TenantId
from evidentia.contracts.vocabulary import Classification
from evidentia.engine.answer_verification import verify_response
from evidentia.engine.result_hashes import NOT_COVERED, response_hash, sealed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evidentia import Base

ANSWERS = 50
MEASURED = {("latency_ms",)}
"""The time until an answer was out is known only after it was hashed."""
PAGE = Path(__file__).resolve().parents[2] / "docs" / "custody.md"
SOMEBODY = Principal(principal_id=PrincipalId("somebody"), tenant=TenantId("default"), clearance=Classification.INTERNAL)


class Wiki:
    """A source outside the base."""

    def retrieve(self, query: str, *, limit: int) -> list[dict[str, object]]:
        said: list[dict[str, object]] = [
            {"id": str(each), "content": f"Said of {query}: {each} \N{SNOWMAN}.", "url": f"https://wiki/{each}"} for each in range(2)
        ]
        return [*said[:limit], {"content": ""}]


def asked() -> Iterator[dict[str, Any]]:
    """Yield fifty ways of asking, each with something that others have not."""
    ways: tuple[dict[str, Any], ...] = (
        {},
        {"facets": ["tags", "language"], "explain": True},
        {"token_budget": 40},
        {"filter": 'language = "de"'},
        {"source_policy": {"allowed_sources": ["pages", "nowhere"]}},
        {"mode": "lexical", "early_stop": True},
        {"latency_deadline_ms": 1},
        {"token_budget": 14, "filter": 'document_id contains "policy"'},
        {"turns": [{"role": "user", "text": "Which keys?"}], "task": {"type": "coding", "text": "rotate"}},
        {"filter": 'language = "fr"', "facets": ["language"]},
    )
    for number in range(ANSWERS):
        yield {"limit": 1 + number % 3, "as_of": f"2026-01-{1 + number // 10:02}T00:00:00Z"} | ways[number % len(ways)]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Base]:
    folder = tmp_path_factory.mktemp("sealed")
    (folder / "pages").mkdir()
    for number in range(6):
        front = f"---\nlanguage: {'de' if number % 2 else 'en'}\ntags: [a, t{number}]\n---\n"
        (folder / "pages" / f"{number}.md").write_text(f'{front}Keys \N{SNOWMAN} \\ "{number}" rotate {"keys " * number}')
    for name, minutes in (("policy", 30), ("guide", 45)):
        (folder / "pages" / f"{name}.md").write_text(f"Keys need a session. The session timeout is {minutes} minutes. It holds for all.")
    with connect(folder / "base", init=True) as opened:
        opened.ingest([folder / "pages"], source="pages")
        opened.add_source({"source_id": "wiki", "source_type": "api", "expected_p99_ms": 100}, Wiki())
        yield opened


@pytest.fixture(scope="module")
def answers(base: Base) -> list[EvidenceResponse]:
    return [base.retrieve("keys", **fields) for fields in asked()]


def test_every_answer_is_accepted_by_us_and_by_the_stranger(base: Base, answers: list[EvidenceResponse]) -> None:
    assert ANSWERS == len(answers)
    assert [()] * ANSWERS == [base.verify(answer).broken for answer in answers]
    assert [[]] * ANSWERS == [stranger.answer_problems(json.loads(answer.to_json())) for answer in answers]


def test_no_changed_leaf_of_fifty_answers_is_accepted(answers: list[EvidenceResponse]) -> None:
    """What the hash leaves out is all that passes without the base: the time it took, and which receipt vouches for it."""
    accepted: set[tuple[Any, ...]] = set()
    tried = 0
    for answer in answers:
        plain = json.loads(answer.to_json())
        for path, other in changes(plain):
            tried += 1
            if is_accepted(changed(plain, path, other)):
                accepted.add(path)

    assert tried > 20_000
    assert MEASURED | {("receipt_id",)} == accepted


def test_the_base_knows_which_receipt_vouches_for_which_answer(base: Base, answers: list[EvidenceResponse]) -> None:
    with_receipt = [answer for answer in answers if answer.receipt_id is not None]
    one, other = with_receipt[:2]

    for receipt_id in (other.receipt_id, ReceiptId("r-000000000000-1")):
        report = base.verify(msgspec.structs.replace(one, receipt_id=receipt_id))
        assert ["receipt"] == [link.check for link in report.broken]


def test_a_forger_who_hashes_anew_is_found_by_the_base(base: Base, answers: list[EvidenceResponse]) -> None:
    first = next(answer for answer in answers if answer.fragments and answer.receipt_id)
    surer = msgspec.structs.replace(first.fragments[0], confidence=0.99)
    forged = sealed(msgspec.structs.replace(first, fragments=(surer, *first.fragments[1:])))

    assert verify_response(forged).ok
    assert ["receipt"] == [link.check for link in base.verify(forged).broken]


def test_an_answer_cannot_be_passed_off_as_one_of_an_older_release(base: Base, answers: list[EvidenceResponse]) -> None:
    """From its own bytes it is what an older release could have said, and the report says so; the receipt knows better."""
    first = next(answer for answer in answers if answer.receipt_id)
    older = msgspec.structs.replace(first, custody_format=1, response_hash="")

    assert (True, 1) == (verify_response(older).ok, verify_response(older).custody_format)
    assert ["receipt"] == [link.check for link in base.verify(older).broken]
    assert not verify_response(msgspec.structs.replace(first, custody_format=1)).ok
    assert not verify_response(msgspec.structs.replace(first, custody_format=3)).ok


def test_receipts_carry_the_hash_of_the_whole_answer(base: Base, answers: list[EvidenceResponse]) -> None:
    late = [answer for answer in answers if answer.degraded and answer.degraded[-1].startswith("deadline:")]

    assert {response_hash(answer) for answer in answers} == {answer.response_hash for answer in answers}
    assert all(base.verify(answer).ok for answer in late)


def test_the_page_names_what_is_left_out_and_what_is_a_fraction() -> None:
    page = PAGE.read_text(encoding="utf-8")
    fractions = sorted(fraction_names(messages.EvidenceResponse))

    assert "Left out are " + _listed(sorted(NOT_COVERED)) in page
    assert "The fractions are " + _listed(fractions) in page
    assert stranger.LEFT_OUT == set(NOT_COVERED)
    assert stranger.FRACTIONS == set(fractions) - set(NOT_COVERED) - {"stage_latencies_ms"}


@given(st.recursive(st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9) | st.text(max_size=5),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)))  # fmt: skip
def test_what_rules_compared_is_read_alike_by_the_stranger(value: Any) -> None:
    from evidentia.engine.result_hashes import _counted_freely

    assert stranger.counted_freely(value) == _counted_freely(value)


def fraction_names(message: type[msgspec.Struct]) -> set[str]:
    """Return the names of all fields that hold a fraction, of a message and of those in it."""
    found: set[str] = set()
    pending: list[Any] = [(field.name, field.type) for field in msgspec.inspect.type_info(message).fields]  # type: ignore[attr-defined]  # a struct
    seen: set[type] = set()
    while pending:
        name, kind = pending.pop()
        if isinstance(kind, msgspec.inspect.FloatType):
            found.add(name)
        elif isinstance(kind, msgspec.inspect.StructType):
            if kind.cls not in seen:
                seen.add(kind.cls)
                pending += [(field.name, field.type) for field in kind.fields]
        else:
            inner = [getattr(kind, part, ()) for part in ("item_type", "value_type", "types", "item_types", "type")]
            pending += [(name, each) for one in inner for each in (one if isinstance(one, tuple) else (one,))]
    return found


def changes(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:  # Any: JSON as parsed
    """Yield, for every leaf, other values of its kind."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from changes(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from changes(inner, (*path, index))
    elif isinstance(value, bool):
        yield path, not value
    elif isinstance(value, int):
        yield path, value + 1
        yield path, 0 if value else 7
    elif isinstance(value, float):
        yield path, value / 2 if value else 0.5
        yield path, value + 0.001 if value < 0.5 else value - 0.001
    elif value is None:
        yield from ((path, other) for other in ("x", 0.5, 7, "2026-01-01T00:00:00Z"))
    else:
        yield path, f"{value}x"
        yield path, ("1" if value[:1] != "1" else "2") + value[1:]


def changed(plain: Any, path: tuple[Any, ...], other: Any) -> Any:
    """Return JSON with another leaf; whatever lies beside the way to it is shared."""
    if not path:
        return other
    step, *rest = path
    copied = plain.copy()
    copied[step] = changed(plain[step], tuple(rest), other)
    return copied


def is_accepted(plain: Any) -> bool:
    try:
        return verify_response(msgspec.convert(plain, EvidenceResponse)).ok
    except msgspec.ValidationError:
        return False


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names[:-1]) + f" and `{names[-1]}`."
