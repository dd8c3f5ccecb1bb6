"""Step 11: the fragments worth most that fit the token budget, in rank order; what does not fit is withheld with the reason.

When the best choice leaves room, the first of what was left out whose first sentence fits is cut at the end of a
sentence to fill it, and says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.evidence import EvidenceFragment, WithheldFragment
from evidentia.ranking.packing import pack
from evidentia.text.truncation import truncate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

OVER_BUDGET = "it does not fit the token budget"
TRUNCATED = "truncated"


class Fitted(msgspec.Struct, frozen=True, kw_only=True):
    """What fits and what does not; the choice is the best there is unless `is_exact` says otherwise."""

    fragments: tuple[EvidenceFragment, ...]
    withheld: tuple[WithheldFragment, ...]
    tokens_used: int
    is_exact: bool = True

    @property
    def is_truncated(self) -> bool:
        """Tell whether the budget kept anything out."""
        return bool(self.withheld) or any(fragment.is_truncated for fragment in self.fragments)


def fit_budget(fragments: Sequence[EvidenceFragment], *, token_budget: int | None, count: Callable[[str], int]) -> Fitted:
    """Choose within the budget, which is never exceeded; without one everything stays."""
    if token_budget is None:
        return Fitted(fragments=tuple(fragments), withheld=(), tokens_used=sum(fragment.token_count for fragment in fragments))
    packed = pack([fragment.score for fragment in fragments], [fragment.token_count for fragment in fragments], token_budget)
    kept = {index: fragments[index] for index in packed.chosen}
    used = packed.tokens
    for index, fragment in enumerate(fragments):
        shortened = None if index in kept else _shortened(fragment, tokens=token_budget - used, count=count)
        if shortened is not None:
            kept[index] = shortened
            used += shortened.token_count
            break
    withheld = tuple(
        WithheldFragment(chunk_id=fragment.chunk_id, reason=OVER_BUDGET) for index, fragment in enumerate(fragments) if index not in kept
    )
    return Fitted(fragments=tuple(kept[index] for index in sorted(kept)), withheld=withheld, tokens_used=used, is_exact=packed.is_exact)


def _shortened(fragment: EvidenceFragment, *, tokens: int, count: Callable[[str], int]) -> EvidenceFragment | None:
    """Return a fragment cut at the end of a sentence, or None when not even its first sentence fits."""
    if tokens < 1:
        return None
    content = truncate(fragment.content, tokens=tokens, count=count)
    if not content:
        return None
    return msgspec.structs.replace(
        fragment,
        content=content,
        cut_off=fragment.content[len(content) :],
        is_truncated=True,
        token_count=count(content),
        flags=(*fragment.flags, TRUNCATED),
    )
