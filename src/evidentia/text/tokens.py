"""The one tokeniser: what index and query alike call a term, and where it stands.

A text is split at white space; each piece is analysed by itself, so equal pieces give equal terms wherever they stand and each is
analysed once. Nothing is dropped here: stop words are the query's business.

Rules, in order (chosen on SciFact's train split; the table is in the commit that brought this file):
1. NFKC, one apostrophe, one hyphen (`shapes`); a *word* is letters, marks and digits, joined inside by `_` `.` `'` `-`.
2. `'s 're 've 'll 'd 'm` at the end go; `n't` closes up (`don't` is `dont`).
3. A word is cut into *parts* at connectors, digits, case changes (`HTTPServer2`: http, server, 2) and before or after Greek letters.
   Plural capitals stay together and lose their s (`RNAs`: rna). Each part takes one position.
4. A word of several parts is also emitted *whole*, without hyphens (`IL-6` and `IL6` are both `il6`), at its first part's position. A word
   joined by hyphens alone and without a digit is not (`well-known`): wholes of those cost nDCG.
5. What consists of letters alone, part or whole, is stemmed.
6. Scripts without spaces give single characters as parts and bigrams as wholes.
7. Terms end at 64 characters. A word of more than eight parts of under three characters on average (hashes, base64) is emitted whole
   only, as one position.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final, NamedTuple

import Stemmer

from evidentia.contracts.errors import InvalidFieldError

RULES_VERSION: Final = 1
MAX_TERM_LENGTH: Final = 64
EDGES: Final = ".,;:!?()[]{}\"'"
"""Punctuation that never changes the terms of the piece that it encloses, so it may be stripped first."""
NO_STEMMING: Final = "none"
STOP_WORDS: Final = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then "  # noqa: SIM905 - a list of words reads as words
    "there these they this to was will with".split()
)
"""English words a query may leave out of its ranking; the index keeps them all."""

_REMEMBERED_WORDS: Final = 1 << 16
_OPAQUE_PARTS: Final = 8
_OPAQUE_PART_LENGTH: Final = 3

_WORD: Final = re.compile("[Aag0]+(?:(?:_+|[.'-])[Aag0]+)*|(?:cm*)+")
_PART: Final = re.compile("0+|AA+a(?![Aa])|A+(?!a)|A?a+|g+")
_PLURAL: Final = re.compile("AA+a")
_CLUSTER: Final = re.compile("cm*")
_ENDING: Final = re.compile("'(?:s|re|ve|ll|d|m)$")
_NEGATION: Final = re.compile("'t$")


class Analysis(NamedTuple):
    """What one piece of text becomes: terms, the position of each within the piece, and how many positions it takes."""

    terms: tuple[str, ...]
    offsets: tuple[int, ...]
    span: int


class Tokeniser:
    """Turns text into terms with positions, for one language.

    `language` is a Snowball language, or "none" for no stemming. Thread safe under the GIL; remembers at most 65,536 words of at most
    64 characters, then forgets them all: results never depend on what is remembered.
    """

    def __init__(self, language: str = "english") -> None:
        known = Stemmer.algorithms()
        if language != NO_STEMMING and language not in known:
            raise InvalidFieldError("language", f"'{language}' is not one of {', '.join([NO_STEMMING, *known])}")
        self.language = language
        self._stem = str if language == NO_STEMMING else Stemmer.Stemmer(language, 0).stemWord
        self._remembered: dict[str, Analysis] = {}

    @property
    def identity(self) -> str:
        """Return what an index header records: equal identities mean equal terms (up to characters new to a later Unicode)."""
        stemmer = "" if self.language == NO_STEMMING else f":snowball-{Stemmer.version()}"
        return f"evidentia-tokens/{RULES_VERSION}:{self.language}{stemmer}"

    def terms(self, text: str) -> list[str]:
        """Return the terms in order; a whole comes before its parts."""
        return [term for word in text.split() for term in self.analyse(word).terms]

    def terms_with_positions(self, text: str) -> list[tuple[str, int]]:
        """Return each term with its position; positions count parts from 0 and leave no gaps."""
        placed: list[tuple[str, int]] = []
        position = 0
        for word in text.split():
            terms, offsets, span = self.analyse(word)
            placed.extend((term, position + offset) for term, offset in zip(terms, offsets, strict=True))
            position += span
        return placed

    def phrase_terms(self, text: str) -> list[str]:
        """Return one term per position, parts without wholes: what a phrase must find side by side (`rotate keys` in `rotate_keys`)."""
        return list({position: term for term, position in self.terms_with_positions(text)}.values())

    def analyse(self, word: str) -> Analysis:
        """Return the analysis of one piece of text without white space."""
        bare = word.strip(EDGES)
        found = self._remembered.get(bare)
        if found is None:
            found = self._analyse_bare(bare)
            if len(bare) <= MAX_TERM_LENGTH:
                self._remember(bare, found)
        return found

    def _remember(self, bare: str, found: Analysis) -> None:
        if len(self._remembered) >= _REMEMBERED_WORDS:
            self._remembered.clear()
        self._remembered[bare] = found

    def plain_term(self, bare: str) -> str | None:
        """Return the one term of a plain word, as nearly all are: letters of ASCII, at most the first a capital; None for any other."""
        if bare.isascii() and bare.isalpha() and bare[1:].islower():
            return self._stem(bare.lower())[:MAX_TERM_LENGTH]
        return None

    def _analyse_bare(self, word: str) -> Analysis:
        plain = self.plain_term(word)
        if plain is not None:
            return Analysis((plain,), (0,), 1)
        word = respell(word)
        shape = shape_of(word)
        terms: list[str] = []
        offsets: list[int] = []
        span = 0
        for found in _WORD.finditer(shape):
            start, end = found.span()
            cut = self._cut_unspaced if shape[start] == "c" else self._cut_word
            placed = cut(word[start:end], shape[start:end])
            terms.extend(term for term, _ in placed)
            offsets.extend(span + offset for _, offset in placed)
            span += placed[-1][1] + 1
        return Analysis(tuple(terms), tuple(offsets), span)

    def _cut_word(self, word: str, shape: str) -> list[tuple[str, int]]:
        if "'" in shape:
            word, shape = _close_apostrophe(word, shape)
        spans = [found.span() for found in _PART.finditer(shape)]
        whole = self._finish(word, shape)
        if len(spans) == 1 or _is_opaque(len(spans), len(word)):
            return [(whole, 0)]
        parts = [(self._finish(word[start:end], shape[start:end]), offset) for offset, (start, end) in enumerate(spans)]
        return [(whole, 0), *parts] if _has_whole(shape) else parts

    def _cut_unspaced(self, run: str, shape: str) -> list[tuple[str, int]]:
        clusters = [fold(run[slice(*found.span())])[:MAX_TERM_LENGTH] for found in _CLUSTER.finditer(shape)]
        placed: list[tuple[str, int]] = []
        for offset, cluster in enumerate(clusters):
            if offset + 1 < len(clusters):
                placed.append(((cluster + clusters[offset + 1])[:MAX_TERM_LENGTH], offset))
            placed.append((cluster, offset))
        return placed

    def _finish(self, word: str, shape: str) -> str:
        if word.endswith("s") and _PLURAL.fullmatch(shape):
            word = word[:-1]
        folded = fold(word).replace("-", "")
        return (self._stem(folded) if shape.isalpha() else folded)[:MAX_TERM_LENGTH]


def _close_apostrophe(word: str, shape: str) -> tuple[str, str]:
    folded = word.casefold()
    if ending := _ENDING.search(folded):
        kept = len(word) - len(ending[0])
        return word[:kept], shape[:kept]
    if _NEGATION.search(folded):
        return word[:-2] + word[-1], shape[:-2] + shape[-1]
    return word, shape


def _has_whole(shape: str) -> bool:
    return "0" in shape or "-" not in shape or any(connector in shape for connector in "_.'")


def _is_opaque(parts: int, length: int) -> bool:
    return parts > _OPAQUE_PARTS and length < _OPAQUE_PART_LENGTH * parts


# --- shapes ---
# Unicode reduced to what the tokeniser needs: one clean spelling, and one letter of *shape* per character.
#
# The shape of `IL-6` is `AA-0`: rules about case, digits and connectors are then short patterns over seven letters, the same for every
# script. Nothing here knows about languages or stems.
#
# A upper case a lower or caseless g Greek 0 digit c written without spaces (Han, Kana, Hangul, Thai, ...) m mark _ . ' - connectors, as
# they are (space) everything else

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
