"""The file of a base's governance: policies with all their versions, who changed what, tokens and secrets.

The file is made with the first change. Rows carry a digest, so that a byte that rots is damage and never a looser rule.
"""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from evidentia.backends.embedded.database import storage_errors, sync_directory
from evidentia.contracts.errors import BaseDamagedError, BaseVersionError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

GOVERNANCE_NAME: Final = "governance.db"
FORMAT: Final = 1
_WAIT_MS: Final = 10_000
_TABLES: Final = (
    """CREATE TABLE policy_versions (
    tenant TEXT NOT NULL, policy_id TEXT NOT NULL, version INTEGER NOT NULL, stored BLOB NOT NULL, digest BLOB NOT NULL,
    PRIMARY KEY (tenant, policy_id, version)) STRICT, WITHOUT ROWID""",
    """CREATE TABLE policies (
    tenant TEXT NOT NULL, policy_id TEXT NOT NULL, version INTEGER NOT NULL, name TEXT NOT NULL, is_removed INTEGER NOT NULL,
    digest BLOB NOT NULL, PRIMARY KEY (tenant, policy_id)) STRICT, WITHOUT ROWID""",
    "CREATE UNIQUE INDEX policies_by_name ON policies (tenant, name) WHERE is_removed = 0",
    """CREATE TABLE audit (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, tenant TEXT NOT NULL, at_us INTEGER NOT NULL, by TEXT NOT NULL, kind TEXT NOT NULL,
    change TEXT NOT NULL, subject TEXT NOT NULL, name TEXT NOT NULL, version INTEGER, content TEXT) STRICT""",
    "CREATE INDEX audit_by_tenant ON audit (tenant, seq)",
    """CREATE TABLE tokens (
    token_id TEXT PRIMARY KEY, tenant TEXT NOT NULL, info BLOB NOT NULL, salt BLOB NOT NULL, hash BLOB NOT NULL,
    digest BLOB NOT NULL) STRICT, WITHOUT ROWID""",
    """CREATE TABLE secrets (
    tenant TEXT NOT NULL, name TEXT NOT NULL, nonce BLOB NOT NULL, sealed BLOB NOT NULL, updated_us INTEGER NOT NULL,
    updated_by TEXT NOT NULL, PRIMARY KEY (tenant, name)) STRICT, WITHOUT ROWID""",
    "CREATE TABLE key_salt (salt BLOB NOT NULL) STRICT",
)


class GovernanceFile:
    """One connection to the file. Thread safe; several processes may share the file, and changes wait for each other."""

    def __init__(self, path: Path, *, wait_ms: int = _WAIT_MS) -> None:
        self._path = path
        self._wait_ms = wait_ms
        self._lock = threading.RLock()
        self._database: sqlite3.Connection | None = None

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection | None]:
        """Give the connection; None while there is no file."""
        with self._lock, self._errors():
            yield self._existing()

    @contextmanager
    def changing(self) -> Iterator[sqlite3.Connection]:
        """Give the connection for one transaction, which is durable when this ends, and nothing when it raises."""
        with self._lock, self._errors():
            database = self._database or self._open()
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
                database.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    database.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Give back what is held."""
        with self._lock:
            if self._database is not None:
                self._database.close()
                self._database = None

    def _errors(self) -> AbstractContextManager[None]:
        return storage_errors(self._path.parent, name=self._path.name)

    def _existing(self) -> sqlite3.Connection | None:
        return self._database if self._database is not None or not self._path.exists() else self._open()

    def _open(self) -> sqlite3.Connection:
        is_new = not self._path.exists()
        if is_new:
            self._path.touch(mode=0o600)
        database = sqlite3.connect(self._path, timeout=self._wait_ms / 1_000, isolation_level=None, check_same_thread=False)
        try:
            _prepare(database)
            if is_new:
                sync_directory(self._path.parent)
        except BaseException:
            database.close()
            raise
        self._database = database
        return database


def digest_of(*parts: bytes | str) -> bytes:
    """Return what vouches for a row: the hash of its parts, each with its length."""
    hashed = hashlib.sha256()
    for part in parts:
        encoded = part.encode() if isinstance(part, str) else part
        hashed.update(len(encoded).to_bytes(8) + encoded)
    return hashed.digest()


def damaged(what: str) -> BaseDamagedError:
    """Return the error for a row that is not what was written."""
    return BaseDamagedError(GOVERNANCE_NAME, f"{what} is not what was written")


def _prepare(database: sqlite3.Connection) -> None:
    for setting in ("trusted_schema = OFF", "cell_size_check = ON", "secure_delete = ON", "synchronous = FULL"):
        database.execute(f"PRAGMA {setting}")
    if not _format_of(database):
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("BEGIN IMMEDIATE")
        if not _format_of(database):  # another process may have been first
            for statement in _TABLES:
                database.execute(statement)
            database.execute(f"PRAGMA user_version = {FORMAT}")
        database.execute("COMMIT")
    if _format_of(database) > FORMAT:
        raise BaseVersionError(_format_of(database), known=FORMAT)


def _format_of(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA user_version").fetchone()[0])
