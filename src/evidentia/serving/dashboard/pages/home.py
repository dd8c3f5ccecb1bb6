"""The first page: what is there at a glance, kept up to date while it is open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from evidentia.serving.dashboard.desk import HOME, NavEntry, PageRoute
from evidentia.serving.dashboard.glance import MOST_COUNTED, MOST_SHOWN, Glances
from evidentia.serving.dashboard.live import stream

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from evidentia.serving.dashboard.desk import Desk
    from evidentia.serving.dashboard.glance import Glance
    from evidentia.serving.identity.admission import Identity

NAV: Final = NavEntry("home", "Home", HOME)
LIVE: Final = "/dashboard/live"


def routes(desk: Desk) -> Sequence[PageRoute]:
    """Return what this page answers."""
    glances = Glances()

    async def part(identity: Identity) -> str:
        return desk.part("home/glance.html", identity, **_context(await glances.see(desk, identity)))

    async def show(desk: Desk, request: Request) -> Response:
        glance = await glances.see(desk, desk.signed_in(request).identity)
        return desk.render(request, "home/home.html", live=LIVE, **_context(glance))

    async def live(desk: Desk, request: Request) -> Response:
        return stream(desk, request, part)

    return [PageRoute(HOME, show), PageRoute(LIVE, live, is_use=False)]


def _context(glance: Glance) -> dict[str, Any]:  # Any: whatever a template takes
    return {"glance": glance, "most": MOST_COUNTED, "shown": MOST_SHOWN}
