"""Claims and passages as terms: one per place, with what each place means. Linear in the text, and bounded for hostile claims.

A *place* is a position of the tokeniser. Words are read once and remembered; what is remembered never changes a result.
"""

from __future__ import annotations

import re
from itertools import takewhile
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.grounding.lexicon import (
    COMMON,
    CURRENCY_SIGNS,
    DENIALS,
    DIRECTIONS,
    EMPTY,
    MAGNITUDES,
    NEGATIONS,
    NUMBER_WORDS,
    TOKENISER,
    UNITS,
    respell,
)
from evidentia.text.sentences import Span, split_sentences

if TYPE_CHECKING:
    from collections.abc import Sequence


MAX_TERMS: Final = 128
"""Different content terms of a claim that are looked for; a sentence has far fewer."""
MAX_DIRECTIONS: Final = 8
MAX_CLAIM_LENGTH: Final = 4_000
"""Characters of a claim that are read."""

_REMEMBERED_WORDS: Final = 1 << 16
_MAX_REMEMBERED_LENGTH: Final = 48
_MARKUP: Final = re.compile(r"\[\d{1,3}(?:[,;\u2013-]\s?\d{1,3}){0,9}\]|\*\*|__|`")
_LIST_MARK: Final = re.compile(r"\A\s*(?:\d{1,3}[.)]\s|[-*\u2022]\s)|[\n\r]\s*+\d{1,3}[.)]?\s*+\.?\Z")
_EDGES: Final = ".,;:!?()[]{}\"'*_\u2018\u2019\u201c\u201d\u00ab\u00bb"
_SENTENCE_ENDS: Final = (".", ":", "!", "?")
_SCOPE: Final = 4
_ONLY: Final = TOKENISER.analyse("only").terms
_HAS_QUANTITIES: Final = itemgetter(1)
_NUMBER_WEIGHT: Final = 1_300
_LEAST_WEIGHT, _LETTER_WEIGHT, _MAX_WEIGHT = 400, 120, 1_500


class WordTerms(NamedTuple):
    """What one piece of text without white space is: its terms, and the numbers in it."""

    terms: tuple[str, ...]
    quantities: tuple[Quantity, ...]
    unit: str
    """The unit that the word is behind a number."""


class Direction(NamedTuple):
    """A word that says more or less, where it stands, and what it is said of."""

    word: str
    sign: int
    """1 or -1, turned round by a negation just before it."""
    objects: tuple[str, ...]


class ClaimTerms(NamedTuple):
    """A claim as terms. `weights` are those of the content terms, in thousandths of a plain word of five letters."""

    terms: tuple[str, ...]
    weights: dict[str, int]
    surfaces: dict[str, str]
    """How the claim writes each term."""
    quantities: tuple[Quantity, ...]
    names: dict[str, tuple[str, ...]]
    """Words written like names, each with its terms."""
    negations: tuple[str, ...]
    denied: frozenset[str]
    """Terms that a negation stands just before."""
    directions: tuple[Direction, ...]


class PassageTerms(NamedTuple):
    """A passage as terms: `starts[n]` is the first place of sentence n, and `starts[-1]` the number of places."""

    spans: tuple[Span, ...]
    starts: tuple[int, ...]
    terms: tuple[str, ...]
    sentence_of: tuple[int, ...]
    """The sentence of each place."""
    places: dict[str, list[int]]
    """The places of each term."""
    turning: tuple[int, ...]
    """The places of words that say more or less."""
    negating: tuple[int, ...]
    measured: tuple[tuple[int, str, tuple[str, ...]], ...]
    """Numbers with a unit: the sentence, the unit, and the number as it is and rounded."""
    quantities: dict[str, tuple[tuple[int, str], ...]]
    """For each number, the sentences and units it stands with."""

    def inside(self, first: int, last: int) -> tuple[str, ...]:
        """Return the terms of sentences `first` up to, not including, `last`."""
        return self.terms[self.starts[first] : self.starts[last]]


def read_claim(text: str) -> ClaimTerms:
    """Return a claim as terms; citation marks and emphasis are not part of it."""
    pieces = _LIST_MARK.sub(" ", _MARKUP.sub(" ", text[:MAX_CLAIM_LENGTH]).strip()).split()
    words = _read_words(pieces)
    terms = tuple(term for word in words for term in word.terms)
    weights: dict[str, int] = {}
    surfaces: dict[str, str] = {}
    for piece, word in zip(pieces, words, strict=True):
        for term in word.terms:
            surfaces.setdefault(term, piece.strip(_EDGES) if len(word.terms) == 1 else term)
            if term not in EMPTY and len(weights) < MAX_TERMS:
                weights[term] = weigh(term)
    return ClaimTerms(
        terms=terms,
        weights=weights,
        surfaces=surfaces,
        quantities=_claimed(pieces, words),
        names={name: terms_of(name) for name in _names_of(pieces)[:MAX_TERMS]},
        negations=tuple(dict.fromkeys(term for term in terms if term in NEGATIONS)),
        denied=denied_terms(terms),
        directions=_directions_of(terms),
    )


