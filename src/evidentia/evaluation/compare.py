"""Whether one system is better than another on the same queries: paired differences with bootstrap intervals.

Refuses floats in what is compared: differences are rounded once to 2^-40, and everything after that is exact integer arithmetic, so
intervals and p-values do not depend on the order of a sum. Differences are system minus baseline throughout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from evidentia.contracts.errors import InvalidFieldError
from evidentia.evaluation.measures import EvalReport, Measure, Qrels, mean_of, score_rankings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from evidentia.evaluation.runs import Run

DEFAULT_RESAMPLES: Final = 10_000
FEWEST_RESAMPLES: Final = 1000
MAX_RESAMPLES: Final = 1_000_000
LEAST_CONFIDENCE_PERCENT: Final = 50.0
MAX_CONFIDENCE_PERCENT: Final = 99.9

_DIFFERENCE_BITS: Final = 40
_MAX_QUERIES: Final = 1 << 20  # keeps a sum of differences under 2^62
_DRAWS_AT_ONCE: Final = 1 << 20  # 8 MB of indices


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """One measure of two systems over the same queries; `low` and `high` bound the mean difference (system minus baseline)."""

    measure: str
    queries: int
    baseline_mean: float
    system_mean: float
    mean_difference: float
    low: float
    high: float
    confidence_percent: float
    p_value: float
    """Share of random exchanges of the two systems whose mean difference is at least as far from 0; two-sided, never 0."""
    wins: int
    ties: int
    losses: int
    resamples: int
    only_baseline: tuple[str, ...]
    """Queries that only the baseline has; `compare_runs` counts the other's score as 0, the others leave the query out."""
    only_system: tuple[str, ...]


def compare_scores(
    baseline: Mapping[str, float],
    system: Mapping[str, float],
    *,
    generator: np.random.Generator,
    measure: str = "score",
    resamples: int = DEFAULT_RESAMPLES,
    confidence_percent: float = 95.0,
) -> Comparison:
    """Return the comparison over the queries that both maps hold; scores lie between 0 and 1.

    Steps: 1. pair the scores; 2. draw the bootstrap interval; 3. draw the p-value. The generator is used in that order.
    """
    _check_options(resamples=resamples, confidence_percent=confidence_percent)
    shared = sorted(baseline.keys() & system.keys())
    differences = _paired_differences(baseline, system, shared)
    low, high = _bootstrap_interval(differences, generator=generator, resamples=resamples, confidence_percent=confidence_percent)
    p_value = _randomisation_p_value(differences, generator=generator, resamples=resamples)
    return Comparison(
        measure=measure,
        queries=len(shared),
        baseline_mean=mean_of({query_id: baseline[query_id] for query_id in shared}),
        system_mean=mean_of({query_id: system[query_id] for query_id in shared}),
        mean_difference=_mean(int(differences.sum()), len(shared)),
        low=low,
        high=high,
        confidence_percent=confidence_percent,
        p_value=p_value,
        wins=int(np.count_nonzero(differences > 0)),
        ties=int(np.count_nonzero(differences == 0)),
        losses=int(np.count_nonzero(differences < 0)),
        resamples=resamples,
        only_baseline=tuple(sorted(baseline.keys() - system.keys())),
        only_system=tuple(sorted(system.keys() - baseline.keys())),
    )


def compare_runs(
    baseline: Run,
    system: Run,
    qrels: Qrels,
    *,
    measure: Measure,
    generator: np.random.Generator,
    resamples: int = DEFAULT_RESAMPLES,
    confidence_percent: float = 95.0,
) -> Comparison:
    """Return the comparison over every query that has a relevant document; one that a run does not hold counts as 0 there.

    A run file has no line for a query without results, so leaving such queries out would hide a system's failures. They are listed all
    the same, judged or not.
    """
    before, after = (score_rankings(run.ranked_ids(), qrels, measure=measure) for run in (baseline, system))
    comparison = compare_scores(
        before.per_query,
        after.per_query,
        generator=generator,
        measure=measure.name,
        resamples=resamples,
        confidence_percent=confidence_percent,
    )
    return msgspec.structs.replace(
        comparison,
        only_baseline=tuple(sorted(baseline.rankings.keys() - system.rankings.keys())),
        only_system=tuple(sorted(system.rankings.keys() - baseline.rankings.keys())),
    )


