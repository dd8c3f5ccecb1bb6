"""What the base has: sources and how they are, documents and their chunks, versions and what differs between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.contracts.vocabulary import BreakerState
from evidentia.provenance.custody_chain import stored_chain
from evidentia.serving.dashboard.dashboard_app import DashboardApp, NavEntry, PageRoute, problems_of
from evidentia.serving.operations.api_errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from evidentia.contracts.sources import FreshnessReport, SourceHealth, SourceStatus


NAV: Final = NavEntry("evidence", "Evidence", "/dashboard/evidence", "list_sources")
PAGE: Final = 50
MAX_VERSIONS: Final = 50
MAX_DIFFERENT: Final = 200
TABS: Final = (
    ("Sources", NAV.path),
    ("Documents", f"{NAV.path}/documents"),
    ("Versions", f"{NAV.path}/versions"),
)
KINDS: Final = (
    ("added", "Added"),
    ("removed", "Removed"),
    ("changed", "Text changed"),
    ("metadata_changed", "Title, tags and the like changed"),
    ("access_changed", "Access changed"),
)


def routes(_: DashboardApp) -> Sequence[PageRoute]:
    """Return what this page answers."""
    return [
        PageRoute(NAV.path, show_sources),
        PageRoute(f"{NAV.path}/documents", show_documents),
        PageRoute(f"{NAV.path}/document", show_document),
        PageRoute(f"{NAV.path}/versions", show_versions),
    ]


async def show_sources(app: DashboardApp, request: Request) -> Response:
    """Show every source that the asker may know of."""
    identity = app.signed_in(request).identity
    statuses = await app.call(identity, "list_sources")
    reports = await app.call(identity, "list_freshness")
    return app.render(request, "evidence/sources.html", tabs=TABS, sources=view_sources(statuses.sources, reports.sources))


async def show_documents(app: DashboardApp, request: Request) -> Response:
    """Show the documents that the asker may see, page by page."""
    cursor = request.query_params.get("cursor") or None
    page = await app.call(app.signed_in(request).identity, "list_documents", limit=PAGE, cursor=cursor)
    return app.render(request, "evidence/documents.html", tabs=TABS, page=page, cursor=cursor)


async def show_document(app: DashboardApp, request: Request) -> Response:
    """Show a document chunk by chunk."""
    document_id = request.query_params.get("id", "")
    found = await app.call(app.signed_in(request).identity, "list_chunks", document=document_id)
    chunks = [(chunk, stored_chain(chunk)) for chunk in found.chunks]
    return app.render(request, "evidence/document.html", tabs=TABS, document_id=document_id, chunks=chunks)


async def show_versions(app: DashboardApp, request: Request) -> Response:
    """Show the newest versions, and what differs between two when two are named."""
    identity = app.signed_in(request).identity
    older, newer = (request.query_params.get(name, "").strip() for name in ("older", "newer"))
    versions = (await app.call(identity, "list_versions", limit=MAX_VERSIONS)).versions
    diff, fault = None, None
    if older or newer:
        try:
            diff = await app.call(identity, "show_diff", older=older or None, newer=newer or None, limit=MAX_DIFFERENT)
        except ApiError as refusal:
            fault = refusal
    return app.render(
        request,
        "evidence/versions.html",
        status=200 if fault is None else fault.status,
        tabs=TABS,
        versions=versions,
        older=older,
        newer=newer,
        diff=diff,
        kinds=KINDS,
        fault=None if fault is None else fault.fault,
        problems={} if fault is None else problems_of(fault.fault),
    )


# Sources as their page shows them: how they are, how soon they answer, and how old their data is beside what they promise.

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


def view_sources(statuses: Iterable[SourceStatus], reports: Iterable[FreshnessReport]) -> list[SourceView]:
    """Return every source with its freshness, by id."""
    fresh = {report.source_id: report for report in reports}
    return [_view(status, fresh.get(status.descriptor.source_id)) for status in statuses]


def _view(status: SourceStatus, report: FreshnessReport | None) -> SourceView:
    state, kind = _state(status)
    verdict, verdict_kind = _verdict(report)
    return SourceView(status, report, state, kind, _age_width(report), verdict, verdict_kind)


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
