"""What verification reads: every stored byte that a hash speaks for, and faults of the storage itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np

from evidentia.backends.embedded.lexical.segments import Segment, hash_file
from evidentia.backends.embedded.records import attachments, schema
from evidentia.backends.embedded.records.commit_log import (
    TILE_SIZE,
    pack_tile,
    roots_hash,
    segments_hash,
    stored_contexts,
    stored_head,
    tile_levels,
    tile_root,
)
from evidentia.backends.embedded.records.database import SEGMENTS_NAME, open_for_reading, storage_errors
from evidentia.backends.embedded.records.head_signer import keys_hash, stored_signed_heads
from evidentia.backends.embedded.records.source_registry import source_faults
from evidentia.backends.embedded.stored_tables import TABLES_NAME, differs, stored_tables
from evidentia.backends.embedded.vectors.vector_arithmetic import content_mark, vector_hash
from evidentia.backends.embedded.vectors.vector_file import VECTORS_NAME, VectorFile, decode_identity
from evidentia.backends.embedded.vectors.vector_spaces import vector_files_hash
from evidentia.contracts.canonical import encode_struct
from evidentia.contracts.documents import StoredDocument
from evidentia.contracts.errors import BaseDamagedError, EvidentiaError
from evidentia.contracts.ids import DocumentId, Sha256, SourceId, chunk_id_of
from evidentia.contracts.ports import CustodyArchive, SupportsLayouts, SupportsSignedHeads, SupportsVectorCustody
from evidentia.contracts.provenance import BrokenLink, CommitRecord, SignedHead
from evidentia.contracts.vectors import StoredVector, VectorIdentity
from evidentia.provenance import merkle
from evidentia.provenance.signed_heads import public_commit

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from evidentia.contracts.layout import DocumentLayout


_VERSIONS = """SELECT v.document_id, v.source_id, v.metadata, a.rule, v.fingerprint, v.root_key, v.event_index, v.added_seq, v.removed_seq,
    r.revision_key, r.text_hash, r.custody, r.first_chunk, r.chunk_count, c.body
    FROM versions v LEFT JOIN revisions r USING (revision_key)
    LEFT JOIN access_rules a USING (access_key) LEFT JOIN contents c USING (text_hash)
    ORDER BY v.version_key"""
Message = TypeVar("Message", bound=msgspec.Struct)


class EmbeddedArchive(CustodyArchive, SupportsVectorCustody, SupportsLayouts, SupportsSignedHeads):
    """Implements `CustodyArchive` with vectors, layouts and signed heads over a snapshot of the base."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._database = open_for_reading(directory)
        self._database.execute("BEGIN")
        self._vectors = VectorArchive(self._database, directory) if schema.holds_vectors(self._database) else None

    def commits(self) -> Iterator[tuple[CommitRecord, Sha256]]:
        """Yield every commit record with its stored hash, oldest first."""
        with storage_errors(self._directory):
            for sequence, record, record_hash in self._database.execute(
                "SELECT sequence, record, record_hash FROM commits ORDER BY sequence"
            ):
                decoded = _decode(schema.decode_commit, record, where=f"commit {sequence}")
                if decoded.sequence != sequence:
                    raise BaseDamagedError(f"commit {sequence}", f"the record says that it is commit {decoded.sequence}")
                yield decoded, Sha256(record_hash.hex())

    def corpus_state(self) -> bytes:
        """Return the stored running sum of the newest version."""
        with storage_errors(self._directory):
            return stored_head(self._database)[2]

    def log_leaves(self, start: int, stop: int) -> Iterator[bytes]:
        """Yield the leaves of the event log as stored."""
        statement = "SELECT event_index, leaf FROM events WHERE event_index >= ? AND event_index < ? ORDER BY event_index"
        with storage_errors(self._directory):
            for expected, (index, leaf) in enumerate(self._database.execute(statement, (start, stop)), start=start):
                if index != expected:
                    raise BaseDamagedError(f"event {expected}", "the entry is missing")
                yield leaf

    def documents(self) -> Iterator[StoredDocument]:
        """Yield every stored version of every document with its chunks, ordered by key."""
        with storage_errors(self._directory):
            for row in self._database.execute(_VERSIONS):
                yield self._document(row)

    def storage_faults(self) -> Iterator[BrokenLink]:
        """Yield what is wrong below the level of records: pages, indexes, segment files."""
        with storage_errors(self._directory):
            for (message,) in self._database.execute("PRAGMA integrity_check(20)"):
                if message != "ok":
                    yield BrokenLink(check="database", where="evidentia.sqlite", problem=message)
            for problem in schema.schema_faults(self._database):
                yield BrokenLink(check="schema", where="evidentia.sqlite", problem=problem)
            yield from self._list_faults()
            yield from self._orphan_faults()
            yield from self._tile_faults()
            yield from self._segment_faults()
            yield from self._table_faults()
            if self._vectors is not None:
                yield from self._vectors.faults()

    def vector_space_periods(self) -> Sequence[tuple[int, int, VectorIdentity]]:
        """Return from which commit on which space is in force, oldest first."""
        with storage_errors(self._directory):
            return [] if self._vectors is None else self._vectors.space_periods()

    def vector_members(self) -> Iterator[StoredVector]:
        """Yield every stored vector once per version of its document."""
        with storage_errors(self._directory):
            if self._vectors is not None:
                yield from self._vectors.members()

    def vector_state(self) -> bytes:
        """Return the stored running sum behind the newest version's vectors."""
        with storage_errors(self._directory):
            return b"" if self._vectors is None else self._vectors.state()

    def signed_heads(self) -> Iterator[SignedHead]:
        """Yield the signed heads, oldest first."""
        with storage_errors(self._directory):
            yield from stored_signed_heads(self._database)

    def public_commit(self, record: CommitRecord) -> CommitRecord:
        """Return a commit record as everybody but the owner sees it."""
        with storage_errors(self._directory):
            return public_commit(record, secret=schema.stored_secret(self._database))

    def layout(self, document_id: DocumentId) -> DocumentLayout | None:
        """Return the layout of a live document; None where it has none."""
        with storage_errors(self._directory):
            return attachments.live_layout(self._database, document_id)

    def attachment(self, content_hash: Sha256) -> bytes | None:
        """Return what has this hash; None where nothing has."""
        with storage_errors(self._directory):
            return schema.attachment(self._database, content_hash)

    def close(self) -> None:
        """Let go of the snapshot."""
        self._database.close()

    def _document(self, row: tuple[Any, ...]) -> StoredDocument:  # a row's columns have the types of schema.py
        (
            document_id, source_id, metadata, rule, fingerprint, root_key, event_index, added, removed,
            revision_key, text_hash, custody, first_chunk, chunk_count, body,
        ) = row  # fmt: skip
        where = f"document '{document_id}'"
        for part, name in ((rule, "access rule"), (custody, "custody"), (body, "text")):
            if part is None:
                raise BaseDamagedError(where, f"its {name} is missing")
        name = DocumentId(str(document_id))
        statement = f"SELECT revision_key, {schema.CHUNK_COLUMNS} FROM chunks WHERE chunk_key >= ? AND chunk_key < ? ORDER BY chunk_key"
        stored = self._database.execute(statement, (first_chunk, first_chunk + chunk_count)).fetchall()
        if len(stored) != chunk_count or any(chunk[0] != revision_key for chunk in stored):
            raise BaseDamagedError(where, "its chunks are not all there")
        return StoredDocument(
            document_id=name,
            source_id=SourceId(str(source_id)),
            text=body,
            text_hash=Sha256(text_hash.hex()),
            custody=_decode(schema.decode_custody, custody, where=where),
            metadata=_decode(schema.decode_metadata, metadata, where=where),
            access=_decode(schema.decode_access, rule, where=where),
            chunks=tuple(schema.chunk_from_row(chunk[1:], name) for chunk in stored),
            event_indexes=tuple(chunk[-1] for chunk in stored),
            fingerprint=Sha256(fingerprint.hex()),
            version_event=event_index,
            root=root_key,
            added_at=added,
            removed_at=removed,
        )

    def _list_faults(self) -> Iterator[BrokenLink]:
        head = stored_head(self._database)[0]
        for name, stored, found in (
            ("segments", head.segments_hash, segments_hash(self._database)),
            ("roots", head.roots_hash, roots_hash(self._database)),
            ("signing keys", head.keys_hash, keys_hash(self._database)),
            ("contexts", head.contexts, stored_contexts(self._database)),
            ("vector files", head.vector_files_hash, "" if self._vectors is None else vector_files_hash(self._database)),
        ):
            if stored != found:
                yield BrokenLink(check="commit", where=name, problem="the list is not the one the newest commit names")
        for where, problem in source_faults(self._database, self.commits()):
            yield BrokenLink(check="commit", where=where, problem=problem)

    def _orphan_faults(self) -> Iterator[BrokenLink]:
        """Rows that nothing refers to would escape every other check."""
        for table, problem, statement in _ORPHANS:
            (count,) = self._database.execute(statement).fetchone()
            if count:
                yield BrokenLink(check="records", where=table, problem=f"{count} {problem}")
        unnamed = len(attachments.unnamed(self._database))
        if unnamed:
            yield BrokenLink(check="records", where="attachments", problem=f"{unnamed} images, tables or layouts belong to no document")
        (events,) = self._database.execute("SELECT count(*) FROM events").fetchone()
        expected = stored_head(self._database)[0].log_size
        if events != expected:
            yield BrokenLink(check="event log", where="events", problem=f"there are {events} entries instead of {expected}")

    def _tile_faults(self) -> Iterator[BrokenLink]:
        entries, expected = stored_head(self._database)[0].log_size, 0
        while entries >= TILE_SIZE:
            entries //= TILE_SIZE
            expected += entries
        (found,) = self._database.execute("SELECT count(*) FROM log_tiles").fetchone()
        if found != expected:
            yield BrokenLink(check="event log", where="tiles", problem=f"there are {found} stored tiles instead of {expected}")
            return
        for level, tile, nodes in self._database.execute("SELECT level, tile, nodes FROM log_tiles ORDER BY level, tile"):
            recomputed = tile_levels(self._tile_entries(level, tile))
            if pack_tile(recomputed) != nodes:
                yield BrokenLink(
                    check="event log", where=f"tile {tile} of level {level}", problem="the stored hashes do not follow from the log"
                )

    def _tile_entries(self, level: int, tile: int) -> list[bytes]:
        if level == 0:
            return [merkle.leaf_hash(leaf) for leaf in self.log_leaves(tile * TILE_SIZE, (tile + 1) * TILE_SIZE)]
        statement = "SELECT nodes FROM log_tiles WHERE level = ? AND tile >= ? AND tile < ? ORDER BY tile"
        below = self._database.execute(statement, (level - 1, tile * TILE_SIZE, (tile + 1) * TILE_SIZE))
        return [tile_root(nodes) for (nodes,) in below]

    def _segment_faults(self) -> Iterator[BrokenLink]:
        for key, name, file_hash, byte_count, chunk_count in self._database.execute(
            "SELECT * FROM segments ORDER BY segment_key"
        ).fetchall():
            path = self._directory / SEGMENTS_NAME / name
            where = f"segment '{name}'"
            if not path.is_file():
                yield BrokenLink(check="segment", where=where, problem="the file is missing")
            elif path.stat().st_size != byte_count or hash_file(path) != file_hash:
                yield BrokenLink(check="segment", where=where, problem="the file is not the one that was committed")
            elif not self._has_its_chunks(Segment(path), key=key, count=chunk_count):
                yield BrokenLink(check="segment", where=where, problem="its chunks are not those that the database places there")

    def _table_faults(self) -> Iterator[BrokenLink]:
        """Compare the tables that a search opens with what the database says; a file that a search would not use is no fault."""
        stored = stored_tables(self._directory, self._database, stored_head(self._database)[0])
        try:
            is_wrong = stored is not None and differs(stored, self._database)
        except (EvidentiaError, msgspec.MsgspecError, LookupError, ValueError):  # the database itself is damaged, which others say better
            is_wrong = True
        if is_wrong:
            problem = f"they differ from the database; delete the folder '{TABLES_NAME}'"
            yield BrokenLink(check="tables", where=f"'{TABLES_NAME}'", problem=problem)

    def _has_its_chunks(self, segment: Segment, *, key: int, count: int) -> bool:
        placed = self._database.execute("SELECT chunk_key, ordinal FROM chunks WHERE segment_key = ? ORDER BY chunk_key", (key,)).fetchall()
        if not placed:
            return count == segment.header.chunk_count
        keys, ordinals = np.asarray(placed, dtype=np.int64).T
        stored = segment.array("chunk_keys")
        is_inside = bool((ordinals >= 0).all() and (ordinals < len(stored)).all())
        return is_inside and count == segment.header.chunk_count and bool((stored[ordinals] == keys).all())


