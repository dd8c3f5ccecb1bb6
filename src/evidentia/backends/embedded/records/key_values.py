"""Bytes under names that may be lost: what was measured. Nothing that goes wrong here is ever raised.

The file is made with the first value. A row carries a digest, so that a byte that rots is a value that is not there. A change that
cannot be written hides what it would have replaced until it can.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from evidentia.contracts.canonical import has_utf8
from evidentia.contracts.ports import KeyValueStore
from evidentia.foundation.sqlite_file import CACHE_WAIT_MS, CacheFile

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

FORMAT: Final = 2
_DIGEST_BYTES: Final = 16
_TABLES: Final = ("CREATE TABLE entries (key TEXT PRIMARY KEY, value BLOB NOT NULL, digest BLOB NOT NULL) STRICT",)


class EmbeddedKeyValues(KeyValueStore):
    """Implements `KeyValueStore`. Thread safe; several processes may share the file, and each sees what the others write."""

    def __init__(self, path: Path, *, wait_ms: int = CACHE_WAIT_MS) -> None:
        self._file = CacheFile(path, tables=_TABLES, version=FORMAT, wait_ms=wait_ms)
        self._hidden: set[str] = set()
        """Names under which the file may have something that is no longer true."""

    def get(self, key: str) -> bytes | None:
        """Return what is kept under a name."""
        with self._file.lock:
            is_there = has_utf8(key) and key not in self._hidden
            rows = self._file.rows("SELECT value, digest FROM entries WHERE key = ?", (key,)) if is_there else []
        return next((value for value, digest in rows if isinstance(value, bytes) and _digest(key, value) == digest), None)

    def put(self, key: str, value: bytes) -> None:
        """Keep a value under a name, in place of what was there; a disk that takes nothing keeps nothing."""

        def change(database: sqlite3.Connection) -> bool:
            database.executemany("DELETE FROM entries WHERE key = ?", [(name,) for name in self._hidden])
            database.execute("INSERT INTO entries VALUES (?, ?, ?)", (key, value, _digest(key, value)))
            return True

        if has_utf8(key):
            with self._file.lock:
                self._hidden.add(key)
                if self._file.write(change):
                    self._hidden.clear()

    def close(self) -> None:
        """Give back what is held."""
        self._file.close()


def _digest(key: str, value: bytes) -> bytes:
    """Return what vouches for a row."""
    return hashlib.blake2b(value, digest_size=_DIGEST_BYTES, key=hashlib.blake2b(key.encode(), digest_size=_DIGEST_BYTES).digest()).digest()
