"""The postings of one term within a mask, with what each occurrence is worth, and the arithmetic on them.

An added term is worth (impact * weight) >> 8 everywhere: the shift rounds down, in numpy as in Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evidentia.backends.embedded.segments import Array

WEIGHT_BITS = 8
"""Weights of added terms are in 256ths."""
COMMON_SHARE = 16
"""A term in more than one place out of this many is common."""


class TermPostings(NamedTuple):
    """A term within the mask: places ascending, frequencies, and what each occurrence is worth.

    A common term also has its impacts spread over all places, because adding whole arrays is far cheaper than
    adding at many places.
    """

    places: NDArray[np.int32]
    frequencies: NDArray[np.int32]
    impacts: Array
    idf: int
    is_positive: bool
    spread: Array | None
    occupied: NDArray[np.bool_] | None

    @classmethod
    def of(cls, places: NDArray[np.int32], frequencies: NDArray[np.int32], impacts: Array, *, idf: int, size: int) -> TermPostings:
        """Return the postings of a term among `size` places."""
        is_positive = bool((impacts > 0).all())
        spread = occupied = None
        if len(places) * COMMON_SHARE > size:
            spread = np.zeros(size, dtype=impacts.dtype)
            spread[places] = impacts
            if not is_positive:
                occupied = np.zeros(size, dtype=np.bool_)
                occupied[places] = True
        return cls(places, frequencies, impacts, idf, is_positive, spread, occupied)

    def weighed(self, weight: int, *, size: int) -> TermPostings:
        """Return the postings as those of an added term; small impacts may come to nothing, and match all the same."""
        weighed = (self.impacts.astype(np.int64) * weight) >> WEIGHT_BITS
        if weight <= 1 << WEIGHT_BITS:
            weighed = weighed.astype(self.impacts.dtype)
        return TermPostings.of(self.places, self.frequencies, weighed, idf=self.idf, size=size)

    @property
    def byte_count(self) -> int:
        """Return how much memory the arrays take."""
        arrays = (self.places, self.frequencies, self.impacts, self.spread, self.occupied)
        return sum(array.nbytes for array in arrays if array is not None)

    def add_to(self, totals: Array, times: int) -> None:
        """Add the impacts, so many times, to a total per place."""
        if self.spread is not None:
            totals += self.spread if times == 1 else np.multiply(self.spread, times, dtype=totals.dtype)
        else:
            totals[self.places] += self.impacts if times == 1 else np.multiply(self.impacts, times, dtype=totals.dtype)

    def touch(self, touched: NDArray[np.bool_]) -> None:
        """Note where the term stands, for queries whose scores alone do not tell: some impacts are zero or negative."""
        if self.occupied is not None:
            touched |= self.occupied
        else:
            touched[self.places] = True

    def at(self, places: NDArray[np.int32]) -> Array:
        """Return the impact at each of some places, 0 where the term does not occur."""
        if self.spread is not None:
            return self.spread[places]
        if not len(self.places):
            return np.zeros(len(places), dtype=self.impacts.dtype)
        index = np.minimum(self.places.searchsorted(places), len(self.places) - 1)
        impacts: Array = self.impacts[index] * (self.places[index] == places)
        return impacts

    def occurs(self, places: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Tell for each of some places whether the term occurs there, whatever it is worth."""
        if not len(self.places):
            return np.zeros(len(places), dtype=np.bool_)
        index = np.minimum(self.places.searchsorted(places), len(self.places) - 1)
        is_there: NDArray[np.bool_] = self.places[index] == places
        return is_there
