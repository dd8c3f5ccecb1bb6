"""Opens versions of an embedded base: the newest is made ready ahead, older ones when they are asked for.

The newest version is derived from the one before it (`version_tables`) outside any request: by a writer of this process, before it
says that it is done, and by a thread that watches for the commits of others. Until it is ready, requests are answered from the
version that is. A small base does without the thread: there a request that finds a new version derives it in a few milliseconds.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from evidentia.backends.embedded.lexical.segments import Segment
from evidentia.backends.embedded.records import schema
from evidentia.backends.embedded.records.database import SEGMENTS_NAME, open_for_searching, storage_errors
from evidentia.backends.embedded.records.document_list import is_shown
from evidentia.backends.embedded.snapshot import EmbeddedSnapshot
from evidentia.backends.embedded.stored_tables import store_tables, stored_tables
from evidentia.backends.embedded.vectors.hnsw import GraphFolder, import_usearch
from evidentia.backends.embedded.vectors.vector_file import OpenFiles, space_at
from evidentia.backends.embedded.version_tables import VersionTables
from evidentia.contracts.canonical import encode_struct, sha256_hex
from evidentia.contracts.errors import BaseDamagedError, EvidentiaError, NotFoundError, VersionCollectedError
from evidentia.contracts.ids import CorpusVersion, DocumentId, EvidenceState, Sha256
from evidentia.contracts.ports import EvidenceIndex
from evidentia.contracts.search import AccessScope, SnapshotVersion
from evidentia.contracts.settings import SearchSettings
from evidentia.foundation.lru import LruCache, SharedLruCache
from evidentia.provenance.signed_heads import keyed, public_commit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evidentia.backends.embedded.records.document_table import TableChange
    from evidentia.contracts.provenance import CommitRecord

_SnapshotKey = tuple[int, int, tuple[str, ...], SearchSettings]

KEPT_OLDER = 3
"""How many older versions stay open."""
KEPT_SETTINGS = 4
"""For how many settings of the search the newest version is kept ready."""
SMALL = 4_096
"""Up to so many chunks and events, a request derives a new version itself, and what it looks up: that takes a few milliseconds."""
WATCH_S = 0.1
"""How often the thread looks whether another process has committed; it is also woken by a request that noticed."""
WORTH_STORING = 8
"""Tables are stored again when the log has grown by a part in this many of the chunks since."""
_ATTEMPTS = 3


class EmbeddedIndex(EvidenceIndex):
    """Implements `EvidenceIndex`. Thread safe."""

    def __init__(self, directory: Path, *, tokeniser: str) -> None:
        self._directory = directory
        self._tokeniser = tokeniser
        # One lock for the connection that snapshots share; requests wait for it, so nothing long is done under it.
        self._lock = threading.RLock()
        self._database = open_for_searching(directory)
        # One version is made at a time, through a connection of its own: requests go on reading meanwhile.
        self._making = threading.RLock()
        self._reading = open_for_searching(directory)
        self._ready: SharedLruCache[SearchSettings, EmbeddedSnapshot] = SharedLruCache(KEPT_SETTINGS)
        self._older: LruCache[tuple[int, int, SearchSettings], EmbeddedSnapshot] = LruCache(KEPT_OLDER)
        self._made: WeakValueDictionary[_SnapshotKey, EmbeddedSnapshot] = WeakValueDictionary()
        self._latest: VersionTables | None = None
        self._noticed: int | None = None
        self._stored_size: int | None = None
        self._segments: WeakValueDictionary[str, Segment] = WeakValueDictionary()
        self._vector_files = OpenFiles(directory)
        self._watcher: threading.Thread | None = None
        self._wake = threading.Event()
        self._closed = threading.Event()

    def at(
        self,
        *,
        search: SearchSettings,
        corpus_version: CorpusVersion | None = None,
        evidence_state: EvidenceState | None = None,
        access_state: EvidenceState | None = None,
        is_public: bool = False,
    ) -> EmbeddedSnapshot:
        """Return the newest version with these hashes, scored as `search` says; without hashes, the newest that is ready.

        What it shows is what its own access rules and those of `access_state` (the newest version by default) both allow. With
        `is_public` the hashes have to be those that everybody but the owner sees.
        """
        newest = self._newest(search)
        version = newest.version
        shown = (version.public_commit,) if is_public else (version.commit, version.public_commit)
        is_wanted = any(_is_named(each.corpus_version, each.evidence_state, corpus_version, evidence_state) for each in shown)
        if is_wanted and access_state in (None, version.commit.evidence_state):
            return newest
        return self._old(
            search, corpus_version=corpus_version, evidence_state=evidence_state, access_state=access_state, is_public=is_public
        )

    def catch_up(self) -> None:
        """Make the newest version ready where an older one is; returns when it is, so that whoever wrote it finds it."""
        with self._making:
            if len(self._ready):
                self._make_ready()

    def visibility(self, document_id: DocumentId, *, scope: AccessScope, evidence_state: EvidenceState | None = None) -> bool | None:
        """Tell whether a scope shows a document in a version, else by the last rule it had; None when there is no such document."""
        if evidence_state is not None:
            snapshot = self.at(search=SearchSettings(), evidence_state=evidence_state, access_state=evidence_state)
            return snapshot.shows(document_id, scope=scope)
        with self._lock, storage_errors(self._directory):
            return is_shown(self._database, document_id, scope=scope)

    def close(self) -> None:
        """Give back what is held."""
        self._closed.set()
        self._wake.set()
        if self._watcher is not None:
            self._watcher.join()
        with self._making, self._lock:
            self._ready.clear()
            self._older.clear()
            self._latest = None
            self._reading.close()
            self._database.close()

    # --- the newest version ---

    def _newest(self, search: SearchSettings) -> EmbeddedSnapshot:
        """Return the newest version that is ready; where there is none, or it takes no time to speak of, make it."""
        with self._lock, storage_errors(self._directory):
            ready, written = self._ready.get(search), self._written()
            if ready is not None and written == self._noticed:
                return ready
            head = _search_commits(self._database, None, None)[0]
        if ready is not None and max(head.log_size - ready.version.commit.log_size, len(ready.tables.table.chunk_keys)) > SMALL:
            self._wake.set()
            return ready
        with self._making:
            self._make_ready(search)
            found = self._ready.get(search)
            if found is None:
                raise AssertionError  # it was just made
            return found

    def _written(self) -> int:
        """Return a number that changes with every commit of another connection; it costs no read of the file."""
        (written,) = self._database.execute("PRAGMA data_version").fetchone()
        return int(written)

    def _make_ready(self, *more: SearchSettings) -> None:
        """Make the newest version for all settings that were asked for; the caller holds the lock of making."""
        with self._lock:
            written = self._written()  # before the version is looked for: a commit in between is noticed once more, not missed
        with storage_errors(self._directory):
            for attempt in range(_ATTEMPTS):
                try:
                    self._derive(dict.fromkeys((*self._ready, *more)))
                    break
                except BaseDamagedError:  # a collection may just be replacing segments, so look again
                    if attempt + 1 == _ATTEMPTS:
                        raise
        self._noticed = written
        if self._stored_size is None:
            self._store()
        if self._watcher is None and self._latest is not None and len(self._latest.table.chunk_keys) > SMALL:
            self._watcher = threading.Thread(target=self._watch, name="evidentia-versions", daemon=True)
            self._watcher.start()

    def _derive(self, settings: dict[SearchSettings, None]) -> None:
        with self._consistently():
            commit, commit_hash = found = _search_commits(self._reading, None, None)
            names, base = self._names(), self._latest
            tables, change = self._tables(commit, names)
            version = _version(found, access=commit, secret=schema.stored_secret(self._reading))
            is_large = len(tables.table.chunk_keys) > SMALL
            if is_large:
                tables.prepare()
            for search in settings:
                former = self._ready.get(search)
                if former is not None and former.version.commit_hash == commit_hash:
                    continue
                made = self._snapshot(version, tables, names, search, access=commit)
                made.prepare(former if former is not None and former.tables is base else None, change, is_large=is_large)
                self._ready.put(search, made)
            self._latest = tables

    def _watch(self) -> None:
        """Follow the commits of others until the index is closed."""
        seen = None
        while not self._closed.is_set():
            self._wake.wait(WATCH_S)
            self._wake.clear()
            try:
                with self._making:
                    if self._closed.is_set():
                        return
                    (written,) = self._reading.execute("PRAGMA data_version").fetchone()
                    if written != seen:
                        self._make_ready()
                        self._store()
                        seen = written
            except (EvidentiaError, sqlite3.Error, OSError):
                # Whoever asks next makes the version, and is told what is wrong.
                with self._lock:
                    self._ready.clear()

    # --- older versions ---

    def _old(
        self,
        search: SearchSettings,
        *,
        corpus_version: CorpusVersion | None,
        evidence_state: EvidenceState | None,
        access_state: EvidenceState | None,
        is_public: bool,
    ) -> EmbeddedSnapshot:
        with self._making, storage_errors(self._directory), self._consistently():
            found = _search_commits(self._reading, corpus_version, evidence_state, is_public=is_public)
            access = _search_commits(self._reading, None, access_state)[0]
            commit = found[0]
            key = (commit.sequence, max(commit.sequence, access.sequence), search)
            kept = self._older.get(key)
            if kept is None:
                names = self._names()
                version = _version(found, access=access, secret=schema.stored_secret(self._reading))
                kept = self._snapshot(version, self._tables(commit, names)[0], names, search, access=access)
                self._older.put(key, kept)
            return kept

    # --- making ---

    @contextmanager
    def _consistently(self) -> Iterator[None]:
        """Read one state of the database; a commit that happens meanwhile does not show."""
        self._reading.execute("BEGIN")
        try:
            yield
        finally:
            self._reading.execute("COMMIT")

    def _names(self) -> tuple[str, ...]:
        return tuple(name for (name,) in self._reading.execute("SELECT name FROM segments ORDER BY segment_key"))

    def _tables(self, commit: CommitRecord, names: tuple[str, ...]) -> tuple[VersionTables, TableChange | None]:
        """Return the tables of a version over these segments, and what they differ in from the latest, where they were derived from it."""
        latest = self._latest
        if latest is not None and latest.is_of(commit, names):
            return latest, None
        segments = [self._segment(name) for name in names]
        base = self._stored(commit, segments) if latest is None else latest
        derived = None if base is None else base.derived(self._reading, lock=self._lock, commit=commit, segments=segments)
        if derived is not None:
            return derived
        self._stored_size = None
        loaded = VersionTables.load(self._database, reading=self._reading, lock=self._lock, commit=commit, segments=segments, former=latest)
        return loaded, None

    def _stored(self, commit: CommitRecord, segments: list[Segment]) -> VersionTables | None:
        """Return the tables that are stored, over the segments of now."""
        is_small = sum(segment.header.chunk_count for segment in segments) <= SMALL
        stored = None if is_small else stored_tables(self._directory, self._reading, commit)
        if stored is None:
            return None
        self._stored_size = stored.commit.log_size
        return VersionTables.load(
            self._database, reading=self._reading, lock=self._lock, commit=stored.commit, segments=segments, stored=stored
        )

    def _store(self) -> None:
        """Store the tables of the newest version where opening would otherwise have to read, or to derive, a good part of them."""
        tables = self._latest
        if tables is None or len(tables.table.chunk_keys) <= SMALL:
            return
        if self._stored_size is None or tables.commit.log_size - self._stored_size > len(tables.table.chunk_keys) // WORTH_STORING:
            sequence = tables.commit.sequence
            (digest,) = self._reading.execute("SELECT record_hash FROM commits WHERE sequence = ?", (sequence,)).fetchone()
            store_tables(self._directory, tables, record_hash=digest.hex())
            self._stored_size = tables.commit.log_size

    def _snapshot(
        self, version: SnapshotVersion, tables: VersionTables, names: tuple[str, ...], search: SearchSettings, *, access: CommitRecord
    ) -> EmbeddedSnapshot:
        """Return a version, sharing everything with another that differs in its vectors only.

        Whatever changes a document or its access is an event, so the sizes of the log tell whether they are the same.
        """
        commit = version.commit
        if search.dense_index == "hnsw":
            import_usearch()
        access = max(commit, access, key=lambda each: each.sequence)
        key = (commit.log_size, access.log_size, names, search)
        like = self._made.get(key)
        if like is None:
            like = EmbeddedSnapshot(self._database, version=version, tables=tables, search=search, lock=self._lock, access=access)
        space = space_at(self._reading, commit.sequence) if commit.vectors else None
        files = [] if space is None else self._vector_files.of_space(self._reading, space[0])
        identity = None if space is None else space[1]
        graphs = self._graphs if search.dense_index == "hnsw" else None
        opened = self._made[key] = like.with_vectors(version, access=access, identity=identity, files=files, graphs=graphs)
        return opened

    @cached_property
    def _graphs(self) -> GraphFolder:
        return GraphFolder(self._directory)

    def _segment(self, name: str) -> Segment:
        """Open a segment once for all versions over it."""
        segment = self._segments.get(name)
        if segment is None:
            segment = self._segments[name] = Segment(self._directory / SEGMENTS_NAME / name)
            if segment.header.tokeniser != self._tokeniser:
                problem = f"it was indexed with '{segment.header.tokeniser}', and the settings say '{self._tokeniser}'"
                raise BaseDamagedError(f"segment '{segment.name}'", problem)
        return segment


def _version(found: tuple[CommitRecord, Sha256], *, access: CommitRecord, secret: bytes) -> SnapshotVersion:
    shown = public_commit(found[0], secret=secret)
    return SnapshotVersion(
        commit=found[0],
        commit_hash=found[1],
        public_commit=shown,
        public_hash=sha256_hex(encode_struct(shown)),
        access_state=EvidenceState(access.evidence_state),
    )


def _search_commits(
    database: sqlite3.Connection,
    corpus_version: CorpusVersion | None,
    evidence_state: EvidenceState | None,
    *,
    is_public: bool = False,
) -> tuple[CommitRecord, Sha256]:
    oldest, secret = None, schema.stored_secret(database)
    for record, record_hash in database.execute("SELECT record, record_hash FROM commits ORDER BY sequence DESC"):
        commit = schema.decode_commit(record)
        oldest = commit.oldest_readable if oldest is None else oldest
        names = [] if is_public else [(commit.corpus_version, commit.evidence_state)]
        names.append((keyed(commit.corpus_version, secret=secret), keyed(commit.evidence_state, secret=secret)))
        if any(_is_named(corpus, state, corpus_version, evidence_state) for corpus, state in names):
            if commit.sequence < oldest:
                raise VersionCollectedError(evidence_state or corpus_version or "")
            return commit, Sha256(record_hash.hex())
    if evidence_state is not None:
        raise NotFoundError("evidence_state", evidence_state)
    raise NotFoundError("corpus_version", corpus_version or "")


def _is_named(corpus: str, state: str, corpus_version: CorpusVersion | None, evidence_state: EvidenceState | None) -> bool:
    return corpus_version in (None, corpus) and evidence_state in (None, state)
