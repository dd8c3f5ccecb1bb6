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

from evidentia.contracts.errors import InvalidFieldError
from evidentia.ranking.packing_table import MAX_CELLS, PackingTable, find_first_budget

if TYPE_CHECKING:
    from collections.abc import Sequence

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
