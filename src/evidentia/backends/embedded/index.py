"""Opens snapshots of an embedded base and keeps the last few."""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from evidentia.backends.embedded.lexical.segments import Segment
from evidentia.backends.embedded.records import schema
from evidentia.backends.embedded.records.database import SEGMENTS_NAME, open_for_searching, storage_errors
from evidentia.backends.embedded.records.document_table import record_of
from evidentia.backends.embedded.records.head_signer import stored_secret
from evidentia.backends.embedded.snapshot import EmbeddedSnapshot
from evidentia.backends.embedded.vectors.hnsw import GraphFolder, import_usearch
from evidentia.backends.embedded.vectors.vector_file import OpenFiles
from evidentia.backends.embedded.vectors.vector_spaces import space_at
from evidentia.contracts.canonical import encode_struct, sha256_hex
from evidentia.contracts.errors import BaseDamagedError, NotFoundError, VersionCollectedError
from evidentia.contracts.ids import CorpusVersion, DocumentId, EvidenceState, Sha256
from evidentia.contracts.ports import EvidenceIndex
from evidentia.contracts.predicates import matches
from evidentia.contracts.search import AccessScope, SnapshotVersion
from evidentia.contracts.settings import SearchSettings
from evidentia.foundation.lru import LruCache
from evidentia.policy.access import is_allowed
from evidentia.provenance.signed_heads import keyed, public_commit

if TYPE_CHECKING:
    from pathlib import Path

    from evidentia.contracts.provenance import CommitRecord

_CorpusKey = tuple[int, int, tuple[str, ...], SearchSettings]

KEPT_SNAPSHOTS = 4
_ATTEMPTS = 3
_LAST_RULE = """SELECT v.metadata, a.rule FROM versions v JOIN access_rules a USING (access_key)
    WHERE v.document_id = ? ORDER BY v.version_key DESC LIMIT 1"""