_ORPHANS = (
    ("contents", "texts belong to no document", "SELECT count(*) FROM contents WHERE text_hash NOT IN (SELECT text_hash FROM revisions)"),
    (
        "revisions",
        "revisions belong to no version",
        "SELECT count(*) FROM revisions WHERE revision_key NOT IN (SELECT revision_key FROM versions)",
    ),
    (
        "chunks",
        "chunks belong to no revision",
        "SELECT count(*) FROM chunks WHERE revision_key NOT IN (SELECT revision_key FROM revisions)",
    ),
    ("chunks", "chunks are in no segment", "SELECT count(*) FROM chunks WHERE segment_key NOT IN (SELECT segment_key FROM segments)"),
    (
        "access_rules",
        "access rules belong to no version",
        "SELECT count(*) FROM access_rules WHERE access_key NOT IN (SELECT access_key FROM versions)",
    ),
    (
        "chunks",
        "chunks are too many",
        "SELECT max(0, (SELECT count(*) FROM chunks) - (SELECT coalesce(sum(chunk_count), 0) FROM revisions))",
    ),
)


def _decode(decoder: Callable[[bytes], Message], stored: bytes, *, where: str) -> Message:
    """Decode a stored record, refusing one that is not, byte for byte, what would be stored."""
    try:
        message = decoder(stored)
    except (msgspec.MsgspecError, ValueError) as error:
        raise BaseDamagedError(where, f"the record cannot be read ({error})") from error
    if schema.encode(message) != stored:
        raise BaseDamagedError(where, "the record is not in its canonical form")
    return message


