"""From chunks of text to the arrays of a segment: a vocabulary and, per term, where and how often it occurs.

One sort of packed (term, chunk, position) keys lays out everything; the result does not depend on how terms were
numbered while tokenising.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evidentia.backends.embedded.traits import TraitsBuilder
from evidentia.text.term_table import TermTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from evidentia.backends.embedded.segments import Array
    from evidentia.text.tokens import Tokeniser

POSITION_BITS = 20
ORDINAL_BITS = 22
MAX_CHUNKS = 1 << ORDINAL_BITS
_MAX_POSITION = (1 << POSITION_BITS) - 1
_MAX_TERMS = 1 << (64 - POSITION_BITS - ORDINAL_BITS)
_VOCABULARY_LIMIT = 1 << 20


class PostingsBuilder:
    """Collects the chunks of one segment after another; surface words are analysed once for many segments."""

    def __init__(self, tokeniser: Tokeniser) -> None:
        self.tokeniser = tokeniser
        self._table = TermTable(tokeniser)

    def build(self, texts: Sequence[str], *, chunk_keys: Sequence[int]) -> dict[str, Array]:
        """Return the arrays of a segment that holds these chunks, in this order."""
        traits = TraitsBuilder()
        for text in texts:
            self._table.add(text)
        for text in texts:
            traits.add(text)
        encoded = self._table.take()
        terms = self._table.terms
        if len(terms) > _VOCABULARY_LIMIT:
            self._table = TermTable(self.tokeniser)
        ordinals = np.repeat(np.arange(len(chunk_keys), dtype=np.uint64), encoded.term_counts)
        arrays = _layout(encoded.term_ids, ordinals, encoded.positions, terms=terms)
        return arrays | {"chunk_keys": np.asarray(chunk_keys, dtype=np.int64), "lengths": encoded.lengths} | traits.arrays()


def _layout(term_ids: Array, ordinals: NDArray[np.uint64], positions: Array, *, terms: Sequence[str]) -> dict[str, Array]:
    used = np.flatnonzero(np.bincount(term_ids, minlength=len(terms)))
    encoded = sorted((terms[number].encode(), number) for number in used.tolist())
    rank = np.zeros(len(terms) or 1, dtype=np.uint64)
    rank[[number for _, number in encoded]] = np.arange(len(encoded), dtype=np.uint64)
    places = np.minimum(positions, _MAX_POSITION).astype(np.uint64)
    keys = (rank[term_ids] << np.uint64(POSITION_BITS + ORDINAL_BITS)) | (ordinals << np.uint64(POSITION_BITS)) | places
    keys.sort()
    return vocabulary_arrays([term for term, _ in encoded]) | _postings(keys, term_count=len(encoded))


def vocabulary_arrays(terms: Sequence[bytes]) -> dict[str, Array]:
    """Return the vocabulary of a segment as stored; terms come in the order of their bytes."""
    lengths = np.fromiter((len(term) for term in terms), dtype=np.int64, count=len(terms))
    return {"term_bytes": np.frombuffer(b"".join(terms), dtype=np.uint8), "term_offsets": offsets_of(lengths)}


def _postings(keys: NDArray[np.uint64], *, term_count: int) -> dict[str, Array]:
    pairs = keys >> np.uint64(POSITION_BITS)
    starts = np.flatnonzero(np.concatenate([np.ones(min(1, len(pairs)), dtype=np.bool_), pairs[1:] != pairs[:-1]]))
    counts = np.diff(np.append(starts, len(pairs)))
    posting_terms = (pairs[starts] >> np.uint64(ORDINAL_BITS)).astype(np.int64)
    return {
        "posting_offsets": offsets_of(np.bincount(posting_terms, minlength=term_count)),
        "ordinals": (pairs[starts] & np.uint64(MAX_CHUNKS - 1)).astype(np.int32),
        "counts": counts.astype(np.int32),
        "position_offsets": offsets_of(np.bincount(posting_terms, weights=counts, minlength=term_count).astype(np.int64)),
        "positions": (keys & np.uint64(_MAX_POSITION)).astype(np.int32),
    }


def offsets_of(lengths: Array) -> NDArray[np.int64]:
    """Return where each of several stretches begins when they follow each other, and where the last ends."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths, dtype=np.int64)])
