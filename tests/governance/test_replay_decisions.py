"""Every decision comes out of the log again, to the letter; whatever does not is named."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import msgspec
import pytest
from recorded_runs import GROUNDING, RETRIEVAL, RecordedRun, document, policy_set

from evidentia.backends.embedded.logs.decision_log import EmbeddedDecisionLog
from evidentia.contracts.decisions import LogEntry
from evidentia.contracts.judging import Judgement, JudgeStatus
from evidentia.contracts.policies import Compat, Enforcement, PolicyBody, PolicyId
from evidentia.contracts.runs import (
    BatchClosed,
    BatchId,
    CheckBypassed,
    GroundingEntry,
    LlmCall,
    RunEnded,
    RunId,
    RunStatus,
    StepCall,
    ToolCall,
)
from evidentia.governance.decision_replay import first_difference, replay
from evidentia.governance.log_maintenance import redact, retire
from evidentia.governance.memory_log import MemoryLog
from evidentia.policy.evaluator import EDITION
from evidentia.testing.determinism import START, RepeatableEntropy, SteppingClock

if TYPE_CHECKING:
    from pathlib import Path

    from evidentia.contracts.ports import DecisionLog
    from evidentia.contracts.runs import AnyCall
    from evidentia.policy.evaluator import PolicySet

SETS = (
    policy_set(RETRIEVAL, GROUNDING),
    policy_set(
        PolicyBody(name="Few", category="retrieval", rules={"min_chunks": 2, "max_chunks": 3, "action_on_chunk_violation": "block"}),
        PolicyBody(name="Literal", category="retrieval", rules={"min_relevance_score": 0.8}, compat=Compat.LITERAL),
    ),
    policy_set(
        PolicyBody(name="Shadow", category="retrieval", rules={"min_relevance_score": 0.95}, enforcement=Enforcement.SHADOW),
        PolicyBody(
            name="Judged",
            category="grounding",
            rules={"llm_grounding_check": True, "llm_grounding_phase": "both", "action_on_violation": "block", "abstention_threshold": 0.5},
        ),
    ),
    policy_set(),
)


def _judgement(chance: Random) -> Judgement:
    status = chance.choice((JudgeStatus.JUDGED, JudgeStatus.UNPARSEABLE, JudgeStatus.NO_KEY))
    scores = {JudgeStatus.JUDGED: chance.choice((0.1, 0.7, 0.9)), JudgeStatus.UNPARSEABLE: 0.5}
    return Judgement(status=status, score=scores.get(status), model="local:x")


def _call(chance: Random, policies: PolicySet) -> AnyCall:
    judgements = {policy.policy_id: _judgement(chance) for policy in policies.policies if "llm_grounding_check" in policy.body.rules}
    found = document(
        relevance_score=chance.choice((0.2, 0.7, 0.85, 0.99, 1, 1.5)),
        source=chance.choice(("faq.pdf", "bad", "")),
        age_days=chance.choice((None, 3, 90.5, 400)),
        batch=chance.choice((None, BatchId("q1"))),
    )
    entry = GroundingEntry(
        grounding_scores=(chance.choice((0.2, 0.9)),),
        citations=("a",) * chance.randrange(2),
        output_confidence=chance.choice((None, 0.2)),
        judgements=judgements,
    )
    tool = ToolCall(name="t", is_retrieval=chance.random() < 0.5)
    calls: list[AnyCall] = [*[found] * 5, entry, BatchClosed(batch=BatchId("q1")), tool, LlmCall(model="m"), StepCall(name="s")]
    return chance.choice(calls)


def _record_runs(log: DecisionLog, *, runs: int, seed: int) -> None:
    """Record runs side by side, so that their records are mixed."""
    chance = Random(seed)
    open_runs: list[tuple[RecordedRun, PolicySet]] = []
    for number in range(runs):
        policies = chance.choice(SETS)
        open_runs.append((RecordedRun(log, policies, run=f"r{number}", is_enforced=chance.random() < 0.8), policies))
        for run, of_run in open_runs:
            run.record(*(_call(chance, of_run) for _ in range(chance.randrange(4))))
        if len(open_runs) > 3:
            run, of_run = open_runs.pop(0)
            judged = {policy.policy_id: _judgement(chance) for policy in of_run.policies}
            run.finish(RunEnded(status=chance.choice((RunStatus.SUCCESS, RunStatus.ERROR)), judgements=judged))


def _memory() -> MemoryLog:
    return MemoryLog(entropy=RepeatableEntropy(1))


@pytest.mark.parametrize("seed", range(8))
def test_every_decision_comes_out_again(seed: int) -> None:
    log = _memory()
    _record_runs(log, runs=40, seed=seed)
    report = replay(log)

    assert (True, 0, 40, 0, 0) == (report.ok, report.mismatch_count, report.runs, report.redacted, report.not_replayable)
    assert report.records == report.decisions + 40
    assert any(record.entry.verdicts for record in log.records() if not isinstance(record.entry.call, RunEnded))


def test_a_log_in_parts_and_of_several_processes_is_replayed_as_one(tmp_path: Path) -> None:
    for seed in (1, 2):
        log = EmbeddedDecisionLog(
            tmp_path, clock=SteppingClock(START.replace(day=seed)), entropy=RepeatableEntropy(seed), max_bytes=20_000, is_durable=True
        )
        _record_runs(log, runs=20, seed=seed)
        log.close()
    report = replay(log)

    assert (True, 40) == (report.ok, report.runs)
    assert len(log.parts()) > 3


def _changed(log: MemoryLog, seq: int, **changes: object) -> MemoryLog:
    """Return a log in which one entry says something else, sealed as if that had been decided."""
    other = _memory()
    for record in log.records():
        other.append([msgspec.structs.replace(record.entry, **changes) if record.seq == seq else record.entry])
    return other


def _small_log() -> MemoryLog:
    log = _memory()
    run = RecordedRun(log, SETS[0])
    run.record(document(), document(source="bad"), document())
    run.finish()
    return log


@pytest.mark.parametrize(
    ("seq", "changes", "what"),
    [
        (3, {"call": document(source="bad")}, ["outcomes", "verdicts"]),
        (4, {"call": document()}, ["outcomes", "verdicts"]),
        (4, {"verdicts": ()}, ["outcomes", "verdicts"]),
        (5, {"count": 4}, ["count"]),
        (3, {"policies": SETS[1].digest}, ["policies"]),
        (3, {"call": document(relevance_score=0.1)}, ["outcomes", "verdicts"]),
    ],
)
def test_a_decision_that_comes_out_differently_is_named(seq: int, changes: dict[str, object], what: list[str]) -> None:
    report = replay(_changed(_small_log(), seq, **changes))

    assert (False, seq, "r1") == (report.ok, report.mismatches[0].seq, report.mismatches[0].run_id)
    assert what == [each.what for each in report.mismatches if each.seq == seq]


def test_the_field_that_differs_is_named() -> None:
    log = _small_log()
    entry = next(record.entry for record in log.records() if record.seq == 4)
    (verdict,) = entry.verdicts
    forged = msgspec.structs.replace(verdict, decisive=msgspec.structs.replace(verdict.decisive, reason="Retrieved from a fine source"))
    (mismatch,) = replay(_changed(log, 4, verdicts=(forged,))).mismatches

    assert ("verdicts[0].decisive.reason", "Retrieved from a fine source", "Retrieved from blocked source 'bad'") == (
        mismatch.what,
        mismatch.recorded,
        mismatch.derived,
    )


def test_policies_that_do_not_have_their_digest_are_named() -> None:
    log = _small_log()
    other = next(record.entry.call for record in RecordedLog(SETS[1]).records())
    report = replay(_changed(log, 1, call=other))

    assert [("policies", 1)] == [(each.what, each.seq) for each in report.mismatches]
    assert (0, 5) == (report.runs, report.not_replayable)


class RecordedLog(MemoryLog):
    """A log with one run under some policies."""

    def __init__(self, policies: PolicySet) -> None:
        super().__init__(entropy=RepeatableEntropy(2))
        RecordedRun(self, policies)


def test_only_so_many_mismatches_are_kept_and_all_are_counted() -> None:
    log = _memory()
    run = RecordedRun(log, SETS[0])
    run.record(*[document()] * 30)
    forged = _memory()
    for record in log.records():
        forged.append([msgspec.structs.replace(record.entry, count=99)])
    report = replay(forged, max_mismatches=5)

    assert (30, 5) == (report.mismatch_count, len(report.mismatches))


def test_a_redacted_record_and_what_follows_it_in_its_run_is_not_replayed() -> None:
    log = _memory()
    first, second = RecordedRun(log, SETS[0], run="r1"), RecordedRun(log, SETS[0], run="r2")
    first.record(document(), document(), document())
    second.record(document(), document())
    first.finish()
    second.finish()
    redact(log, record=("memory", 6), by="dpo", why="request", clock=SteppingClock())
    report = replay(log)

    assert (True, 1, 2, 2) == (report.ok, report.redacted, report.not_replayable, report.runs)
    assert 6 == report.decisions


def test_what_retention_cut_off_is_not_replayed_and_the_rest_is() -> None:
    log = _memory()
    first = RecordedRun(log, SETS[0], run="r1", at_s=0)
    first.record(document(), document())
    second = RecordedRun(log, SETS[0], run="r2", at_s=100)
    first.record(document())
    second.record(document(), document(source="bad"))
    second.finish()
    retire(log, before=START.replace(year=1970, second=50), by="dpo", why="age", clock=SteppingClock())
    report = replay(log)

    assert (True, 1, 1, 4) == (report.ok, report.runs, report.not_replayable, report.decisions)


def test_a_call_that_was_let_go_on_lifts_its_stop() -> None:
    """What ends a run is enforced when every stop was approved, and only then; the recorded run says the same."""
    log = _memory()
    run = RecordedRun(log, SETS[0])
    run.record(document(source="bad"))
    run.lift_stop()
    run.record(CheckBypassed(what="approval", problem="approved by 'x'"), document())
    run.finish()
    approved = replay(log)
    denied = _memory()
    for record in log.records():
        call = record.entry.call
        denied.append([msgspec.structs.replace(record.entry, call=StepCall(name="s") if isinstance(call, CheckBypassed) else call)])
    report = replay(denied)

    assert approved.ok
    assert {"outcomes", "verdicts[0].is_enforced"} == {each.what for each in report.mismatches}


def test_a_number_that_was_whole_is_the_same_number() -> None:
    """A score given as a whole number is read back as a float; nothing that was decided changes."""
    log = _memory()
    run = RecordedRun(log, policy_set(PolicyBody(name="All", category="retrieval", rules={"min_relevance_score": 1.0})))
    run.record(document(relevance_score=1))

    assert replay(log).ok


def test_entries_of_nobody_are_counted() -> None:
    log = _memory()
    log.append([LogEntry(at_us=1, run_id=RunId("x"), policies=SETS[0].digest, call=document())])

    assert (True, 1, 0) == ((report := replay(log)).ok, report.not_replayable, report.decisions)


def test_an_unknown_policy_id_in_judgements_changes_nothing() -> None:
    log = _memory()
    run = RecordedRun(log, SETS[2])
    run.record(GroundingEntry(judgements={PolicyId("nobody"): Judgement(status=JudgeStatus.JUDGED, score=0.1, model="x")}))

    assert replay(log).ok


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, ("v.a[1].b", "2", "3")),
        ([1], [1, 2], ("v", "[1]", "[1, 2]")),
        ({"a": 1}, {}, ("v.a", "1", "None")),
    ],
)
def test_the_first_difference_is_found(before: object, after: object, expected: tuple[str, str, str]) -> None:
    assert expected == first_difference(before, after, "v")


@pytest.mark.parametrize("edition", [0, EDITION])
def test_a_run_is_replayed_in_the_words_of_its_time(edition: int) -> None:
    """Since edition 1 nothing is within policy after a block or over the maximum, and a judge that lets pass is told with its score."""
    rules = {"llm_grounding_check": True, "llm_grounding_model": "local:words", "min_citations": 0}
    bodies = [
        PolicyBody(name="Few", category="retrieval", rules={"max_chunks": 1, "blocked_sources": ["bad"]}),
        PolicyBody(name="Judged", category="grounding", rules=rules),
    ]
    policies = policy_set(*bodies)
    (asking,) = (each.policy_id for each in policies.policies if each.body.name == "Judged")
    log = _memory()
    run = RecordedRun(log, policies, edition=edition)
    run.record(GroundingEntry(judgements={asking: Judgement(status=JudgeStatus.JUDGED, score=0.9, model="local:words")}))
    run.record(document(), document(), document(), document(source="bad"), document())
    run.finish()
    report = replay(log)
    said = {verdict.decisive.reason for record in log.records() for verdict in record.entry.verdicts}

    assert report.ok, report.mismatches
    assert ("Retrieval quality within policy (5 chunks)" in said) is (edition == 0)
