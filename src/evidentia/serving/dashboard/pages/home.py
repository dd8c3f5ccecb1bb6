"""The first page: what is there at a glance, kept up to date while it is open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from evidentia.serving.dashboard.dashboard_app import HOME, NavEntry, PageRoute
from evidentia.serving.dashboard.glance import MAX_COUNTED, MAX_SHOWN, Glances
from evidentia.serving.dashboard.live import stream

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from evidentia.serving.dashboard.dashboard_app import DashboardApp
    from evidentia.serving.dashboard.glance import Glance
    from evidentia.serving.identity.admission import Identity

NAV: Final = NavEntry("home", "Home", HOME)
LIVE: Final = "/dashboard/live"


def routes(app: DashboardApp) -> Sequence[PageRoute]:
    """Return what this page answers."""
    glances = Glances()

    async def part(identity: Identity) -> str:
        return app.part("home/glance.html", identity, **_context(await glances.see(app, identity)))

    async def show(app: DashboardApp, request: Request) -> Response:
        glance = await glances.see(app, app.signed_in(request).identity)
        return app.render(request, "home/home.html", live=LIVE, **_context(glance))

    async def live(app: DashboardApp, request: Request) -> Response:
        return stream(app, request, part)

    return [PageRoute(HOME, show), PageRoute(LIVE, live, is_use=False)]


def _context(glance: Glance) -> dict[str, Any]:  # Any: whatever a template takes
    return {"glance": glance, "most": MAX_COUNTED, "shown": MAX_SHOWN}
