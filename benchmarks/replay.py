"""What the decision log costs and how fast it is read again: append, verification and replay, in CPU time.

    python benchmarks/replay.py [--scale 1000000] [--base DIR]

Runs of a retrieval and a grounding policy are decided by the evaluator and appended to a buffered log on disk; about one call in
twenty-five violates something. Then the log is verified, every decision is derived from it again and compared, and a candidate
policy is tried over all of it.
`append_us` is what a caller pays; sealing and writing is on the writer's thread.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import resource
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from evidentia.backends.embedded.logs.decision_log import EmbeddedDecisionLog
from evidentia.contracts.decisions import LogEntry
from evidentia.contracts.runs import GroundingEntry, PoliciesRecorded, RetrievedDocument, RunEnded, RunFacts, RunId, RunStarted
from evidentia.governance.decision_replay import replay
from evidentia.governance.log_maintenance import verify
from evidentia.governance.shadow import shadow_log
from evidentia.policy.evaluator import PolicySet, RunEvaluator
from evidentia.policy.rules import check_policy
from evidentia.policy.templates import TEMPLATES
from evidentia.provenance.decision_chain import record_lines, split_line
from evidentia.provenance.decision_lines import decode_header
from evidentia.wiring.system import SystemClock, SystemEntropy

if TYPE_CHECKING:
    from evidentia.contracts.decisions import Verdict
    from evidentia.contracts.runs import AnyCall

RESULTS = Path(__file__).parent / "results" / "replay.json"
POLICIES = ("Standard RAG Quality Gate", "RAG Pipeline")
DOCUMENTS = 46
"""Per run; with its beginning, four grounding entries and its end a run is 52 decisions."""
PASSES = 3
"""Of replay and of shadow, in turn; the least counts."""
SOURCES = tuple(f"handbook-{number:03}.pdf" for number in range(200))


def main(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as made:
        directory = Path(arguments.base or made)
        log = EmbeddedDecisionLog(directory, clock=SystemClock(), entropy=SystemEntropy())
        results: dict[str, Any] = {"command": f"python benchmarks/replay.py --scale {arguments.scale}", "python": platform.python_version()}
        results |= write(log, decisions=arguments.scale)
        results |= sizes(log)
        results |= read_again(log)
        log.close()
    print(json.dumps(results, indent=2))
    if not arguments.dry:
        RESULTS.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


def write(log: EmbeddedDecisionLog, *, decisions: int) -> dict[str, Any]:
    """Decide and append; the caller's share of appending is timed on its own, entry by entry, as a run does it."""
    chance = random.Random(1)
    policies = PolicySet.of(check_policy(TEMPLATES[name]) for name in POLICIES)
    append_ns, written = 0, 0
    log.append([_entry(PoliciesRecorded(policies=policies.policies), policies, run_id=RunId("first"))])
    while written < decisions:
        run_id = RunId(f"run-{chance.randbytes(12).hex()}")
        entries = [(entry,) for entry in _run(policies, run_id, chance)]
        began = time.thread_time_ns()
        for entry in entries:
            log.append(entry)
        append_ns += time.thread_time_ns() - began
        written += len(entries)
    log.flush()
    return {"decisions_written": written, "append_us": round(append_ns / written / 1_000, 3)}


def sizes(log: EmbeddedDecisionLog) -> dict[str, Any]:
    """Return the mean size of a line, for documents that pass and for records with verdicts."""
    passing, decided = [0, 0], [0, 0]
    for part in log.parts():
        for line in record_lines(log.blocks(part)):
            header = decode_header(split_line(line).header)
            tally = decided if header.outcomes else passing if header.kind == "retrieval" else None
            if tally is not None:
                tally[0] += 1
                tally[1] += len(line) + 1
    return {
        "bytes_per_passing_document": round(passing[1] / passing[0], 1),
        "bytes_per_record_with_verdicts": round(decided[1] / max(1, decided[0]), 1),
        "share_with_verdicts": round(decided[0] / (decided[0] + passing[0]), 4),
    }


