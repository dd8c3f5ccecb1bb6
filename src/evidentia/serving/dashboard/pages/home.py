"""The first page: what is there at a glance, kept up to date while it is open."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from evidentia.contracts.vocabulary import BreakerState
from evidentia.foundation.lru import LruCache
from evidentia.serving.dashboard.dashboard_app import HOME, DashboardApp, NavEntry, PageRoute
from evidentia.serving.dashboard.live import Pace, stream
from evidentia.serving.identity.callers import identity_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from evidentia.contracts.control import GovernanceEvent
    from evidentia.contracts.decisions import DecisionCounts
    from evidentia.contracts.documents import CommitSummary
    from evidentia.contracts.sources import SourceStatus
    from evidentia.contracts.telemetry import RequestTrace
    from evidentia.serving.identity.admission import Identity


NAV: Final = NavEntry("home", "Home", HOME)
LIVE: Final = "/dashboard/live"


def routes(app: DashboardApp) -> Sequence[PageRoute]:
    """Return what this page answers."""
    reader = OverviewReader()

    async def part(identity: Identity) -> str:
        return app.part("home/overview.html", identity, **_context(await reader.see(app, identity)))

    async def show(app: DashboardApp, request: Request) -> Response:
        overview = await reader.see(app, app.signed_in(request).identity)
        return app.render(request, "home/home.html", live=LIVE, **_context(overview))

    async def live(app: DashboardApp, request: Request) -> Response:
        return stream(app, request, part)

    return [PageRoute(HOME, show), PageRoute(LIVE, live, is_use=False)]


def _context(overview: Overview) -> dict[str, Any]:  # Any: whatever a template takes
    return {"overview": overview, "most": MAX_COUNTED, "shown": MAX_SHOWN}


# What there is at a glance: documents, sources, the newest version, and what was asked and decided in the last hour.

MINUTES: Final = 60
MAX_COUNTED: Final = 500
"""Of requests; more are shown as so many and more."""
MAX_SHOWN: Final = 8
MAX_KEPT: Final = 200
FRESH_NS: Final = 900_000_000
"""For how long what was read serves everybody who may see the same."""


class Overview(NamedTuple):
    """What one person sees at a glance."""

    head: CommitSummary
    sources: tuple[SourceStatus, ...]
    events: tuple[GovernanceEvent, ...]
    """The newest of the last hour, newest first."""
    counts: DecisionCounts
    """Of all decisions of the last hour."""
    traces: tuple[RequestTrace, ...] | None
    """Of the last hour, newest first; None for those who may not see requests."""

    @property
    def documents(self) -> int:
        """Return how many documents they may see."""
        return sum(each.documents or 0 for each in self.sources)

    @property
    def troubled(self) -> int:
        """Return how many sources are not asked now."""
        return sum(1 for each in self.sources if not each.is_attached or each.health.breaker is not BreakerState.CLOSED)

    @property
    def median_ms(self) -> float | None:
        """Return what half of the requests took at most."""
        times = sorted(each.latency_ms for each in self.traces or ())
        return times[(len(times) - 1) // 2] if times else None

    @property
    def points(self) -> Sequence[tuple[int, float]]:
        """Return when requests came, in seconds since 1970, and how long they took; the earliest first."""
        return [(int(each.started_at.timestamp()), round(each.latency_ms, 3)) for each in reversed(self.traces or ())]


class OverviewReader:
    """Reads overviews, each part of one at most once in a second for everybody to whom it is the same; what takes long, less often."""

    def __init__(self) -> None:
        self._kept: LruCache[tuple[str, bytes], tuple[Pace, asyncio.Task[Any]]] = LruCache(MAX_KEPT)  # Any: each part has its own type

    async def see(self, app: DashboardApp, identity: Identity) -> Overview:
        """Return what somebody sees now."""
        who, own = identity_of(identity.principal), identity.token.token_id.encode()
        head = await self._once(app, ("head", b""), lambda: app.poll(identity, "show_head"))
        traces = None
        if app.may(identity, "list_traces"):  # which is about the whole base, so it is the same for all who may
            traces = await self._once(app, ("traces", b""), lambda: _traces(app, identity))
        events = await self._once(app, ("events", own), lambda: app.poll(identity, "list_events", minutes=MINUTES, limit=MAX_SHOWN))
        counts = await self._once(app, ("counts", own), lambda: app.poll(identity, "count_decisions", minutes=MINUTES))
        sources = await self._once(app, ("sources", who), lambda: app.poll(identity, "list_sources"))
        return Overview(head, sources.sources, events.events, counts, traces)

    async def _once(self, app: DashboardApp, key: tuple[str, bytes], read: Callable[[], Coroutine[Any, Any, Any]]) -> Any:  # noqa: ANN401 - what is read
        kept = self._kept.get(key)
        if kept is None or kept[0].is_due() or (kept[1].done() and kept[1].exception() is not None):
            pace = Pace(app.context.parts.clock, at_least_ns=FRESH_NS)
            kept = (pace, asyncio.create_task(pace.timed(read)))
            self._kept.put(key, kept)
        # Shielded: one of several who wait for the same part may go away, and the others still need it.
        return await asyncio.shield(kept[1])


async def _traces(app: DashboardApp, identity: Identity) -> tuple[RequestTrace, ...]:
    """Return the requests of the last hour, newest first."""
    since = app.context.parts.clock.now() - timedelta(minutes=MINUTES)
    found = await app.poll(identity, "list_traces", limit=MAX_COUNTED)
    return tuple(each for each in found.traces if each.started_at >= since)
