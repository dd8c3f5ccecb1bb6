"""Step 5: which sources take part, and what the request wants of them.

The base's own documents belong to sources; which of them answer is a narrowing of the search, decided from
`source_policy`, the filter and the time window. It never changes statistics.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.evidence import CoverageReport
from evidentia.contracts.ids import SourceId
from evidentia.contracts.predicates import And, Compare, In, Predicate
from evidentia.contracts.vocabulary import AuthorityTier, CoverageState

if TYPE_CHECKING:
    from evidentia.contracts.evidence import EvidenceRequest
    from evidentia.contracts.sources import SourcePolicy

UNKNOWN_SOURCE = "there is no such source, or none of it may be seen"


class SourcePlan(msgspec.Struct, frozen=True, kw_only=True):
    """The sources that are searched, those that are not and why, and the narrowing that follows."""

    searched: tuple[SourceId, ...]
    skipped: Mapping[SourceId, CoverageReport]
    narrowing: Predicate | None


def plan_sources(request: EvidenceRequest, visible: Mapping[SourceId, AuthorityTier]) -> SourcePlan:
    """Return which of the visible sources the request may use; a source the caller cannot see is never named by us."""
    policy = request.source_policy
    searched, skipped = [], {}
    for source, authority in visible.items():
        reason = _refusal(source, authority, policy)
        if reason:
            skipped[source] = CoverageReport(state=CoverageState.SKIPPED, reason=reason, searched_share=0.0)
        else:
            searched.append(source)
    for source in policy.allowed_sources or ():
        if source not in visible:
            skipped[source] = CoverageReport(state=CoverageState.DENIED, reason=UNKNOWN_SOURCE, searched_share=0.0)
    narrowing = _narrowing(request, searched=tuple(searched), is_partial=len(searched) < len(visible))
    return SourcePlan(searched=tuple(searched), skipped=skipped, narrowing=narrowing)


def _refusal(source: SourceId, authority: AuthorityTier, policy: SourcePolicy) -> str:
    if source in policy.denied_sources:
        return "source_policy denies it"
    if policy.allowed_sources is not None and source not in policy.allowed_sources:
        return "source_policy does not allow it"
    if authority.rank < policy.minimum_authority.rank:
        return f"nothing in it reaches the authority '{policy.minimum_authority}'"
    return ""


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
