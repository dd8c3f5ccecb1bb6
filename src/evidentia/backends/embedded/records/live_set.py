"""What is live in a base right now, as writers need it: by document, with its corpus member, and by chunk."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evidentia.backends.embedded.records import schema
from evidentia.backends.embedded.records.database import select_in
from evidentia.contracts.documents import KnownDocument
from evidentia.contracts.ids import ChunkId, DocumentId, Sha256, SourceId, chunk_id_of
from evidentia.provenance.corpus_hash import member_bytes, vector_member

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray


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


def has_documents(database: sqlite3.Connection, source_id: SourceId) -> bool:
    """Tell whether a source has a live document."""
    statement = "SELECT 1 FROM versions WHERE removed_seq IS NULL AND source_id = ? LIMIT 1"
    return database.execute(statement, (source_id,)).fetchone() is not None


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
        metadata=schema.decode_metadata(version.metadata),
        access=schema.decode_access(rule),
        chunks=chunk_marks(database, version),
    )


def vector_members(database: sqlite3.Connection, version: LiveVersion, *, space_key: int | None) -> list[bytes]:
    """Return what the vectors of a version's chunks count as in the space that is in force."""
    if space_key is None:
        return []
    found = database.execute(
        """SELECT c.position, c.content_hash, v.vector_hash FROM vectors v JOIN chunks c USING (chunk_key)
        WHERE v.space_key = ? AND v.chunk_key >= ? AND v.chunk_key < ?""",
        (space_key, version.first_chunk, version.first_chunk + version.chunk_count),
    )
    return [
        vector_member(_mark(version.document_id, position, content_hash)[0], vector_hash=digest.hex())
        for position, content_hash, digest in found
    ]


class LiveChunks:
    """Every live chunk by its key; `log_size` says which version this is."""

    def __init__(self, database: sqlite3.Connection, *, log_size: int) -> None:
        self.log_size = log_size
        found = database.execute(
            """SELECT v.document_id, r.first_chunk, r.chunk_count FROM versions v JOIN revisions r USING (revision_key)
            WHERE v.removed_seq IS NULL AND r.chunk_count > 0 ORDER BY r.first_chunk"""
        ).fetchall()
        self._documents = [DocumentId(row[0]) for row in found]
        self._firsts = np.asarray([row[1] for row in found], dtype=np.int64)
        self._counts = np.asarray([row[2] for row in found], dtype=np.int64)
        starts = np.repeat(self._firsts - np.cumsum(self._counts) + self._counts, self._counts)
        self.keys: NDArray[np.int64] = starts + np.arange(len(starts))

    def holds(self, keys: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell for each key whether its chunk is live."""
        if not len(self._firsts):
            return np.zeros(len(keys), dtype=np.bool_)
        number = np.searchsorted(self._firsts, keys, side="right") - 1
        is_here: NDArray[np.bool_] = (number >= 0) & (keys < self._firsts[number] + self._counts[number])
        return is_here

    def chunk_id(self, key: int, position: int, content_hash: bytes) -> ChunkId:
        """Return the id of a live chunk."""
        document = self._documents[int(np.searchsorted(self._firsts, key, side="right")) - 1]
        return chunk_id_of(document, position=position, content_hash=Sha256(content_hash.hex()))


def _mark(document_id: DocumentId, position: int, content_hash: bytes) -> tuple[str, str]:
    digest = Sha256(content_hash.hex())
    return chunk_id_of(document_id, position=position, content_hash=digest), digest
