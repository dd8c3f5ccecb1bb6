"""What the postings of a term are worth, looked up: chunks have few different lengths and hold a term few times.

Where more postings than pairs of a length and a frequency are asked for, each pair is worked out once, by the same arithmetic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evidentia.text.weights import Bm25

WORTH_A_TABLE = 4
"""So many postings for each pair of a length and a frequency make a table worth its while."""
_NARROW_CODES = 1 << 16


class CodedLengths(NamedTuple):
    """The different lengths of chunks, ascending, and the number of each chunk's length among them."""

    distinct: NDArray[np.int32]
    codes: NDArray[np.unsignedinteger]

    @classmethod
    def of(cls, lengths: NDArray[np.int32]) -> Self:
        """Return the lengths, which are not negative, with their numbers."""
        distinct = np.flatnonzero(np.bincount(lengths)).astype(np.int32)
        numbers: NDArray[np.unsignedinteger] = np.zeros(
            int(lengths.max(initial=0)) + 1, dtype=np.uint16 if len(distinct) <= _NARROW_CODES else np.uint32
        )
        numbers[distinct] = np.arange(len(distinct))
        return cls(distinct, numbers[lengths])


class ImpactTable:
    """The impacts of any term under one setting of BM25."""

    def __init__(self, bm25: Bm25, lengths: CodedLengths) -> None:
        self._bm25 = bm25
        self._codes = lengths.codes
        self._norms = bm25.norms(lengths.distinct)

    def impacts(self, places: NDArray[np.int32], frequencies: NDArray[np.int32], *, idf: int) -> NDArray[np.int32]:
        """Return what each posting of a term is worth; frequencies are at least 1."""
        codes = self._codes.take(places)
        highest, width = int(frequencies.max(initial=1)), len(self._norms)
        if highest * width * WORTH_A_TABLE > len(places):
            return self._bm25.impacts(frequencies, self._norms.take(codes), idf=idf)
        pairs = np.repeat(np.arange(1, highest + 1, dtype=np.int32), width)
        table = self._bm25.impacts(pairs, np.tile(self._norms, highest), idf=idf)
        cells = codes.astype(np.int32)
        cells += (frequencies - 1) * np.int32(width)
        return table.take(cells)
