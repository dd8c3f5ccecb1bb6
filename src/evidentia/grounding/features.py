"""What a passage has to say about a claim, as a handful of integers, and the window of sentences that says it.

Every feature is in thousandths. Work is linear in the places of the passage where a word of the claim stands.
"""

from __future__ import annotations

from bisect import bisect_left
from math import isqrt
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from evidentia.grounding.contradictions import is_contradicted
from evidentia.grounding.directions import compare, leaning
from evidentia.grounding.lexicon import EMPTY
from evidentia.grounding.windows import ONE, WIDEST, Hits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.grounding.directions import Turn
    from evidentia.grounding.quantities import Quantity
    from evidentia.grounding.reading import Claim, Passage
    from evidentia.grounding.windows import Window

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


class Finding(NamedTuple):
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
    turns: tuple[Turn, ...]
    denials: tuple[tuple[str, int], ...]
    """Negations in the best sentence, with its number."""


def find(claim: Claim, passage: Passage) -> Finding:
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
    return Finding(features, window, missing, tuple(numbers), tuple(units), tuple(names), said.turns, tuple(denials))


def _focus(claim: Claim, passage: Passage, sentence: int) -> int:
    if sentence < 0:
        return 0
    words = {term for term in passage.inside(sentence, sentence + 1) if term not in EMPTY}
    shared = sum(term in claim.weights for term in words)
    return isqrt(shared * ONE * ONE // len(words)) if words else 0


def _phrases(claim: Claim, passage: Passage) -> int:
    wanted = list(dict.fromkeys(zip(claim.terms, claim.terms[1:], claim.terms[2:], strict=False)))[:_MAX_PHRASES]
    found = sum(_has_phrase(passage, phrase) for phrase in wanted)
    return found * ONE // len(wanted) if wanted else 0


def _has_phrase(passage: Passage, phrase: tuple[str, str, str]) -> bool:
    """Look where the rarest of the three words stands."""
    places = [passage.places.get(term, ()) for term in phrase]
    offset = min(range(len(phrase)), key=lambda index: len(places[index]))
    starts = (place - offset for place in places[offset][:_MAX_PLACES] if place >= offset)
    return any(passage.terms[start : start + len(phrase)] == phrase for start in starts)


def _missing_quantities(wanted: Sequence[Quantity], passage: Passage, inside: range) -> tuple[list[str], list[str]]:
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


def _denials(passage: Passage, sentence: int) -> list[tuple[str, int]]:
    if sentence < 0:
        return []
    first, last = (bisect_left(passage.negating, passage.starts[bound]) for bound in (sentence, sentence + 1))
    return list(dict.fromkeys((passage.terms[place], sentence) for place in passage.negating[first:last]))
