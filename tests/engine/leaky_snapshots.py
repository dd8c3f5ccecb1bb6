"""Snapshots that break the law on purpose, each in one way: what a hidden document holds shows through."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.access import local_owner
from evidentia.contracts.ports import SupportsLayouts
from evidentia.policy.access import access_scope

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from evidentia.contracts.documents import StoredChunk
    from evidentia.contracts.ids import ChunkId, CorpusVersion, DocumentId, EvidenceState, Sha256, SourceId
    from evidentia.contracts.layout import DocumentLayout
    from evidentia.contracts.ports import EvidenceIndex, Lexicon, SearchableSnapshot
    from evidentia.contracts.predicates import Predicate
    from evidentia.contracts.provenance import InclusionProof, IngestEvent
    from evidentia.contracts.search import (
        AccessScope,
        ChunkSignals,
        ChunkStanding,
        Definition,
        DenseHits,
        DenseQuery,
        LegScores,
        LexicalHits,
        LexicalQuery,
        SearchHit,
        SnapshotVersion,
    )
    from evidentia.contracts.settings import SearchSettings
    from evidentia.contracts.sources import SourceDescriptor
    from evidentia.contracts.vectors import VectorIdentity
    from evidentia.contracts.vocabulary import AuthorityTier

EVERYTHING = 10_000


class Leaky:
    """A snapshot that does what the real one does; each subclass lets one thing through."""

    def __init__(self, inner: SearchableSnapshot) -> None:
        self._inner = inner

    @property
    def version(self) -> SnapshotVersion:
        return self._inner.version

    @property
    def vectors(self) -> VectorIdentity | None:
        return self._inner.vectors

    def search(
        self,
        query: LexicalQuery,
        *,
        scope: AccessScope,
        narrowing: Predicate | None,
        facets: Sequence[str],
        limit: int,
    ) -> LexicalHits:
        return self._inner.search(query, scope=scope, narrowing=narrowing, facets=facets, limit=limit)

    def count_union(
        self, found: LexicalHits, others: Sequence[SearchHit], *, query: LexicalQuery, scope: AccessScope, narrowing: Predicate | None
    ) -> LexicalHits:
        return self._inner.count_union(found, others, query=query, scope=scope, narrowing=narrowing)

    def chunks(self, hits: Sequence[SearchHit]) -> Sequence[StoredChunk]:
        return self._inner.chunks(hits)

    def layout(self, document_id: DocumentId) -> DocumentLayout | None:
        assert isinstance(self._inner, SupportsLayouts)
        return self._inner.layout(document_id)

    def attachment(self, content_hash: Sha256) -> bytes | None:
        assert isinstance(self._inner, SupportsLayouts)
        return self._inner.attachment(content_hash)

    def proofs(self, chunks: Sequence[StoredChunk]) -> Sequence[tuple[IngestEvent, InclusionProof]]:
        return self._inner.proofs(chunks)

    def standing(
        self, query: LexicalQuery, *, scope: AccessScope, narrowing: Predicate | None, chunk_id: ChunkId, ranked: bool = True
    ) -> ChunkStanding | None:
        return self._inner.standing(query, scope=scope, narrowing=narrowing, chunk_id=chunk_id, ranked=ranked)

    def sources(self, scope: AccessScope) -> Mapping[SourceId, AuthorityTier]:
        return self._inner.sources(scope)

    def descriptors(self) -> Mapping[SourceId, SourceDescriptor]:
        return self._inner.descriptors()

    def nearest(
        self,
        query: DenseQuery,
        *,
        scope: AccessScope,
        narrowing: Predicate | None,
        phrases: Sequence[Sequence[str]],
        preferred: Sequence[Sequence[str]] = (),
        limit: int,
    ) -> DenseHits:
        return self._inner.nearest(query, scope=scope, narrowing=narrowing, phrases=phrases, preferred=preferred, limit=limit)

    def similarities(self, hits: Sequence[SearchHit]) -> NDArray[np.int64]:
        return self._inner.similarities(hits)

    def scores(
        self, hits: Sequence[SearchHit], *, query: LexicalQuery, dense: DenseQuery | None, scope: AccessScope
    ) -> Sequence[LegScores]:
        return self._inner.scores(hits, query=query, dense=dense, scope=scope)

    def lengths(self, hits: Sequence[SearchHit]) -> Sequence[int]:
        return self._inner.lengths(hits)

    def signals(self, hits: Sequence[SearchHit]) -> Sequence[ChunkSignals]:
        return self._inner.signals(hits)

    def lexicon(self, scope: AccessScope) -> Lexicon:
        return self._inner.lexicon(scope)

    def search_all(self, query: LexicalQuery, *, scope: AccessScope, narrowing: Predicate | None, facets: Sequence[str]) -> LexicalHits:
        """Search what the owner of the caller's tenant sees."""
        return self._inner.search(query, scope=owner_of(scope), narrowing=narrowing, facets=facets, limit=EVERYTHING)

    def nearest_of_all(self, query: DenseQuery, *, scope: AccessScope) -> DenseHits:
        """Return the vectors that the owner of the caller's tenant sees, nearest first."""
        return self._inner.nearest(query, scope=owner_of(scope), narrowing=None, phrases=(), limit=EVERYTHING)


