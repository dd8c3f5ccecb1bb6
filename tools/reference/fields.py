"""The fields of a message as rows: what may stand there, what stands there when nothing is said, and why."""

from __future__ import annotations

import enum
import json
from typing import TYPE_CHECKING, NamedTuple, cast

import msgspec
from msgspec import inspect as shapes

from reference import sources
from reference.markdown import code

if TYPE_CHECKING:
    from collections.abc import Iterator


class Field(NamedTuple):
    """One field as a reader of the reference meets it."""

    name: str
    type: str
    default: str
    bounds: str
    words: str


def fields_of(cls: type[msgspec.Struct]) -> Iterator[Field]:
    """Yield the fields of a message in the order they were declared."""
    shape = cast("shapes.StructType", shapes.type_info(cls))
    types, words = sources.field_types(cls), sources.field_words(cls)
    for field in shape.fields:
        yield Field(field.name, types[field.name], _default(field), bounds_of(field.type), words.get(field.name, ""))


def bounds_of(shape: shapes.Type) -> str:
    """Return the range of a number in words, or nothing when every value will do."""
    if isinstance(shape, shapes.UnionType):
        return " or ".join(filter(None, map(bounds_of, shape.types)))
    if not isinstance(shape, shapes.IntType | shapes.FloatType):
        return ""
    if shape.ge is not None and shape.le is not None:
        return f"{_number(shape.ge)} to {_number(shape.le)}"
    if shape.ge is not None:
        return f"{_number(shape.ge)} or more"
    return f"{_number(shape.le)} or less" if shape.le is not None else ""


def _number(bound: float) -> str:
    return f"{bound:,}" if isinstance(bound, int) else f"{bound:g}"


def _default(field: shapes.Field) -> str:
    if field.required:
        return "required"
    value = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    if value is msgspec.NODEFAULT:
        return "left out"
    if isinstance(value, msgspec.Struct):
        return f"`{type(value).__name__}` with its defaults"
    plain = value.value if isinstance(value, enum.Enum) else value
    return code(json.dumps(msgspec.to_builtins(plain), ensure_ascii=False))
