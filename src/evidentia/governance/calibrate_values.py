"""What the threshold of a rule is compared with, taken out of what a run recorded; exactly the values that the rule looks at."""

from __future__ import annotations

from statistics import fmean
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.judging import JudgeStatus
from evidentia.contracts.policies import GroundingRules, RetrievalRules
from evidentia.contracts.runs import GroundingEntry, RetrievedDocument, RunEnded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evidentia.contracts.policies import Policy, PolicyId
    from evidentia.contracts.runs import AnyCall

LOW_PERCENT: Final = 5
HIGH_PERCENT: Final = 95
AVERAGE_PLACES: Final = 10
"""Averages are rounded as the rule itself rounds them."""

AnyRules = RetrievalRules | GroundingRules


class Measure(NamedTuple):
    """A rule that can be calibrated: its category, which end of the values it guards, and what it looks at."""

    rule: str
    category: str
    unit: str
    """What one value is, for people."""
    is_upper: bool
    read: Callable[[AnyCall, AnyRules, PolicyId | None], Sequence[float]]
    action: str
    """The rule that says what happens on a violation."""
    is_of_run: bool = False
    """Whether the values of a run come down to one."""

    @property
    def percent(self) -> int:
        """Return the percentile at which the threshold belongs."""
        return HIGH_PERCENT if self.is_upper else LOW_PERCENT


def measure_of(rule: str) -> Measure:
    """Return how a rule is measured, or name those that can be."""
    measure = MEASURES.get(rule)
    if measure is None:
        raise InvalidFieldError("rule", f"'{rule[:80]}' has no threshold to calibrate; name one of {', '.join(sorted(MEASURES))}")
    return measure


def rules_of(measure: Measure, policy: Policy | None) -> AnyRules:
    """Return the rules beside which a threshold is read: those of the policy, or the defaults of its category."""
    kind: type[AnyRules] = RetrievalRules if measure.category == "retrieval" else GroundingRules
    if policy is None:
        return kind()
    if policy.body.category != measure.category:
        raise InvalidFieldError(
            "policy",
            f"'{policy.body.name}' is of category '{policy.body.category}', and '{measure.rule}' is a rule of '{measure.category}'",
        )
    return msgspec.convert(policy.body.rules, kind)


def of_run(values: Sequence[float], rules: AnyRules) -> float:
    """Return the output confidence that counts for a run: the last, or the lowest."""
    return min(values) if getattr(rules, "confidence_mode", "last") == "min" else values[-1]


def _relevance(call: AnyCall, rules: AnyRules, policy_id: PolicyId | None) -> Sequence[float]:
    del rules, policy_id
    return (call.relevance_score,) if isinstance(call, RetrievedDocument) else ()


def _age(call: AnyCall, rules: AnyRules, policy_id: PolicyId | None) -> Sequence[float]:
    del rules, policy_id
    return (call.age_days,) if isinstance(call, RetrievedDocument) and call.age_days is not None else ()


def _grounding(call: AnyCall, rules: AnyRules, policy_id: PolicyId | None) -> Sequence[float]:
    """Return the scores that are held against the threshold: above the floor, and averaged or cut as the mode says."""
    del policy_id
    if not isinstance(call, GroundingEntry) or not isinstance(rules, GroundingRules):
        return ()
    floor = rules.score_relevance_floor
    kept = [score for score in call.grounding_scores if floor is None or score >= floor]
    if rules.score_eval_mode == "average":
        return (round(fmean(kept), AVERAGE_PLACES),) if kept else ()
    return sorted(kept, reverse=True)[: rules.score_top_n] if rules.score_eval_mode == "top_n" else kept


def _best_score(call: AnyCall, rules: AnyRules, policy_id: PolicyId | None) -> Sequence[float]:
    """Return the best score of a call: a floor is violated when even that lies below it."""
    del rules, policy_id
    return (max(call.grounding_scores),) if isinstance(call, GroundingEntry) and call.grounding_scores else ()


def _confidence(call: AnyCall, rules: AnyRules, policy_id: PolicyId | None) -> Sequence[float]:
    del rules, policy_id
    return (call.output_confidence,) if isinstance(call, GroundingEntry) and call.output_confidence is not None else ()


def _judged(call: AnyCall, rules: AnyRules, policy_id: PolicyId | None) -> Sequence[float]:
    """Return what judges said: of one policy where one is named, else of all."""
    del rules
    if not isinstance(call, GroundingEntry | RunEnded):
        return ()
    asked = sorted(call.judgements.items())
    return [
        judgement.score
        for policy, judgement in asked
        if (policy_id is None or policy == policy_id) and judgement.status is JudgeStatus.JUDGED and judgement.score is not None
    ]


_ALL: Final = (
    Measure("min_relevance_score", "retrieval", "document", is_upper=False, read=_relevance, action="action_on_low_relevance"),
    Measure("max_source_age_days", "retrieval", "document", is_upper=True, read=_age, action="action_on_stale_source"),
    Measure("min_grounding_score", "grounding", "score", is_upper=False, read=_grounding, action="action_on_violation"),
    Measure("score_relevance_floor", "grounding", "call", is_upper=False, read=_best_score, action="action_on_violation"),
    Measure("llm_grounding_threshold", "grounding", "judgement", is_upper=False, read=_judged, action="action_on_violation"),
    Measure("abstention_threshold", "grounding", "run", is_upper=False, read=_confidence, action="action_on_violation", is_of_run=True),
)
MEASURES: Final[Mapping[str, Measure]] = MappingProxyType({measure.rule: measure for measure in _ALL})
