"""Every operation under its path: one way in, and one way to refuse."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.routing import Route

from evidentia.contracts.control import NAME_PATTERN, FaultReply, Health
from evidentia.contracts.vocabulary import Vocabulary
from evidentia.serving.identity.host_check import client_of
from evidentia.serving.operations.api_errors import (
    FORBIDDEN,
    INTERNAL,
    MALFORMED,
    NOT_ALLOWED,
    NOT_FOUND,
    TOO_LARGE,
    TOO_MANY,
    UNAUTHORIZED,
    UNAVAILABLE,
    UNPROCESSABLE,
    WRONG_TYPE,
    ApiError,
)
from evidentia.serving.operations.endpoint import Endpoint, OperationRequest, Reply, read_query
from evidentia.serving.operations.execution import disconnected, perform
from evidentia.serving.operations.registry import ENDPOINTS
from evidentia.serving.operations.request_decoding import decode_body, refuse_crowded_aside
from evidentia.serving.rest.http_exchange import EVENTS, LINES, encode, json_response, read_body, refused, streamed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from starlette.responses import Response

    from evidentia.contracts.operations import QueryField
    from evidentia.serving.identity.admission import Identity
    from evidentia.serving.identity.pools import Holding
    from evidentia.serving.operations.endpoint import Endpoint
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
        left: asyncio.Future[None] | None = None
        try:
            identity = await context.admission.admit(request.headers.get("authorization", ""), endpoint, client=client_of(request))
            async with context.admission.pools.entered(identity.token.token_id) as body:
                read = await _request_reader(endpoint, request, identity, body)
                left = asyncio.ensure_future(disconnected(request.receive))
                if endpoint.is_stream:
                    place = context.admission.pools.streams.holding(identity.token.token_id, 1)
                    return await streamed(context, endpoint, read, request, place=place, left=left)
                return _success(endpoint, await perform(context, endpoint, read, left=left))
        except ApiError as refusal:
            return refused(refusal)
        except ClientDisconnect:
            return refused(ApiError(MALFORMED, "incomplete_body", "the body ended too early", hint="send it again"))
        finally:
            if left is not None:
                left.cancel()

    return answer


async def _request_reader(endpoint: Endpoint, request: Request, identity: Identity, body: Holding) -> Callable[[], OperationRequest]:
    """Return what reads the rest of a request: the body is here by then, but not yet decoded."""
    query = read_query(request.query_params.multi_items(), endpoint.query)
    raw = None if endpoint.request is None else await read_body(request, max_bytes=endpoint.max_bytes, body=body)
    if raw is not None:
        await refuse_crowded_aside(raw, endpoint.max_bytes)
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


# --- OpenAPI ---
# The OpenAPI 3.1 description of the plane, made from its endpoints and the schemas of the contracts.

Part = dict[str, Any]  # Any: a part of an OpenAPI document

_REFERENCE: Final = "#/components/schemas/{name}"
_ALWAYS: Final = (UNAUTHORIZED, FORBIDDEN, UNPROCESSABLE, TOO_MANY, INTERNAL, UNAVAILABLE)
_WITH_BODY: Final = (MALFORMED, TOO_LARGE, WRONG_TYPE)
_MEANING: Final[Mapping[int, str]] = {
    400: "The body is not JSON.",
    401: "There is no token, or none that holds.",
    403: "The token's role does not allow it.",
    404: "It is not there, or belongs to another tenant.",
    409: "It does not fit what is there.",
    412: "Another version is in force than the one in If-Match.",
    413: "The body is too large.",
    415: "The body is not JSON by its header.",
    422: "A field cannot be right; each is named.",
    429: "Too much is asked at once, or too many runs are open.",
    500: "A fault of the plane's own.",
    502: "Something that the base depends on gave no answer.",
    503: "The base cannot be used now.",
}


def openapi_document(endpoints: Sequence[Endpoint], *, version: str) -> Part:
    """Return the description; the same for the same endpoints."""
    kinds = [each for endpoint in endpoints for each in (endpoint.reply, endpoint.request) if each is not None]
    unique = list(dict.fromkeys([FaultReply, Health, *kinds]))
    schemas, components = msgspec.json.schema_components(unique, ref_template=_REFERENCE)
    known = dict(zip(unique, schemas, strict=True))
    _loosen(components)
    paths: dict[str, Part] = {
        "/v1/health": {"get": _open_operation("health", "Say that the plane is up", known[Health])},
        "/v1/openapi.json": {"get": _open_operation("openapi", "This description", {"type": "object"})},
    }
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, known)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Evidentia", "version": version, "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"}},
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "security": [{"bearer": []}],
        "paths": {path: paths[path] for path in sorted(paths)},
        "components": {
            "schemas": {name: components[name] for name in sorted(components)},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _loosen(components: Mapping[str, Part]) -> None:
    """Leave to the plane what a client may leave out: it gives a run an id."""
    facts = components["RunFacts"]
    facts["required"] = [name for name in facts["required"] if name != "run_id"]


def _operation(endpoint: Endpoint, known: Mapping[object, Part]) -> Part:
    operation: Part = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "description": f"{endpoint.description} Roles: {', '.join(role.value for role in endpoint.roles)}.",
        "tags": [endpoint.path.split("/")[2]],
        "responses": _responses(endpoint, known),
    }
    parameters = [*map(_path_parameter, endpoint.path_names), *map(_query_parameter, endpoint.query)]
    if endpoint.has_version and endpoint.method in {"PUT", "PATCH", "DELETE"}:
        about = "The ETag of the version that may be replaced; without it, whichever is in force."
        parameters.append({"name": "If-Match", "in": "header", "required": False, "description": about, "schema": {"type": "string"}})
    if parameters:
        operation["parameters"] = parameters
    if endpoint.request is not None:
        operation["requestBody"] = {"required": True, "content": _json_content(known[endpoint.request])}
    return operation


def _responses(endpoint: Endpoint, known: Mapping[object, Part]) -> Part:
    schema: Part = {"type": "object"} if endpoint.reply is None else known[endpoint.reply]
    content = {LINES: {"schema": schema}, EVENTS: {"schema": {"type": "string"}}} if endpoint.is_stream else _json_content(schema)
    success: Part = {"description": "One part a line." if endpoint.is_stream else "Done.", "content": content}
    if endpoint.has_version:
        success["headers"] = {"ETag": {"description": "The version, in quotes.", "schema": {"type": "string"}}}
    responses = {str(endpoint.status): success}
    if endpoint.name == "start_run":
        responses["200"] = {**success, "description": "The very same request began this run before."}
    refused = {*_ALWAYS, *endpoint.refusals, *(_WITH_BODY if endpoint.request is not None else ())}
    for status in sorted(refused):
        responses[str(status)] = {"description": _MEANING[status], "content": _json_content(known[FaultReply])}
    return dict(sorted(responses.items()))


def _open_operation(name: str, about: str, schema: Part) -> Part:
    responses = {"200": {"description": "Done.", "content": _json_content(schema)}}
    return {"operationId": name, "summary": about, "tags": ["plane"], "security": [], "responses": responses}


def _json_content(schema: Part) -> Part:
    return {"application/json": {"schema": schema}}


def _path_parameter(name: str) -> Part:
    schema: Part = {"type": "integer", "minimum": 1} if name == "seq" else {"type": "string", "minLength": 1}
    if name == "name":
        schema["pattern"] = NAME_PATTERN
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _query_parameter(field: QueryField) -> Part:
    schema: Part = {"type": "string", "minLength": 1, "maxLength": field.most_chars}
    if field.kind is int:
        schema = {"type": "integer", "minimum": field.least, "maximum": field.most}
    elif field.kind is bool:
        schema = {"type": "boolean"}
    elif issubclass(field.kind, Vocabulary):
        schema = {"type": "string", "enum": list(field.kind.words())}
    if field.default is not None:
        schema["default"] = field.default
    return {"name": field.name, "in": "query", "required": False, "description": field.about, "schema": schema}
