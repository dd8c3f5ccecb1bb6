"""One score from several legs: exact, in bounds, monotone, and the same in whatever order candidates or legs are given."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.contracts.search import LegScores
from evidentia.ranking.fusion import ONE, linear, min_max, order, rrf, single

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

SCORES = st.integers(-(1 << 45), 1 << 45)
VALUES = st.lists(SCORES, min_size=1, max_size=12)
WITH_VECTOR = st.builds(LegScores, lexical=st.integers(0, 1 << 30), dense=SCORES)
ANY_LEG = st.builds(LegScores, lexical=st.integers(0, 1 << 30), dense=st.none() | SCORES)
MILLI = st.integers(0, 1000)
RANKINGS = st.lists(st.lists(st.integers(0, 9), unique=True, max_size=10), max_size=5)
KEYS = list(range(10))


def exact_linear(legs: Sequence[LegScores], lexical_milli: int) -> list[Fraction]:
    """Return the formula as it stands in the specification, in fractions."""

    def normalise(value: int, values: list[int]) -> Fraction:
        width = max(values) - min(values)
        return Fraction(value - min(values), width) if width else Fraction(1)

    words = [leg.lexical for leg in legs]
    vectors = [leg.dense for leg in legs if leg.dense is not None]
    weight = Fraction(lexical_milli, 1000)
    return [
        normalise(leg.lexical, words)
        if leg.dense is None
        else weight * normalise(leg.lexical, words) + (1 - weight) * normalise(leg.dense, vectors)
        for leg in legs
    ]


@pytest.mark.parametrize(
    ("values", "normalised"),
    [([], []), ([7], [ONE]), ([3, 3, 3], [ONE, ONE, ONE]), ([0, 5, 10], [0, ONE // 2, ONE]), ([-4, -1, 5], [0, ONE // 3, ONE])],
)
def test_values_are_placed_between_the_least_and_the_greatest(values: list[int], normalised: list[int]) -> None:
    assert normalised == min_max(values)
    assert normalised == single(values)


@given(VALUES)
def test_normalised_values_are_in_bounds_and_never_turn_an_order_round(values: list[int]) -> None:
    normalised = min_max(values)

    assert all(0 <= value <= ONE for value in normalised)
    assert ONE == max(normalised)
    assert all(
        normalised[left] <= normalised[right]
        for left in range(len(values))
        for right in range(len(values))
        if values[left] <= values[right]
    )


@given(st.integers(1, 1 << 32), st.data())
def test_different_values_stay_different_over_a_range_of_up_to_two_to_the_32(width: int, data: st.DataObject) -> None:
    value = data.draw(st.integers(0, width - 1))
    _, _, low, high = min_max([0, width, value, value + 1])

    assert low < high


def test_over_a_wider_range_values_closer_than_a_step_become_equal_and_ids_decide() -> None:
    normalised = min_max([0, 1 << 45, (1 << 44) + 1, 1 << 44])

    assert [0, ONE, ONE // 2, ONE // 2] == normalised
    assert [1, 3, 2, 0] == order(normalised, ["d", "a", "c", "b"])


@given(st.lists(ANY_LEG, min_size=1, max_size=12), MILLI)
def test_linear_fusion_is_the_formula_rounded_down_once(legs: list[LegScores], lexical_milli: int) -> None:
    fused = linear(legs, lexical_milli=lexical_milli)

    assert [score * ONE // 1 for score in exact_linear(legs, lexical_milli)] == fused
    assert all(0 <= score <= ONE for score in fused)


@given(st.lists(ANY_LEG, min_size=1, max_size=12), MILLI, st.randoms(use_true_random=False))
def test_linear_fusion_ignores_the_order_of_candidates(legs: list[LegScores], lexical_milli: int, shuffler: Random) -> None:
    places = list(range(len(legs)))
    shuffler.shuffle(places)
    fused = linear(legs, lexical_milli=lexical_milli)

    assert [fused[place] for place in places] == linear([legs[place] for place in places], lexical_milli=lexical_milli)


@given(st.lists(WITH_VECTOR, min_size=1, max_size=12), MILLI)
def test_linear_fusion_ignores_which_leg_is_which(legs: list[LegScores], lexical_milli: int) -> None:
    swapped = [LegScores(lexical=leg.dense or 0, dense=leg.lexical) for leg in legs]

    assert linear(legs, lexical_milli=lexical_milli) == linear(swapped, lexical_milli=1000 - lexical_milli)


@given(st.lists(WITH_VECTOR, min_size=2, max_size=12), MILLI)
def test_a_candidate_that_no_leg_puts_below_another_is_not_below_it(legs: list[LegScores], lexical_milli: int) -> None:
    fused = linear(legs, lexical_milli=lexical_milli)
    both = list(zip(legs, fused, strict=True))

    assert all(
        mine <= yours for (me, mine) in both for (you, yours) in both if me.lexical <= you.lexical and (me.dense or 0) <= (you.dense or 0)
    )


def test_a_candidate_without_a_vector_gives_that_weight_to_its_words() -> None:
    legs = [LegScores(lexical=10, dense=0), LegScores(lexical=5, dense=None), LegScores(lexical=0, dense=8)]

    assert [ONE * 3 // 10, ONE // 2, ONE * 7 // 10] == linear(legs, lexical_milli=300)


@given(st.lists(st.integers(0, 1 << 30), max_size=12), MILLI)
def test_without_any_vector_words_answer_alone(values: list[int], lexical_milli: int) -> None:
    legs = [LegScores(lexical=value, dense=None) for value in values]

    assert single(values) == linear(legs, lexical_milli=lexical_milli)


@given(VALUES)
def test_a_leg_with_all_the_weight_is_that_leg_alone(values: list[int]) -> None:
    legs = [LegScores(lexical=index, dense=value) for index, value in enumerate(values)]

    assert min_max(values) == linear(legs, lexical_milli=0)
    assert min_max(list(range(len(values)))) == linear(legs, lexical_milli=1000)


def test_reciprocal_ranks_add_up() -> None:
    scores = rrf([["a", "b"], ["b"]], ["a", "b", "c"], kappa=60)

    assert [ONE // 61, (61 + 62) * ONE // (61 * 62), 0] == scores


def test_a_weight_counts_a_ranking_so_many_times() -> None:
    rankings = [["a", "b"], ["b", "a"]]

    assert rrf([rankings[0]] * 3 + [rankings[1]], ["a", "b"], kappa=60) == rrf(rankings, ["a", "b"], kappa=60, weights=[3, 1])


def test_weights_that_do_not_match_the_rankings_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        rrf([["a"]], ["a"], kappa=60, weights=[1, 2])


def test_a_key_counts_where_a_ranking_has_it_first() -> None:
    assert rrf([["a", "b"]], ["a", "b"], kappa=1) == rrf([["a", "b", "a"]], ["a", "b"], kappa=1)


@given(RANKINGS, st.integers(1, 10_000))
def test_reciprocal_ranks_are_exact_and_in_bounds(rankings: list[list[int]], kappa: int) -> None:
    expected = [
        sum((Fraction(ONE, kappa + ranking.index(key) + 1) for ranking in rankings if key in ranking), Fraction()) // 1 for key in KEYS
    ]
    scores = rrf(rankings, KEYS, kappa=kappa)

    assert expected == scores
    assert len(rankings) > kappa or all(0 <= score < ONE for score in scores)


@given(RANKINGS, st.randoms(use_true_random=False))
def test_reciprocal_ranks_ignore_the_order_of_legs(rankings: list[list[int]], shuffler: Random) -> None:
    shuffled = list(rankings)
    shuffler.shuffle(shuffled)

    assert rrf(rankings, KEYS, kappa=60) == rrf(shuffled, KEYS, kappa=60)


@given(st.lists(st.tuples(st.integers(0, 3), st.text(max_size=3)), max_size=10, unique_by=lambda pair: pair[1]))
def test_equal_scores_are_ordered_by_id(pairs: list[tuple[int, str]]) -> None:
    places = order([score for score, _ in pairs], [name for _, name in pairs])

    assert sorted(pairs, key=lambda pair: (-pair[0], pair[1])) == [pairs[place] for place in places]
