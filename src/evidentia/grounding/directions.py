"""Whether a passage says more where a claim says less: directions are compared where both are said of the same thing."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.grounding.lexicon import DIRECTIONS
from evidentia.grounding.reading import is_negated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.grounding.reading import Direction, Passage
    from evidentia.grounding.windows import Hits

_NEAR: Final = 6
"""Places between a thing and the direction that is said of it."""
_ABOUT: Final = 300
"""How much of the claim a sentence must cover before its directions count."""


class Turn(NamedTuple):
    """A direction of the claim, and the opposite one that a sentence has."""

    word: str
    opposite: str
    sentence: int


class Comparison(NamedTuple):
    """How much of the claim is covered by sentences with its directions and by those against them, summed; and the opposites."""

    along: int
    against: int
    turns: tuple[Turn, ...]
    along_in: frozenset[int]
    """The sentences with a direction of the claim."""


def compare(directions: Sequence[Direction], passage: Passage, hits: Hits) -> Comparison:
    """Return what sentences about the same things say of the claim's directions."""
    along = against = 0
    turns: list[Turn] = []
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
                turns.append(Turn(direction.word, term, sentence))
    return Comparison(along, against, tuple(turns), frozenset(along_in))


def leaning(terms: Sequence[str]) -> int:
    """Return how many more words say up than down."""
    return sum(DIRECTIONS.get(term, 0) for term in terms)


def _said_of(objects: Sequence[str], passage: Passage) -> dict[int, int]:
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
