"""How near two vectors are, in integers: exact keys to compare, and the scores that a hit shows.

    cosine, dot   key = q.v, score = key                       at 2**-(2 * scale_bits)
    euclidean     key = 2 q.v - v.v = q.q - distance**2         score = floor(2**44 / (1 + distance))

Two distances may have one score; such rows tie and are ordered by their ids like any others.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evidentia.contracts.vocabulary import Similarity

if TYPE_CHECKING:
    from numpy.typing import NDArray

EUCLIDEAN_SCORE_BITS = 44
EXACT_FLOAT64 = 1 << 53
"""Integers below this are exact in float64, and so is any sum whose parts and partial sums are."""
_EXTRA_BITS = 64


class Measure(NamedTuple):
    """A similarity at a scale."""

    similarity: Similarity
    scale_bits: int

    @property
    def is_distance(self) -> bool:
        """Tell whether the length of a row counts besides its product with the query."""
        return self.similarity is Similarity.EUCLIDEAN

    @property
    def gain(self) -> int:
        """Return how often the product counts in a key."""
        return 2 if self.is_distance else 1

    @property
    def score_bits(self) -> int:
        """Return how many bits of a score lie behind the point."""
        return EUCLIDEAN_SCORE_BITS if self.is_distance else 2 * self.scale_bits

    def keys(self, products: NDArray[np.int64], squares: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the keys of rows with these products and squared lengths."""
        return 2 * products - squares if self.is_distance else products

    def scores(self, keys: NDArray[np.int64], *, query_square: int) -> NDArray[np.int64]:
        """Return the scores of keys; a larger key never has a smaller score."""
        if not self.is_distance:
            return keys
        return np.asarray([nearness(query_square - key, bits=self.scale_bits) for key in keys.tolist()], dtype=np.int64)

    def tied_from(self, key: float, *, query_square: int) -> float:
        """Return the smallest key that has the same score as this one, or less."""
        if not self.is_distance:
            return key
        distance_square = max(0, query_square - math.floor(key))
        score = nearness(distance_square, bits=self.scale_bits)
        return query_square - farthest(score, bits=self.scale_bits)


def nearness(distance_square: int, *, bits: int) -> int:
    """Return floor(2**44 / (1 + d)), where d is the square root of `distance_square` at 2**-bits."""
    whole = 1 << (EUCLIDEAN_SCORE_BITS + bits)
    root = math.isqrt(distance_square << (2 * _EXTRA_BITS))
    score = (whole << _EXTRA_BITS) // ((1 << (bits + _EXTRA_BITS)) + root)
    while score * score * distance_square > (whole - (score << bits)) ** 2:  # the root was rounded down
        score -= 1
    return score


def farthest(score: int, *, bits: int) -> int:
    """Return the largest squared distance that still has this score."""
    whole = 1 << (EUCLIDEAN_SCORE_BITS + bits)
    left: int = (whole - (score << bits)) ** 2
    return left // (score * score)
