"""Unicode reduced to what the tokeniser needs: one clean spelling, and one letter of *shape* per character.

The shape of `IL-6` is `AA-0`: rules about case, digits and connectors are then short patterns over seven letters, the same for
every script. Nothing here knows about languages or stems.

    A upper case   a lower or caseless   g Greek   0 digit   c written without spaces (Han, Kana, Hangul, Thai, ...)   m mark
    _ . ' -  connectors, as they are   (space)  everything else
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_CONNECTORS: Final = frozenset("_.'-")
_UNSPACED_RANGES: Final = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x3007),
    (0x3040, 0x30FF),  # Hiragana, Katakana
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),
    (0xAC00, 0xD7A3),  # Hangul: spaced, but too agglutinative for whole words
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)
_GREEK_RANGES: Final = ((0x0370, 0x03FF), (0x1F00, 0x1FFF))
_LAST_STORED: Final = 0xFFFF
_SPELLINGS: Final = {
    0x2019: "'",
    0x02BC: "'",
    0x2010: "-",  # NFKC already turns U+2011 into U+2010
    0x00AD: None,  # soft hyphen, and the joiners below: invisible, so they must not divide a word
    0x200C: None,
    0x200D: None,
    0x2060: None,
    0xFEFF: None,
}
_MARKED: Final = re.compile("([Aag0])m+")


def respell(word: str) -> str:
    """Return the word in NFKC, with one apostrophe, one hyphen and no invisible joiners; ASCII returns as it is."""
    if word.isascii():
        return word
    return unicodedata.normalize("NFKC", word).translate(_SPELLINGS)


def fold(word: str) -> str:
    """Return the word without case, in NFKC again where folding took it apart."""
    folded = word.casefold()
    return folded if folded.isascii() else unicodedata.normalize("NFKC", folded)


def shape_of(word: str) -> str:
    """Return one shape letter per character of a respelt word; a mark takes the shape of the letter that it sits on."""
    shape = word.translate(_SHAPES)
    if "m" not in shape:
        return shape
    return _MARKED.sub(lambda found: found[1] * len(found[0]), shape)


class _Shapes(dict[int, str]):
    """Shape letters by code point, found once; only the first plane is remembered, so memory is bounded."""

    def __missing__(self, code_point: int) -> str:
        shape = _find_shape(code_point)
        if code_point <= _LAST_STORED:
            self[code_point] = shape
        return shape


_SHAPES: Final = _Shapes()


def _find_shape(code_point: int) -> str:
    character = chr(code_point)
    if character in _CONNECTORS:
        return character
    category = unicodedata.category(character)
    if category[0] == "L":
        return _find_letter_shape(code_point, category)
    return {"M": "m", "N": "0"}.get(category[0], " ")


def _find_letter_shape(code_point: int, category: str) -> str:
    if _is_within(code_point, _UNSPACED_RANGES):
        return "c"
    if _is_within(code_point, _GREEK_RANGES):
        return "g"
    return "A" if category in {"Lu", "Lt"} else "a"


def _is_within(code_point: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(first <= code_point <= last for first, last in ranges)
