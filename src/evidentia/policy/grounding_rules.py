"""The rules of the category `grounding` as pure functions: from rules, scores, totals and judgements to violations.

Order at a call: scores, judge. Order at the end: citations, required grounding, unsupported claims, confidence, judge.
"""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from evidentia.contracts.decisions import DecisionStatus, JudgeAsk
from evidentia.contracts.errors import FieldProblem
from evidentia.contracts.judging import MODEL_PREFIXES, NEUTRAL_SCORE, Judgement, JudgeStatus, provider_of
from evidentia.contracts.policies import ConfidenceMode, GroundingRules, JudgePhase, PolicyAction, ScoreEvalMode, ViolationAction
from evidentia.contracts.runs import GroundingEntry, Phase, RunEnded
from evidentia.policy.handlers import Category, CategoryOutcome, TypedPolicy, Violation, check_call, is_out_of_range, stored
from evidentia.policy.posture import action_of, posture_of
from evidentia.policy.rule_checks import shortest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from evidentia.contracts.policies import Policy, PolicyId
    from evidentia.contracts.protocol import Metadata, RunCall


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


# --- grounding run ---
# Follows a run for the policies of the category `grounding`.
#
# As with retrieval, bounds of all policies are merged: scores that are surely high enough cost the same for one policy and for many.

_TITLE: Final = "Grounding"


class CompiledGrounding:
    """The rules of every policy, the bounds that are enough for all, and who asks a judge when."""

    listens_to: Final = (GroundingEntry,)

    def __init__(self, policies: Sequence[TypedPolicy]) -> None:
        self.policies = tuple(policies)
        self._places = _by_rules(policies)
        bounds = [surely_passes(rules) for rules in self._places]
        self.enough = max(least for least, _ in bounds)
        self.relevant = max(greatest for _, greatest in bounds)
        self._mid_asks = self._asks_of(JudgePhase.MID_EXECUTION)
        self._end_asks = self._asks_of(JudgePhase.AFTER_WORKFLOW)
        self.mid_judged = self._judged(self._mid_asks)
        self.end_judged = self._judged(self._end_asks)
        self._only_mid_judged = [place for place in self.mid_judged if place not in self.end_judged]
        self._unasked = {ask.policy_id: Judgement(status=JudgeStatus.NOTHING_TO_JUDGE, model=ask.model) for ask in self._mid_asks}

    def start(self) -> GroundingRun:
        """Return what follows a new run."""
        return GroundingRun(self)

    def begin(self) -> CategoryOutcome:
        """Return what is said before anything was recorded, with a notice where a rule has no effect."""
        notice = Violation(rule="factual_consistency_check", action=PolicyAction.ALLOW, reason=RESERVED, status=DecisionStatus.BYPASSED)
        return stored(_TITLE, notices={place: [notice] for place, each in enumerate(self.policies) if each.rules.factual_consistency_check})

    def asks(self, call: RunCall) -> Sequence[JudgeAsk]:
        """Return what is wanted of a judge at a grounding entry, or at the end."""
        if isinstance(call, GroundingEntry):
            return self._mid_asks
        return self._end_asks if isinstance(call, RunEnded) else ()

    def passed(self, call: RunCall, *, count: int) -> CategoryOutcome | None:
        """Return what an entry that passed stands for."""
        return self.entry_outcome(call, {}, count=count) if isinstance(call, GroundingEntry) else None

    def entry_outcome(self, entry: GroundingEntry, found: Mapping[int, Sequence[Violation]], *, count: int) -> CategoryOutcome:
        """Return what is said of an entry, with the scores of judges that let it pass."""
        metadata: dict[str, object] = {"score_count": count}
        if any(is_out_of_range(score) for score in entry.grounding_scores):
            metadata["score_out_of_range"] = True
        reason = f"Grounding scores within policy ({count} scores)"
        since = {place: (f"{reason}; {said}", {**metadata, **told}) for place, said, told in self._met(self.mid_judged, entry.judgements)}
        return CategoryOutcome(phase=Phase.MID_EXECUTION, found=found, reason=reason, metadata=metadata, since=since)

    def judge_entry(self, entry: GroundingEntry, *, scores_pass: bool) -> dict[int, Sequence[Violation]]:
        """Return what each policy says of an entry, by its position."""
        found: dict[int, Sequence[Violation]] = {}
        if not scores_pass:
            for rules, places in self._places.items():
                if (violation := judge_scores(rules, entry.grounding_scores)) is not None:
                    violations = (violation,)
                    for place in places:
                        found[place] = violations
        for place, judged in self._judgements(self.mid_judged, entry.judgements).items():
            found[place] = (*found.get(place, ()), judged)
        return found

    def judge_end(self, end: RunEnded, totals: Totals, *, is_unjudged: bool) -> CategoryOutcome:
        """Return what each policy says of a run as a whole; a judge of entries who had none to judge was bypassed."""
        judgements = self._judgements(self.end_judged, end.judgements)
        if is_unjudged:
            judgements |= self._judgements(self._only_mid_judged, self._unasked)
        found: dict[int, Sequence[Violation]] = {}
        joined: dict[int, Violation] = {}
        for place, (_, rules) in enumerate(self.policies):
            violations = judge_totals(rules, totals)
            judged = [judgements[place]] if place in judgements else []
            counted = [*violations, *(each for each in judged if each.status is not DecisionStatus.BYPASSED)]
            if counted:
                joined[place] = join(rules, counted, totals)
            if violations or judged:
                found[place] = [*violations, *judged]
        return CategoryOutcome(
            phase=Phase.AFTER_WORKFLOW,
            found=found,
            reason=_audit_passed(self.policies[0].rules, totals),
            metadata=citation_notes(self.policies[0].rules, totals),
            joined=joined,
            own=self._own_counts(totals),
            since={
                place: (f"{_audit_passed(rules, totals)}; {said}", {**citation_notes(rules, totals), **told})
                for place, said, told in self._met(self.end_judged, end.judgements)
                for rules in (self.policies[place].rules,)
            },
        )

    def _own_counts(self, totals: Totals) -> dict[int, tuple[str, Metadata]]:
        """Return what policies that count citations otherwise than the first say of a run that passed."""
        if totals.citations == totals.unique_citations:
            return {}
        return {place: (_audit_passed(each.rules, totals), citation_notes(each.rules, totals)) for place, each in enumerate(self.policies)}

    def _judgements(self, places: Sequence[int], judgements: Mapping[PolicyId, Judgement]) -> dict[int, Violation]:
        found: dict[int, Violation] = {}
        for place in places:
            policy, rules = self.policies[place]
            if (judged := judge_judgement(policy, rules, judgements.get(policy.policy_id))) is not None:
                found[place] = judged
        return found

    def _met(self, places: Sequence[int], judgements: Mapping[PolicyId, Judgement]) -> Iterator[tuple[int, str, Metadata]]:
        """Yield what is told of each judge whose score is high enough."""
        for place in places:
            policy, rules = self.policies[place]
            judgement = judgements.get(policy.policy_id)
            if judgement is not None and judge_judgement(policy, rules, judgement) is None:
                score, threshold = judgement.score or 0.0, rules.llm_grounding_threshold
                said = f"LLM grounding score ({shortest(score)}) meets threshold ({shortest(threshold)})"
                yield place, said, {"llm_score": judgement.score, "threshold": threshold, "model": rules.llm_grounding_model}

    def _asks_of(self, phase: JudgePhase) -> tuple[JudgeAsk, ...]:
        return tuple(
            JudgeAsk(
                policy_id=policy.policy_id,
                model=rules.llm_grounding_model,
                criteria=rules.llm_grounding_criteria,
                threshold=rules.llm_grounding_threshold,
            )
            for policy, rules in self.policies
            if rules.llm_grounding_check and rules.llm_grounding_phase in {phase, JudgePhase.BOTH}
        )

    def _judged(self, asks: Sequence[JudgeAsk]) -> tuple[int, ...]:
        asking = {ask.policy_id for ask in asks}
        return tuple(place for place, each in enumerate(self.policies) if each.policy.policy_id in asking)


