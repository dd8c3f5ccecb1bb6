"""Runs recorded by hand: the evaluator decides, and what it decided is appended, with nothing in between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evidentia.contracts.decisions import LogEntry
from evidentia.contracts.policies import PolicyBody
from evidentia.contracts.runs import PoliciesRecorded, RetrievedDocument, RunEnded, RunFacts, RunId, RunStarted
from evidentia.policy.evaluator import EDITION, PolicySet, RunEvaluator
from evidentia.policy.rules import check_policy

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evidentia.contracts.decisions import Verdict
    from evidentia.contracts.ports import DecisionLog
    from evidentia.contracts.runs import AnyCall

RETRIEVAL = PolicyBody(
    name="Documents", category="retrieval", rules={"blocked_sources": ["bad"], "max_source_age_days": 90, "action_on_stale_source": "warn"}
)
GROUNDING = PolicyBody(name="Answers", category="grounding", rules={"min_citations": 1})


def policy_set(*bodies: PolicyBody) -> PolicySet:
    """Return checked policies, compiled."""
    return PolicySet.of(check_policy(body) for body in bodies)


def document(**fields: Any) -> RetrievedDocument:
    """Return a document that passes, but for what is said."""
    return RetrievedDocument(**{"relevance_score": 0.9, "source": "faq.pdf", "collection": "kb", "age_days": 3, **fields})


class RecordedRun:
    """One run whose every call is a second after the one before."""

    def __init__(self, log: DecisionLog, policies: PolicySet, *, run: str = "r1", agent: str = "agent", at_s: int = 0, **how: Any) -> None:
        self._log = log
        self._policies = policies
        self._evaluator = RunEvaluator(policies, **how)
        self._run_id = RunId(run)
        self._at_us = at_s * 1_000_000
        self._append(PoliciesRecorded(policies=policies.policies))
        facts = RunFacts(run_id=self._run_id, agent_name=agent)
        self._append(RunStarted(facts=facts, **{"edition": EDITION, **how}), self._evaluator.begin())

    def record(self, *calls: AnyCall) -> Sequence[Verdict]:
        """Record calls, and return what was decided about the last."""
        verdicts: tuple[Verdict, ...] = ()
        for call in calls:
            verdicts = self._evaluator.record(call)
            self._append(call, verdicts, count=self._evaluator.count)
        return verdicts

    def lift_stop(self) -> None:
        """Go on as if nothing had stopped the run, as a governed run does when somebody approves."""
        self._evaluator.is_stopped = False

    def finish(self, end: RunEnded | None = None) -> None:
        """End the run."""
        made = end or RunEnded()
        self._append(made, self._evaluator.finish(made))

    def _append(self, call: AnyCall, verdicts: Iterable[Verdict] = (), *, count: int = 0) -> None:
        entry = LogEntry(
            at_us=self._at_us,
            run_id=self._run_id,
            policies=self._policies.digest,
            call=call,
            verdicts=tuple(verdicts),
            count=count,
            overhead_us=1.5,
        )
        self._log.append([entry])
        self._at_us += 1_000_000
