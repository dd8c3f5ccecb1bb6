"""A token budget is never exceeded, what is cut is still under custody, and tampering with a cut fragment is found."""

from __future__ import annotations

import shutil
from random import Random
from typing import TYPE_CHECKING

import msgspec
import pytest

from engine.embedded_samples import AS_OF
from evidentia import connect
from evidentia.engine.answer_verification import verify_response
from evidentia.engine.selection import ContextCost
from evidentia.provenance.evidence_tags import DOUBT
from evidentia.text.counting import count_tokens

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from engine.embedded_samples import DemoBase
    from evidentia import Base, EvidenceResponse
    from evidentia.contracts.evidence import EvidenceFragment

QUESTIONS = (
    "How do I rotate the signing keys?",
    "Who is on call, and what do they do first?",
    "parcel weight limit per carrier",
    "How long is customer data kept?",
    "webhook retries",
    "Which error code means that the label expired?",
)
BUDGETS = 300
TAG_SLACK = 8
"""What the tag of a whole fragment saves, which does not say that it was cut."""


@pytest.fixture(scope="module")
def cut(demo: DemoBase) -> tuple[EvidenceResponse, int]:
    """Return an answer with a fragment that was cut, and where it stands."""
    with connect(demo.path) as base:
        for budget in range(60, 400, 7):
            answer = _ask(base, QUESTIONS[0], budget=budget)
            for number, fragment in enumerate(answer.fragments):
                if fragment.is_truncated and len(fragment.cut_off) > 10:
                    return answer, number
    raise AssertionError


@pytest.mark.slow
def test_no_budget_is_exceeded(demo: DemoBase) -> None:
    rng = Random("budgets")
    asked = truncated = withheld = 0
    with connect(demo.path) as base:
        for _ in range(BUDGETS):
            tokenizer = rng.choice(("o200k_base", "o200k_base", "chars4"))
            budget = rng.choice((rng.randint(1, 60), rng.randint(1, 2_000)))
            answer = _ask(base, rng.choice(QUESTIONS), budget=budget, tokenizer=tokenizer, mode=rng.choice(("hybrid", "dense", "lexical")))
            counted = [count_tokens(fragment.content, tokenizer) for fragment in answer.fragments]

            printed = count_tokens(answer.to_context(), tokenizer)

            assert printed <= answer.tokens_used <= budget
            assert tokenizer == "chars4" or printed == answer.tokens_used
            assert counted == [fragment.token_count for fragment in answer.fragments]
            for fragment in answer.fragments:
                assert demo.chunks[fragment.chunk_id].content == fragment.content + fragment.cut_off
                assert fragment.is_truncated == bool(fragment.cut_off) == ("truncated" in fragment.flags)
                assert fragment.content
            assert answer.truncation_applied == bool(answer.withheld or any(each.is_truncated for each in answer.fragments))
            assert base.verify(answer).ok
            asked += 1
            truncated += any(fragment.is_truncated for fragment in answer.fragments)
            withheld += bool(answer.withheld)

    assert BUDGETS == asked
    assert truncated > BUDGETS // 5
    assert withheld > BUDGETS // 5


def test_a_cut_fragment_ends_where_a_sentence_does_and_no_longer_one_would_have_fitted(demo: DemoBase) -> None:
    """With one token less than a cut fragment has, it is shorter or gone; the whole would not have fitted."""
    with connect(demo.path) as base:
        for budget in range(20, 300, 20):
            answer = _ask(base, QUESTIONS[0], budget=budget)
            for fragment in answer.fragments:
                if fragment.is_truncated:
                    whole = count_tokens(fragment.content + fragment.cut_off, "o200k_base")
                    assert count_tokens(answer.to_context(), "o200k_base") - fragment.token_count + whole > budget - TAG_SLACK
                    assert fragment.content.rstrip() == fragment.content.rstrip().removesuffix(",")


def test_the_budget_and_not_the_default_limit_decides_how_many_fragments_there_are(demo: DemoBase) -> None:
    with connect(demo.path) as base:
        answer = _ask(base, QUESTIONS[0], budget=20_000)
        capped = _ask(base, QUESTIONS[0], budget=20_000, limit=4)
        unlimited = base.retrieve(QUESTIONS[0], as_of=AS_OF, receipt=False)

    assert 10 == len(unlimited.fragments)
    assert 4 == len(capped.fragments)
    assert len(answer.fragments) > 20
    assert answer.fragments[0].chunk_id == unlimited.fragments[0].chunk_id


