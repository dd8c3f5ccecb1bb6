"""From records to decisions: a passing call is expanded to what each policy said, through the evaluator that let it pass."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.decisions import DecisionStatus, Evaluation, LogRecord, PolicyDecision, Verdict
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.policies import PolicyAction, PolicyId, Posture
from evidentia.contracts.runs import AnyCall, CheckBypassed, Phase, PoliciesRecorded, RunEnded, RunFacts, RunId, RunStarted
from evidentia.policy.evaluator import PolicySet, RunEvaluator
from evidentia.provenance.decision_lines import NO_POLICIES, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from evidentia.contracts.ids import Sha256
    from evidentia.contracts.protocol import Metadata

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_BYPASS_ACTIONS: Final[Mapping[Posture, PolicyAction]] = {
    Posture.OPEN: PolicyAction.ALLOW,
    Posture.DEGRADE: PolicyAction.WARN,
    Posture.CLOSED: PolicyAction.BLOCK,
}


def expand(records: Iterable[LogRecord]) -> Iterator[PolicyDecision]:
    """Yield the decisions of records in their order; policies and the beginning of a run come before what is decided under them."""
    expander = Expander()
    for record in records:
        yield from expander.expand(record)


def moment(at_us: int) -> datetime:
    """Return the time of a record."""
    return _EPOCH + timedelta(microseconds=at_us)


def micros(when: datetime, *, field: str) -> int:
    """Return a time as records have it, exactly; one without a time zone could be any of many, and is refused."""
    if when.tzinfo is None:
        raise InvalidFieldError(field, "the time has no time zone; give one, such as UTC")
    return (when - _EPOCH) // timedelta(microseconds=1)


class Expander:
    """Knows the policies and the open runs of the records so far. Not thread safe; forgets a run when it ends."""

    def __init__(self) -> None:
        self._sets: dict[Sha256, PolicySet] = {}
        self._evaluators: dict[tuple[Sha256, bool], RunEvaluator] = {}
        self._runs: dict[RunId, RunStarted] = {}

    def expand(self, record: LogRecord) -> tuple[PolicyDecision, ...]:
        """Return the decisions of one record."""
        entry = record.entry
        self.learn(record)
        facts = self.facts(entry.run_id)
        inputs: Metadata = {} if record.is_redacted else inputs_of(entry.call)
        made = tuple(
            _decision(record, verdict, part=part, facts=facts, inputs=inputs) for part, verdict in enumerate(self._verdicts(record))
        )
        if isinstance(entry.call, RunEnded):
            self._runs.pop(entry.run_id, None)
        return made

    def learn(self, record: LogRecord) -> None:
        """Take in what later records need."""
        call = record.entry.call
        if isinstance(call, PoliciesRecorded) and not record.is_redacted and record.entry.policies not in self._sets:
            self._sets[record.entry.policies] = PolicySet.of(call.policies)
        elif isinstance(call, RunStarted):
            self._runs[record.entry.run_id] = call

    def forget(self, run_id: RunId) -> None:
        """Treat a run as one whose beginning is not known."""
        self._runs.pop(run_id, None)

    def facts(self, run_id: RunId) -> RunFacts:
        """Return who runs; with no name when the beginning of the run is not known."""
        started = self._runs.get(run_id)
        return RunFacts(run_id=run_id, agent_name="", tenant="") if started is None else started.facts

    def verdicts(self, record: LogRecord) -> tuple[Verdict, ...]:
        """Return the verdicts of a record of which `learn` was told what came before it."""
        return self._verdicts(record)

    def knows(self, policies: Sha256) -> bool:
        """Tell whether policies were learned; under others nothing can be said of a call that passed."""
        return policies in self._sets

    def is_enforced(self, run_id: RunId) -> bool:
        """Tell whether a run is enforced; one whose beginning is not known is."""
        started = self._runs.get(run_id)
        return started is None or started.is_enforced

    def _verdicts(self, record: LogRecord) -> tuple[Verdict, ...]:
        entry = record.entry
        if entry.verdicts:
            return tuple(self._named(verdict, entry.policies) for verdict in entry.verdicts) if record.is_redacted else entry.verdicts
        if isinstance(entry.call, CheckBypassed):
            return (bypass_decision(entry.call, is_redacted=record.is_redacted),)
        if isinstance(entry.call, RunStarted | RunEnded):
            return ()
        evaluator = self._evaluator(entry.policies, entry.run_id)
        passed = () if evaluator is None else evaluator.passed(entry.call, count=entry.count)
        return tuple(_without_inputs(verdict) for verdict in passed) if record.is_redacted else passed

    def _evaluator(self, digest: Sha256, run_id: RunId) -> RunEvaluator | None:
        policies, started = self._sets.get(digest), self._runs.get(run_id)
        if policies is None:
            return None
        key = (digest, started is None or started.is_enforced)
        if key not in self._evaluators:
            self._evaluators[key] = RunEvaluator(policies, is_enforced=key[1])
        return self._evaluators[key]

    def _named(self, verdict: Verdict, digest: Sha256) -> Verdict:
        """Return the verdict of a redacted record with the name of its policy, which is in the log elsewhere."""
        known = self._sets.get(digest)
        names = {} if known is None else {policy.policy_id: policy.body.name for policy in known.policies}
        said = msgspec.structs.replace(verdict.decisive, policy_name=names.get(verdict.decisive.policy_id, ""))
        return msgspec.structs.replace(verdict, decisive=said, evaluations=(said,))


def inputs_of(call: AnyCall) -> Metadata:
    """Return a call as it was recorded, as JSON has it, without its kind."""
    fields: dict[str, object] = msgspec.json.decode(msgspec.json.encode(call))
    fields.pop("kind", None)
    return fields


def withheld(decision: PolicyDecision) -> PolicyDecision:
    """Return a decision without its inputs and what was said of them, as if its record had been redacted."""
    evaluations = tuple(msgspec.structs.replace(each, reason="", metadata={}) for each in decision.evaluations)
    return msgspec.structs.replace(
        decision, reason="", metadata={}, inputs={}, evaluations=evaluations, abstention_response=None, is_redacted=True
    )


def _without_inputs(verdict: Verdict) -> Verdict:
    """Leave out what an expansion would say about a document that was taken out."""
    decisive, *evaluations = [msgspec.structs.replace(each, metadata={}) for each in (verdict.decisive, *verdict.evaluations)]
    return msgspec.structs.replace(verdict, decisive=decisive, evaluations=tuple(evaluations))


def bypass_decision(call: CheckBypassed, *, is_redacted: bool) -> Verdict:
    """Return what a bypass that was recorded without a verdict stands for."""
    said = Evaluation(
        policy_id=PolicyId(""),
        policy_name="",
        digest=NO_POLICIES,
        category="",
        rule=call.what,
        action=_BYPASS_ACTIONS[call.posture],
        reason="" if is_redacted else f"Check bypassed: {call.what} ({call.problem})",
        status=DecisionStatus.BYPASSED,
    )
    return Verdict(phase=Phase.MID_EXECUTION, decisive=said, evaluations=(said,), is_enforced=call.posture is Posture.CLOSED)


def _decision(record: LogRecord, verdict: Verdict, *, part: int, facts: RunFacts, inputs: Metadata) -> PolicyDecision:
    entry, said = record.entry, verdict.decisive
    return PolicyDecision(
        seq=record.seq,
        part=part,
        log=record.log,
        previous=record.previous,
        hash=record.hash,
        at=moment(entry.at_us),
        run_id=entry.run_id,
        agent_name=facts.agent_name,
        tenant=facts.tenant,
        phase=verdict.phase,
        kind=kind_of(entry.call),
        policy_id=said.policy_id,
        policy_name=said.policy_name,
        policy_version=said.version,
        policy_digest=said.digest,
        policies=entry.policies,
        category=said.category,
        rule=said.rule,
        action=said.action,
        reason=said.reason,
        metadata=said.metadata,
        inputs=inputs,
        evaluations=verdict.evaluations,
        status=said.status,
        is_enforced=verdict.is_enforced,
        abstention_response=verdict.abstention_response,
        overhead_us=entry.overhead_us,
        is_redacted=record.is_redacted,
    )