def read_again(log: EmbeddedDecisionLog) -> dict[str, Any]:
    """Verify, replay and try a candidate, each in CPU seconds, with the growth of the process's memory."""
    memory_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    verified = verify(log, heads=[log.head()])
    verify_s = time.process_time() - began
    candidate = msgspec.structs.replace(TEMPLATES[POLICIES[0]], rules={**TEMPLATES[POLICIES[0]].rules, "min_relevance_score": 0.76})
    policy = check_policy(candidate)
    replay_s = shadow_s = float("inf")
    for _ in range(PASSES):  # in turn, since the machine is not equally fast all the time
        began = time.process_time()
        report = replay(log)
        replay_s = min(replay_s, time.process_time() - began)
        began = time.process_time()
        tried = shadow_log(log, [policy])
        shadow_s = min(shadow_s, time.process_time() - began)
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory_kib
    return {
        "verified_ok": verified.ok,
        "verified_records": verified.records,
        "verify_cpu_s": round(verify_s, 2),
        "verified_per_cpu_s": round(verified.records / verify_s),
        "replayed_decisions": report.decisions,
        "mismatches": report.mismatch_count,
        "not_replayable": report.not_replayable,
        "replay_cpu_s": round(replay_s, 2),
        "replayed_per_cpu_s": round(report.decisions / replay_s),
        "shadowed_calls": tried.changes.calls,
        "shadow_changes": tried.changes.newly_blocked + tried.changes.newly_warned + tried.changes.newly_allowed,
        "shadow_cpu_s": round(shadow_s, 2),
        "shadowed_per_cpu_s": round(verified.records / shadow_s),
        "memory_grown_mib": round(grown_kib / 1_024, 1),
    }


def _run(policies: PolicySet, run_id: RunId, chance: random.Random) -> list[LogEntry]:
    evaluator = RunEvaluator(policies)
    started = RunStarted(facts=RunFacts(run_id=run_id, agent_name="support-agent"))
    entries = [_entry(started, policies, run_id=run_id, verdicts=evaluator.begin())]
    for number in range(DOCUMENTS):
        entries.append(_decided(evaluator, _document(chance, batch=number // 6), policies, run_id))
        if number % 12 == 11:
            entries.append(_decided(evaluator, GroundingEntry(grounding_scores=(0.91, 0.87), citations=("a", "b")), policies, run_id))
    end = RunEnded()
    return [*entries, _entry(end, policies, run_id=run_id, verdicts=evaluator.finish(end))]


def _document(chance: random.Random, *, batch: int) -> RetrievedDocument:
    return RetrievedDocument(
        relevance_score=round(chance.uniform(0.75, 0.99) if chance.random() > 0.02 else chance.uniform(0.3, 0.7), 4),
        source=chance.choice(SOURCES),
        collection="knowledge_base",
        age_days=chance.randrange(1, 80) if chance.random() > 0.01 else 400,
        batch=f"q{batch}",  # type: ignore[arg-type]  # a batch id is a word
    )


def _decided(evaluator: RunEvaluator, call: AnyCall, policies: PolicySet, run_id: RunId) -> LogEntry:
    verdicts = evaluator.record(call)
    return _entry(call, policies, run_id=run_id, verdicts=verdicts, count=evaluator.count)


def _entry(call: AnyCall, policies: PolicySet, *, run_id: RunId, verdicts: tuple[Verdict, ...] = (), count: int = 0) -> LogEntry:
    return LogEntry(
        at_us=1_789_459_200_000_000,
        run_id=run_id,
        policies=policies.digest,
        call=call,
        verdicts=verdicts,
        count=count,
        overhead_us=4.213,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=int, default=1_000_000, help="how many decisions")
    parser.add_argument("--base", help="a directory to write to, kept afterwards")
    parser.add_argument("--dry", action="store_true", help="print the results and keep none")
    main(parser.parse_args())