# --- vector archive ---
# What verification reads of the vectors: every stored row, what the files hold for it, and faults of the files themselves.

_MEMBERS = """SELECT x.space_key, v.document_id, c.position, c.content_hash, x.vector_hash, max(x.added_seq, v.added_seq), v.removed_seq
    FROM versions v JOIN revisions r USING (revision_key)
    JOIN chunks c ON c.chunk_key >= r.first_chunk AND c.chunk_key < r.first_chunk + r.chunk_count
    JOIN vectors x ON x.chunk_key = c.chunk_key AND x.space_key = ? ORDER BY v.version_key"""
_VECTOR_ARCHIVE_ORPHANS = (
    ("vectors belong to no chunk", "SELECT count(*) FROM vectors WHERE chunk_key NOT IN (SELECT chunk_key FROM chunks)"),
    ("vectors belong to no space", "SELECT count(*) FROM vectors WHERE space_key NOT IN (SELECT space_key FROM vector_spaces)"),
    ("vector files belong to no space", "SELECT count(*) FROM vector_files WHERE space_key NOT IN (SELECT space_key FROM vector_spaces)"),
    ("spaces are never in force", "SELECT count(*) FROM vector_spaces WHERE space_key NOT IN (SELECT space_key FROM vector_reigns)"),
)


