"""The OpenAPI 3.1 description of the plane, made from its endpoints and the schemas of the contracts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from evidentia.contracts.control import NAME_PATTERN, FaultReply, Health
from evidentia.contracts.vocabulary import Vocabulary
from evidentia.serving.operations.api_errors import (
    FORBIDDEN,
    INTERNAL,
    MALFORMED,
    TOO_LARGE,
    TOO_MANY,
    UNAUTHORIZED,
    UNAVAILABLE,
    UNPROCESSABLE,
    WRONG_TYPE,
)
from evidentia.serving.rest.http_exchange import EVENTS, LINES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evidentia.contracts.operations import QueryField
    from evidentia.serving.operations.endpoint import Endpoint

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
