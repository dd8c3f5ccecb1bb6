"""What is wrong with the shape of a message, in words: where a value has no place, and what would have one.

msgspec finds the fault; here it is only put into words, and a word that is not in its vocabulary comes with those that are.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from msgspec import inspect

_STEP: Final = re.compile(r"\.([^.\[\]]+)|\[[^\]]*\]")
_NO_WORD: Final = "Invalid enum value "
_NO_TIME: Final = "Invalid RFC3339 encoded datetime"
_OR_NULL: Final = re.compile(r"(Expected `[^`]+?) \| null`")


class ShapeFault(NamedTuple):
    """Where in a message something has no place, as `a.b[0]` and empty for the whole, and why."""

    place: str
    problem: str


def shape_fault(error: Exception, kind: object) -> ShapeFault:
    """Return what msgspec found wrong with a value that was to become a message of this kind."""
    problem, _, at = str(error).partition(" - at `")
    place = at.removeprefix("key` in `").removesuffix("`").removeprefix("$")
    if problem.startswith(_NO_WORD):
        from msgspec.inspect import type_info

        words = dict.fromkeys(_words(type_info(kind), [found[1] or "" for found in _STEP.finditer(place)]))
        if words:
            problem = f"{problem.removeprefix(_NO_WORD)} is not one of {', '.join(words)}"
    elif problem == _NO_TIME:
        problem = "it is not a time such as 2026-01-31T12:00:00Z"
    else:
        problem = _OR_NULL.sub(r"\1`", problem)  # whoever gives a value is told what it should be; none is the same as leaving it out
    return ShapeFault(place.lstrip("."), f"{problem[:1].lower()}{problem[1:]}")


def _words(kind: inspect.Type, steps: list[str]) -> Iterator[str]:
    """Yield the words that may stand where the steps lead; a step is the name of a field, or empty for a member of a collection."""
    from msgspec import inspect

    if isinstance(kind, inspect.UnionType):
        for each in kind.types:
            yield from _words(each, steps)
    elif isinstance(kind, inspect.Metadata):
        yield from _words(kind.type, steps)
    elif not steps:
        if isinstance(kind, inspect.EnumType):
            yield from (str(member.value) for member in kind.cls)
        elif isinstance(kind, inspect.LiteralType):
            yield from map(str, kind.values)
    elif isinstance(kind, inspect.StructType):
        for field in kind.fields:
            if field.encode_name == steps[0]:
                yield from _words(field.type, steps[1:])
    elif isinstance(kind, inspect.DictType):
        yield from _words(kind.value_type, steps[1:])
    elif isinstance(kind, inspect.VarTupleType | inspect.ListType | inspect.SetType | inspect.FrozenSetType):
        yield from _words(kind.item_type, steps[1:])


# --- fields that a message does not have ---


def unknown_field(value: object, kind: object) -> str:
    """Return where a value, as JSON has it and of the right shape, holds a field that its message does not have; empty when nowhere.

    Messages that are read from files ignore such fields, for what later releases may add; from a client they are refused.
    """
    return next(_unknown(value, _shape_of(kind), ""), "")


@cache
def _shape_of(kind: object) -> inspect.Type:
    from msgspec.inspect import type_info

    return type_info(kind)


def _unknown(value: object, kind: inspect.Type, place: str) -> Iterator[str]:
    from msgspec import inspect

    if isinstance(kind, inspect.Metadata):
        yield from _unknown(value, kind.type, place)
    elif isinstance(kind, inspect.UnionType):
        fitting = [each for each in kind.types if _fits(value, each)]
        for each in fitting if len(fitting) == 1 else ():
            yield from _unknown(value, each, place)
    elif isinstance(value, list) and isinstance(kind, inspect.VarTupleType | inspect.ListType):
        for number, member in enumerate(value):
            yield from _unknown(member, kind.item_type, f"{place}[{number}]")
    elif isinstance(value, dict) and isinstance(kind, inspect.DictType):
        for name, member in value.items():
            yield from _unknown(member, kind.value_type, f"{place}.{name}".lstrip("."))
    elif isinstance(value, dict) and isinstance(kind, inspect.StructType):
        yield from _unknown_of(value, kind, place)


def _unknown_of(value: dict[str, object], kind: inspect.StructType, place: str) -> Iterator[str]:
    known = _fields_of(kind.cls)
    for name, member in value.items():
        if name in known:
            if isinstance(member, dict | list):
                yield from _unknown(member, known[name], f"{place}.{name}".lstrip("."))
        elif name != kind.tag_field:
            yield f"{place}.{name}".lstrip(".")


@cache
def _fields_of(kind: type) -> dict[str, inspect.Type]:
    from msgspec.inspect import StructType

    shape = _shape_of(kind)
    return {field.encode_name: field.type for field in shape.fields} if isinstance(shape, StructType) else {}


def _fits(value: object, kind: inspect.Type) -> bool:
    """Tell whether a value is for this part of a union: a struct by its tag where it has one."""
    from msgspec import inspect

    if isinstance(value, list):
        return isinstance(kind, inspect.VarTupleType | inspect.ListType)
    if isinstance(value, dict) and isinstance(kind, inspect.StructType):
        return kind.tag_field is None or value.get(kind.tag_field) == kind.tag
    return isinstance(value, dict) and isinstance(kind, inspect.DictType)
