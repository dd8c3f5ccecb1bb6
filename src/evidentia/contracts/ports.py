"""Every replaceable part, one sentence each; docs/reference/ports.md says who implements them.

A port has at most five methods. Extra powers are small `Supports...` protocols that wiring checks once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from evidentia.contracts.access import AccessRule, Principal
    from evidentia.contracts.documents import ChangeSet, CommitSummary, KnownDocument, StoredChunk, StoredDocument
    from evidentia.contracts.evidence import SubQuery
    from evidentia.contracts.extraction import ExtractedText
    from evidentia.contracts.ids import ChunkId, CorpusVersion, DocumentId, EvidenceState, ReceiptId, Sha256, SourceId
    from evidentia.contracts.predicates import Predicate
    from evidentia.contracts.provenance import BrokenLink, CommitRecord, ConsistencyProof, InclusionProof, IngestEvent
    from evidentia.contracts.receipts import Receipt
    from evidentia.contracts.reports import GcReport
    from evidentia.contracts.retrieval import Candidate
    from evidentia.contracts.search import (
        AccessScope,
        ChunkStanding,
        LexicalHit,
        LexicalHits,
        LexicalQuery,
        SnapshotVersion,
        StoredFragment,
    )
    from evidentia.contracts.settings import SearchSettings
    from evidentia.contracts.sources import SourceDescriptor
    from evidentia.contracts.vocabulary import AuthorityTier


class Clock(Protocol):
    """Tells the time, so that nothing else has to."""

    def now(self) -> datetime:
        """Return the present moment in UTC."""
        ...

    def elapsed_ns(self) -> int:
        """Return nanoseconds since some fixed moment, never going back."""
        ...


class Entropy(Protocol):
    """Gives unpredictable bytes for salts and identifiers, so that nothing else has to."""

    def take(self, count: int) -> bytes:
        """Return `count` unpredictable bytes."""
        ...


class DocumentReader(Protocol):
    """Turns the bytes of one kind of file into text."""

    def read(self, content: bytes, *, name: str) -> ExtractedText:
        """Return the text, or raise DocumentUnreadableError; never anything else, whatever the bytes."""
        ...


class TokenCounter(Protocol):
    """Counts tokens the way a named model does."""

    def count(self, text: str) -> int:
        """Return the number of tokens of `text`."""
        ...


class EvidenceWriter(Protocol):
    """Changes a base, one writer at a time, one commit at a time."""

    def known(self, document_ids: Sequence[DocumentId]) -> Mapping[DocumentId, KnownDocument]:
        """Return what is remembered of those of the documents that are live."""
        ...

    def live_documents(self, source_id: SourceId) -> Mapping[DocumentId, KnownDocument]:
        """Return every live document of one source."""
        ...

    def register(self, descriptor: SourceDescriptor) -> None:
        """Add a source or replace its descriptor; durable with the next commit."""
        ...

    def commit(self, changes: ChangeSet) -> CommitSummary:
        """Make all of the changes durable and visible at once, or none of them."""
        ...

    def close(self) -> None:
        """Give up the right to write; what was not committed is lost."""
        ...


class EvidenceReader(Protocol):
    """Reads one base at a version; readers never block the writer, nor it them."""

    def head(self) -> CommitSummary:
        """Return the newest committed version."""
        ...

    def chunk(self, chunk_id: ChunkId) -> StoredChunk | None:
        """Return a chunk whose version has not been collected, live or not."""
        ...

    def chunks_of(self, document_id: DocumentId) -> Sequence[StoredChunk]:
        """Return the live chunks of a document in order of position."""
        ...

    def documents(self) -> Iterator[tuple[DocumentId, AccessRule, int]]:
        """Yield every live document with its access rule and its number of chunks, ordered by id."""
        ...

    def close(self) -> None:
        """Give back what the reader holds."""
        ...


@runtime_checkable
class SupportsProofs(Protocol):
    """Proves what the event log holds."""

    def event(self, index: int) -> IngestEvent:
        """Return an entry of the event log."""
        ...

    def commit_record(self) -> tuple[CommitRecord, Sha256]:
        """Return the newest commit record and its hash."""
        ...

    def inclusion(self, index: int, *, size: int) -> InclusionProof:
        """Return the proof that event `index` is in the log of `size` events."""
        ...

    def consistency(self, first_size: int, *, size: int) -> ConsistencyProof:
        """Return the proof that the log of `first_size` events is a prefix of the log of `size`."""
        ...


class ProvingReader(EvidenceReader, SupportsProofs, Protocol):
    """A reader that can prove what it reads."""


class CustodyArchive(Protocol):
    """Gives verification the stored bytes, and reports what is wrong with the storage itself."""

    def commits(self) -> Iterator[tuple[CommitRecord, Sha256]]:
        """Yield every commit record with its stored hash, oldest first."""
        ...

    def log_leaves(self, start: int, stop: int) -> Iterator[bytes]:
        """Yield the leaves of the event log as stored."""
        ...

    def corpus_state(self) -> bytes:
        """Return the stored running sum behind the newest corpus_version."""
        ...

    def documents(self) -> Iterator[StoredDocument]:
        """Yield every stored version of every document with its chunks, ordered by key."""
        ...

    def storage_faults(self) -> Iterator[BrokenLink]:
        """Yield what is wrong below the level of records: pages, indexes, segment files."""
        ...


class Collector(Protocol):
    """Removes versions nobody needs any more."""

    def collect(self, *, keep_versions: int) -> GcReport:
        """Remove all but the newest versions and merge segments; the event log is never shortened."""
        ...


class EvidenceSnapshot(Protocol):
    """One version of a base's own evidence, searched within what a scope allows."""

    @property
    def version(self) -> SnapshotVersion:
        """Return the version that this snapshot shows."""
        ...

    def search(
        self, query: LexicalQuery, *, scope: AccessScope, narrowing: Predicate | None, facets: Sequence[str], limit: int
    ) -> LexicalHits:
        """Return the best matches, exactly, with counts over the whole match."""
        ...

    def fragments(self, hits: Sequence[LexicalHit]) -> Sequence[StoredFragment]:
        """Return the chunks behind hits with their proofs, in the same order."""
        ...

    def standing(
        self, query: LexicalQuery, *, scope: AccessScope, narrowing: Predicate | None, chunk_id: ChunkId, ranked: bool = True
    ) -> ChunkStanding | None:
        """Return how a chunk stands towards a query; None when the scope does not show it. The rank costs a whole search."""
        ...

    def sources(self, scope: AccessScope) -> Mapping[SourceId, AuthorityTier]:
        """Return the sources of which the scope shows at least one document, with their highest authority."""
        ...


