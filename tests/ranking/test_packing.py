"""Packing: the best subset exactly, never over the budget, one answer to every tie, and the budget a missing fragment would need."""

from __future__ import annotations

import random
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidentia.contracts.errors import InvalidFieldError
from evidentia.ranking.packing import Packed, PackingTable, pack, smallest_budget
from soak import cases

SCORES = st.one_of(st.integers(0, 3), st.integers(0, 20), st.integers(0, 2**32))
SMALL = st.lists(st.tuples(SCORES, st.integers(0, 12)), max_size=7)
LARGER = st.lists(st.tuples(SCORES, st.integers(0, 60)), min_size=1, max_size=40)
PACKED = cases(10_000, of=100_000)


def columns(fragments: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    return [score for score, _ in fragments], [length for _, length in fragments]


def best_by_trying_all(scores: list[int], tokens: list[int], budget: int) -> tuple[int, ...]:
    """Return the subset that the rules put first, by comparing all of them."""
    places = range(len(scores))
    subsets = [subset for size in range(len(scores) + 1) for subset in combinations(places, size)]
    fitting = [subset for subset in subsets if sum(tokens[place] for place in subset) <= budget]
    return min(fitting, key=lambda subset: (-sum(scores[p] for p in subset), -len(subset), sum(tokens[p] for p in subset), subset))


def best_by_budgets(scores: list[int], tokens: list[int], budget: int) -> tuple[int, ...]:
    """Return the same by dynamic programming over budgets, with whole keys, last fragment first."""
    best: list[tuple[int, int, int, tuple[int, ...]]] = [(0, 0, 0, ())] * (budget + 1)
    for place in range(len(scores) - 1, -1, -1):
        for room in range(budget, tokens[place] - 1, -1):
            score, number, used, subset = best[room - tokens[place]]
            best[room] = min(best[room], (score - scores[place], number - 1, used + tokens[place], (place, *subset)))
    return best[budget][3]


@pytest.mark.parametrize(
    ("scores", "tokens", "budget", "chosen"),
    [
        pytest.param([], [], 10, (), id="nothing"),
        pytest.param([9, 5, 5], [10, 5, 5], 10, (1, 2), id="two that are worth more together than the best"),
        pytest.param([9, 5, 4], [10, 5, 5], 10, (1, 2), id="equal scores: more fragments"),
        pytest.param([5, 5], [7, 4], 10, (1,), id="equal scores: fewer tokens"),
        pytest.param([5, 5, 5], [4, 4, 4], 9, (0, 1), id="equal in all: first in rank order"),
        pytest.param([6, 4, 5, 5], [6, 4, 5, 5], 10, (0, 1), id="equal in all: the subset with the best rank"),
        pytest.param([9, 0], [4, 4], 8, (0, 1), id="a score of 0 is shown where there is room"),
        pytest.param([9, 0, 1], [4, 4, 4], 8, (0, 2), id="and gives way to a score of 1"),
        pytest.param([9, 9], [11, 12], 10, (), id="nothing fits"),
        pytest.param([0, 1], [0, 11], 10, (0,), id="no tokens always fit"),
        pytest.param([2**32] * 3, [3, 3, 3], 6, (0, 1), id="the greatest score"),
    ],
)
def test_the_best_subset_is_chosen(scores: list[int], tokens: list[int], budget: int, chosen: tuple[int, ...]) -> None:
    value, used = sum(scores[place] for place in chosen), sum(tokens[place] for place in chosen)

    assert Packed(chosen, value, used, is_exact=True) == pack(scores, tokens, budget)


@given(fragments=SMALL, budget=st.integers(0, 50))
def test_no_subset_is_better(fragments: list[tuple[int, int]], budget: int) -> None:
    scores, tokens = columns(fragments)

    assert best_by_trying_all(scores, tokens, budget) == pack(scores, tokens, budget).chosen


@settings(deadline=None)
@given(fragments=LARGER, budget=st.integers(0, 400), max_states=st.sampled_from([0, 50, 50_000]))
def test_it_equals_dynamic_programming_whichever_way_it_is_found(fragments: list[tuple[int, int]], budget: int, max_states: int) -> None:
    scores, tokens = columns(fragments)
    packed = pack(scores, tokens, budget, max_states=max_states)

    assert packed.is_exact
    assert best_by_budgets(scores, tokens, budget) == packed.chosen


@pytest.mark.parametrize("seed", range(4))
def test_a_thousand_fragments_are_packed_exactly(seed: int) -> None:
    generator = random.Random(seed)
    tokens = [generator.randint(20, 500) for _ in range(1000)]
    scores = sorted((generator.randint(0, 2**32) for _ in tokens), reverse=True)
    budget = 8_000
    table = PackingTable([score * 1001 + 1 for score in scores], tokens, max_budget=budget, rows=1000)
    packed = pack(scores, tokens, budget)

    assert packed.is_exact
    assert tuple(table.chosen(budget)) == packed.chosen


def test_out_of_work_it_still_fits_and_says_so() -> None:
    generator = random.Random(7)
    tokens = [generator.randint(20, 500) for _ in range(1000)]
    scores = [1000 * length for length in tokens]
    packed = pack(scores, tokens, 99_999, max_states=1000)

    assert not packed.is_exact
    assert 99_000 < packed.tokens <= 99_999
    assert packed == pack(scores, tokens, 99_999, max_states=1000)


@pytest.mark.slow
def test_the_budget_is_never_exceeded() -> None:
    generator = random.Random(11)
    for _ in range(PACKED):
        size, most_score, most_tokens = generator.randint(0, 25), generator.choice((2, 50, 2**32)), generator.choice((5, 100, 1000))
        scores = [generator.randint(0, most_score) for _ in range(size)]
        tokens = [generator.randint(0, most_tokens) for _ in range(size)]
        budget = generator.randint(0, 1 + sum(tokens))
        packed = pack(scores, tokens, budget, max_states=generator.choice((0, 100, 50_000)))

        assert packed.tokens == sum(tokens[place] for place in packed.chosen) <= budget
        assert packed.value == sum(scores[place] for place in packed.chosen)
        assert sorted(set(packed.chosen)) == list(packed.chosen)


def test_a_larger_budget_can_leave_a_fragment_out() -> None:
    scores, tokens = [9, 5, 5], [10, 6, 5]

    assert [(0,), (1, 2), (0, 2)] == [pack(scores, tokens, budget).chosen for budget in (10, 11, 15)]
    assert (10, 15) == (smallest_budget(scores, tokens, 0, least=1), smallest_budget(scores, tokens, 0, least=11))


@settings(deadline=None)
@given(fragments=SMALL.filter(bool), least=st.integers(0, 40), where=st.integers(0, 6))
def test_the_smallest_budget_is_the_first_that_chooses_the_fragment(fragments: list[tuple[int, int]], least: int, where: int) -> None:
    scores, tokens = columns(fragments)
    index = where % len(scores)
    budgets = range(least, least + sum(tokens) + 1)
    expected = next(budget for budget in budgets if index in best_by_trying_all(scores, tokens, budget))

    assert expected == smallest_budget(scores, tokens, index, least=least)


def test_equal_fragments_enter_in_rank_order() -> None:
    assert [5, 10, 15, 20] == [smallest_budget([3] * 4, [5] * 4, index, least=1) for index in range(4)]


def test_too_much_work_is_answered_with_none() -> None:
    assert smallest_budget([5, 4, 3], [2**31, 2**31, 2**31], 2, least=1) is None


@pytest.mark.parametrize(
    ("scores", "tokens", "index", "field"),
    [([1], [], 0, "tokens"), ([-1], [1], 0, "scores"), ([1], [-1], 0, "tokens"), ([1], [1], 1, "index"), ([1], [1], -1, "index")],
)
def test_what_cannot_be_packed_is_refused_by_name(scores: list[int], tokens: list[int], index: int, field: str) -> None:
    with pytest.raises(InvalidFieldError, match=f"field '{field}'"):
        smallest_budget(scores, tokens, index, least=1)
