"""The rows of a file of values that may be lost: its one table, what a row must be to be believed, and which failures pass."""

from __future__ import annotations

import hashlib
import sqlite3
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evidentia.backends.embedded.records.key_values import KeptValue

FORMAT: Final = 1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_DIGEST_BYTES: Final = 16
_ROWS_AT_ONCE: Final = 64
_AT_ONCE: Final = 2_047
"""What is longer is hashed with the interpreter's lock given back, and getting that again takes longer than the hashing."""
_HIGHEST: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)
_TABLE: Final = """CREATE TABLE entries (
    key TEXT PRIMARY KEY, value BLOB NOT NULL, expires_us INTEGER, used INTEGER NOT NULL, digest BLOB NOT NULL) STRICT"""
_INDEXES: Final = (
    "CREATE INDEX entries_by_use ON entries (used, key)",
    "CREATE INDEX entries_by_end ON entries (expires_us) WHERE expires_us IS NOT NULL",
)
_PASSING: Final = (
    "SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_FULL", "SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_NOMEM", "SQLITE_AUTH",
    "SQLITE_IOERR_WRITE", "SQLITE_IOERR_FSYNC", "SQLITE_IOERR_SHM", "SQLITE_IOERR_TRUNCATE", "SQLITE_IOERR_DELETE", "SQLITE_IOERR_LOCK",
    "SQLITE_TOOBIG",
)  # fmt: skip
"""Failures after which the file is as good as it was; any other means that it is not what this module wrote."""


def prepare(database: sqlite3.Connection) -> None:
    """Set up a connection, and make the table of a new file; a file of any other kind is damage."""
    database.execute("PRAGMA trusted_schema = OFF")
    database.execute("PRAGMA cell_size_check = ON")
    if _format_of(database) == FORMAT:
        database.execute("PRAGMA synchronous = OFF")
        return
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = OFF")
    database.execute("BEGIN IMMEDIATE")
    if not database.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
        for statement in (_TABLE, *_INDEXES):
            database.execute(statement)
        database.execute(f"PRAGMA user_version = {FORMAT}")
    database.execute("COMMIT")
    if _format_of(database) != FORMAT:
        raise sqlite3.DatabaseError("the file was made by something else")


def _format_of(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA user_version").fetchone()[0])


def next_use(database: sqlite3.Connection) -> int:
    """Return a number higher than that of every use so far."""
    return int(database.execute("SELECT coalesce(max(used), 0) + 1 FROM entries").fetchone()[0])


def insert_rows(database: sqlite3.Connection, rows: Mapping[str, KeptValue]) -> None:
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


def has_bytes(name: str) -> bool:
    """Tell whether a name has a UTF-8 form; one that has none cannot be stored and is never there."""
    if name.isascii():
        return True
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


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


def microseconds(moment: datetime) -> int:
    """Return a moment as microseconds since 1970."""
    return (moment - _EPOCH) // _MICROSECOND


def is_passing(error: Exception) -> bool:
    """Tell whether the file is as good as it was before a failure."""
    name = getattr(error, "sqlite_errorname", "") or ""
    return not isinstance(error, sqlite3.Error) or name.startswith(_PASSING)
