"""Logs from their ends tell the same as from their beginnings, whatever their parts and pieces, and however many are written at once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recorded_runs import GROUNDING, RETRIEVAL, RecordedRun, document, policy_set

from evidentia.backends.embedded.logs.decision_log import EmbeddedDecisionLog
from evidentia.contracts.policies import PolicyAction
from evidentia.contracts.runs import RunEnded, RunId, RunStatus
from evidentia.foundation.disk import read_blocks_backwards
from evidentia.governance.decision_queries import DecisionFilter, LogPosition, decisions, runs
from evidentia.governance.log_maintenance import redact, retire
from evidentia.governance.log_scan import beginnings_of
from evidentia.governance.memory_log import MemoryLog
from evidentia.governance.run_summaries import RunFilter, newest_runs
from evidentia.provenance.decision_chain import LogPart
from evidentia.testing.determinism import RepeatableEntropy, SteppingClock

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from evidentia.contracts.decisions import PolicyDecision
    from evidentia.contracts.runs import RunSummary
    from evidentia.governance.log_scan import KeptLogs

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SETS = (policy_set(RETRIEVAL), policy_set(RETRIEVAL, GROUNDING))
STEPS = st.lists(st.tuples(st.sampled_from(["begin", "good", "bad", "old", "end"]), st.integers(0, 4), st.integers(0, 1)), max_size=60)


def _written(logs: Sequence[Any], steps: Sequence[tuple[str, int, int]]) -> None:
    """Write what some agents do at once, each a second after the step before."""
    open_runs: dict[int, RecordedRun] = {}
    for number, (what, agent, choice) in enumerate(steps):
        run = open_runs.get(agent)
        at_s = 1_000 + number * 10
        if what == "begin" or run is None:
            log = logs[agent % len(logs)]
            run = RecordedRun(log, SETS[choice], run=f"run {number}", agent=f"agent-{agent}", at_s=at_s)
            open_runs[agent] = run
        run._at_us = max(run._at_us, at_s * 1_000_000)
        if what == "end":
            run.finish(RunEnded(status=RunStatus.SUCCESS if choice else RunStatus.ERROR))
            del open_runs[agent]
        elif what != "begin":
            run.record(document(source="bad" if what == "bad" else "faq.pdf", age_days=400 if what == "old" else 3))
            run.lift_stop()


def _paged(logs: KeptLogs, rules: DecisionFilter, limit: int) -> list[PolicyDecision]:
    found: list[PolicyDecision] = []
    after: LogPosition | None = None
    while True:
        page = decisions(logs, rules, after=after, limit=limit, is_newest_first=True)
        found += page.decisions
        after = page.next
        if after is None:
            return found


def _paged_runs(logs: KeptLogs, rules: RunFilter, limit: int) -> list[RunSummary]:
    found: list[RunSummary] = []
    after: LogPosition | None = None
    while True:
        page = newest_runs(logs, rules, after=after, limit=limit)
        found += page.runs
        after = page.next
        if after is None:
            return found


def _key(decision: PolicyDecision) -> tuple[str, int, int]:
    return decision.log, decision.seq, decision.part


RULES = (
    DecisionFilter(),
    DecisionFilter(action=PolicyAction.BLOCK),
    DecisionFilter(action=PolicyAction.WARN, agent="agent-1"),
    DecisionFilter(agent="agent-2"),
    DecisionFilter(agent="nobody"),
    DecisionFilter(since=EPOCH + timedelta(seconds=1_200)),
    DecisionFilter(run_id=RunId("run 0")),
    DecisionFilter(tenant="other"),
    DecisionFilter(policy="Answers"),
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, limit=st.integers(1, 9), rules=st.sampled_from(RULES))
def test_the_newest_pages_are_the_whole_backwards(steps: list[tuple[str, int, int]], limit: int, rules: DecisionFilter) -> None:
    log = MemoryLog(entropy=RepeatableEntropy(1))
    _written([log], steps)
    whole = decisions(log, rules, limit=10_000).decisions
    newest = _paged(log, rules, limit)

    assert sorted(whole, key=_key) == sorted(newest, key=_key)
    assert [each.seq for each in newest] == sorted((each.seq for each in whole), reverse=True)


@settings(max_examples=40, deadline=None)
@given(steps=STEPS, limit=st.integers(1, 5))
def test_the_newest_runs_are_the_runs(steps: list[tuple[str, int, int]], limit: int) -> None:
    log = MemoryLog(entropy=RepeatableEntropy(1))
    _written([log], steps)

    for rules in (RunFilter(), RunFilter(agent="agent-1"), RunFilter(status=RunStatus.BLOCKED), RunFilter(status=RunStatus.ERROR)):
        whole = runs(log, agent=rules.agent, status=rules.status)
        found = _paged_runs(log, rules, limit)

        assert sorted(run.facts.run_id for run in whole) == sorted(run.facts.run_id for run in found)
        assert {run.facts.run_id: run for run in whole} == {run.facts.run_id: run for run in found}


def _logs(folder: Path, count: int, **options: Any) -> list[EmbeddedDecisionLog]:
    return [EmbeddedDecisionLog(folder, clock=SteppingClock(), entropy=RepeatableEntropy(number + 1), **options) for number in range(count)]


def _long(logs: Sequence[Any]) -> None:
    _written(
        logs, [("begin" if number % 40 < 5 else ("bad", "old", "good")[number % 3], number % 5, number % 2) for number in range(2_400)]
    )


@pytest.fixture(scope="module")
def written_by_two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedDecisionLog]:
    """Return a log that is written by two, in files of which none is long."""
    logs = _logs(tmp_path_factory.mktemp("two"), 2, max_bytes=200_000)
    _long(logs)
    for log in logs:
        log.flush()
    yield logs[0]
    for log in logs:
        log.close()


@pytest.mark.parametrize("limit", [50, 400])
@pytest.mark.parametrize("rules", RULES[:7])
def test_files_of_several_processes_are_told_by_time(written_by_two: EmbeddedDecisionLog, rules: DecisionFilter, limit: int) -> None:
    reader = written_by_two
    whole = decisions(reader, rules, limit=100_000).decisions
    newest = _paged(reader, rules, limit)

    assert sorted(whole, key=_key) == sorted(newest, key=_key)
    assert [each.at for each in newest] == sorted((each.at for each in whole), reverse=True)
    assert 3 < len(reader.parts())


def test_what_was_taken_out_or_retired_is_told_the_same_from_both_ends(tmp_path: Path) -> None:
    (log,) = _logs(tmp_path, 1, max_bytes=100_000)
    _long([log])
    log.close()
    log = _logs(tmp_path, 2)[1]
    clock = SteppingClock()
    redact(log, run_id=RunId("run 1601"), by="somebody", why="asked for", clock=clock)
    retire(log, before=EPOCH + timedelta(seconds=9_000), by="somebody", why="old", clock=clock)
    whole = decisions(log, limit=100_000).decisions
    newest = _paged(log, DecisionFilter(), 100)
    log.close()

    assert 100 < len(whole)
    assert sorted(whole, key=_key) == sorted(newest, key=_key)


def test_a_run_that_is_looked_for_by_name_is_found_with_its_tenant() -> None:
    log = MemoryLog(entropy=RepeatableEntropy(1))
    _written([log], [("begin", 0, 0), ("begin", 1, 0)])

    begun = beginnings_of(log, [RunId("run 0"), RunId("run")])

    assert {RunId("run 0"): ["default"]} == {run_id: [facts.tenant for facts in found] for run_id, found in begun.items()}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lines=st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b"")), max_size=12),
    piece=st.integers(1, 40),
    is_torn=st.booleans(),
)
def test_a_file_backwards_is_the_file(tmp_path: Path, lines: list[bytes], piece: int, *, is_torn: bool) -> None:
    content = b"".join(line + b"\n" for line in lines) + (b"torn" if is_torn else b"")
    (tmp_path / "log.000001.log").write_bytes(content)
    blocks = list(read_blocks_backwards(tmp_path / f"{LogPart('log', 1)}.log", piece_bytes=piece))

    assert content == b"".join(block for _, block in reversed(blocks))
    assert all(content[start : start + len(block)] == block for start, block in blocks)
    assert all(start == 0 or content[start - 1 : start] == b"\n" for start, _ in blocks)
    for start, _ in blocks:
        assert content[:start] == b"".join(
            block for _, block in reversed(list(read_blocks_backwards(tmp_path / f"{LogPart('log', 1)}.log", end=start, piece_bytes=piece)))
        )
