"""Every route of the dashboard: the way in, the files, and the pages; one wrapper signs in, checks forms and shows refusals."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Protocol

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.routing import Route

from evidentia.contracts.errors import EvidentiaError
from evidentia.serving.dashboard import http_headers, static_files
from evidentia.serving.dashboard.dashboard_app import DashboardApp, NavEntry, PageRoute
from evidentia.serving.dashboard.form_guard import bounded, require_csrf, require_own_origin
from evidentia.serving.dashboard.pages import evidence_page, governance, home, search_page, sign_in, traces, verify
from evidentia.serving.operations.api_errors import INTERNAL, MALFORMED, NOT_FOUND, ApiError, refusal_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from starlette.responses import Response

    from evidentia.serving.dashboard.live import LiveStreams
    from evidentia.serving.identity.sessions import Links, Session, SessionStore
    from evidentia.serving.operations.server_context import ServerContext

SAFE_METHODS: Final = ("GET", "HEAD")
_log = logging.getLogger(__name__)


class Page(Protocol):
    """What a module under `pages` has."""

    @property
    def NAV(self) -> NavEntry:  # noqa: N802 - modules have it as a constant
        """Return its line in the navigation."""
        ...

    def routes(self, app: DashboardApp, /) -> Sequence[PageRoute]:
        """Return what it answers."""
        ...


PAGES: Final[tuple[Page, ...]] = (home, search_page, evidence_page, verify, governance, traces)
"""In the order of the navigation."""


def dashboard_routes(context: ServerContext, *, sessions: SessionStore, links: Links, live: LiveStreams) -> list[Route]:
    """Return every route below `/dashboard`; whoever stops the server closes `live` first."""
    app = DashboardApp(context, sessions=sessions, links=links, live=live)
    app.nav = tuple(page.NAV for page in PAGES)
    inside = [_route(app, route, _signed_in) for page in PAGES for route in page.routes(app)]
    way_in = [_route(app, PageRoute(path, answer, methods=methods), _open) for path, answer, methods in sign_in.ROUTES]
    return [
        Route("/dashboard/assets/{tag}/{name}", static_files.send, methods=["GET"]),
        *way_in,
        *inside,
        _route(app, PageRoute("/dashboard/{rest:path}", _nothing_there, methods=("GET", "POST")), _signed_in),
    ]


def _route(app: DashboardApp, route: PageRoute, admit: Callable[[DashboardApp, Request, PageRoute], Awaitable[Response | None]]) -> Route:
    async def answer(request: Request) -> Response:
        request = bounded(request, max_bytes=route.max_bytes)
        try:
            return await admit(app, request, route) or await _answered(app, request, route)
        except ApiError as refusal:
            return app.refused(request, refusal)
        except EvidentiaError as error:
            return app.refused(request, refusal_of(error))
        except (HTTPException, ClientDisconnect):
            hint = "load the page again and send it once more"
            return app.refused(request, ApiError(MALFORMED, "malformed_form", "the form could not be read", hint=hint))
        except Exception as error:  # noqa: BLE001 - nobody outside reads a stack trace
            _log.error("page failed: %s raised %s", route.path, type(error).__name__, exc_info=error)
            hint = "try again; if it stays, see the log of the server"
            return app.refused(request, ApiError(INTERNAL, "internal", "something went wrong while this page was made", hint=hint))
        finally:
            await request.close()  # files that came with a form

    return Route(route.path, answer, methods=list(route.methods))


async def _answered(app: DashboardApp, request: Request, route: PageRoute) -> Response:
    """Answer within the share of whoever is signed in; the way in has nobody yet."""
    session: Session | None = getattr(request.state, "session", None)
    if session is None:
        return await route.answer(app, request)
    async with app.context.admission.pools.entered(session.identity.token.token_id):
        return await route.answer(app, request)


async def _signed_in(app: DashboardApp, request: Request, route: PageRoute) -> Response | None:
    """Say who asks, and check a form; somebody who is not signed in is led to the way in."""
    key = http_headers.key_in(request)
    session = await app.sessions.find(key, is_use=route.is_use) if key else None
    if session is None:
        return app.to_sign_in(request)
    request.state.session = session
    if request.method not in SAFE_METHODS:
        require_own_origin(request)
        await require_csrf(request, session)
    return None


async def _open(_: DashboardApp, request: Request, __: PageRoute) -> Response | None:
    """Let anybody see the way in; what they send has to come from there."""
    if request.method not in SAFE_METHODS:
        require_own_origin(request)
    return None


async def _nothing_there(_: DashboardApp, __: Request) -> Response:
    raise ApiError(NOT_FOUND, "not_found", "there is no such page", hint="use the navigation")
