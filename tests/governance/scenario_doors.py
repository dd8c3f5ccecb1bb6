"""Ways to run a case: the oracle, the evaluator alone, and the doors that an agent has.

Every way plays the whole case and tells, call by call, what was decided and whether it raised.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import governance_oracle
import msgspec

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.judging import Judgement, JudgeStatus
from evidentia.contracts.runs import (
    BatchClosed,
    BatchId,
    GroundingEntry,
    LlmCall,
    RetrievedDocument,
    RunEnded,
    RunFacts,
    RunId,
    RunStatus,
    StepCall,
    ToolCall,
)
from evidentia.policy.evaluator import PolicySet, RunEvaluator
from evidentia.policy.rules import check_policy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scenario_cases import Call, Case

    from evidentia.contracts.decisions import Evaluation, JudgeAsk, PolicyDecision, Verdict
    from evidentia.contracts.policies import PolicyId
    from evidentia.contracts.protocol import RunCall

Fields = dict[str, Any]  # JSON: a decision
OUTSIDE = ("open", "shut", "result", "change")
"""What an agent does besides recording."""


@dataclass(kw_only=True)
class Heard:
    """What came of one call."""

    decisions: list[Fields] = field(default_factory=list)
    raised: Fields | None = None
    """The decision that the error carries; it is empty where a way does not raise but tells that it would."""
    message: str = ""
    """What the error says, where one was raised."""
    refused: str = ""


@dataclass(kw_only=True)
class Played:
    """What came of a run; `tells` names what the way knows of the whole."""

    begin: list[Fields]
    calls: list[Heard]
    end: Heard
    status: str
    feedback: list[str] = field(default_factory=list)
    abstention: str | None = None
    result: Any = None
    asked: int = 0
    should_stop: bool = False
    parents: list[str | None] = field(default_factory=list)
    tells: tuple[str, ...] = ("status",)


def play_oracle(case: Case) -> Played:
    """Return what the table says."""
    policies, facts = list(case.policies), {"agent_name": case.agent}
    begun = governance_oracle.begin(policies, facts, is_enforced=case.is_enforced)
    trace: list[Fields] = []
    calls = []
    for call in _reached(case):
        if call.refused or call.said["kind"] in OUTSIDE:
            calls.append(Heard(refused=call.refused))
            continue
        trace.append(call.said)
        calls.append(_told(governance_oracle.decide(policies, facts, trace, is_enforced=case.is_enforced)))
    end = _told(governance_oracle.decide(policies, facts, [*trace, case.end.said], is_enforced=case.is_enforced))
    return Played(begin=[_named(each) for each in begun], calls=calls, end=end, status=_status(case, [*calls, end]))


def play_evaluator(case: Case) -> Played:
    """Return what the evaluator says, with nothing around it."""
    checked = [check_policy(body) for body in case.policies]
    facts = RunFacts(run_id=RunId("r-1"), agent_name=case.agent)
    evaluator = RunEvaluator(PolicySet.of(checked).for_run(facts), is_enforced=case.is_enforced)
    ids = {policy.body.name: policy.policy_id for policy in checked}
    begun = [fields_of(verdict) for verdict in evaluator.begin()]
    calls, asked = [], 0
    for call in _reached(case):
        if call.said["kind"] in OUTSIDE:
            calls.append(Heard())
            continue
        try:
            recorded = recorded_call(call.said)
            heard, asks = decided(evaluator, recorded, call.said.get("judgements", {}), ids)
        except InvalidFieldError as error:
            calls.append(Heard(refused=error.field))
            continue
        asked += len(asks)
        calls.append(heard)
    heard, asks = decided(evaluator, recorded_call(case.end.said), case.end.said["judgements"], ids)
    status = _status(case, [*calls, heard])
    return Played(begin=begun, calls=calls, end=heard, status=status, asked=asked + len(asks), tells=("status", "asked"))


def decided(
    evaluator: RunEvaluator, call: RunCall, judgements: Mapping[str, Fields], ids: Mapping[str, PolicyId]
) -> tuple[Heard, Sequence[JudgeAsk]]:
    """Return what the evaluator says of a call, passes included, after those who are asked have judged."""
    asks = evaluator.asks(call)
    if asks and isinstance(call, GroundingEntry | RunEnded):
        names = {policy_id: name for name, policy_id in ids.items()}
        told = {ask.policy_id: judgement_of(judgements.get(names[ask.policy_id]), ask.model) for ask in asks}
        call = msgspec.structs.replace(call, judgements={each: told for each, told in told.items() if told is not None})
    verdicts = evaluator.finish(call) if isinstance(call, RunEnded) else evaluator.record(call)
    categories = {verdict.decisive.category for verdict in verdicts}
    allowed = [each for each in evaluator.passed(call, count=evaluator.count) if each.decisive.category not in categories]
    decisions = [fields_of(verdict) for verdict in [*verdicts, *allowed]]
    raised = next((each for each, verdict in zip(decisions, verdicts, strict=False) if verdict.stops), None)
    return Heard(decisions=decisions, raised=raised), asks


def judgement_of(told: Mapping[str, Any] | None, model: str) -> Judgement | None:
    """Return a judgement as a case gives it."""
    return None if told is None else Judgement(status=JudgeStatus(told["status"]), score=told["score"], model=model)


def recorded_call(said: Mapping[str, Any]) -> RunCall:
    """Return a call as it is recorded."""
    kind = said["kind"]
    if kind == "retrieval":
        return RetrievedDocument(
            relevance_score=said["score"],
            source=said["source"],
            collection=said["collection"],
            age_days=said["age"],
            batch=None if said["batch"] is None else BatchId(said["batch"]),
        )
    if kind == "grounding":
        return GroundingEntry(
            grounding_scores=tuple(said["scores"]),
            citations=tuple(said["citations"]),
            unsupported_claims=tuple(said["unsupported"]),
            output_confidence=said["confidence"],
        )
    if kind == "end":
        return RunEnded(status=RunStatus(said["status"]))
    if kind == "batch":
        return BatchClosed(batch=None if said["batch"] is None else BatchId(said["batch"]))
    if kind == "tool":
        return ToolCall(name=said["name"], is_retrieval=said["is_retrieval"])
    return LlmCall(model="some-model") if kind == "llm" else StepCall(name=said["name"])


def fields_of(verdict: Verdict) -> Fields:
    """Return a verdict as the fields that a case can name."""
    decisive = _evaluation(verdict.decisive)
    return decisive | {
        "phase": verdict.phase.value,
        "category": verdict.decisive.category,
        "is_enforced": verdict.is_enforced,
        "abstention_response": verdict.abstention_response,
        "evaluations": [_evaluation(each) for each in verdict.evaluations],
    }


def decision_fields(decision: PolicyDecision) -> Fields:
    """Return a decision as the fields that a case can name."""
    return {
        "policy_name": decision.policy_name,
        "rule": decision.rule,
        "action": decision.action.value,
        "reason": decision.reason,
        "metadata": msgspec.to_builtins(decision.metadata),
        "status": decision.status.value,
        "phase": decision.phase.value,
        "category": decision.category,
        "is_enforced": decision.is_enforced,
        "abstention_response": decision.abstention_response,
        "evaluations": [_evaluation(each) for each in decision.evaluations],
        "inputs": msgspec.to_builtins(decision.inputs),
    }


def _evaluation(evaluation: Evaluation) -> Fields:
    return {
        "policy_name": evaluation.policy_name,
        "rule": evaluation.rule,
        "action": evaluation.action.value,
        "reason": evaluation.reason,
        "metadata": msgspec.to_builtins(evaluation.metadata),
        "status": evaluation.status.value,
    }


def _reached(case: Case) -> list[Call]:
    return [call for call in case.calls if call.is_reached]


def _told(verdicts: Sequence[Fields]) -> Heard:
    named = [_named(each) for each in verdicts]
    raised = next((shown for shown, verdict in zip(named, verdicts, strict=True) if governance_oracle.stops(verdict)), None)
    return Heard(decisions=named, raised=raised)


def _named(verdict: Mapping[str, Any]) -> Fields:
    """Return what the oracle says under the names of a decision."""
    renamed = {("policy_name" if name == "policy" else name): value for name, value in verdict.items()}
    if "evaluations" in renamed:
        renamed["evaluations"] = [_named(each) for each in renamed["evaluations"]]
    return renamed


def _status(case: Case, heard: Sequence[Heard]) -> str:
    if case.fails:
        return "error"
    return "blocked" if any(each.raised is not None for each in heard) else "success"
