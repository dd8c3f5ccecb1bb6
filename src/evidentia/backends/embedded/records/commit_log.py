"""The event log and the commit records in SQLite: leaves as rows, the hashes above them in tiles of 256, and the seal of each commit.

A full tile is stored once with the eight levels of nodes above its 256 entries, so that a proof reads a few rows and
hashes almost nothing; the tile that is still filling is computed from its leaves.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from evidentia.backends.embedded.records import schema
from evidentia.backends.embedded.records.head_signer import HeadSigner, keys_hash
from evidentia.backends.embedded.records.source_registry import sources_hash, stored_descriptors
from evidentia.backends.embedded.vectors.vector_spaces import vector_files_hash
from evidentia.contracts.canonical import encode_record, encode_struct, sha256_hex
from evidentia.contracts.errors import BaseDamagedError
from evidentia.contracts.ids import DocumentId, Sha256
from evidentia.contracts.provenance import CommitRecord, ConsistencyProof, InclusionProof
from evidentia.provenance import merkle
from evidentia.provenance.corpus_hash import CorpusState, contexts_version, evidence_state

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from datetime import datetime

    from evidentia.contracts.ports import Clock, Entropy


TILE_LEVELS = 8
TILE_SIZE = 1 << TILE_LEVELS
_LEVEL_STARTS = tuple((2 * TILE_SIZE - (2 * TILE_SIZE >> level)) * merkle.HASH_SIZE for level in range(TILE_LEVELS))
"""Where each level begins in a stored tile."""
_BESIDE = tuple(
    tuple(
        slice(start, start + merkle.HASH_SIZE)
        for start in (first + ((entry >> level) ^ 1) * merkle.HASH_SIZE for level, first in enumerate(_LEVEL_STARTS))
    )
    for entry in range(TILE_SIZE)
)
"""Where the nodes beside each entry's path stand in a stored tile."""
_CACHED_TILES = 2048
_CACHED_PATHS = 4096


class EventLogReader:
    """Nodes and proofs of the log as it stood at `size` leaves."""

    def __init__(self, database: sqlite3.Connection, *, size: int) -> None:
        self._database = database
        self.size = size
        self._tile = lru_cache(maxsize=_CACHED_TILES)(self._load_tile)
        self._written_edge = lru_cache(maxsize=_CACHED_TILES)(self._write_edge)
        self._path_above = lru_cache(maxsize=_CACHED_PATHS)(self._find_path_above)

    def node(self, level: int, index: int) -> bytes:
        """Return the hash of the complete subtree of 2**level leaves that starts at leaf index * 2**level."""
        tile_level, inner = divmod(level, TILE_LEVELS)
        tile, entry = divmod(index << inner, TILE_SIZE)
        start = _LEVEL_STARTS[inner] + (entry >> inner) * merkle.HASH_SIZE
        return self._tile(tile_level, tile)[start : start + merkle.HASH_SIZE]

    def root(self) -> bytes:
        """Return the root over all leaves."""
        return merkle.range_root(0, self.size, complete=self.node)

    def inclusion(self, index: int) -> InclusionProof:
        """Return the proof that leaf `index` is in the log."""
        tile, inner = divmod(index, TILE_SIZE)
        if (tile + 1) << TILE_LEVELS > self.size:  # in the tile that is still filling
            path = self._path(index, first_level=0)
        else:
            beside = b"".join(map(self._tile(0, tile).__getitem__, _BESIDE[inner]))
            path = (*cast("list[Sha256]", beside.hex(" ", merkle.HASH_SIZE).split(" ")), *self._path_above(tile))
        return InclusionProof(leaf_index=index, tree_size=self.size, hashes=path, root=self._written_edge(0))

    def consistency(self, first_size: int) -> ConsistencyProof:
        """Return the proof that the log of `first_size` leaves is a prefix of this one."""
        path = merkle.consistency_path(first_size, self.size, complete=self.node)
        first_root = merkle.range_root(0, first_size, complete=self.node)
        return ConsistencyProof(
            first_size=first_size,
            second_size=self.size,
            hashes=_hex(path),
            first_root=Sha256(first_root.hex()),
            second_root=Sha256(self.root().hex()),
        )

    def _path(self, index: int, *, first_level: int) -> tuple[Sha256, ...]:
        return merkle.inclusion_path(index, self.size, complete=self._written_node, ragged=self._written_edge, first_level=first_level)

    def _find_path_above(self, tile: int) -> tuple[Sha256, ...]:
        """Return the part of the path that all leaves of a full tile share."""
        return self._path(tile << TILE_LEVELS, first_level=TILE_LEVELS)

    def _written_node(self, level: int, index: int) -> Sha256:
        return Sha256(self.node(level, index).hex())

    def _write_edge(self, start: int) -> Sha256:
        return Sha256(merkle.range_root(start, self.size, complete=self.node).hex())

    def _load_tile(self, level: int, tile: int) -> bytes:
        row = self._database.execute("SELECT nodes FROM log_tiles WHERE level = ? AND tile = ?", (level, tile)).fetchone()
        return bytes(row[0]) if row is not None else pack_tile(tile_levels(self._entries(level, tile)))

    def _entries(self, level: int, tile: int) -> list[bytes]:
        start = tile << TILE_LEVELS
        stop = min(start + TILE_SIZE, self.size >> (level * TILE_LEVELS))
        if level == 0:
            rows = self._database.execute(
                "SELECT leaf FROM events WHERE event_index >= ? AND event_index < ? ORDER BY event_index", (start, stop)
            )
            return [merkle.leaf_hash(leaf) for (leaf,) in rows]
        return [tile_root(self._tile(level - 1, index)) for index in range(start, stop)]


