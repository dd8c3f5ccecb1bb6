"""The message in a body, or what is wrong with it, field by field."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from evidentia.serving.operations.api_errors import MALFORMED, ApiError, shape_refusal

if TYPE_CHECKING:
    from evidentia.serving.operations.endpoint import Endpoint


def decode_body(raw: bytes, endpoint: Endpoint) -> Any:  # noqa: ANN401 - the message that the endpoint names
    """Return the message in a body, or say what is wrong with it."""
    kind = endpoint.reads or endpoint.body
    try:
        return _decoder(kind).decode(raw)
    except msgspec.ValidationError as error:
        raise shape_refusal(error, names=_names(endpoint.body)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        message = f"the body is not JSON ({type(error).__name__})"
        raise ApiError(MALFORMED, "malformed_json", message, hint="send one JSON object in UTF-8") from None


@cache
def _decoder(kind: object) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


@cache
def _names(kind: object) -> tuple[str, ...]:
    """Return the names of all fields of a message and of what it holds."""
    (_, *_), components = msgspec.json.schema_components([kind])
    names = {name for schema in components.values() for name in schema.get("properties", {})}
    return tuple(sorted(names))
