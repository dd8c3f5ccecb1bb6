"""Sources as their page shows them: how they are, how soon they answer, and how old their data is beside what they promise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.contracts.vocabulary import BreakerState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evidentia.contracts.sources import FreshnessReport, SourceHealth, SourceStatus

AGE_WIDTH: Final = 100
"""How wide the drawing of an age is when the promise is used up."""


class SourceView(NamedTuple):
    """One source: its status, its freshness, and both in words with the way they look."""

    status: SourceStatus
    freshness: FreshnessReport | None
    state: str
    kind: str
    age_width: float | None
    """How much of what it promises its age uses up, at most all of it; None when one of the two is not known."""
    verdict: str
    verdict_kind: str
    documents: int | None
    """How many of its documents the asker may see, where they were counted."""


def view_sources(
    statuses: Iterable[SourceStatus], reports: Iterable[FreshnessReport], counts: Mapping[str, int] | None
) -> list[SourceView]:
    """Return every source with its freshness, by id."""
    fresh = {report.source_id: report for report in reports}
    return [_view(status, fresh.get(status.descriptor.source_id), counts) for status in statuses]


def _view(status: SourceStatus, report: FreshnessReport | None, counts: Mapping[str, int] | None) -> SourceView:
    state, kind = _state(status)
    verdict, verdict_kind = _verdict(report)
    return SourceView(status, report, state, kind, _age_width(report), verdict, verdict_kind, _documents(status, counts))


def _documents(status: SourceStatus, counts: Mapping[str, int] | None) -> int | None:
    if counts is None or not status.descriptor.is_own:
        return status.documents
    return counts.get(status.descriptor.source_id, 0)


def _state(status: SourceStatus) -> tuple[str, str]:
    if not status.is_attached:
        return "not attached", "bad"
    breaker = status.health.breaker
    if breaker is BreakerState.CLOSED:
        return ("failing", "warn") if _has_failed_last(status.health) else ("ready", "good")
    return f"breaker {breaker.value.replace('_', ' ')}", "bad" if breaker is BreakerState.OPEN else "warn"


def _has_failed_last(health: SourceHealth) -> bool:
    if health.last_failure_at is None:
        return False
    return health.last_success_at is None or health.last_success_at < health.last_failure_at


def _age_width(report: FreshnessReport | None) -> float | None:
    if report is None or report.age_s is None or report.freshness_sla_s is None:
        return None
    return round(min(1.0, report.age_s / max(1, report.freshness_sla_s)) * AGE_WIDTH, 1)


def _verdict(report: FreshnessReport | None) -> tuple[str, str]:
    if report is None or report.freshness_sla_s is None:
        return "promises nothing", ""
    if report.is_fresh is None:
        return "age unknown", ""
    return ("fresh", "good") if report.is_fresh else ("too old", "bad")
