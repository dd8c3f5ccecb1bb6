"""JSON, MessagePack and plain values become messages here, whatever number of threads reads messages for the first time.

`has_more_values` counts before anything is read: a megabyte of `{},{},` becomes twenty of objects.

msgspec works out how a struct is read when that is first asked for. Another thread that asks meanwhile is handed what there is so far, and
the process ends with a segmentation fault (seen with msgspec 0.22 and eight threads; tests/contracts/test_decoding.py shows it). So one
thread at a time works out a type, and nobody reads by it before that is done. `tests/house` keeps all other modules to these functions.
"""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

_Message = TypeVar("_Message")
_Raw = bytes | bytearray | memoryview | str

_QUOTE: Final = ord('"')
_STRING_OR_MARK: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{,]', re.DOTALL)
_known: set[object] = set()
# Reentrant: working out a type evaluates its annotations, which may import a module that makes a decoder of its own.
_working_out = threading.RLock()


@overload
def convert(value: object, kind: type[_Message], *, strict: bool = True, from_attributes: bool = False) -> _Message: ...
@overload
def convert(value: object, kind: Any, *, strict: bool = True, from_attributes: bool = False) -> Any: ...  # noqa: ANN401 - a union is no type
def convert(value: object, kind: Any, *, strict: bool = True, from_attributes: bool = False) -> Any:  # Any: what the overloads say
    """Return a plain value as a message of a type, or raise `msgspec.ValidationError`."""
    prepare(kind)
    return msgspec.convert(value, kind, strict=strict, from_attributes=from_attributes)


@overload
def decode_json(content: _Raw, kind: type[_Message]) -> _Message: ...
@overload
def decode_json(content: _Raw, kind: Any) -> Any: ...  # noqa: ANN401 - a union is no type
def decode_json(content: _Raw, kind: Any) -> Any:  # Any: what the overloads say
    """Return JSON as a message of a type, or raise `msgspec.DecodeError`."""
    prepare(kind)
    return msgspec.json.decode(content, type=kind)


@overload
def json_decoder(kind: type[_Message]) -> Callable[[_Raw], _Message]: ...
@overload
def json_decoder(kind: Any) -> Callable[[_Raw], Any]: ...  # noqa: ANN401 - a union is no type
def json_decoder(kind: Any) -> Callable[[_Raw], Any]:  # Any: what the overloads say
    """Return what reads JSON of a type, for a type that is read often."""
    prepare(kind)
    return msgspec.json.Decoder(kind).decode


@overload
def msgpack_decoder(kind: type[_Message]) -> Callable[[bytes], _Message]: ...
@overload
def msgpack_decoder(kind: Any) -> Callable[[bytes], Any]: ...  # noqa: ANN401 - a union is no type
def msgpack_decoder(kind: Any) -> Callable[[bytes], Any]:  # Any: what the overloads say
    """Return what reads MessagePack of a type."""
    prepare(kind)
    return msgspec.msgpack.Decoder(kind).decode


def has_more_values(content: bytes, most: int) -> bool:
    """Tell whether JSON would be read as more than so many values; what stands in its strings does not count.

    It takes no memory, and time only for JSON that has as many commas and brackets, in strings or not.
    """
    if 1 + content.count(b",") + content.count(b"[") + content.count(b"{") <= most:
        return False
    values = 1
    for found in _STRING_OR_MARK.finditer(content):
        if content[found.start()] != _QUOTE:
            values += 1
            if values > most:
                return True
    return False


def prepare(kind: Any) -> None:  # noqa: ANN401 - a type, a union or a generic
    """Work out how a type is read, once, and with every type in it."""
    if kind not in _known:  # membership of a set is one step of the interpreter, so it needs no lock
        with _working_out:
            msgspec.json.Decoder(kind)
            _known.add(kind)
