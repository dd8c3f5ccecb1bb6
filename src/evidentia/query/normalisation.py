"""One spelling for what a keyboard, a word processor and a web page write differently.

Outside quotes: NFKC, hyphens and minus signs as `-`, quotation marks as `"`, apostrophes as `'`. Everywhere: invisible characters go,
control characters and white space become one space. ASCII letters, digits and signs are never changed, so identifiers stay as they
are written; letter case is the tokeniser's business. Quoted words keep their characters.
"""

from __future__ import annotations

import unicodedata
from typing import Final

from evidentia.query.lexical import QUOTED

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
