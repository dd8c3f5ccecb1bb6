"""What a passage has to say about a claim, as a handful of integers, and the window of sentences that says it.

Every feature is in thousandths. Work is linear in the places of the passage where a word of the claim stands.
"""

from __future__ import annotations

from bisect import bisect_left
from math import isqrt
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from evidentia.grounding.claim_terms import ClaimTerms, Direction, PassageTerms, Quantity, denied_terms, is_negated
from evidentia.grounding.lexicon import DIRECTIONS, EMPTY, NEGATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


# --- windows ---
# Where the words of a claim stand in a passage, and which sentences in a row cover most of them. Shares are in thousandths.

ONE: Final = 1_000
WIDEST: Final = 3
"""Sentences in a window, at most."""

_PREFIX: Final = 5
"""Words that begin with the same letters, so many, are related (discover, discovery)."""
_RELATED: Final = 800
"""What a related word counts, of the word itself."""
_EXTRA: Final = 40
"""How much more a window must cover for each further sentence."""


class Window(NamedTuple):
    """Sentences `first` up to, not including, `last`, and the share of the claim that they cover."""

    first: int
    last: int
    coverage: int


class Hits:
    """The words of a claim in a passage: a mask of terms for each sentence that has any."""

    def __init__(self, claim: ClaimTerms, passage: PassageTerms) -> None:
        self._weights = tuple(claim.weights.items())
        self._total = sum(claim.weights.values()) or 1
        self._shares: dict[tuple[int, int], int] = {}
        self._count = len(passage.spans)
        bits = {term: 1 << bit for bit, term in enumerate(claim.weights)}
        prefixes: dict[str, int] = {}
        for term, mask in bits.items():
            prefixes[term[:_PREFIX]] = prefixes.get(term[:_PREFIX], 0) | mask
        related = {term: prefixes[term[:_PREFIX]] for term in passage.places if term[:_PREFIX] in prefixes}
        self._exact = _masks(passage, bits)
        self._related = _masks(passage, related)
        self._sentences = sorted({**self._exact, **self._related})

    def coverage(self, sentences: Sequence[int]) -> int:
        """Return the share of the claim's words, by weight, that sentences have together; 0 for a claim without content."""
        exact = related = 0
        for sentence in sentences:
            exact |= self._exact.get(sentence, 0)
            related |= self._related.get(sentence, 0)
        return self._share(exact, related & ~exact)

    def missing(self, sentences: Sequence[int]) -> list[str]:
        """Return the terms of the claim that sentences do not have, nor a related one."""
        found = 0
        for sentence in sentences:
            found |= self._exact.get(sentence, 0) | self._related.get(sentence, 0)
        return [term for bit, (term, _) in enumerate(self._weights) if not found >> bit & 1]

    def most(self, width: int, *, with_first: bool = False) -> int:
        """Return the most that `width` sentences in a row cover, with the first of the passage where it is asked for."""
        starts = {max(0, sentence - back) for sentence in self._sentences for back in range(width)}
        beside = (0,) if with_first else ()
        return max((self.coverage((*beside, *range(start, min(self._count, start + width)))) for start in starts), default=0)

    def best_window(self) -> Window:
        """Return the window that covers most, where each sentence beyond the first must add something; the earliest of equals."""
        best, best_worth = Window(0, min(1, self._count), 0), 0
        for first in self._sentences:
            for last in range(first + 1, min(self._count, first + WIDEST) + 1):
                coverage = self.coverage(range(first, last))
                worth = coverage - _EXTRA * (last - first - 1)
                if worth > best_worth:
                    best, best_worth = Window(first, last, coverage), worth
        return best

    def best_sentence(self, window: Window) -> int:
        """Return the sentence of a window that covers most, the earliest of equals; -1 in an empty passage."""
        return max(range(window.first, window.last), key=lambda sentence: (self.coverage((sentence,)), -sentence), default=-1)

    def _share(self, exact: int, related: int) -> int:
        share = self._shares.get((exact, related))
        if share is None:
            full = sum(weight for bit, (_, weight) in enumerate(self._weights) if exact >> bit & 1)
            part = sum(weight for bit, (_, weight) in enumerate(self._weights) if related >> bit & 1)
            share = self._shares[exact, related] = (full * ONE + part * _RELATED) // self._total
        return share


