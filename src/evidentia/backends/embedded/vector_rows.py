"""A vector as two arrays: its first bits, which are searched, and the rest, which makes it exact.

    v = high * step + low     |high| <= 127,  -step/2 <= low <= step/2

with the smallest whole step per row for which this holds. Components are at most 2**22, so the step is at most 33,027 and
`low` fits 16 bits. Nothing is lost: `join` gives back every integer.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.ids import Sha256
from evidentia.contracts.vectors import LARGEST_COMPONENT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from evidentia.contracts.vectors import VectorIdentity

HIGHEST = 127
_MARK_BYTES = 8


class SplitRows(NamedTuple):
    """Rows of vectors in two parts."""

    high: NDArray[np.int8]
    low: NDArray[np.int16]
    steps: NDArray[np.uint16]

    def join(self) -> NDArray[np.int32]:
        """Return the rows as they were."""
        return self.high.astype(np.int32) * self.steps[:, np.newaxis].astype(np.int32) + self.low


def split(vectors: NDArray[np.int32]) -> SplitRows:
    """Split rows of vectors."""
    wide = vectors.astype(np.int64)
    largest = np.abs(wide).max(axis=1, initial=0)
    steps = np.maximum(1, -(-largest // HIGHEST))
    column = steps[:, np.newaxis]
    high = (wide + column // 2) // column
    low = wide - high * column
    return SplitRows(high.astype(np.int8), low.astype(np.int16), steps.astype(np.uint16))


def checked(vectors: Iterable[NDArray[np.int32]], *, identity: VectorIdentity) -> NDArray[np.int32]:
    """Return vectors as one array, refusing what the identity does not allow."""
    rows = [np.asarray(vector) for vector in vectors]
    for row in rows:
        if row.shape != (identity.dimension,) or row.dtype.kind != "i":
            raise InvalidFieldError("vector", f"it must hold {identity.dimension} integers, and has shape {row.shape} of {row.dtype}")
    stacked = np.stack(rows) if rows else np.empty((0, identity.dimension), dtype=np.int32)
    if stacked.size and int(max(stacked.max(), -int(stacked.min()))) > LARGEST_COMPONENT:
        raise InvalidFieldError("vector", f"a component is larger than {LARGEST_COMPONENT}; scale the encoder's output")
    return stacked.astype(np.int32)


def vector_hash(vector: NDArray[np.int32]) -> Sha256:
    """Return the hash by which a version knows a vector: over its little-endian 32-bit integers."""
    return Sha256(hashlib.sha256(vector.astype("<i4").tobytes()).hexdigest())


def content_mark(content_hash: bytes) -> int:
    """Return the beginning of a text's hash as the integer by which its vectors are found."""
    return int.from_bytes(content_hash[:_MARK_BYTES], "big", signed=True)
