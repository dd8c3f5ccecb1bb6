"""Follows a run for the policies of the category `grounding`.

As with retrieval, bounds of all policies are merged: scores that are surely high enough cost the same for one policy and for many.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from evidentia.contracts.decisions import DecisionStatus, JudgeAsk
from evidentia.contracts.judging import Judgement, JudgeStatus
from evidentia.contracts.policies import GroundingRules, JudgePhase, PolicyAction
from evidentia.contracts.runs import GroundingEntry, Phase, RunEnded
from evidentia.policy.calls import check_call, is_out_of_range
from evidentia.policy.grounding_rules import (
    RESERVED,
    Totals,
    check_grounding,
    citation_notes,
    counted_citations,
    join,
    judge_judgement,
    judge_scores,
    judge_totals,
    surely_passes,
)
from evidentia.policy.handling import Category, Outcome, Violation, stored

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evidentia.contracts.calls import Metadata, RunCall
    from evidentia.contracts.policies import PolicyId
    from evidentia.policy.handling import TypedPolicy

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

    def begin(self) -> Outcome:
        """Return what is said before anything was recorded, with a notice where a rule has no effect."""
        notice = Violation(rule="factual_consistency_check", action=PolicyAction.ALLOW, reason=RESERVED, status=DecisionStatus.BYPASSED)
        return stored(_TITLE, notices={place: [notice] for place, each in enumerate(self.policies) if each.rules.factual_consistency_check})

    def asks(self, call: RunCall) -> Sequence[JudgeAsk]:
        """Return what is wanted of a judge at a grounding entry, or at the end."""
        if isinstance(call, GroundingEntry):
            return self._mid_asks
        return self._end_asks if isinstance(call, RunEnded) else ()

    def passed(self, call: RunCall, *, count: int) -> Outcome | None:
        """Return what an entry that passed stands for."""
        return _entry_outcome(call, {}, count=count) if isinstance(call, GroundingEntry) else None

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

    def judge_end(self, end: RunEnded, totals: Totals, *, is_unjudged: bool) -> Outcome:
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
        return Outcome(
            phase=Phase.AFTER_WORKFLOW,
            found=found,
            reason=_audit_passed(self.policies[0].rules, totals),
            metadata=citation_notes(self.policies[0].rules, totals),
            joined=joined,
            own=self._own_counts(totals),
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

    def record(self, call: RunCall) -> Outcome | None:
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
        return _entry_outcome(call, found, count=self.count) if found else None

    def finish(self, end: RunEnded) -> Outcome:
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


def _entry_outcome(entry: GroundingEntry, found: Mapping[int, Sequence[Violation]], *, count: int) -> Outcome:
    metadata: dict[str, object] = {"score_count": count}
    if any(is_out_of_range(score) for score in entry.grounding_scores):
        metadata["score_out_of_range"] = True
    return Outcome(phase=Phase.MID_EXECUTION, found=found, reason=f"Grounding scores within policy ({count} scores)", metadata=metadata)


GROUNDING: Final = Category(name="grounding", title=_TITLE, rules=GroundingRules, compile=CompiledGrounding, check=check_grounding)