def read_passage(text: str) -> PassageTerms:
    """Return a passage as terms, sentence by sentence."""
    spans = tuple(split_sentences(text))
    starts: list[int] = [0]
    terms: list[str] = []
    sentence_of: list[int] = []
    measured: list[tuple[int, str, tuple[str, ...]]] = []
    quantities: dict[str, list[tuple[int, str]]] = {}
    for sentence, span in enumerate(spans):
        words = _read_words(text[span.start : span.end].split())
        for word in words:
            terms += word[0]
        starts.append(len(terms))
        sentence_of += [sentence] * (len(terms) - len(sentence_of))
        if any(map(_HAS_QUANTITIES, words)):
            for number, unit in join([word[1:] for word in words]):
                spellings = (number, rounded(number)) if "." in number else (number,)
                for spelling in spellings:
                    quantities.setdefault(spelling, []).append((sentence, unit))
                if unit:
                    measured.append((sentence, unit, spellings))
    places: dict[str, list[int]] = {}
    for place, term in enumerate(terms):
        if term in places:
            places[term].append(place)
        else:
            places[term] = [place]
    return PassageTerms(
        spans=spans,
        starts=tuple(starts),
        terms=tuple(terms),
        sentence_of=tuple(sentence_of),
        places=places,
        turning=tuple(sorted(place for term in DIRECTIONS if term in places for place in places[term])),
        negating=tuple(sorted(place for term in NEGATIONS if term in places for place in places[term])),
        measured=tuple(measured),
        quantities={number: tuple(dict.fromkeys(own)) for number, own in quantities.items()},
    )


def denied_terms(terms: Sequence[str]) -> frozenset[str]:
    """Return the first two content terms behind each word that denies; `not only` does not."""
    denied: list[str] = []
    for place, term in enumerate(terms):
        if term in DENIALS and terms[place + 1 : place + 2] != _ONLY:
            denied += [following for following in terms[place + 1 : place + 7] if following not in EMPTY][:2]
    return frozenset(denied)


def terms_of(piece: str) -> tuple[str, ...]:
    """Return the terms of a piece of text without white space."""
    return _words[piece].terms


def weigh(term: str) -> int:
    """Return how much finding a content term says: long words and numbers are rare, some words are common."""
    if not term.isalpha():
        return _NUMBER_WEIGHT
    weight = min(_MAX_WEIGHT, _LEAST_WEIGHT + _LETTER_WEIGHT * len(term))
    return weight // 2 if term in COMMON else weight


class _WordCache(dict[str, WordTerms]):
    """Words that were read before; thread safe under the GIL, and emptied when full."""

    def __missing__(self, piece: str) -> WordTerms:
        word = _read_word(piece)
        if len(piece) <= _MAX_REMEMBERED_LENGTH:
            if len(self) >= _REMEMBERED_WORDS:
                self.clear()
            self[piece] = word
        return word


_words: Final = _WordCache()


def _read_words(pieces: Sequence[str]) -> list[WordTerms]:
    return list(map(_words.__getitem__, pieces))


def _read_word(piece: str) -> WordTerms:
    terms, offsets, _ = TOKENISER.analyse(piece)
    # Of a whole and its first part, which share a place, the part is kept: `IL-6` and `IL 6` then are the same two terms.
    kept = tuple(dict(zip(offsets, terms, strict=True)).values()) if len(terms) > 1 else terms
    bare = piece.strip(_EDGES)
    return WordTerms(tuple(map(respell, kept)), quantities_in(bare), unit_of(bare))


def _claimed(pieces: Sequence[str], words: Sequence[WordTerms]) -> tuple[Quantity, ...]:
    """Return the numbers of a claim; `one` is more often a pronoun."""
    counting = [word[1:] for piece, word in zip(pieces, words, strict=True) if piece.lower() != "one"]
    return tuple(dict.fromkeys(join(counting)))[:MAX_TERMS]