class GlobalStatistics(Leaky):
    """Filters after scoring, so that scores come from what everybody holds."""

    def scores(
        self, hits: Sequence[SearchHit], *, query: LexicalQuery, dense: DenseQuery | None, scope: AccessScope
    ) -> Sequence[LegScores]:
        return super().scores(hits, query=query, dense=dense, scope=owner_of(scope))


class GlobalFacets(Leaky):
    """Counts facets over everything that matches."""

    def search(
        self,
        query: LexicalQuery,
        *,
        scope: AccessScope,
        narrowing: Predicate | None,
        facets: Sequence[str],
        limit: int,
    ) -> LexicalHits:
        found = super().search(query, scope=scope, narrowing=narrowing, facets=facets, limit=limit)
        return msgspec.structs.replace(found, facets=self.search_all(query, scope=scope, narrowing=narrowing, facets=facets).facets)


class GlobalCount(Leaky):
    """Counts candidates over everything that matches."""

    def search(
        self,
        query: LexicalQuery,
        *,
        scope: AccessScope,
        narrowing: Predicate | None,
        facets: Sequence[str],
        limit: int,
    ) -> LexicalHits:
        found = super().search(query, scope=scope, narrowing=narrowing, facets=facets, limit=limit)
        return msgspec.structs.replace(found, matching=self.search_all(query, scope=scope, narrowing=narrowing, facets=()).matching)


class GlobalSources(Leaky):
    """Names sources of which the caller sees nothing."""

    def sources(self, scope: AccessScope) -> Mapping[SourceId, AuthorityTier]:
        return self._inner.sources(owner_of(scope))


class GlobalExplanations(Leaky):
    """Explains scores with what everybody holds."""

    def standing(
        self, query: LexicalQuery, *, scope: AccessScope, narrowing: Predicate | None, chunk_id: ChunkId, ranked: bool = True
    ) -> ChunkStanding | None:
        if super().standing(query, scope=scope, narrowing=narrowing, chunk_id=chunk_id, ranked=ranked) is None:
            return None
        return super().standing(query, scope=owner_of(scope), narrowing=narrowing, chunk_id=chunk_id, ranked=ranked)


class OneTooMany(Leaky):
    """Shows a document that the caller may not see, now and then."""

    def search(
        self,
        query: LexicalQuery,
        *,
        scope: AccessScope,
        narrowing: Predicate | None,
        facets: Sequence[str],
        limit: int,
    ) -> LexicalHits:
        chosen = owner_of(scope) if sum(query.terms.values()) == 4 else scope
        return super().search(query, scope=chosen, narrowing=narrowing, facets=facets, limit=limit)


class ShownToAll(Leaky):
    """Hides nothing of what it is asked about by name, so that `why` speaks of denied chunks."""


class HiddenNearest(Leaky):
    """Shows a passage that the caller may not see because its vector is the nearest of all."""

    def nearest(
        self,
        query: DenseQuery,
        *,
        scope: AccessScope,
        narrowing: Predicate | None,
        phrases: Sequence[Sequence[str]],
        preferred: Sequence[Sequence[str]] = (),
        limit: int,
    ) -> DenseHits:
        return super().nearest(query, scope=owner_of(scope), narrowing=narrowing, phrases=phrases, preferred=preferred, limit=limit)


