"""What is live in a base right now, as the writer needs it: by document, with what its corpus member looks like."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from evidentia.backends.embedded import rows
from evidentia.backends.embedded.database import select_in
from evidentia.contracts.documents import KnownDocument
from evidentia.contracts.ids import DocumentId, Sha256, SourceId, chunk_id_of
from evidentia.provenance.corpus import member_bytes

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping

_COLUMNS = (
    "v.version_key, v.document_id, v.source_id, v.revision_key, v.metadata, v.access_key, v.fingerprint, v.root_key, "
    "r.text_hash, r.first_chunk, r.chunk_count"
)
_LIVE_VERSIONS = (
    f"SELECT {_COLUMNS} FROM versions v JOIN revisions r USING (revision_key) WHERE v.removed_seq IS NULL AND v.document_id IN (%s)"
)


class LiveVersion(NamedTuple):
    """The live version of a document as stored."""

    version_key: int
    document_id: DocumentId
    source_id: SourceId
    revision_key: int
    metadata: bytes
    access_key: int
    fingerprint: bytes
    root_key: int
    text_hash: bytes
    first_chunk: int
    chunk_count: int


def live_versions(database: sqlite3.Connection, document_ids: Iterable[DocumentId]) -> dict[DocumentId, LiveVersion]:
    """Return the live versions of those of the documents that have one."""
    found: dict[DocumentId, LiveVersion] = {}
    for row in select_in(database, _LIVE_VERSIONS, list(document_ids)):
        version = LiveVersion(*row)
        found[version.document_id] = version
    return found


def known_documents(database: sqlite3.Connection, document_ids: Iterable[DocumentId]) -> Mapping[DocumentId, KnownDocument]:
    """Return what an ingest compares a document with."""
    roots = dict(database.execute("SELECT root_key, path FROM roots"))
    return {
        document_id: KnownDocument(fingerprint=Sha256(version.fingerprint.hex()), root=roots.get(version.root_key, ""))
        for document_id, version in live_versions(database, document_ids).items()
    }


def known_of_source(database: sqlite3.Connection, source_id: SourceId) -> Mapping[DocumentId, KnownDocument]:
    """Return every live document of a source."""
    statement = """SELECT v.document_id, v.fingerprint, coalesce(o.path, '') FROM versions v LEFT JOIN roots o USING (root_key)
        WHERE v.removed_seq IS NULL AND v.source_id = ? ORDER BY v.document_id"""
    return {
        DocumentId(document_id): KnownDocument(fingerprint=Sha256(fingerprint.hex()), root=root)
        for document_id, fingerprint, root in database.execute(statement, (source_id,))
    }


def chunk_marks(database: sqlite3.Connection, version: LiveVersion) -> tuple[tuple[str, str], ...]:
    """Return (chunk id, content hash) of a version's chunks in order of position."""
    found = database.execute(
        "SELECT position, content_hash FROM chunks WHERE chunk_key >= ? AND chunk_key < ? ORDER BY chunk_key",
        (version.first_chunk, version.first_chunk + version.chunk_count),
    )
    return tuple(_mark(version.document_id, position, content_hash) for position, content_hash in found)


def member_of(database: sqlite3.Connection, version: LiveVersion, *, rule: bytes) -> bytes:
    """Return the corpus member that a stored version is."""
    return member_bytes(
        version.document_id,
        metadata=rows.decode_metadata(version.metadata),
        access=rows.decode_access(rule),
        chunks=chunk_marks(database, version),
    )


def _mark(document_id: DocumentId, position: int, content_hash: bytes) -> tuple[str, str]:
    digest = Sha256(content_hash.hex())
    return chunk_id_of(document_id, position=position, content_hash=digest), digest
