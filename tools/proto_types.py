"""What the contracts call their types, and what a type is without what is said about it."""

from __future__ import annotations

import importlib
import pkgutil
import types
import typing
from functools import cache
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import inspect as look
from reference import sources

import evidentia.contracts as contracts_room

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from proto_plan import Shape

PYTHON: Final = {"Truth": "bool", "Integer": "int", "Real": "float", "Text": "str", "Bytes": "bytes", "List": "(tuple, list)"}
"""The classes of what a union may hold besides messages, in the order in which they are asked: a bool is an int as well."""


def bare(info: look.Type) -> tuple[look.Type, bool]:
    """Return a type without what is said about it, and without None; and whether None was in it."""
    while isinstance(info, look.Metadata):
        info = info.type
    if not isinstance(info, look.UnionType):
        return info, False
    members = tuple(each for each in info.types if not isinstance(each, look.NoneType))
    is_nullable = len(members) < len(info.types)
    return (bare(members[0])[0] if len(members) == 1 else look.UnionType(members)), is_nullable


def first_line(cls: type) -> str:
    """Return the first line of what a class says about itself."""
    return (cls.__doc__ or "").strip().partition("\n")[0]


def default_of(field: look.Field) -> object:
    """Return what a field is when it is left out; NODEFAULT for one that must not be, UNSET where that is the default."""
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    is_unset = not field.required and field.default is msgspec.NODEFAULT
    return msgspec.UNSET if is_unset else field.default


def default_text(default: object) -> str:
    """Return a default as JSON where a reader of the schema would not expect it; empty for zero, empty, null and messages."""
    is_told = default is not msgspec.NODEFAULT and default is not msgspec.UNSET and bool(default)
    return msgspec.json.encode(default).decode() if is_told and not isinstance(default, msgspec.Struct) else ""


def dropped_default(field: look.Field) -> str:
    """Return the Python of a default that is a plain value, or a message that says nothing; empty for any other."""
    if isinstance(field.default, msgspec.Struct):
        is_silent = not msgspec.to_builtins(field.default)
        return "{}" if is_silent else ""
    return repr(field.default) if type(field.default) in (str, int, float, bool) else ""


def words_of(words: str, info: look.Type) -> str:
    """Return what is said about a field, with the words it takes where they are few and fixed."""
    if not isinstance(info, look.LiteralType):
        return words
    return f"{words} One of {', '.join(map(str, info.values))}.".strip()


def union_name(structs: Sequence[look.StructType], builtins: Sequence[Shape]) -> tuple[str, str]:
    """Return what a union is called, and the module that calls it so; one without a name is called by its members."""
    classes = frozenset(each.cls for each in structs)
    whole = aliases().get(classes | {PYTHON.get(shape.word, shape.word) for shape in builtins})
    if whole is not None:
        return whole
    part = aliases().get(classes)
    words = [part[0]] if part is not None else sorted(each.cls.__name__ for each in structs)
    return "Or".join([*words, *(shape.word for shape in builtins)]), ""


@cache
def aliases() -> Mapping[frozenset[object], tuple[str, str]]:
    """Return what the contracts call their unions, by the members; None is left out, scalars stand by their name."""
    found: dict[frozenset[object], tuple[str, str]] = {}
    for module in sorted(each.name for each in pkgutil.iter_modules(contracts_room.__path__) if not each.ispkg):
        owner = importlib.import_module(f"{contracts_room.__name__}.{module}")
        for alias in sources.aliases(sources.PACKAGE / "contracts" / f"{module}.py"):
            value = vars(owner).get(alias.name)
            if isinstance(value, types.UnionType) or typing.get_origin(value) is typing.Union:
                members = [each for each in typing.get_args(value) if each is not type(None)]
                key = frozenset(each if issubclass(each, msgspec.Struct) else each.__name__ for each in members)
                found.setdefault(key, (alias.name, owner.__name__))
    return found
