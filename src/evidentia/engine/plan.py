"""Step 5: which sources take part, and what the request wants of them.

The base's own documents belong to sources; which of them answer is a narrowing of the search, decided from
`source_policy`, the filter and the time window. It never changes statistics. Sources outside the base are chosen among those
that the caller may ask; the others have no influence and are never named.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.evidence import CoverageReport, SubQuery
from evidentia.contracts.ids import SourceId
from evidentia.contracts.predicates import And, Compare, In, Predicate
from evidentia.contracts.settings import SourceSettings
from evidentia.contracts.vocabulary import AuthorityTier, BreakerState, CoverageState
from evidentia.engine.deadline import Stages
from evidentia.engine.source_choice import Limits, PlannedCall, SourceFacts, choose_sources, left_out
from evidentia.policy.source_access import may_ask

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.contracts.evidence import EvidenceRequest
    from evidentia.contracts.search import AccessScope
    from evidentia.contracts.sources import SourcePolicy

__all__ = ["MAX_PARTS", "UNKNOWN_SOURCE", "PlannedCall", "SourceFacts", "SourcePlan", "plan_sources"]

UNKNOWN_SOURCE = "there is no such source, or none of it may be seen"
PINNED = "a request for an old version is answered from the base alone"
NOT_ATTACHED = "nothing is attached here that could ask it"
BREAKER_IS_OPEN = "it failed too often of late, and is left alone for a while"
MAX_PARTS = 16
"""Sources are asked for no more parts of a question than this."""
_DEFAULTS = SourceSettings()
_RANKS: Mapping[str, int] = {tier: tier.rank for tier in AuthorityTier}


class SourcePlan(msgspec.Struct, frozen=True, kw_only=True):
    """The sources that are searched, those that are not and why, and the narrowing that follows; then whom to ask outside.

    A source outside the base is in `calls` or in `skipped`, never in both; one that the caller may not ask is in neither, unless
    the request names it, and then it looks like one that does not exist.
    """

    searched: tuple[SourceId, ...]
    skipped: Mapping[SourceId, CoverageReport]
    narrowing: Predicate | None
    calls: tuple[PlannedCall, ...] = ()
    parts: tuple[SubQuery, ...] = ()
    """What `PlannedCall.part` counts, from 0; empty when no source outside the base comes into question."""
    notes: tuple[str, ...] = ()
    """Why these calls, in short lines that name sources and numbers, never content."""


def plan_sources(
    request: EvidenceRequest,
    visible: Mapping[SourceId, AuthorityTier],
    *,
    outside: Sequence[SourceFacts] = (),
    scope: AccessScope | None = None,
    settings: SourceSettings = _DEFAULTS,
    remaining_ms: int | None = None,
    is_pinned: bool = False,
) -> SourcePlan:
    """Return which sources the request may use: of the base's own those visible, of those outside the best that may be asked.

    `remaining_ms` is what is left of the request's deadline, all of it by default. Without a scope nobody outside may be asked.
    A source whose documents are in the base is its own, whatever else is said of it. The order of `outside` means nothing.
    """
    policy = request.source_policy
    searched, skipped = [], {}
    for source, authority in visible.items():
        if reason := _refusal(source, authority, policy):
            skipped[source] = left_out(reason)
        else:
            searched.append(source)
    narrowing = _narrowing(request, searched=tuple(searched), is_partial=len(searched) < len(visible))
    askable = _askable(outside, scope, visible)
    for source in policy.allowed_sources or ():
        if source not in visible and source not in askable:
            skipped[source] = left_out(UNKNOWN_SOURCE, CoverageState.DENIED)
    plan = SourcePlan(searched=tuple(searched), skipped=skipped, narrowing=narrowing)
    if not askable:
        return plan
    return _with_outside(plan, request, askable, settings=settings, remaining_ms=remaining_ms, is_pinned=is_pinned)


def _askable(
    outside: Sequence[SourceFacts], scope: AccessScope | None, visible: Mapping[SourceId, AuthorityTier]
) -> Mapping[SourceId, SourceFacts]:
    """Return the sources outside the base that the caller may ask, by id; the others play no part from here on."""
    if scope is None:
        return {}
    return {
        each.descriptor.source_id: each
        for each in outside
        if not each.descriptor.is_own and each.descriptor.source_id not in visible and may_ask(each.descriptor.access_policy, scope)
    }


def _with_outside(
    plan: SourcePlan,
    request: EvidenceRequest,
    askable: Mapping[SourceId, SourceFacts],
    *,
    settings: SourceSettings,
    remaining_ms: int | None,
    is_pinned: bool,
) -> SourcePlan:
    skipped = dict(plan.skipped)
    ready = []
    for source, facts in sorted(askable.items()):
        if report := _hindrance(facts, request.source_policy, is_pinned=is_pinned):
            skipped[source] = report
        else:
            ready.append(facts)
    parts = request.query.subqueries[:MAX_PARTS] or (SubQuery(text=request.query.text),)
    limits = Limits(
        stages=Stages(request.latency_deadline_ms),
        remaining_ms=request.latency_deadline_ms if remaining_ms is None else remaining_ms,
        cost_budget_micros=request.cost_budget_micros,
        most_per_part=_most_per_part(request.source_policy, settings),
    )
    choice = choose_sources(ready, parts, limits)
    return SourcePlan(
        searched=plan.searched,
        skipped=skipped | dict(choice.skipped),
        narrowing=plan.narrowing,
        calls=choice.calls,
        parts=parts,
        notes=(*_uncounted(len(request.query.subqueries)), *choice.notes),
    )


def _refusal(source: SourceId, authority: AuthorityTier, policy: SourcePolicy) -> str:
    if source in policy.denied_sources:
        return "source_policy denies it"
    if policy.allowed_sources is not None and source not in policy.allowed_sources:
        return "source_policy does not allow it"
    if _RANKS[authority] < _RANKS[policy.minimum_authority]:
        return f"nothing in it reaches the authority '{policy.minimum_authority}'"
    return ""


def _hindrance(facts: SourceFacts, policy: SourcePolicy, *, is_pinned: bool) -> CoverageReport | None:
    """Return why a source that the caller may ask cannot be asked now; None when it can."""
    descriptor = facts.descriptor
    if reason := _refusal(descriptor.source_id, descriptor.authority_tier, policy):
        return left_out(reason)
    if is_pinned:
        return left_out(PINNED)
    if not facts.is_attached:
        return left_out(NOT_ATTACHED)
    if facts.breaker is BreakerState.OPEN:
        return left_out(BREAKER_IS_OPEN, CoverageState.BREAKER_OPEN)
    if not facts.has_rate:
        return left_out(f"its limit of {descriptor.max_qps} queries per second is used up")
    return None


def _most_per_part(policy: SourcePolicy, settings: SourceSettings) -> int | None:
    """Return how many sources are asked per part: what the request says, else no limit where it names them, else the settings."""
    if policy.most_sources is not None:
        return policy.most_sources
    return None if policy.allowed_sources is not None else settings.most_per_part


def _uncounted(parts: int) -> tuple[str, ...]:
    return (f"sources are asked for the first {MAX_PARTS} of {parts} parts",) if parts > MAX_PARTS else ()


def _narrowing(request: EvidenceRequest, *, searched: tuple[SourceId, ...], is_partial: bool) -> Predicate | None:
    clauses: list[Predicate] = []
    if is_partial:
        clauses.append(In("source_id", tuple(searched)))
    if request.source_policy.minimum_authority is not AuthorityTier.EPHEMERAL:
        clauses.append(Compare("authority_tier", ">=", request.source_policy.minimum_authority.value))
    if request.time_window and request.time_window.start:
        clauses.append(Compare("updated_at", ">=", msgspec.to_builtins(request.time_window.start)))
    if request.time_window and request.time_window.end:
        clauses.append(Compare("updated_at", "<=", msgspec.to_builtins(request.time_window.end)))
    if request.filter is not None and not isinstance(request.filter, str):
        clauses.append(request.filter)
    if not clauses:
        return None
    return clauses[0] if len(clauses) == 1 else And(tuple(clauses))