class EvidenceIndex(Protocol):
    """Opens snapshots of a base's own evidence."""

    def at(
        self,
        *,
        search: SearchSettings,
        corpus_version: CorpusVersion | None = None,
        evidence_state: EvidenceState | None = None,
        access_state: EvidenceState | None = None,
    ) -> EvidenceSnapshot:
        """Return the newest version with these hashes, scored as `search` says; without hashes, the newest of all.

        What it shows is what its own access rules and those of `access_state` (the newest version by default) both allow.
        """
        ...

    def visibility(self, document_id: DocumentId, *, scope: AccessScope, evidence_state: EvidenceState | None = None) -> bool | None:
        """Tell whether a scope shows a document in a version, else by the last rule it had; None when there is no such document."""
        ...


class ReceiptLog(Protocol):
    """Keeps receipts, append-only, durable before they are handed out."""

    def append(self, receipt: Receipt) -> ReceiptId:
        """Store a receipt durably and return its id."""
        ...

    def read(self, receipt_id: ReceiptId) -> Receipt:
        """Return a receipt, or raise NotFoundError."""
        ...


class Retriever(Protocol):
    """Finds candidate fragments in one source."""

    async def retrieve(self, query: SubQuery, *, principal: Principal, limit: int, budget_ms: int) -> Sequence[Candidate]:
        """Return at most `limit` candidates, best first; empty is an answer, not an error."""
        ...


@runtime_checkable
class SupportsScoring(Protocol):
    """Scores any candidate for a query, not only those it found itself."""

    async def score(self, query: SubQuery, chunk_ids: Sequence[ChunkId], *, principal: Principal) -> Sequence[int]:
        """Return one fixed-point score per chunk, in the order given."""
        ...


@runtime_checkable
class SupportsFacets(Protocol):
    """Counts what a query matches, by metadata field."""

    async def facets(self, query: SubQuery, fields: Sequence[str], *, principal: Principal) -> Mapping[str, Mapping[str, int]]:
        """Return counts per value for each field, over what the principal may see."""
        ...


@runtime_checkable
class SupportsVectors(Protocol):
    """Stores and compares vectors of one identity."""

    @property
    def vector_identity(self) -> str:
        """Return model hash, dimension and normalisation as one string."""
        ...


class Encoder(Protocol):
    """Turns a text into a vector, the same vector every time."""

    @property
    def identity(self) -> str:
        """Return model hash, dimension and normalisation as one string."""
        ...

    def encode_query(self, text: str) -> Sequence[int]:
        """Return the query's vector as integers at the identity's scale."""
        ...

    def encode_document(self, text: str) -> Sequence[int]:
        """Return the document's vector as integers at the identity's scale."""
        ...


class Reranker(Protocol):
    """Scores candidates against the query by reading both together."""

    def rerank(self, query: str, passages: Sequence[str], *, budget_ms: int) -> Sequence[int]:
        """Return one fixed-point score per passage, in the order given."""
        ...
