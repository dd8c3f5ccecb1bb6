"""Where every page is made: who is signed in, what they may ask, how a page is rendered, and how a refusal looks.

A page reaches the base only through `call`, which does what the API does and nothing else.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote, urlencode

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse, RedirectResponse, Response

from evidentia.contracts.confidence_words import in_words
from evidentia.contracts.evidence import SCORE_ONE
from evidentia.serving.cli.durations import age_in_words, span_of
from evidentia.serving.dashboard import http_headers
from evidentia.serving.dashboard.http_headers import HEADERS
from evidentia.serving.dashboard.static_files import address_of
from evidentia.serving.operations.api_errors import UNAUTHORIZED, ApiError
from evidentia.serving.operations.execution import perform
from evidentia.serving.operations.registry import ENDPOINTS
from evidentia.serving.operations.request_decoding import decode_flat

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

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
        flash = http_headers.flash_in(request, session) if session is not None and is_page else None
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
            http_headers.drop_flash(response, request)
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
            http_headers.keep_flash(response, request, session, http_headers.Flash("problem" if problem else "done", problem or done))
        return response

    def refused(self, request: Request, refusal: ApiError) -> Response:
        """Show a refusal: as a page, or within one."""
        template = "refusal_part.html" if is_partial(request) else "refusal.html"
        headers = {name: value for name, value in refusal.headers.items() if name != "www-authenticate"}
        return self.render(request, template, status=refusal.status, headers=headers, fault=refusal.fault, status_code=refusal.status)

    def to_sign_in(self, request: Request) -> Response:
        """Lead to the way in, and from there back to where they were."""
        back = request.headers.get("hx-current-url", "") if is_partial(request) else _address(request)
        note = "expired" if http_headers.key_in(request) else "needed"
        path = f"{SIGN_IN}?note={note}&next={quote(own_path(back), safe='')}"
        if is_partial(request):
            response = Response(status_code=UNAUTHORIZED, headers={**HEADERS, "hx-redirect": path})
        else:
            response = RedirectResponse(path, _SEE_OTHER, headers=HEADERS)
        if note == "expired":
            http_headers.drop_key(response, request)
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


# Templates with escaping always on, and the few words that they use for numbers, times and hashes.

SHORT_HASH: Final = 12
_DASH: Final = "-"


def environment() -> Environment:
    """Return what renders templates; a name that a template does not know is an error."""
    made = Environment(
        loader=PackageLoader("evidentia.serving.dashboard", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        age=age_in_words,
        count=count,
        joined=joined,
        moment=moment,
        ms=milliseconds,
        sentence=sentence,
        share=share,
        in_words=in_words,
        short=short,
        span=span_of,
        words=words,
    )
    made.globals.update(asset=address_of, address=address)
    return made


def address(path: str, **query: object) -> str:
    """Return a path with parameters; those that are None or empty are left out."""
    given: list[tuple[str, str]] = []
    for name, value in query.items():
        values = value if isinstance(value, (list, tuple)) else [value]
        given += [(name, str(each)) for each in values if each not in (None, "")]
    return f"{path}?{urlencode(given)}" if given else path


def count(number: int, noun: str, plural: str = "") -> str:
    """Return a number of things in words: `1 document`, `1,024 documents`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def joined(values: Iterable[object], between: str = ", ") -> str:
    """Return values one after the other, or a dash when there are none."""
    return between.join(str(value) for value in values) or _DASH


def milliseconds(value: float | None) -> str:
    """Return a time in milliseconds as people read it."""
    return _DASH if value is None else f"{value:,.1f} ms"


def moment(at: datetime | str | None) -> str:
    """Return a moment in UTC to the second."""
    if at is None or at == "":
        return _DASH
    read = datetime.fromisoformat(at) if isinstance(at, str) else at
    return f"{read.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def sentence(text: str, is_begun: bool = True) -> str:  # noqa: FBT001, FBT002 - filters are given values by place
    """Return a message with its end, and with a capital letter where it begins a line."""
    said = text[:1].upper() + text[1:] if is_begun else text
    return said if said.endswith((".", "?", "!", "…")) else f"{said}."


def share(value: int | None, digits: int = 2) -> str:
    """Return a score at 2^-32 as a decimal from 0 to 1."""
    return _DASH if value is None else f"{value / SCORE_ONE:.{digits}f}"


def short(text: str, chars: int = SHORT_HASH) -> str:
    """Return the beginning of a hash or an id."""
    return text if len(text) <= chars else f"{text[:chars]}…"


def words(word: object) -> str:
    """Return a word of a vocabulary as people write it."""
    return str(getattr(word, "value", word)).replace("_", " ")
