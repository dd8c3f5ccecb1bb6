"""Bulk tokenising for a segment: passages in, flat integer arrays out, each distinct surface word analysed once.

The work per passage is a split and one dictionary look-up per word; terms and positions are laid out by numpy for many passages at a time.
A table belongs to one writer; it is not thread safe. Terms are numbered in order of first appearance.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from evidentia.text.tokens import EDGES, MAX_TERM_LENGTH, Tokeniser

if TYPE_CHECKING:
    from numpy.typing import NDArray


SURFACE_LIMIT: Final = 1 << 18
"""Surface words held before the table lays out what it has and forgets them."""
PENDING_LIMIT: Final = 1 << 20
"""Words held before the table lays them out."""


class EncodedPassages(NamedTuple):
    """Passages as flat int32 arrays: `term_counts[i]` entries of `term_ids` and `positions` belong to passage i, in order.

    `lengths[i]` is the number of positions, which is |d| in BM25: wholes that share a position with their first part are not
    counted, since counting them lowered nDCG.
    """

    term_ids: NDArray[np.int32]
    positions: NDArray[np.int32]
    term_counts: NDArray[np.int32]
    lengths: NDArray[np.int32]


class TermTable:
    """A growing vocabulary, and the passages encoded against it since the last `take`."""

    def __init__(self, tokeniser: Tokeniser) -> None:
        self._surfaces = _Surfaces(tokeniser)
        self._words = array("i")
        self._word_counts = array("i")
        self._blocks: list[EncodedPassages] = []

    @property
    def terms(self) -> list[str]:
        """Return every term seen so far; a term's id is its index."""
        return list(self._surfaces.term_ids)

    def add(self, text: str) -> None:
        """Encode one passage; each word costs one look-up once it is known."""
        words = text.split()
        self._words.extend(map(self._surfaces.__getitem__, words))
        self._word_counts.append(len(words))
        if len(self._words) >= PENDING_LIMIT or self._surfaces.is_full:
            self._lay_out()

    def take(self) -> EncodedPassages:
        """Return the passages added since the last call, in order; the vocabulary stays."""
        self._lay_out()
        blocks, self._blocks = self._blocks, []
        if len(blocks) == 1:
            return blocks[0]
        return EncodedPassages(*(np.concatenate(column) for column in zip(*blocks, strict=True)))

    def _lay_out(self) -> None:
        words = np.array(self._words, dtype=np.int32)
        self._blocks.append(self._surfaces.expand(words, np.array(self._word_counts, dtype=np.int64)))
        self._words = array("i")
        self._word_counts = array("i")
        if self._surfaces.is_full:
            self._surfaces.forget()


class _Surfaces(dict[str, int]):
    """Surface words by number; entry n's terms are `flat_ids[starts[n]:starts[n + 1]]`, its width is `spans[n]`."""

    def __init__(self, tokeniser: Tokeniser) -> None:
        super().__init__()
        self.term_ids: dict[str, int] = {}
        self._analyse = tokeniser.analyse
        self._plain_term = tokeniser.plain_term
        self.forget()

    def __missing__(self, word: str) -> int:
        bare = word.strip(EDGES)
        number = self.get(bare)
        if number is None:
            number = self._number(bare)
        if len(word) <= MAX_TERM_LENGTH:
            self[word] = self[bare] = number
        return number

    def _number(self, bare: str) -> int:
        ids = self.term_ids
        plain = self._plain_term(bare)
        if plain is not None:
            span = 1
            self._flat_ids.append(ids.setdefault(plain, len(ids)))
            self._flat_offsets.append(0)
        else:
            terms, offsets, span = self._analyse(bare)
            self._flat_ids.extend([ids.setdefault(term, len(ids)) for term in terms])
            self._flat_offsets.extend(offsets)
        self._starts.append(len(self._flat_ids))
        self._spans.append(span)
        return len(self._spans) - 1

    @property
    def is_full(self) -> bool:
        return max(len(self), len(self._spans)) >= SURFACE_LIMIT

    def forget(self) -> None:
        self.clear()
        self._flat_ids = array("i")
        self._flat_offsets = array("i")
        self._starts = array("i", [0])
        self._spans = array("i")

    def expand(self, words: NDArray[np.int32], word_counts: NDArray[np.int64]) -> EncodedPassages:
        """Replace each surface word by its terms, and place them within their passage."""
        starts = np.array(self._starts, dtype=np.int64)
        first = starts[words]
        counts = np.diff(starts)[words]
        ends = _running_total(counts)
        base = _running_total(np.array(self._spans, dtype=np.int64)[words])
        bounds = _running_total(word_counts)
        gather = np.arange(ends[-1]) + np.repeat(first - ends[:-1], counts)
        place = base[:-1] - np.repeat(base[bounds[:-1]], word_counts)
        positions = np.repeat(place, counts) + np.array(self._flat_offsets, dtype=np.int64)[gather]
        return EncodedPassages(
            term_ids=np.array(self._flat_ids, dtype=np.int32)[gather],
            positions=positions.astype(np.int32),
            term_counts=np.diff(ends[bounds]).astype(np.int32),
            lengths=np.diff(base[bounds]).astype(np.int32),
        )


def _running_total(values: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(values, dtype=np.int64)])