class CrowdedOut(Leaky):
    """Takes the nearest of all and then drops what is hidden, so that hidden vectors take up places."""

    def nearest(
        self,
        query: DenseQuery,
        *,
        scope: AccessScope,
        narrowing: Predicate | None,
        phrases: Sequence[Sequence[str]],
        preferred: Sequence[Sequence[str]] = (),
        limit: int,
    ) -> DenseHits:
        found = super().nearest(query, scope=scope, narrowing=narrowing, phrases=phrases, preferred=preferred, limit=limit)
        best = {hit.chunk_id for hit in self.nearest_of_all(query, scope=scope).hits[:limit]}
        return msgspec.structs.replace(found, hits=tuple(hit for hit in found.hits if hit.chunk_id in best))


class GlobalNearness(Leaky):
    """Measures how near a passage is against the nearest of all, hidden or not."""

    def scores(
        self, hits: Sequence[SearchHit], *, query: LexicalQuery, dense: DenseQuery | None, scope: AccessScope
    ) -> Sequence[LegScores]:
        legs = super().scores(hits, query=query, dense=dense, scope=scope)
        if dense is None:
            return legs
        highest = max((hit.score for hit in self.nearest_of_all(dense, scope=scope).hits), default=0)
        return [leg if leg.dense is None else msgspec.structs.replace(leg, dense=leg.dense - highest) for leg in legs]


class GlobalShare(Leaky):
    """Counts the vectors of everybody."""

    def nearest(
        self,
        query: DenseQuery,
        *,
        scope: AccessScope,
        narrowing: Predicate | None,
        phrases: Sequence[Sequence[str]],
        preferred: Sequence[Sequence[str]] = (),
        limit: int,
    ) -> DenseHits:
        found = super().nearest(query, scope=scope, narrowing=narrowing, phrases=phrases, preferred=preferred, limit=limit)
        return msgspec.structs.replace(found, embedded_by_source=self.nearest_of_all(query, scope=scope).embedded_by_source)


class TwoLexicons:
    """Implements `Lexicon`: words from one, explanations from another."""

    def __init__(self, words: Lexicon, glossary: Lexicon) -> None:
        self._words = words
        self._glossary = glossary

    @property
    def chunks(self) -> int:
        return self._words.chunks

    def chunks_with(self, term: str) -> int:
        return self._words.chunks_with(term)

    def similar(self, term: str, *, edits: int) -> Sequence[tuple[str, int]]:
        return self._words.similar(term, edits=edits)

    def long_forms(self, short: str) -> Sequence[Definition]:
        return self._glossary.long_forms(short)

    def short_forms(self, long: str) -> Sequence[Definition]:
        return self._glossary.short_forms(long)


class HiddenVocabulary(Leaky):
    """Corrects spelling by words that occur only in what is hidden."""

    def lexicon(self, scope: AccessScope) -> Lexicon:
        return TwoLexicons(super().lexicon(owner_of(scope)), super().lexicon(scope))


class HiddenGlossary(Leaky):
    """Reads abbreviations as hidden texts explain them."""

    def lexicon(self, scope: AccessScope) -> Lexicon:
        return TwoLexicons(super().lexicon(scope), super().lexicon(owner_of(scope)))


class LeakyIndex:
    """An index whose snapshots leak."""

    def __init__(self, inner: EvidenceIndex, leak: type[Leaky]) -> None:
        self._inner = inner
        self._leak = leak

    def at(
        self,
        *,
        search: SearchSettings,
        corpus_version: CorpusVersion | None = None,
        evidence_state: EvidenceState | None = None,
        access_state: EvidenceState | None = None,
        is_public: bool = False,
    ) -> SearchableSnapshot:
        inner = self._inner.at(
            search=search, corpus_version=corpus_version, evidence_state=evidence_state, access_state=access_state, is_public=is_public
        )
        return self._leak(inner)

    def visibility(self, document_id: DocumentId, *, scope: AccessScope, evidence_state: EvidenceState | None = None) -> bool | None:
        asked = owner_of(scope) if self._leak is ShownToAll else scope
        return self._inner.visibility(document_id, scope=asked, evidence_state=evidence_state)


def owner_of(scope: AccessScope) -> AccessScope:
    """Return the scope of the owner of the caller's tenant."""
    return access_scope(msgspec.structs.replace(local_owner(), tenant=scope.principal.tenant), acl_scope=None, rules=())
