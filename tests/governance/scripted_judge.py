"""A judge that says what it is told, and what is governed in memory beside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evidentia.contracts.judging import Judgement, JudgeStatus
from evidentia.contracts.policies import PolicyBody
from evidentia.contracts.runs import GroundingEntry, RunEnded, RunFacts, RunId, RunStatus
from evidentia.governance.governor import LocalGovernor
from evidentia.governance.memory_log import MemoryLog
from evidentia.wiring.system import SystemClock, SystemEntropy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evidentia.contracts.access import Principal
    from evidentia.contracts.judging import JudgeRequest
    from evidentia.contracts.ports import Governor


@dataclass
class ScriptedJudge:
    """Implements `GroundingJudge` and `SourceTexts`: it says what it was told, and has the text of every citation but `gone`."""

    script: Mapping[str, Judgement] = field(default_factory=dict)
    asked: int = 0

    def judge(self, request: JudgeRequest, *, budget_ms: int) -> Judgement:
        """Return what stands in the script for the model."""
        assert budget_ms > 0
        self.asked += 1
        missing = Judgement(status=JudgeStatus.NOT_CONFIGURED, model=request.model)
        return self.script.get(request.model, missing)

    def text_of(self, citation: str, *, principal: Principal) -> str | None:
        """Return a text for the citation."""
        assert principal.principal_id
        return None if citation == "gone" else f"the text of {citation}"


@dataclass
class JudgedBase:
    """An open base in memory whose judge is scripted."""

    judge: ScriptedJudge

    def governor(self, *, durable: bool = False) -> Governor:
        """Return who governs; a log in memory is never durable."""
        assert not durable
        clock, entropy = SystemClock(), SystemEntropy()
        return LocalGovernor(None, MemoryLog(entropy=entropy), clock=clock, entropy=entropy, judge=self.judge, texts=self.judge)


def recorded_runs(scores: Iterable[float], *, failed: int) -> MemoryLog:
    """Return the log of runs that gave one score each and ended well, and of as many that gave zero and failed."""
    entropy = SystemEntropy()
    log = MemoryLog(entropy=entropy)
    governor = LocalGovernor(None, log, clock=SystemClock(), entropy=entropy)
    body = PolicyBody(name="P", category="grounding", rules={"min_citations": 0})
    endings = [*((score, RunStatus.SUCCESS) for score in scores), *((0.0, RunStatus.ERROR) for _ in range(failed))]
    for number, (score, status) in enumerate(endings):
        run = governor.start(RunFacts(run_id=RunId(f"r-{number}"), agent_name="rag-agent"), policies=[body])
        run.record(GroundingEntry(grounding_scores=(score,)))
        run.finish(RunEnded(status=status))
    return log
