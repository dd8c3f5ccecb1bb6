"""One file's rows as a search needs them: lengths for the bound of the scan, and three ways to multiply."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from evidentia.backends.embedded.vector_measure import EXACT_FLOAT64

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evidentia.backends.embedded.vector_file import VectorFile

TYPICAL_SHARE = 999
"""The bound that is used for all rows at once holds for this many in a thousand; the others are looked at one by one."""
_SAFETY = 1 + 1e-6
_BLOCK = 2_048


class ScanRows:
    """What a search needs of one file besides its arrays; made once, kept in memory: 20 bytes a row."""

    def __init__(self, file: VectorFile) -> None:
        self.file = file
        self.units: NDArray[np.float32] = file.steps.astype(np.float32)
        self.reach = _rounded_up(np.sqrt(file.high_squares.astype(np.float64)) * self.units.astype(np.float64))
        self.slack = _rounded_up(np.sqrt(file.low_squares.astype(np.float64)))
        self.typical_reach = _typical(self.reach)
        self.typical_slack = _typical(self.slack)
        self.unusual = np.flatnonzero((self.reach > self.typical_reach) | (self.slack > self.typical_slack))
        self.largest_square = int(file.squares.max(initial=0))
        self.largest_reach = float(self.reach.max(initial=0))
        self._longest = math.sqrt(self.largest_square) + float(self.slack.max(initial=0))
        self._offsets: tuple[int, NDArray[np.int32]] | None = None
        self._packed: NDArray[np.int8] | None = None

    @property
    def scan(self) -> NDArray[np.int8]:
        """Return what is scanned: the file's own bytes, or the copy in memory once there is one."""
        return self.file.scan if self._packed is None else self._packed

    def pack(self) -> None:
        """Copy what is scanned into memory: large pages are read faster than a file's."""
        if self._packed is None:
            self._packed = np.array(self.file.scan)

    def offsets(self, levels: int) -> NDArray[np.int32]:
        """Return what a query shifted by `levels` adds to each row's sum."""
        if self._offsets is None or self._offsets[0] != levels:
            self._offsets = (levels, self.file.sums * np.int32(levels))
        return self._offsets[1]

    @cached_property
    def squares(self) -> NDArray[np.float32]:
        """Return the squared lengths of the rows, nearly."""
        return self.file.squares.astype(np.float32)

    def products(self, ordinals: NDArray[np.int64], query: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the exact products of a query with rows."""
        # Then every partial sum over h or l is below that too, in any order.
        is_small = math.sqrt(int(query @ query)) * self._longest * _SAFETY < EXACT_FLOAT64
        found = np.empty(len(ordinals), dtype=np.int64)
        for start in range(0, len(ordinals), _BLOCK):
            some = ordinals[start : start + _BLOCK]
            found[start : start + _BLOCK] = self._in_float64(some, query) if is_small else self._in_int64(some, query)
        return found

    def near_products(self, ordinals: NDArray[np.int64], query: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the products of a query with the first bits of rows, nearly."""
        found = np.empty(len(ordinals), dtype=np.float32)
        for start in range(0, len(ordinals), _BLOCK):
            some = ordinals[start : start + _BLOCK]
            found[start : start + _BLOCK] = self.file.high.take(some, axis=0).astype(np.float32) @ query
        return found * self.units[ordinals]

    def _in_float64(self, ordinals: NDArray[np.int64], query: NDArray[np.int64]) -> NDArray[np.int64]:
        """Multiply where every product and every sum is a whole number that float64 can hold."""
        wide = query.astype(np.float64)
        by_high = (self.file.high.take(ordinals, axis=0).astype(np.float64) @ wide).astype(np.int64)
        by_low = (self.file.low.take(ordinals, axis=0).astype(np.float64) @ wide).astype(np.int64)
        return by_high * self.file.steps[ordinals].astype(np.int64) + by_low

    def _in_int64(self, ordinals: NDArray[np.int64], query: NDArray[np.int64]) -> NDArray[np.int64]:
        products: NDArray[np.int64] = (self.file.rows(ordinals).join().astype(np.int64) * query).sum(axis=1)
        return products


def _typical(values: NDArray[np.float32]) -> float:
    cut = len(values) * TYPICAL_SHARE // 1000
    return float(np.partition(values, min(cut, len(values) - 1))[min(cut, len(values) - 1)]) if len(values) else 0.0


def _rounded_up(values: NDArray[np.float64]) -> NDArray[np.float32]:
    return np.nextafter(values.astype(np.float32), np.float32(np.inf))
