"""What several legs say of the same candidates, as one score. Refuses floats: every score is an integer, and ONE is 1.0.

A score is an exact fraction that is rounded down once, at the end, so neither the order of candidates nor that of legs can matter.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Self, TypeVar

if TYPE_CHECKING:
    from evidentia.contracts.search import LegScores

ONE: Final = 1 << 32
"""The score 1.0: scores of this room are integers at 2^-32."""

_MILLI: Final = 1000
_NOTHING: Final = (0, 1)

Key = TypeVar("Key", bound=Hashable)


def min_max(values: Sequence[int]) -> list[int]:
    """Return each value's place between the least (0) and the greatest (ONE); one value, or all equal, gives ONE.

    Order is never turned round. As long as greatest - least is at most 2^32, different values stay different: neighbours are then at
    least one step of 2^-32 apart, so their floors differ. Over a wider range, values less than range / 2^32 apart may become equal, and
    ids decide between them; for cosines at 2^-44 these are differences below 2^-31, far beyond what the vectors themselves resolve.
    """
    if not values:
        return []
    least, width = _Span.of(values)
    return [(value - least) * ONE // width for value in values]


def single(values: Sequence[int]) -> list[int]:
    """Return the fused scores where one leg answers alone; also brings the sums of `rrf` to the range from 0 to ONE."""
    return min_max(values)


def linear(legs: Sequence[LegScores], *, lexical_milli: int) -> list[int]:
    """Return the weighted sum of both legs, each min-max normalised over all these candidates, from 0 to ONE.

    Words weigh `lexical_milli` thousandths, vectors the rest. A candidate without a vector gives that rest to its words. A candidate
    that no leg puts below another is not below it here, provided that both have a vector or neither has.
    """
    if not legs:
        return []
    words = [leg.lexical for leg in legs]
    measured = [leg.dense for leg in legs if leg.dense is not None]
    if not measured:
        return min_max(words)
    (least, width), (farthest, span) = _Span.of(words), _Span.of(measured)
    by_words, by_vectors, whole = lexical_milli * span * ONE, (_MILLI - lexical_milli) * width * ONE, _MILLI * width * span
    return [
        (leg.lexical - least) * ONE // width
        if leg.dense is None
        else (by_words * (leg.lexical - least) + by_vectors * (leg.dense - farthest)) // whole
        for leg in legs
    ]


def rrf(rankings: Sequence[Sequence[Key]], keys: Sequence[Key], *, kappa: int, weights: Sequence[int] | None = None) -> list[int]:
    """Return the sum of weight * ONE / (kappa + rank) for each key; ranks count from 1, and a ranking without the key gives 0.

    Cormack, Clarke and Buettcher (2009). Weights are whole numbers, 1 each unless stated; with those the sum stays below ONE for up to
    `kappa` rankings. It is small by nature (at most ONE / 61 per ranking for kappa 60), so it goes through `single` before it is
    weighed against other signals. A key that a ranking repeats counts where it comes first.
    """
    sums: dict[Key, tuple[int, int]] = {}
    for ranking, weight in zip(rankings, weights if weights is not None else [1] * len(rankings), strict=True):
        ranks = dict(zip(reversed(ranking), range(len(ranking), 0, -1), strict=True))  # what is repeated keeps its first place
        for key, rank in ranks.items():
            numerator, denominator = sums.get(key, _NOTHING)
            sums[key] = (numerator * (kappa + rank) + weight * denominator, denominator * (kappa + rank))
    return [_floor(*sums.get(key, _NOTHING)) for key in keys]


def order(scores: Sequence[int], ids: Sequence[str]) -> list[int]:
    """Return the indexes best first: by score, then by id."""
    if len(set(scores)) == len(scores):  # ids decide nothing
        return sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
    return sorted(range(len(scores)), key=lambda index: (-scores[index], ids[index]))


class _Span(NamedTuple):
    """What is taken off each value of a leg, and what the rest is divided by to come to at most 1."""

    least: int
    width: int

    @classmethod
    def of(cls, values: Sequence[int]) -> Self:
        """Return the span of some values; where they are all equal it is such that each counts as 1."""
        least, greatest = min(values), max(values)
        return cls(least, greatest - least) if greatest > least else cls(least - 1, 1)


def _floor(numerator: int, denominator: int) -> int:
    return numerator * ONE // denominator
