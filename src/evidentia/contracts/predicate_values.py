"""What a filter's values mean: each field has a kind, and the kind reads a value into a key that can be compared.

Literals and stored values are read by the same function, so both sides of a comparison always mean the same thing.
What cannot be read has no key; this module never raises over a value.
"""

from __future__ import annotations

import decimal
import math
import re
from dataclasses import dataclass
from datetime import date
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from evidentia.contracts.vocabulary import AuthorityTier, Classification, ContentType, DeprecationStatus, Vocabulary, ranks_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_NUMBER_CHARS: Final = 64
MAX_VERSION_CHARS: Final = 256


class Number(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A decimal fraction, kept as its digits: canonical records hold no floats, and `1.10` must stay apart from `1.1` in a version."""

    number: str


Value: TypeAlias = str | int | bool | Number
"""A literal of a filter; times are RFC 3339 strings."""

Key: TypeAlias = tuple[object, ...]
"""A value as its kind reads it; keys of one kind are equal, and ordered where the kind is, as the values they stand for."""


@dataclass(frozen=True, slots=True)
class FieldKind:
    """How the values of a field are read and which operators they take.

    `read` returns None for what the kind cannot read. `expects` completes the sentence "'x' is not ..."; a vocabulary expects its words.
    """

    name: str
    read: Callable[[object], Key | None]
    expects: str | type[Vocabulary]
    is_ordered: bool = True
    is_set: bool = False
    has_substrings: bool = False

    def read_stored(self, stored: object) -> tuple[Key, ...]:
        """Return the keys of a stored value: one for each readable member of a set, otherwise one, or none."""
        members = stored if self.is_set and isinstance(stored, (list, tuple, set, frozenset)) else (stored,)
        return tuple(key for key in map(self.read, members) if key is not None)

    @property
    def expected(self) -> str:
        """Return what a value has to be, in words."""
        return self.expects if isinstance(self.expects, str) else "one of " + ", ".join(f"'{word}'" for word in self.expects)


def kind_of(field: str, fields: Mapping[str, FieldKind]) -> FieldKind | None:
    """Return the kind of a field; an entry that ends in a dot, such as `extra.`, stands for every name below it."""
    if field in fields:
        return None if field.endswith(".") else fields[field]
    group, dot, name = field.partition(".")
    return fields.get(group + dot) if name else None


def kind_for(kind: FieldKind, literal: object) -> FieldKind:
    """Return the kind that reads this comparison: in a free field the literal decides, elsewhere the field does."""
    if kind is not FREE:
        return kind
    if isinstance(literal, bool):
        return FLAG
    return NUMBER if isinstance(literal, (int, Number)) else TEXT


def is_fraction(digits: str) -> bool:
    """Whether these are the digits of a decimal fraction, such as `-0.50`."""
    return len(digits) <= MAX_NUMBER_CHARS and "." in digits and _NUMBER.fullmatch(digits) is not None


_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_TIME = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[Tt ](?P<hour>[01][0-9]|2[0-3]):(?P<minute>[0-5][0-9]):(?P<second>[0-5][0-9]|60)(?:\.(?P<fraction>[0-9]+))?"
    r"(?:[Zz]|(?P<sign>[+-])(?P<off_hour>[01][0-9]|2[0-3]):(?P<off_minute>[0-5][0-9])))?"
)
_VERSION = re.compile(
    r"[vV]?(?P<release>[0-9]+(?:\.[0-9]+)*)(?:-(?P<pre>[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)


def _read_text(value: object) -> Key | None:
    return (value,) if isinstance(value, str) else None


def _read_flag(value: object) -> Key | None:
    if isinstance(value, bool):
        return (value,)
    return {"true": (True,), "false": (False,)}.get(value) if isinstance(value, str) else None


def _read_number(value: object) -> Key | None:
    """Read exactly: no value passes through binary floating point on its way to a comparison."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return (decimal.Decimal(value),)
    if isinstance(value, float):
        return (decimal.Decimal(repr(value)),) if math.isfinite(value) else None
    digits = value.number if isinstance(value, Number) else value
    if not isinstance(digits, str) or len(digits) > MAX_NUMBER_CHARS or _NUMBER.fullmatch(digits) is None:
        return None
    return (decimal.Decimal(digits),)


def _read_instant(value: object) -> Key | None:
    """Read an RFC 3339 time, or a date as its first instant in UTC, into seconds and the digits of the fraction.

    Digits of unequal length compare rightly once trailing zeros are gone, so any precision is kept. A time without an offset names
    no instant and is not read; the leap second 60 is the second after 59.
    """
    if isinstance(value, date):
        value = value.isoformat()
    found = _TIME.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    try:
        days = date.fromisoformat(found["date"]).toordinal()
    except ValueError:
        return None
    hour, minute, second, off_hour, off_minute = (int(found[part] or 0) for part in ("hour", "minute", "second", "off_hour", "off_minute"))
    offset = (off_hour * 60 + off_minute) * (-60 if found["sign"] == "-" else 60)
    return (days * 86_400 + hour * 3_600 + minute * 60 + second - offset, (found["fraction"] or "").rstrip("0"))


def _read_version(value: object) -> Key | None:
    """Read a semantic version by the precedence rules of semver.org 2.0.0, section 11; build metadata plays no part.

    More lenient than the standard in what people write: a leading `v`, fewer or more than three parts, leading zeros.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value) if abs(value) < 10**MAX_NUMBER_CHARS else None
    spelling = value.number if isinstance(value, Number) else value
    if not isinstance(spelling, str) or len(spelling) > MAX_VERSION_CHARS:
        return None
    found = _VERSION.fullmatch(spelling)
    if found is None:
        return None
    parts = [int(part) for part in found["release"].split(".")]
    while parts and parts[-1] == 0:
        parts.pop()
    marks = tuple((0, int(mark), "") if mark.isdigit() else (1, 0, mark) for mark in (found["pre"] or "").split(".") if mark)
    return (tuple(parts), not marks, marks)


def _read_word(vocabulary: type[Vocabulary], value: object) -> Key | None:
    """Read a word in any case; words are ordered as they are declared, never by spelling."""
    if not isinstance(value, str):
        return None
    try:
        return (ranks_of(vocabulary)[vocabulary(value)],)
    except ValueError:
        return None


TEXT: Final = FieldKind("text", _read_text, "text in quotes", has_substrings=True)
"""Strings, case-sensitive, ordered by code point."""
TEXT_SET: Final = FieldKind("set of text", _read_text, "text in quotes", is_ordered=False, is_set=True)
"""Sets of strings: every comparison asks about the members."""
NUMBER: Final = FieldKind("number", _read_number, "a number")
"""Numbers, also spelt as text, compared exactly."""
FLAG: Final = FieldKind("flag", _read_flag, "true or false", is_ordered=False)
"""True or false, also spelt as text."""
INSTANT: Final = FieldKind("instant", _read_instant, "an RFC 3339 time with an offset, or a date")
"""Points in time, whatever offset they are written in."""
VERSION: Final = FieldKind("version", _read_version, "a version")
"""Semantic versions, compared part by part."""
FREE: Final = FieldKind("free", _read_text, "text, a number, true or false", has_substrings=True)
"""Fields without a declared kind: the literal decides whether text, numbers or flags are compared."""

METADATA_FIELDS: Final[Mapping[str, FieldKind]] = MappingProxyType(
    {
        "source_id": TEXT,
        "document_id": TEXT,
        "title": TEXT,
        "path": TEXT,
        "content_type": FieldKind("ContentType", partial(_read_word, ContentType), ContentType, is_ordered=False),
        "language": TEXT,
        "created_at": INSTANT,
        "updated_at": INSTANT,
        "author": TEXT,
        "classification": FieldKind("Classification", partial(_read_word, Classification), Classification),
        "tags": TEXT_SET,
        "version": VERSION,
        "deprecation_status": FieldKind("DeprecationStatus", partial(_read_word, DeprecationStatus), DeprecationStatus, is_ordered=False),
        "authority_tier": FieldKind("AuthorityTier", partial(_read_word, AuthorityTier), AuthorityTier),
        "tenant": TEXT,
        "media_type": TEXT,
        "extra.": FREE,
    }
)
"""Every field a document can be filtered by; `extra.` stands for all free fields below it."""
