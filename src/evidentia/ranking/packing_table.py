"""The best subset for every budget at once, as a table over budgets. Costs fragments times budget, whatever the scores are.

Row by row from the last fragment in rank order to the first, so that among equally good subsets the one first in rank order is taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from evidentia.contracts.errors import InvalidFieldError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

MAX_CELLS: Final = 1 << 27
"""Fragments times budget at most: a few seconds and 16 MiB."""


class PackingTable:
    """Decisions for the first `rows` fragments at every budget up to `most_budget`.

    A greater sum of `worths` is better, then fewer tokens, then the subset first in rank order.
    """

    def __init__(self, worths: Sequence[int], tokens: Sequence[int], *, max_budget: int, rows: int) -> None:
        if sum(worths) >= 1 << 63:
            raise InvalidFieldError("scores", "their sum times their number reaches 2^63; give fewer or smaller ones")
        self._tokens = tokens
        self._is_taken: list[NDArray[np.uint8]] = []
        self.worth = np.zeros(max_budget + 1, np.int64)
        """The greatest worth at each budget."""
        self.used = np.zeros(max_budget + 1, np.int32)
        """The fewest tokens that reach it."""
        for index in range(len(worths) - 1, -1, -1):
            taken = _take_where_better(self.worth, self.used, worth_more=worths[index], length=tokens[index])
            if index < rows:
                self._is_taken.append(np.packbits(taken))
        self._is_taken.reverse()

    def chosen(self, budget: int) -> list[int]:
        """Return the chosen ones among the first `rows` fragments."""
        chosen = []
        for index, bits in enumerate(self._is_taken):
            if bits[budget >> 3] >> (7 - (budget & 7)) & 1:
                chosen.append(index)
                budget -= self._tokens[index]
        return chosen

    def is_chosen(self, index: int, budgets: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Say for each budget whether the fragment, one of the first `rows`, is chosen."""
        room = budgets.copy()
        for before in range(index):
            room -= self._tokens[before] * self._bits(before, room)
        return self._bits(index, room).astype(np.bool_)

    def _bits(self, index: int, budgets: NDArray[np.int64]) -> NDArray[np.int64]:
        octets = self._is_taken[index][budgets >> 3].astype(np.int64)
        bits: NDArray[np.int64] = octets >> (7 - (budgets & 7)) & 1
        return bits


def find_first_budget(worths: Sequence[int], tokens: Sequence[int], index: int, *, least: int, max_budget: int) -> int | None:
    """Return the smallest budget from `least` to `most_budget` at which the fragment is chosen; `least` is at least its tokens.

    The best subset with the fragment is compared with the best without it, at all budgets at once; only where the two are equally good
    does the whole table have to say which one comes first in rank order.
    """
    others = PackingTable(_without(worths, index), _without(tokens, index), max_budget=max_budget, rows=0)
    length = tokens[index]
    beside = slice(least - length, max_budget - length + 1)
    gain = others.worth[beside] + worths[index] - others.worth[least:]
    saving = others.used[least:] - others.used[beside] - length
    is_level = (gain == 0) & (saving == 0)
    better = np.flatnonzero((gain > 0) | ((gain == 0) & (saving > 0)))
    first = least + int(better[0]) if len(better) else None
    level = least + np.flatnonzero(is_level[: None if first is None else first - least])
    if len(level):
        table = PackingTable(worths, tokens, max_budget=int(level[-1]), rows=index + 1)
        first = next((int(budget) for budget in level[table.is_chosen(index, level)]), first)
    return first


def _without(numbers: Sequence[int], index: int) -> list[int]:
    return [*numbers[:index], *numbers[index + 1 :]]


def _take_where_better(worth: NDArray[np.int64], used: NDArray[np.int32], *, worth_more: int, length: int) -> NDArray[np.bool_]:
    """Let one more fragment into every budget that gains by it, in place; return where it was let in."""
    taken = np.zeros(len(worth), np.bool_)
    if length >= len(worth):
        return taken
    reach = len(worth) - length
    with_it, tokens_with_it = worth[:reach] + worth_more, used[:reach] + length
    without, tokens_without = worth[length:], used[length:]
    # Equal worth and tokens: taken, since this fragment comes before all that the table has seen.
    taken[length:] = (with_it > without) | ((with_it == without) & (tokens_with_it <= tokens_without))
    np.copyto(without, with_it, where=taken[length:])
    np.copyto(tokens_without, tokens_with_it, where=taken[length:])
    return taken
