"""The versions of a base, and what differs between two of them."""

from __future__ import annotations

from datetime import datetime

import msgspec

from evidentia.contracts.ids import CorpusVersion, DocumentId, EvidenceState, SourceId


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
