"""Traffic that tests of shadow and calibration share: runs under a governor, as its log tells them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from evidentia.contracts.runs import RetrievedDocument, RunEnded, RunFacts, RunId, RunStarted, RunStatus
from evidentia.governance.governor import LocalGovernor
from evidentia.governance.memory_log import MemoryLog
from evidentia.policy.rules import check_policy
from evidentia.testing.determinism import RepeatableEntropy, SteppingClock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.contracts.decisions import LogRecord
    from evidentia.contracts.policies import Policy, PolicyBody
    from evidentia.contracts.runs import AnyCall

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


class Traffic:
    """Records runs and gives them back as a log has them."""

    def __init__(self) -> None:
        clock, entropy = SteppingClock(BEGIN), RepeatableEntropy(7)
        self.log = MemoryLog(entropy=entropy)
        self.governor = LocalGovernor(None, self.log, clock=clock, entropy=entropy)
        self._runs = 0

    def run(
        self,
        calls: Sequence[AnyCall],
        *,
        policies: Sequence[PolicyBody] = (),
        agent: str = "agent",
        status: RunStatus | None = RunStatus.SUCCESS,
        is_enforced: bool = True,
    ) -> RunId:
        """Record a run that goes on until a call is stopped, as an agent does that lets the error pass; None leaves it open."""
        self._runs += 1
        run_id = RunId(f"r{self._runs:04}")
        governed = self.governor.start(RunFacts(run_id=run_id, agent_name=agent), policies=policies, is_enforced=is_enforced)
        for call in calls:
            if any(verdict.stops for verdict in governed.record(call)):
                governed.finish(RunEnded(status=RunStatus.BLOCKED))
                return run_id
        if status is not None:
            governed.finish(RunEnded(status=status))
        return run_id

    def records(self) -> list[LogRecord]:
        return list(self.log.records())


def document(score: float = 0.9, *, source: str = "manual", collection: str = "kb", age: float | None = 0) -> RetrievedDocument:
    return RetrievedDocument(relevance_score=score, source=source, collection=collection, age_days=age)


def body(name: str = "guard", *, category: str = "retrieval", enforcement: str = "enforce", **rules: Any) -> PolicyBody:
    return policy(name, category=category, enforcement=enforcement, **rules).body


def policy(name: str = "guard", *, category: str = "retrieval", enforcement: str = "enforce", **rules: Any) -> Policy:
    return check_policy({"name": name, "category": category, "rules": rules, "enforcement": enforcement})


def test_traffic_ends_where_a_call_is_stopped() -> None:
    traffic = Traffic()
    traffic.run([document(), document(age=400), document()], policies=[body()])
    calls = [record.entry.call for record in traffic.records()]

    assert [True, False] == [isinstance(calls[1], RunStarted), isinstance(calls[0], RunStarted)]
    assert RunEnded(status=RunStatus.BLOCKED) == calls[-1]
    assert 5 == len(calls)
