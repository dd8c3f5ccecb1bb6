"""Which questions are alike: buckets within a session, leaders across sessions. All arithmetic is in integers and exact.

A bucket is the signs of a few fixed projections of the vector (Charikar 2002). Leaders are clusters that stand for themselves: a
question that is near a leader joins it, any other becomes one (Hartigan 1975, "leader algorithm"); there are at most so many, and the
one that has led for longest gives way. In either, two questions are alike only when the cosine of their vectors reaches the threshold.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import shake_256
from typing import TYPE_CHECKING, Final

import numpy as np

from evidentia.contracts.vectors import LARGEST_COMPONENT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from evidentia.contracts.retrieval import StoredResponse

BUCKET_BITS: Final = 4
BUCKET_MEMBERS: Final = 16
MAX_LEADERS: Final = 64
"""Per caller, source and kind of question."""

_LARGEST_DIMENSION: Final = 8_192
_COMPONENT_BYTES: Final = 4
_CLOSENESS_BITS: Final = 40
_MILLI_SQUARED: Final = 1_000_000


def nearest(vector: NDArray[np.int64], stored: Sequence[StoredResponse], *, similarity_milli: int) -> list[StoredResponse]:
    """Return the responses to questions that are alike, most alike first, equally alike ones by key."""
    known = [(each, row) for each in stored if (row := read_vector(each.vector)) is not None and row.size == vector.size]
    if not known:
        return []
    rows, own = np.stack([row for _, row in known]), int(vector @ vector)
    # Components are at most 2^22 and rows at most 2^13 long, so that no sum leaves 63 bits.
    products, norms = (rows @ vector).tolist(), np.einsum("ij,ij->i", rows, rows).tolist()
    ranked = [
        (-closeness(product, own * norm), each.key, each)
        for product, norm, (each, _) in zip(products, norms, known, strict=True)
        if is_alike(product, own * norm, similarity_milli=similarity_milli)
    ]
    return [each for _, _, each in sorted(ranked)]


def read_vector(raw: bytes | None) -> NDArray[np.int64] | None:
    """Return a question's vector; None when there is none, or nothing can be compared with it."""
    if not raw or len(raw) % _COMPONENT_BYTES or len(raw) > _LARGEST_DIMENSION * _COMPONENT_BYTES:
        return None
    vector = np.frombuffer(raw, dtype="<i4").astype(np.int64)
    largest = int(np.abs(vector).max())
    return vector if 0 < largest <= LARGEST_COMPONENT else None


def bucket_of(vector: NDArray[np.int64]) -> int:
    """Return the bucket of a vector, from 0 to 15; a sum of zero counts as positive."""
    signs = (_projections(vector.size) @ vector) >= 0
    return sum(1 << bit for bit, is_positive in enumerate(signs.tolist()) if is_positive)


def is_alike(product: int, norms: int, *, similarity_milli: int) -> bool:
    """Tell whether a cosine reaches so many thousandths, given a scalar product and the product of both squared lengths."""
    return norms > 0 and product >= 0 and product * product * _MILLI_SQUARED >= similarity_milli * similarity_milli * norms


def closeness(product: int, norms: int) -> int:
    """Return the square of a cosine, with the cosine's sign, at 2^-40 and rounded down."""
    return (product * abs(product) << _CLOSENESS_BITS) // norms


@lru_cache(maxsize=16)
def _projections(dimension: int) -> NDArray[np.int64]:
    """Return rows of 1 and -1 that are the same for everybody, always."""
    drawn = shake_256(b"evidentia cache bucket %d" % dimension).digest(BUCKET_BITS * ((dimension + 7) // 8))
    bits = np.unpackbits(np.frombuffer(drawn, dtype=np.uint8).reshape(BUCKET_BITS, -1), axis=1)[:, :dimension]
    rows: NDArray[np.int64] = 2 * bits.astype(np.int64) - 1
    return rows
