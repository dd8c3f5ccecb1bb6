"""The OpenRPC 1.3 description of the methods, made from the operations and the schemas of the contracts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from evidentia.contracts.control import Fault
from evidentia.serving.jsonrpc import dispatch
from evidentia.serving.operations.request_decoding import IF_MATCH, flat_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evidentia.serving.operations.endpoint import Endpoint

Part = dict[str, Any]  # Any: a part of an OpenRPC document

OPENRPC: Final = "1.3.2"
_REFERENCE: Final = "#/components/schemas/{name}"
_ALWAYS: Final = (
    dispatch.INVALID_PARAMS,
    dispatch.INTERNAL_ERROR,
    dispatch.UNAUTHORIZED,
    dispatch.FORBIDDEN,
    dispatch.TOO_LARGE,
    dispatch.TOO_MANY,
    dispatch.UNAVAILABLE,
)
_IF_MATCH: Final = "The version that may be replaced, in quotes; without it, whichever is in force."


def openrpc_document(endpoints: Sequence[Endpoint], *, version: str) -> Part:
    """Return the description; the same for the same endpoints. Those that answer in parts are not offered, and not described."""
    offered = sorted((each for each in endpoints if not each.is_stream), key=lambda each: each.name)
    requests = {each.name: flat_of(each).message for each in offered}
    replies = [each.reply for each in offered if each.reply is not None]
    kinds = list(dict.fromkeys([Fault, *replies, *requests.values()]))
    schemas, components = msgspec.json.schema_components(kinds, ref_template=_REFERENCE)
    known = dict(zip(kinds, schemas, strict=True))
    _loosen(components)
    messages = {operation: components.pop(request.__name__) for operation, request in requests.items()}
    errors = {str(code): _error(code, known[Fault]) for code in sorted(dispatch.MEANINGS)}
    return {
        "openrpc": OPENRPC,
        "info": {
            "title": "Evidentia",
            "version": version,
            "license": {"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
        },
        "servers": [{"name": "This plane", "url": "/rpc"}],
        "methods": [_method(each, messages[each.name], known) for each in offered],
        "components": {"schemas": {name: components[name] for name in sorted(components)}, "errors": errors},
    }


def _loosen(components: Mapping[str, Part]) -> None:
    """Leave to the plane what a client may leave out: it gives a run an id."""
    facts = components.get("RunFacts", {})
    facts["required"] = [name for name in facts.get("required", ()) if name != "run_id"]


def _method(endpoint: Endpoint, message: Part, known: Mapping[object, Part]) -> Part:
    about = {field.name: field.about for field in endpoint.query} | {IF_MATCH: _IF_MATCH}
    required = message.get("required", ())
    params = [_param(name, schema, about.get(name, ""), is_required=name in required) for name, schema in message["properties"].items()]
    reply: Part = {"type": "object"} if endpoint.reply is None else known[endpoint.reply]
    failing = sorted({*_ALWAYS, *(dispatch.CODE_OF[status] for status in endpoint.refusals)})
    return {
        "name": endpoint.name,
        "summary": endpoint.summary,
        "description": f"{endpoint.description} Roles: {', '.join(role.value for role in endpoint.roles)}.",
        "tags": [{"name": endpoint.group.value}],
        "paramStructure": "by-name",
        "params": sorted(params, key=lambda param: not param["required"]),
        "result": {"name": "result", "schema": reply},
        "errors": [{"$ref": f"#/components/errors/{code}"} for code in failing],
    }


def _param(name: str, schema: Part, about: str, *, is_required: bool) -> Part:
    told = {"description": about} if about else {}
    return {"name": name, **told, "required": is_required, "schema": schema}


def _error(code: int, fault: Part) -> Part:
    return {"code": code, "message": dispatch.MEANINGS[code], "data": fault}
