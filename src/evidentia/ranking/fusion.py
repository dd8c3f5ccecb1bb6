"""What several legs say of the same candidates, as one score. Refuses floats: every score is an integer, and ONE is 1.0.

A score is an exact fraction that is rounded down once, at the end, so neither the order of candidates nor that of legs can matter.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Final, NamedTuple, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evidentia.contracts.search import LegScores

ONE: Final = 1 << 32
"""The score 1.0: scores of this room are integers at 2^-32."""

_MILLI: Final = 1000

Key = TypeVar("Key", bound=Hashable)


def min_max(values: Sequence[int]) -> list[int]:
    """Return each value's place between the least (0) and the greatest (ONE); one value, or all equal, gives ONE.

    Order is never turned round. As long as greatest - least is at most 2^32, different values stay different: neighbours are then at
    least one step of 2^-32 apart, so their floors differ. Over a wider range, values less than range / 2^32 apart may become equal, and
    ids decide between them; for cosines at 2^-44 these are differences below 2^-31, far beyond what the vectors themselves resolve.
    """
    if not values:
        return []
    span = _Span.of(values)
    return [_floor(*span.share(value)) for value in values]


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
    words = _Span.of([leg.lexical for leg in legs])
    measured = [leg.dense for leg in legs if leg.dense is not None]
    vectors = _Span.of(measured) if measured else None
    return [_floor(*_blend(leg, words, vectors, lexical_milli)) for leg in legs]


def rrf(rankings: Sequence[Sequence[Key]], keys: Sequence[Key], *, kappa: int, weights: Sequence[int] | None = None) -> list[int]:
    """Return the sum of weight * ONE / (kappa + rank) for each key; ranks count from 1, and a ranking without the key gives 0.

    Cormack, Clarke and Buettcher (2009). Weights are whole numbers, 1 each unless stated; with those the sum stays below ONE for up to
    `kappa` rankings. It is small by nature (at most ONE / 61 per ranking for kappa 60), so it goes through `single` before it is
    weighed against other signals. A key that a ranking repeats counts where it comes first.
    """
    ranked = [_ranks(ranking) for ranking in rankings]
    legs = list(zip(ranked, weights if weights is not None else [1] * len(ranked), strict=True))
    return [_reciprocal_sum(key, legs, kappa) for key in keys]


def order(scores: Sequence[int], ids: Sequence[str]) -> list[int]:
    """Return the indexes best first: by score, then by id."""
    return sorted(range(len(scores)), key=lambda index: (-scores[index], ids[index]))


class _Span(NamedTuple):
    """The least value of a leg, and how far the greatest is from it."""

    least: int
    width: int

    @classmethod
    def of(cls, values: Sequence[int]) -> Self:
        least = min(values)
        return cls(least, max(values) - least)

    def share(self, value: int) -> tuple[int, int]:
        """Return the normalised value as numerator and denominator."""
        return (value - self.least, self.width) if self.width else (1, 1)


def _blend(leg: LegScores, words: _Span, vectors: _Span | None, lexical_milli: int) -> tuple[int, int]:
    lexical, lexical_width = words.share(leg.lexical)
    if vectors is None or leg.dense is None:
        return lexical, lexical_width
    dense, dense_width = vectors.share(leg.dense)
    weighted = lexical_milli * lexical * dense_width + (_MILLI - lexical_milli) * dense * lexical_width
    return weighted, _MILLI * lexical_width * dense_width


def _ranks(ranking: Sequence[Key]) -> dict[Key, int]:
    ranks: dict[Key, int] = {}
    for rank, key in enumerate(ranking, start=1):
        ranks.setdefault(key, rank)
    return ranks


def _reciprocal_sum(key: Key, legs: Sequence[tuple[Mapping[Key, int], int]], kappa: int) -> int:
    numerator, denominator = 0, 1
    for ranks, weight in legs:
        rank = ranks.get(key)
        if rank is not None:
            numerator = numerator * (kappa + rank) + weight * denominator
            denominator *= kappa + rank
    return _floor(numerator, denominator)


def _floor(numerator: int, denominator: int) -> int:
    return numerator * ONE // denominator
