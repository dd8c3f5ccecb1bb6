"""Step 6: both legs propose, and both score whatever either of them proposed.

Candidates are the union of the best by words and the nearest by vectors, over every part of the question. Each is scored
exactly by both legs, so that fusing them compares like with like. Where sources that are not trusted crowd the others out, the best of
these are added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from evidentia.contracts.predicates import And, Compare
from evidentia.contracts.search import DenseHits, LegScores, LexicalHits, LexicalQuery, SearchHit
from evidentia.foundation.offload import check_abandoned
from evidentia.query.understanding import WHOLE_WEIGHT
from evidentia.ranking.signals import TRUSTED, authority

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from evidentia.contracts.ids import ChunkId
    from evidentia.engine.question import Part, Question

_NO_WORDS = LexicalQuery(terms={})


class PartScores(NamedTuple):
    """What one part of the question says of every candidate, in their order, and each leg's own ranking."""

    weight: int
    legs: Sequence[LegScores]
    rankings: tuple[tuple[ChunkId, ...], ...]


class CandidateSet(NamedTuple):
    """The candidates, ordered by chunk id; what each part says of them; and what the whole match looks like."""

    hits: tuple[SearchHit, ...]
    parts: tuple[PartScores, ...]
    counts: LexicalHits
    dense: DenseHits | None


NO_CANDIDATES = CandidateSet(
    hits=(),
    parts=(PartScores(weight=WHOLE_WEIGHT, legs=(), rankings=()),),
    counts=LexicalHits(hits=(), matching=0, matching_by_source={}),
    dense=None,
)
"""What there is when the base itself was not searched to the end."""


def search_vectors(question: Question, *, depth: int) -> list[DenseHits | None]:
    """Return what is nearest to each part; None where vectors take no part."""
    return [_nearest(question, part, depth=depth) for part in _while_wanted(question.parts)]


def search_legs(question: Question, near: Callable[[], Sequence[DenseHits | None]], *, depth: int) -> CandidateSet:
    """Search every part by its words as well, if they take part, then score the union.

    The count of matches and the facets of the question as a whole take in what the others found. What is nearest is waited for when
    the words are matched: a helper may be scanning vectors meanwhile.
    """
    snapshot, scope, narrowing = question.snapshot, question.scope, question.narrowing
    by_words = [_words(question, part, depth=depth) for part in _while_wanted(question.parts[1:])]
    whole = question.words if question.uses_words else _NO_WORDS
    counts = snapshot.search(whole, scope=scope, narrowing=narrowing, facets=question.request.facets, limit=depth)
    nearest = near()
    others = [hit for leg in (*nearest, *by_words) if leg is not None for hit in leg.hits]
    others += _crowded_out(question, (*others, *counts.hits), depth=depth)
    if others:
        counts = snapshot.count_union(counts, others, query=whole, scope=scope, narrowing=narrowing)
    found = {hit.chunk_id: hit for hit in (*others, *counts.hits)}
    hits = tuple([found[chunk_id] for chunk_id in sorted(found)])
    rankings = [_rankings(words, near) for words, near in zip((counts, *by_words), nearest, strict=True)]
    scored = [_scores(question, part, hits) for part in _while_wanted(question.parts)]
    parts = tuple(
        PartScores(weight=part.weight, legs=legs, rankings=ranking)
        for part, legs, ranking in zip(question.parts, scored, rankings, strict=True)
    )
    return CandidateSet(hits=hits, parts=parts, counts=counts, dense=nearest[0])


def _crowded_out(question: Question, hits: Sequence[SearchHit], *, depth: int) -> list[SearchHit]:
    """Return what is found among trusted sources alone, where others leave them fewer places than there are fragments to return.

    However many documents somebody puts in, the answer is chosen from the best of both. What is added has no rank in a leg.
    """
    wants_authority = question.rules.spares_relevance and question.weighs_authority and question.request.diversity_constraint < 1
    if not wants_authority or len(hits) < depth:
        return []
    worth = [authority(tier, is_annotated=False) for tier in question.snapshot.sources(question.scope).values()]
    least = authority(TRUSTED, is_annotated=False)
    if min(worth) >= least or max(worth) < least:
        return []
    unique = list({hit.chunk_id: hit for hit in hits}.values())
    trusted = sum(authority(each.authority_tier, is_annotated=False) >= least for each in question.snapshot.signals(unique))
    if trusted >= question.limit:
        return []
    only = Compare("authority_tier", ">=", TRUSTED.value)
    narrowing = only if question.narrowing is None else And((question.narrowing, only))
    narrowed = question._replace(plan=msgspec.structs.replace(question.plan, narrowing=narrowing))
    legs = [
        leg
        for part in _while_wanted(question.parts)
        for leg in (_words(narrowed, part, depth=depth), _nearest(narrowed, part, depth=depth))
    ]
    return [hit for leg in legs if leg is not None for hit in leg.hits]


def _while_wanted(parts: Sequence[Part]) -> Iterator[Part]:
    """Yield the parts as long as somebody waits for what is found."""
    for part in parts:
        check_abandoned()
        yield part


def _nearest(question: Question, part: Part, *, depth: int) -> DenseHits | None:
    if part.vector is None:
        return None
    return question.snapshot.nearest(
        part.vector,
        scope=question.scope,
        narrowing=question.narrowing,
        phrases=question.words.phrases,
        preferred=question.words.preferred,
        limit=depth,
    )


def _words(question: Question, part: Part, *, depth: int) -> LexicalHits | None:
    if not question.uses_words:
        return None
    return question.snapshot.search(part.words, scope=question.scope, narrowing=question.narrowing, facets=(), limit=depth)


def _rankings(words: LexicalHits | None, near: DenseHits | None) -> tuple[tuple[ChunkId, ...], ...]:
    return tuple(tuple(hit.chunk_id for hit in leg.hits) for leg in (words, near) if leg is not None)


def _scores(question: Question, part: Part, hits: Sequence[SearchHit]) -> Sequence[LegScores]:
    """Return what each leg says of each candidate; where words search alone and as a whole, they have said it already."""
    if not question.uses_vectors and len(question.parts) == 1:
        return [LegScores(lexical=hit.score, dense=None) for hit in hits]
    return question.snapshot.scores(hits, query=part.words, dense=part.vector, scope=question.scope)
