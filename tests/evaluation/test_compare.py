"""Comparisons: paired, seeded, exact, and silent about no query."""

from __future__ import annotations

from itertools import product
from math import fsum

import msgspec
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evidentia.contracts.errors import InvalidFieldError
from evidentia.evaluation.compare import Comparison, compare_reports, compare_runs, compare_scores
from evidentia.evaluation.measures import EvalReport, Measure
from evidentia.evaluation.runs import Run, ScoredDocument

SCORES = st.dictionaries(st.integers(0, 30).map(str), st.floats(0, 1), min_size=1)
REPORT = EvalReport(
    dataset="small",
    split="test",
    k=10,
    depth=100,
    gain="exponential",
    queries=2,
    without_results=0,
    without_relevant=0,
    p50_ms=1.0,
    p99_ms=2.0,
    measures={"MRR": 0.5},
    per_query={"MRR": {"q1": 1.0, "q2": 0.0}},
)


def compared(baseline: dict[str, float], system: dict[str, float], *, seed: int = 7, resamples: int = 1000) -> Comparison:
    return compare_scores(baseline, system, generator=np.random.default_rng(seed), resamples=resamples)


def ranked(**rankings: str) -> Run:
    return Run(tag="t", rankings={query_id: tuple(ScoredDocument(name, 0) for name in names) for query_id, names in rankings.items()})


def drawn_scores(count: int, *, lift: float, seed: int = 1) -> tuple[dict[str, float], dict[str, float]]:
    generator = np.random.default_rng(seed)
    baseline = generator.uniform(0.2, 0.6, count)
    system = baseline + generator.normal(lift, 0.05, count).clip(-0.2, 0.2)
    return tuple({str(number): float(score) for number, score in enumerate(scores)} for scores in (baseline, system))  # type: ignore[return-value] # two arrays


def test_the_same_seed_gives_the_same_comparison() -> None:
    baseline, system = drawn_scores(300, lift=0.01)

    assert compared(baseline, system) == compared(baseline, system)


def test_another_seed_gives_another_interval() -> None:
    baseline, system = drawn_scores(300, lift=0.01)
    first, second = compared(baseline, system), compared(baseline, system, seed=8)

    assert (first.low, first.high) != (second.low, second.high)
    assert first.mean_difference == second.mean_difference


def test_the_order_of_the_queries_does_not_matter() -> None:
    baseline, system = drawn_scores(40, lift=0.01)

    assert compared(baseline, system) == compared(dict(reversed(baseline.items())), system)


def test_wins_ties_losses_and_means_are_of_system_minus_baseline() -> None:
    comparison = compared({"q1": 0.0, "q2": 0.5, "q3": 1.0, "q4": 0.25}, {"q1": 0.5, "q2": 0.5, "q3": 0.75, "q4": 1.0})

    assert (2, 1, 1) == (comparison.wins, comparison.ties, comparison.losses)
    assert (0.4375, 0.6875, 0.25) == (comparison.baseline_mean, comparison.system_mean, comparison.mean_difference)


def test_the_interval_is_near_that_of_the_central_limit() -> None:
    baseline, system = drawn_scores(400, lift=0.01)
    differences = [system[name] - baseline[name] for name in baseline]
    mean = fsum(differences) / 400
    margin = 1.96 * float(np.std(differences)) / 20
    comparison = compare_scores(baseline, system, generator=np.random.default_rng(3))

    assert mean == pytest.approx(comparison.mean_difference, abs=1e-12)
    assert (mean - margin, mean + margin) == pytest.approx((comparison.low, comparison.high), abs=margin / 20)


def test_a_wider_confidence_gives_a_wider_interval() -> None:
    baseline, system = drawn_scores(100, lift=0.0)
    narrow, wide = (
        compare_scores(baseline, system, generator=np.random.default_rng(3), confidence_percent=percent) for percent in (80, 99)
    )

    assert wide.low < narrow.low < narrow.high < wide.high


def test_the_p_value_is_near_that_of_all_exchanges() -> None:
    differences = [0.125, -0.0625, 0.25, 0.5, 0.03125, -0.125, 0.25, 0.0625]
    signs = product((-1, 1), repeat=len(differences))
    sums = [abs(sum(sign * size for sign, size in zip(each, differences, strict=True))) for each in signs]
    exact = sum(total >= abs(sum(differences)) for total in sums) / len(sums)
    scores = {str(number): 0.5 + size for number, size in enumerate(differences)}
    comparison = compare_scores(dict.fromkeys(scores, 0.5), scores, generator=np.random.default_rng(5), resamples=100_000)

    assert exact == pytest.approx(comparison.p_value, abs=0.005)