class EmbeddedIndex(EvidenceIndex):
    """Implements `EvidenceIndex`. Thread safe."""

    def __init__(self, directory: Path, *, tokeniser: str) -> None:
        self._directory = directory
        self._tokeniser = tokeniser
        # One lock for the connection, which snapshots share: reentrant, because a snapshot that is being made asks through it as well.
        self._lock = threading.RLock()
        self._database = open_for_searching(directory)
        self._snapshots: LruCache[tuple[int, int, SearchSettings], EmbeddedSnapshot] = LruCache(KEPT_SNAPSHOTS)
        self._loaded: WeakValueDictionary[_CorpusKey, EmbeddedSnapshot] = WeakValueDictionary()
        self._newest: tuple[int, tuple[CommitRecord, Sha256]] | None = None
        self._vector_files = OpenFiles(directory)

    def at(
        self,
        *,
        search: SearchSettings,
        corpus_version: CorpusVersion | None = None,
        evidence_state: EvidenceState | None = None,
        access_state: EvidenceState | None = None,
        is_public: bool = False,
    ) -> EmbeddedSnapshot:
        """Return the newest version with these hashes, scored as `search` says; without hashes, the newest of all.

        What it shows is what its own access rules and those of `access_state` (the newest version by default) both allow. With
        `is_public` the hashes have to be those that everybody but the owner sees.
        """
        with self._lock, storage_errors(self._directory):
            commit, commit_hash = found = self._find(corpus_version, evidence_state, is_public=is_public)
            is_newest = corpus_version is None and evidence_state is None
            access = (found if is_newest and access_state is None else self._find(None, access_state))[0]
            key = (commit.sequence, max(commit.sequence, access.sequence), search)
            kept = self._snapshots.get(key)
            if kept is None:
                shown = public_commit(commit, secret=stored_secret(self._database))
                version = SnapshotVersion(
                    commit=commit,
                    commit_hash=commit_hash,
                    public_commit=shown,
                    public_hash=sha256_hex(encode_struct(shown)),
                    access_state=EvidenceState(access.evidence_state),
                )
                kept = self._open(version, search, access=access)
                self._snapshots.put(key, kept)
            return kept

    def visibility(self, document_id: DocumentId, *, scope: AccessScope, evidence_state: EvidenceState | None = None) -> bool | None:
        """Tell whether a scope shows a document in a version, else by the last rule it had; None when there is no such document."""
        if evidence_state is not None:
            snapshot = self.at(search=SearchSettings(), evidence_state=evidence_state, access_state=evidence_state)
            return snapshot.shows(document_id, scope=scope)
        with self._lock, storage_errors(self._directory):
            row = self._database.execute(_LAST_RULE, (document_id,)).fetchone()
        if row is None:
            return None
        metadata, rule = row
        record = record_of(document_id, metadata, rule)
        return is_allowed(schema.decode_access(rule), scope) and all(matches(each, record) for each in scope.rules)

    def close(self) -> None:
        """Give back what is held."""
        with self._lock:
            self._snapshots.clear()
            self._database.close()

    def _find(
        self, corpus_version: CorpusVersion | None, evidence_state: EvidenceState | None, *, is_public: bool = False
    ) -> tuple[CommitRecord, Sha256]:
        if corpus_version is None and evidence_state is None:
            return self._newest_commit()
        return self._search_commits(corpus_version, evidence_state, is_public=is_public)

    def _newest_commit(self) -> tuple[CommitRecord, Sha256]:
        """Return the newest version; as long as nobody has written, it is the one that was read last."""
        # Changes with every commit of another connection, and costs no read of the file.
        (written,) = self._database.execute("PRAGMA data_version").fetchone()
        if self._newest is None or self._newest[0] != written:
            self._newest = (written, self._search_commits(None, None))
        return self._newest[1]

    def _search_commits(
        self, corpus_version: CorpusVersion | None, evidence_state: EvidenceState | None, *, is_public: bool = False
    ) -> tuple[CommitRecord, Sha256]:
        oldest, secret = None, stored_secret(self._database)
        for record, record_hash in self._database.execute("SELECT record, record_hash FROM commits ORDER BY sequence DESC"):
            commit = schema.decode_commit(record)
            oldest = commit.oldest_readable if oldest is None else oldest
            names = [] if is_public else [(commit.corpus_version, commit.evidence_state)]
            names.append((keyed(commit.corpus_version, secret=secret), keyed(commit.evidence_state, secret=secret)))
            if any(corpus_version in (None, corpus) and evidence_state in (None, state) for corpus, state in names):
                if commit.sequence < oldest:
                    raise VersionCollectedError(evidence_state or corpus_version or "")
                return commit, Sha256(record_hash.hex())
        if evidence_state is not None:
            raise NotFoundError("evidence_state", evidence_state)
        raise NotFoundError("corpus_version", corpus_version or "")

    def _open(self, version: SnapshotVersion, search: SearchSettings, *, access: CommitRecord) -> EmbeddedSnapshot:
        """Open the segments that are named now; a collection may just be replacing them, so look again."""
        if search.dense_index == "hnsw":
            import_usearch()
        for attempt in range(_ATTEMPTS):
            names = tuple(name for (name,) in self._database.execute("SELECT name FROM segments ORDER BY segment_key"))
            try:
                return self._over(names, version, search, access=access)
            except BaseDamagedError:
                if attempt + 1 == _ATTEMPTS:
                    raise
        raise AssertionError  # the loop returns or raises

    def _over(self, names: tuple[str, ...], version: SnapshotVersion, search: SearchSettings, *, access: CommitRecord) -> EmbeddedSnapshot:
        """Return a version over these segments, sharing what is loaded for another that differs in its vectors only.

        Whatever changes a document or its access is an event, so the sizes of the log tell whether they are the same.
        """
        commit = version.commit
        access_at = max(commit.sequence, access.sequence)
        key = (commit.log_size, max(commit.log_size, access.log_size), names, search)
        like = self._loaded.get(key)
        if like is None:
            segments = [Segment(self._directory / SEGMENTS_NAME / name) for name in names]
            self._refuse_other_terms(segments)
            like = EmbeddedSnapshot(self._database, version=version, segments=segments, search=search, lock=self._lock, access_at=access_at)
        space = space_at(self._database, commit.sequence) if commit.vectors else None
        files = [] if space is None else self._vector_files.of_space(self._database, space[0])
        identity = None if space is None else space[1]
        graphs = self._graphs if search.dense_index == "hnsw" else None
        opened = self._loaded[key] = like.with_vectors(version, access_at=access_at, identity=identity, files=files, graphs=graphs)
        return opened

    @cached_property
    def _graphs(self) -> GraphFolder:
        return GraphFolder(self._directory)

    def _refuse_other_terms(self, segments: list[Segment]) -> None:
        for segment in segments:
            if segment.header.tokeniser != self._tokeniser:
                problem = f"it was indexed with '{segment.header.tokeniser}', and the settings say '{self._tokeniser}'"
                raise BaseDamagedError(f"segment '{segment.name}'", problem)