class GroundingRun:
    """Adds up the grounding entries of a run and decides about each. Cost per call does not grow with the run."""

    __slots__ = ("_citations", "_compiled", "_entries", "_last", "_least", "_seen", "_unsupported", "count")

    def __init__(self, compiled: CompiledGrounding) -> None:
        self._compiled = compiled
        self._citations = 0
        self._entries = 0
        self._seen: set[str] = set()
        self._unsupported = 0
        self._last: float | None = None
        self._least: float | None = None
        self.count = 0

    def record(self, call: RunCall) -> CategoryOutcome | None:
        """Take a grounding entry: its scores and judgements are judged now, the rest at the end."""
        if not isinstance(call, GroundingEntry):
            return None
        scores = call.grounding_scores
        compiled = self._compiled
        try:
            # A sum of numbers that are finite shows in one step that none is NaN, which would compare with nothing.
            scores_pass = not scores or (math.isfinite(sum(scores)) and min(scores) >= compiled.enough and max(scores) >= compiled.relevant)
        except TypeError:
            check_call(call)
            raise
        if not scores_pass or call.output_confidence is not None:
            check_call(call)
        self._add(call)
        if scores_pass and not compiled.mid_judged:
            return None
        found = compiled.judge_entry(call, scores_pass=scores_pass)
        return compiled.entry_outcome(call, found, count=self.count) if found else None

    def finish(self, end: RunEnded) -> CategoryOutcome:
        """Decide about everything that was recorded."""
        totals = Totals(
            citations=self._citations,
            unique_citations=len(self._seen),
            unsupported=self._unsupported,
            last_confidence=self._last,
            min_confidence=self._least,
        )
        self.count = self._citations
        return self._compiled.judge_end(end, totals, is_unjudged=not self._entries)

    def _add(self, entry: GroundingEntry) -> None:
        self._entries += 1
        self.count = len(entry.grounding_scores)
        self._citations += len(entry.citations)
        self._seen.update(entry.citations)
        self._unsupported += len(entry.unsupported_claims)
        confidence = entry.output_confidence
        if confidence is not None:
            self._last = confidence
            self._least = confidence if self._least is None else min(self._least, confidence)


def _by_rules(policies: Sequence[TypedPolicy]) -> Mapping[GroundingRules, Sequence[int]]:
    """Return the positions of the policies that ask the same of scores, so that it is asked once."""
    places: dict[GroundingRules, list[int]] = {}
    for place, each in enumerate(policies):
        places.setdefault(each.rules, []).append(place)
    return places


def _audit_passed(rules: GroundingRules, totals: Totals) -> str:
    return f"Grounding audit passed ({counted_citations(rules, totals)} citations)"


GROUNDING: Final = Category(name="grounding", title=_TITLE, rules=GroundingRules, compile=CompiledGrounding, check=check_grounding)