def compare_reports(
    baseline: EvalReport,
    system: EvalReport,
    *,
    generator: np.random.Generator,
    resamples: int = DEFAULT_RESAMPLES,
    confidence_percent: float = 95.0,
) -> tuple[Comparison, ...]:
    """Return a comparison for each measure, in the baseline's order; refuses reports on different splits, cuts or gains."""
    for field in ("dataset", "split", "k", "depth", "gain"):
        before, after = getattr(baseline, field), getattr(system, field)
        if before != after:
            raise InvalidFieldError(field, f"the reports differ: '{before}' and '{after}'")
    if baseline.per_query.keys() != system.per_query.keys():
        raise InvalidFieldError("per_query", "the reports hold different measures")
    return tuple(
        compare_scores(
            baseline.per_query[name],
            system.per_query[name],
            generator=generator,
            measure=name,
            resamples=resamples,
            confidence_percent=confidence_percent,
        )
        for name in baseline.per_query
    )


def _paired_differences(baseline: Mapping[str, float], system: Mapping[str, float], shared: list[str]) -> NDArray[np.int64]:
    if not shared:
        raise InvalidFieldError("queries", "the two systems have no query in common")
    if len(shared) > _MAX_QUERIES:
        raise InvalidFieldError("queries", f"'{len(shared)}' is more than {_MAX_QUERIES}")
    pairs = np.array([(baseline[query_id], system[query_id]) for query_id in shared], np.float64)
    outside = ~((pairs >= 0) & (pairs <= 1)).all(axis=1)
    if outside.any():
        query_id = shared[int(np.flatnonzero(outside)[0])]
        values = f"'{baseline[query_id]}' and '{system[query_id]}'"
        raise InvalidFieldError("scores", f"query '{query_id}' has {values}, which are not both between 0 and 1")
    return np.rint((pairs[:, 1] - pairs[:, 0]) * (1 << _DIFFERENCE_BITS)).astype(np.int64)


def _bootstrap_interval(
    differences: NDArray[np.int64], *, generator: np.random.Generator, resamples: int, confidence_percent: float
) -> tuple[float, float]:
    count = differences.size

    def sums(rows: int) -> NDArray[np.int64]:
        drawn = differences[generator.integers(0, count, size=(rows, count))]
        total: NDArray[np.int64] = drawn.sum(axis=1)
        return total

    ordered = np.sort(_in_batches(sums, resamples=resamples, width=count))
    tail = round(resamples * (100 - confidence_percent) / 200)
    # As many resamples lie outside on the left as on the right.
    return _mean(int(ordered[tail]), count), _mean(int(ordered[resamples - 1 - tail]), count)


def _randomisation_p_value(differences: NDArray[np.int64], *, generator: np.random.Generator, resamples: int) -> float:
    changed = differences[differences != 0]
    observed = abs(int(changed.sum()))

    def sums(rows: int) -> NDArray[np.int64]:
        exchanged = generator.integers(0, 2, size=(rows, changed.size)) == 1
        total: NDArray[np.int64] = np.where(exchanged, -changed, changed).sum(axis=1)
        return total

    drawn = _in_batches(sums, resamples=resamples, width=changed.size)
    # The observed assignment is one of the possible ones, hence the 1 on both sides.
    return (int(np.count_nonzero(np.abs(drawn) >= observed)) + 1) / (resamples + 1)


def _in_batches(sums: Callable[[int], NDArray[np.int64]], *, resamples: int, width: int) -> NDArray[np.int64]:
    rows = max(1, _DRAWS_AT_ONCE // max(1, width))
    return np.concatenate([sums(min(rows, resamples - start)) for start in range(0, resamples, rows)])


def _mean(total: int, count: int) -> float:
    return total / (count << _DIFFERENCE_BITS)


def _check_options(*, resamples: int, confidence_percent: float) -> None:
    if not FEWEST_RESAMPLES <= resamples <= MAX_RESAMPLES:
        raise InvalidFieldError("resamples", f"'{resamples}' is not between {FEWEST_RESAMPLES} and {MAX_RESAMPLES}")
    if not LEAST_CONFIDENCE_PERCENT <= confidence_percent <= MAX_CONFIDENCE_PERCENT:
        bounds = f"{LEAST_CONFIDENCE_PERCENT} and {MAX_CONFIDENCE_PERCENT}"
        raise InvalidFieldError("confidence_percent", f"'{confidence_percent}' is not between {bounds}")