def _masks(passage: PassageTerms, wanted: Mapping[str, int]) -> dict[int, int]:
    masks: dict[int, int] = {}
    for term, mask in wanted.items():
        for place in passage.places.get(term, ()):
            sentence = passage.sentence_of[place]
            masks[sentence] = masks.get(sentence, 0) | mask
    return masks


# --- features ---

MAX_MISSES: Final = 3
"""Numbers or names beyond this many are counted as this many."""
MAX_DIRECTION: Final = 3 * ONE

_SHORT: Final = 16
_MAX_PHRASES: Final = 128
_MAX_PLACES: Final = 256
"""Places where one phrase is looked for."""


class Features(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The inputs of the model, each in thousandths."""

    coverage: int = 0
    """The share of the claim's words, by weight, in the best three sentences in a row."""
    with_opening: int = 0
    """The same for two sentences and the first of the passage, which often names what the rest is about."""
    focus: int = 0
    """The square root of the share of the best sentence's words that are the claim's."""
    phrases: int = 0
    """The share of the claim's runs of three words that are in the passage."""
    length: int = 0
    """0 up to 16 sentences, 1,000 from 32 on: a long text covers any claim a little."""
    numbers_missing: int = 0
    """Numbers of the claim that the window does not have, or has with another unit only; 1,000 each, up to three."""
    names_missing: int = 0
    """Names of the claim that the passage does not have; 1,000 each, up to three."""
    negation_lost: int = 0
    """1,000 when the claim denies and the best sentence does not."""
    negation_added: int = 0
    """1,000 when the best sentence denies and the claim does not."""
    direction_against: int = 0
    """How much of the claim is covered by sentences that turn its direction round, summed up to 3,000."""
    direction_with: int = 0
    """The same for sentences that say the claim's direction."""
    direction_turned: int = 0
    """1,000 when most directions of the claim are up and most of the window down, or the other way round."""
    direction_absent: int = 0
    """1,000 when a word of direction in the claim is nowhere in the passage."""
    contradicted: int = 0
    """1,000 when the best sentence says the claim but for a negation, a direction or a number."""


class PassageMatch(NamedTuple):
    """What one passage says about a claim: the features, the window, and the terms behind them."""

    features: Features
    window: Window
    missing: tuple[str, ...]
    """Terms of the claim that the window does not cover."""
    numbers: tuple[str, ...]
    """Numbers of the claim that stand nowhere in the window."""
    units: tuple[str, ...]
    """Numbers of the claim that stand in the window with another unit only."""
    names: tuple[str, ...]
    turns: tuple[OppositeDirection, ...]
    denials: tuple[tuple[str, int], ...]
    """Negations in the best sentence, with its number."""


def find(claim: ClaimTerms, passage: PassageTerms) -> PassageMatch:
    """Return what a passage says about a claim."""
    hits = Hits(claim, passage)
    window = hits.best_window()
    sentence = hits.best_sentence(window)
    inside = range(window.first, window.last)
    numbers, units = _missing_quantities(claim.quantities, passage, inside)
    names = [name for name, terms in claim.names.items() if terms and not any(term in passage.places for term in terms)]
    said = compare(claim.directions, passage, hits)
    denials = _denials(passage, sentence)
    focus = _focus(claim, passage, sentence)
    claimed = sum(direction.sign for direction in claim.directions)
    features = Features(
        coverage=hits.most(WIDEST),
        with_opening=hits.most(WIDEST - 1, with_first=True),
        focus=focus,
        phrases=_phrases(claim, passage),
        length=min(max(0, len(passage.spans) - _SHORT), _SHORT) * ONE // _SHORT,
        numbers_missing=min(MAX_MISSES, len(numbers) + len(units)) * ONE,
        names_missing=min(MAX_MISSES, len(names)) * ONE,
        negation_lost=ONE * bool(claim.negations and not denials),
        negation_added=ONE * bool(denials and not claim.negations),
        direction_against=min(MAX_DIRECTION, said.against),
        direction_with=min(MAX_DIRECTION, said.along),
        direction_turned=ONE * (claimed * leaning(passage.inside(window.first, window.last)) < 0),
        direction_absent=ONE * any(direction.word not in passage.places for direction in claim.directions),
        contradicted=ONE * is_contradicted(claim, passage, hits, sentence=sentence, focus_milli=focus, said=said),
    )
    missing = tuple(hits.missing(inside))
    return PassageMatch(features, window, missing, tuple(numbers), tuple(units), tuple(names), said.turns, tuple(denials))


def _focus(claim: ClaimTerms, passage: PassageTerms, sentence: int) -> int:
    if sentence < 0:
        return 0
    words = {term for term in passage.inside(sentence, sentence + 1) if term not in EMPTY}
    shared = sum(term in claim.weights for term in words)
    return isqrt(shared * ONE * ONE // len(words)) if words else 0


def _phrases(claim: ClaimTerms, passage: PassageTerms) -> int:
    wanted = list(dict.fromkeys(zip(claim.terms, claim.terms[1:], claim.terms[2:], strict=False)))[:_MAX_PHRASES]
    found = sum(_has_phrase(passage, phrase) for phrase in wanted)
    return found * ONE // len(wanted) if wanted else 0


def _has_phrase(passage: PassageTerms, phrase: tuple[str, str, str]) -> bool:
    """Look where the rarest of the three words stands."""
    places = [passage.places.get(term, ()) for term in phrase]
    offset = min(range(len(phrase)), key=lambda index: len(places[index]))
    starts = (place - offset for place in places[offset][:_MAX_PLACES] if place >= offset)
    return any(passage.terms[start : start + len(phrase)] == phrase for start in starts)


def _missing_quantities(wanted: Sequence[Quantity], passage: PassageTerms, inside: range) -> tuple[list[str], list[str]]:
    """Return the numbers that the window does not have, and those it has with another unit only."""
    numbers: list[str] = []
    units: list[str] = []
    for number, unit in wanted:
        found = [own for sentence, own in passage.quantities.get(number, ()) if sentence in inside]
        if not found:
            numbers.append(number)
        elif unit and unit not in found and "" not in found:
            units.append(f"{number} {unit}")
    return numbers, units


def _denials(passage: PassageTerms, sentence: int) -> list[tuple[str, int]]:
    if sentence < 0:
        return []
    first, last = (bisect_left(passage.negating, passage.starts[bound]) for bound in (sentence, sentence + 1))
    return list(dict.fromkeys((passage.terms[place], sentence) for place in passage.negating[first:last]))


# --- contradictions ---
# Plain contradictions: a sentence that says nearly all of a claim, but denies it, turns it round or gives another number.
#
# They are rarer in judged sets than in what people try first, so they are found by rule. A rule needs a sentence that is about the claim
# and a mismatch at the very words that both have; a mismatch elsewhere in the passage is left to the other features.

REST_MILLI: Final = 900
"""The least share of the claim's words, numbers, directions and negations aside, in a sentence that says the same."""
FOCUS_MILLI: Final = 700
"""The least focus of that sentence: half of its words are the claim's."""


def is_contradicted(
    claim: ClaimTerms, passage: PassageTerms, hits: Hits, *, sentence: int, focus_milli: int, said: DirectionBalance
) -> bool:
    """Tell whether a sentence says the claim but for a negation, a direction or a number."""
    if focus_milli < FOCUS_MILLI or not _says_the_rest(claim, hits.missing((sentence,))):
        return False
    terms = passage.inside(sentence, sentence + 1)
    turns = [turn for turn in said.turns if turn.sentence == sentence]
    is_turned = any(turn.word not in terms for turn in turns)
    is_denied = (bool(turns) or sentence not in said.along_in) and _is_denied(claim, terms)
    return is_turned or is_denied or _has_other_number(claim, passage, sentence)


def _says_the_rest(claim: ClaimTerms, missing: Sequence[str]) -> bool:
    rest = {term: weight for term, weight in claim.weights.items() if term.isalpha() and term not in DIRECTIONS and term not in NEGATIONS}
    lacking = sum(rest.get(term, 0) for term in missing)
    return lacking * ONE <= sum(rest.values()) * (ONE - REST_MILLI)


def _is_denied(claim: ClaimTerms, terms: Sequence[str]) -> bool:
    """Tell whether just one of the two denies a word that both have, and the other denies nothing."""
    denied = denied_terms(terms)
    lost = claim.denied.intersection(terms)
    added = denied.intersection(claim.terms)
    return bool(lost and not denied) or bool(added and not claim.denied)


def _has_other_number(claim: ClaimTerms, passage: PassageTerms, sentence: int) -> bool:
    """Tell whether the sentence has one number with the unit of a number of the claim, and it is another."""
    if not any(unit for _, unit in claim.quantities):
        return False
    given: dict[str, list[tuple[str, ...]]] = {}
    for place, unit, spellings in passage.measured:
        if place == sentence:
            given.setdefault(unit, []).append(spellings)
    return any(len(given.get(unit, ())) == 1 and number not in given[unit][0] for number, unit in claim.quantities)


# --- directions ---
# Whether a passage says more where a claim says less: directions are compared where both are said of the same thing.

_NEAR: Final = 6
"""Places between a thing and the direction that is said of it."""
_ABOUT: Final = 300
"""How much of the claim a sentence must cover before its directions count."""


class OppositeDirection(NamedTuple):
    """A direction of the claim, and the opposite one that a sentence has."""

    word: str
    opposite: str
    sentence: int


class DirectionBalance(NamedTuple):
    """How much of the claim is covered by sentences with its directions and by those against them, summed; and the opposites."""

    along: int
    against: int
    turns: tuple[OppositeDirection, ...]
    along_in: frozenset[int]
    """The sentences with a direction of the claim."""


def compare(directions: Sequence[Direction], passage: PassageTerms, hits: Hits) -> DirectionBalance:
    """Return what sentences about the same things say of the claim's directions."""
    along = against = 0
    turns: list[OppositeDirection] = []
    along_in: list[int] = []
    for direction in directions:
        for sentence, place in _said_of(direction.objects, passage).items():
            coverage = hits.coverage((sentence,))
            if coverage < _ABOUT:
                continue
            term = passage.terms[place]
            sign = -DIRECTIONS[term] if is_negated(passage.terms, place, start=passage.starts[sentence]) else DIRECTIONS[term]
            if sign == direction.sign:
                along += coverage
                along_in.append(sentence)
            else:
                against += coverage
                turns.append(OppositeDirection(direction.word, term, sentence))
    return DirectionBalance(along, against, tuple(turns), frozenset(along_in))


def leaning(terms: Sequence[str]) -> int:
    """Return how many more words say up than down."""
    return sum(DIRECTIONS.get(term, 0) for term in terms)


def _said_of(objects: Sequence[str], passage: PassageTerms) -> dict[int, int]:
    """Return, by sentence, the place of the direction that stands nearest to one of the objects; the earlier of equals."""
    nearest: dict[int, tuple[int, int]] = {}
    for term in objects:
        for place in passage.places.get(term, ()):
            sentence = passage.sentence_of[place]
            for turn in _beside(passage.turning, place):
                if abs(turn - place) <= _NEAR and passage.sentence_of[turn] == sentence:
                    nearest[sentence] = min((abs(turn - place), turn), nearest.get(sentence, (_NEAR + 1, 0)))
    return {sentence: turn for sentence, (_, turn) in sorted(nearest.items())}


def _beside(turning: Sequence[int], place: int) -> Sequence[int]:
    """Return the directions before and behind a place; a direction is not said of itself."""
    following = bisect_left(turning, place)
    return [turn for turn in turning[max(0, following - 1) : following + 2] if turn != place]