class EventLogWriter:
    """Appends leaves; what it wrote is part of the caller's transaction."""

    def __init__(self, database: sqlite3.Connection, *, size: int) -> None:
        self._database = database
        reader = EventLogReader(database, size=size)
        self.size = size
        self._filling: list[list[bytes]] = []
        for level in range(_height(size)):
            complete = size >> (level * TILE_LEVELS)
            start = complete & ~(TILE_SIZE - 1)
            self._filling.append([reader.node(level * TILE_LEVELS, index) for index in range(start, complete)])

    def append(self, leaves: Sequence[bytes]) -> None:
        """Add leaves at the end; their rows and every tile they complete are written."""
        self._database.executemany("INSERT INTO events VALUES (?, ?)", enumerate(leaves, start=self.size))
        hashes = [merkle.leaf_hash(leaf) for leaf in leaves]
        completed: list[tuple[int, int, bytes]] = []
        self._extend(0, hashes, first=self.size, completed=completed)
        self._database.executemany("INSERT INTO log_tiles VALUES (?, ?, ?)", completed)
        self.size += len(leaves)

    def _extend(self, level: int, entries: Sequence[bytes], *, first: int, completed: list[tuple[int, int, bytes]]) -> None:
        while len(self._filling) <= level:
            self._filling.append([])
        filling = self._filling[level]
        filling.extend(entries)
        tile = (first + len(entries) - len(filling)) >> TILE_LEVELS
        parents: list[bytes] = []
        first_parent = tile
        while len(filling) >= TILE_SIZE:
            levels = tile_levels(filling[:TILE_SIZE])
            completed.append((level, tile, pack_tile(levels)))
            parents.append(merkle.node_hash(*levels[TILE_LEVELS - 1]))
            del filling[:TILE_SIZE]
            tile += 1
        if parents:
            self._extend(level + 1, parents, first=first_parent, completed=completed)


def tile_levels(entries: Sequence[bytes]) -> list[Sequence[bytes]]:
    """Return the complete nodes above a tile's entries, the entries first, up to the two children of its root."""
    levels = [entries]
    for _ in range(TILE_LEVELS - 1):
        levels.append(merkle.pair_level(levels[-1]))
    return levels


def pack_tile(levels: Sequence[Sequence[bytes]]) -> bytes:
    """Return a tile as stored: its levels one after the other, entries first, each at its place also where it is not full."""
    return b"".join(b"".join(nodes).ljust((TILE_SIZE >> level) * merkle.HASH_SIZE, b"\0") for level, nodes in enumerate(levels))


def tile_root(nodes: bytes) -> bytes:
    """Return the root of a full tile, from the two children that it stores last."""
    return merkle.node_hash(nodes[-2 * merkle.HASH_SIZE : -merkle.HASH_SIZE], nodes[-merkle.HASH_SIZE :])


def _height(size: int) -> int:
    height = 0
    while size:
        size >>= TILE_LEVELS
        height += 1
    return height


