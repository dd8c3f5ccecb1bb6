"""The rows of a file of values that may be lost: its one table, and what a row must be to be believed."""

from __future__ import annotations

import hashlib
import sqlite3
from typing import TYPE_CHECKING, Final

from evidentia.foundation.sqlite_file import make_tables

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evidentia.backends.embedded.records.key_values import CachedValue

FORMAT: Final = 1
_DIGEST_BYTES: Final = 16
_ROWS_AT_ONCE: Final = 64
_AT_ONCE: Final = 2_047
"""What is longer is hashed with the interpreter's lock given back, and getting that again takes longer than the hashing."""
_HIGHEST: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)
_TABLES: Final = (
    """CREATE TABLE entries (
    key TEXT PRIMARY KEY, value BLOB NOT NULL, expires_us INTEGER, used INTEGER NOT NULL, digest BLOB NOT NULL) STRICT""",
    "CREATE INDEX entries_by_use ON entries (used, key)",
    "CREATE INDEX entries_by_end ON entries (expires_us) WHERE expires_us IS NOT NULL",
)


def prepare(database: sqlite3.Connection) -> None:
    """Set up a connection, and make the table of a new file; a file of any other kind is damage."""
    database.execute("PRAGMA synchronous = OFF")  # what a crash takes away may be lost
    if make_tables(database, _TABLES, version=FORMAT) != FORMAT:
        raise sqlite3.DatabaseError("the file was made by something else")


def next_use(database: sqlite3.Connection) -> int:
    """Return a number higher than that of every use so far."""
    return int(database.execute("SELECT coalesce(max(used), 0) + 1 FROM entries").fetchone()[0])


def insert_rows(database: sqlite3.Connection, rows: Mapping[str, CachedValue]) -> None:
    """Write rows, many with each statement: after every statement the other threads of the interpreter have their turn first."""
    use = next_use(database)
    made = [
        (key, value, expires_us, use + number, digest(key, value, expires_us))
        for number, (key, (value, expires_us)) in enumerate(rows.items())
    ]
    for start in range(0, len(made), _ROWS_AT_ONCE):
        some = made[start : start + _ROWS_AT_ONCE]
        places = ",".join(["(?, ?, ?, ?, ?)"] * len(some))
        database.execute(f"INSERT OR REPLACE INTO entries VALUES {places}", [field for row in some for field in row])


def rows_of(database: sqlite3.Connection, keys: Sequence[str]) -> list[tuple[str, bytes, int | None]]:
    """Return the rows under some names that are whole, with their ends."""
    places = ",".join("?" * len(keys))
    found = database.execute(f"SELECT key, value, expires_us, digest FROM entries WHERE key IN ({places})", keys).fetchall()
    return [(key, value, expires_us) for key, value, expires_us, stored in found if is_whole(key, value, expires_us, stored)]


def delete_prefix(database: sqlite3.Connection, prefix: str) -> int:
    """Delete every key that begins so, and return how many there were."""
    within, bounds = within_prefix(prefix)
    return database.execute(f"DELETE FROM entries WHERE {within}", bounds).rowcount


def within_prefix(prefix: str) -> tuple[str, tuple[str, ...]]:
    """Return the condition for keys that begin so, as one that an index serves, and its parameters."""
    first, after = range_of(prefix)
    return ("key >= ?", (first,)) if after is None else ("key >= ? AND key < ?", (first, after))


def range_of(prefix: str) -> tuple[str, str | None]:
    """Return the prefix and the first text after all that begin with it, in the order of code points; None when there is none."""
    bare = prefix.rstrip(chr(_HIGHEST))
    if not bare:
        return prefix, None
    following = ord(bare[-1]) + 1
    return prefix, bare[:-1] + chr(_SURROGATES.stop if following in _SURROGATES else following)


def digest(key: str, value: bytes, expires_us: int | None) -> bytes:
    """Return what vouches for a row."""
    hashed = hashlib.blake2b(f"{len(key)} {key} {expires_us} ".encode(), digest_size=_DIGEST_BYTES)
    for start in range(0, len(value), _AT_ONCE):
        hashed.update(value[start : start + _AT_ONCE])
    return hashed.digest()


def is_whole(key: str, value: object, expires_us: object, stored: object) -> bool:
    """Tell whether a row is what was written."""
    is_typed = isinstance(value, bytes) and (expires_us is None or isinstance(expires_us, int))
    return is_typed and digest(key, value, expires_us) == stored  # type: ignore[arg-type]  # mypy does not follow is_typed
