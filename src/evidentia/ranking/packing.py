"""Which fragments go into a token budget: the subset worth most, exactly, in integers. Refuses to exceed the budget.

Better means, in this order: a greater sum of scores, more fragments (so what scores 0 is still shown where there is room), fewer tokens,
and the subset that comes first in rank order. The first three make one integer per fragment, its *worth*; equal worth is told apart by a
mask in which a better rank is a higher bit. There is thus exactly one best subset.

The method is the expanding core of Pisinger, "A minimal algorithm for the 0-1 knapsack problem" (1997): start from the greedy solution
by worth per token, let fragments in and out in turn from where it breaks off, keep only states no other dominates and whose upper bound
reaches the best found. Where that takes too many states, the table over all budgets (`packing_table`) is exact too, if it is not too large.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from evidentia.contracts.errors import InvalidFieldError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


MAX_STATES: Final = 50_000
"""States looked at before the core is given up, about 50 ms of work."""
MAX_TABLE_CELLS: Final = 1 << 24
"""The largest table that `pack` falls back to, about 100 ms of work."""

_FRACTION_BITS: Final = 32


class Packed(NamedTuple):
    """The chosen fragments by index, in rank order, with their sum of scores and of tokens.

    `is_exact` is false when the work ran out: what is chosen fits, and a better subset may exist.
    """

    chosen: tuple[int, ...]
    value: int
    tokens: int
    is_exact: bool


class _Item(NamedTuple):
    tokens: int
    worth: int
    bit: int
    density: int
    """Worth per token at 2^-32, rounded down; the true one lies below `density + 1`."""


class _State(NamedTuple):
    """A subset: tokens first, then worth and mask negated, so that plain sorting puts the dominating state first."""

    tokens: int
    lack: int
    rank: int


def pack(scores: Sequence[int], tokens: Sequence[int], budget: int, *, max_states: int = MAX_STATES) -> Packed:
    """Return the best subset within the budget; `scores` and `tokens` are in rank order and not negative.

    Deterministic: the work bound counts states, never time.
    """
    _check_fragments(scores, tokens)
    if sum(tokens) <= budget:
        return _describe(range(len(scores)), scores, tokens, is_exact=True)
    items = _order_items(scores, tokens, budget)
    mask, is_exact = _Core(items, budget, max_states).solve()
    if not is_exact and len(scores) * budget <= MAX_TABLE_CELLS:
        table = PackingTable(_count_in(scores), tokens, max_budget=budget, rows=len(scores))
        return _describe(table.chosen(budget), scores, tokens, is_exact=True)
    last = len(scores) - 1
    chosen = [index for index, length in enumerate(tokens) if mask >> (last - index) & 1 or (length == 0 <= budget)]
    return _describe(chosen, scores, tokens, is_exact=is_exact)


def smallest_budget(scores: Sequence[int], tokens: Sequence[int], index: int, *, least: int) -> int | None:
    """Return the smallest budget from `least` on at which the fragment is chosen, or None when finding it would take too much work.

    A fragment chosen at one budget may be left out at a larger one, where a better pair fits; so every budget is looked at, by a table that
    doubles until the fragment appears. The cost is at most about fragments times that budget, bounded by `packing_table.MAX_CELLS`.
    """
    _check_fragments(scores, tokens)
    if not 0 <= index < len(scores):
        raise InvalidFieldError("index", f"'{index}' is not the place of one of {len(scores)} fragments")
    total = sum(tokens)
    first = max(least, tokens[index])
    if first >= total:
        return first
    reach = min(total, 2 * first)
    while len(scores) * reach <= MAX_CELLS:
        found = find_first_budget(_count_in(scores), tokens, index, least=first, max_budget=reach)
        if found is not None:
            return found
        reach = min(total, 2 * reach)
    return None


def _check_fragments(scores: Sequence[int], tokens: Sequence[int]) -> None:
    if len(scores) != len(tokens):
        raise InvalidFieldError("tokens", f"{len(tokens)} counts for {len(scores)} scores; give one per fragment")
    for field, numbers in (("scores", scores), ("tokens", tokens)):
        if numbers and min(numbers) < 0:
            raise InvalidFieldError(field, f"'{min(numbers)}' is negative; give 0 or more")


def _describe(chosen: Sequence[int], scores: Sequence[int], tokens: Sequence[int], *, is_exact: bool) -> Packed:
    return Packed(
        chosen=tuple(chosen),
        value=sum(scores[index] for index in chosen),
        tokens=sum(tokens[index] for index in chosen),
        is_exact=is_exact,
    )


def _count_in(scores: Sequence[int]) -> list[int]:
    """Return scores in which the number of chosen fragments breaks ties between sums."""
    return [score * (len(scores) + 1) + 1 for score in scores]


def _order_items(scores: Sequence[int], tokens: Sequence[int], budget: int) -> list[_Item]:
    """Return the fragments that can matter, most worth per token first: not those without tokens, nor those larger than the budget."""
    per_token = sum(tokens) + 1
    items = []
    for index, (score, length) in enumerate(zip(_count_in(scores), tokens, strict=True)):
        if 0 < length <= budget:
            worth = score * per_token - length
            items.append(_Item(length, worth, 1 << (len(scores) - 1 - index), (worth << _FRACTION_BITS) // length))
    items.sort(key=lambda item: (-item.density, -item.bit))
    return items


class _Core:
    """One search; `solve` may be called once."""

    def __init__(self, items: list[_Item], budget: int, max_states: int) -> None:
        self._items = items
        self._budget = budget
        self._states_left = max_states
        self._best = _State(0, 0, 0)

    def solve(self) -> tuple[int, bool]:
        """Return the mask of the best subset found and whether it is the best there is."""
        broken = self._fill_greedily()
        breaking = self._first_left_out
        states = [broken]
        low, high = breaking - 1, breaking
        ceiling = -broken.lack + self._gain(self._budget - broken.tokens, high)
        while states and (low >= 0 or high < len(self._items)):
            if high < len(self._items):
                states = self._let(self._items[high], states, ceiling=ceiling, sign=1)
                high += 1
            if low >= 0:
                states = self._let(self._items[low], states, ceiling=ceiling, sign=-1)
                low -= 1
            if self._states_left < 0:
                return -self._best.rank, False
            states = self._prune(states, low=low, high=high)
        return -self._best.rank, True

    def _fill_greedily(self) -> _State:
        """Return the solution up to the first fragment that does not fit; what is behind it and fits makes the first best."""
        state, broken, self._first_left_out = _State(0, 0, 0), None, len(self._items)
        for place, item in enumerate(self._items):
            if state.tokens + item.tokens <= self._budget:
                state = _State(state.tokens + item.tokens, state.lack - item.worth, state.rank - item.bit)
            elif broken is None:
                broken, self._first_left_out = state, place
        self._best = state
        return broken or state

    def _let(self, item: _Item, states: list[_State], *, ceiling: int, sign: int) -> list[_State]:
        """Return the states that no other dominates, with the fragment let in (sign 1) or out (-1), unless that can no longer pay."""
        if not self._can_pay(item, ceiling):
            return states
        tokens, worth, bit = sign * item.tokens, sign * item.worth, sign * item.bit
        self._states_left -= 2 * len(states)
        moved = [_State(state.tokens + tokens, state.lack - worth, state.rank - bit) for state in states]
        kept: list[_State] = []
        least_lack, least_rank = 1, 1
        # Two ascending runs: the sort merges them in linear time.
        for state in sorted(states + moved):
            if state.lack < least_lack or (state.lack == least_lack and state.rank < least_rank):
                kept.append(state)
                least_lack, least_rank = state.lack, state.rank
        return kept

    def _can_pay(self, item: _Item, ceiling: int) -> bool:
        """Say whether a subset that treats the fragment unlike the greedy one may reach the best: its loss against the break's density."""
        if self._first_left_out == len(self._items):
            return True
        density = self._items[self._first_left_out].density
        loss = abs((item.worth << _FRACTION_BITS) - item.tokens * density) >> _FRACTION_BITS
        return ceiling - loss + item.tokens + 1 >= -self._best.lack

    def _prune(self, states: list[_State], *, low: int, high: int) -> list[_State]:
        kept = []
        for state in states:
            room = self._budget - state.tokens
            if room >= 0:
                if (state.lack, state.rank) < (self._best.lack, self._best.rank):
                    self._best = state
                reachable = -state.lack + self._gain(room, high)
            elif low >= 0:
                reachable = -state.lack - (-room * self._items[low].density >> _FRACTION_BITS)
            else:
                continue
            if reachable >= -self._best.lack:
                kept.append(state)
        return kept

    def _gain(self, room: int, high: int) -> int:
        """Return at least as much as the fragments from `high` on can add in the room."""
        if high == len(self._items):
            return 0
        return room * (self._items[high].density + 1) >> _FRACTION_BITS


# --- packing table ---
# The best subset for every budget at once, as a table over budgets. Costs fragments times budget, whatever the scores are.
#
# Row by row from the last fragment in rank order to the first, so that among equally good subsets the one first in rank order is taken.

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