def _names_of(pieces: Sequence[str]) -> list[str]:
    """Return the words written like names: capitals that no sentence begins with, or that another such word follows."""
    names: list[str] = []
    opens = True
    for place, piece in enumerate(pieces):
        bare = piece.strip(_EDGES)
        is_marked = not opens or not bare[1:].islower() or (place == 0 and _is_capitalised("".join(pieces[1:2])))
        if bare[:1].isupper() and is_marked and not is_empty(bare):
            names.append(bare)
        opens = piece.endswith(_SENTENCE_ENDS)
    return names


def _is_capitalised(piece: str) -> bool:
    bare = piece.strip(_EDGES)
    return bare[:1].isupper() and bare[1:].islower() and bare.isalpha()


def is_empty(word: str) -> bool:
    """Tell whether a word says nothing by itself."""
    return all(term in EMPTY for term in terms_of(word))


def _directions_of(terms: Sequence[str]) -> tuple[Direction, ...]:
    found: list[Direction] = []
    for place, term in enumerate(terms):
        sign = DIRECTIONS.get(term, 0)
        if sign:
            found.append(Direction(term, -sign if is_negated(terms, place) else sign, _objects_of(terms, place)))
    return tuple(dict.fromkeys(found))[:MAX_DIRECTIONS]


def is_negated(terms: Sequence[str], place: int, *, start: int = 0) -> bool:
    """Tell whether one of the four terms before a place negates it, in a sentence that begins at `start`."""
    return any(term in NEGATIONS for term in terms[max(start, place - _SCOPE) : place])


def _objects_of(terms: Sequence[str], place: int) -> tuple[str, ...]:
    """Return what a direction is said of: the next two content terms before another direction, else the two before it."""
    following = takewhile(lambda term: term not in DIRECTIONS, terms[place + 1 : place + 6])
    behind = [term for term in following if term not in EMPTY][:2]
    return tuple(behind or [term for term in terms[max(0, place - 5) : place] if term not in EMPTY][-2:])


# --- quantities ---
# Numbers with their units, in one spelling: 1.5 million, 1,500,000 and 1500000 are the same. Digits inside a name are no number.

_NUMBER: Final = re.compile(r"[0-9]{1,18}(?:[.,][0-9]{1,18}){0,8}")
_LETTER: Final = re.compile(r"[^\W\d_]")
_HALF: Final = "5"


class Quantity(NamedTuple):
    """A number as it counts, and its unit where one stands beside it."""

    number: str
    unit: str


def quantities_in(piece: str) -> tuple[Quantity, ...]:
    """Return the numbers of a piece of text without white space: `5mg` and `10-20%` have some, `IL-6` has none."""
    spelt = NUMBER_WORDS.get(piece.lower())
    if spelt is not None:
        return (Quantity(spelt, ""),)
    first = _LETTER.search(piece)
    end = first.start() if first else len(piece)
    return tuple(_quantity(piece, found) for found in _NUMBER.finditer(piece) if found.start() < end)


def unit_of(piece: str) -> str:
    """Return the unit that a piece of text is behind a number; empty when it is none."""
    return UNITS.get(piece.lower(), "")


def join(words: Sequence[tuple[tuple[Quantity, ...], str]]) -> list[Quantity]:
    """Return the numbers of a text, given those of each word and the unit it is: a number takes the unit behind it."""
    found: list[Quantity] = []
    for place, (own, _) in enumerate(words):
        if own:
            following = words[place + 1][1] if place + 1 < len(words) else ""
            found += own[:-1]
            found.append(_counted(own[-1], following))
    return found


def rounded(number: str) -> str:
    """Return a decimal as the whole number that a claim may give in its place."""
    whole, point, part = number.partition(".")
    if not point or not whole.isascii() or not whole.isdigit():
        return number
    return str(int(whole) + (part[:1] >= _HALF))


def _quantity(piece: str, found: re.Match[str]) -> Quantity:
    number = found[0].replace(",", "")
    number = (number.lstrip("0") or "0") if "." not in number else number
    sign = CURRENCY_SIGNS.get(piece[found.start() - 1 : found.start()], "") if found.start() else ""
    return Quantity(number, sign or unit_of(piece[found.end() :]))


def _counted(quantity: Quantity, following: str) -> Quantity:
    """Return a number in digits, with the magnitude and the unit that it is written with."""
    number, unit = quantity
    magnitude = next((name for name in (unit, following) if name in MAGNITUDES), "")
    if not magnitude:
        return Quantity(number, unit or following)
    zeros = MAGNITUDES[magnitude]
    whole, _, part = number.partition(".")
    if len(part) > zeros or "." in part:
        return Quantity(number, unit or following)
    return Quantity((whole + part.ljust(zeros, "0")).lstrip("0") or "0", "" if unit == magnitude else unit)
