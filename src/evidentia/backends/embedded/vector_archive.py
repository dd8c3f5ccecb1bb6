"""What verification reads of the vectors: every stored row, what the files hold for it, and faults of the files themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evidentia.backends.embedded.segments import hash_file
from evidentia.backends.embedded.vector_file import VECTORS_NAME, VectorFile
from evidentia.backends.embedded.vector_ledger import decode_identity
from evidentia.backends.embedded.vector_rows import content_mark, vector_hash
from evidentia.contracts.canonical import encode_struct
from evidentia.contracts.errors import BaseDamagedError
from evidentia.contracts.ids import DocumentId, Sha256, chunk_id_of
from evidentia.contracts.provenance import BrokenLink
from evidentia.contracts.vectors import StoredVector

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
    from pathlib import Path

    from evidentia.contracts.vectors import VectorIdentity

_MEMBERS = """SELECT x.space_key, v.document_id, c.position, c.content_hash, x.vector_hash, max(x.added_seq, v.added_seq), v.removed_seq
    FROM versions v JOIN revisions r USING (revision_key)
    JOIN chunks c ON c.chunk_key >= r.first_chunk AND c.chunk_key < r.first_chunk + r.chunk_count
    JOIN vectors x ON x.chunk_key = c.chunk_key AND x.space_key = ? ORDER BY v.version_key"""
_ORPHANS = (
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

    def reigns(self) -> list[tuple[int, int, VectorIdentity]]:
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
        """Return the stored running sum, which the newest reign alone keeps."""
        found = self._database.execute("SELECT set_state FROM vector_reigns ORDER BY sequence DESC").fetchall()
        if any(state is not None for (state,) in found[1:]):
            raise BaseDamagedError("vector state", "more than one space has a running sum")
        return b"" if not found else found[0][0] or b""

    def faults(self) -> Iterator[BrokenLink]:
        """Yield what is wrong with files and rows."""
        for problem, statement in _ORPHANS:
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
