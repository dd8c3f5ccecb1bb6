"""The one writer of an embedded base.

A commit compares the change with what is live, writes and syncs the segment of new chunks, and then does everything
else in one SQLite transaction. A failure at any moment leaves the version before it.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from evidentia.backends.embedded import live, rows
from evidentia.backends.embedded.commit_rows import CommitRows
from evidentia.backends.embedded.database import (
    SEGMENTS_NAME,
    close_after_writing,
    create_database,
    database_path,
    open_for_writing,
    storage_errors,
    sync_directory,
)
from evidentia.backends.embedded.event_log import EventLogWriter
from evidentia.backends.embedded.postings import PostingsBuilder
from evidentia.backends.embedded.seal import first_record, insert_record, seal, stored_head
from evidentia.backends.embedded.segments import write_segment
from evidentia.backends.embedded.source_history import begin_history, change_sources, decoded, stored_descriptors
from evidentia.backends.embedded.vector_files import remove_unnamed_files
from evidentia.backends.embedded.vector_ledger import VectorLedger
from evidentia.backends.embedded.writer_lock import WriterLock
from evidentia.contracts.errors import DuplicateDocumentError, InvalidFieldError, NotFoundError
from evidentia.provenance.corpus import CorpusState
from evidentia.text.tokens import Tokeniser

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from evidentia.contracts.documents import ChangeSet, CommitSummary, KnownDocument
    from evidentia.contracts.ids import DocumentId, SourceId
    from evidentia.contracts.ports import Clock, Entropy
    from evidentia.contracts.provenance import CommitRecord
    from evidentia.contracts.sources import SourceDescriptor


def create_base(directory: Path, *, clock: Clock, entropy: Entropy) -> None:
    """Make an empty base in a directory, which may exist but must not hold one already."""
    with storage_errors(directory):
        (directory / SEGMENTS_NAME).mkdir(parents=True, exist_ok=True)
        if database_path(directory).exists():
            raise InvalidFieldError("base", f"there is a base at '{directory}' already")
        record = first_record(clock=clock, entropy=entropy)
        create_database(directory, fill=partial(_fill, record=record))


def _fill(database: sqlite3.Connection, *, record: CommitRecord) -> None:
    record_hash = insert_record(database, record, state=CorpusState().state)
    begin_history(database, since=record.sequence, record_hash=bytes.fromhex(record_hash))


class EmbeddedWriter:
    """Implements `EvidenceWriter`; holds the writer's lock until closed. Not thread safe."""

    def __init__(self, directory: Path, *, clock: Clock, entropy: Entropy, language: str, wait_ms: int) -> None:
        self._directory = directory
        self._clock = clock
        self._entropy = entropy
        self._lock = WriterLock(directory, wait_ms=wait_ms)
        try:
            self._database = open_for_writing(directory)
            self._postings = PostingsBuilder(Tokeniser(language))
            self._staged: dict[SourceId, SourceDescriptor | None] = {}
            self._restart()
            self._remove_unnamed_segments()
            remove_unnamed_files(self._database, directory)
        except BaseException:
            self._lock.release()
            raise

    def known(self, document_ids: Sequence[DocumentId]) -> Mapping[DocumentId, KnownDocument]:
        """Return what is remembered of those of the documents that are live."""
        with storage_errors(self._directory):
            return live.known_documents(self._database, document_ids)

    def live_documents(self, source_id: SourceId) -> Mapping[DocumentId, KnownDocument]:
        """Return every live document of one source."""
        with storage_errors(self._directory):
            return live.known_of_source(self._database, source_id)

    def register(self, descriptor: SourceDescriptor) -> None:
        """Add a source or replace its descriptor; durable with the next commit."""
        self._staged[descriptor.source_id] = descriptor

    def descriptors(self) -> Mapping[SourceId, SourceDescriptor]:
        """Return every registered source as the newest version has it, ordered by id."""
        with storage_errors(self._directory):
            return decoded(stored_descriptors(self._database))

    def remove_source(self, source_id: SourceId) -> None:
        """Forget a source; one that has live documents is refused. Durable with the next commit."""
        with storage_errors(self._directory):
            if source_id not in stored_descriptors(self._database):
                raise NotFoundError("source", source_id)
            if live.has_documents(self._database, source_id):
                raise InvalidFieldError("source_id", f"source '{source_id}' still has documents; remove them first, then the source")
        self._staged[source_id] = None

    def commit(self, changes: ChangeSet) -> CommitSummary:
        """Make all of the changes durable and visible at once, or none of them.

        1. refuse a change that speaks of one document twice, or of one that is not there
        2. sort out what is new, changed, moved or gone
        3. write and sync the segment of new chunks
        4. in one transaction: rows, event log, commit record
        """
        with storage_errors(self._directory):
            _refuse_repetition(changes)
            self._refuse_removed_sources(changes)
            planned = self._plan(changes)
            changed_sources = self._changed_sources()
            if planned.is_empty and not changed_sources:
                return rows.summary_of(self._head)
            segment = self._write_segment(planned)
            try:
                return self._transact(planned, changed_sources)
            except BaseException:
                self._undo(segment)
                raise

    def close(self) -> None:
        """Give up the right to write; what was not committed is lost."""
        try:
            close_after_writing(self._database)
        finally:
            self._lock.release()

    def _restart(self) -> None:
        """Read from the database what the writer keeps in memory."""
        self._head, self._head_hash, state = stored_head(self._database)
        self._corpus = CorpusState(state)
        self._vectors = VectorLedger(self._database)
        self._log = EventLogWriter(self._database, size=self._head.log_size)

    def _refuse_removed_sources(self, changes: ChangeSet) -> None:
        for document in changes.documents:
            if self._staged.get(document.source_id, document) is None:
                raise InvalidFieldError("source_id", f"source '{document.source_id}' is being removed and cannot take documents")

    def _plan(self, changes: ChangeSet) -> CommitRows:
        moved = {change.document_id: change.access for change in changes.access_changes}
        touched = [*(document.document_id for document in changes.documents), *changes.removals, *moved]
        current = live.live_versions(self._database, touched)
        for document_id in (*changes.removals, *moved):
            if document_id not in current:
                raise NotFoundError("document", document_id)
        now = self._clock.now()
        planned = CommitRows(
            self._database,
            sequence=self._head.sequence + 1,
            log_size=self._log.size,
            now=now,
            entropy=self._entropy,
            space_key=self._vectors.space_key,
        )
        for document in changes.documents:
            planned.put(document, current.get(document.document_id))
        for document_id in changes.removals:
            planned.remove(current[document_id])
        for document_id, access in moved.items():
            planned.move(current[document_id], access)
        return planned

    def _write_segment(self, planned: CommitRows) -> Path | None:
        if not planned.new_texts:
            return None
        arrays = self._postings.build(planned.new_texts, chunk_keys=planned.new_chunk_keys)
        name = f"{planned.sequence:08d}-{self._entropy.take(4).hex()}.seg"
        path = self._directory / SEGMENTS_NAME / name
        count = len(planned.new_chunk_keys)
        file_hash = write_segment(path, tokeniser=self._postings.tokeniser.identity, chunk_count=count, arrays=arrays)
        sync_directory(path.parent)
        planned.name_segment(name, file_hash=file_hash, byte_count=path.stat().st_size)
        return path

    def _transact(self, planned: CommitRows, changed_sources: Mapping[SourceId, bytes | None]) -> CommitSummary:
        self._database.execute("BEGIN IMMEDIATE")
        planned.write()
        self._log.append(planned.leaves)
        change_sources(self._database, changed_sources, sequence=planned.sequence)
        self._corpus.remove(planned.members_out)
        self._corpus.add(planned.members_in)
        self._vectors.remove(planned.vectors_out)
        self._vectors.store()
        record, record_hash = seal(
            self._database,
            parent=self._head,
            parent_hash=self._head_hash,
            log_size=self._log.size,
            corpus=self._corpus,
            vectors=self._vectors.version,
            now=planned.now,
        )
        self._database.execute("COMMIT")
        self._head, self._head_hash = record, record_hash
        self._staged.clear()
        return rows.summary_of(record, **planned.counts)

    def _undo(self, segment: Path | None) -> None:
        """Go back to the version before; the error that brought us here is the one to report."""
        with suppress(sqlite3.Error):
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
        if segment is not None:
            with suppress(OSError):
                segment.unlink()
        with suppress(sqlite3.Error):
            self._restart()

    def _changed_sources(self) -> dict[SourceId, bytes | None]:
        """Return what is staged and differs; a descriptor that says the same keeps the bytes it was stored with."""
        stored = decoded(stored_descriptors(self._database)) if self._staged else {}
        return {
            source_id: None if descriptor is None else rows.encode(descriptor)
            for source_id, descriptor in self._staged.items()
            if stored.get(source_id) != descriptor
        }

    def _remove_unnamed_segments(self) -> None:
        """Delete what a writer that died left behind; only the holder of the lock may."""
        named = {name for (name,) in self._database.execute("SELECT name FROM segments")}
        for path in (self._directory / SEGMENTS_NAME).glob("*.seg"):
            if path.name not in named:
                path.unlink()


def _refuse_repetition(changes: ChangeSet) -> None:
    seen: set[DocumentId] = set()
    for document_id in _spoken_of(changes):
        if document_id in seen:
            raise DuplicateDocumentError(document_id, first="this change", second="the same change")
        seen.add(document_id)


def _spoken_of(changes: ChangeSet) -> Iterable[DocumentId]:
    yield from (document.document_id for document in changes.documents)
    yield from changes.removals
    yield from (change.document_id for change in changes.access_changes)
