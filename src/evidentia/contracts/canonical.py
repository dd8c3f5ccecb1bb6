"""The one canonical byte form of a record (RFC 8785), used wherever something is hashed.

Canonical records hold ASCII keys, strings, safe integers, booleans, nulls, lists and maps, so that a fast encoder
gives the bytes that any RFC 8785 implementation gives. Floats are refused: scores are integers, times are strings.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import msgspec

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.ids import Sha256

ALLOWED = "canonical records hold only strings, integers, booleans, nulls, lists and maps"
SAFE_INTEGER = 2**53 - 1

_encoder = msgspec.json.Encoder(order="sorted")

encode_struct = _encoder.encode
"""Encode a message whose fields are canonical by type; a house test checks that such types hold no floats."""


def has_utf8(text: str) -> bool:
    """Tell whether a text has a UTF-8 form, which half a surrogate pair has not."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def encode_record(record: Mapping[str, object]) -> bytes:
    """Return the canonical bytes of a free-form record, refusing what RFC 8785 would have to guess at."""
    _check(record, path="$")
    try:
        return _encoder.encode(record)
    except UnicodeEncodeError as error:
        raise InvalidFieldError("$", "a string holds an unpaired surrogate, which has no UTF-8 form") from error


def sha256_hex(content: bytes) -> Sha256:
    """Return the SHA-256 of `content` as lower-case hexadecimal."""
    return Sha256(hashlib.sha256(content).hexdigest())


def hash_record(record: Mapping[str, object]) -> Sha256:
    """Return the SHA-256 of a record's canonical bytes."""
    return sha256_hex(encode_record(record))


def _check(value: object, *, path: str) -> None:
    if value is None or isinstance(value, (str, bool)):
        return
    if isinstance(value, int):
        if abs(value) > SAFE_INTEGER:
            raise InvalidFieldError(path, f"{value} is outside the safe integers of JSON")
        return
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str) or not key.isascii():
                raise InvalidFieldError(path, f"key {key!r} is not an ASCII string")
            _check(inner, path=f"{path}.{key}")
        return
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        for index, inner in enumerate(value):
            _check(inner, path=f"{path}[{index}]")
        return
    raise InvalidFieldError(path, f"{ALLOWED}, not {type(value).__name__}")
