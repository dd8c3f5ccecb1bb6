"""Step 11: fragments that fit the token budget, in rank order; what does not fit is withheld with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.evidence import EvidenceFragment, WithheldFragment

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


OVER_BUDGET = "it does not fit the token budget"


class Fitted(msgspec.Struct, frozen=True, kw_only=True):
    """What fits and what does not."""

    fragments: tuple[EvidenceFragment, ...]
    withheld: tuple[WithheldFragment, ...]
    tokens_used: int


def fit_budget(fragments: Sequence[EvidenceFragment], *, token_budget: int | None, count: Callable[[str], int], basis: str) -> Fitted:
    """Take fragments in order, each one that still fits; the budget is never exceeded and nothing is cut.

    `basis` says whether `count` is exact or estimated, and is noted on every fragment.
    """
    counted = [
        msgspec.structs.replace(fragment, token_count=count(fragment.content), metadata={**fragment.metadata, "token_count_basis": basis})
        for fragment in fragments
    ]
    if token_budget is None:
        return Fitted(fragments=tuple(counted), withheld=(), tokens_used=sum(fragment.token_count for fragment in counted))
    taken, withheld, used = [], [], 0
    for fragment in counted:
        if used + fragment.token_count <= token_budget:
            taken.append(fragment)
            used += fragment.token_count
        else:
            withheld.append(WithheldFragment(chunk_id=fragment.chunk_id, reason=OVER_BUDGET))
    return Fitted(fragments=tuple(taken), withheld=tuple(withheld), tokens_used=used)
