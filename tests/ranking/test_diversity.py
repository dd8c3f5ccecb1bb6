"""Maximal marginal relevance: the same selection as the formula read literally, with fewer comparisons."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidentia.contracts.errors import InvalidFieldError
from evidentia.ranking.diversity import MISSING, TokenOverlap, diversify, overlaps
from evidentia.ranking.fusion import ONE, order
from evidentia.ranking.signals import MILLION
from soak import cases

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

WORDS = "abcdef"


def jaccard(left: frozenset[str], right: frozenset[str]) -> int:
    """Return the share of common tokens at 2^-16, by the definition."""
    return (len(left & right) << 16) // len(left | right) if left & right else 0


class Case:
    """Candidates with scores, ids, token sets and similarities, and the selection that the formula gives."""

    def __init__(
        self, scores: Sequence[int], ids: Sequence[str], tokens: Sequence[frozenset[str]], similarities: NDArray[np.int64] | None
    ) -> None:
        self.scores, self.ids, self.tokens, self.similarities = scores, ids, tokens, similarities
        self.asked: list[tuple[int, int]] = []
        self.counted = TokenOverlap(self.tokens.__getitem__)

    def overlap(self, left: int, right: int) -> int:
        self.asked.append((left, right))
        return self.counted(left, right)

    def similarity(self, left: int, right: int) -> int:
        known = MISSING if self.similarities is None else int(self.similarities[left, right])
        return known if known >= 0 else jaccard(self.tokens[left], self.tokens[right])

    def diversify(self, diversity: float, limit: int) -> list[int]:
        return diversify(self.scores, self.ids, self.similarities, diversity=diversity, limit=limit, overlap=self.overlap)

    def naive(self, diversity_millionths: int, limit: int) -> list[int]:
        selected: list[int] = []
        remaining = list(range(len(self.scores)))
        while remaining and len(selected) < limit:

            def key(index: int) -> tuple[int, int, str]:
                nearest = max((self.similarity(index, chosen) for chosen in selected), default=0)
                value = diversity_millionths * self.scores[index] - (MILLION - diversity_millionths) * (nearest << 16)
                return -value, -self.scores[index], self.ids[index]

            selected.append(min(remaining, key=key))
            remaining.remove(selected[-1])
        return selected


def random_case(seed: int) -> Case:
    """Return a case of up to 14 candidates; coarse scores and similarities make many ties, and about half of the cases have gaps."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 15))
    levels = int(rng.choice([2, 5, 1 << 16]))
    scores = [int(score) * (ONE // levels) for score in rng.integers(0, levels + 1, count)]
    ids = [f"c{place:02}" for place in rng.permutation(count)]
    tokens = [frozenset(WORDS[letter] for letter in np.flatnonzero(rng.integers(0, 2, len(WORDS)))) for _ in range(count)]
    steps = int(rng.choice([1, 3, 1 << 16]))
    half = rng.integers(0, steps + 1, (count, count)) * ((1 << 16) // steps)
    similarities = np.triu(half) + np.triu(half, 1).T
    if seed % 2:
        lacking = rng.random(count) < rng.choice([0.1, 0.5, 1.0])
        similarities[lacking, :] = MISSING
        similarities[:, lacking] = MISSING
    if rng.integers(0, 2):
        places = order(scores, ids)
        scores, ids = [scores[place] for place in places], [ids[place] for place in places]
    return Case(scores, ids, tokens, None if seed % 10 == 0 else similarities)


@pytest.mark.parametrize("block", range(8))
def test_the_selection_is_the_one_the_formula_gives(block: int) -> None:
    for seed in range(block * 500, block * 500 + 500):
        case = random_case(seed)
        millionths = (0, 300_000, 500_000, 700_000, 999_999)[seed % 5]
        limit = seed % 17

        assert case.naive(millionths, limit) == case.diversify(millionths / MILLION, limit), seed


@settings(max_examples=cases(100, of=300))
@given(st.integers(0, 1 << 32), st.integers(0, MILLION - 1))
def test_any_lambda_gives_the_selection_of_the_formula(seed: int, millionths: int) -> None:
    case = random_case(seed)

    assert case.naive(millionths, 20) == case.diversify(millionths / MILLION, 20)


@given(st.integers(0, 1 << 32), st.integers(0, 20))
def test_lambda_one_keeps_the_given_order(seed: int, limit: int) -> None:
    case = random_case(seed)

    assert list(range(len(case.scores)))[:limit] == case.diversify(1, limit)
    assert [] == case.asked


@given(st.integers(0, 1 << 32), st.floats(0, 1))
def test_a_smaller_limit_is_the_beginning_of_a_larger_one(seed: int, diversity: float) -> None:
    case = random_case(seed)
    everything = case.diversify(diversity, 100)

    assert list(range(len(case.scores))) == sorted(everything)
    assert all(everything[:limit] == case.diversify(diversity, limit) for limit in range(len(case.scores)))


def test_a_near_copy_gives_way_to_something_new() -> None:
    similarities = np.array([[1 << 16, 1 << 16, 0], [1 << 16, 1 << 16, 0], [0, 0, 1 << 16]], dtype=np.int64)
    case = Case([ONE, ONE - 1, ONE // 2], ["a", "b", "c"], [frozenset()] * 3, similarities)

    assert [0, 2, 1] == case.diversify(0.6, 3)
    assert [0, 1, 2] == case.diversify(0.7, 3)  # 0.7 * 1 - 0.3 * 1 beats 0.7 * 0.5


def test_only_candidates_that_lead_are_compared_by_their_words() -> None:
    count = 200
    tokens = [frozenset({f"own{index}", "shared"}) for index in range(count)]
    case = Case([ONE - index * (ONE // count) for index in range(count)], [f"{index:03}" for index in range(count)], tokens, None)
    chosen = case.diversify(0.7, 20)

    assert list(range(20)) == chosen
    assert len(case.asked) == len(set(case.asked))
    assert len(case.asked) < 20 * count // 4


def test_the_given_matrix_is_left_as_it_was() -> None:
    case = random_case(7)
    assert case.similarities is not None
    before = case.similarities.copy()
    case.diversify(0.5, 10)

    assert np.array_equal(before, case.similarities)


@pytest.mark.parametrize(
    ("left", "right", "shared"),
    [("", "", 0), ("ab", "", 0), ("ab", "ab", 1 << 16), ("ab", "bc", (1 << 16) // 3), ("abc", "d", 0)],
)
def test_overlap_is_the_share_of_common_tokens(left: str, right: str, shared: int) -> None:
    overlap = TokenOverlap([frozenset(left), frozenset(right)].__getitem__)

    assert shared == overlap(0, 1) == overlap(1, 0) == jaccard(frozenset(left), frozenset(right))


@given(st.lists(st.lists(st.text(max_size=2), max_size=40), min_size=2, max_size=6))
def test_overlap_equals_that_of_plain_sets(texts: list[list[str]]) -> None:
    overlap = TokenOverlap([frozenset(text) for text in texts].__getitem__)

    for left, right in combinations(range(len(texts)), 2):
        assert jaccard(frozenset(texts[left]), frozenset(texts[right])) == overlap(left, right)


@given(st.lists(st.lists(st.text(max_size=2), max_size=80).map(frozenset), max_size=6))
def test_all_overlaps_at_once_are_those_of_each_pair(texts: list[frozenset[str]]) -> None:
    assert [[jaccard(left, right) for left in texts] for right in texts] == overlaps(texts).tolist()


def test_a_constraint_that_is_no_share_is_refused() -> None:
    with pytest.raises(InvalidFieldError, match="diversity_constraint"):
        random_case(1).diversify(1.5, 3)
