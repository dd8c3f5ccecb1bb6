"""Term look-up and postings over all segments of a snapshot.

Places number the chunks of all segments one after the other, so postings of several segments join without a sort.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from evidentia.backends.embedded.segments import Array, Segment

_POSITION_BITS = 20


class Postings(NamedTuple):
    """Where a term occurs, ascending, and how often."""

    places: NDArray[np.int32]
    frequencies: NDArray[np.int32]


class SegmentTerms:
    """The vocabulary of one segment; a look-up is a binary search over the memory map."""

    def __init__(self, segment: Segment, *, first_place: int) -> None:
        self.first_place = first_place
        self._offsets = segment.array("term_offsets")
        self._bytes = segment.array("term_bytes").data
        self._posting_offsets = segment.array("posting_offsets")
        self._position_offsets = segment.array("position_offsets")
        self._ordinals = segment.array("ordinals")
        self._counts = segment.array("counts")
        self._positions = segment.array("positions")

    def find(self, term: bytes) -> int | None:
        """Return the number of a term, or None."""
        low, high = 0, len(self._offsets) - 1
        offsets, stored = self._offsets, self._bytes
        while low < high:
            middle = (low + high) // 2
            if bytes(stored[offsets[middle] : offsets[middle + 1]]) < term:
                low = middle + 1
            else:
                high = middle
        is_there = low < len(offsets) - 1 and bytes(stored[offsets[low] : offsets[low + 1]]) == term
        return low if is_there else None

    def postings(self, number: int) -> tuple[Array, Array]:
        """Return the ordinals and frequencies of a term."""
        part = slice(self._posting_offsets[number], self._posting_offsets[number + 1])
        return self._ordinals[part], self._counts[part]

    def occurrences(self, number: int) -> NDArray[np.int64]:
        """Return every occurrence of a term as place << 20 | position, ascending."""
        ordinals, counts = self.postings(number)
        positions = self._positions[self._position_offsets[number] : self._position_offsets[number + 1]]
        places = np.repeat(ordinals.astype(np.int64) + self.first_place, counts)
        return (places << _POSITION_BITS) | positions


class Vocabulary:
    """The terms of a snapshot."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        self._parts: list[SegmentTerms] = []
        first_place = 0
        for segment in segments:
            self._parts.append(SegmentTerms(segment, first_place=first_place))
            first_place += segment.header.chunk_count

    def postings(self, term: str) -> Postings:
        """Return where a term occurs, over all segments."""
        encoded = term.encode()
        places, frequencies = [], []
        for part in self._parts:
            number = part.find(encoded)
            if number is not None:
                ordinals, counts = part.postings(number)
                places.append(ordinals + np.int32(part.first_place))
                frequencies.append(counts)
        if len(places) == 1:
            return Postings(places[0], frequencies[0])
        if not places:
            return Postings(np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int32))
        return Postings(np.concatenate(places), np.concatenate(frequencies))

    def phrase(self, terms: Sequence[str]) -> NDArray[np.int64]:
        """Return the places in which the terms stand one after the other."""
        starts: NDArray[np.int64] | None = None
        for offset, term in enumerate(terms):
            shifted = self._occurrences(term) - offset
            starts = shifted if starts is None else np.intersect1d(starts, shifted)  # a whole and its first part may be cut to one term
            if not len(starts):
                break
        return np.empty(0, dtype=np.int64) if starts is None else np.unique(starts >> _POSITION_BITS)

    def _occurrences(self, term: str) -> NDArray[np.int64]:
        encoded = term.encode()
        found = [part.occurrences(number) for part in self._parts if (number := part.find(encoded)) is not None]
        return np.concatenate(found) if found else np.empty(0, dtype=np.int64)
