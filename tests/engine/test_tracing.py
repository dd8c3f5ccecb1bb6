"""A trace says what took how long, and no word of what was asked or answered."""

from __future__ import annotations

from itertools import accumulate, permutations
from string import ascii_lowercase
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.trace_samples import FINGERPRINT, STAGES, STARTED, fragment, hash_of, reply, request, response
from evidentia.contracts.evidence import SCORE_ONE, CoverageReport, Decision
from evidentia.contracts.ids import SourceId
from evidentia.contracts.vocabulary import CacheTier, CoverageState
from evidentia.engine.stage_log import MAX_DOCUMENTS, build_trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.contracts.evidence import EvidenceRequest, EvidenceResponse
    from evidentia.contracts.retrieval import SourceReply
    from evidentia.contracts.telemetry import RequestTrace

# Long enough that no fixed word of a trace holds one by chance, and no hash does: it has no z.
token = st.text(alphabet=ascii_lowercase, min_size=14, max_size=20).map(lambda text: f"zq{text}")


def traced(answer: EvidenceResponse, replies: Sequence[SourceReply] = (), *, asked: EvidenceRequest | None = None) -> RequestTrace:
    return build_trace(
        response=answer,
        request=asked or request(),
        fingerprint=FINGERPRINT,
        replies=replies,
        started_at=STARTED,
        stages=answer.stage_latencies_ms,
        notes=answer.decisions,
    )


def test_stages_follow_each_other_in_their_order() -> None:
    trace = traced(response(decisions=(Decision(stage="search", note="12 match", remaining=12),)))

    stages = [span for span in trace.spans if span.kind == "stage"]
    assert list(STAGES) == [span.name for span in stages]
    assert list(STAGES.values()) == [span.duration_ms for span in stages]
    assert [0.0, *accumulate(STAGES.values())][:-1] == [span.start_ms for span in stages]
    assert ["12 match"] == [span.note for span in stages if span.note]


def test_request_is_told_by_its_limits_and_figures() -> None:
    trace = traced(response([fragment("some text")], degraded=("deadline: the answer took longer than 250 ms",)))

    assert ("0123456789abcdef", "r-0123456789ab-7", STARTED) == (trace.request_id, trace.receipt_id, trace.started_at)
    assert (250, "default", "", "hybrid", 10) == (trace.deadline_ms, trace.tenant, trace.agent_name, trace.mode, trace.limit)
    assert (1, 40, 321, 0.25) == (trace.fragments, trace.candidates, trace.tokens_used, trace.cache_hit_ratio)
    assert ("deadline",) == trace.degraded


def test_source_is_told_by_its_reply() -> None:
    asked = reply("wiki", part=1, faults={"too_long": 2, "no_content": 1}, contents=("a", "b"), asked_ms=14.25, elapsed_ms=61.5)
    kept = reply("tickets", CoverageState.CACHED, reason="kept for 30 s", tier=CacheTier.SESSION)

    tickets, wiki = (span for span in traced(response(), [asked, kept]).spans if span.kind == "source")

    assert ("wiki", 14.25, 61.5, CoverageState.SEARCHED) == (wiki.name, wiki.start_ms, wiki.duration_ms, wiki.state)
    assert {"candidates": 2, "faults": 3, "part": 1} == wiki.attributes
    assert ("kept for 30 s", "session") == (tickets.note, tickets.attributes["tier"])


def test_own_source_begins_with_the_search() -> None:
    coverage = {SourceId("handbook"): CoverageReport(state=CoverageState.SEARCHED, candidates=7, elapsed_ms=200.0)}

    span = traced(response(coverage=coverage)).spans[-1]

    assert ("handbook", 13.5, 200.0, {"candidates": 7, "faults": 0}) == (span.name, span.start_ms, span.duration_ms, span.attributes)


def test_source_with_a_reply_has_no_second_span() -> None:
    coverage = {SourceId("wiki"): CoverageReport(state=CoverageState.SEARCHED)}

    spans = traced(response(coverage=coverage), [reply("wiki"), reply("wiki", part=1)]).spans

    assert [0, 1] == [span.attributes["part"] for span in spans if span.kind == "source"]


def test_order_of_arrival_does_not_change_a_trace() -> None:
    replies = [reply("b"), reply("a", part=1), reply("a")]

    assert 1 == len({msgspec.json.encode(traced(response(), order)) for order in permutations(replies)})


@pytest.mark.parametrize("state", [CoverageState.FAILED, CoverageState.STALE, CoverageState.BREAKER_OPEN])
@pytest.mark.parametrize("reason", ["ValueError: no such key as 'hunter2'; nothing had come", "ValueError; nothing had come", "ValueError"])
def test_of_an_exception_only_the_type_is_told(state: CoverageState, reason: str) -> None:
    span = traced(response(), [reply("wiki", state, reason=reason)]).spans[-1]

    assert "ValueError" == span.note


def test_fragments_are_named_by_their_hash_and_score() -> None:
    last = next(span for span in traced(response([fragment("text", score=SCORE_ONE // 4)])).spans if span.name == "seal")

    assert {"document.0.id": hash_of("text")[:16], "document.0.score": 0.25} == last.attributes


def test_long_answers_are_named_in_part() -> None:
    trace = traced(response([fragment(f"text {number}") for number in range(MAX_DOCUMENTS + 5)]))

    named = next(span for span in trace.spans if span.name == "seal").attributes
    assert (MAX_DOCUMENTS + 5, 2 * MAX_DOCUMENTS) == (trace.fragments, len(named))


def test_request_without_stages_is_a_trace_too() -> None:
    assert () == traced(response([fragment("text")], stages={})).spans


@given(st.lists(token, min_size=5, max_size=5, unique=True))
def test_no_word_of_a_question_or_an_answer_is_in_a_trace(words: list[str]) -> None:
    asked, content, name, proposed, raised = words
    answer = response(
        [fragment(content, own_id=name)],
        coverage={SourceId("handbook"): CoverageReport(state=CoverageState.FAILED, reason=f"OSError: {raised}")},
        degraded=(f"rewrite: the question was searched as it is ({asked})", f"sources: 'wiki' is failed (ValueError: {raised})"),
    )
    states = (CoverageState.FAILED, CoverageState.STALE, CoverageState.BREAKER_OPEN, CoverageState.SEARCHED)
    replies = [
        reply(f"source-{state.value}", state, reason="" if state is CoverageState.SEARCHED else f"E: {raised}", contents=(proposed,))
        for state in states
    ]

    encoded = msgspec.json.encode(traced(answer, replies, asked=request(asked))).decode()

    assert "source-failed" in encoded
    assert [] == [word for word in words if word in encoded]
