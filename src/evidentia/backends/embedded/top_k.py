"""The best of many scores, without sorting them all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evidentia.backends.embedded.lexical.segments import Array


def best_of(scores: Array, limit: int) -> NDArray[np.int64]:
    """Return the indexes of the best `limit` scores and of everything that ties with the last of them, ascending."""
    if len(scores) <= limit:
        return np.arange(len(scores))
    return np.flatnonzero(scores >= nth_largest(scores, limit))


def nth_largest(values: Array, number: int) -> int | float:
    """Return the largest value that at least `number` of the values reach, as a plain number; there are as many."""
    cut = len(values) - number
    found: int | float = np.partition(values, cut)[cut].item()
    return found
