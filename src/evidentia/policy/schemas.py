"""JSON Schema of policies, each message written out in place, so that a form can be drawn from one part of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from evidentia.contracts.policies import PolicyBody

if TYPE_CHECKING:
    from collections.abc import Mapping

Schema = dict[str, Any]  # Any: JSON Schema

_REFERENCE = "#/$defs/"


def struct_schema(message: type[msgspec.Struct]) -> Schema:
    """Return the schema of a message without references."""
    schema = msgspec.json.schema(message)
    definitions = schema.pop("$defs")
    written: Schema = _written_out(schema, definitions)
    return written


def body_schema(rules: Mapping[str, type[msgspec.Struct]]) -> Schema:
    """Return the schema of a policy's body; which rules it may hold follows from its category."""
    schema = struct_schema(PolicyBody)
    schema["properties"]["category"]["enum"] = list(rules)
    schema["allOf"] = [
        {
            "if": {"properties": {"category": {"const": name}}, "required": ["category"]},
            "then": {"properties": {"rules": struct_schema(message)}},
        }
        for name, message in rules.items()
    ]
    return schema


def _written_out(part: Any, definitions: Mapping[str, Schema]) -> Any:  # noqa: ANN401 - any part of a JSON Schema
    """Return a part with what it refers to in place; what the part says itself goes before what it refers to."""
    if isinstance(part, list):
        return [_written_out(each, definitions) for each in part]
    if not isinstance(part, dict):
        return part
    own = {name: _written_out(each, definitions) for name, each in part.items() if name != "$ref"}
    if "$ref" not in part:
        return own
    return {**_written_out(definitions[part["$ref"].removeprefix(_REFERENCE)], definitions), **own}