def _hex(hashes: Sequence[bytes]) -> tuple[Sha256, ...]:
    return tuple(Sha256(each.hex()) for each in hashes)


# --- seal ---
# Commit records in the database: the first one of a new base, the newest one, and the next one.

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
    return schema.decode_commit(record), Sha256(record_hash.hex()), state


def seal(
    database: sqlite3.Connection, *, signer: HeadSigner, parent: CommitRecord, parent_hash: Sha256, log_size: int, corpus: CorpusState,
    vectors: str, now: datetime, oldest_readable: int | None = None,
) -> tuple[CommitRecord, Sha256]:  # fmt: skip
    """Write the record of the transaction that is open, over everything the transaction has written, and sign its head."""
    signer.prepare(database, base_id=parent.base_id, sequence=parent.sequence + 1)
    sources, contexts = sources_hash(stored_descriptors(database)), stored_contexts(database)
    record = CommitRecord(
        sequence=parent.sequence + 1,
        parent=parent_hash,
        base_id=parent.base_id,
        committed_at=now,
        corpus_version=corpus.version,
        evidence_state=evidence_state(corpus.version, sources=sources, vectors=vectors, contexts=contexts),
        log_size=log_size,
        log_root=Sha256(EventLogReader(database, size=log_size).root().hex()),
        oldest_readable=parent.oldest_readable if oldest_readable is None else oldest_readable,
        segments_hash=segments_hash(database),
        sources_hash=sources,
        roots_hash=roots_hash(database),
        vectors=vectors,
        vector_files_hash=vector_files_hash(database),
        keys_hash=keys_hash(database),
        contexts=contexts,
    )
    signer.sign(database, record)
    return record, insert_record(database, record, state=corpus.state)


def insert_record(database: sqlite3.Connection, record: CommitRecord, *, state: bytes) -> Sha256:
    """Store a record; only the newest keeps its corpus state, which is all the next one needs."""
    encoded = encode_struct(record)
    digest = hashlib.sha256(encoded).digest()
    database.execute("UPDATE commits SET corpus_state = NULL WHERE corpus_state IS NOT NULL")
    database.execute("INSERT INTO commits VALUES (?, ?, ?, ?)", (record.sequence, encoded, digest, state))
    return Sha256(digest.hex())


def stored_contexts(database: sqlite3.Connection) -> str:
    """Return what the commit record says of the contexts of live documents; nothing where none of them is indexed with its context.

    A base that was made with contexts reads nothing for it; in an older one it takes time by the documents that have none.
    """
    since, form = schema.context_form(database)
    (is_older,) = database.execute(_HAS_OLDER_REVISIONS, (since,)).fetchone()
    without = [DocumentId(each) for (each,) in database.execute(_WITHOUT_CONTEXT, (since,))] if is_older else []
    (live,) = database.execute(_LIVE_DOCUMENTS).fetchone() if without else database.execute(_HAS_LIVE_DOCUMENTS).fetchone()
    return "" if len(without) == live else contexts_version(form, without=without)


_HAS_OLDER_REVISIONS = "SELECT EXISTS (SELECT 1 FROM revisions WHERE revision_key < ?)"
_WITHOUT_CONTEXT = "SELECT document_id FROM versions WHERE removed_seq IS NULL AND revision_key < ?"
_LIVE_DOCUMENTS = "SELECT count(*) FROM versions WHERE removed_seq IS NULL"
_HAS_LIVE_DOCUMENTS = "SELECT EXISTS (SELECT 1 FROM versions WHERE removed_seq IS NULL)"


def segments_hash(database: sqlite3.Connection) -> Sha256:
    """Return the hash of the list of segments, in order of their keys."""
    found = database.execute("SELECT segment_key, name, file_hash, byte_count, chunk_count FROM segments ORDER BY segment_key")
    return _list_hash([[key, name, file_hash.hex(), size, count] for key, name, file_hash, size, count in found])


def roots_hash(database: sqlite3.Connection) -> Sha256:
    """Return the hash of the list of directories documents came from."""
    return _list_hash([list(row) for row in database.execute("SELECT root_key, path FROM roots ORDER BY root_key")])


def _list_hash(entries: list[list[object]]) -> Sha256:
    return sha256_hex(encode_record({"entries": entries}))
