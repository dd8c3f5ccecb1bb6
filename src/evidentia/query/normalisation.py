"""One spelling for what a keyboard, a word processor and a web page write differently.

Outside quotes: NFKC, hyphens and minus signs as `-`, quotation marks as `"`, apostrophes as `'`. Everywhere: invisible characters go,
control characters and white space become one space. ASCII letters, digits and signs are never changed, so identifiers stay as they
are written; letter case is the tokeniser's business. Quoted words keep their characters.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

import msgspec

from evidentia.query.lexical import QUOTED
from evidentia.query.words import unquoted, words_of

MAX_PIECE_LENGTH: Final = 512
"""Longer pieces without white space are no words; composing their marks could cost the square of their length."""
MAX_GROWTH: Final = 4
"""Pieces that NFKC would make longer than this many times stay as they are; a single character can become eighteen."""

_DOUBLE: Final = "\u201c\u201d\u201e\u201f\u00ab\u00bb\u300c\u300d\u300e\u300f\uff02\u275d\u275e"
_SINGLE: Final = "\u2018\u2019\u201a\u201b\u02bc\u2039\u203a\uff07"
_HYPHENS: Final = "\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d\u00ad"
_BARS: Final = "\u2014\u2015\u2e3a\u2e3b"
_MARKS: Final = str.maketrans(dict.fromkeys(_DOUBLE, '"'))
_SPELLINGS: Final = str.maketrans(dict.fromkeys(_SINGLE, "'") | dict.fromkeys(_HYPHENS, "-") | dict.fromkeys(_BARS, " - ") | {"\u00ad": ""})
_INVISIBLE: Final = {"Cf": "", "Cc": " ", "Cs": " ", "Zl": " ", "Zp": " "}


def normalise_text(text: str) -> str:
    """Return the text in its one spelling; doing it twice changes nothing that matters to its terms."""
    text = text.translate(_MARKS)
    if not (text.isascii() and text.isprintable()):
        text = _respell_unquoted(text)
    return " ".join(text.split())


def _respell_unquoted(text: str) -> str:
    spelt, start = [], 0
    for found in QUOTED.finditer(text):
        spelt += [_respell(text[start : found.start()]), _show(found[0])]
        start = found.end()
    spelt.append(_respell(text[start:]))
    return "".join(spelt)


def _respell(stretch: str) -> str:
    if stretch.isascii():
        return _show(stretch)
    before, after = stretch[:1].isspace(), stretch[-1:].isspace()
    pieces = (_compose(piece.translate(_SPELLINGS)) for piece in stretch.split())
    return f"{' ' * before}{_show(' '.join(pieces))}{' ' * after}"


def _compose(piece: str) -> str:
    if len(piece) > MAX_PIECE_LENGTH:
        return piece
    composed = unicodedata.normalize("NFKC", piece)
    return composed if len(composed) <= MAX_GROWTH * len(piece) else piece


def _show(stretch: str) -> str:
    if stretch.isprintable():
        return stretch
    return "".join(_INVISIBLE.get(unicodedata.category(character), character) for character in stretch)


# --- verbatim ---
# What a question wants found as it is written: quoted phrases and identifiers.
#
# An identifier is code, a path, a version, an id or an error code: letters mixed with digits (`CVE-2021-44228`, `sha256`), joined by
# characters that words are not joined by (`rotate_keys`, `a/b`, `app.yaml`, `std::map`), capitals inside (`rotateKeys`), or led by a sign
# (`--force`, `$HOME`, `#42`). A plain number and a word in capitals are neither.

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
