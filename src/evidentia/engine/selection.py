"""Steps 9 and 10: which fragments disagree and which of them holds, and an order that does not say the same thing twice."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from evidentia.contracts.confidence_words import UNLIKELY
from evidentia.contracts.evidence import Conflict, EvidenceFragment, WithheldFragment
from evidentia.contracts.vocabulary import DeprecationStatus
from evidentia.foundation.lru import SharedLruCache
from evidentia.provenance.evidence_tags import DOUBT, closing, facts_of, opening
from evidentia.ranking.conflicts import ClaimedFragment, find_conflicts, read_claims
from evidentia.ranking.diversity import MISSING, USUAL, Spared, Standing, TokenOverlap, diversify, find_copies, has_near, overlaps, spare
from evidentia.ranking.signals import MILLION, TRUSTED, authority
from evidentia.text.confusables import seen
from evidentia.text.counting import count_tokens, truncate
from evidentia.text.sentences import split_sentences

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from collections.abc import Set as AbstractSet
    from datetime import datetime

    from numpy.typing import NDArray

    from evidentia.contracts.documents import StoredChunk
    from evidentia.contracts.ids import ChunkId
    from evidentia.engine.external_candidates import ExternalMatch
    from evidentia.engine.ordering import RankedCandidate
    from evidentia.engine.question import Question
    from evidentia.ranking.claims import Claim


POOL_BEYOND_LIMIT = 10
"""So many candidates more than the limit are read: they may disagree with those above, or bring something new."""
MAX_COPIES_READ = 200
"""So many candidates more are read at most where copies fill the pool."""
KEPT_CLAIMS = 16_384
_REMEMBERED_TEXTS = 2_048
_COUNTED_TEXTS = 4_096
_FEW = 20
"""Where more than so many fragments are wanted, nearly all pairs of texts are compared."""
OUTSIDE_STEPS = 1
"""How far what a source outside says is from its origin: it was cleaned."""
_TRUSTED = authority(TRUSTED, is_annotated=False)
_WORD = re.compile(r"\w+")
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

    @property
    def is_outdated(self) -> bool:
        """Tell whether its document is deprecated or archived."""
        return self.stored is not None and self.stored.metadata.deprecation_status is not DeprecationStatus.ACTIVE


class Pool(NamedTuple):
    """The candidates that were read, best first, and the numbers of those that are taken, in the order in which they stand."""

    members: list[Pooled]
    order: list[int]


def read_pool(question: Question, ranked: Sequence[RankedCandidate]) -> Pool:
    """Read the best candidates, of which those of a document that no longer holds say so, and order those that are taken.

    Where sources that are not trusted fill the places, as many of the others are read beside them; where copies do, more are read.
    """
    size = question.limit + POOL_BEYOND_LIMIT
    if not question.rules.spares_relevance or question.request.diversity_constraint == 1:
        members = _read(question, ranked[:size])
        return Pool(members, _diversified(question, members))
    best = [*ranked[:size], *_trusted_behind(ranked, size=size)]
    has_trusted = any(each.signals[1] >= _TRUSTED for each in ranked)
    members = _read(question, best)
    spared = _spared(question, members, has_trusted=has_trusted)
    while spared.has_copies and len(best) < len(ranked) and len(best) < size + MAX_COPIES_READ:
        best = list(ranked[: min(2 * len(best), size + MAX_COPIES_READ)])
        members = _read(question, best)
        spared = _spared(question, members, has_trusted=has_trusted)
    return Pool(members, spared.order)


def _trusted_behind(ranked: Sequence[RankedCandidate], *, size: int) -> list[RankedCandidate]:
    """Return the next candidates of trusted sources, as many as others have taken places among the first."""
    missing = sum(each.signals[1] < _TRUSTED for each in ranked[:size])
    return list(islice((each for each in ranked[size:] if each.signals[1] >= _TRUSTED), missing)) if missing else []


def _read(question: Question, best: Sequence[RankedCandidate]) -> list[Pooled]:
    stored = iter(question.snapshot.chunks([each.hit for each in best if each.external is None]))
    return [_with_status(Pooled(each, next(stored) if each.external is None else None)) for each in best]


def _with_status(pooled: Pooled) -> Pooled:
    if not pooled.is_outdated or pooled.stored is None:
        return pooled
    flags = (*pooled.ranked.flags, pooled.stored.metadata.deprecation_status.value)
    return pooled._replace(ranked=pooled.ranked._replace(flags=flags))


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


def resolve(pool: Pool, *, reader: ClaimReader) -> tuple[Pool, tuple[Conflict, ...]]:
    """Find what disagrees; the losers keep their place and are flagged."""
    conflicts = find_conflicts([_claimed(each) for each in pool.members], read=reader.read)
    lost = {chunk_id for conflict in conflicts for chunk_id in conflict.losers}
    won = {conflict.winner for conflict in conflicts} - lost
    return pool._replace(members=[_flagged(each, lost=lost, won=won) for each in pool.members]), conflicts


def choose(question: Question, pool: Pool, conflicts: Sequence[Conflict] = ()) -> list[Pooled]:
    """Take as many as the request wants, each for its score and for what it adds to those before it, and none before its successors.

    Whoever gives authority no weight wants the order of the match itself, and gets it.
    """
    chosen = [pool.members[index] for index in pool.order]
    if not question.weighs_authority or not any(each.is_outdated for each in chosen):
        return chosen
    return _behind_successors(question, chosen, pool.members, conflicts)


def _spared(question: Question, pool: Sequence[Pooled], *, has_trusted: bool) -> Spared:
    """Return who is taken where near-copies alone step back, and by how much they are alike where the request wants more.

    Sources are trusted by their authority; where there is none to prefer, all are, and where it counts nothing, all are equal.
    """
    near = _similarities(question, pool)
    by_authority = question.weighs_authority
    is_equal = not by_authority or len({each.ranked.signals[1] for each in pool}) == 1
    wants_unlike = question.request.diversity_constraint < USUAL / MILLION
    if is_equal and not wants_unlike and near is not None and not has_near(near):
        return Spared(list(range(min(question.limit, len(pool)))), has_copies=False)
    standings = [
        Standing(
            rank=each.ranked.signals[1] if by_authority else 0,
            is_trusted=not (by_authority and has_trusted) or each.ranked.signals[1] >= _TRUSTED,
            is_current=not each.is_outdated,
        )
        for each in pool
    ]
    copies = find_copies(standings, near, lambda index: _legible_words(pool[index].content))
    alike = None
    if wants_unlike:
        shares = overlaps([_tokens(each.content) for each in pool]) if near is None or near.min(initial=0) < 0 else near
        alike = shares if near is None else np.where(near < 0, shares, near)
    scores = [each.ranked.score for each in pool]
    return spare(scores, standings, copies, alike, diversity=question.request.diversity_constraint, limit=question.limit)


def _diversified(question: Question, pool: Sequence[Pooled]) -> list[int]:
    """Return who was taken before near-copies were told from what is merely alike; receipts of older engines are replayed by it."""
    request = question.request
    if request.diversity_constraint == 1 or len(pool) <= 1:
        return list(range(min(question.limit, len(pool))))
    texts = [each.content for each in pool]
    near = _similarities(question, pool)
    if question.limit > _FEW and (near is None or near.min() < 0):
        alike = overlaps([_tokens(text) for text in texts])
        near = alike if near is None else np.where(near < 0, alike, near)
    return diversify(
        [each.ranked.score for each in pool],
        [each.ranked.hit.chunk_id for each in pool],
        near,
        diversity=request.diversity_constraint,
        limit=question.limit,
        overlap=TokenOverlap(lambda index: _tokens(texts[index])),
    )


# --- successors ---
# What has taken the place of a deprecated or archived document stands before it, wherever the match alone would put the two.
#
# A document may name its successor, or the successor what it replaces. Where nobody says, whatever still holds and is about the same thing
# counts: it has the same title, contradicts it, or says much the same.

SUCCESSOR_KEYS = ("superseded_by", "replaced_by", "successor")
PREDECESSOR_KEYS = ("supersedes", "replaces")
ALIKE = 1 << 15
"""A cosine of 0.5, at 2^-16."""
ALIKE_WORDS = (1 << 16) * 3 // 10
"""Three words in ten that two texts share, where one of them has no vector."""


def _behind_successors(question: Question, chosen: Sequence[Pooled], pool: Sequence[Pooled], conflicts: Sequence[Conflict]) -> list[Pooled]:
    """Return the chosen in an order in which a successor comes directly before what it replaces, unless it is further up already."""
    near = _similarities(question, pool)
    order = list(chosen)
    for outdated in [each for each in chosen if each.is_outdated]:
        for successor in _successors(outdated, pool, near, conflicts):
            place = order.index(outdated)
            if successor not in order[:place]:
                order = [*order[:place], successor, *(each for each in order[place:] if each is not successor)]
    return order[: question.limit]


def _successors(outdated: Pooled, pool: Sequence[Pooled], near: NDArray[np.int64] | None, conflicts: Sequence[Conflict]) -> list[Pooled]:
    """Return what has taken the place of a fragment, as it says itself or as it looks, in the order of the pool."""
    active = [index for index, each in enumerate(pool) if not each.is_outdated]
    declared = [pool[index] for index in active if _names_successor(outdated, pool[index])]
    if declared:
        return declared
    own = pool.index(outdated)
    opponents = {side for each in conflicts if outdated.ranked.hit.chunk_id in (sides := {each.winner, *each.losers}) for side in sides}
    title = _title(outdated)
    return [
        pool[index]
        for index in active
        if pool[index].ranked.hit.chunk_id in opponents
        or (title and title == _title(pool[index]))
        or _is_alike(own, index, pool=pool, near=near)
    ]


def _names_successor(outdated: Pooled, other: Pooled) -> bool:
    """Tell whether one of the two documents names the other as its successor, or as what it replaces."""
    if outdated.stored is None or other.stored is None:
        return False
    before, after = outdated.stored, other.stored
    return _is_named(after, by=before, keys=SUCCESSOR_KEYS) or _is_named(before, by=after, keys=PREDECESSOR_KEYS)


def _is_named(named: StoredChunk, *, by: StoredChunk, keys: Sequence[str]) -> bool:
    names = {named.document_id, named.document_id.removeprefix(f"{named.source_id}:"), named.metadata.path}
    return any(by.metadata.extra.get(key) in names for key in keys)


def _title(pooled: Pooled) -> str:
    return "" if pooled.stored is None else pooled.stored.metadata.title.strip().casefold()


def _is_alike(first: int, second: int, *, pool: Sequence[Pooled], near: NDArray[np.int64] | None) -> bool:
    if near is not None and near[first, second] != MISSING:
        return bool(near[first, second] >= ALIKE)
    overlap = TokenOverlap(lambda index: _tokens(pool[index].content))
    return overlap(first, second) >= ALIKE_WORDS


@lru_cache(maxsize=_REMEMBERED_TEXTS)
def _tokens(text: str) -> frozenset[str]:
    """Return the different words of a text; texts that come back again and again are read once."""
    return frozenset(text.casefold().split())


@lru_cache(maxsize=_REMEMBERED_TEXTS)
def _legible_words(text: str) -> frozenset[str]:
    """Return the different words of a text as people read them, without the disguise of other letters that look the same."""
    if text.isascii():
        return frozenset(_WORD.findall(text.lower()))
    return frozenset(_WORD.findall(" ".join(word if word.isascii() else seen(word) for word in text.split()).casefold()))


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
# Step 11: as much of the order as the token budget holds, from the top and without a gap; what does not fit is withheld with the reason.
#
# What counts is what a prompt gets: the text of `to_context`, tags included. The first fragment that does not fit whole is cut at the end
# of a sentence and is the last, so a fragment never gives way to a lower one, and a larger budget never loses what a smaller one had.

OVER_BUDGET = "it does not fit the token budget"
TRUNCATED = "truncated"
LEAST_CUT_TOKENS = 32
"""A fragment is not cut to less: a stub tells nothing. Only the best one is, rather than none."""


class ContextCost(NamedTuple):
    """Counts what a fragment takes in `to_context`, under the request's tokenizer; `flags` are those that it may still get."""

    tokenizer: str
    as_of: datetime
    flags: tuple[str, ...] = ()
    tells_doubt: bool = True
    """Whether fragments that are all unlikely have a line before them; answers of older engines had none."""

    def doubts(self, fragment: EvidenceFragment) -> bool:
        """Tell whether a fragment leaves that line where it stands; one that is not unlikely takes it away."""
        return self.tells_doubt and fragment.likelihood == UNLIKELY

    def doubt(self) -> int:
        """Return the tokens of that line. It is shorter than any tag, so a fragment that takes it away never leaves less to pay."""
        return count_remembered(DOUBT, self.tokenizer)

    def before(self, fragments: Sequence[EvidenceFragment]) -> int:
        """Return the tokens of what `to_context` says before fragments."""
        return self.doubt() if fragments and all(map(self.doubts, fragments)) else 0

    def tokens(self, fragments: Sequence[EvidenceFragment]) -> int:
        """Return the tokens of fragments at their ranks."""
        return sum(self(fragment, rank=rank) for rank, fragment in enumerate(fragments, start=1))

    def __call__(self, fragment: EvidenceFragment, *, rank: int) -> int:
        """Return the tokens of a fragment at a rank, with its tag and the line end that follows."""
        return self.tag(fragment, rank=rank) + self.text(fragment.content)

    def tag(self, fragment: EvidenceFragment, *, rank: int) -> int:
        """Return the tokens of its tag."""
        facts = facts_of(fragment, rank=rank, as_of=self.as_of)
        return count_tokens(opening(msgspec.structs.replace(facts, flags=facts.flags + self.flags)), self.tokenizer)

    def text(self, content: str) -> int:
        """Return the tokens of its text, escaped and closed."""
        return count_remembered(closing(content), self.tokenizer)


