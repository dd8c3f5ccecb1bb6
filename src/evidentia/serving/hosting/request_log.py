"""The log of a server: a line for every request at every door, and for whatever goes wrong, on stderr as JSON or as text.

A line has a time, a level, a request id and words of this program. Questions, documents, tokens, paths and the words of errors are
never in it; of an error its kind is told.
"""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TextIO

import msgspec
from starlette.routing import Route

from evidentia.serving.operations.api_errors import ApiError
from evidentia.serving.operations.registry import ENDPOINTS
from evidentia.serving.operations.request_facts import FACTS, HEADER, ID_BYTES, RequestFacts, answering, current_facts, id_given

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from evidentia.contracts.ports import Clock, Entropy
    from evidentia.contracts.settings import TelemetrySettings
    from evidentia.serving.operations.endpoint import Endpoint
    from evidentia.serving.operations.server_context import ServerContext

Given = ParamSpec("Given")

LOGGER: Final = "evidentia.access"
PASSED: Final = "evidentia.passed"
"""What marks a request that another process has passed on, and counts and logs."""
GONE: Final = 499
"""Told where nothing was answered: the client went away, or the process had to stop."""
DOORS: Final = (("/v1/", "rest"), ("/rpc", "rpc"), ("/mcp", "mcp"), ("/dashboard", "dashboard"))
COUNTED_BY_CALL: Final = ("rpc",)
"""Doors whose requests hold any number of calls: those are told, and of the requests only the ones that were refused whole."""
OTHER: Final = "other"
REFUSED: Final = 400
_FAILED: Final = 500
_PROBES: Final = ("/live", "/ready")
_NS_PER_MS: Final = 1_000_000
_OPERATIONS: Final = {(endpoint.method, endpoint.path): endpoint.name for endpoint in ENDPOINTS}
_LOGGERS: Final = ("evidentia", "uvicorn.error", "grpc", "asyncio")
"""Whose lines are written: ours, and those of the packages that answer for us."""

_log = logging.getLogger(LOGGER)


# --- lines ---


def begin_logging(settings: TelemetrySettings, *, stream: TextIO | None = None) -> None:
    """Write what is logged in this process to stderr from now on, where the settings ask for it; again is once."""
    if not settings.logs:
        return
    written = stream or sys.stderr
    is_text = settings.log_format == "text" or (settings.log_format == "auto" and written.isatty())
    handler = logging.StreamHandler(written)
    handler.setFormatter(_Lines(is_text=is_text))
    handler.addFilter(_of_this_request)
    level = getattr(logging, settings.log_level.upper())
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers = [each for each in logger.handlers if not isinstance(each.formatter, _Lines)] + [handler]
        logger.propagate = False
        # Other packages tell of their inner workings below a warning.
        logger.setLevel(level if name == "evidentia" else max(level, logging.WARNING))


def _of_this_request(record: logging.LogRecord) -> bool:
    """Take down to which request a line belongs, on the thread that logs it."""
    facts = current_facts()
    if facts is not None and not hasattr(record, "request_id"):
        record.request_id = facts.request_id
    return True


