"""The nearest rows to a query, exactly: a scan of the first bits proposes, whole integers decide.

A query q meets rows v = s h + l (`vector_arithmetic`). The scan knows h and a query of 7 or 8 bits, q' = sigma c with
integers c. Write r = q - q'. Then

    q.v = s q.h + q.l = s sigma c.h + s r.h + q.l

and by Cauchy and Schwarz the scan's s sigma c.h is off by at most  |r| s|h| + |q| |l|.  c.h is an exact sum of
integers. Lengths are rounded up, and what float32 may lose is added, so the bound holds on every machine. Whatever may
reach the best `limit` by these bounds goes on to a second look, the whole query against h, which is off by at most
|q| |l|; what is left is multiplied out in integers. Which kernel scanned, and how well, decides the cost and nothing else.
"""

from __future__ import annotations

import math
import threading
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from evidentia.backends.embedded.vectors.vector_arithmetic import best_of, nth_largest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from evidentia.backends.embedded.lexical.segments import Array
    from evidentia.backends.embedded.vectors.vector_arithmetic import Kernel, SimilarityMeasure
    from evidentia.backends.embedded.vectors.vector_file import ScanRows

GATHER_COST = 16
"""A row that is fetched by itself costs about as much as this many that are scanned in passing."""
PEAKS, PEAKS_PER_RESULT = 4_096, 16
"""Into how many groups rows are dealt; the best of each group tell how good the best of all must be."""
SECOND_LOOK = 4
"""A second look costs half of what multiplying out does and leaves nearly twice as many rows as are asked for."""
PACK_AFTER = 32
"""After so many scans what is scanned is copied into memory, one part with each scan: from there it takes a quarter of the time."""
PACKED_BYTES = 1 << 30
_FLOAT32_LOSS = 2.0**-21
_FLOAT32_STEP = 2.0**-24
_SAFETY = 1 + 1e-6


class DenseProbe:
    """A query, in the forms the steps of a search need."""

    def __init__(self, query: NDArray[np.int32], *, levels: int) -> None:
        self.exact = query.astype(np.int64)
        self.square = int(self.exact @ self.exact)
        self.length = math.sqrt(self.square) * _SAFETY
        largest = int(np.abs(self.exact).max(initial=0))
        self.sigma = largest / levels if largest else 1.0
        coarse = np.rint(self.exact / self.sigma)
        self.scanned = (coarse + levels).astype(np.uint8)
        self.rest = float(np.linalg.norm(self.exact - coarse * self.sigma)) * _SAFETY + 1e-3


