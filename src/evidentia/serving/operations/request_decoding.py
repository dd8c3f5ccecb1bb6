"""The message in a body, or what is wrong with it, field by field."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import msgspec
from starlette.concurrency import run_in_threadpool

from evidentia.contracts.decoding import convert, decode_json, has_more_values
from evidentia.contracts.doors import EvidenceAsk
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.evidence import DecomposedQuery, EvidenceRequest
from evidentia.contracts.operations import MAX_BYTES
from evidentia.contracts.shapes import unknown_field
from evidentia.contracts.vocabulary import Vocabulary
from evidentia.engine.request_checks import request_from
from evidentia.serving.operations.api_errors import MALFORMED, TOO_LARGE, ApiError, bad_field, nearest, shape_refusal
from evidentia.serving.operations.endpoint import Endpoint, OperationRequest, read_query

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evidentia.contracts.operations import QueryField
    from evidentia.serving.identity.admission import Identity


def decode_body(raw: bytes, endpoint: Endpoint) -> Any:  # noqa: ANN401 - the message that the endpoint names
    """Return the message in a body, or say what is wrong with it."""
    refuse_crowded(raw, max_values_of(endpoint.max_bytes))
    kind = endpoint.reads or endpoint.request
    try:
        body = decode_json(raw, kind)
    except msgspec.ValidationError as error:
        raise shape_refusal(error, kind, names=_names(endpoint.request)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        message = f"the body is not JSON ({type(error).__name__})"
        raise ApiError(MALFORMED, "malformed_json", message, hint="send one JSON object in UTF-8") from None
    if endpoint.reads is None and endpoint.max_bytes <= MAX_BYTES:  # larger ones carry documents, or an answer to be checked
        refuse_unknown(msgspec.json.decode(raw), kind)
    return body


def refuse_unknown(value: object, kind: object) -> None:
    """Refuse a field that a message does not have, wherever in it: what is not set by it must not look as if it were."""
    found = unknown_field(value, kind)
    if found:
        name = found.rpartition(".")[2]
        raise bad_field(found, "there is no such field, or the server sets it; leave it out", suggestion=nearest(name, _names(kind)))


MAX_VALUES: Final = 500_000
"""Of any body."""
_USUAL_VALUES: Final = 20_000
_BYTES_PER_VALUE: Final = 32
_LONG_BYTES: Final = 64 << 10


def max_values_of(max_bytes: int) -> int:
    """Return how many values a body of so many bytes may hold: many more than any that is meant to be read."""
    return min(MAX_VALUES, _USUAL_VALUES + max_bytes // _BYTES_PER_VALUE)


def refuse_crowded(raw: bytes, max_values: int) -> None:
    """Refuse JSON of too many values before any of them takes memory."""
    if has_more_values(raw, max_values):
        message = f"the body holds more than {max_values} values"
        raise ApiError(TOO_LARGE, "too_many_values", message, hint="send fewer list entries and fields at once")


async def refuse_crowded_aside(raw: bytes, max_bytes: int) -> None:
    """Do the same for a body of an operation before it is decoded, on a thread where it is long: others wait for the event loop."""
    if len(raw) > _LONG_BYTES:
        await run_in_threadpool(refuse_crowded, raw, max_values_of(max_bytes))


@cache
def _names(kind: object) -> tuple[str, ...]:
    """Return the names of all fields of a message and of what it holds."""
    (_, *_), components = msgspec.json.schema_components([kind])
    names = {name for schema in components.values() for name in schema.get("properties", {})}
    return tuple(sorted(names))


# --- requests ---
# A question as it was sent, read strictly: an unknown or wrong field is named, as a local base names it.


def read_request(given: Mapping[str, Any]) -> EvidenceRequest:  # Any: whatever was sent; that is what is checked
    """Return the request in an object whose `query` is a text, or a text with the parts it was split into.

    Raises:
        InvalidFieldError: A field is unknown, missing or cannot be right; it is named.
    """
    if "query" not in given:
        raise InvalidFieldError("query", "it is missing")
    found = unknown_field(dict(given), EvidenceAsk)
    if found:
        raise InvalidFieldError(found, "a request has no such field")
    fields = {name: value for name, value in given.items() if name != "query"}
    query = given["query"]
    if isinstance(query, str):
        return request_from(query, fields)
    try:
        decomposed = convert(query, DecomposedQuery)
    except msgspec.ValidationError as error:
        told = shape_refusal(error, DecomposedQuery, names=DecomposedQuery.__struct_fields__, within="query").fault.problems[0]
        raise InvalidFieldError(told.path or "query", told.problem) from error
    return msgspec.structs.replace(request_from(decomposed.text, fields), query=decomposed)


# --- flat ---
# An operation as one message: what stands in the path, after the question mark and in the body, in one object by name.
#
# JSON-RPC and gRPC ask this way. The message is made from the endpoint, so a new operation needs nothing here.

IF_MATCH: Final = "if_match"
_EMPTY: Final = (b"", b"null")
_TRUTHS: Final = {True: "true", False: "false"}
_Field = tuple[str, Any] | tuple[str, Any, Any]  # Any: a name, the type of its values, and what it is when it is left out


class Flat(NamedTuple):
    """How one operation is asked for with one message."""

    endpoint: Endpoint
    message: type[msgspec.Struct]
    names: frozenset[str]
    """Those that stand in the path, after the question mark, or in a header; the others are the body's."""


