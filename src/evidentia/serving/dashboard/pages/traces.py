"""What happened, on a time axis: runs of agents with every decision at its place, and requests against their deadlines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evidentia.contracts.runs import RunStatus
from evidentia.serving.dashboard.dashboard_app import DashboardApp, NavEntry, PageRoute
from evidentia.serving.dashboard.live import stream
from evidentia.serving.dashboard.pages.traces_view import duration_ms, facts_of, view_request, view_run
from evidentia.serving.dashboard.plots import AXIS
from evidentia.serving.operations.api_errors import ApiError, bad_field

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from evidentia.contracts.decisions import PolicyDecision
    from evidentia.serving.identity.admission import Identity

NAV: Final = NavEntry("traces", "Traces", "/dashboard/traces", "list_runs")
PAGE: Final = 25
MAX_REQUESTS: Final = 100
MAX_DECISIONS: Final = 2_000
_AT_ONCE: Final = 500
MINUTES: Final = (("", "any time"), ("60", "last hour"), ("1440", "last day"), ("10080", "last week"))
STATUSES: Final = (("", "any status"), *((word, word) for word in RunStatus.words()))
_FILTERS: Final = ("agent", "status", "minutes")


def routes(_: DashboardApp) -> Sequence[PageRoute]:
    """Return what this page answers."""
    return [
        PageRoute(NAV.path, show_runs),
        PageRoute(f"{NAV.path}/live", live_runs),
        PageRoute(f"{NAV.path}/run", show_run),
        PageRoute(f"{NAV.path}/requests", show_requests),
        PageRoute(f"{NAV.path}/request", show_request),
    ]


async def show_runs(app: DashboardApp, request: Request) -> Response:
    """Show runs, the newest first, page by page."""
    wanted = _wanted(request)
    page = await app.call(app.signed_in(request).identity, "list_runs", **_asked(wanted), limit=PAGE, cursor=wanted["cursor"] or None)
    return app.render(
        request,
        "traces/runs.html",
        wanted=wanted,
        page=page,
        duration_ms=duration_ms,
        minutes=MINUTES,
        statuses=STATUSES,
        is_live=not wanted["cursor"],
    )


async def live_runs(app: DashboardApp, request: Request) -> Response:
    """Send the newest runs again whenever something about them has changed."""
    wanted = _wanted(request)

    async def part(identity: Identity) -> str:
        page = await app.poll(identity, "list_runs", **_asked(wanted), limit=PAGE)
        return app.part("traces/runs_table.html", identity, page=page, wanted=wanted, duration_ms=duration_ms)

    return stream(app, request, part)


async def show_run(app: DashboardApp, request: Request) -> Response:
    """Show one run: its spans on a time axis, decisions at their places, grounding and cost."""
    identity = app.signed_in(request).identity
    run_id = request.query_params.get("id", "")
    if not run_id:
        raise bad_field("id", "name the run")
    trace = await app.call(identity, "show_trace", id=run_id)
    decisions, has_more = await _decisions(app, identity, run_id)
    counts = await app.call(identity, "count_decisions", run=run_id)
    return app.render(
        request,
        "traces/run.html",
        run=trace.summary,
        view=view_run(trace, decisions),
        decisions=decisions,
        has_more=has_more,
        counts=counts,
        duration_ms=duration_ms,
        facts_of=facts_of,
        axis=AXIS,
    )


async def show_requests(app: DashboardApp, request: Request) -> Response:
    """Show the newest requests for evidence."""
    traces = (await app.call(app.signed_in(request).identity, "list_traces", limit=MAX_REQUESTS)).traces
    return app.render(
        request,
        "traces/requests.html",
        requests=[(trace, view_request(trace)) for trace in traces],
        most=MAX_REQUESTS,
        axis=AXIS,
    )


async def show_request(app: DashboardApp, request: Request) -> Response:
    """Show one request: stages and sources against its deadline."""
    identity = app.signed_in(request).identity
    request_id = request.query_params.get("id", "")
    if not request_id:
        raise bad_field("id", "name the request")
    trace = await app.call(identity, "show_request", id=request_id)
    receipt = None
    if trace.receipt_id is not None:
        try:
            receipt = await app.call(identity, "show_receipt", id=trace.receipt_id)
        except ApiError:  # it is somebody else's, or not kept any more
            receipt = None
    return app.render(request, "traces/request.html", trace=trace, view=view_request(trace, is_close=True), receipt=receipt, axis=AXIS)


async def _decisions(app: DashboardApp, identity: Identity, run_id: str) -> tuple[list[PolicyDecision], bool]:
    """Return what was decided about a run in order, and whether there is more than is shown."""
    found: list[PolicyDecision] = []
    cursor: str | None = None
    while len(found) < MAX_DECISIONS:
        page = await app.call(identity, "list_run_decisions", id=run_id, limit=_AT_ONCE, cursor=cursor)
        found += page.decisions
        cursor = page.next_cursor
        if cursor is None:
            return found, False
    return found, True


def _wanted(request: Request) -> dict[str, str]:
    return {name: request.query_params.get(name, "").strip() for name in (*_FILTERS, "cursor")}


def _asked(wanted: Mapping[str, str]) -> dict[str, object]:
    """Return the filters as the operation takes them; what is no number goes as it is, and is refused there."""
    minutes = wanted["minutes"]
    return {
        "agent": wanted["agent"] or None,
        "status": wanted["status"] or None,
        "minutes": int(minutes) if minutes.isascii() and minutes.isdecimal() else minutes or None,
    }
