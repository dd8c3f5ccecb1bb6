"""Parts that tests of runs share: a governor in memory, and doubles of what lies outside."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from evidentia.contracts.errors import BaseFullError
from evidentia.contracts.judging import Judgement, JudgeStatus
from evidentia.contracts.policies import PolicyBody
from evidentia.contracts.runs import RetrievedDocument, RunFacts, RunId
from evidentia.governance.governor import LocalGovernor
from evidentia.governance.memory_log import MemoryLog
from evidentia.testing.determinism import RepeatableEntropy, SteppingClock
from memory_policies import MemoryPolicies

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evidentia.contracts.access import Principal
    from evidentia.contracts.decisions import LogEntry, LogRecord
    from evidentia.contracts.judging import JudgeRequest

FACTS = RunFacts(run_id=RunId("r-1"), agent_name="rag-agent")


def body(name: str = "Guard", category: str = "retrieval", **rules: Any) -> PolicyBody:
    """Return a policy with some rules."""
    return PolicyBody(name=name, category=category, rules=rules)


def document(**fields: Any) -> RetrievedDocument:
    """Return a document that passes the defaults, but for what is said."""
    return RetrievedDocument(**{"relevance_score": 0.9, "source": "faq.pdf", "collection": "kb", "age_days": 3, **fields})


def new_log() -> MemoryLog:
    """Return an empty log."""
    return MemoryLog(entropy=RepeatableEntropy())


def new_store() -> MemoryPolicies:
    """Return an empty store."""
    return MemoryPolicies(clock=SteppingClock())


def governor(store: MemoryPolicies | None = None, log: Any = None, **parts: Any) -> LocalGovernor:
    """Return a governor in memory."""
    return LocalGovernor(store, log or new_log(), clock=SteppingClock(), entropy=RepeatableEntropy(), **parts)


def records_of(log: MemoryLog) -> list[LogRecord]:
    """Return everything in a log."""
    return list(log.records())


class SayingJudge:
    """A judge that says one thing, and keeps what it was asked."""

    def __init__(self, score: float | None = 0.9, *, status: JudgeStatus = JudgeStatus.JUDGED) -> None:
        self.said = (status, score)
        self.asked: list[JudgeRequest] = []

    def judge(self, request: JudgeRequest, *, budget_ms: int) -> Judgement:
        """Say it."""
        assert budget_ms > 0
        self.asked.append(request)
        return Judgement(status=self.said[0], score=self.said[1], model=request.model)


class WaitingJudge(SayingJudge):
    """A judge that says when it is asked, and waits to be let go."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked = threading.Event()
        self.may_answer = threading.Event()

    def judge(self, request: JudgeRequest, *, budget_ms: int) -> Judgement:
        """Wait, then say it."""
        self.is_asked.set()
        assert self.may_answer.wait(10)
        return super().judge(request, budget_ms=budget_ms)


class KnownTexts:
    """Texts by their citations."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def text_of(self, citation: str, *, principal: Principal) -> str | None:
        """Return the text, whoever asks."""
        assert principal.principal_id
        return self._texts.get(citation)


class FullLog(MemoryLog):
    """A log that takes nothing while it is full."""

    is_full = False

    def append(self, entries: Sequence[LogEntry]) -> None:
        """Take entries, or say that there is no room."""
        if self.is_full:
            raise BaseFullError("decisions")
        super().append(entries)

    def append_now(self, entries: Sequence[LogEntry]) -> Sequence[LogRecord]:
        """Take entries, or say that there is no room."""
        if self.is_full:
            raise BaseFullError("decisions")
        return super().append_now(entries)
