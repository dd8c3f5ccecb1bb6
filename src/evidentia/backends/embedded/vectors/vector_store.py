"""Vectors for the chunks of an embedded base: which are missing, which are known, and how they become durable.

Vectors are added a batch at a time. A batch writes and syncs a file and then does everything else in one SQLite
transaction; a failure at any moment leaves the version before. The event log is about ingest and does not grow.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import numpy as np

from evidentia.backends.embedded.records import schema
from evidentia.backends.embedded.records.commit_log import seal, stored_head
from evidentia.backends.embedded.records.database import (
    WriterLock,
    close_after_writing,
    open_for_reading,
    open_for_writing,
    select_in,
    storage_errors,
)
from evidentia.backends.embedded.records.head_signer import HeadSigner
from evidentia.backends.embedded.records.live_set import LiveChunks
from evidentia.backends.embedded.vectors.vector_arithmetic import checked, content_mark, vector_hash
from evidentia.backends.embedded.vectors.vector_file import OpenFiles, insert_file, new_path, remove_unnamed_files, space_at, write_vectors
from evidentia.backends.embedded.vectors.vector_spaces import VectorLedger, add_space, space_key_of
from evidentia.contracts.ids import Sha256
from evidentia.contracts.ports import Clock, Entropy, VectorStore
from evidentia.contracts.vectors import EmbeddingState, PendingChunk, VectorIdentity
from evidentia.foundation.disk import sync_directory
from evidentia.provenance.corpus_hash import CorpusState, vector_member

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from evidentia.backends.embedded.vectors.vector_file import WrittenFile
    from evidentia.contracts.documents import CommitSummary
    from evidentia.contracts.provenance import CommitRecord

_TEXTS = """SELECT chunk_key, content_hash, substr(t.body, byte_start + 1, byte_stop - byte_start)
    FROM chunks JOIN revisions r USING (revision_key) JOIN contents t USING (text_hash) WHERE chunk_key IN (%s)"""
_CHUNKS = "SELECT chunk_key, position, content_hash FROM chunks WHERE chunk_key IN (%s)"
_EMBEDDED = """SELECT v.chunk_key, c.position, c.content_hash, v.vector_hash FROM vectors v JOIN chunks c USING (chunk_key)
    WHERE v.space_key = ? ORDER BY v.chunk_key"""


class EmbeddedVectors(VectorStore):
    """Implements `VectorStore`. Thread safe; the writer's lock is held only during `add`."""

    def __init__(self, directory: Path, *, clock: Clock, entropy: Entropy, wait_ms: int) -> None:
        self._directory = directory
        self._clock = clock
        self._entropy = entropy
        self._wait_ms = wait_ms
        self._lock = threading.RLock()
        self._database = open_for_reading(directory)
        self._files = OpenFiles(directory)
        self._live: LiveChunks | None = None
        self._complete_until: tuple[tuple[int, int, int], int] = ((0, 0, 0), 0)

    def state(self, identity: VectorIdentity) -> EmbeddingState:
        """Return how much of the newest version has vectors of this identity; `identity` is the one in force."""
        with self._reading() as head:
            live = self._live_chunks(head)
            ruling = space_at(self._database, head.sequence) if head.vectors else None
            embedded = self._embedded(live, head, self._space_key(identity))
            return EmbeddingState(identity=None if ruling is None else ruling[1], embedded=embedded, chunks=len(live.keys))

    def pending(self, identity: VectorIdentity, *, limit: int) -> Sequence[PendingChunk]:
        """Return live chunks that have no vector of this identity, in order of their keys."""
        with self._reading() as head:
            missing = self._missing(self._live_chunks(head), head, self._space_key(identity), limit=limit)
            found = {key: (content_hash, text) for key, content_hash, text in select_in(self._database, _TEXTS, missing)}
            return [
                PendingChunk(key=key, content_hash=Sha256(found[key][0].hex()), text=found[key][1].decode())
                for key in missing
                if key in found
            ]

    def known(self, identity: VectorIdentity, content_hashes: Sequence[Sha256]) -> Mapping[Sha256, NDArray[np.int32]]:
        """Return vectors that texts with these hashes already have."""
        with self._reading():
            space_key = self._space_key(identity)
            if space_key is None:
                return {}
            wanted = {bytes.fromhex(each) for each in content_hashes}
            marks = sorted({content_mark(each) for each in wanted})
            statement = f"""SELECT v.chunk_key, c.content_hash FROM vectors v JOIN chunks c USING (chunk_key)
                WHERE v.space_key = {space_key} AND v.content_mark IN (%s)"""
            by_key = {key: found for key, found in select_in(self._database, statement, marks) if found in wanted}
            return {
                Sha256(by_key[key].hex()): vector
                for key, vector in sorted(self._read(space_key, sorted(by_key)), key=lambda each: -each[0])
            }

    def add(self, identity: VectorIdentity, vectors: Mapping[int, NDArray[np.int32]]) -> CommitSummary:
        """Make vectors durable and visible at once as a new version; chunks that are gone by now are passed over.

        So are chunks that have a vector of this identity already. A version is made where vectors are new, or where
        the base's vectors were of another identity.
        """
        keys = sorted(vectors)
        stacked = checked((vectors[key] for key in keys), identity=identity)
        # The writer's lock first, then the one of this process, as everybody does who needs both; checking the vectors needs neither.
        lock = WriterLock(self._directory, wait_ms=self._wait_ms)
        try:
            database = open_for_writing(self._directory)
            try:
                with storage_errors(self._directory), self._lock:
                    return self._add(database, identity, np.asarray(keys, dtype=np.int64), stacked)
            finally:
                close_after_writing(database)
        finally:
            lock.release()

    def close(self) -> None:
        """Give back what is held."""
        with self._lock:
            self._database.close()

    def _add(
        self, database: sqlite3.Connection, identity: VectorIdentity, keys: NDArray[np.int64], stacked: NDArray[np.int32]
    ) -> CommitSummary:
        """Do the work.

        1. pass over chunks that are gone or have their vector
        2. write and sync the file of vectors
        3. in one transaction: rows, the space in force, the running sum, the commit record
        """
        remove_unnamed_files(database, self._directory)
        head = stored_head(database)[0]
        live = self._live_chunks(head, database)
        space_key = space_key_of(database, identity)
        there = () if space_key is None else _keys_between(database, space_key, int(keys.min(initial=0)), int(keys.max(initial=0)))
        is_new = live.holds(keys) & ~np.isin(keys, np.asarray(there, dtype=np.int64))
        keys, stacked = keys[is_new], stacked[is_new]
        is_ruling = space_key is not None and space_at(database, head.sequence) == (space_key, identity)
        if not len(keys) and (is_ruling or space_key is None):
            return schema.summary_of(head)
        written = self._write(head, keys, stacked) if len(keys) else None
        try:
            database.execute("BEGIN IMMEDIATE")
            record = self._transact(database, identity, keys, stacked, live=live, written=written)
            database.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                database.execute("ROLLBACK")
            if written is not None:
                with suppress(OSError):
                    written.path.unlink()
            raise
        return schema.summary_of(record)

    def _write(self, head: CommitRecord, keys: NDArray[np.int64], stacked: NDArray[np.int32]) -> WrittenFile:
        path = new_path(self._directory, kind=f"{head.sequence + 1:08d}", entropy=self._entropy)
        written = write_vectors(path, stacked, chunk_keys=keys, sequence=head.sequence + 1)
        sync_directory(path.parent)
        return written

    def _transact(
        self, database: sqlite3.Connection, identity: VectorIdentity, keys: NDArray[np.int64], stacked: NDArray[np.int32], *,
        live: LiveChunks, written: WrittenFile | None,
    ) -> CommitRecord:  # fmt: skip
        parent, parent_hash, state = stored_head(database)
        sequence = parent.sequence + 1
        ledger = VectorLedger(database)
        space_key = space_key_of(database, identity) or add_space(database, identity)
        if ledger.identity != identity:
            ledger.begin(space_key, identity, sequence=sequence)
            ledger.add(_stored_members(database, live, space_key))
        chunks = {key: (position, content_hash) for key, position, content_hash in select_in(database, _CHUNKS, keys.tolist())}
        hashes = [vector_hash(vector) for vector in stacked]
        ledger.add(
            vector_member(live.chunk_id(key, *chunks[key]), vector_hash=digest) for key, digest in zip(keys.tolist(), hashes, strict=True)
        )
        database.executemany(
            "INSERT INTO vectors VALUES (?, ?, ?, ?, ?)",
            [
                (space_key, key, sequence, content_mark(chunks[key][1]), bytes.fromhex(digest))
                for key, digest in zip(keys.tolist(), hashes, strict=True)
            ],
        )
        if written is not None:
            insert_file(database, written, space_key=space_key)
        ledger.store()
        return seal(
            database,
            signer=HeadSigner(self._directory, entropy=self._entropy),
            parent=parent,
            parent_hash=parent_hash,
            log_size=parent.log_size,
            corpus=CorpusState(state),
            vectors=ledger.version,
            now=self._clock.now(),
        )[0]

    @contextmanager
    def _reading(self) -> Iterator[CommitRecord]:
        """Open a transaction for reading, so that all of it is of one version; give the newest commit record."""
        with self._lock, storage_errors(self._directory):
            self._database.execute("BEGIN")
            try:
                yield stored_head(self._database)[0]
            finally:
                with suppress(sqlite3.Error):
                    self._database.execute("ROLLBACK")

    def _live_chunks(self, head: CommitRecord, database: sqlite3.Connection | None = None) -> LiveChunks:
        """Return the live chunks; every change to them is an event, so the size of the log tells whether they are the same."""
        if self._live is None or self._live.log_size != head.log_size:
            self._live = LiveChunks(database or self._database, log_size=head.log_size)
        return self._live

    def _space_key(self, identity: VectorIdentity) -> int | None:
        return space_key_of(self._database, identity) if schema.holds_vectors(self._database) else None

    def _keys_of(self, space_key: int, first: int, last: int) -> Sequence[int]:
        return _keys_between(self._database, space_key, first, last)

    def _embedded(self, live: LiveChunks, head: CommitRecord, space_key: int | None) -> int:
        if space_key is None:
            return 0
        start = self._complete(head, space_key)
        rest = live.keys[start:]
        there = self._keys_of(space_key, int(rest[0]), int(rest[-1])) if len(rest) else ()
        return start + len(np.intersect1d(rest, np.asarray(there, dtype=np.int64), assume_unique=True))

    def _complete(self, head: CommitRecord, space_key: int) -> int:
        """Return how many live chunks, in order of their keys, are known to have a vector without looking again."""
        return self._complete_until[1] if self._complete_until[0] == _token(head, space_key) else 0

    def _missing(self, live: LiveChunks, head: CommitRecord, space_key: int | None, *, limit: int) -> list[int]:
        """Return the first live chunks without a vector; what was found complete before is not looked at again."""
        if space_key is None or limit < 1:
            first: list[int] = live.keys[: max(0, limit)].tolist()
            return first
        missing: list[int] = []
        complete = len(live.keys)
        for begin in range(self._complete(head, space_key), len(live.keys), 4 * limit):
            window = live.keys[begin : begin + 4 * limit]
            there = np.asarray(self._keys_of(space_key, int(window[0]), int(window[-1])), dtype=np.int64)
            lacking = np.flatnonzero(~np.isin(window, there))
            if len(lacking) and not missing:
                complete = begin + int(lacking[0])
            missing += window[lacking].tolist()
            if len(missing) >= limit:
                break
        self._complete_until = (_token(head, space_key), complete)
        return missing[:limit]

    def _read(self, space_key: int, keys: list[int]) -> Iterator[tuple[int, NDArray[np.int32]]]:
        wanted = np.asarray(keys, dtype=np.int64)
        for opened in self._files.of_space(self._database, space_key):
            file = opened.file
            ordinals = np.minimum(np.searchsorted(file.chunk_keys, wanted), file.count - 1)
            is_here = file.chunk_keys[ordinals] == wanted
            if is_here.any():
                yield from zip(wanted[is_here].tolist(), file.rows(ordinals[is_here]).join(), strict=True)


def _token(head: CommitRecord, space_key: int) -> tuple[int, int, int]:
    """Return what changes whenever a chunk that has a vector may lose it: an ingest, or a collection."""
    return (head.log_size, head.oldest_readable, space_key)


def _keys_between(database: sqlite3.Connection, space_key: int, first: int, last: int) -> list[int]:
    statement = "SELECT chunk_key FROM vectors WHERE space_key = ? AND chunk_key BETWEEN ? AND ?"
    return [key for (key,) in database.execute(statement, (space_key, first, last))]


def _stored_members(database: sqlite3.Connection, live: LiveChunks, space_key: int) -> Iterator[bytes]:
    """Yield the members that a space which comes back already has."""
    for key, position, content_hash, digest in database.execute(_EMBEDDED, (space_key,)):
        if live.holds(np.asarray([key])).any():
            yield vector_member(live.chunk_id(key, position, content_hash), vector_hash=digest.hex())
