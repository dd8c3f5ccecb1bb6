"""The control plane as an ASGI application: every endpoint under its path, one way in and one way to refuse."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Final

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Route

from evidentia.contracts.control import FaultReply, Health
from evidentia.contracts.errors import EvidentiaError
from evidentia.serving.rest import admin_endpoints, decision_endpoints, policy_endpoints, run_endpoints
from evidentia.serving.rest.asking import Asked, read_query
from evidentia.serving.rest.open_runs import IDLE_NS, MOST_OPEN, OpenRuns
from evidentia.serving.rest.openapi import openapi_document
from evidentia.serving.rest.plane import Plane
from evidentia.serving.rest.receiving import admit, decode_body, read_body
from evidentia.serving.rest.refusals import INTERNAL, MALFORMED, NOT_ALLOWED, NOT_FOUND, Refusal, refusal_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

    from evidentia.serving.rest.asking import Endpoint, Reply
    from evidentia.serving.rest.parts import ControlParts

ENDPOINTS: Final = (
    *policy_endpoints.ENDPOINTS,
    *run_endpoints.ENDPOINTS,
    *decision_endpoints.ENDPOINTS,
    *admin_endpoints.ENDPOINTS,
)
SWEEP_S: Final = 30
_HEADERS: Final = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}

_log = logging.getLogger(__name__)
_encode = msgspec.json.Encoder(order="deterministic").encode


def make_app(parts: ControlParts, *, most_open: int = MOST_OPEN, idle_ns: int = IDLE_NS, sweep_s: float = SWEEP_S) -> Starlette:
    """Return the application; whoever made the parts closes them after it has shut down."""
    plane = Plane(parts=parts, runs=OpenRuns(clock=parts.clock, most_open=most_open, idle_ns=idle_ns))
    routes = [
        _fixed("/v1/health", Health(status="ok", version=parts.version)),
        _fixed("/v1/openapi.json", openapi_document(ENDPOINTS, version=parts.version)),
        *_routes(plane),
    ]
    app = Starlette(
        routes=routes,
        exception_handlers={HTTPException: _refuse_route},
        lifespan=lambda _: _living(plane, sweep_s=sweep_s),
    )
    app.router.redirect_slashes = False
    app.add_middleware(_Trimmed)
    return app


class _Trimmed:
    """Lets every path be written with a slash at its end."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if scope["type"] == "http" and len(path) > 1 and path.endswith("/"):
            scope = {**scope, "path": path[:-1]}
        await self._app(scope, receive, send)


@contextlib.asynccontextmanager
async def _living(plane: Plane, *, sweep_s: float) -> AsyncIterator[None]:
    """Close runs of which nobody speaks while the plane is up, and all of them when it goes down."""

    async def sweep() -> None:
        while True:
            await asyncio.sleep(sweep_s)
            await run_in_threadpool(plane.runs.close_idle)

    sweeping = asyncio.create_task(sweep())
    try:
        yield
    finally:
        sweeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await sweeping
        await run_in_threadpool(plane.runs.close_all)


def _routes(plane: Plane) -> list[Route]:
    by_path: dict[str, dict[str, Endpoint]] = {}
    for endpoint in ENDPOINTS:
        by_path.setdefault(endpoint.path, {})[endpoint.method] = endpoint
    return [Route(path, _door(plane, methods), methods=list(methods)) for path, methods in by_path.items()]


def _door(plane: Plane, methods: Mapping[str, Endpoint]) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        endpoint = methods["GET" if request.method == "HEAD" else request.method]
        try:
            return _success(endpoint, await _work(plane, endpoint, request))
        except Refusal as refusal:
            return _failure(refusal)
        except EvidentiaError as error:
            return _failure(refusal_of(error))
        except ClientDisconnect:
            return _failure(Refusal(MALFORMED, "incomplete_body", "the body ended too early", hint="send it again"))
        except Exception as error:  # noqa: BLE001 - whatever went wrong, nobody outside reads a stack trace
            return _failure(_internal(endpoint, error))

    return answer


async def _work(plane: Plane, endpoint: Endpoint, request: Request) -> Reply:
    """Do what is asked: who, what exactly, with which body, and then the work itself, on a thread."""
    token = await admit(request, endpoint, plane.parts.tokens)
    query = read_query(request.query_params.multi_items(), endpoint.query)
    raw = None if endpoint.body is None else await read_body(request)
    if_match = request.headers.get("if-match")

    def work() -> Reply:
        body = None if raw is None else decode_body(raw, endpoint)
        return endpoint.answer(plane, Asked(token, request.path_params, query, body, if_match))

    return await run_in_threadpool(work)


def _fixed(path: str, message: object) -> Route:
    """Return a route that always says the same, to everybody."""
    content = _encode(message)

    async def answer(_: Request) -> Response:
        return _json(200, content, {})

    return Route(path, answer, methods=["GET"])


async def _refuse_route(_: Request, error: Exception) -> Response:
    """Answer for a path or a method that is not there."""
    status = error.status_code if isinstance(error, HTTPException) else INTERNAL
    headers: Mapping[str, str] = (error.headers if isinstance(error, HTTPException) else None) or {}
    if status == NOT_ALLOWED:
        message = f"this path takes {headers.get('Allow', 'other methods')}"
        return _failure(Refusal(status, "method_not_allowed", message, hint="see /v1/openapi.json", headers=headers))
    code = "not_found" if status == NOT_FOUND else "refused"
    return _failure(Refusal(status, code, "there is nothing at this path", hint="see /v1/openapi.json", headers=headers))


def _success(endpoint: Endpoint, reply: Reply) -> Response:
    return _json(reply.status or endpoint.status, _encode(reply.message), reply.headers)


def _failure(refusal: Refusal) -> Response:
    return _json(refusal.status, _encode(FaultReply(error=refusal.fault)), refusal.headers)


def _json(status: int, content: bytes, headers: Mapping[str, str]) -> Response:
    return Response(content, status, headers={**_HEADERS, **headers}, media_type="application/json")


def _internal(endpoint: Endpoint, error: Exception) -> Refusal:
    """Return the refusal for a fault of our own; the log says what and where, and never what was sent."""
    _log.error("endpoint failed: %s raised %s at %s", endpoint.operation, type(error).__name__, _place_of(error))
    hint = "try again; if it stays, see the log of the plane"
    return Refusal(INTERNAL, "internal", "something went wrong inside the plane", hint=hint)


def _place_of(error: Exception) -> str:
    """Return the file and line that raised."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return "" if last is None else f"{last.tb_frame.f_code.co_filename}:{last.tb_lineno}"
