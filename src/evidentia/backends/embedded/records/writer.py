"""The one writer of an embedded base.

A commit compares the change with what is live, writes and syncs the segment of new chunks, and then does everything
else in one SQLite transaction. A failure at any moment leaves the version before it.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from evidentia.backends.embedded.lexical.postings import PostingsBuilder
from evidentia.backends.embedded.lexical.segments import write_segment
from evidentia.backends.embedded.records import attachments, live_set, schema
from evidentia.backends.embedded.records.commit_log import EventLogWriter, first_record, insert_record, seal, stored_head
from evidentia.backends.embedded.records.database import (
    SEGMENTS_NAME,
    WriterLock,
    close_after_writing,
    create_database,
    database_path,
    open_for_writing,
    storage_errors,
)
from evidentia.backends.embedded.records.head_signer import HeadSigner, keys_hash
from evidentia.backends.embedded.records.source_registry import begin_history, change_sources, decoded, stored_descriptors
from evidentia.backends.embedded.vectors.vector_file import remove_unnamed_files
from evidentia.backends.embedded.vectors.vector_spaces import VectorLedger
from evidentia.contracts.canonical import sha256_hex
from evidentia.contracts.errors import DuplicateDocumentError, InvalidFieldError, NotFoundError
from evidentia.contracts.ports import Clock, Entropy, SourceWriter
from evidentia.contracts.provenance import CommitRecord, IngestEvent, SigningKey
from evidentia.contracts.vocabulary import EventKind
from evidentia.foundation.disk import PRIVATE_DIRECTORY, make_private_directory, sync_directory
from evidentia.provenance.corpus_hash import CorpusState, member_bytes
from evidentia.text.contexts import ContextFacts, contexts_of
from evidentia.text.tokens import Tokeniser

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from evidentia.backends.embedded.records.live_set import LiveVersion
    from evidentia.contracts.access import AccessRule
    from evidentia.contracts.documents import ChangeSet, CommitSummary, KnownDocument, PreparedDocument
    from evidentia.contracts.ids import DocumentId, Sha256, SourceId
    from evidentia.contracts.sources import SourceDescriptor


def create_base(directory: Path, *, clock: Clock, entropy: Entropy) -> None:
    """Make an empty base in a directory, which may exist but must not hold one already."""
    with storage_errors(directory):
        if database_path(directory).exists():
            raise InvalidFieldError("base", f"there is a base at '{directory}' already")
        make_private_directory(directory)
        directory.chmod(PRIVATE_DIRECTORY)  # one that was there may be open to others
        make_private_directory(directory / SEGMENTS_NAME)
        record = first_record(clock=clock, entropy=entropy)
        create_database(directory, fill=partial(_fill, record=record, signer=HeadSigner(directory, entropy=entropy)))


def _fill(database: sqlite3.Connection, *, record: CommitRecord, signer: HeadSigner) -> None:
    signer.prepare(database, base_id=record.base_id, sequence=record.sequence)
    record = msgspec.structs.replace(record, keys_hash=keys_hash(database))
    signer.sign(database, record)
    record_hash = insert_record(database, record, state=CorpusState().state)
    begin_history(database, since=record.sequence, record_hash=bytes.fromhex(record_hash))


class EmbeddedWriter(SourceWriter):
    """Implements `EvidenceWriter`; holds the writer's lock until closed. Not thread safe."""

    def __init__(
        self, directory: Path, *, clock: Clock, entropy: Entropy, language: str, wait_ms: int, on_close: Callable[[], None] | None = None
    ) -> None:
        """Take the writer's lock; `on_close` is called when it has been given back, for whoever is to know of the new versions."""
        self._directory = directory
        self._on_close = on_close
        self._clock = clock
        self._entropy = entropy
        self._lock = WriterLock(directory, wait_ms=wait_ms)  # before the database: opening it to write may bring its schema up to date
        try:
            self._database = open_for_writing(directory)
            self._signer = HeadSigner(directory, entropy=entropy)
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
            return live_set.known_documents(self._database, document_ids)

    def live_documents(self, source_id: SourceId) -> Mapping[DocumentId, KnownDocument]:
        """Return every live document of one source."""
        with storage_errors(self._directory):
            return live_set.known_of_source(self._database, source_id)

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
            if live_set.has_documents(self._database, source_id):
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
                return schema.summary_of(self._head)
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
        if self._on_close is not None:
            self._on_close()

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
        current = live_set.live_versions(self._database, touched)
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
        arrays = self._postings.build(planned.new_texts, chunk_keys=planned.new_chunk_keys, contexts=planned.new_contexts)
        name = f"{planned.sequence:08d}-{self._entropy.take(4).hex()}.seg"
        path = self._directory / SEGMENTS_NAME / name
        count = len(planned.new_chunk_keys)
        file_hash = write_segment(path, tokeniser=self._postings.tokeniser.identity, chunk_count=count, arrays=arrays)
        sync_directory(path.parent)  # the file is synced, and now its name is: only then may the transaction name it
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
        # Last, because the record hashes what the transaction has written so far.
        record, record_hash = self._seal(planned.now)
        self._database.execute("COMMIT")
        self._head, self._head_hash = record, record_hash
        self._staged.clear()
        return schema.summary_of(record, **planned.counts)

    def rotate_key(self) -> SigningKey:
        """Begin a new signing key, for which the present one vouches, as a commit of its own."""
        with storage_errors(self._directory):
            try:
                self._database.execute("BEGIN IMMEDIATE")
                self._signer.rotate(self._database, base_id=self._head.base_id, sequence=self._head.sequence + 1)
                record, record_hash = self._seal(self._clock.now())
                self._database.execute("COMMIT")
                self._head, self._head_hash = record, record_hash
            except BaseException:
                self._undo(None)
                raise
            return self._signer.settle(self._database)

    def _seal(self, now: datetime) -> tuple[CommitRecord, Sha256]:
        """Return the record of what the open transaction has written, and its hash."""
        return seal(
            self._database,
            signer=self._signer,
            parent=self._head,
            parent_hash=self._head_hash,
            log_size=self._log.size,
            corpus=self._corpus,
            vectors=self._vectors.version,
            now=now,
        )

    def _undo(self, segment: Path | None) -> None:
        """Go back to the version before; the error that brought us here is the one to report."""
        with suppress(sqlite3.Error):
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
        if segment is not None:  # after the rollback; one that stays behind is removed by the next writer
            with suppress(OSError):
                segment.unlink()
        with suppress(sqlite3.Error):
            self._restart()

    def _changed_sources(self) -> dict[SourceId, bytes | None]:
        """Return what is staged and differs; a descriptor that says the same keeps the bytes it was stored with."""
        stored = decoded(stored_descriptors(self._database)) if self._staged else {}
        return {
            source_id: None if descriptor is None else schema.encode(descriptor)
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


# --- commit rows ---
# One commit in the making: which rows, events and corpus members a set of changes comes to.
#
# Keys are handed out from the end of each table, so that the chunks of a revision are consecutive and need no index.

SALT_BYTES = 16


class CommitRows:
    """Collects; `write` puts everything into the caller's transaction."""

    def __init__(
        self, database: sqlite3.Connection, *, sequence: int, log_size: int, now: datetime, entropy: Entropy, space_key: int | None
    ) -> None:
        self._database = database
        self._space_key = space_key
        self.sequence = sequence
        self.now = now
        self._entropy = entropy
        self._next_event = log_size
        self._next_version = _next_key(database, "versions", "version_key")
        self._contexts_since = schema.context_form(database)[0]
        # Keys that a collection gave back below that stay unused: by its key a revision is known to be indexed with its context.
        self._next_revision = max(self._contexts_since, _next_key(database, "revisions", "revision_key"))
        self._next_chunk = _next_key(database, "chunks", "chunk_key")
        self._segment_key = _next_key(database, "segments", "segment_key")
        self._access_keys = {rule: key for key, rule in database.execute("SELECT access_key, rule FROM access_rules")}
        self._rules = {key: rule for rule, key in self._access_keys.items()}
        self._root_keys = {path: key for key, path in database.execute("SELECT root_key, path FROM roots")}
        self._encoded_access: dict[AccessRule, tuple[int, str]] = {}
        self._contents: list[tuple[bytes, bytes]] = []
        self._attachments: list[tuple[bytes, bytes]] = []
        self._revisions: list[tuple[int, bytes, bytes, int, int]] = []
        self._chunks: list[tuple[int, int, int, int, int, int, int, bytes, bytes, int, int, int]] = []
        self._versions: list[tuple[int, DocumentId, SourceId, int, bytes, int, bytes, int, int, int, None]] = []
        self._ended: list[tuple[int, int]] = []
        self._new_rules: list[tuple[int, bytes]] = []
        self._new_roots: list[tuple[int, str]] = []
        self._segment: tuple[int, str, bytes, int, int] | None = None
        self.leaves: list[bytes] = []
        self.members_in: list[bytes] = []
        self.members_out: list[bytes] = []
        self.vectors_out: list[bytes] = []
        self.new_texts: list[str] = []
        self.new_contexts: list[tuple[str, ...]] = []
        self.new_chunk_keys: list[int] = []
        self.counts = {"added": 0, "changed": 0, "removed": 0, "access_changed": 0}

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing would change."""
        return not self.leaves

    def put(self, document: PreparedDocument, current: LiveVersion | None) -> None:
        """Add a document, or replace its live version; text that stays under the same title and path is not indexed again."""
        attachments.check_complete(document)
        marks = tuple((chunk.chunk_id, chunk.content_hash) for chunk in document.chunks)
        access_key, access_hash = self._access(document.access)
        metadata = schema.encode(document.metadata)
        root_key = self._root(document.root)
        fingerprint = bytes.fromhex(document.fingerprint)
        is_indexed = (
            current is not None
            and current.revision_key >= self._contexts_since
            and current.text_hash.hex() == document.text_hash
            and ContextFacts.of(schema.decode_metadata(current.metadata)) == ContextFacts.of(document.metadata)
            and live_set.chunk_marks(self._database, current) == marks
        )
        first_event = self._next_event
        if current is not None:
            self._end(current)
        if current is not None and is_indexed:
            kind = EventKind.ACCESS_CHANGED if current.access_key != access_key else EventKind.CHANGED
            revision_key = current.revision_key
            self._event(
                kind, document.source_id, document.document_id, fingerprint=document.fingerprint, access_hash=access_hash, root=root_key
            )
        else:
            kind = EventKind.ADDED if current is None else EventKind.CHANGED
            self._drop_vectors(current)
            revision_key = self._store_text(document, kind=kind, access_hash=access_hash, root=root_key)
        self.counts[kind.value] += 1
        self._versions.append((
            self._next_version, document.document_id, document.source_id, revision_key, metadata, access_key,
            fingerprint, root_key, first_event, self.sequence, None,
        ))  # fmt: skip
        self._next_version += 1
        self._attachments += ((bytes.fromhex(each.content_hash), each.content) for each in document.attachments)
        self.members_in.append(member_bytes(document.document_id, metadata=document.metadata, access=document.access, chunks=marks))

    def remove(self, current: LiveVersion) -> None:
        """End a document's live version."""
        self._end(current)
        self._drop_vectors(current)
        access_hash = sha256_hex(self._rules[current.access_key])
        self._event(
            EventKind.REMOVED, current.source_id, current.document_id,
            fingerprint=current.fingerprint.hex(), access_hash=access_hash, root=current.root_key,
        )  # fmt: skip
        self.counts["removed"] += 1

    def move(self, current: LiveVersion, access: AccessRule) -> None:
        """Give a document another access rule and leave everything else."""
        access_key, access_hash = self._access(access)
        if access_key == current.access_key:
            return
        first_event = self._next_event
        self._end(current)
        self._event(
            EventKind.ACCESS_CHANGED, current.source_id, current.document_id,
            fingerprint=current.fingerprint.hex(), access_hash=access_hash, root=current.root_key,
        )  # fmt: skip
        self._versions.append((
            self._next_version, current.document_id, current.source_id, current.revision_key, current.metadata, access_key,
            current.fingerprint, current.root_key, first_event, self.sequence, None,
        ))  # fmt: skip
        self._next_version += 1
        self.members_in.append(live_set.member_of(self._database, current, rule=self._rules[access_key]))
        self.counts["access_changed"] += 1

    def name_segment(self, name: str, *, file_hash: bytes, byte_count: int) -> None:
        """Say which file holds the new chunks."""
        self._segment = (self._segment_key, name, file_hash, byte_count, len(self.new_chunk_keys))

    def write(self) -> None:
        """Put every row into the transaction that is open."""
        run = self._database.executemany
        run("INSERT INTO access_rules VALUES (?, ?)", self._new_rules)
        run("INSERT INTO roots VALUES (?, ?)", self._new_roots)
        run("UPDATE versions SET removed_seq = ? WHERE version_key = ?", self._ended)
        run("INSERT OR IGNORE INTO contents VALUES (?, ?)", self._contents)
        run("INSERT OR IGNORE INTO attachments VALUES (?, ?)", self._attachments)
        run("INSERT INTO revisions VALUES (?, ?, ?, ?, ?)", self._revisions)
        run("INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", self._chunks)
        run("INSERT INTO versions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", self._versions)
        if self._segment is not None:
            run("INSERT INTO segments VALUES (?, ?, ?, ?, ?)", [self._segment])

    def _store_text(self, document: PreparedDocument, *, kind: EventKind, access_hash: str, root: int) -> int:
        revision_key = self._next_revision
        self._next_revision += 1
        text_hash = bytes.fromhex(document.text_hash)
        self._contents.append((text_hash, document.text.encode()))
        self._revisions.append((revision_key, text_hash, schema.encode(document.custody), self._next_chunk, len(document.chunks)))
        spans = [(chunk.start, chunk.end) for chunk in document.chunks]
        self.new_contexts += contexts_of(document.text, spans, ContextFacts.of(document.metadata))
        for chunk in document.chunks:
            self._chunks.append((
                self._next_chunk, revision_key, chunk.position, chunk.start, chunk.end, chunk.byte_start, chunk.byte_end,
                bytes.fromhex(chunk.content_hash), bytes.fromhex(chunk.custody_head),
                self._segment_key, len(self.new_chunk_keys), self._next_event,
            ))  # fmt: skip
            self.new_texts.append(document.text[chunk.start : chunk.end])
            self.new_chunk_keys.append(self._next_chunk)
            self._next_chunk += 1
            self._event(
                kind, document.source_id, document.document_id, chunk_id=chunk.chunk_id, custody_head=chunk.custody_head,
                fingerprint=document.fingerprint, access_hash=access_hash, root=root,
            )  # fmt: skip
        return revision_key

    def _end(self, current: LiveVersion) -> None:
        self._ended.append((self.sequence, current.version_key))
        self.members_out.append(live_set.member_of(self._database, current, rule=self._rules[current.access_key]))

    def _drop_vectors(self, ended: LiveVersion | None) -> None:
        """Count out the vectors of chunks that are no longer live; a text that stays keeps them."""
        if ended is not None:
            self.vectors_out += live_set.vector_members(self._database, ended, space_key=self._space_key)

    def _event(
        self, kind: EventKind, source_id: SourceId, document_id: DocumentId, *,
        fingerprint: str, access_hash: str, root: int, chunk_id: str = "", custody_head: str = "",
    ) -> None:  # fmt: skip
        event = IngestEvent(
            index=self._next_event,
            kind=kind,
            source_id=source_id,
            document_id=document_id,
            chunk_id=chunk_id,
            custody_head=custody_head,
            fingerprint=fingerprint,
            access_hash=access_hash,
            root=root,
            recorded_at=self.now,
            salt=self._entropy.take(SALT_BYTES).hex(),
        )
        self._next_event += 1
        self.leaves.append(schema.encode(event))

    def _access(self, access: AccessRule) -> tuple[int, str]:
        known = self._encoded_access.get(access)
        if known is not None:
            return known
        rule = schema.encode(access)
        key = self._access_keys.get(rule)
        if key is None:
            key = max(self._rules, default=0) + 1
            self._access_keys[rule] = key
            self._rules[key] = rule
            self._new_rules.append((key, rule))
        self._encoded_access[access] = (key, sha256_hex(rule))
        return self._encoded_access[access]

    def _root(self, path: str) -> int:
        if not path:
            return 0
        key = self._root_keys.get(path)
        if key is None:
            key = max(self._root_keys.values(), default=0) + 1
            self._root_keys[path] = key
            self._new_roots.append((key, path))
        return key


def _next_key(database: sqlite3.Connection, table: str, column: str) -> int:
    (highest,) = database.execute(f"SELECT coalesce(max({column}), 0) FROM {table}").fetchone()
    return int(highest) + 1
