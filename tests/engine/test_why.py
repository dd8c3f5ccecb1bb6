"""`why` over words and vectors: every stage at which a chunk can leave is named, and the smallest change really lets it in."""

from __future__ import annotations

import re
from collections import Counter
from random import Random
from typing import TYPE_CHECKING

import pytest

from engine.embedded_samples import AS_OF
from evidentia import connect

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.embedded_samples import DemoBase
    from evidentia import Base, EvidenceResponse
    from evidentia.contracts.ids import ChunkId
    from evidentia.contracts.receipts import WhyReport

QUESTION = "How do I rotate the signing keys?"
OTHER = "Which carrier takes the heaviest parcel?"
PLUS = "without the plus sign"
QUOTING = 'rotate the +"signing key" of a parcel api client, on call'
SMALLEST = re.compile(r"(limit|token_budget)=(\d+)")
OTHER_WORDS = ("a query with one of its words", "a query that ranks it among the first 10000")
ASKED_ABOUT = 7
BUDGETS_TRIED = 4_096
"""Farther away than this, the budget named is the one at which a chunk fits whole."""
REQUESTS: tuple[tuple[str, Mapping[str, object]], ...] = (
    (QUESTION, {"limit": 3}),
    (QUESTION, {"limit": 4, "diversity_constraint": 0.0}),
    (OTHER, {"limit": 4, "diversity_constraint": 0.2, "fusion": "rrf"}),
    (OTHER, {"limit": 3, "mode": "dense", "diversity_constraint": 1.0}),
    (OTHER, {"limit": 2, "mode": "lexical"}),
    (QUESTION, {"limit": 6, "token_budget": 150}),
    (OTHER, {"limit": 5, "token_budget": 60, "diversity_constraint": 0.0}),
    (QUOTING, {"limit": 3, "mode": "lexical"}),
    (QUESTION, {"limit": 3, "ranking_weights": {"relevance": 0.0, "authority": 1.0, "freshness": 0.0, "utility": 0.0}}),
)


@pytest.mark.slow
@pytest.mark.parametrize(("text", "fields"), REQUESTS, ids=range(len(REQUESTS)))
def test_the_smallest_change_lets_the_chunk_in(demo: DemoBase, text: str, fields: Mapping[str, object]) -> None:
    checked = 0
    with connect(demo.path) as base:
        answer = base.retrieve(text, as_of=AS_OF, **fields)
        shown = [fragment.chunk_id for fragment in answer.fragments]
        for rank, chunk_id in enumerate(shown, start=1):
            report = base.why(answer.receipt_id or "", chunk_id)
            assert ("answered", "", rank) == (report.stage, report.smallest_change, report.rank)
        for chunk_id in _some_left_out(demo, answer):
            report = base.why(answer.receipt_id or "", chunk_id)
            assert report.smallest_change
            if not _asks_for_other_words(report):
                assert chunk_id in _shown_with(base, text, fields, report)
                _assert_nothing_smaller_does(base, text, fields, report)
                checked += 1

    assert checked >= 4


def test_the_question_without_its_plus_sign_lets_the_chunk_in(demo: DemoBase) -> None:
    with connect(demo.path) as base:
        answer = base.retrieve(QUOTING, as_of=AS_OF, limit=3)
        reports = [base.why(answer.receipt_id or "", chunk_id) for chunk_id in demo.chunks]
        quoted = [report for report in reports if PLUS in report.smallest_change]
        changes = [report for report in quoted if not _asks_for_other_words(report)]

        assert len(changes) > 5
        assert [] == [report for report in changes if report.chunk_id not in _shown_with(base, QUOTING, {"limit": 3}, report)]


def test_each_stage_at_which_a_chunk_can_leave_occurs(demo: DemoBase) -> None:
    stages: Counter[str] = Counter()
    with connect(demo.path) as base:
        for text, fields in (REQUESTS[1], REQUESTS[5]):
            answer = base.retrieve(text, as_of=AS_OF, **fields)
            asked = [each.chunk_id for each in answer.withheld[:1]] or demo.chunks
            for chunk_id in asked:
                report = base.why(answer.receipt_id or "", chunk_id)
                stages[report.stage] += 1
                _assert_numbers_fit_the_stage(report)

    assert {"answered", "search", "rerank", "diversify", "budget"} == set(stages)
    assert len(demo.chunks) + 1 == stages.total()


def test_a_chunk_that_is_left_out_by_a_filter_is_said_to_be(demo: DemoBase) -> None:
    with connect(demo.path) as base:
        answer = base.retrieve(QUESTION, as_of=AS_OF, filter='source_id = "handbook"')
        stages = {chunk.source_id: base.why(answer.receipt_id or "", chunk_id).stage for chunk_id, chunk in demo.chunks.items()}

    assert {"sources"} == {stage for source, stage in stages.items() if source != "handbook"}
    assert "sources" != stages["handbook"]  # type: ignore[index]  # a source id is a text


def _assert_numbers_fit_the_stage(report: WhyReport) -> None:
    is_ranked = report.stage in {"answered", "rerank", "diversify", "budget"}

    assert is_ranked == (report.scores is not None) == (report.confidence is not None)
    assert is_ranked or report.score == 0
    assert not is_ranked or report.rank is not None


def _changed(fields: Mapping[str, object], report: WhyReport, *, less: str = "") -> dict[str, object]:
    """Return the fields with the change; `less` names one that is to be one smaller than it has to be."""
    named = {name: int(value) - (name == less) for name, value in SMALLEST.findall(report.smallest_change)}
    return {**fields, **named}


def _shown_with(base: Base, text: str, fields: Mapping[str, object], report: WhyReport, *, less: str = "") -> list[str]:
    asked = text.replace('+"', '"') if PLUS in report.smallest_change else text
    answer = base.retrieve(asked, as_of=AS_OF, receipt=False, **_changed(fields, report, less=less))
    return [fragment.chunk_id for fragment in answer.fragments]


def _assert_nothing_smaller_does(base: Base, text: str, fields: Mapping[str, object], report: WhyReport) -> None:
    """One less than a named number is not enough; the sample corpus is so small that limits are tried one by one."""
    before = {"limit": 0, "token_budget": 0, **fields}
    for name, value in SMALLEST.findall(report.smallest_change):
        is_near = name == "limit" or int(value) < int(str(before[name])) + BUDGETS_TRIED
        assert not is_near or report.chunk_id not in _shown_with(base, text, fields, report, less=name)


def _asks_for_other_words(report: WhyReport) -> bool:
    return any(words in report.smallest_change for words in OTHER_WORDS)


def _some_left_out(demo: DemoBase, answer: EvidenceResponse) -> list[ChunkId]:
    """Return what the budget kept out, and some of what never came that far."""
    shown = {fragment.chunk_id for fragment in answer.fragments}
    withheld = [each.chunk_id for each in answer.withheld]
    others = [chunk_id for chunk_id in demo.chunks if chunk_id not in shown and chunk_id not in withheld]
    return [*withheld, *Random(answer.request_hash).sample(others, ASKED_ABOUT - len(withheld))]
