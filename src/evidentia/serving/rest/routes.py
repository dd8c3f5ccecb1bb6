"""Every operation under its path: one way in, and one way to refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Route

from evidentia.contracts.control import Health
from evidentia.serving.identity.hosts import client_of
from evidentia.serving.operations.asking import Asked, read_query
from evidentia.serving.operations.bodies import decode_body
from evidentia.serving.operations.performing import perform
from evidentia.serving.operations.refusals import INTERNAL, MALFORMED, NOT_ALLOWED, NOT_FOUND, Refusal
from evidentia.serving.operations.registry import ENDPOINTS
from evidentia.serving.rest.openapi import openapi_document
from evidentia.serving.rest.receiving import read_body
from evidentia.serving.rest.responding import encode, json_response, refused
from evidentia.serving.rest.streaming import streamed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from evidentia.serving.operations.asking import Endpoint, Reply
    from evidentia.serving.operations.plane import Plane

HEALTH: Final = "/v1/health"
OPENAPI: Final = "/v1/openapi.json"
OPEN_PATHS: Final = (HEALTH, OPENAPI)
"""What anybody may read."""


def rest_routes(plane: Plane) -> list[Route]:
    """Return the routes of every operation, and of what describes them."""
    by_path: dict[str, dict[str, Endpoint]] = {}
    for endpoint in ENDPOINTS:
        by_path.setdefault(endpoint.path, {})[endpoint.method] = endpoint
    return [
        _fixed(HEALTH, Health(status="ok", version=plane.parts.version)),
        _fixed(OPENAPI, openapi_document(ENDPOINTS, version=plane.parts.version)),
        *(Route(path, _door(plane, methods), methods=list(methods)) for path, methods in by_path.items()),
    ]


async def refuse_route(_: Request, error: Exception) -> Response:
    """Answer for a path or a method that is not there."""
    status = error.status_code if isinstance(error, HTTPException) else INTERNAL
    headers: Mapping[str, str] = (error.headers if isinstance(error, HTTPException) else None) or {}
    if status == NOT_ALLOWED:
        message = f"this path takes {headers.get('Allow', 'other methods')}"
        return refused(Refusal(status, "method_not_allowed", message, hint=f"see {OPENAPI}", headers=headers))
    code = "not_found" if status == NOT_FOUND else "refused"
    return refused(Refusal(status, code, "there is nothing at this path", hint=f"see {OPENAPI}", headers=headers))


def _door(plane: Plane, methods: Mapping[str, Endpoint]) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        endpoint = methods["GET" if request.method == "HEAD" else request.method]
        try:
            ask = await _asked(plane, endpoint, request)
            if endpoint.is_stream:
                return await streamed(plane, endpoint, ask, request)
            return _success(endpoint, await perform(plane, endpoint, ask))
        except Refusal as refusal:
            return refused(refusal)
        except ClientDisconnect:
            return refused(Refusal(MALFORMED, "incomplete_body", "the body ended too early", hint="send it again"))

    return answer


async def _asked(plane: Plane, endpoint: Endpoint, request: Request) -> Callable[[], Asked]:
    """Return what reads the rest of a request: who asks is known by then, and the body is here but not yet decoded."""
    identity = await plane.admission.admit(request.headers.get("authorization", ""), endpoint, client=client_of(request))
    query = read_query(request.query_params.multi_items(), endpoint.query)
    raw = None if endpoint.body is None else await read_body(request, most_bytes=endpoint.most_bytes)
    if_match = request.headers.get("if-match")
    return lambda: Asked(identity, request.path_params, query, None if raw is None else decode_body(raw, endpoint), if_match)


def _fixed(path: str, message: object) -> Route:
    """Return a route that always says the same, to everybody."""
    content = encode(message)

    async def answer(_: Request) -> Response:
        return json_response(200, content, {})

    return Route(path, answer, methods=["GET"])


def _success(endpoint: Endpoint, reply: Reply) -> Response:
    return json_response(reply.status or endpoint.status, encode(reply.message), reply.headers)
