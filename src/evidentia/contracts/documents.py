"""Documents as they are stored and handed from ingest to a base."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec

from evidentia.contracts.access import AccessRule
from evidentia.contracts.ids import ChunkId, CorpusVersion, DocumentId, EvidenceState, PrincipalId, SemanticVersion, Sha256, SourceId
from evidentia.contracts.layout import Attachment, ExtractedText
from evidentia.contracts.provenance import DocumentCustody
from evidentia.contracts.vocabulary import AuthorityTier, ContentType, DeprecationStatus


class DocumentMetadata(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """What is known about a document besides its text; part of `corpus_version`.

    `updated_at` comes from the document or its version control, never from a file's modification time.
    Classification, tenant and ACL live in the document's `AccessRule`.
    """

    source_id: SourceId
    title: str = ""
    path: str = ""
    media_type: str = "text/plain"
    content_type: ContentType = ContentType.DOCUMENTATION
    authority_tier: AuthorityTier = AuthorityTier.CURATED
    language: str = "en"
    created_at: datetime | None = None
    updated_at: datetime | None = None
    author: PrincipalId | None = None
    tags: tuple[str, ...] = ()
    version: SemanticVersion | None = None
    deprecation_status: DeprecationStatus = DeprecationStatus.ACTIVE
    extra: Mapping[str, str] = msgspec.field(default_factory=dict)
    layout: Sha256 | None = None
    """The hash of the document's `DocumentLayout`; None where it has no pages, images or tables."""
    remarks: Mapping[str, tuple[int, ...]] = msgspec.field(default_factory=dict)
    """What was noticed when it came in, such as `instruction_like`, and at which of its chunks, by position."""


class PreparedChunk(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One stretch of a document's text, identified and chained, ready to be stored.

    `start` and `end` count characters of the document's text; the byte offsets count its UTF-8 form.
    """

    chunk_id: ChunkId
    position: int
    start: int
    end: int
    byte_start: int
    byte_end: int
    content_hash: Sha256
    custody_head: Sha256


class PreparedDocument(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A document with everything a base has to store; the unit of a commit.

    `fingerprint` identifies what went in (original bytes, options, tools), so that an unchanged document is
    recognised before it is read again. `root` says where it came from and is not part of any version.
    """

    source_id: SourceId
    document_id: DocumentId
    text: str
    text_hash: Sha256
    custody: DocumentCustody
    metadata: DocumentMetadata
    access: AccessRule
    chunks: tuple[PreparedChunk, ...]
    fingerprint: Sha256
    root: str = ""
    attachments: tuple[Attachment, ...] = ()
    """Its layout in canonical form, and everything that the layout names by a hash."""


class KnownDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What a base remembers of a live document, enough to skip it when nothing changed."""

    fingerprint: Sha256
    root: str


class AccessChange(msgspec.Struct, frozen=True, kw_only=True):
    """A new access rule for a live document."""

    document_id: DocumentId
    access: AccessRule


class ChangeSet(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one commit does; all of it becomes visible at once or not at all."""

    documents: tuple[PreparedDocument, ...] = ()
    removals: tuple[DocumentId, ...] = ()
    access_changes: tuple[AccessChange, ...] = ()


class CommitSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What a commit did and the version it made."""

    sequence: int
    corpus_version: CorpusVersion
    evidence_state: EvidenceState
    log_size: int
    log_root: Sha256
    committed_at: datetime
    added: int = 0
    changed: int = 0
    removed: int = 0
    access_changed: int = 0


class StoredChunk(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A chunk as read back from a base."""

    chunk_id: ChunkId
    document_id: DocumentId
    source_id: SourceId
    position: int
    start: int
    end: int
    content: str
    content_hash: Sha256
    text_hash: Sha256
    custody_head: Sha256
    event_index: int
    metadata: DocumentMetadata
    access: AccessRule
    custody: DocumentCustody
    is_live: bool


class StoredDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a document with the bytes verification recomputes everything from.

    The version is visible at every sequence from `added_at` up to, not including, `removed_at`.
    """

    document_id: DocumentId
    source_id: SourceId
    text: bytes
    text_hash: Sha256
    custody: DocumentCustody
    metadata: DocumentMetadata
    access: AccessRule
    chunks: tuple[PreparedChunk, ...]
    event_indexes: tuple[int, ...]
    fingerprint: Sha256
    version_event: int
    root: int
    added_at: int
    removed_at: int | None


# --- ingestion ---
# What a caller decides about material when it comes in.

DEFAULT_SOURCE = SourceId("documents")


class IngestOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The source material belongs to, and the trust and access it starts with."""

    source: SourceId = DEFAULT_SOURCE
    authority: AuthorityTier = AuthorityTier.CURATED
    access: AccessRule = AccessRule()
    tags: tuple[str, ...] = ()
    prune: bool = False
    """Remove documents of this source whose file is gone from the roots given."""


class ReadDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document that was read and cut but not yet identified and chained.

    `spans` are character offsets of the chunks into `extracted.text`, in order, without overlap.
    """

    source_id: SourceId
    document_id: DocumentId
    document_version: str
    original_hash: Sha256
    original_length: int
    extracted: ExtractedText
    spans: tuple[tuple[int, int], ...]
    chunker_version: str
    metadata: DocumentMetadata
    access: AccessRule
    fingerprint: Sha256
    read_at: datetime
    root: str = ""


# --- versions ---
# The versions of a base, and what differs between two of them.


class VersionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A version as whoever asks sees it; how much a version held that gc removed is not known any more, and None."""

    sequence: int
    corpus_version: CorpusVersion
    evidence_state: EvidenceState
    at: datetime
    is_kept: bool
    documents: int | None = None
    chunks: int | None = None


class ChangedDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document that differs between two versions, by the source it has in the newer one, else in the older."""

    document_id: DocumentId
    source_id: SourceId


class ChangedDocuments(msgspec.Struct, frozen=True, kw_only=True):
    """The documents of one kind of change: how many there are, and the first of them, ordered by id."""

    total: int
    documents: tuple[ChangedDocument, ...] = ()


class VersionDiff(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between two versions as whoever asks sees them.

    `changed` differ in their text or in how it is cut, `metadata_changed` in title, tags and the like. A document can be in several lists.
    """

    older: VersionSummary
    newer: VersionSummary
    added: ChangedDocuments
    removed: ChangedDocuments
    changed: ChangedDocuments
    metadata_changed: ChangedDocuments
    access_changed: ChangedDocuments
    note: str = ""
    """Says that lists were cut; empty when they are whole."""
