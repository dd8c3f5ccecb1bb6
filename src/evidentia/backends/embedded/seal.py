"""Commit records in the database: the first one of a new base, the newest one, and the next one."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from evidentia.backends.embedded import rows
from evidentia.backends.embedded.event_log import EventLogReader
from evidentia.backends.embedded.source_history import stored_descriptors
from evidentia.backends.embedded.vector_ledger import vector_files_hash
from evidentia.contracts.canonical import encode_record, encode_struct, sha256_hex
from evidentia.contracts.errors import BaseDamagedError
from evidentia.contracts.ids import Sha256
from evidentia.contracts.provenance import CommitRecord
from evidentia.provenance import merkle
from evidentia.provenance.corpus import CorpusState, evidence_state, sources_hash

if TYPE_CHECKING:
    import sqlite3
    from datetime import datetime

    from evidentia.contracts.ports import Clock, Entropy

_BASE_ID_BYTES = 16


def first_record(*, clock: Clock, entropy: Entropy) -> CommitRecord:
    """Return the record of a base that holds nothing yet; it names the base."""
    version, sources = CorpusState().version, sources_hash({})
    return CommitRecord(
        sequence=0,
        parent="",
        base_id=entropy.take(_BASE_ID_BYTES).hex(),
        committed_at=clock.now(),
        corpus_version=version,
        evidence_state=evidence_state(version, sources=sources),
        log_size=0,
        log_root=Sha256(merkle.EMPTY_ROOT.hex()),
        oldest_readable=0,
        segments_hash=_list_hash([]),
        sources_hash=sources,
        roots_hash=_list_hash([]),
    )


def stored_head(database: sqlite3.Connection) -> tuple[CommitRecord, Sha256, bytes]:
    """Return the newest commit record, its hash and the corpus state it left."""
    row = database.execute("SELECT record, record_hash, corpus_state FROM commits ORDER BY sequence DESC LIMIT 1").fetchone()
    if row is None:
        raise BaseDamagedError("commits", "there is no commit record")
    record, record_hash, state = row
    return rows.decode_commit(record), Sha256(record_hash.hex()), state


def seal(
    database: sqlite3.Connection, *, parent: CommitRecord, parent_hash: Sha256, log_size: int, corpus: CorpusState,
    vectors: str, now: datetime, oldest_readable: int | None = None,
) -> tuple[CommitRecord, Sha256]:  # fmt: skip
    """Write the record of the transaction that is open, over everything the transaction has written."""
    sources = sources_hash(stored_descriptors(database))
    record = CommitRecord(
        sequence=parent.sequence + 1,
        parent=parent_hash,
        base_id=parent.base_id,
        committed_at=now,
        corpus_version=corpus.version,
        evidence_state=evidence_state(corpus.version, sources=sources, vectors=vectors),
        log_size=log_size,
        log_root=Sha256(EventLogReader(database, size=log_size).root().hex()),
        oldest_readable=parent.oldest_readable if oldest_readable is None else oldest_readable,
        segments_hash=segments_hash(database),
        sources_hash=sources,
        roots_hash=roots_hash(database),
        vectors=vectors,
        vector_files_hash=vector_files_hash(database),
    )
    return record, insert_record(database, record, state=corpus.state)


def insert_record(database: sqlite3.Connection, record: CommitRecord, *, state: bytes) -> Sha256:
    """Store a record; only the newest keeps its corpus state, which is all the next one needs."""
    encoded = encode_struct(record)
    digest = hashlib.sha256(encoded).digest()
    database.execute("UPDATE commits SET corpus_state = NULL WHERE corpus_state IS NOT NULL")
    database.execute("INSERT INTO commits VALUES (?, ?, ?, ?)", (record.sequence, encoded, digest, state))
    return Sha256(digest.hex())


def segments_hash(database: sqlite3.Connection) -> Sha256:
    """Return the hash of the list of segments, in order of their keys."""
    found = database.execute("SELECT segment_key, name, file_hash, byte_count, chunk_count FROM segments ORDER BY segment_key")
    return _list_hash([[key, name, file_hash.hex(), size, count] for key, name, file_hash, size, count in found])


def roots_hash(database: sqlite3.Connection) -> Sha256:
    """Return the hash of the list of directories documents came from."""
    return _list_hash([list(row) for row in database.execute("SELECT root_key, path FROM roots ORDER BY root_key")])


def _list_hash(entries: list[list[object]]) -> Sha256:
    return sha256_hex(encode_record({"entries": entries}))
