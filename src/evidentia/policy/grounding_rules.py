"""The rules of the category `grounding` as pure functions: from rules, scores, totals and judgements to violations.

Order at a call: scores, judge. Order at the end: citations, required grounding, unsupported claims, confidence, judge.
"""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from evidentia.contracts.decisions import DecisionStatus
from evidentia.contracts.errors import FieldProblem
from evidentia.contracts.judging import MODEL_PREFIXES, NEUTRAL_SCORE, JudgeStatus, provider_of
from evidentia.contracts.policies import ConfidenceMode, PolicyAction, ScoreEvalMode, ViolationAction
from evidentia.policy.calls import is_out_of_range
from evidentia.policy.handling import Violation
from evidentia.policy.posture import action_of, posture_of
from evidentia.policy.words import shortest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evidentia.contracts.calls import Metadata
    from evidentia.contracts.judging import Judgement
    from evidentia.contracts.policies import GroundingRules, Policy

# Asking an enumeration for a member costs more than a comparison, and these are compared at every call.
_ALLOW: Final = PolicyAction.ALLOW
_WARN: Final = PolicyAction.WARN
_BYPASSED: Final = DecisionStatus.BYPASSED

_BLOCK: Final = PolicyAction.BLOCK
_BLOCKS: Final = ViolationAction.BLOCK
_AVERAGE: Final = ScoreEvalMode.AVERAGE
_TOP_N: Final = ScoreEvalMode.TOP_N

NOTHING_RELEVANT = "No grounding scores above relevance floor — all retrieved results appear irrelevant"
NOT_CITED = "No source citations provided (grounding required)"
RESERVED = "Factual consistency check is reserved and has no effect"
AVERAGE_PLACES = 10
"""Means are rounded to so many decimals before they are compared, so that 0.7 three times is 0.7."""


class Totals(NamedTuple):
    """What all grounding entries of a run add up to."""

    citations: int = 0
    unique_citations: int = 0
    unsupported: int = 0
    last_confidence: float | None = None
    min_confidence: float | None = None


def check_grounding(rules: GroundingRules) -> Iterable[FieldProblem]:
    """Yield what the types of the rules cannot say."""
    if provider_of(rules.llm_grounding_model) is None:
        accepted = ", ".join(f"'{prefix}'" for prefix in MODEL_PREFIXES)
        yield FieldProblem("llm_grounding_model", f"a model's name begins with one of {accepted}, and goes on after it in plain text")


def judge_scores(rules: GroundingRules, scores: Sequence[float]) -> Violation | None:
    """Return what the scores of one call violate; no score violates nothing."""
    if not scores:
        return None
    floor = rules.score_relevance_floor
    kept = scores if floor is None else [score for score in scores if score >= floor]
    if not kept:
        return _nothing_relevant(rules, scores)
    mode = rules.score_eval_mode
    if mode is _AVERAGE:
        return _judge_average(rules, kept)
    if mode is _TOP_N:
        kept = heapq.nlargest(rules.score_top_n, kept)
    threshold = rules.min_grounding_score
    for score in kept:
        if score < threshold:
            return _low_score(rules, score, threshold)
    return None


def surely_passes(rules: GroundingRules) -> tuple[float, float]:
    """Return bounds that are enough: scores pass when the least is at or above the first and the greatest at or above the second."""
    is_average = rules.score_eval_mode is _AVERAGE
    rounding = 10.0**-AVERAGE_PLACES if is_average else 0.0
    return rules.min_grounding_score + rounding, rules.score_relevance_floor or -math.inf


def judge_totals(rules: GroundingRules, totals: Totals) -> list[Violation]:
    """Return what a run violates at its end, apart from the judge."""
    found: list[Violation] = []
    cited = counted_citations(rules, totals)
    if cited < rules.min_citations:
        reason = f"Citations ({cited}) below minimum ({rules.min_citations})"
        metadata: Metadata = {"citation_count": cited, "limit": rules.min_citations}
        found.append(_violation(rules, rule="min_citations", reason=reason, metadata=metadata))
    if rules.require_source_grounding and not cited:
        found.append(_violation(rules, rule="require_source_grounding", reason=NOT_CITED, metadata={"citation_count": cited}))
    limit = rules.max_unsupported_claims
    if limit is not None and totals.unsupported > limit:
        reason = f"Unsupported claims ({totals.unsupported}) exceeds max ({limit})"
        metadata = {"unsupported_count": totals.unsupported, "limit": limit}
        found.append(_violation(rules, rule="max_unsupported_claims", reason=reason, metadata=metadata))
    confidence = totals.min_confidence if rules.confidence_mode is ConfidenceMode.MIN else totals.last_confidence
    threshold = rules.abstention_threshold
    if threshold is not None and confidence is not None and confidence < threshold:
        reason = f"Output confidence ({shortest(confidence)}) below abstention threshold ({shortest(threshold)})"
        metadata = {"output_confidence": confidence, "threshold": threshold}
        violation = _violation(rules, rule="abstention_threshold", reason=reason, metadata=metadata)
        found.append(msgspec.structs.replace(violation, abstention_response=rules.abstention_response))
    return found


