"""Near-copies step back and nothing else does: the same selection as the rules read literally."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidentia.contracts.errors import InvalidFieldError
from evidentia.ranking.diversity import (
    COPY_COSINE,
    MAX_EXCERPT_LENGTHS,
    MAX_LENGTHS,
    MISSING,
    USUAL,
    Standing,
    find_copies,
    spare,
)
from evidentia.ranking.fusion import ONE
from evidentia.ranking.signals import MILLION
from soak import cases

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

SCALE = 1 << 16


class Case:
    """Candidates best first, with the standing of their sources, who copies whom, and how far they are alike."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        count = int(rng.integers(0, 13))
        levels = int(rng.choice([2, 5, 1 << 16]))
        self.scores = sorted((int(score) * (ONE // levels) for score in rng.integers(0, levels + 1, count)), reverse=True)
        self.standings = [
            Standing(int(rank), is_trusted=bool(rank), is_current=bool(current))
            for rank, current in zip(rng.integers(0, 3, count), rng.random(count) < 0.8, strict=True)
        ]
        chance = rng.choice([0.0, 0.1, 0.5])
        self.copies = [(left, right) for left in range(count) for right in range(left + 1, count) if rng.random() < chance]
        half = rng.integers(0, 5, (count, count)) * (SCALE // 4)
        self.alike = np.triu(half) + np.triu(half, 1).T

    def spare(self, millionths: int, limit: int) -> list[int]:
        return spare(self.scores, self.standings, self.copies, self.alike, diversity=millionths / MILLION, limit=limit).order

    def naive(self, millionths: int, limit: int) -> list[int]:
        """Return the selection by the words of `spare`, each value worked out anew for every place."""
        selected: list[int] = []
        copied: set[int] = set()
        while len(selected) < min(limit, len(self.scores)):
            remaining = [index for index in range(len(self.scores)) if index not in selected]
            leader = min(remaining, key=lambda index: (-self._value(index, selected, copied, millionths), index))
            while leader not in copied and (better := self._better(leader, remaining, copied)) and millionths < MILLION:
                leader = min(better, key=lambda index: (-self.standings[index].rank, index))
            selected.append(leader)
            copied |= {index for index in remaining if self._is_copy(index, selected)}
        return selected

    def _are_copies(self, one: int, other: int) -> bool:
        return (min(one, other), max(one, other)) in self.copies

    def _better(self, leader: int, remaining: Sequence[int], copied: set[int]) -> list[int]:
        mine = self.standings[leader].rank
        return [
            index
            for index in remaining
            if index not in copied and self._are_copies(leader, index)
            if self.standings[index].is_current and self.standings[index].rank > mine
        ]

    def _is_copy(self, index: int, selected: Sequence[int]) -> bool:
        ranks = [self.standings[other].rank for other in selected if self._are_copies(index, other)]
        mine = self.standings[index]
        return any(rank > mine.rank for rank in ranks) or ranks.count(mine.rank) > (1 if mine.is_trusted else 0)

    def _value(self, index: int, selected: Sequence[int], copied: set[int], millionths: int) -> int:
        nearest = max((int(self.alike[index, other]) * max(0, USUAL - millionths) // USUAL for other in selected), default=0)
        penalty = SCALE if index in copied else nearest
        return millionths * self.scores[index] - (MILLION - millionths) * (penalty << 16)


@settings(max_examples=cases(300, of=3000))
@given(st.integers(0, 1 << 32), st.sampled_from([0, 200_000, 699_999, 700_000, 900_000, 999_999, MILLION]), st.integers(0, 14))
def test_the_selection_is_the_one_that_the_rules_give(seed: int, millionths: int, limit: int) -> None:
    case = Case(seed)

    assert case.naive(millionths, limit) == case.spare(millionths, limit)


@given(st.integers(0, 1 << 32), st.integers(USUAL, MILLION))
def test_where_nothing_is_a_copy_the_order_is_that_of_the_scores(seed: int, millionths: int) -> None:
    case = Case(seed)
    case.copies = []

    assert list(range(len(case.scores))) == case.spare(millionths, 100)


@given(st.integers(0, 1 << 32), st.integers(0, MILLION))
def test_a_smaller_limit_is_the_beginning_of_a_larger_one(seed: int, millionths: int) -> None:
    case = Case(seed)
    everything = case.spare(millionths, 100)

    assert list(range(len(case.scores))) == sorted(everything)
    assert all(everything[:limit] == case.spare(millionths, limit) for limit in range(len(case.scores)))


def _order(ranks: Sequence[int], copies: Sequence[tuple[int, int]], *, diversity: float = 0.7, trusted: int = 1) -> list[int]:
    scores = [ONE * (40 - place) // 40 for place in range(len(ranks))]
    standings = [Standing(rank, is_trusted=rank >= trusted) for rank in ranks]
    return spare(scores, standings, copies, None, diversity=diversity, limit=len(ranks)).order


def test_an_equal_source_may_say_it_once_more_and_the_rest_step_back() -> None:
    copies = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]

    assert [0, 1, 4, 5, 2, 3] == _order([1] * 6, copies)
    assert [0, 4, 5, 1, 2, 3] == _order([0] * 6, copies)  # nobody trusts them, so one is enough
    assert [0, 1, 2, 3, 4, 5] == _order([1] * 6, copies, diversity=1.0)


def test_a_better_source_stands_where_its_copy_would() -> None:
    copies = [(0, 4), (1, 4), (0, 1)]

    assert [4, 2, 3, 0, 1] == _order([0, 0, 1, 1, 1], copies)


def test_copies_that_had_to_be_taken_are_told() -> None:
    standings = [Standing(0, is_trusted=False)] * 3
    spared = spare([3, 2, 1], standings, [(0, 1), (0, 2), (1, 2)], None, diversity=0.7, limit=2)

    assert ([0, 1], True) == spared


def test_a_constraint_that_is_no_share_is_refused() -> None:
    with pytest.raises(InvalidFieldError, match="diversity_constraint"):
        spare([1], [Standing(0)], [], None, diversity=1.5, limit=3)


WORDS = st.builds(
    lambda few, first, last: frozenset(few) | {str(number) for number in range(first, last)},
    st.frozensets(st.sampled_from("abcdef")),
    st.sampled_from([0, 10, 20, 30]),
    st.sampled_from([0, 20, 40, 50, 60, 200]),
)


@given(st.lists(st.tuples(WORDS, st.integers(0, 2)), max_size=6), st.integers(0, 1 << 32), st.sampled_from(["vectors", ""]))
def test_copies_share_their_words(texts: list[tuple[frozenset[str], int]], seed: int, vectors: str) -> None:
    rng = np.random.default_rng(seed)
    half = rng.choice([MISSING, 0, COPY_COSINE - 1, COPY_COSINE, SCALE], (len(texts), len(texts)))
    near: NDArray[np.int64] | None = np.triu(half) + np.triu(half, 1).T if vectors else None
    asked: set[int] = set()

    def tokens_of(index: int) -> frozenset[str]:
        asked.add(index)
        return texts[index][0]

    expected, compared = [], set()
    for left, (one, rank) in enumerate(texts):
        for right, (other, other_rank) in enumerate(texts[left + 1 :], start=left + 1):
            is_equal = rank == other_rank > 0
            if is_equal and near is not None and 0 <= near[left, right] < COPY_COSINE:
                continue
            compared |= {left, right}
            lower, upper = (one, other) if (rank, len(one)) < (other_rank, len(other)) else (other, one)
            most = MAX_LENGTHS if is_equal or rank == other_rank or len(lower) >= len(upper) else MAX_EXCERPT_LENGTHS
            shorter, longer = sorted((len(one), len(other)))
            share = 80 if is_equal or shorter <= 25 else max(55, 105 - shorter)
            if shorter and longer <= most * shorter and 100 * len(one & other) >= share * shorter:
                expected.append((left, right))

    assert expected == find_copies([Standing(rank, is_trusted=rank > 0) for _, rank in texts], near, tokens_of)
    assert compared == asked
