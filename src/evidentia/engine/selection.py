"""Steps 9 and 10: which fragments disagree and which of them holds, and an order that does not say the same thing twice."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from evidentia.contracts.evidence import Conflict, EvidenceFragment, WithheldFragment
from evidentia.foundation.lru import SharedLruCache
from evidentia.ranking.conflicts import ClaimedFragment, find_conflicts, read_claims
from evidentia.ranking.diversity import MISSING, TokenOverlap, diversify, overlaps
from evidentia.ranking.packing import pack
from evidentia.text.counting import truncate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from collections.abc import Set as AbstractSet

    from numpy.typing import NDArray

    from evidentia.contracts.documents import StoredChunk
    from evidentia.contracts.ids import ChunkId
    from evidentia.engine.external_candidates import ExternalMatch
    from evidentia.engine.ordering import RankedCandidate
    from evidentia.engine.question import Question
    from evidentia.ranking.claims import Claim


POOL_BEYOND_LIMIT = 10
"""So many candidates more than the limit are read: they may disagree with those above, or bring something new."""
KEPT_CLAIMS = 16_384
_REMEMBERED_TEXTS = 2_048
_FEW = 20
"""Where more than so many fragments are wanted, nearly all pairs of texts are compared."""
OUTSIDE_STEPS = 1
"""How far what a source outside says is from its origin: it was cleaned."""
CONFLICT_LOST = "conflict_lost"
CONFLICT_WON = "conflict_won"


class Pooled(NamedTuple):
    """A candidate with its text: read from the base, or brought from outside, which `ranked` then holds."""

    ranked: RankedCandidate
    stored: StoredChunk | None

    @property
    def content(self) -> str:
        """Return its text."""
        if self.stored is not None:
            return self.stored.content
        return external_of(self.ranked).candidate.content


def read_pool(question: Question, ranked: Sequence[RankedCandidate]) -> list[Pooled]:
    """Read the best candidates."""
    best = ranked[: question.request.limit + POOL_BEYOND_LIMIT]
    stored = iter(question.snapshot.chunks([each.hit for each in best if each.external is None]))
    return [Pooled(each, next(stored) if each.external is None else None) for each in best]


def external_of(ranked: RankedCandidate) -> ExternalMatch:
    """Return the fragment from outside that a candidate without a place in the base is."""
    if ranked.external is None:
        raise AssertionError
    return ranked.external


class ClaimReader:
    """Reads what fragments claim, and remembers it for a while: the same fragments are answered again and again. Thread safe."""

    def __init__(self) -> None:
        self._kept: SharedLruCache[tuple[ChunkId, str], tuple[Claim, ...]] = SharedLruCache(KEPT_CLAIMS)

    def read(self, fragment: ClaimedFragment) -> tuple[Claim, ...]:
        """Return the claims of a fragment."""
        key = (fragment.chunk_id, fragment.title)
        claims = self._kept.get(key)
        if claims is None:
            claims = tuple(read_claims(fragment))
            self._kept.put(key, claims)
        return claims


def resolve(pool: Sequence[Pooled], *, reader: ClaimReader) -> tuple[list[Pooled], tuple[Conflict, ...]]:
    """Find what disagrees; the losers keep their place and are flagged."""
    conflicts = find_conflicts([_claimed(each) for each in pool], read=reader.read)
    lost = {chunk_id for conflict in conflicts for chunk_id in conflict.losers}
    won = {conflict.winner for conflict in conflicts} - lost
    return [_flagged(each, lost=lost, won=won) for each in pool], conflicts


def choose(question: Question, pool: Sequence[Pooled]) -> list[Pooled]:
    """Take as many as the request wants, each for its score and for what it adds to those before it."""
    request = question.request
    if request.diversity_constraint == 1 or len(pool) <= 1:
        return list(pool[: request.limit])
    texts = [each.content for each in pool]
    near = _similarities(question, pool)
    if request.limit > _FEW and (near is None or near.min() < 0):
        alike = overlaps([_tokens(text) for text in texts])
        near = alike if near is None else np.where(near < 0, alike, near)
    order = diversify(
        [each.ranked.score for each in pool],
        [each.ranked.hit.chunk_id for each in pool],
        near,
        diversity=request.diversity_constraint,
        limit=request.limit,
        overlap=TokenOverlap(lambda index: _tokens(texts[index])),
    )
    return [pool[index] for index in order]


@lru_cache(maxsize=_REMEMBERED_TEXTS)
def _tokens(text: str) -> frozenset[str]:
    """Return the different words of a text; texts that come back again and again are read once."""
    return frozenset(text.casefold().split())


def _similarities(question: Question, pool: Sequence[Pooled]) -> NDArray[np.int64] | None:
    """Return how near each pair is by its vectors; what comes from outside has none."""
    if not question.snapshot.vectors:
        return None
    own = [index for index, each in enumerate(pool) if each.stored is not None]
    near = question.snapshot.similarities([pool[index].ranked.hit for index in own])
    if len(own) == len(pool):
        return near
    whole = np.full((len(pool), len(pool)), MISSING, dtype=np.int64)
    whole[np.ix_(own, own)] = near
    return whole


def _claimed(pooled: Pooled) -> ClaimedFragment:
    if pooled.stored is None:
        candidate = external_of(pooled.ranked).candidate
        return ClaimedFragment(
            chunk_id=candidate.chunk_id,
            document_id=candidate.document_id,
            text=candidate.content,
            title=candidate.title,
            authority_tier=candidate.authority_tier,
            updated_at=candidate.updated_at,
            chain_length=OUTSIDE_STEPS,
        )
    chunk = pooled.stored
    return ClaimedFragment(
        chunk_id=chunk.chunk_id,
        document_id=chunk.document_id,
        text=chunk.content,
        title=chunk.metadata.title,
        authority_tier=chunk.metadata.authority_tier,
        updated_at=chunk.metadata.updated_at,
        chain_length=len(chunk.custody.transformations),
    )


def _flagged(pooled: Pooled, *, lost: AbstractSet[ChunkId], won: AbstractSet[ChunkId]) -> Pooled:
    chunk_id = pooled.ranked.hit.chunk_id
    if chunk_id in lost:
        return pooled._replace(ranked=pooled.ranked._replace(flags=(*pooled.ranked.flags, CONFLICT_LOST)))
    if chunk_id in won:
        return pooled._replace(ranked=pooled.ranked._replace(flags=(*pooled.ranked.flags, CONFLICT_WON)))
    return pooled


# --- budget ---
# Step 11: the fragments worth most that fit the token budget, in rank order; what does not fit is withheld with the reason.
#
# When the best choice leaves room, the first of what was left out whose first sentence fits is cut at the end of a sentence to fill it,
# and says so.

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