class VectorArchive:
    """Reads the vectors of a base in the transaction of its archive."""

    def __init__(self, database: sqlite3.Connection, directory: Path) -> None:
        self._database = database
        self._directory = directory / VECTORS_NAME

    def space_periods(self) -> list[tuple[int, int, VectorIdentity]]:
        """Return from which commit on which space is in force, oldest first."""
        found = self._database.execute(
            """SELECT r.sequence, r.space_key, s.identity FROM vector_reigns r LEFT JOIN vector_spaces s USING (space_key)
            ORDER BY r.sequence"""
        ).fetchall()
        return [(sequence, space_key, _identity(identity, where=f"space {space_key}")) for sequence, space_key, identity in found]

    def members(self) -> Iterator[StoredVector]:
        """Yield every stored vector once per version of its document."""
        for (space,) in self._database.execute("SELECT space_key FROM vector_spaces ORDER BY space_key").fetchall():
            for key, document_id, position, content_hash, digest, added, removed in self._database.execute(_MEMBERS, (space,)):
                chunk_id = chunk_id_of(DocumentId(document_id), position=position, content_hash=Sha256(content_hash.hex()))
                yield StoredVector(space=key, chunk_id=chunk_id, vector_hash=Sha256(digest.hex()), added_at=added, removed_at=removed)

    def state(self) -> bytes:
        """Return the stored running sum, which the newest period alone keeps."""
        found = self._database.execute("SELECT set_state FROM vector_reigns ORDER BY sequence DESC").fetchall()
        if any(state is not None for (state,) in found[1:]):
            raise BaseDamagedError("vector state", "more than one space has a running sum")
        return b"" if not found else found[0][0] or b""

    def faults(self) -> Iterator[BrokenLink]:
        """Yield what is wrong with files and rows."""
        for problem, statement in _VECTOR_ARCHIVE_ORPHANS:
            (count,) = self._database.execute(statement).fetchone()
            if count:
                yield BrokenLink(check="vectors", where="records", problem=f"{count} {problem}")
        statement = "SELECT v.chunk_key, v.content_mark, c.content_hash FROM vectors v JOIN chunks c USING (chunk_key)"
        for key, mark, content_hash in self._database.execute(statement):
            if content_mark(content_hash) != mark:
                yield BrokenLink(check="vectors", where=f"chunk {key}", problem="its vector is kept under another text's hash")
        held: dict[int, int] = {}
        for space, name, file_hash, size, count in self._database.execute(
            "SELECT space_key, name, file_hash, byte_count, row_count FROM vector_files ORDER BY file_key"
        ).fetchall():
            problem = self._file_problem(name, space=space, file_hash=file_hash, size=size, count=count)
            if problem:
                yield BrokenLink(check="vectors", where=f"vector file '{name}'", problem=problem)
            held[space] = held.get(space, 0) + count
        stored = dict(self._database.execute("SELECT space_key, count(*) FROM vectors GROUP BY space_key"))
        if stored != held:
            yield BrokenLink(check="vectors", where="vector files", problem="they do not hold as many vectors as the database names")

    def _file_problem(self, name: str, *, space: int, file_hash: bytes, size: int, count: int) -> str:
        path = self._directory / name
        if not path.is_file():
            return "the file is missing"
        if path.stat().st_size != size or hash_file(path) != file_hash:
            return "the file is not the one that was committed"
        file = VectorFile(path)
        if file.count != count or bool((np.diff(file.chunk_keys) <= 0).any()):
            return "it does not hold the rows that it should"
        return self._row_problem(file, space=space)

    def _row_problem(self, file: VectorFile, *, space: int) -> str:
        """Compare each row with the database, and the copy that is searched with the one that is read."""
        statement = "SELECT chunk_key, added_seq, vector_hash FROM vectors WHERE space_key = ? AND chunk_key BETWEEN ? AND ?"
        for part in file.stretches():
            keys = file.chunk_keys[part].tolist()
            found = {row[0]: row[1:] for row in self._database.execute(statement, (space, keys[0], keys[-1]))}
            vectors = file.rows(part).join()
            for key, added, vector in zip(keys, file.added[part].tolist(), vectors, strict=True):
                if found.get(key) != (added, bytes.fromhex(vector_hash(vector))):
                    return f"the vector of chunk {key} is not the one that was committed"
            if not np.array_equal(file.scan[:, part].T, file.high[part]):
                return "the rows that are searched are not those that are read"
        return ""


def _identity(stored: bytes | None, *, where: str) -> VectorIdentity:
    if stored is None:
        raise BaseDamagedError(where, "it is in force and not described")
    identity = decode_identity(stored)
    if encode_struct(identity) != stored:
        raise BaseDamagedError(where, "the record is not in its canonical form")
    return identity