class Fitted(msgspec.Struct, frozen=True, kw_only=True):
    """What fits and what does not."""

    fragments: tuple[EvidenceFragment, ...]
    withheld: tuple[WithheldFragment, ...] = ()

    @property
    def is_truncated(self) -> bool:
        """Tell whether the budget kept anything out."""
        return bool(self.withheld) or any(fragment.is_truncated for fragment in self.fragments)


def fit_budget(fragments: Iterable[EvidenceFragment], *, ids: Sequence[ChunkId], token_budget: int | None, cost: ContextCost) -> Fitted:
    """Take fragments from the top until one does not fit whole; `ids` names all of them, and those after that one are never looked at."""
    if token_budget is None:
        return Fitted(fragments=tuple(fragments))
    kept: list[EvidenceFragment] = []
    left, is_doubtful = token_budget, True
    for rank, fragment in enumerate(fragments, start=1):
        is_doubtful = is_doubtful and cost.doubts(fragment)
        room = left - cost.doubt() if is_doubtful else left
        tokens = cost(fragment, rank=rank)
        if tokens > room:
            shortened = cut_to(fragment, tokens=room, rank=rank, cost=cost)
            kept += [] if shortened is None else [shortened]
            break
        kept.append(fragment)
        left -= tokens
    withheld = tuple(WithheldFragment(chunk_id=chunk_id, reason=OVER_BUDGET) for chunk_id in ids[len(kept) :])
    return Fitted(fragments=tuple(kept), withheld=withheld)


