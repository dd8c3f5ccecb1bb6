"""The shape of a descriptor as it is given: a field that does not exist and a word that no vocabulary has are named."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import inspect

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.sources import SourceDescriptor
from evidentia.contracts.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_SHOWN_LENGTH: Final = 80
WHOLE: Final = "descriptor"

_PLACE: Final = re.compile(r"(?P<problem>.*?)(?: - at `(?:key in )?\$\.?(?P<path>[^`]*)`)?$", re.DOTALL)


def read_descriptor(given: SourceDescriptor | Mapping[str, object]) -> SourceDescriptor:
    """Return what was given as a descriptor whose types hold, or raise InvalidFieldError naming the field."""
    try:
        plain = msgspec.to_builtins(given)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidFieldError(WHOLE, f"it holds what no descriptor can ({_lowered(str(error))})") from error
    if not isinstance(plain, Mapping):
        raise InvalidFieldError(WHOLE, f"it is a {type(plain).__name__}, not a mapping of its fields")
    for path, problem in _faults(plain, _descriptor_type(), path=""):
        raise InvalidFieldError(path or WHOLE, problem)
    try:
        return msgspec.convert(plain, SourceDescriptor)
    except msgspec.ValidationError as error:
        found = _PLACE.match(str(error))
        path, problem = (found["path"], found["problem"]) if found else ("", str(error))
        raise InvalidFieldError(path or WHOLE, _lowered(problem)) from error


def shown(value: object) -> str:
    """Return a value for a message, in quotes: short, one line, safe to print."""
    return ascii(str(value)[:MAX_SHOWN_LENGTH])


@lru_cache(maxsize=1)
def _descriptor_type() -> inspect.Type:
    return inspect.type_info(SourceDescriptor)


def _faults(given: object, expected: inspect.Type, *, path: str) -> Iterator[tuple[str, str]]:
    """Yield (field, problem) for fields and words that do not exist; other types are the decoder's business."""
    if isinstance(expected, inspect.StructType) and isinstance(given, Mapping):
        yield from _struct_faults(given, expected, path=path)
    elif isinstance(expected, inspect.EnumType) and issubclass(expected.cls, Vocabulary):
        if not _is_word(given, expected.cls):
            yield path, f"{shown(given)} is not one of {', '.join(expected.cls.words())}"
    elif isinstance(expected, inspect.VarTupleType) and isinstance(given, (list, tuple)):
        for number, each in enumerate(given):
            yield from _faults(each, expected.item_type, path=f"{path}[{number}]")
    elif isinstance(expected, inspect.DictType) and isinstance(given, Mapping):
        for name, each in given.items():
            yield from _faults(each, expected.value_type, path=f"{path}[{shown(name)}]")


def _struct_faults(given: Mapping[object, object], expected: inspect.StructType, *, path: str) -> Iterator[tuple[str, str]]:
    known = {field.name: field.type for field in expected.fields}
    for name, value in given.items():
        if not isinstance(name, str) or name not in known:
            yield path, f"there is no field {shown(name)}; {_meant(str(name), sorted(known))}"
        else:
            yield from _faults(value, known[name], path=f"{path}.{name}" if path else name)


def _is_word(given: object, vocabulary: type[Vocabulary]) -> bool:
    if not isinstance(given, str):
        return False
    try:
        vocabulary(given)
    except ValueError:
        return False
    return True


def _meant(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name.lower(), known, n=1)
    return f"did you mean '{near[0]}'?" if near else f"the fields are {', '.join(known)}"


def _lowered(text: str) -> str:
    return f"{text[:1].lower()}{text[1:]}"