@cache
def flat_of(endpoint: Endpoint) -> Flat:
    """Return how an operation is asked for with one message, called `OperationRequest`."""
    fields: list[_Field] = [(name, _path_type(name)) for name in endpoint.path_names]
    fields += [(field.name, _query_type(field), field.default) for field in endpoint.query]
    if endpoint.has_version and endpoint.method != "GET":
        fields.append((IF_MATCH, str | None, None))
    names = frozenset(field[0] for field in fields)
    fields += _body_fields(endpoint)
    message = msgspec.defstruct(
        f"{camel(endpoint.name)}Request",
        fields,
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
        omit_defaults=True,
        module=__name__,
    )
    message.__doc__ = endpoint.summary + "."
    return Flat(endpoint, message, names)


def decode_flat(endpoint: Endpoint, raw: bytes, identity: Identity) -> OperationRequest:
    """Return what somebody wants by the JSON of the one message; what is wrong is refused as REST refuses it."""
    refuse_crowded(raw, max_values_of(endpoint.max_bytes))
    flat = flat_of(endpoint)
    given = _members(raw)
    outside = {name: msgspec.json.decode(given.pop(name)) for name in list(given) if name in flat.names}
    path = {name: _text(outside.pop(name, None), name) for name in endpoint.path_names}
    if_match = outside.pop(IF_MATCH, None)
    query = read_query([(name, _text(value, name)) for name, value in outside.items() if value is not None], endpoint.query)
    if endpoint.request is None and given:
        name = min(given)
        raise bad_field(name, "there is no such parameter", suggestion=nearest(name, sorted(flat.names)))
    body = None if endpoint.request is None else decode_body(msgspec.json.encode(given), endpoint)
    return OperationRequest(identity, path, query, body, None if if_match is None else _text(if_match, IF_MATCH))


def camel(operation: str) -> str:
    """Return an operation's name as gRPC and schemas spell it: `list_runs` is `ListRuns`."""
    return "".join(part.capitalize() for part in operation.split("_"))


def _members(raw: bytes) -> dict[str, msgspec.Raw]:
    if raw in _EMPTY:
        return {}
    try:
        return decode_json(raw, dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        message = f"the parameters are no JSON object ({type(error).__name__})"
        raise ApiError(MALFORMED, "malformed_json", message, hint="send one JSON object in UTF-8, parameters by name") from None


def _text(value: object, name: str) -> str:
    """Return a value as it would stand in an address."""
    if isinstance(value, bool):
        return _TRUTHS[value]
    if isinstance(value, int | str) and value != "":
        return str(value)
    raise bad_field(name, "it is missing" if value is None else "write a word or a whole number")


def _path_type(name: str) -> object:
    return Annotated[int, msgspec.Meta(ge=1)] if name == "seq" else Annotated[str, msgspec.Meta(min_length=1)]


def _query_type(field: QueryField) -> object:
    if field.kind is int:
        return Annotated[int, msgspec.Meta(ge=field.least, le=field.most)] | None
    if field.kind is bool or issubclass(field.kind, Vocabulary):
        return field.kind | None
    return Annotated[str, msgspec.Meta(min_length=1, max_length=field.most_chars)] | None


def _body_fields(endpoint: Endpoint) -> list[_Field]:
    body = endpoint.request
    if body is None:
        return []
    if not (isinstance(body, type) and issubclass(body, msgspec.Struct)):
        raise TypeError(f"the body of '{endpoint.name}' is no message with fields")
    return [_like(field) for field in msgspec.structs.fields(body)]


def _like(field: msgspec.structs.FieldInfo) -> _Field:
    """Return a field with the type and the default of another."""
    if field.default_factory is not msgspec.NODEFAULT:
        return field.encode_name, field.type, msgspec.field(default_factory=field.default_factory)
    if field.default is not msgspec.NODEFAULT:
        return field.encode_name, field.type, field.default
    return field.encode_name, field.type
