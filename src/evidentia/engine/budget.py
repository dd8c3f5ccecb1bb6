"""Step 11: fragments that fit the token budget, in rank order; what does not fit is withheld with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.evidence import EvidenceFragment, WithheldFragment

if TYPE_CHECKING:
    from collections.abc import Sequence


OVER_BUDGET = "it does not fit the token budget"


class Fitted(msgspec.Struct, frozen=True, kw_only=True):
    """What fits and what does not."""

    fragments: tuple[EvidenceFragment, ...]
    withheld: tuple[WithheldFragment, ...]
    tokens_used: int


def fit_budget(fragments: Sequence[EvidenceFragment], *, token_budget: int | None) -> Fitted:
    """Take fragments in order, each one that still fits; the budget is never exceeded and nothing is cut."""
    if token_budget is None:
        return Fitted(fragments=tuple(fragments), withheld=(), tokens_used=sum(fragment.token_count for fragment in fragments))
    taken, withheld, used = [], [], 0
    for fragment in fragments:
        if used + fragment.token_count <= token_budget:
            taken.append(fragment)
            used += fragment.token_count
        else:
            withheld.append(WithheldFragment(chunk_id=fragment.chunk_id, reason=OVER_BUDGET))
    return Fitted(fragments=tuple(taken), withheld=tuple(withheld), tokens_used=used)


def smallest_budget(counts: Sequence[int], *, least: int) -> int:
    """Return the smallest budget from `least` on under which the last of these counts is taken, in this order.

    More budget can let an earlier fragment in and so keep the last one out; nothing changes between the budgets at
    which one more fragment fits, so only those are looked at.
    """
    *earlier, last = counts
    budget = least
    while True:
        used, next_change = 0, None
        for count in earlier:
            if used + count <= budget:
                used += count
            else:
                next_change = min(used + count, next_change or used + count)
        if used + last <= budget:
            return budget
        budget = min(used + last, next_change or used + last)
