"""The one score that ranks: relevance, authority, freshness and utility under the request's weights.

Weights leave the world of floats once, here, as millionths that sum to exactly a million; from there on everything is exact.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from evidentia.contracts.errors import InvalidFieldError
from evidentia.ranking.fusion import min_max

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evidentia.contracts.evidence import RankingWeights

MILLION: Final = 1_000_000
"""A weight of 1 in millionths."""

_KEPT_WEIGHTS: Final = 256
_ROUNDING: Final = Fraction(1, 100_000)


def composites(signals: Sequence[tuple[int, int, int, int]], weights: tuple[int, int, int, int]) -> list[int]:
    """Return each candidate's weighted sum of relevance, authority, freshness and utility, from 0 to ONE.

    `weights_of` gives the weights; those of (1000000, 0, 0, 0) return the relevance itself.
    """
    by_relevance, by_authority, by_freshness, by_utility = weights
    return [
        (by_relevance * relevance + by_authority * authority + by_freshness * freshness + by_utility * utility) // MILLION
        for relevance, authority, freshness, utility in signals
    ]


@lru_cache(maxsize=_KEPT_WEIGHTS)
def weights_of(weights: RankingWeights) -> tuple[int, int, int, int]:
    """Return relevance, authority, freshness and utility in millionths that sum to exactly a million, by largest remainder.

    Weights that miss a sum of 1 by no more than a hundred-thousandth are scaled to it, which is for rounding; others are refused.
    """
    stated = {
        "relevance": weights.relevance,
        "authority": weights.authority,
        "freshness": weights.freshness,
        "utility": weights.utility,
    }
    exact = [_exact(f"ranking_weights.{name}", weight) for name, weight in stated.items()]
    total = sum(exact, Fraction())
    if abs(total - 1) > _ROUNDING:
        shown = " + ".join(str(weight) for weight in stated.values())
        raise InvalidFieldError("ranking_weights", f"'{shown}' does not sum to 1; change one of the four weights")
    return _apportion([weight / total for weight in exact])


def millionths(field: str, value: float) -> int:
    """Return a share from 0 to 1 in whole millionths, rounded half to even; anything else is refused in the field's name."""
    return round(_exact(field, value) * MILLION)


def with_reranker(fused: Sequence[int], given: Mapping[int, int]) -> list[int]:
    """Return the relevance of each candidate: half its fused score and half its reranker's, each min-max normalised over what it scored.

    `given` holds the reranker's scores by index; where it is empty the fused scores stay as they are. A candidate that the reranker did
    not reach has 0 for that half, so it cannot pass a scored one that it was behind: the other has at least as much from both. Halves are
    rounded up for those scored and down for the rest, so that no lead over the rest is lost, not even one of a single step; where such
    two are equal they were equal before, and ids decide as they did. Among the rest, a lead of a single step may become a tie.
    """
    if not given:
        return list(fused)
    reranked = normalise_reranked(given)
    return [(score + reranked[index] + 1) // 2 if index in reranked else score // 2 for index, score in enumerate(min_max(fused))]


def normalise_reranked(given: Mapping[int, int]) -> dict[int, int]:
    """Return the reranker's scores by index, min-max normalised to the range from 0 to ONE."""
    return dict(zip(given, min_max(list(given.values())), strict=True))


def _exact(field: str, value: float) -> Fraction:
    if not math.isfinite(value) or not 0 <= Fraction(value) <= 1:
        raise InvalidFieldError(field, f"'{value}' is not a number from 0 to 1")
    return Fraction(value)


def _apportion(shares: Sequence[Fraction]) -> tuple[int, int, int, int]:
    quotas = [share * MILLION for share in shares]
    floors = [math.floor(quota) for quota in quotas]
    by_remainder = sorted(range(len(quotas)), key=lambda index: (floors[index] - quotas[index], index))
    for index in by_remainder[: MILLION - sum(floors)]:
        floors[index] += 1
    relevance, authority, freshness, utility = floors
    return relevance, authority, freshness, utility