class DenseRows:
    """The rows of several files, numbered one after the other. Thread safe."""

    def __init__(self, files: Sequence[ScanRows]) -> None:
        self._files = files
        self._firsts = np.cumsum([0, *(each.file.count for each in files)])
        self.count = int(self._firsts[-1])
        unusual = [each.unusual + first for each, first in zip(files, self._firsts[:-1].tolist(), strict=True)]
        self._unusual: NDArray[np.int64] = np.concatenate(unusual) if unusual else np.empty(0, dtype=np.int64)
        self._scratch = threading.local()
        self._scans = 0
        self._is_packed = False

    def nearest(
        self, query: NDArray[np.int32], *, measure: SimilarityMeasure, kernel: Kernel, allowed: NDArray[np.bool_] | None, limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows with the best `limit` scores, those that tie with the last included, and their scores.

        1. look at the rows that are allowed: one by one where they are few, else all in one scan
        2. take a second look at what may be among the best
        3. multiply out what is left, and cut
        """
        wanted = self.count if allowed is None else int(np.count_nonzero(allowed))
        if not wanted or limit < 1:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        probe = DenseProbe(query, levels=kernel.levels)
        if allowed is not None and wanted * GATHER_COST < self.count:
            rows = np.flatnonzero(allowed)
        else:
            rows = self._propose(probe, measure=measure, kernel=kernel, allowed=allowed, limit=limit)
        if len(rows) > SECOND_LOOK * limit:
            rows = self._second_look(rows, probe, measure=measure, limit=limit)
        scores = self.scores(rows, probe.exact, measure=measure)
        best = best_of(scores, limit)
        return rows[best], scores[best]

    def scores(self, rows: NDArray[np.int64], query: NDArray[np.int64], *, measure: SimilarityMeasure) -> NDArray[np.int64]:
        """Return the exact scores of rows, in ascending order of rows."""
        products = self.products(rows, query)
        if not measure.is_distance:
            return products
        return measure.scores(measure.keys(products, self.take("squares", rows)), query_square=int(query @ query))

    def products(self, rows: NDArray[np.int64], query: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the exact products of a query with rows, in ascending order of rows."""
        found = np.empty(len(rows), dtype=np.int64)
        for scanned, ordinals, part in self._split(rows):
            found[part] = scanned.products(ordinals, query)
        return found

    def vectors(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return rows as they were stored, in ascending order."""
        found = [scanned.file.rows(ordinals).join() for scanned, ordinals, _ in self._split(rows)]
        return np.concatenate(found) if found else np.empty((0, 0), dtype=np.int32)

    def take(self, name: str, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what an array of the files holds for rows, in ascending order of rows."""
        found = np.empty(len(rows), dtype=np.int64)
        for scanned, ordinals, part in self._split(rows):
            found[part] = getattr(scanned.file, name)[ordinals]
        return found

    def pack(self, kernel: Kernel) -> bool:
        """Copy one more part of what is scanned into memory, of as many files as there is room for; tell whether there was one."""
        room = PACKED_BYTES
        for scanned in self._files:
            room -= scanned.file.scan.nbytes
            if room >= 0 and scanned.pack(kernel):
                return True
        return False

    def _propose(
        self, probe: DenseProbe, *, measure: SimilarityMeasure, kernel: Kernel, allowed: NDArray[np.bool_] | None, limit: int
    ) -> NDArray[np.int64]:
        """Return every row that may be among the best by the bound of the scan."""
        self._scans += 1
        if self._scans >= PACK_AFTER and not self._is_packed:
            self._is_packed = not self.pack(kernel)
        values = self._scan(probe, measure=measure, kernel=kernel)
        if allowed is not None:
            np.copyto(values, -np.inf, where=~allowed)
        unit = 1.0 if measure.is_distance else measure.gain * probe.sigma
        good = _good_value(values, limit) * unit
        if good == -np.inf:
            return np.flatnonzero(values > -np.inf)
        loss = self._loss(probe, measure)
        typical = loss + max(float(_error(probe, measure, each.typical_reach, each.typical_slack)) for each in self._files)
        rows = self._reaching(values, (good - 2 * typical) / unit)
        keys, error = values[rows] * unit, self._errors(rows, probe, measure) + loss
        floor = measure.tied_from(nth_largest(keys - error, limit), query_square=probe.square)
        if floor < good - typical:
            rows = self._reaching(values, (floor - typical) / unit)
            keys, error = values[rows] * unit, self._errors(rows, probe, measure) + loss
        return rows[keys + error >= floor]

    def _reaching(self, values: NDArray[np.float32], least: float) -> NDArray[np.int64]:
        """Return the rows with such a value or a better one, and those for which the typical bound may not hold."""
        is_near = values >= _rounded_down(least)
        is_near[self._unusual] = True
        return np.flatnonzero(is_near)

    def _scan(self, probe: DenseProbe, *, measure: SimilarityMeasure, kernel: Kernel) -> NDArray[np.float32]:
        """Return what the scan says of each row: its key, or its product in units of sigma where that saves a pass."""
        values = self._values()
        for scanned, first in zip(self._files, self._firsts[:-1].tolist(), strict=True):
            part = values[first : first + scanned.file.count]
            sums = scanned.multiply(probe.scanned, kernel)
            sums -= scanned.offsets(kernel.levels)
            part[:] = sums
            part *= scanned.units
            if measure.is_distance:
                part *= np.float32(measure.gain * probe.sigma)
                part -= scanned.squares
        return values

    def _second_look(self, rows: NDArray[np.int64], probe: DenseProbe, *, measure: SimilarityMeasure, limit: int) -> NDArray[np.int64]:
        """Multiply the whole query with the first bits of some rows and drop what can no longer be among the best."""
        values, error = np.empty(len(rows)), np.empty(len(rows))
        query = probe.exact.astype(np.float32)
        for scanned, ordinals, part in self._split(rows):
            values[part] = scanned.near_products(ordinals, query)
            loss = (len(query) + 8) * _FLOAT32_STEP * scanned.reach[ordinals].astype(np.float64)
            error[part] = (scanned.slack[ordinals] + loss) * (probe.length * _SAFETY)
        values, error = values * measure.gain, error * measure.gain
        if measure.is_distance:
            values -= self.take("squares", rows)
        error += self._loss(probe, measure)
        floor = measure.tied_from(nth_largest(values - error, limit), query_square=probe.square)
        return rows[values + error >= floor]

    def _errors(self, rows: NDArray[np.int64], probe: DenseProbe, measure: SimilarityMeasure) -> NDArray[np.float64]:
        error = np.empty(len(rows))
        for scanned, ordinals, part in self._split(rows):
            error[part] = _error(probe, measure, scanned.reach[ordinals].astype(np.float64), scanned.slack[ordinals].astype(np.float64))
        return error

    def _loss(self, probe: DenseProbe, measure: SimilarityMeasure) -> float:
        """Return how much float32 may lose of any value."""
        reach = max((each.largest_reach for each in self._files), default=0.0)
        square = max((each.largest_square for each in self._files), default=0) if measure.is_distance else 0
        return _FLOAT32_LOSS * (measure.gain * (probe.length + probe.rest) * reach + square) + 1.0

    def _split(self, rows: NDArray[np.int64]) -> Iterator[tuple[ScanRows, NDArray[np.int64], slice]]:
        """Yield each file with the ordinals of its rows and where they stand among `rows`, which ascend."""
        if len(self._files) == 1:
            yield self._files[0], rows, slice(len(rows))
            return
        bounds = np.searchsorted(rows, self._firsts).tolist()
        for number, (start, stop) in enumerate(pairwise(bounds)):
            if start < stop:
                yield self._files[number], rows[start:stop] - self._firsts[number], slice(start, stop)

    def _values(self) -> NDArray[np.float32]:
        """Return this thread's room for one value per row."""
        kept: NDArray[np.float32] | None = getattr(self._scratch, "values", None)
        if kept is None:
            kept = self._scratch.values = np.empty(self.count, dtype=np.float32)
        return kept


def _error(probe: DenseProbe, measure: SimilarityMeasure, reach: Array | float, slack: Array | float) -> Array:
    """Return how far a scan may be off the key of rows, before what float32 loses."""
    return np.asarray((probe.rest * reach + probe.length * slack) * (measure.gain * _SAFETY))


def _good_value(values: NDArray[np.float32], limit: int) -> float:
    """Return a value that at least `limit` rows reach, close to the best such; -inf where there is none.

    Rows are dealt into groups; the `limit` best groups each have a row that good.
    """
    groups = max(PEAKS, PEAKS_PER_RESULT * limit)
    size = len(values) // groups
    if size <= 1:
        return nth_largest(values, limit) if limit <= len(values) else -np.inf
    return nth_largest(values[: size * groups].reshape(size, groups).max(axis=0), limit)


def _rounded_down(value: float) -> np.float32:
    below: np.float32 = np.nextafter(np.float32(value), np.float32(-np.inf))
    return below
