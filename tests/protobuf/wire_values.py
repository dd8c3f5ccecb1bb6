"""Values of every type of the contracts: for each field every word, every member of a union, extremes, and what is left out.

A struct is not built from all combinations. Its n-th instance has every field at its n-th value, so each value of each field occurs.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import inspect as look

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

TEXTS = ("Grüße, 世界 🜁", "a", "plain-name.1", "", "a\x00b\n\u2028", "0" * 64)
INTEGERS = (7, 1, 0, -1, 2**32, 2**53 - 1, 2**63 - 1, -(2**63))
REALS = (0.1, 1.0, 0.0, -2.5, 1e-300, 1.7976931348623157e308, 5e-324)
MOMENTS = (
    datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
    datetime(2026, 1, 2, 3, 4, 5, 1, tzinfo=timezone(timedelta(hours=5, minutes=30))),
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=-9))),
    datetime(2026, 1, 2, 3, 4, 5, 6),  # noqa: DTZ001 - contracts take moments without an offset as well
)
FREE: dict[str, Any] = {"whole": 1, "real": 1.0, "large": 2**53 + 1, "words": ["ä", None, True, {"deep": [0, -0.5]}], "": ""}


def instances(cls: type[msgspec.Struct], *, skip_null_defaults: bool = False) -> Iterator[Any]:
    """Yield instances of a struct: the least there can be, then as many as its field with the most values needs."""
    info = look.type_info(cls)
    assert isinstance(info, look.StructType)
    choices = {field.name: _field_values(field, (cls,), skip_null_defaults=skip_null_defaults) for field in info.fields}
    yield cls(**{field.name: choices[field.name][-1] for field in info.fields if field.required})
    for turn in range(max(map(len, choices.values()), default=0)):
        yield cls(**{name: values[turn % len(values)] for name, values in choices.items()})


def values_of(info: look.Type, within: tuple[type, ...] = ()) -> list[Any]:
    """Return values of a type, the most telling first and the emptiest last; `within` are the structs around it."""
    match info:
        case look.Metadata(type=inner):
            return values_of(inner, within)
        case look.UnionType(types=members):
            return [value for member in members if not _is_around(member, within) for value in values_of(member, within)]
        case look.StructType(cls=cls):
            return [_nested(info, (*within, cls), 0), _nested(info, (*within, cls), -1)]
        case look.VarTupleType() | look.ListType() | look.SetType() | look.FrozenSetType():
            return _lists(info, within)
        case look.DictType() | look.TupleType():
            return _mixed(info, within)
        case _:
            return _SINGLE[type(info)](info)


def _mixed(info: look.DictType | look.TupleType, within: tuple[type, ...]) -> list[Any]:
    if isinstance(info, look.TupleType):
        return [tuple(values_of(item, within)[0] for item in info.item_types)]
    if isinstance(info.value_type, look.AnyType):
        return [FREE, {}]
    return [{f"кey {place}": value for place, value in enumerate(values_of(info.value_type, within))}, {}]


def _integers(info: Any) -> list[int]:
    limits = (limit for limit in (info.ge, info.le) if limit is not None)
    return [number for number in (*INTEGERS, *limits) if _is_between(number, info)]


def _field_values(field: look.Field, within: tuple[type, ...], *, skip_null_defaults: bool = False) -> list[Any]:
    values = values_of(field.type, within)
    if skip_null_defaults and not field.required and field.default is not None:
        values = [value for value in values if value is not None]
    is_unset = not field.required and field.default is msgspec.NODEFAULT and field.default_factory is msgspec.NODEFAULT
    assert values, f"no value is known for '{field.name}'"
    return [*values, msgspec.UNSET] if is_unset else values


def _nested(info: look.StructType, within: tuple[type, ...], place: int) -> Any:
    return info.cls(**{field.name: _field_values(field, within)[place] for field in info.fields})


def _lists(info: Any, within: tuple[type, ...]) -> list[Any]:
    if _is_around(info.item_type, within):
        return [()]
    items = values_of(info.item_type, within)
    lists = [tuple(items), tuple(items[:1]), ()]
    fitting: Iterable[tuple[Any, ...]] = (each for each in lists if (info.min_length or 0) <= len(each) <= (info.max_length or len(each)))
    return list(fitting)


def _is_around(info: look.Type, within: tuple[type, ...]) -> bool:
    """Tell whether a type can only be had by going around in circles."""
    return isinstance(info, look.StructType) and info.cls in within


def _is_allowed(text: str, info: look.StrType) -> bool:
    fits = (info.min_length or 0) <= len(text) <= (info.max_length or len(text))
    return fits and (info.pattern is None or re.search(info.pattern, text) is not None)


def _is_between(number: float, info: look.IntType | look.FloatType) -> bool:
    return (info.ge is None or number >= info.ge) and (info.le is None or number <= info.le)


_SINGLE: dict[type, Callable[[Any], list[Any]]] = {
    look.AnyType: lambda _: [FREE, [1, 1.0, "x"], "text", 3, None],
    look.BoolType: lambda _: [True, False],
    look.BytesType: lambda _: [b"\x00\xff\x80", b""],
    look.DateTimeType: lambda info: [moment for moment in MOMENTS if moment.tzinfo is not None or not info.tz],
    look.EnumType: lambda info: list(info.cls),
    look.FloatType: lambda info: [number for number in REALS if _is_between(number, info)],
    look.IntType: _integers,
    look.LiteralType: lambda info: list(info.values),
    look.NoneType: lambda _: [None],
    look.StrType: lambda info: [text for text in TEXTS if _is_allowed(text, info)],
}
