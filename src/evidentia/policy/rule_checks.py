"""What is wrong with values that should have a type: every problem, each with its path and the nearest word that would be right.

Stricter than decoding: NaN and infinities, numbers no JSON can carry and texts that are no Unicode are refused as well.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import inspect

from evidentia.contracts.canonical import SAFE_INTEGER
from evidentia.contracts.errors import FieldProblem

if TYPE_CHECKING:
    from enum import Enum


_KINDS: Final[Mapping[type, str]] = {
    inspect.BoolType: "true or false",
    inspect.IntType: "a whole number",
    inspect.FloatType: "a number",
    inspect.StrType: "text",
    inspect.NoneType: "null",
    inspect.VarTupleType: "a list",
    inspect.ListType: "a list",
    inspect.DictType: "a map",
}


def field_problems(given: Mapping[Any, Any], expected: type[msgspec.Struct], *, within: str, what: str) -> list[FieldProblem]:
    """Return every problem of a map that should hold the fields of a struct; `what` says what its names are."""
    fields = _fields_of(expected)
    found = [unknown_name(name, fields, within=within, what=what) for name in given if name not in fields]
    for name, field in fields.items():
        if name in given:
            found += value_problems(given[name], field.type, path=within + name)
        elif field.required:
            found.append(FieldProblem(within + name, "is required"))
    return found


@lru_cache(maxsize=64)
def _fields_of(message: type[msgspec.Struct]) -> Mapping[str, inspect.Field]:
    shape = inspect.type_info(message)
    assert isinstance(shape, inspect.StructType)  # noqa: S101 - by the type of the argument
    return {field.name: field for field in shape.fields}


def unknown_name(name: object, known: Iterable[str], *, within: str, what: str) -> FieldProblem:
    """Return the problem of a name that does not exist."""
    text = shown(name if isinstance(name, str) else repr(name))
    return FieldProblem(within + text, f"is not {what}", nearest(text, known))


def value_problems(value: object, expected: inspect.Type, *, path: str) -> list[FieldProblem]:
    """Return every problem of a value."""
    return list(_value_problems(value, expected, path))


def _value_problems(value: object, expected: inspect.Type, path: str) -> Iterator[FieldProblem]:
    while isinstance(expected, inspect.Metadata):
        expected = expected.type
    if isinstance(expected, inspect.UnionType):
        yield from _union_problems(value, expected.types, path)
    elif isinstance(expected, inspect.EnumType):
        yield from _word_problems(value, expected.cls, path)
    elif isinstance(expected, inspect.IntType | inspect.FloatType):
        yield from _number_problems(value, expected, path)
    elif isinstance(expected, inspect.StrType):
        yield from _text_problems(value, expected, path)
    elif isinstance(expected, inspect.VarTupleType | inspect.ListType) and isinstance(value, list | tuple):
        for number, each in enumerate(value):
            yield from _value_problems(each, expected.item_type, f"{path}[{number}]")
    elif isinstance(expected, inspect.DictType) and isinstance(value, Mapping):
        for name, each in value.items():
            yield from _value_problems(name, expected.key_type, path)
            yield from _value_problems(each, expected.value_type, f"{path}.{shown(str(name))}")
    elif isinstance(expected, inspect.BoolType) and isinstance(value, bool):
        return
    elif isinstance(expected, inspect.AnyType):
        yield from _free_problems(value, path)
    else:
        yield FieldProblem(path, f"expected {_KINDS.get(type(expected), 'another type')}, not {_named(value)}")


def _union_problems(value: object, types: Sequence[inspect.Type], path: str) -> Iterator[FieldProblem]:
    """Yield nothing for null where it is one of the types, else the problems by the other types that are fewest."""
    if value is None and any(isinstance(each, inspect.NoneType) for each in types):
        return
    others = [list(_value_problems(value, each, path)) for each in types if not isinstance(each, inspect.NoneType)]
    yield from min(others, key=len)


def _word_problems(value: object, words: type[Enum], path: str) -> Iterator[FieldProblem]:
    known = [str(member.value) for member in words]
    try:
        words(value)
    except ValueError:
        text = shown(value) if isinstance(value, str) else _named(value)
        listed = ", ".join(f"'{word}'" for word in known)
        yield FieldProblem(path, f"'{text}' is not one of {listed}", nearest(text, known) if isinstance(value, str) else "")


def _number_problems(value: object, expected: inspect.IntType | inspect.FloatType, path: str) -> Iterator[FieldProblem]:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if not is_whole and (isinstance(expected, inspect.IntType) or not isinstance(value, float)):
        yield FieldProblem(path, f"expected {_KINDS[type(expected)]}, not {_named(value)}")
        return
    assert isinstance(value, int | float)  # noqa: S101 - one of both, as was just seen
    if is_whole and abs(value) > SAFE_INTEGER:
        yield FieldProblem(path, f"is outside the whole numbers that JSON can carry, up to {SAFE_INTEGER}")
    elif not math.isfinite(value):
        yield FieldProblem(path, f"{value} is not a finite number")
    elif expected.ge is not None and value < expected.ge:
        yield FieldProblem(path, f"{value} is less than {expected.ge}")
    elif expected.le is not None and value > expected.le:
        yield FieldProblem(path, f"{value} is more than {expected.le}")


def _text_problems(value: object, expected: inspect.StrType, path: str) -> Iterator[FieldProblem]:
    if not isinstance(value, str):
        yield FieldProblem(path, f"expected text, not {_named(value)}")
        return
    try:
        value.encode()
    except UnicodeEncodeError:
        yield FieldProblem(path, "holds an unpaired surrogate, which has no UTF-8 form")
        return
    if expected.min_length is not None and len(value.strip()) < expected.min_length:
        yield FieldProblem(path, "is empty")
    if expected.max_length is not None and len(value) > expected.max_length:
        yield FieldProblem(path, f"is longer than {expected.max_length} characters")


def _free_problems(value: object, path: str) -> Iterator[FieldProblem]:
    """Yield the numbers that are none, wherever they are in a value without a type."""
    if isinstance(value, float) and not math.isfinite(value):
        yield FieldProblem(path, f"{value} is not a finite number")
    elif isinstance(value, Mapping):
        for name, each in value.items():
            yield from _free_problems(each, f"{path}.{shown(str(name))}")
    elif isinstance(value, list | tuple):
        for number, each in enumerate(value):
            yield from _free_problems(each, f"{path}[{number}]")


def _named(value: object) -> str:
    """Return what was given instead, by its kind."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)[:40]
    if isinstance(value, str):
        return "text"
    return "a map" if isinstance(value, Mapping) else "a list" if isinstance(value, list | tuple) else type(value).__name__


