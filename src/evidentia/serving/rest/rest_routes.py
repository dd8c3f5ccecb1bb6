"""Every operation under its path: one way in, and one way to refuse."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.routing import Route

from evidentia.contracts.control import Health
from evidentia.serving.identity.host_check import client_of
from evidentia.serving.operations.api_errors import INTERNAL, MALFORMED, NOT_ALLOWED, NOT_FOUND, ApiError
from evidentia.serving.operations.endpoint import Endpoint, OperationRequest, Reply, read_query
from evidentia.serving.operations.execution import perform
from evidentia.serving.operations.registry import ENDPOINTS
from evidentia.serving.operations.request_decoding import decode_body
from evidentia.serving.rest.http_exchange import encode, json_response, read_body, refused, streamed
from evidentia.serving.rest.openapi import openapi_document

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.responses import Response

    from evidentia.serving.operations.server_context import ServerContext

HEALTH: Final = "/v1/health"
OPENAPI: Final = "/v1/openapi.json"
OPEN_PATHS: Final = (HEALTH, OPENAPI)
"""What anybody may read."""


def rest_routes(context: ServerContext) -> list[Route]:
    """Return the routes of every operation, and of what describes them."""
    by_path: dict[str, dict[str, Endpoint]] = {}
    for endpoint in ENDPOINTS:
        by_path.setdefault(endpoint.path, {})[endpoint.method] = endpoint
    return [
        _fixed(HEALTH, Health(status="ok", version=context.parts.version)),
        _fixed(OPENAPI, _description(context.parts.version)),
        *(Route(path, _door(context, methods), methods=list(methods)) for path, methods in by_path.items()),
    ]


@cache  # 40 ms of reading types, the same for every application of a process
def _description(version: str) -> object:
    return openapi_document(ENDPOINTS, version=version)


async def refuse_route(_: Request, error: Exception) -> Response:
    """Answer for a path or a method that is not there."""
    status = error.status_code if isinstance(error, HTTPException) else INTERNAL
    headers: Mapping[str, str] = (error.headers if isinstance(error, HTTPException) else None) or {}
    if status == NOT_ALLOWED:
        message = f"this path takes {headers.get('Allow', 'other methods')}"
        return refused(ApiError(status, "method_not_allowed", message, hint=f"see {OPENAPI}", headers=headers))
    code = "not_found" if status == NOT_FOUND else "refused"
    return refused(ApiError(status, code, "there is nothing at this path", hint=f"see {OPENAPI}", headers=headers))


def _door(context: ServerContext, methods: Mapping[str, Endpoint]) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        endpoint = methods["GET" if request.method == "HEAD" else request.method]
        try:
            read = await _request_reader(context, endpoint, request)
            if endpoint.is_stream:
                return await streamed(context, endpoint, read, request)
            return _success(endpoint, await perform(context, endpoint, read))
        except ApiError as refusal:
            return refused(refusal)
        except ClientDisconnect:
            return refused(ApiError(MALFORMED, "incomplete_body", "the body ended too early", hint="send it again"))

    return answer


async def _request_reader(context: ServerContext, endpoint: Endpoint, request: Request) -> Callable[[], OperationRequest]:
    """Return what reads the rest of a request: who asks is known by then, and the body is here but not yet decoded."""
    identity = await context.admission.admit(request.headers.get("authorization", ""), endpoint, client=client_of(request))
    query = read_query(request.query_params.multi_items(), endpoint.query)
    raw = None if endpoint.request is None else await read_body(request, max_bytes=endpoint.max_bytes)
    if_match = request.headers.get("if-match")
    return lambda: OperationRequest(identity, request.path_params, query, None if raw is None else decode_body(raw, endpoint), if_match)


def _fixed(path: str, message: object) -> Route:
    """Return a route that always says the same, to everybody."""
    content = encode(message)

    async def answer(_: Request) -> Response:
        return json_response(200, content, {})

    return Route(path, answer, methods=["GET"])


def _success(endpoint: Endpoint, reply: Reply) -> Response:
    return json_response(reply.status or endpoint.status, encode(reply.message), reply.headers)