def judge_judgement(policy: Policy, rules: GroundingRules, judgement: Judgement | None) -> Violation | None:
    """Return what a judgement means: a violation, a recorded bypass, or None for a score that is high enough."""
    threshold = rules.llm_grounding_threshold
    status = JudgeStatus.NOT_CONFIGURED if judgement is None else judgement.status
    score = None if judgement is None else judgement.score
    if status is JudgeStatus.JUDGED and (score is None or is_out_of_range(score)):
        status = JudgeStatus.UNPARSEABLE
    metadata: dict[str, object] = {"llm_score": score, "threshold": threshold, "model": rules.llm_grounding_model}
    if status is JudgeStatus.JUDGED and score is not None:
        if score >= threshold:
            return None
        return _violation(rules, rule="llm_grounding_check", reason=_low(score, threshold), metadata=metadata)
    action = _bypass_action(policy, rules, status)
    reason = f"LLM grounding check skipped ({status.value})"
    if status is JudgeStatus.UNPARSEABLE:
        metadata["llm_score"] = NEUTRAL_SCORE
        reason = reason if action is _ALLOW else _low(NEUTRAL_SCORE, threshold)
    metadata["judge_status"] = status.value
    return Violation(rule="llm_grounding_check", action=action, reason=reason, metadata=metadata, status=_BYPASSED)


def join(rules: GroundingRules, violations: Sequence[Violation], totals: Totals) -> Violation:
    """Return the one sentence that stands for everything a run violates at its end."""
    reasons = [violation.reason for violation in violations]
    metadata: dict[str, object] = {"warnings": reasons, **citation_notes(rules, totals)}
    for violation in violations:
        if violation.rule == "llm_grounding_check":
            metadata.update(violation.metadata)
    return msgspec.structs.replace(violations[0], reason="; ".join(reasons), metadata=metadata)


def citation_notes(rules: GroundingRules, totals: Totals) -> dict[str, object]:
    """Return how many citations were counted, and how many differ where some were given twice."""
    cited = counted_citations(rules, totals)
    unique = {} if totals.unique_citations == cited else {"unique_citation_count": totals.unique_citations}
    return {"citation_count": cited, **unique}


def counted_citations(rules: GroundingRules, totals: Totals) -> int:
    """Return how many citations a policy counts."""
    return totals.unique_citations if rules.unique_citations else totals.citations


def _bypass_action(policy: Policy, rules: GroundingRules, status: JudgeStatus) -> PolicyAction:
    """Return what a check that was not made does, also where there was nothing to judge; an unreadable reply at most warns."""
    if status is JudgeStatus.UNPARSEABLE:
        return _WARN if rules.llm_grounding_threshold > NEUTRAL_SCORE else _ALLOW
    return action_of(posture_of(policy, "llm_grounding_check"))


def _judge_average(rules: GroundingRules, kept: Sequence[float]) -> Violation | None:
    mean = round(math.fsum(kept) / len(kept), AVERAGE_PLACES)
    if mean >= rules.min_grounding_score:
        return None
    return _violation(
        rules,
        rule="min_grounding_score",
        reason=f"Average grounding score ({shortest(mean)}) below threshold ({shortest(rules.min_grounding_score)})",
        metadata={"score": mean, "threshold": rules.min_grounding_score, "score_count": len(kept)},
    )


def _low_score(rules: GroundingRules, score: float, threshold: float) -> Violation:
    metadata: dict[str, object] = {"score": score, "threshold": threshold}
    if is_out_of_range(score):
        metadata["score_out_of_range"] = True
    reason = f"Grounding score ({shortest(score)}) below threshold ({shortest(threshold)})"
    return _violation(rules, rule="min_grounding_score", reason=reason, metadata=metadata)


def _nothing_relevant(rules: GroundingRules, scores: Sequence[float]) -> Violation:
    metadata: Metadata = {"score_count": len(scores), "max_score": max(scores), "floor": rules.score_relevance_floor}
    return _violation(rules, rule="score_relevance_floor", reason=NOTHING_RELEVANT, metadata=metadata)


def _low(score: float, threshold: float) -> str:
    return f"LLM grounding score ({shortest(score)}) below threshold ({shortest(threshold)})"


def _violation(rules: GroundingRules, *, rule: str, reason: str, metadata: Metadata) -> Violation:
    action = _BLOCK if rules.action_on_violation is _BLOCKS else _WARN
    return Violation(rule=rule, action=action, reason=reason, metadata=metadata)
