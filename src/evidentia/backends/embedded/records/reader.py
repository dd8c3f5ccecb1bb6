"""Reading an embedded base: chunks with their custody, documents, proofs and versions.

Each call sees the newest committed version; a reader never blocks the writer. Thread safe through one lock.
"""

from __future__ import annotations

from contextlib import contextmanager
from itertools import chain
from operator import attrgetter
from threading import RLock
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from msgspec import structs

from evidentia.backends.embedded.records import attachments, schema
from evidentia.backends.embedded.records.commit_log import EventLogReader, stored_head
from evidentia.backends.embedded.records.database import open_for_reading, select_in, storage_errors
from evidentia.backends.embedded.records.document_list import is_shown, list_documents
from evidentia.backends.embedded.records.head_signer import stored_signed_heads
from evidentia.contracts.canonical import encode_struct, sha256_hex
from evidentia.contracts.errors import NotFoundError
from evidentia.contracts.ids import ChunkId, DocumentId, Sha256, SourceId, chunk_parts
from evidentia.contracts.ports import BaseReader
from evidentia.foundation.lru import LruCache
from evidentia.policy.access import is_allowed
from evidentia.provenance.signed_heads import public_commit

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from evidentia.backends.embedded.records.attachments import LaidOutVersion
    from evidentia.backends.embedded.records.document_table import DocumentTable
    from evidentia.contracts.access import AccessRule
    from evidentia.contracts.documents import CommitSummary, StoredChunk
    from evidentia.contracts.layout import DocumentLayout
    from evidentia.contracts.provenance import CommitRecord, ConsistencyProof, InclusionProof, IngestEvent, SignedHead
    from evidentia.contracts.search import AccessScope, SearchHit


_VERSION = "v.source_id, v.metadata, a.rule, v.removed_seq IS NULL, r.custody, r.text_hash, r.first_chunk, r.chunk_count"
_FROM = "FROM versions v JOIN revisions r USING (revision_key) JOIN access_rules a USING (access_key) WHERE v.document_id = ?"
_ACCESS = """SELECT v.document_id, a.rule FROM versions v JOIN access_rules a USING (access_key)
    WHERE v.removed_seq IS NULL AND v.document_id IN (%s)"""
_VersionRow = tuple[str, bytes, bytes, int, bytes, bytes, int, int]


