"""What the base has: sources and how they are, documents and their chunks, versions and what differs between them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from evidentia.provenance.custody_chain import stored_chain
from evidentia.serving.dashboard.dashboard_app import NavEntry, PageRoute, problems_of
from evidentia.serving.dashboard.source_view import view_sources
from evidentia.serving.operations.api_errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from evidentia.serving.dashboard.dashboard_app import DashboardApp
    from evidentia.serving.identity.admission import Identity

NAV: Final = NavEntry("evidence", "Evidence", "/dashboard/evidence", "list_sources")
PAGE: Final = 50
MAX_COUNTED: Final = 500
"""Documents that are counted by source; of a base that has more, sources are shown without."""
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
    counts = await _counted(app, identity)
    return app.render(request, "evidence/sources.html", tabs=TABS, sources=view_sources(statuses.sources, reports.sources, counts))


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


async def _counted(app: DashboardApp, identity: Identity) -> Mapping[str, int] | None:
    """Return how many documents the asker may see of each source; None for bases with too many to list here."""
    page = await app.call(identity, "list_documents", limit=MAX_COUNTED)
    if page.next_cursor is not None:
        return None
    return Counter(each.document_id.partition(":")[0] for each in page.documents)
