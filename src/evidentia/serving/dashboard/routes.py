"""Every route of the dashboard: the way in, the files, and the pages; one wrapper signs in, checks forms and shows refusals."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Protocol

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Route

from evidentia.contracts.errors import EvidentiaError
from evidentia.serving.dashboard import cookies, entering, files
from evidentia.serving.dashboard.desk import Desk, NavEntry, PageRoute
from evidentia.serving.dashboard.guarding import bounded, require_csrf, require_own_origin
from evidentia.serving.dashboard.pages import evidence, governance, home, search, traces, verify
from evidentia.serving.operations.refusals import INTERNAL, MALFORMED, NOT_FOUND, Refusal, refusal_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from evidentia.serving.dashboard.live import LiveStreams
    from evidentia.serving.identity.links import Links
    from evidentia.serving.identity.sessions import SessionStore
    from evidentia.serving.operations.plane import Plane

SAFE_METHODS: Final = ("GET", "HEAD")
_log = logging.getLogger(__name__)


class Page(Protocol):
    """What a module under `pages` has."""

    @property
    def NAV(self) -> NavEntry:  # noqa: N802 - modules have it as a constant
        """Return its line in the navigation."""
        ...

    def routes(self, desk: Desk, /) -> Sequence[PageRoute]:
        """Return what it answers."""
        ...


PAGES: Final[tuple[Page, ...]] = (home, search, evidence, verify, governance, traces)
"""In the order of the navigation."""


def dashboard_routes(plane: Plane, *, sessions: SessionStore, links: Links, live: LiveStreams) -> list[Route]:
    """Return every route below `/dashboard`; whoever stops the server closes `live` first."""
    desk = Desk(plane, sessions=sessions, links=links, live=live)
    desk.nav = tuple(page.NAV for page in PAGES)
    inside = [_route(desk, route, _signed_in) for page in PAGES for route in page.routes(desk)]
    way_in = [_route(desk, PageRoute(path, answer, methods=methods), _open) for path, answer, methods in entering.ROUTES]
    return [
        Route("/dashboard/assets/{tag}/{name}", files.send, methods=["GET"]),
        *way_in,
        *inside,
        _route(desk, PageRoute("/dashboard/{rest:path}", _nothing_there, methods=("GET", "POST")), _signed_in),
    ]


def _route(desk: Desk, route: PageRoute, admit: Callable[[Desk, Request, PageRoute], Awaitable[Response | None]]) -> Route:
    async def answer(request: Request) -> Response:
        request = bounded(request, most_bytes=route.most_bytes)
        try:
            return await admit(desk, request, route) or await route.answer(desk, request)
        except Refusal as refusal:
            return desk.refused(request, refusal)
        except EvidentiaError as error:
            return desk.refused(request, refusal_of(error))
        except (HTTPException, ClientDisconnect):
            hint = "load the page again and send it once more"
            return desk.refused(request, Refusal(MALFORMED, "malformed_form", "the form could not be read", hint=hint))
        except Exception as error:  # noqa: BLE001 - nobody outside reads a stack trace
            _log.error("page failed: %s raised %s", route.path, type(error).__name__, exc_info=error)
            hint = "try again; if it stays, see the log of the server"
            return desk.refused(request, Refusal(INTERNAL, "internal", "something went wrong while this page was made", hint=hint))
        finally:
            await request.close()  # files that came with a form

    return Route(route.path, answer, methods=list(route.methods))


async def _signed_in(desk: Desk, request: Request, route: PageRoute) -> Response | None:
    """Say who asks, and check a form; somebody who is not signed in is led to the way in."""
    key = cookies.key_in(request)
    session = await desk.sessions.find(key, is_use=route.is_use) if key else None
    if session is None:
        return desk.to_sign_in(request)
    request.state.session = session
    if request.method not in SAFE_METHODS:
        require_own_origin(request)
        await require_csrf(request, session)
    return None


async def _open(_: Desk, request: Request, __: PageRoute) -> Response | None:
    """Let anybody see the way in; what they send has to come from there."""
    if request.method not in SAFE_METHODS:
        require_own_origin(request)
    return None


async def _nothing_there(_: Desk, __: Request) -> Response:
    raise Refusal(NOT_FOUND, "not_found", "there is no such page", hint="use the navigation")