class EmbeddedReader(BaseReader):
    """Implements `EvidenceReader` and `SupportsLayouts`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._database = open_for_reading(directory)
        # Held for each call: one connection serves all threads, and a statement of one must not end another's transaction.
        self._lock = RLock()

    def head(self) -> CommitSummary:
        """Return the newest committed version."""
        with self._lock, storage_errors(self._directory):
            return schema.summary_of(stored_head(self._database)[0])

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

    def documents(
        self, *, scope: AccessScope | None = None, after: str = "", limit: int | None = None
    ) -> Sequence[tuple[DocumentId, AccessRule, int]]:
        """Return the first live documents after an id that a scope shows, ordered by id."""
        with self._lock, storage_errors(self._directory), self._one_moment():
            return list_documents(self._database, scope=scope, after=after, limit=limit)

    def access_of(self, document_ids: Sequence[DocumentId]) -> Mapping[DocumentId, AccessRule]:
        """Return the access rules of those of the documents that are live."""
        with self._lock, storage_errors(self._directory):
            return {each: schema.decode_access(rule) for each, rule in select_in(self._database, _ACCESS, document_ids)}

    def holds(self, document_id: DocumentId) -> bool:
        """Tell whether a document is live."""
        with self._lock, storage_errors(self._directory):
            statement = "SELECT 1 FROM versions WHERE document_id = ? AND removed_seq IS NULL"
            return self._database.execute(statement, (document_id,)).fetchone() is not None

    def text_of(self, citation: str, *, scope: AccessScope) -> str | None:
        """Return the text of a chunk, or of a whole live document, by its id; None for what is not there or not shown.

        Who may see it is decided before anything is read, so that what is hidden costs what a missing document does.
        """
        parts = chunk_parts(ChunkId(citation))
        document_id = DocumentId(citation) if parts is None else parts[0]
        with self._lock, storage_errors(self._directory):
            if not is_shown(self._database, document_id, scope=scope):
                return None
        chunk = None if parts is None else self.chunk(ChunkId(citation))
        chunks = self.chunks_of(document_id) if parts is None else [] if chunk is None else [chunk]
        is_admitted = bool(chunks) and all(is_allowed(each.access, scope) for each in chunks)
        return "\n".join(each.content for each in chunks) if is_admitted else None

    def layout(self, document_id: DocumentId) -> DocumentLayout | None:
        """Return the layout of a live document; None where it has none."""
        with self._lock, storage_errors(self._directory):
            return attachments.live_layout(self._database, document_id)

    def attachment(self, content_hash: Sha256) -> bytes | None:
        """Return what has this hash; None where nothing has."""
        with self._lock, storage_errors(self._directory):
            return schema.attachment(self._database, content_hash)

    def laid_out(self) -> tuple[CommitRecord, list[LaidOutVersion]]:
        """Return every readable version of a document that has a layout, and the commit that was the newest then."""
        with self._lock, storage_errors(self._directory), self._one_moment():
            return stored_head(self._database)[0], attachments.laid_out_versions(self._database)

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
        return schema.decode_event(row[0])

    def commit_record(self, *, is_public: bool = False) -> tuple[CommitRecord, Sha256]:
        """Return the newest commit record and its hash, or what everybody but the owner sees of them."""
        with self._lock, storage_errors(self._directory):
            record, record_hash, _ = stored_head(self._database)
            if not is_public:
                return record, record_hash
            shown = public_commit(record, secret=schema.stored_secret(self._database))
        return shown, sha256_hex(encode_struct(shown))

    def signed_head(self, sequence: int | None = None) -> SignedHead | None:
        """Return the signed head of a commit, the newest by default; None where it has none."""
        with self._lock, storage_errors(self._directory):
            wanted = stored_head(self._database)[0].sequence if sequence is None else sequence
            return next(stored_signed_heads(self._database, sequence=wanted), None)

    def inclusion(self, index: int, *, size: int) -> InclusionProof:
        """Return the proof that event `index` is in the log of `size` events."""
        with self._lock, storage_errors(self._directory):
            return EventLogReader(self._database, size=size).inclusion(index)

    def consistency(self, first_size: int, *, size: int) -> ConsistencyProof:
        """Return the proof that the log of `first_size` events is a prefix of the log of `size`."""
        with self._lock, storage_errors(self._directory):
            return EventLogReader(self._database, size=size).consistency(first_size)

    @contextmanager
    def _one_moment(self) -> Iterator[None]:
        """Have several statements see the same version."""
        self._database.execute("BEGIN")
        try:
            yield
        finally:
            self._database.execute("COMMIT")

    def _chunks(self, document_id: DocumentId, version: _VersionRow, *, first: int, count: int) -> Iterator[StoredChunk]:
        source_id, metadata, rule, is_live, custody, text_hash, first_chunk, chunk_count = version
        stop = min(first + count, chunk_count)
        found = self._database.execute(
            f"SELECT {schema.CHUNK_COLUMNS}, substr(body, byte_start + 1, byte_stop - byte_start) "
            "FROM chunks, contents WHERE text_hash = ? AND chunk_key >= ? AND chunk_key < ? ORDER BY chunk_key",
            (text_hash, first_chunk + first, first_chunk + stop),
        ).fetchall()
        for *row, content in found:
            yield schema.stored_chunk(
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


# --- fragment reader ---
# Chunks behind hits with their custody, read in one statement and kept for a while; events and proofs of those that are answered.

KEPT_CHARS: Final = 1 << 22
"""How much one version keeps of what it read, in characters of content."""
KEPT_PROOFS: Final = 2_048
"""How many events one version keeps with their proofs."""
_OVERHEAD_CHARS: Final = 1_000
"""What a chunk takes besides its content, about."""
_CHUNKS_PER_QUERY: Final = 250
_CHUNKS: Final = f"""WITH wanted (number, chunk_key, version_key) AS (VALUES %s)
    SELECT wanted.number, v.metadata, r.custody, r.text_hash,
        substr(t.body, byte_start + 1, byte_stop - byte_start), {schema.CHUNK_COLUMNS}
    FROM wanted CROSS JOIN chunks ON chunks.chunk_key = wanted.chunk_key JOIN versions v ON v.version_key = wanted.version_key
    JOIN revisions r ON r.revision_key = chunks.revision_key JOIN contents t ON t.text_hash = r.text_hash"""
_EVENTS_PER_QUERY: Final = 1_000
_EVENTS: Final = "SELECT event_index, leaf FROM events WHERE event_index IN (%s)"


class _CachedChunk(NamedTuple):
    """A chunk with the bytes of its records, which are read anew each time: they hold maps, and a caller may change those."""

    chunk: StoredChunk
    custody: bytes
    metadata: bytes

    def again(self) -> StoredChunk:
        return structs.replace(self.chunk, custody=schema.decode_custody(self.custody), metadata=schema.decode_metadata(self.metadata))

    @property
    def chars(self) -> int:
        return len(self.chunk.content) + _OVERHEAD_CHARS


class FragmentReader:
    """Reads what the fragments of one version are made of. The caller holds the database's lock."""

    def __init__(
        self,
        database: sqlite3.Connection,
        *,
        table: DocumentTable,
        log: EventLogReader,
        kept_chars: int = KEPT_CHARS,
        kept_proofs: int = KEPT_PROOFS,
    ) -> None:
        self._database = database
        self._table = table
        self._log = log
        self._kept: LruCache[int, _CachedChunk] = LruCache(max_weight=kept_chars, weigh=attrgetter("chars"))
        self._seen = bytearray(len(table.document_of))
        self._proven: LruCache[int, tuple[IngestEvent, InclusionProof]] = LruCache(kept_proofs)

    def read(self, hits: Sequence[SearchHit]) -> list[StoredChunk] | None:
        """Return what is behind hits, in their order; None when some of it is no longer there."""
        missing = {hit.place: hit for hit in hits if hit.place not in self._kept}
        loaded = dict(self._load(list(missing.values()))) if missing else {}
        if len(loaded) < len(missing):
            return None
        chunks = [loaded[hit.place].chunk if (kept := self._kept.get(hit.place)) is None else kept.again() for hit in hits]
        self._keep(loaded)
        return chunks

    def prove(self, chunks: Sequence[StoredChunk]) -> list[tuple[IngestEvent, InclusionProof]] | None:
        """Return the event of each chunk and the proof that the log holds it; None when an event is no longer there."""
        asked = [chunk.event_index for chunk in chunks]
        missing = list(dict.fromkeys(index for index in asked if index not in self._proven))
        loaded = dict(self._load_proofs(missing))
        if len(loaded) < len(missing):
            return None
        proofs = [self._proven.get(index) or loaded[index] for index in asked]
        for index, proof in loaded.items():
            self._proven.put(index, proof)
        return proofs

    def _load_proofs(self, indices: Sequence[int]) -> Iterator[tuple[int, tuple[IngestEvent, InclusionProof]]]:
        for start in range(0, len(indices), _EVENTS_PER_QUERY):
            part = indices[start : start + _EVENTS_PER_QUERY]
            statement = _EVENTS % ",".join("?" * len(part))
            for index, leaf in self._database.execute(statement, part):
                yield index, (schema.decode_event(leaf), self._log.inclusion(index))

    def _keep(self, loaded: Mapping[int, _CachedChunk]) -> None:
        """Keep what is read for the second time: most chunks are read once, and keeping them costs more than it saves."""
        for place, each in loaded.items():
            if self._seen[place]:
                self._kept.put(place, each)
            self._seen[place] = True

    def _load(self, hits: Sequence[SearchHit]) -> Iterator[tuple[int, _CachedChunk]]:
        places = np.asarray([hit.place for hit in hits], dtype=np.int64)
        documents = self._table.document_of[places]
        keys = zip(range(len(hits)), self._table.chunk_keys[places].tolist(), self._table.version_keys[documents].tolist(), strict=True)
        rules = self._table.access_keys[documents].tolist()
        asked = list(chain.from_iterable(keys))
        for start in range(0, len(asked), _CHUNKS_PER_QUERY * 3):
            part = asked[start : start + _CHUNKS_PER_QUERY * 3]
            statement = _CHUNKS % ",".join(["(?, ?, ?)"] * (len(part) // 3))
            for number, metadata, custody, text_hash, content, *row in self._database.execute(statement, part):
                hit = hits[number]
                chunk = schema.stored_chunk(
                    tuple(row),
                    document_id=hit.document_id,
                    source_id=hit.source_id,
                    content=content,
                    text_hash=text_hash,
                    custody=custody,
                    metadata=metadata,
                    rule=self._table.rules[rules[number]],
                    is_live=True,
                )
                yield hit.place, _CachedChunk(chunk, custody, metadata)