def cut_to(fragment: EvidenceFragment, *, tokens: int, rank: int, cost: ContextCost) -> EvidenceFragment | None:
    """Return a fragment cut at the end of a sentence to what so many tokens hold, or None where that is too little to be of use."""
    marked = _marked_cut(fragment)
    room = tokens - cost.tag(marked, rank=rank)
    content = truncate(fragment.content, tokens=room, count=cost.text) if room > 0 else ""
    counted = count_remembered(content, cost.tokenizer)
    if not content or (rank > 1 and counted < LEAST_CUT_TOKENS):
        return None
    return msgspec.structs.replace(marked, content=content, cut_off=fragment.content[len(content) :], token_count=counted)


def smallest_budget(fragments: Sequence[EvidenceFragment], index: int, *, cost: ContextCost) -> int:
    """Return the smallest budget that holds something of a fragment: all before it, and of itself the least that is given."""
    before = cost.before(fragments[: index + 1]) + cost.tokens(fragments[:index])
    fragment, rank = fragments[index], index + 1
    whole, tag = cost(fragment, rank=rank), cost.tag(_marked_cut(fragment), rank=rank)
    for sentence in split_sentences(fragment.content):
        content = fragment.content[: sentence.end]
        tokens = tag + cost.text(content)
        if tokens < whole and cut_to(fragment, tokens=tokens, rank=rank, cost=cost) is not None:
            return before + tokens
    return before + whole


def _marked_cut(fragment: EvidenceFragment) -> EvidenceFragment:
    return msgspec.structs.replace(fragment, is_truncated=True, flags=(*fragment.flags, TRUNCATED))


@lru_cache(maxsize=_COUNTED_TEXTS)
def count_remembered(text: str, tokenizer: str) -> int:
    """Return the number of tokens; texts that come back again and again are counted once."""
    return count_tokens(text, tokenizer)
