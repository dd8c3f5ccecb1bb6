"""Reading an embedded base: chunks with their custody, documents, proofs and versions.

Each call sees the newest committed version; a reader never blocks the writer. Thread safe through one lock.
"""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING

from evidentia.backends.embedded import attachments, rows
from evidentia.backends.embedded.database import open_for_reading, storage_errors
from evidentia.backends.embedded.event_log import EventLogReader
from evidentia.backends.embedded.seal import stored_head
from evidentia.contracts.errors import NotFoundError
from evidentia.contracts.ids import ChunkId, DocumentId, Sha256, SourceId, chunk_parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from evidentia.backends.embedded.attachments import LaidOutVersion
    from evidentia.contracts.access import AccessRule
    from evidentia.contracts.documents import CommitSummary, StoredChunk
    from evidentia.contracts.layout import DocumentLayout
    from evidentia.contracts.provenance import CommitRecord, ConsistencyProof, InclusionProof, IngestEvent

_VERSION = "v.source_id, v.metadata, a.rule, v.removed_seq IS NULL, r.custody, r.text_hash, r.first_chunk, r.chunk_count"
_FROM = "FROM versions v JOIN revisions r USING (revision_key) JOIN access_rules a USING (access_key) WHERE v.document_id = ?"
_VersionRow = tuple[str, bytes, bytes, int, bytes, bytes, int, int]


class EmbeddedReader:
    """Implements `EvidenceReader` and `SupportsLayouts`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._database = open_for_reading(directory)
        self._lock = RLock()

    def head(self) -> CommitSummary:
        """Return the newest committed version."""
        with self._lock, storage_errors(self._directory):
            return rows.summary_of(stored_head(self._database)[0])

    def chunk(self, chunk_id: ChunkId) -> StoredChunk | None:
        """Return a chunk whose version has not been collected, live or not; live versions are preferred."""
        parts = chunk_parts(chunk_id)
        if parts is None:
            return None
        document_id, position, prefix = parts
        with self._lock, storage_errors(self._directory):
            statement = f"SELECT {_VERSION} {_FROM} ORDER BY v.removed_seq IS NULL DESC, v.version_key DESC"
            for version in self._database.execute(statement, (document_id,)).fetchall():
                for chunk in self._chunks(document_id, version, first=position, count=1):
                    if chunk.content_hash.startswith(prefix):
                        return chunk
        return None

    def chunks_of(self, document_id: DocumentId) -> Sequence[StoredChunk]:
        """Return the live chunks of a document in order of position."""
        with self._lock, storage_errors(self._directory):
            statement = f"SELECT {_VERSION} {_FROM} AND v.removed_seq IS NULL"
            version = self._database.execute(statement, (document_id,)).fetchone()
            return [] if version is None else list(self._chunks(document_id, version, first=0, count=version[-1]))

    def documents(self) -> Iterator[tuple[DocumentId, AccessRule, int]]:
        """Yield every live document with its access rule and its number of chunks, ordered by id."""
        with self._lock, storage_errors(self._directory):
            found = self._database.execute(
                """SELECT v.document_id, a.rule, r.chunk_count FROM versions v JOIN revisions r USING (revision_key)
                JOIN access_rules a USING (access_key) WHERE v.removed_seq IS NULL ORDER BY v.document_id"""
            ).fetchall()
        for document_id, rule, count in found:
            yield DocumentId(document_id), rows.decode_access(rule), count

    def holds(self, document_id: DocumentId) -> bool:
        """Tell whether a document is live."""
        with self._lock, storage_errors(self._directory):
            statement = "SELECT 1 FROM versions WHERE document_id = ? AND removed_seq IS NULL"
            return self._database.execute(statement, (document_id,)).fetchone() is not None

    def layout(self, document_id: DocumentId) -> DocumentLayout | None:
        """Return the layout of a live document; None where it has none."""
        with self._lock, storage_errors(self._directory):
            return attachments.live_layout(self._database, document_id)

    def attachment(self, content_hash: Sha256) -> bytes | None:
        """Return what has this hash; None where nothing has."""
        with self._lock, storage_errors(self._directory):
            return attachments.read(self._database, content_hash)

    def laid_out(self) -> tuple[CommitRecord, list[LaidOutVersion]]:
        """Return every readable version of a document that has a layout, and the commit that was the newest then."""
        with self._lock, storage_errors(self._directory):
            self._database.execute("BEGIN")
            try:
                return stored_head(self._database)[0], attachments.laid_out_versions(self._database)
            finally:
                self._database.execute("COMMIT")

    def close(self) -> None:
        """Give back what the reader holds."""
        with self._lock:
            self._database.close()

    def event(self, index: int) -> IngestEvent:
        """Return an entry of the event log."""
        with self._lock, storage_errors(self._directory):
            row = self._database.execute("SELECT leaf FROM events WHERE event_index = ?", (index,)).fetchone()
        if row is None:
            raise NotFoundError("event", str(index))
        return rows.decode_event(row[0])

    def commit_record(self) -> tuple[CommitRecord, Sha256]:
        """Return the newest commit record and its hash."""
        with self._lock, storage_errors(self._directory):
            record, digest, _ = stored_head(self._database)
            return record, digest

    def inclusion(self, index: int, *, size: int) -> InclusionProof:
        """Return the proof that event `index` is in the log of `size` events."""
        with self._lock, storage_errors(self._directory):
            return EventLogReader(self._database, size=size).inclusion(index)

    def consistency(self, first_size: int, *, size: int) -> ConsistencyProof:
        """Return the proof that the log of `first_size` events is a prefix of the log of `size`."""
        with self._lock, storage_errors(self._directory):
            return EventLogReader(self._database, size=size).consistency(first_size)

    def _chunks(self, document_id: DocumentId, version: _VersionRow, *, first: int, count: int) -> Iterator[StoredChunk]:
        source_id, metadata, rule, is_live, custody, text_hash, first_chunk, chunk_count = version
        stop = min(first + count, chunk_count)
        found = self._database.execute(
            f"SELECT {rows.CHUNK_COLUMNS}, substr(body, byte_start + 1, byte_stop - byte_start) "
            "FROM chunks, contents WHERE text_hash = ? AND chunk_key >= ? AND chunk_key < ? ORDER BY chunk_key",
            (text_hash, first_chunk + first, first_chunk + stop),
        ).fetchall()
        for *row, content in found:
            yield rows.stored_chunk(
                tuple(row),
                document_id=document_id,
                source_id=SourceId(source_id),
                content=content,
                text_hash=text_hash,
                custody=custody,
                metadata=metadata,
                rule=rule,
                is_live=bool(is_live),
            )
