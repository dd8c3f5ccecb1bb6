"""The postings of one term within a mask, with what each occurrence is worth, and the arithmetic on them.

An added term is worth (impact * weight) >> 8 everywhere: the shift rounds down, in numpy as in Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evidentia.backends.embedded.segments import Array

WEIGHT_BITS = 8
"""Weights of added terms are in 256ths."""
COMMON_SHARE = 16
"""A term in more than one place out of this many is common."""


class TermPostings:
    """A term within the mask: places ascending, frequencies, and what each occurrence is worth. Thread safe under the GIL.

    The impacts of a common term are spread over all places when they are added for the second time, because adding whole arrays is
    far cheaper than adding at many places, and spreading them is not.
    """

    __slots__ = ("_occupied", "_size", "_spread", "_was_added", "frequencies", "idf", "impacts", "is_positive", "places")

    def __init__(self, places: NDArray[np.int32], frequencies: NDArray[np.int32], impacts: Array, *, idf: int, size: int) -> None:
        """Take the postings of a term among `size` places."""
        self.places = places
        self.frequencies = frequencies
        self.impacts = impacts
        self.idf = idf
        self.is_positive = bool(impacts.min(initial=1) > 0)
        self._size = size
        self._was_added = False
        self._spread: Array | None = None
        self._occupied: NDArray[np.bool_] | None = None

    def weighed(self, weight: int) -> TermPostings:
        """Return the postings as those of an added term; small impacts may come to nothing, and match all the same."""
        weighed = (self.impacts.astype(np.int64) * weight) >> WEIGHT_BITS
        if weight <= 1 << WEIGHT_BITS:
            weighed = weighed.astype(self.impacts.dtype)
        return TermPostings(self.places, self.frequencies, weighed, idf=self.idf, size=self._size)

    @property
    def byte_count(self) -> int:
        """Return how much memory the arrays take, those included that a common term has when it is added again."""
        spread = self._size * (self.impacts.dtype.itemsize + (not self.is_positive)) if self._is_common else 0
        return self.places.nbytes + self.frequencies.nbytes + self.impacts.nbytes + spread

    def add_to(self, totals: Array, times: int) -> None:
        """Add the impacts, so many times, to a total per place."""
        if self._spread is None and self._was_added and self._is_common:
            self._spread_out()
        self._was_added = True
        if self._spread is not None:
            totals += self._spread if times == 1 else np.multiply(self._spread, times, dtype=totals.dtype)
        else:
            np.add.at(totals, self.places, self.impacts if times == 1 else np.multiply(self.impacts, times, dtype=totals.dtype))

    def touch(self, touched: NDArray[np.bool_]) -> None:
        """Note where the term stands, for queries whose scores alone do not tell: some impacts are zero or negative."""
        if self._occupied is not None:
            touched |= self._occupied
        else:
            touched[self.places] = True

    @property
    def _is_common(self) -> bool:
        return len(self.places) * COMMON_SHARE > self._size

    def _spread_out(self) -> None:
        if not self.is_positive:
            occupied = np.zeros(self._size, dtype=np.bool_)
            occupied[self.places] = True
            self._occupied = occupied
        spread = np.zeros(self._size, dtype=self.impacts.dtype)
        spread[self.places] = self.impacts
        self._spread = spread

    def at(self, places: NDArray[np.int32]) -> Array:
        """Return the impact at each of some places, 0 where the term does not occur."""
        if self._spread is not None:
            return self._spread[places]
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