def test_a_budget_that_holds_nothing_says_so(demo: DemoBase) -> None:
    with connect(demo.path) as base:
        answer = _ask(base, QUESTIONS[0], budget=12)

    assert () == answer.fragments
    assert answer.withheld
    assert [reason for reason in answer.degraded if reason.startswith("budget: 12 tokens do not hold the first sentence")]


def test_the_line_that_nothing_is_likely_is_within_the_budget_and_older_engines_had_none(demo: DemoBase) -> None:
    with connect(demo.path) as base:
        for budget in range(20, 400, 9):
            answer = _ask(base, "best recipe for lasagna", budget=budget)

            assert count_tokens(answer.to_context()) == answer.tokens_used <= budget
        doubtful = _ask(base, "best recipe for lasagna", budget=400)
    fragments, today = doubtful.fragments, ContextCost("o200k_base", doubtful.as_of)
    before = today._replace(tells_doubt=False)

    assert doubtful.to_context().startswith(DOUBT)
    assert (count_tokens(DOUBT), 0) == (today.before(fragments), before.before(fragments))


def test_what_policies_say_of_a_fragment_is_within_the_budget_too(demo: DemoBase, tmp_path: Path) -> None:
    copy = tmp_path / "base"
    shutil.copytree(demo.path, copy)
    with connect(copy) as base:
        for number in range(3):
            rules = {"min_relevance_score": 1.0, "max_source_age_days": 0}
            base.add_policy({"name": f"strict {number}", "category": "retrieval", "rules": rules})
        for budget in range(60, 1_200, 37):
            answer = _ask(base, QUESTIONS[0], budget=budget)

            assert count_tokens(answer.to_context()) == answer.tokens_used <= budget
        assert "policy_warn=true" in answer.to_context()


def _moved(fragment: EvidenceFragment) -> EvidenceFragment:
    return msgspec.structs.replace(fragment, content=fragment.content + fragment.cut_off[:5], cut_off=fragment.cut_off[5:])


def _shortened(fragment: EvidenceFragment) -> EvidenceFragment:
    return msgspec.structs.replace(fragment, cut_off=fragment.cut_off[:-1])


def _passed_off_as_whole(fragment: EvidenceFragment) -> EvidenceFragment:
    return msgspec.structs.replace(fragment, cut_off="", is_truncated=False)


def _rewritten(fragment: EvidenceFragment) -> EvidenceFragment:
    return msgspec.structs.replace(fragment, content=fragment.content.replace("e", "3", 1))


def _rewritten_where_it_was_cut(fragment: EvidenceFragment) -> EvidenceFragment:
    return msgspec.structs.replace(fragment, cut_off="!" + fragment.cut_off[1:])


def _restored(fragment: EvidenceFragment) -> EvidenceFragment:
    return msgspec.structs.replace(fragment, content=fragment.content + fragment.cut_off, cut_off="", is_truncated=False)


def _flag_removed(fragment: EvidenceFragment) -> EvidenceFragment:
    return msgspec.structs.replace(fragment, flags=tuple(flag for flag in fragment.flags if flag != "truncated"))


def _not_admitted(fragment: EvidenceFragment) -> EvidenceFragment:
    return msgspec.structs.replace(fragment, is_truncated=False)


def test_a_cut_answer_can_be_verified(cut: tuple[EvidenceResponse, int]) -> None:
    assert verify_response(cut[0]).ok


@pytest.mark.parametrize(
    "tamper",
    [_moved, _shortened, _passed_off_as_whole, _rewritten, _rewritten_where_it_was_cut, _restored, _flag_removed, _not_admitted],
)
def test_tampering_with_a_cut_fragment_is_found(
    cut: tuple[EvidenceResponse, int], tamper: Callable[[EvidenceFragment], EvidenceFragment]
) -> None:
    answer, number = cut
    fragments = list(answer.fragments)
    fragments[number] = tamper(fragments[number])

    assert answer.fragments[number] != fragments[number]
    assert not verify_response(msgspec.structs.replace(answer, fragments=tuple(fragments))).ok


def _ask(base: Base, text: str, *, budget: int, **fields: object) -> EvidenceResponse:
    return base.retrieve(text, token_budget=budget, as_of=AS_OF, receipt=False, **fields)
