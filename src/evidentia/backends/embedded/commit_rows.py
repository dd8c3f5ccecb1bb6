"""One commit in the making: which rows, events and corpus members a set of changes comes to.

Keys are handed out from the end of each table, so that the chunks of a revision are consecutive and need no index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.backends.embedded import attachments, live, rows
from evidentia.contracts.canonical import sha256_hex
from evidentia.contracts.provenance import IngestEvent
from evidentia.contracts.vocabulary import EventKind
from evidentia.provenance.corpus import member_bytes

if TYPE_CHECKING:
    import sqlite3
    from datetime import datetime

    from evidentia.backends.embedded.live import LiveVersion
    from evidentia.contracts.access import AccessRule
    from evidentia.contracts.documents import PreparedDocument
    from evidentia.contracts.ids import DocumentId, SourceId
    from evidentia.contracts.ports import Entropy

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
        self._next_revision = _next_key(database, "revisions", "revision_key")
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
        self.new_chunk_keys: list[int] = []
        self.counts = {"added": 0, "changed": 0, "removed": 0, "access_changed": 0}

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing would change."""
        return not self.leaves

    def put(self, document: PreparedDocument, current: LiveVersion | None) -> None:
        """Add a document, or replace its live version; text that stays is not stored or indexed again."""
        attachments.check_complete(document)
        marks = tuple((chunk.chunk_id, chunk.content_hash) for chunk in document.chunks)
        access_key, access_hash = self._access(document.access)
        metadata = rows.encode(document.metadata)
        root_key = self._root(document.root)
        fingerprint = bytes.fromhex(document.fingerprint)
        has_same_text = (
            current is not None and current.text_hash.hex() == document.text_hash and live.chunk_marks(self._database, current) == marks
        )
        first_event = self._next_event
        if current is not None:
            self._end(current)
        if current is not None and has_same_text:
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
        self.members_in.append(live.member_of(self._database, current, rule=self._rules[access_key]))
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
        self._revisions.append((revision_key, text_hash, rows.encode(document.custody), self._next_chunk, len(document.chunks)))
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
        self.members_out.append(live.member_of(self._database, current, rule=self._rules[current.access_key]))

    def _drop_vectors(self, ended: LiveVersion | None) -> None:
        """Count out the vectors of chunks that are no longer live; a text that stays keeps them."""
        if ended is not None:
            self.vectors_out += live.vector_members(self._database, ended, space_key=self._space_key)

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
        self.leaves.append(rows.encode(event))

    def _access(self, access: AccessRule) -> tuple[int, str]:
        known = self._encoded_access.get(access)
        if known is not None:
            return known
        rule = rows.encode(access)
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
