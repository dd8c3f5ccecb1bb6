"""What keeps a base: writing, reading, proving, collecting, and the smaller stores beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from evidentia.contracts.ports.search import SupportsSources

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    import numpy as np
    from numpy.typing import NDArray

    from evidentia.contracts.access import AccessRule
    from evidentia.contracts.documents import (
        ChangeSet,
        CommitSummary,
        DocumentMetadata,
        KnownDocument,
        StoredChunk,
        StoredDocument,
        VersionDiff,
        VersionSummary,
    )
    from evidentia.contracts.ids import ChunkId, DocumentId, ReceiptId, Sha256, SourceId
    from evidentia.contracts.layout import DocumentLayout
    from evidentia.contracts.provenance import BrokenLink, CommitRecord, ConsistencyProof, InclusionProof, IngestEvent, SignedHead
    from evidentia.contracts.receipts import Receipt
    from evidentia.contracts.reports import GcReport
    from evidentia.contracts.retrieval import StoredResponse
    from evidentia.contracts.search import AccessScope
    from evidentia.contracts.sources import Note, SourceDescriptor
    from evidentia.contracts.tables import OpenTable, TableCard, TableId
    from evidentia.contracts.vectors import EmbeddingState, PendingChunk, StoredVector, VectorIdentity
    from evidentia.contracts.vocabulary import CacheTier


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


class SourceWriter(EvidenceWriter, SupportsSources, Protocol):
    """A writer that knows which sources are registered."""


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

    def documents(
        self, *, scope: AccessScope | None = None, after: str = "", limit: int | None = None
    ) -> Sequence[tuple[DocumentId, AccessRule, int]]:
        """Return the first live documents after an id that a scope shows, ordered by id: each with its access rule and chunk count.

        A scope of None shows everything, and without a limit all of them are returned. A page costs what it holds, not what the base does.
        """
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

    def commit_record(self, *, is_public: bool = False) -> tuple[CommitRecord, Sha256]:
        """Return the newest commit record and its hash, or what everybody but the owner sees of them."""
        ...

    def signed_head(self, sequence: int | None = None) -> SignedHead | None:
        """Return the signed head of a commit, the newest by default; None where it has none."""
        ...

    def inclusion(self, index: int, *, size: int) -> InclusionProof:
        """Return the proof that event `index` is in the log of `size` events."""
        ...

    def consistency(self, first_size: int, *, size: int) -> ConsistencyProof:
        """Return the proof that the log of `first_size` events is a prefix of the log of `size`."""
        ...


class ProvingReader(EvidenceReader, SupportsProofs, Protocol):
    """A reader that can prove what it reads."""


@runtime_checkable
class SupportsLayouts(Protocol):
    """Keeps what documents hold besides their text."""

    def layout(self, document_id: DocumentId) -> DocumentLayout | None:
        """Return the layout of a live document; None where it has none."""
        ...

    def attachment(self, content_hash: Sha256) -> bytes | None:
        """Return what has this hash; None where nothing has."""
        ...


class BaseReader(ProvingReader, SupportsLayouts, Protocol):
    """A reader that can prove what it reads, and knows what documents hold besides their text."""

    def holds(self, document_id: DocumentId) -> bool:
        """Tell whether a document is live."""
        ...

    def keyed(self, value: str) -> str:
        """Return a hash or an id keyed with the secret of the base, for those who may not test a guess at it."""
        ...

    def access_of(self, document_ids: Sequence[DocumentId]) -> Mapping[DocumentId, AccessRule]:
        """Return the access rules of those of the documents that are live."""
        ...

    def metadata_of(self, document_ids: Sequence[DocumentId]) -> Mapping[DocumentId, DocumentMetadata]:
        """Return what is known about those of the documents that are live."""
        ...


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


@runtime_checkable
class SupportsVectorCustody(Protocol):
    """Gives verification the vectors that a base says it has."""

    def vector_space_periods(self) -> Sequence[tuple[int, int, VectorIdentity]]:
        """Return from which commit on which space is in force, oldest first."""
        ...

    def vector_members(self) -> Iterator[StoredVector]:
        """Yield every stored vector once per version of its document."""
        ...

    def vector_state(self) -> bytes:
        """Return the stored running sum behind the newest version's vectors."""
        ...


@runtime_checkable
class SupportsSignedHeads(Protocol):
    """Gives verification the heads that the base has signed."""

    def signed_heads(self) -> Iterator[SignedHead]:
        """Yield the signed heads, oldest first."""
        ...

    def public_commit(self, record: CommitRecord) -> CommitRecord:
        """Return a commit record as everybody but the owner sees it."""
        ...


class Collector(Protocol):
    """Removes versions nobody needs any more."""

    def collect(self, *, keep_versions: int) -> GcReport:
        """Remove all but the newest versions and merge segments; the event log is never shortened."""
        ...

    def compact(self, *, full: bool = False) -> GcReport:
        """Merge segments without removing a version; `full` rewrites the vectors into wide files too."""
        ...