class _Lines(logging.Formatter):
    """One line for each record: JSON, or text for a terminal."""

    def __init__(self, *, is_text: bool) -> None:
        super().__init__()
        self._is_text = is_text

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; the words of an error are left out, since they may quote what was sent."""
        fields: Mapping[str, object] = getattr(record, "fields", {})
        message = str(fields.get("message", "")) or record.getMessage()
        kind = record.exc_info[0] if record.exc_info else None
        told = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": message,
            **({"request_id": record.request_id} if hasattr(record, "request_id") else {}),
            **{name: value for name, value in fields.items() if name != "message"},
            **({"error": kind.__name__} if kind is not None else {}),
            "process": record.process,
        }
        return _text(told) if self._is_text else msgspec.json.encode(told).decode()


def _text(told: Mapping[str, Any]) -> str:  # Any: whatever a line tells
    first = f"{told['time']} {told['level'].upper():<7} {told['message']}"
    rest = (
        f"{name}={value if isinstance(value, str) else msgspec.json.encode(value).decode()}"
        for name, value in told.items()
        if name not in {"time", "level", "message"} and value != ""
    )
    # A client names its own request, and a line is one line whatever a name holds.
    return " ".join((first, *rest)).encode("unicode_escape").decode("ascii")


# --- requests over HTTP ---


class RequestLogMiddleware:
    """An ASGI application that gives each request its id, tells the client which, and logs how it was answered."""

    def __init__(self, app: ASGIApp, *, clock: Clock, entropy: Entropy, is_on: bool) -> None:
        self._app = app
        self._elapsed_ns = clock.elapsed_ns
        self._entropy = entropy
        self._is_on = is_on

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = [(name, value) for name, value in scope["headers"] if name != HEADER.encode()]
        given = id_given((name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"])
        facts = RequestFacts(given or self._entropy.take(ID_BYTES).hex(), door=door_of(scope["path"]))
        # The process that a request is passed on to takes the id from where clients write theirs.
        known = {**scope, FACTS: facts, "headers": [*headers, (HEADER.encode(), facts.request_id.encode())]}
        with answering(facts):
            if PASSED in scope:
                await self._app(known, receive, send)
            else:
                await self._logged(known, receive, send, facts)

    async def _logged(self, scope: Scope, receive: Receive, send: Send, facts: RequestFacts) -> None:
        began_ns, status = self._elapsed_ns(), GONE

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                kept = [each for each in message.get("headers", ()) if each[0] != HEADER.encode()]
                message = {**message, "headers": [*kept, (HEADER.encode(), facts.request_id.encode())]}
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            facts.operation = facts.operation or operation_of(scope)
            if self._is_on and not (facts.door in COUNTED_BY_CALL and status < REFUSED):
                is_probe = scope["path"] in _PROBES
                client = scope["client"][0] if scope.get("client") else ""
                tell(facts, status, took_ns=self._elapsed_ns() - began_ns, client=client, method=scope["method"], is_quiet=is_probe)


def call_logged(
    answer: Callable[Concatenate[ServerContext, Endpoint, Given], Awaitable[bytes]],
) -> Callable[..., Coroutine[None, None, bytes]]:
    """Have each of several calls of one request logged; what is raised, or was raised before it, says how the call ended."""

    @wraps(answer)
    async def logged(context: ServerContext, endpoint: Endpoint, *given: Given.args, **named: Given.kwargs) -> bytes:
        facts, elapsed_ns = current_facts(), context.parts.clock.elapsed_ns
        began_ns, status = elapsed_ns(), GONE
        try:
            content = await answer(context, endpoint, *given, **named)
            status = 200
        except Exception as error:
            refusal = error.__cause__
            status = refusal.status if isinstance(refusal, ApiError) else 500
            raise
        finally:
            if facts is not None and context.served_base.settings.telemetry.logs:
                tell(facts, status, took_ns=elapsed_ns() - began_ns, operation=endpoint.name)
        return content

    return logged


def tell(
    facts: RequestFacts,
    status: int | str,
    *,
    took_ns: int,
    operation: str = "",
    is_quiet: bool = False,
    level: int | None = None,
    **more: object,
) -> None:
    """Log how a request was answered: a refusal as a warning, a fault of ours as an error."""
    if level is None:
        number = status if isinstance(status, int) else 0
        level = logging.ERROR if number >= _FAILED else logging.WARNING if number >= REFUSED else logging.INFO
    level = logging.DEBUG if is_quiet and level == logging.INFO else level
    if _log.isEnabledFor(level):
        fields = {
            "message": "request answered",
            "door": facts.door,
            "operation": operation or facts.operation,
            "status": status,
            "duration_ms": round(took_ns / _NS_PER_MS, 3),
            "token_id": facts.token_id,
            **more,
        }
        _log.log(level, "request answered", extra={"fields": fields, "request_id": facts.request_id})


def door_of(path: str) -> str:
    """Return the door that a path leads to."""
    return next((door for start, door in DOORS if path == start or path.startswith(f"{start.rstrip('/')}/")), OTHER)


def operation_of(scope: Scope) -> str:
    """Return the operation that a request was for; empty where it is none of the registry."""
    route = scope.get("route")
    path = route.path if isinstance(route, Route) else ""
    method = "GET" if scope["method"] == "HEAD" else scope["method"]
    return _OPERATIONS.get((method, path), "")
