"""The composite score: exact weights, an exact sum, and a reranker that promotes only what it read."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.evidence import RankingWeights
from evidentia.ranking.fusion import ONE, min_max, order
from evidentia.ranking.signals import MILLION, composites, millionths, normalise_reranked, weights_of, with_reranker

SHARES = st.integers(0, ONE)
SIGNALS = st.tuples(SHARES, SHARES, SHARES, SHARES)
PARTS = st.lists(st.integers(0, 1000), min_size=4, max_size=4).filter(any)


@st.composite
def rerankings(draw: st.DrawFn) -> tuple[list[int], list[str], dict[int, int]]:
    """Return fused scores, many a single step apart, with ids and the reranker's scores of some of them."""
    ends = draw(st.sampled_from([[], [0, ONE]]))
    fused = draw(st.permutations(ends + draw(st.lists(st.integers(0, 6) | SHARES, min_size=1, max_size=10))))
    ids = draw(st.permutations([f"c{index}" for index in range(len(fused))]))
    return fused, ids, draw(st.dictionaries(st.integers(0, len(fused) - 1), st.integers(-3, 3) | st.integers(-(1 << 20), 1 << 20)))


def test_the_weights_of_the_specification() -> None:
    assert (450_000, 250_000, 150_000, 150_000) == weights_of(RankingWeights())
    assert (MILLION, 0, 0, 0) == weights_of(RankingWeights(relevance=1, authority=0, freshness=0, utility=0))


def test_what_is_left_over_goes_to_the_largest_remainder_then_to_the_first() -> None:
    third = 1 / 3
    sixth = 1 / 6

    assert (333_334, 333_333, 333_333, 0) == weights_of(RankingWeights(relevance=third, authority=third, freshness=third, utility=0))
    assert (333_333, 333_333, 166_667, 166_667) == weights_of(
        RankingWeights(relevance=third, authority=third, freshness=sixth, utility=sixth)
    )


@given(PARTS)
def test_weights_sum_to_exactly_a_million_and_are_less_than_one_off(parts: list[int]) -> None:
    shares = [part / sum(parts) for part in parts]
    weights = weights_of(RankingWeights(relevance=shares[0], authority=shares[1], freshness=shares[2], utility=shares[3]))

    assert MILLION == sum(weights)
    assert all(
        abs(weight - Fraction(part, sum(parts)) * MILLION) < Fraction(10_001, 10_000) for weight, part in zip(weights, parts, strict=True)
    )


def test_weights_that_miss_one_by_rounding_are_scaled_to_it() -> None:
    assert (450_002, 249_999, 150_000, 149_999) == weights_of(RankingWeights(relevance=0.450004, utility=0.15))


@pytest.mark.parametrize("relevance", [0.44, 0.46, 0.4501])
def test_weights_that_do_not_sum_to_one_are_refused(relevance: float) -> None:
    with pytest.raises(InvalidFieldError, match="does not sum to 1"):
        weights_of(RankingWeights(relevance=relevance))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.1, 1.1])
def test_a_weight_that_is_no_share_is_refused_by_name(value: float) -> None:
    with pytest.raises(InvalidFieldError, match=r"ranking_weights\.utility"):
        weights_of(RankingWeights(utility=value))
    with pytest.raises(InvalidFieldError, match="diversity_constraint"):
        millionths("diversity_constraint", value)


@given(st.integers(0, MILLION))
def test_millionths_come_back_from_a_float(count: int) -> None:
    assert count == millionths("diversity_constraint", count / MILLION)


@given(SIGNALS, PARTS)
def test_the_composite_is_in_bounds_and_no_higher_than_its_best_signal(signals: tuple[int, int, int, int], parts: list[int]) -> None:
    shares = [part / sum(parts) for part in parts]
    weights = weights_of(RankingWeights(relevance=shares[0], authority=shares[1], freshness=shares[2], utility=shares[3]))
    (score,) = composites([signals], weights)

    assert min(signals) <= score <= max(signals)


@given(SIGNALS, st.integers(0, 3), st.integers(0, 1 << 20))
def test_a_better_signal_never_lowers_the_composite(signals: tuple[int, int, int, int], which: int, more: int) -> None:
    raised = [signal + more if place == which else signal for place, signal in enumerate(signals)]
    weights = weights_of(RankingWeights())
    before, after = composites([signals, (raised[0], raised[1], raised[2], raised[3])], weights)

    assert before <= after


@given(st.lists(SIGNALS, max_size=12))
def test_relevance_alone_returns_the_fused_scores_and_so_their_order(signals: list[tuple[int, int, int, int]]) -> None:
    weights = weights_of(RankingWeights(relevance=1, authority=0, freshness=0, utility=0))
    fused = [relevance for relevance, *_ in signals]

    assert fused == composites(signals, weights)


def test_a_reranker_has_half_the_say() -> None:
    assert [ONE // 2, ONE // 2, ONE // 4 + ONE // 8] == with_reranker([8, 0, 4], {0: -5, 1: 15, 2: 0})


def test_without_a_reranker_the_fused_scores_stay_as_they_are() -> None:
    assert [5, 3, 9] == with_reranker([5, 3, 9], {})


def test_a_reranker_is_normalised_over_what_it_scored() -> None:
    assert {4: 0, 2: ONE, 7: ONE // 2} == normalise_reranked({4: -1, 2: 1, 7: 0})
    assert {3: ONE} == normalise_reranked({3: -9})


@given(rerankings())
def test_what_was_not_reranked_never_passes_what_was(case: tuple[list[int], list[str], dict[int, int]]) -> None:
    fused, ids, given_scores = case
    before = order(fused, ids)
    after = order(with_reranker(fused, given_scores), ids)

    assert not [
        (unscored, scored)
        for unscored in range(len(fused))
        for scored in given_scores
        if unscored not in given_scores and before.index(scored) < before.index(unscored) and after.index(unscored) < after.index(scored)
    ]


@given(rerankings())
def test_relevance_with_a_reranker_is_in_bounds_and_half_of_each_to_the_step(case: tuple[list[int], list[str], dict[int, int]]) -> None:
    fused, _, given_scores = case
    assume(given_scores)
    relevance = with_reranker(fused, given_scores)
    reranked = normalise_reranked(given_scores)
    doubled = [score + reranked.get(index, 0) for index, score in enumerate(min_max(fused))]

    assert all(0 <= score <= ONE for score in relevance)
    assert all(abs(2 * score - exact) <= 1 for score, exact in zip(relevance, doubled, strict=True))


@given(rerankings())
def test_the_order_of_what_was_not_reranked_is_never_turned_round(case: tuple[list[int], list[str], dict[int, int]]) -> None:
    fused, _, given_scores = case
    relevance = with_reranker(fused, given_scores)
    unscored = [index for index in range(len(fused)) if index not in given_scores]

    assert all(relevance[left] <= relevance[right] for left in unscored for right in unscored if fused[left] <= fused[right])