class VectorStore(Protocol):
    """Gives chunks their vectors, a batch at a time; the right to write is held only during `add`."""

    def state(self, identity: VectorIdentity) -> EmbeddingState:
        """Return how much of the newest version has vectors of this identity."""
        ...

    def pending(self, identity: VectorIdentity, *, limit: int) -> Sequence[PendingChunk]:
        """Return live chunks that have no vector of this identity, in a steady order."""
        ...

    def known(self, identity: VectorIdentity, content_hashes: Sequence[Sha256]) -> Mapping[Sha256, NDArray[np.int32]]:
        """Return vectors that texts with these hashes already have."""
        ...

    def add(self, identity: VectorIdentity, vectors: Mapping[int, NDArray[np.int32]]) -> CommitSummary:
        """Make vectors durable and visible at once as a new version; chunks that are gone by now are passed over."""
        ...


class ReceiptLog(Protocol):
    """Keeps receipts, append-only, durable before they are handed out."""

    def append(self, receipt: Receipt) -> ReceiptId:
        """Store a receipt durably and return its id."""
        ...

    def read(self, receipt_id: ReceiptId) -> Receipt:
        """Return a receipt, or raise NotFoundError."""
        ...


class LayoutCatalogue(Protocol):
    """Lists the tables of live documents and opens tables and images, within what a scope shows; None is the owner's."""

    def cards(self, scope: AccessScope | None) -> Sequence[TableCard]:
        """Return the tables that a scope shows, ordered by document; no cell is read for it."""
        ...

    def table(self, table_id: TableId, scope: AccessScope | None) -> OpenTable:
        """Return a table with its cells, or raise NotFoundError."""
        ...

    def image(self, image_hash: Sha256, scope: AccessScope | None) -> tuple[str, bytes]:
        """Return the media type and the bytes of an image, or raise NotFoundError."""
        ...

    def showing(self, image_hash: Sha256, scope: AccessScope | None) -> Sequence[DocumentId]:
        """Return the documents that show an image, live ones first."""
        ...


class VersionHistory(Protocol):
    """Knows the versions of a base and their differences, within what a scope shows; None is the owner's."""

    def versions(self, *, limit: int, scope: AccessScope | None) -> list[VersionSummary]:
        """Return the newest versions with what each holds, newest first."""
        ...

    def diff(self, older: int | str, newer: int | str, *, limit: int, scope: AccessScope | None) -> VersionDiff:
        """Return what differs between two versions, or raise NotFoundError."""
        ...


class KeyValueStore(Protocol):
    """Keeps bytes under names; what was measured lives here, and may be lost."""

    def get(self, key: str) -> bytes | None:
        """Return what is kept under a name."""
        ...

    def put(self, key: str, value: bytes) -> None:
        """Keep a value under a name, in place of what was there."""
        ...

    def close(self) -> None:
        """Give back what is held."""
        ...


class ResponseUsage(Protocol):
    """Knows which stored responses there are and when they were used."""

    def touch(self, keys: Sequence[bytes]) -> None:
        """Count a use of responses; those not used for longest make room for new ones."""
        ...

    def counts(self) -> Mapping[CacheTier, int]:
        """Return how many responses each tier has."""
        ...

    def close(self) -> None:
        """Give back what is held."""
        ...


class ResponseStore(ResponseUsage, Protocol):
    """Keeps responses of sources outside the base until they expire, are invalidated or make room, and may lose any."""

    def generations(self, source_ids: Sequence[SourceId]) -> Mapping[SourceId, int]:
        """Return the generation of each source, which is a higher one after every invalidation; one that is not known begins now."""
        ...

    def get(self, keys: Sequence[bytes]) -> Mapping[bytes, StoredResponse]:
        """Return those of the responses that are there, whole and not expired."""
        ...

    def neighbours(self, group: bytes, *, limit: int) -> Sequence[StoredResponse]:
        """Return the responses of a group that came last, the newest first."""
        ...

    def put(self, responses: Sequence[StoredResponse]) -> Sequence[StoredResponse]:
        """Keep responses and return those that were kept: not what is older than what is there, or of an older generation."""
        ...

    def invalidate(self, source_id: SourceId | None = None) -> int:
        """Begin a new generation of one source, or of all, drop their responses, and return how many there were."""
        ...


class NoteStore(Protocol):
    """Keeps what agents write down for themselves."""

    def add(self, note: Note) -> None:
        """Keep a note, durably."""
        ...

    def of(self, *, tenant: str, owner: str, agent_name: str | None, session: str | None, now: datetime) -> Sequence[Note]:
        """Return the notes of one owner that have not expired, ordered by id; of any agent or session where that is None.

        Notes for every session of an agent are among those of each of them.
        """
        ...

    def remove(self, note_ids: Sequence[str], *, tenant: str, owner: str) -> int:
        """Forget notes of one owner, and return how many there were."""
        ...

    def revision(self) -> str:
        """Return a word that is another one after every change."""
        ...

    def clean(self) -> int:
        """Delete what has expired, and return how much that was."""
        ...
