"""Which space a base's vectors live in, and the running sum over those of its live chunks.

A space is in force from the commit that its period begins with (a row of the table `vector_reigns`) until the next one. Only the
newest keeps its sum, which is all the next commit needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.backends.embedded.vectors.vector_file import PERIOD, decode_identity
from evidentia.contracts.canonical import encode_record, encode_struct, sha256_hex
from evidentia.provenance.corpus_hash import CorpusState, vectors_version

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from evidentia.contracts.vectors import VectorIdentity


_NEWEST = 1 << 62


class VectorLedger:
    """The vectors of the newest version, as whoever writes the next one keeps them."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._began: int | None = None
        self.space_key: int | None = None
        self.identity: VectorIdentity | None = None
        self._sum = CorpusState()
        row = database.execute(PERIOD, (_NEWEST,)).fetchone()
        if row is not None:
            self._began, self.space_key = row[:2]
            self.identity, self._sum = decode_identity(row[2]), CorpusState(row[3])

    @property
    def version(self) -> str:
        """Return what the commit record says of the vectors."""
        return "" if self.identity is None else vectors_version(self.identity, self._sum)

    def add(self, members: Iterable[bytes]) -> None:
        """Count vectors in."""
        self._sum.add(members)

    def remove(self, members: Iterable[bytes]) -> None:
        """Count vectors out."""
        self._sum.remove(members)

    def begin(self, space_key: int, identity: VectorIdentity, *, sequence: int) -> None:
        """Put another space in force; its sum starts empty."""
        self._began, self.space_key, self.identity, self._sum = sequence, space_key, identity, CorpusState()
        self._database.execute("UPDATE vector_reigns SET set_state = NULL WHERE set_state IS NOT NULL")
        self._database.execute("INSERT INTO vector_reigns VALUES (?, ?, NULL)", (sequence, space_key))

    def store(self) -> None:
        """Write the sum into the transaction that is open."""
        if self._began is not None:
            self._database.execute("UPDATE vector_reigns SET set_state = ? WHERE sequence = ?", (self._sum.state, self._began))


def space_key_of(database: sqlite3.Connection, identity: VectorIdentity) -> int | None:
    """Return the key of a space, or None when the base has never had a vector in it."""
    row = database.execute("SELECT space_key FROM vector_spaces WHERE identity = ?", (encode_struct(identity),)).fetchone()
    return None if row is None else int(row[0])


def add_space(database: sqlite3.Connection, identity: VectorIdentity) -> int:
    """Name a space and return its key."""
    (highest,) = database.execute("SELECT coalesce(max(space_key), 0) FROM vector_spaces").fetchone()
    database.execute("INSERT INTO vector_spaces VALUES (?, ?)", (highest + 1, encode_struct(identity)))
    return int(highest) + 1


def vector_files_hash(database: sqlite3.Connection) -> str:
    """Return the hash of the lists of vector files, spaces and their periods; empty for a base that was never embedded."""
    spaces = [[key, sha256_hex(identity)] for key, identity in database.execute("SELECT * FROM vector_spaces ORDER BY space_key")]
    if not spaces:
        return ""
    periods = [list(row) for row in database.execute("SELECT sequence, space_key FROM vector_reigns ORDER BY sequence")]
    files = [
        [key, space, name, file_hash.hex(), size, count]
        for key, space, name, file_hash, size, count in database.execute(
            "SELECT file_key, space_key, name, file_hash, byte_count, row_count FROM vector_files ORDER BY file_key"
        )
    ]
    return sha256_hex(encode_record({"files": files, "reigns": periods, "spaces": spaces}))
