"""What searches a base's own evidence at one version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from evidentia.contracts.documents import StoredChunk
    from evidentia.contracts.ids import ChunkId, CorpusVersion, DocumentId, EvidenceState, SourceId
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


class EvidenceSnapshot(Protocol):
    """One version of a base's own evidence, searched within what a scope allows."""

    @property
    def version(self) -> SnapshotVersion:
        """Return the version that this snapshot shows."""
        ...

    def search(
        self,
        query: LexicalQuery,
        *,
        scope: AccessScope,
        narrowing: Predicate | None,
        facets: Sequence[str],
        limit: int,
    ) -> LexicalHits:
        """Return the best matches, exactly, with counts over the whole match."""
        ...

    def chunks(self, hits: Sequence[SearchHit]) -> Sequence[StoredChunk]:
        """Return the chunks behind hits, in the same order."""
        ...

    def standing(
        self, query: LexicalQuery, *, scope: AccessScope, narrowing: Predicate | None, chunk_id: ChunkId, ranked: bool = True
    ) -> ChunkStanding | None:
        """Return how a chunk stands towards a query; None when the scope does not show it. The rank costs a whole search."""
        ...

    def sources(self, scope: AccessScope) -> Mapping[SourceId, AuthorityTier]:
        """Return the sources of which the scope shows at least one document, with their highest authority."""
        ...


class SupportsVectors(Protocol):
    """Searches the vectors of a snapshot."""

    @property
    def vectors(self) -> VectorIdentity | None:
        """Return the space in which this version's vectors live; None when it has none."""
        ...

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
        """Return the chunks nearest to a vector among those that hold every phrase, exactly unless it says otherwise.

        The nearest that hold a preferred phrase are returned besides, at most `limit` more.
        """
        ...

    def similarities(self, hits: Sequence[SearchHit]) -> NDArray[np.int64]:
        """Return the cosine of each pair at 2^-16, at least 0; -1 where one of the two has no vector."""
        ...


class SupportsScoring(Protocol):
    """Scores any chunk of a snapshot, whichever leg found it."""

    def scores(
        self, hits: Sequence[SearchHit], *, query: LexicalQuery, dense: DenseQuery | None, scope: AccessScope
    ) -> Sequence[LegScores]:
        """Return the exact score of each leg for each hit, in the order given."""
        ...

    def count_union(
        self, found: LexicalHits, others: Sequence[SearchHit], *, query: LexicalQuery, scope: AccessScope, narrowing: Predicate | None
    ) -> LexicalHits:
        """Return what `search` found, with counts and facets over its match and the chunks that were found otherwise."""
        ...

    def lengths(self, hits: Sequence[SearchHit]) -> Sequence[int]:
        """Return how many positions the text of each hit has."""
        ...

    def signals(self, hits: Sequence[SearchHit]) -> Sequence[ChunkSignals]:
        """Return what ranks each hit besides its match."""
        ...


class Lexicon(Protocol):
    """The words that one caller may see, and how that caller's corpus explains them."""

    @property
    def chunks(self) -> int:
        """Return how many chunks the caller may see."""
        ...

    def chunks_with(self, term: str) -> int:
        """Return in how many chunks a term occurs."""
        ...

    def similar(self, term: str, *, edits: int) -> Sequence[tuple[str, int]]:
        """Return terms with the same first letter within so many edits, with their chunks: nearest, most frequent, then by name."""
        ...

    def long_forms(self, short: str) -> Sequence[Definition]:
        """Return what the corpus says a short form stands for, the most frequent first."""
        ...

    def short_forms(self, long: str) -> Sequence[Definition]:
        """Return the short forms that the corpus gives to a long one (compared as lower-case words)."""
        ...


class SupportsLexicon(Protocol):
    """Knows the words of a snapshot."""

    def lexicon(self, scope: AccessScope) -> Lexicon:
        """Return the words that a scope shows; nothing else has any influence on it."""
        ...


class SupportsSources(Protocol):
    """Knows the sources that were registered in a snapshot's version."""

    def descriptors(self) -> Mapping[SourceId, SourceDescriptor]:
        """Return every registered source, inside the base and outside, ordered by id; who may know of it is for others to say."""
        ...


class SupportsInclusion(Protocol):
    """Proves that the log of a snapshot's version holds what was read from it."""

    def proofs(self, chunks: Sequence[StoredChunk]) -> Sequence[tuple[IngestEvent, InclusionProof]]:
        """Return, for each chunk, the event that entered it and the proof that the log holds it."""
        ...


class SearchableSnapshot(EvidenceSnapshot, SupportsVectors, SupportsScoring, SupportsLexicon, SupportsSources, SupportsInclusion, Protocol):
    """A snapshot with every power that the engine asks of a base's own evidence."""


class EvidenceIndex(Protocol):
    """Opens snapshots of a base's own evidence."""

    def at(
        self,
        *,
        search: SearchSettings,
        corpus_version: CorpusVersion | None = None,
        evidence_state: EvidenceState | None = None,
        access_state: EvidenceState | None = None,
        is_public: bool = False,
    ) -> SearchableSnapshot:
        """Return the newest version with these hashes, scored as `search` says; without hashes, the newest of all.

        What it shows is what its own access rules and those of `access_state` (the newest version by default) both allow. With
        `is_public` the hashes have to be those that everybody but the owner sees.
        """
        ...

    def visibility(self, document_id: DocumentId, *, scope: AccessScope, evidence_state: EvidenceState | None = None) -> bool | None:
        """Tell whether a scope shows a document in a version, else by the last rule it had; None when there is no such document."""
        ...