def test_a_clear_lift_excludes_zero_and_no_lift_does_not() -> None:
    lift, none = compared(*drawn_scores(300, lift=0.03)), compared(*drawn_scores(300, lift=0.0))

    assert lift.low > 0
    assert lift.p_value < 0.01
    assert none.low < 0 < none.high
    assert none.p_value > 0.05


def test_equal_systems_differ_by_nothing() -> None:
    comparison = compared({"q1": 0.1, "q2": 0.7}, {"q1": 0.1, "q2": 0.7})

    assert (0.0, 0.0, 0.0, 1.0, 2) == (comparison.mean_difference, comparison.low, comparison.high, comparison.p_value, comparison.ties)


def test_a_difference_of_rounding_alone_is_a_tie() -> None:
    comparison = compared({"q": 0.1 + 0.2}, {"q": 0.3})

    assert (0, 1, 0) == (comparison.wins, comparison.ties, comparison.losses)


@settings(max_examples=40)
@given(baseline=SCORES, system=SCORES)
def test_the_interval_holds_the_mean_of_extremes_and_every_query_is_accounted_for(
    baseline: dict[str, float], system: dict[str, float]
) -> None:
    assume(baseline.keys() & system.keys())
    comparison = compared(baseline, system)
    differences = [system[name] - baseline[name] for name in baseline.keys() & system.keys()]
    slack = 2.0**-40

    assert min(differences) - slack <= comparison.low <= comparison.high <= max(differences) + slack
    assert comparison.queries == comparison.wins + comparison.ties + comparison.losses
    assert baseline.keys() | system.keys() == {*comparison.only_baseline, *comparison.only_system, *(baseline.keys() & system.keys())}


def test_queries_of_one_side_are_listed_and_left_out_of_the_pairs() -> None:
    comparison = compared({"q1": 0.5, "q9": 1.0, "q2": 0.0}, {"q1": 0.5, "q3": 1.0})

    assert 1 == comparison.queries
    assert (("q2", "q9"), ("q3",)) == (comparison.only_baseline, comparison.only_system)


def test_a_query_missing_from_a_run_counts_as_zero_there_and_is_listed() -> None:
    qrels = {"q1": {"a": 1}, "q2": {"a": 1}, "q3": {"a": 1}, "q4": {"a": 0}}
    comparison = compare_runs(
        ranked(q1="a", q2="a", q5="a"), ranked(q1="ba", q3="a"), qrels, measure=Measure("MRR"), generator=np.random.default_rng(1)
    )

    assert (3, 1, 2) == (comparison.queries, comparison.wins, comparison.losses)
    assert (2 / 3, 1.5 / 3) == (comparison.baseline_mean, comparison.system_mean)
    assert (("q2", "q5"), ("q3",)) == (comparison.only_baseline, comparison.only_system)
    assert "MRR" == comparison.measure


def test_reports_are_compared_measure_by_measure() -> None:
    better = msgspec.structs.replace(REPORT, per_query={"MRR": {"q1": 1.0, "q2": 0.5}})
    (comparison,) = compare_reports(REPORT, better, generator=np.random.default_rng(1))

    assert ("MRR", 0.25) == (comparison.measure, comparison.mean_difference)


@pytest.mark.parametrize(("field", "other"), [("split", "train"), ("k", 5), ("gain", "linear"), ("per_query", {})])
def test_reports_on_different_grounds_are_refused(field: str, other: object) -> None:
    with pytest.raises(InvalidFieldError, match=f"field '{field}'"):
        compare_reports(REPORT, msgspec.structs.replace(REPORT, **{field: other}), generator=np.random.default_rng(1))


@pytest.mark.parametrize("score", [-0.1, 1.1, float("nan"), float("inf")])
def test_scores_outside_zero_and_one_are_refused(score: float) -> None:
    with pytest.raises(InvalidFieldError, match="query 'q' has"):
        compared({"q": 0.5}, {"q": score})


def test_two_systems_without_a_common_query_are_refused() -> None:
    with pytest.raises(InvalidFieldError, match="no query in common"):
        compared({"q1": 0.5}, {"q2": 0.5})


@pytest.mark.parametrize(("resamples", "confidence_percent"), [(999, 95.0), (1_000_001, 95.0), (1000, 49.0), (1000, 100.0)])
def test_senseless_options_are_refused(resamples: int, confidence_percent: float) -> None:
    with pytest.raises(InvalidFieldError, match="is not between"):
        compare_scores(
            {"q": 0.5}, {"q": 0.5}, generator=np.random.default_rng(1), resamples=resamples, confidence_percent=confidence_percent
        )