# --- words ---
# How numbers and names are spelt in reasons, and which name was meant.
#
# Reasons are read in logs, so that the name of a document cannot bring control characters along.

_MAX_NAME_LENGTH: Final = 200


def shown(name: str) -> str:
    """Return a name for a reason: as it is, or escaped and cut where it would spoil the line."""
    if name.isprintable() and len(name) <= _MAX_NAME_LENGTH:
        return name
    plain = name[:_MAX_NAME_LENGTH]
    if not plain.isprintable():
        plain = plain.encode("unicode_escape").decode("ascii")
    return plain + ("…" if len(name) > _MAX_NAME_LENGTH else "")


def two_decimals(score: float) -> str:
    """Return a relevance; zero has no sign."""
    return f"{score + 0.0:.2f}"


def shortest(score: float) -> str:
    """Return a grounding score: the shortest decimal that stands for it; zero has no sign."""
    return _shortest(score + 0.0)


@lru_cache(maxsize=1_024)
def _shortest(score: float) -> str:
    return repr(score)


def days(age: float) -> str:
    """Return an age; a whole number has no decimals."""
    return str(int(age)) if age == int(age) else repr(age)


def percent(ratio: float) -> str:
    """Return a share in whole percent, rounded half up from its decimal form."""
    return str((Decimal(repr(ratio)) * 100).quantize(Decimal(1), rounding=ROUND_HALF_UP))


def percent_of(part: int, whole: int) -> int:
    """Return a count as a share of another in whole percent, rounded half up."""
    return (200 * part + whole) // (2 * whole)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name that is most like another; empty when none is."""
    near = difflib.get_close_matches(name.lower(), sorted(known), n=1)
    return near[0] if near else ""
