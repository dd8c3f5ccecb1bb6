"""Reading decoded YAML, JSON or TOML: what is not known is refused with its path and the nearest word that would be right."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from evidentia.contracts.errors import InvalidFieldError
from evidentia.policy.words import nearest

if TYPE_CHECKING:
    from collections.abc import Collection

MAX_SHOWN: Final = 80
_AT = re.compile(r" - at `\$(?P<path>[^`]*)`$")

_Message = TypeVar("_Message")


def read_message(fields: object, kind: type[_Message], path: str) -> _Message:
    """Return a message from its fields."""
    names = getattr(kind, "__struct_fields__", ())
    return converted(mapping(fields, f"{path}.", names), kind, path)


def converted(value: object, kind: type[_Message], path: str) -> _Message:
    """Return a value in its type."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        said = str(error)
        at = _AT.search(said)
        where = at["path"] if at else ""
        problem = said[: at.start()] if at else said
        raise InvalidFieldError(f"{path}{where}", problem[:1].lower() + problem[1:]) from error


def mapping(value: object, path: str, known: Collection[str]) -> Mapping[str, object]:
    """Return names with values, all of them known; `path` ends where a name follows."""
    if not isinstance(value, Mapping):
        raise InvalidFieldError(path.rstrip(".") or "file", f"expected names with values, not {kind_of(value)}")
    refuse_others(value, path, known)
    return value


def refuse_others(value: Mapping[Any, object], path: str, known: Collection[str]) -> None:  # Any: keys as somebody wrote them
    """Refuse the first name that is not known."""
    for key in value:
        if key not in known:
            raise InvalidFieldError(f"{path}{str(key)[:MAX_SHOWN]}", f"unknown key{_nearest(str(key), known)}")


def listed(value: object, path: str) -> Sequence[object]:
    """Return a list."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidFieldError(path, f"expected a list, not {kind_of(value)}")
    return value


def known_word(value: object, path: str, words: Collection[str]) -> str:
    """Return one of the words."""
    if not isinstance(value, str) or value not in words:
        raise InvalidFieldError(path, f"'{str(value)[:MAX_SHOWN]}' is not known{_nearest(str(value), words)}")
    return value


def kind_of(value: object) -> str:
    """Return what something is, for a message."""
    return "nothing" if value is None else type(value).__name__


def _nearest(typed: str, known: Collection[str]) -> str:
    near = nearest(typed, known)
    return f"; did you mean '{near}'?" if near else f"; known are {', '.join(known)}"
