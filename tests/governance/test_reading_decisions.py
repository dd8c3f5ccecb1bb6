"""What the log tells: passing calls expanded, decisions found page by page, runs as lines, and traces as trees."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from recorded_runs import GROUNDING, RETRIEVAL, RecordedRun, document, policy_set

from evidentia.contracts.decisions import DecisionStatus
from evidentia.contracts.errors import BaseDamagedError, InvalidFieldError, NotFoundError
from evidentia.contracts.judging import Judgement, JudgeStatus
from evidentia.contracts.policies import PolicyAction, PolicyId, Posture
from evidentia.contracts.protocol import SpanId
from evidentia.contracts.runs import (
    CheckBypassed,
    GroundingEntry,
    LlmCall,
    Phase,
    RunEnded,
    RunId,
    RunStatus,
    SpanClosed,
    SpanOpened,
    StepCall,
    ToolCall,
)
from evidentia.governance.decision_queries import DecisionFilter, LogPosition, decisions, expand, runs, trace
from evidentia.governance.log_maintenance import redact, retire
from evidentia.governance.memory_log import MemoryLog
from evidentia.testing.determinism import RepeatableEntropy, SteppingClock

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BOTH = policy_set(RETRIEVAL, GROUNDING)


def _log() -> MemoryLog:
    return MemoryLog(entropy=RepeatableEntropy(1))


def _three_runs() -> MemoryLog:
    log = _log()
    first = RecordedRun(log, BOTH, run="r1", agent="a", at_s=0)
    first.record(document(), document(source="bad"), document(age_days=400), StepCall(name="plan"))
    first.finish(RunEnded(status=RunStatus.BLOCKED))
    second = RecordedRun(log, BOTH, run="r2", agent="b", at_s=100)
    second.record(document(), GroundingEntry(citations=("x",), grounding_scores=(0.9,)))
    second.finish()
    third = RecordedRun(log, BOTH, run="r3", agent="a", at_s=200, is_enforced=False)
    third.record(document(source="bad"), CheckBypassed(what="control_plane", problem="down", posture=Posture.DEGRADE))
    return log


def test_a_passing_call_is_expanded_to_what_each_policy_said() -> None:
    log = _log()
    run = RecordedRun(log, policy_set(RETRIEVAL, RETRIEVAL.__class__(name="Second", category="retrieval")))
    run.record(document(), document(age_days=None))
    passed = [each for each in expand(log.records()) if each.kind == "retrieval"]

    assert ["Retrieval quality within policy (1 chunks)", "Retrieval quality within policy (2 chunks)"] == [each.reason for each in passed]
    assert [("Documents", "Second")] * 2 == [tuple(said.policy_name for said in each.evaluations) for each in passed]
    assert {PolicyAction.ALLOW} == {said.action for each in passed for said in each.evaluations}
    assert {"relevance_score": 0.9, "source": "faq.pdf", "collection": "kb", "age_days": 3} == passed[0].inputs
    assert True is passed[1].metadata["unknown_age"]
    assert ("agent", "default", 1.5, Phase.MID_EXECUTION) == (
        passed[0].agent_name,
        passed[0].tenant,
        passed[0].overhead_us,
        passed[0].phase,
    )
    assert EPOCH + timedelta(seconds=2) == passed[0].at


def test_a_decided_call_tells_what_was_written_down() -> None:
    found = [each for each in expand(_three_runs().records()) if each.action is PolicyAction.BLOCK]
    blocked, in_shadow = found

    assert ("Retrieved from blocked source 'bad'", "blocked_sources", "Documents") == (blocked.reason, blocked.rule, blocked.policy_name)
    assert {"blocked_source": "bad"} == blocked.metadata
    assert (True, DecisionStatus.EVALUATED) == (blocked.is_enforced, blocked.status)
    assert (False, DecisionStatus.SHADOW) == (in_shadow.is_enforced, in_shadow.status)
    assert BOTH.digest == blocked.policies
    assert 64 == len(blocked.hash) == len(blocked.previous)


def test_one_record_can_hold_several_decisions() -> None:
    ends = [each for each in expand(_three_runs().records()) if each.kind == "end" and each.run_id == "r2"]

    assert [(0, "retrieval"), (1, "grounding")] == [(each.part, each.category) for each in ends]
    assert 1 == len({each.seq for each in ends})


def test_a_bypass_outside_any_rule_is_a_decision() -> None:
    (bypass,) = [each for each in expand(_three_runs().records()) if each.kind == "bypass"]

    assert (PolicyAction.WARN, DecisionStatus.BYPASSED, "control_plane") == (bypass.action, bypass.status, bypass.rule)
    assert "Check bypassed: control_plane (down)" == bypass.reason


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        ({"run_id": RunId("r1")}, 7),
        ({"agent": "b"}, 6),
        ({"action": PolicyAction.BLOCK}, 2),
        ({"action": PolicyAction.BLOCK, "agent": "a", "status": DecisionStatus.SHADOW}, 1),
        ({"action": "block"}, 2),
        ({"phase": Phase.AFTER_WORKFLOW}, 4),
        ({"phase": Phase.BEFORE_WORKFLOW, "category": "grounding"}, 3),
        ({"policy": "Answers", "phase": Phase.MID_EXECUTION}, 1),
        ({"status": DecisionStatus.BYPASSED}, 1),
        ({"since": EPOCH + timedelta(seconds=103)}, 7),
        ({"tenant": "other"}, 0),
        ({"run_id": RunId("r1"), "action": PolicyAction.WARN}, 2),
        ({"policy": "nobody"}, 0),
    ],
)
def test_decisions_are_filtered(wanted: dict[str, Any], count: int) -> None:
    log = _three_runs()
    rules = DecisionFilter(**wanted)
    every = decisions(log, limit=1_000).decisions
    found = decisions(log, rules, limit=1_000).decisions

    assert count == len(found)
    assert {(each.seq, each.part) for each in found} <= {(each.seq, each.part) for each in every}
    assert found == tuple(
        sorted(decisions(log, rules, limit=1_000, is_newest_first=True).decisions, key=lambda each: (each.seq, each.part))
    )


@pytest.mark.parametrize("is_newest_first", [False, True])
@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
def test_pages_are_the_whole(limit: int, *, is_newest_first: bool) -> None:
    log = _three_runs()
    whole = decisions(log, limit=1_000, is_newest_first=is_newest_first).decisions
    paged: list[Any] = []
    after: LogPosition | None = None
    for _ in range(100):
        page = decisions(log, after=after, limit=limit, is_newest_first=is_newest_first)
        paged.extend(page.decisions)
        after = page.next
        if after is None:
            break

        assert len(page.decisions) <= max(limit, 2)

    assert list(whole) == paged
    assert sorted((each.seq for each in whole), reverse=is_newest_first) == [each.seq for each in whole]


@pytest.mark.parametrize(
    "rules",
    [DecisionFilter(), DecisionFilter(agent="b"), DecisionFilter(action=PolicyAction.BLOCK), DecisionFilter(policy="Nobody's")],
    ids=["all", "an agent", "blocks", "another policy"],
)
def test_the_newest_of_a_long_log_are_the_end_of_the_whole(rules: DecisionFilter) -> None:
    """Long enough that not everything is held which may stand on a page, with steps in it that no policy says anything of."""
    log = _log()
    for number in range(60):
        run = RecordedRun(log, BOTH, run=f"r{number}", agent="ab"[number % 2], at_s=number)
        run.record(*(document(source="bad" if number % 7 == place else "a.pdf") for place in range(6)))
        run.record(*(StepCall(name="think") for _ in range(12)))
        run.finish()
    whole = decisions(log, rules, limit=10_000).decisions
    newest = decisions(log, rules, limit=20, is_newest_first=True).decisions

    assert [(each.seq, each.part) for each in newest] == [
        (each.seq, each.part) for each in sorted(whole, key=lambda each: (-each.seq, each.part))[: len(newest)]
    ]
    assert len(newest) >= min(18, len(whole))


def test_runs_are_lines_the_newest_first() -> None:
    log = _three_runs()
    third, second, first = runs(log)

    assert ["r3", "r2", "r1"] == [run.facts.run_id for run in (third, second, first)]
    assert (RunStatus.BLOCKED, 4, 3, 1, 1, 0) == (
        first.status,
        first.calls,
        first.documents,
        first.warnings - 1,
        first.blocks,
        first.bypasses,
    )
    assert (RunStatus.SUCCESS, 0, 0) == (second.status, second.warnings, second.blocks)
    assert (RunStatus.RUNNING, None, 0, 1) == (third.status, third.ended_at, third.blocks, third.bypasses)
    assert (EPOCH + timedelta(seconds=1), EPOCH + timedelta(seconds=6)) == (first.started_at, first.ended_at)
    assert (second,) == runs(log, agent="b")
    assert (third, first) == runs(log, agent="a")
    assert (first,) == runs(log, status=RunStatus.BLOCKED)
    assert (third,) == runs(log, since=EPOCH + timedelta(seconds=150))
    assert (third,) == runs(log, limit=1)


def test_documents_stand_under_the_search_that_found_them() -> None:
    log = _log()
    run = RecordedRun(log, BOTH)
    run.record(
        SpanOpened(opened=SpanId("s1"), name="vector_search", is_retrieval=True),
        document(span=SpanId("s1")),
        SpanOpened(opened=SpanId("s2"), name="rerank", span=SpanId("s1")),
        document(span=SpanId("s2"), source="bad"),
        SpanClosed(closed=SpanId("s2")),
        document(source="unsaid"),
        SpanClosed(closed=SpanId("s1"), error="slow"),
        document(source="late"),
    )
    found = {span.span_id: span for span in trace(log, RunId("r1")).spans}
    by_name = {span.name: span for span in found.values()}

    assert ["s1", "s1", "s1", "run"] == [by_name[name].parent for name in ("faq.pdf", "bad", "unsaid", "late")]
    assert ("retrieval", 6_000_000, {"error": "slow", "sources": 3}) == (
        found[SpanId("s1")].kind,
        found[SpanId("s1")].duration_us,
        found[SpanId("s1")].attributes,
    )
    assert ("tool", SpanId("s1"), 2_000_000) == (found[SpanId("s2")].kind, found[SpanId("s2")].parent, found[SpanId("s2")].duration_us)
    assert {"relevance": 0.9, "source": "bad", "collection": "kb", "age": 3} == by_name["bad"].attributes
    assert 1 == len(by_name["bad"].decisions) == len(by_name["faq.pdf"].decisions)


def test_documents_recorded_after_a_search_belong_to_it_until_something_else_happens() -> None:
    log = _log()
    run = RecordedRun(log, BOTH)
    run.record(
        ToolCall(name="vector_search", is_retrieval=True, duration_ms=250),
        document(),
        document(),
        LlmCall(model="m", input_tokens=500, output_tokens=10, cost_micro=75, duration_ms=1_000),
        document(),
        ToolCall(name="keyword_search", is_retrieval=True, sources=9),
        document(),
        StepCall(name="plan", attributes={"x": 1}),
    )
    spans = trace(log, RunId("r1")).spans
    tools = {span.name: span for span in spans if span.kind == "retrieval"}

    assert [tools["vector_search"].span_id] * 2 + ["run", tools["keyword_search"].span_id] == [
        span.parent for span in spans if span.kind == "document"
    ]
    assert (2, 9) == (tools["vector_search"].attributes["sources"], tools["keyword_search"].attributes["sources"])
    assert 250_000 == tools["vector_search"].duration_us
    (llm,) = [span for span in spans if span.kind == "llm"]
    assert {"model": "m", "input_tokens": 500, "output_tokens": 10, "cost_micro": 75} == llm.attributes
    assert (1_000_000, 1_000_000 + llm.start_us) == (llm.duration_us, spans[-1].start_us - 4_000_000)
    assert {"attributes": {"x": 1}} == next(span for span in spans if span.kind == "step").attributes


def test_grounding_and_judges_are_spans_with_their_cost() -> None:
    log = _log()
    judged = Judgement(
        status=JudgeStatus.JUDGED, score=0.9, model="gpt-4o-mini", input_tokens=500, output_tokens=10, cost_micro=81, latency_ms=40
    )
    run = RecordedRun(log, BOTH)
    run.record(GroundingEntry(grounding_scores=(0.9,), citations=("a",), judgements={PolicyId("p"): judged}))
    run.finish(RunEnded(judgements={PolicyId("q"): judged}))
    spans = trace(log, RunId("r1")).spans
    (entry,) = [span for span in spans if span.kind == "grounding"]
    judges = [span for span in spans if span.kind == "judge"]

    assert ([0.9], ["a"]) == (entry.attributes["grounding_scores"], entry.attributes["citations"])
    assert [(entry.span_id, "p"), ("run", "q")] == [(span.parent, span.attributes["policy_id"]) for span in judges]
    assert {(500, 10, 81, 40_000)} == {
        (span.attributes["input_tokens"], span.attributes["output_tokens"], span.attributes["cost_micro"], span.duration_us)
        for span in judges
    }


def test_spans_come_in_the_order_in_which_they_began_after_the_run() -> None:
    summary_and_spans = trace(_three_runs(), RunId("r1"))
    starts = [span.start_us for span in summary_and_spans.spans]

    assert ("run", None) == (summary_and_spans.spans[0].kind, summary_and_spans.spans[0].parent)
    assert sorted(starts) == starts
    assert 5_000_000 == summary_and_spans.spans[0].duration_us
    assert RunStatus.BLOCKED == summary_and_spans.summary.status


def test_an_unknown_run_is_not_found() -> None:
    with pytest.raises(NotFoundError, match="no run 'nobody'"):
        trace(_three_runs(), RunId("nobody"))


def test_a_redacted_record_still_tells_what_was_decided() -> None:
    log = _three_runs()
    redact(log, run_id=RunId("r1"), by="dpo", why="request", clock=SteppingClock())
    found = decisions(log, DecisionFilter(run_id=RunId("r1")), limit=100).decisions
    (blocked,) = [each for each in found if each.action is PolicyAction.BLOCK]
    passed = next(each for each in found if each.kind == "retrieval" and each.action is PolicyAction.ALLOW)

    assert {True} == {each.is_redacted for each in found}
    assert ("blocked_sources", "Documents", "", {}, {}) == (
        blocked.rule,
        blocked.policy_name,
        blocked.reason,
        blocked.inputs,
        blocked.metadata,
    )
    assert ({}, {}) == (passed.inputs, passed.metadata)
    assert 7 == len(found)
    assert {True} == {span.attributes["is_redacted"] for span in trace(log, RunId("r1")).spans if span.kind == "document"}
    assert 1 == runs(log)[-1].blocks


def test_policies_outlast_the_records_that_were_retired() -> None:
    log = _three_runs()
    retire(log, before=EPOCH + timedelta(seconds=102), by="dpo", why="age", clock=SteppingClock())
    found = decisions(log, DecisionFilter(run_id=RunId("r2")), limit=100).decisions

    assert ["Retrieval quality within policy (1 chunks)", "Grounding scores within policy (1 scores)"] == [
        each.reason for each in found if each.phase is Phase.MID_EXECUTION
    ]


def test_a_time_without_a_zone_is_refused() -> None:
    naive = EPOCH.replace(tzinfo=None)
    for ask in (lambda: decisions(_log(), DecisionFilter(since=naive)), lambda: runs(_log(), since=naive)):
        with pytest.raises(InvalidFieldError, match="field 'since'"):
            ask()
    with pytest.raises(InvalidFieldError, match="field 'before'"):
        retire(_log(), before=naive, by="x", why="y", clock=SteppingClock())


def test_a_line_that_cannot_be_read_is_damage() -> None:
    log = _three_runs()
    log.rewrite(log.parts()[0], lambda blocks: [b"".join(blocks).replace(b',"run",', b",'run',", 1)])

    with pytest.raises(BaseDamagedError, match="verify the log"):
        runs(log)
