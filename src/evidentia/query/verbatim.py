"""What a question wants found as it is written: quoted phrases and identifiers.

An identifier is code, a path, a version, an id or an error code: letters mixed with digits (`CVE-2021-44228`, `sha256`), joined by
characters that words are not joined by (`rotate_keys`, `a/b`, `app.yaml`, `std::map`), capitals inside (`rotateKeys`), or led by a
sign (`--force`, `$HOME`, `#42`). A plain number and a word in capitals are neither.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from evidentia.query.lexical import QUOTED
from evidentia.query.words import unquoted, words_of

MAX_WORDS: Final = 1_024
"""Identifiers are looked for among this many words of each stretch outside quotes."""
MAX_FOUND: Final = 32
MAX_SHOWN_LENGTH: Final = 64
_MAX_SHOWN: Final = 4
_IDENTIFIER: Final = re.compile(
    r"[^\W\d_][-._]?\d|\d[-._]?[^\W\d_]"  # letters mixed with digits
    r"|\d\.\d"  # a version, or a number with a point
    r"|\w_+\w|[^\W_]{2}\.[^\W_]{2}|\w/\w|[\w:]\\\w|::|->|\w=\w|\w@\w|\w\(\)|[^\W\d_][+#]+$"
    r"|[a-z][A-Z]|[A-Z]{2}[a-z]{2}"
    r"|^(?:--?|[$#@~/.])\w"
)
_SLASHED: Final = frozenset(("and/or", "he/she", "his/her", "she/he", "w/o", "n/a", "yes/no"))
_DECIMAL: Final = re.compile(r"[\d.,]+")
_ORDINAL: Final = re.compile(r"\d+(?:st|[nr]d|th|s)")


class Verbatim(msgspec.Struct, frozen=True, kw_only=True):
    """The phrases and identifiers of a question in their order, each once."""

    phrases: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()


def find_verbatim(text: str) -> Verbatim:
    """Return what a question wants found as it is written, at most 32 of each."""
    phrases = dict.fromkeys(" ".join(quoted.split()) for quoted in QUOTED.findall(text))
    words = (word.text for stretch in unquoted(text) for word in words_of(stretch, limit=MAX_WORDS))
    identifiers = dict.fromkeys(word for word in words if is_identifier(word))
    return Verbatim(phrases=tuple(phrases)[:MAX_FOUND], identifiers=tuple(identifiers)[:MAX_FOUND])


def is_identifier(word: str) -> bool:
    """Tell whether a word is code, a path, a version or an id."""
    if word.isalpha() and word[1:].islower():  # most words are: letters alone, with no capital among them, are none of these
        return False
    if word.lower() in _SLASHED or _ORDINAL.fullmatch(word) or (_DECIMAL.fullmatch(word) and word.count(".") < 2):  # noqa: PLR2004 - 1.5 is a number, 1.5.0 a version
        return False
    return _IDENTIFIER.search(word) is not None


def describe(verbatim: Verbatim) -> str:
    """Return what was found in one line, or nothing."""
    named = (("identifiers", verbatim.identifiers), ("phrases", verbatim.phrases))
    return "; ".join(f"{kind}: {_list(found)}" for kind, found in named if found)


def _list(found: tuple[str, ...]) -> str:
    shown = ", ".join(each[:MAX_SHOWN_LENGTH] for each in found[:_MAX_SHOWN])
    return shown if len(found) <= _MAX_SHOWN else f"{shown} and {len(found) - _MAX_SHOWN} more"
