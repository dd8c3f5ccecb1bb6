"""Where every page is made: who is signed in, what they may ask, how a page is rendered, and how a refusal looks.

A page reaches the base only through `call`, which does what the API does and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

import msgspec
from starlette.responses import HTMLResponse, RedirectResponse, Response

from evidentia.serving.dashboard import cookies
from evidentia.serving.dashboard.headers import HEADERS
from evidentia.serving.dashboard.rendering import environment
from evidentia.serving.operations.api_errors import UNAUTHORIZED, ApiError
from evidentia.serving.operations.execution import perform
from evidentia.serving.operations.registry import ENDPOINTS
from evidentia.serving.operations.request_decoding import decode_flat

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from starlette.requests import Request

    from evidentia.contracts.control import Fault
    from evidentia.serving.dashboard.live import LiveStreams
    from evidentia.serving.identity.admission import Identity
    from evidentia.serving.identity.sessions import Links, Session, SessionStore
    from evidentia.serving.operations.server_context import ServerContext

HOME: Final = "/dashboard"
SIGN_IN: Final = "/dashboard/sign-in"
OPERATIONS: Final = {endpoint.name: endpoint for endpoint in ENDPOINTS}
MAX_FORM_BYTES: Final = 256 << 10
_SEE_OTHER: Final = 303


class NavEntry(NamedTuple):
    """One line of the navigation."""

    name: str
    label: str
    path: str
    needs: str = ""
    """The operation that whoever sees it may ask for; empty for everybody."""


class PageRoute:
    """One address of a page, answered only to whoever is signed in; a form is checked before the page sees it."""

    def __init__(
        self,
        path: str,
        answer: Callable[[DashboardApp, Request], Awaitable[Response]],
        *,
        methods: Sequence[str] = ("GET",),
        max_bytes: int = MAX_FORM_BYTES,
        is_use: bool = True,
    ) -> None:
        self.path = path
        self.answer = answer
        self.methods = tuple(methods)
        self.max_bytes = max_bytes
        self.is_use = is_use
        """Whether asking for it keeps a session alive."""


class DashboardApp:
    """Serves every page of one plane."""

    def __init__(self, context: ServerContext, *, sessions: SessionStore, links: Links, live: LiveStreams) -> None:
        self.context = context
        self.sessions = sessions
        self.links = links
        self.live = live
        self.nav: tuple[NavEntry, ...] = ()
        self._templates = environment()

    async def call(self, identity: Identity, operation: str, **params: object) -> Any:  # noqa: ANN401 - the message that the operation names
        """Return what an operation answers; parameters that are None are left out.

        Raises:
            Refusal: They may not ask for it, or something is wrong with what they ask.
        """
        self.context.admission.allow(identity, OPERATIONS[operation])
        return await self._performed(identity, operation, params)

    async def poll(self, identity: Identity, operation: str, **params: object) -> Any:  # noqa: ANN401 - likewise
        """Return the same as `call`, asked by a page that keeps itself up to date: it counts against nobody's limits."""
        self.context.admission.check(identity, OPERATIONS[operation])
        return await self._performed(identity, operation, params)

    async def _performed(self, identity: Identity, operation: str, params: Mapping[str, object]) -> Any:  # noqa: ANN401 - likewise
        endpoint = OPERATIONS[operation]
        raw = msgspec.json.encode({name: value for name, value in params.items() if value is not None})
        return (await perform(self.context, endpoint, lambda: decode_flat(endpoint, raw, identity))).message

    def may(self, identity: Identity, operation: str) -> bool:
        """Tell whether somebody may ask for an operation; what they may not is left out of pages."""
        endpoint = OPERATIONS.get(operation)
        if endpoint is None:
            return False
        try:
            self.context.admission.check(identity, endpoint)
        except ApiError:
            return False
        return True

    def signed_in(self, request: Request) -> Session:
        """Return who asks for this page; every route but the way in has somebody."""
        session: Session = request.state.session
        return session

    def render(
        self, request: Request, template: str, *, status: int = 200, headers: Mapping[str, str] | None = None, **values: object
    ) -> Response:
        """Return a page, or a part of one; everything that is not markup of a template is escaped."""
        session: Session | None = getattr(request.state, "session", None)
        is_page = not is_partial(request)
        flash = cookies.flash_in(request, session) if session is not None and is_page else None
        told: dict[str, object] = {
            "session": session,
            "csrf": "" if session is None else session.csrf,
            "nav": self._nav_for(session),
            "here": request.url.path,
            "flash": flash,
            "may": (lambda operation: session is not None and self.may(session.identity, operation)),
            "version": self.context.parts.version,
            "now": self.context.parts.clock.now(),
            **values,
        }
        content = self._templates.get_template(template).render(told)
        response = HTMLResponse(content, status, headers={**HEADERS, "vary": "HX-Request", **(headers or {})})
        if flash is not None:
            cookies.drop_flash(response, request)
        return response

    def part(self, template: str, identity: Identity, **values: object) -> str:
        """Return a part of a page for somebody, to be sent by itself."""
        told = {"may": (lambda operation: self.may(identity, operation)), **values}
        return self._templates.get_template(template).render(told)

    def redirect(self, request: Request, path: str, *, done: str = "", problem: str = "") -> Response:
        """Lead to another page, with something to say there."""
        if is_partial(request):
            response = Response(status_code=200, headers={**HEADERS, "hx-redirect": path})
        else:
            response = RedirectResponse(path, _SEE_OTHER, headers=HEADERS)
        session: Session | None = getattr(request.state, "session", None)
        if session is not None and (done or problem):
            cookies.keep_flash(response, request, session, cookies.Flash("problem" if problem else "done", problem or done))
        return response

    def refused(self, request: Request, refusal: ApiError) -> Response:
        """Show a refusal: as a page, or within one."""
        template = "refusal_part.html" if is_partial(request) else "refusal.html"
        headers = {name: value for name, value in refusal.headers.items() if name != "www-authenticate"}
        return self.render(request, template, status=refusal.status, headers=headers, fault=refusal.fault, status_code=refusal.status)

    def to_sign_in(self, request: Request) -> Response:
        """Lead to the way in, and from there back to where they were."""
        back = request.headers.get("hx-current-url", "") if is_partial(request) else _address(request)
        note = "expired" if cookies.key_in(request) else "needed"
        path = f"{SIGN_IN}?note={note}&next={quote(own_path(back), safe='')}"
        if is_partial(request):
            response = Response(status_code=UNAUTHORIZED, headers={**HEADERS, "hx-redirect": path})
        else:
            response = RedirectResponse(path, _SEE_OTHER, headers=HEADERS)
        if note == "expired":
            cookies.drop_key(response, request)
        return response

    def _nav_for(self, session: Session | None) -> Sequence[NavEntry]:
        if session is None:
            return ()
        return [entry for entry in self.nav if not entry.needs or self.may(session.identity, entry.needs)]


def is_partial(request: Request) -> bool:
    """Tell whether htmx asks for a part of a page."""
    return request.headers.get("hx-request") == "true" and request.headers.get("hx-request-type") != "full"


def problems_of(fault: Fault) -> dict[str, str]:
    """Return what is wrong with each field by its name, for the form it came from."""
    said: dict[str, str] = {}
    for each in fault.problems:
        suggestion = f" (did you mean {each.suggestion}?)" if each.suggestion else ""
        said.setdefault(each.path, f"{each.problem}{suggestion}")
    return said


def own_path(address: str) -> str:
    """Return the part of an address that leads to a page of this dashboard; the first page for anything else."""
    path = address
    if "://" in path:
        path = "/" + path.split("://", 1)[1].partition("/")[2]
    is_own = path == HOME or path.startswith((f"{HOME}/", f"{HOME}?"))
    has_only_text = path.isprintable() and "\\" not in path and "//" not in path.partition("?")[0]
    return path if is_own and has_only_text and not path.startswith(SIGN_IN) else HOME


def _address(request: Request) -> str:
    if request.method != "GET":
        return HOME
    return f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path
