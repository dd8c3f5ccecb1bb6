"""Figures of the quality benchmark: calibration of the confidence, and paired bootstrap intervals over questions and over sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

BINS = 10
RESAMPLES = 2_000
SEED = 1


class Figure(NamedTuple):
    """A figure with the bounds of its 95 % interval."""

    value: float
    low: float
    high: float

    def rounded(self) -> list[float]:
        """Return the figure and its bounds at four digits."""
        return [round(part, 4) + 0.0 for part in self]


def calibration_error(confidences: NDArray[np.float64], outcomes: NDArray[np.float64], *, bins: int = BINS) -> float:
    """Return the expected calibration error over bins of equal mass: each holds as many fragments, ordered by confidence.

    Naeini et al. (2015) with the bins of Nguyen and O'Connor (2015). Equal confidences that fall into two bins are told apart by nothing,
    so their outcomes are shared evenly between them.
    """
    if not confidences.size:
        return 0.0
    order = np.argsort(confidences, kind="stable")
    ordered, happened = confidences[order], outcomes[order]
    _, starts, counts = np.unique(ordered, return_index=True, return_counts=True)
    shared = np.repeat(np.add.reduceat(happened, starts) / counts, counts)
    gaps = [abs(float(part.sum())) for part in np.array_split(ordered - shared, bins)]
    return sum(gaps) / ordered.size


def brier(confidences: NDArray[np.float64], outcomes: NDArray[np.float64]) -> float:
    """Return the mean squared distance of a confidence from what happened (Brier 1950)."""
    return float(np.mean((confidences - outcomes) ** 2)) if confidences.size else 0.0


def brier_of_constant(outcomes: NDArray[np.float64]) -> float:
    """Return the Brier score of the best constant, which is the share of relevant fragments itself."""
    share = float(outcomes.mean()) if outcomes.size else 0.0
    return share * (1 - share)


def area_under_curve(positive: Sequence[float], negative: Sequence[float]) -> float | None:
    """Return how often a positive is above a negative, ties counted half; None where one of them is missing."""
    if not positive or not negative:
        return None
    ahead = np.sign(np.subtract.outer(np.array(positive), np.array(negative)))
    return float((ahead.mean() + 1) / 2)


def interval_of_mean(values: Sequence[float]) -> Figure:
    """Return a mean over questions with its bootstrap interval."""
    return interval(np.asarray(values, dtype=np.float64), lambda rows: rows.mean(axis=-1))


def interval_of_means(groups: Sequence[Sequence[float]]) -> Figure:
    """Return the mean of the means of several sets; questions are drawn within each set."""
    chance = np.random.default_rng(SEED)
    means, drawn = [], np.zeros(RESAMPLES)
    for group in groups:
        values = np.asarray(group, dtype=np.float64)
        means.append(float(values.mean()))
        drawn += _draws(values, lambda rows: rows.mean(axis=-1), chance=chance)
    return Figure(float(np.mean(means)), *_bounds(drawn / len(groups)))


def interval(values: NDArray[np.float64], statistic: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> Figure:
    """Return a statistic over rows of questions, with its bootstrap interval."""
    drawn = _draws(values, statistic, chance=np.random.default_rng(SEED))
    return Figure(float(statistic(values[np.newaxis])[0]), *_bounds(drawn))


def interval_over_questions(
    fragments: Mapping[str, Sequence[tuple[float, int]]],
    statistic: Callable[[NDArray[np.float64], NDArray[np.float64]], float],
    *,
    resamples: int = 200,
) -> Figure:
    """Return a statistic of (confidence, relevant) pairs with its interval; questions are drawn whole, their fragments belong together."""
    groups = [np.array(pairs, dtype=np.float64).reshape(-1, 2) for _, pairs in sorted(fragments.items()) if pairs]
    if not groups:
        return Figure(0.0, 0.0, 0.0)
    chance = np.random.default_rng(SEED)

    def of(places: Sequence[int] | NDArray[np.int64]) -> float:
        joined = np.concatenate([groups[place] for place in places])
        return statistic(joined[:, 0], joined[:, 1])

    drawn = np.array([of(chance.integers(len(groups), size=len(groups))) for _ in range(resamples)])
    return Figure(of(range(len(groups))), *_bounds(drawn))


def _draws(
    values: NDArray[np.float64], statistic: Callable[[NDArray[np.float64]], NDArray[np.float64]], *, chance: np.random.Generator
) -> NDArray[np.float64]:
    return np.concatenate([statistic(values[chance.integers(len(values), size=(100, len(values)))]) for _ in range(RESAMPLES // 100)])


def _bounds(drawn: NDArray[np.float64]) -> tuple[float, float]:
    low, high = np.percentile(drawn, [2.5, 97.5])
    return float(low), float(high)
