"""Percentiles of what was recorded, with an interval that holds whatever the distribution is. Pure; ranks are whole numbers.

The percentile is the nearest rank: of n values in order, the one at rank ceil(p n / 100), so it is always a value that was seen.
The interval lies between two order statistics (David and Nagaraja, Order Statistics, 7.1): the number of values below the true
percentile is binomial. Values of one run resemble each other, so they count for as many independent ones as their spread
between runs says (the design effect of Kish; its use for ranks as in Korn and Graubard, 1998).
"""

from __future__ import annotations

from math import exp, lgamma, log, log1p
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

WHOLE: Final = 100
CONFIDENCE: Final = 95
"""Percent; half of the rest lies on either side of an interval."""


class Interval(NamedTuple):
    """Between which values a percentile lies; None where the values are too few to say."""

    low: float | None
    high: float | None


def nearest_rank(size: int, percent: int) -> int:
    """Return the rank of a percentile among `size` values, from 1."""
    return max(1, -(-percent * size // WHOLE))


def interval_of(ordered: Sequence[float], percent: int, *, effective: int) -> Interval:
    """Return the interval of a percentile of ordered values that count for `effective` independent ones."""
    below, above = _binomial_ranks(effective, percent)
    size = len(ordered)
    low = ordered[max(1, below * size // effective) - 1] if below >= 1 else None
    high = ordered[-(-above * size // effective) - 1] if above <= effective else None
    return Interval(low, high)


def effective_size(hits: Sequence[int], sizes: Sequence[int]) -> int:
    """Return for how many independent values clusters count, by how many of each are hits; never more than there are."""
    size, total = sum(sizes), sum(hits)
    if total in {0, size}:
        return size
    # In whole numbers, with p = total / size: n^2 sum (m_j - p n_j)^2 beside n^2 times what as many independent values would give.
    spread = sum((size * hit - total * own) ** 2 for hit, own in zip(hits, sizes, strict=True))
    alone = total * (size - total) * size
    return min(size, max(1, size * alone // spread)) if spread else size


def _binomial_ranks(size: int, percent: int) -> tuple[int, int]:
    """Return the widest rank below and the narrowest rank above with at most half of the doubt beyond each.

    The first is 0, or the second `size + 1`, where no rank does.
    """
    if 2 * percent > WHOLE:  # the mirror image, which has fewer terms
        below, above = _binomial_ranks(size, WHOLE - percent)
        return size + 1 - above, size + 1 - below
    doubt = (WHOLE - CONFIDENCE) / (2 * WHOLE)
    share = percent / WHOLE
    mass, below = 0.0, 0
    for count in range(size + 1):
        mass += _binomial(count, size, share)
        if mass <= doubt:
            below = count + 1
        if mass >= 1 - doubt:
            return below, count + 1
    return below, size + 1


def _binomial(count: int, size: int, share: float) -> float:
    ways = lgamma(size + 1) - lgamma(count + 1) - lgamma(size - count + 1)
    return exp(ways + count * log(share) + (size - count) * log1p(-share))
