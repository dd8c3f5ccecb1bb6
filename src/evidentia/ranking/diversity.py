"""Maximal marginal relevance: the next fragment is the best of those that say something new.

Carbonell and Goldstein (1998): argmax lambda * score - (1 - lambda) * max similarity to the selected. Lambda is the request's
`diversity_constraint`, turned into millionths once; after that everything is an exact integer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from evidentia.ranking.composite import MILLION, millionths
from evidentia.ranking.fusion import order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

SIMILARITY_BITS: Final = 16
"""Similarities are integers at 2^-16."""
MISSING: Final = -1
"""Stands for the similarity of a pair of which one has no vector."""

_SCALE: Final = 1 << SIMILARITY_BITS
_OUT: Final = -(1 << 60)


def diversify(
    scores: Sequence[int],
    ids: Sequence[str],
    similarities: NDArray[np.int64] | None,
    *,
    diversity: float,
    limit: int,
    overlap: Callable[[int, int], int],
) -> list[int]:
    """Return the indexes of at most `limit` candidates in the order of their selection; ties by higher score, then by id.

    A `diversity` of 1 keeps the given order. `similarities` holds each pair at 2^-16, symmetric, and MISSING where a vector is; then,
    and for all pairs when it is None, `overlap` says what a pair has in common. Scores are below 2^42, so that products fit 64 bits.

    What a pair without vectors has in common is counted only for a candidate that leads. Until then its penalty is too small, so its
    value is an upper bound; whoever leads with an exact value is ahead of everybody's bound, hence of everybody's value.
    """
    lambda_millionths = millionths("diversity_constraint", diversity)
    wanted = min(limit, len(scores))
    if lambda_millionths == MILLION or wanted == 0:
        return list(range(wanted))
    return _Selection(scores, ids, similarities, overlap, lambda_millionths).run(wanted)


class TokenOverlap:
    """The share of tokens that two texts have in common (Jaccard), at 2^-16; texts without any token have none in common.

    A set of tokens is an integer with one bit per token, so that what two sets share is counted in one go. `tokens_of` gives the tokens
    of a text by its number and is asked once for each.
    """

    def __init__(self, tokens_of: Callable[[int], Iterable[str]]) -> None:
        self._tokens_of = tokens_of
        self._bits: dict[str, int] = {}
        self._sets: dict[int, tuple[int, int]] = {}

    def __call__(self, left: int, right: int) -> int:
        """Return what two texts have in common."""
        first, first_count = self._set(left)
        second, second_count = self._set(right)
        shared = (first & second).bit_count()
        return (shared << SIMILARITY_BITS) // (first_count + second_count - shared) if shared else 0

    def _set(self, number: int) -> tuple[int, int]:
        known = self._sets.get(number)
        if known is None:
            places = {self._bits.setdefault(token, len(self._bits)) for token in self._tokens_of(number)}
            bits = bytearray(len(self._bits) // 8 + 1)
            for place in places:
                bits[place >> 3] |= 1 << (place & 7)
            known = self._sets[number] = (int.from_bytes(bits, "little"), len(places))
        return known


class _Selection:
    """One run: what each candidate is worth at most, given the penalties known so far.

    Candidates are kept best first, by score and then by id, so that the first of equal values is the one that wins a tie.
    """

    def __init__(
        self,
        scores: Sequence[int],
        ids: Sequence[str],
        similarities: NDArray[np.int64] | None,
        overlap: Callable[[int, int], int],
        lambda_millionths: int,
    ) -> None:
        self._places = order(scores, ids)
        self._merits = np.array([scores[place] for place in self._places], dtype=np.int64) * lambda_millionths
        self._price = (MILLION - lambda_millionths) * _SCALE
        self._rows = _in_places(similarities, self._places)
        self._overlap = overlap
        self._has_gaps = self._rows is None or bool(self._rows.min() < 0)
        self._penalties = np.zeros(len(scores), dtype=np.int64)
        self._values = self._merits.copy()
        self._selected: list[int] = []
        self._compared = [0] * len(scores)

    def run(self, wanted: int) -> list[int]:
        self._take(0)
        while len(self._selected) < wanted:
            self._take(self._leader())
        return [self._places[index] for index in self._selected]

    def _take(self, index: int) -> None:
        self._selected.append(index)
        self._merits[index] = _OUT
        if self._rows is not None:
            np.maximum(self._penalties, self._rows[index], out=self._penalties)
        np.multiply(self._penalties, self._price, out=self._values)
        np.subtract(self._merits, self._values, out=self._values)

    def _leader(self) -> int:
        leader = int(self._values.argmax())
        while self._has_gaps and self._lower(leader):
            leader = int(self._values.argmax())
        return leader

    def _lower(self, index: int) -> bool:
        """Count what a candidate has in common with the selected, one by one, until its value falls; tell whether it did."""
        while self._compared[index] < len(self._selected):
            selected = self._selected[self._compared[index]]
            self._compared[index] += 1
            is_gap = self._rows is None or self._rows[index, selected] < 0
            if is_gap and self._penalise(index, self._overlap(self._places[index], self._places[selected])):
                return True
        return False

    def _penalise(self, index: int, similarity: int) -> bool:
        if similarity <= self._penalties[index]:
            return False
        self._penalties[index] = similarity
        self._values[index] = self._merits[index] - similarity * self._price
        return True


def _in_places(similarities: NDArray[np.int64] | None, places: Sequence[int]) -> NDArray[np.int64] | None:
    if similarities is None or all(index == place for index, place in enumerate(places)):
        return similarities
    return similarities[np.ix_(places, places)]
