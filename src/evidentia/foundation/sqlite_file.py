"""SQLite files: how one is opened, made, changed and closed. What stands in the tables is for those who make them.

Every connection is in autocommit mode, may be used from any thread by whoever holds its lock, and believes nothing a file says about
itself: no function of the schema is run, and every cell is checked as it is read.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal

from evidentia.contracts.errors import BaseDamagedError, BaseVersionError
from evidentia.foundation.disk import BUSY_TIMEOUT_MS, disk_errors, sync_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_TRANSIENT: Final = (
    "SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_FULL", "SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_NOMEM", "SQLITE_AUTH",
    "SQLITE_IOERR_WRITE", "SQLITE_IOERR_FSYNC", "SQLITE_IOERR_SHM", "SQLITE_IOERR_TRUNCATE", "SQLITE_IOERR_DELETE", "SQLITE_IOERR_LOCK",
    "SQLITE_TOOBIG",
)  # fmt: skip


def connect(
    path: Path, *, mode: Literal["ro", "rw", "rwc"] = "rwc", wait_ms: int = BUSY_TIMEOUT_MS, cached_statements: int = 128
) -> sqlite3.Connection:
    """Open a file; to read, to write, or to write and make it where there is none."""
    # SQLite reads a WAL file only where it can make the index beside it; without a log it can be told that nothing will change.
    is_fixed = mode == "ro" and not path.with_name(path.name + "-wal").exists() and not os.access(path.parent, os.W_OK)
    uri = f"{path.resolve().as_uri()}?mode={mode}{'&immutable=1' if is_fixed else ''}"
    database = sqlite3.connect(
        uri, uri=True, timeout=wait_ms / 1_000, isolation_level=None, check_same_thread=False, cached_statements=cached_statements
    )
    database.execute("PRAGMA trusted_schema = OFF")
    database.execute("PRAGMA cell_size_check = ON")
    return database


def user_version(database: sqlite3.Connection) -> int:
    """Return the format number of a file; 0 when it has none."""
    return int(database.execute("PRAGMA user_version").fetchone()[0])


def make_tables(
    database: sqlite3.Connection, tables: Sequence[str], *, version: int, fill: Callable[[sqlite3.Connection], object] | None = None
) -> int:
    """Make the tables of an empty file, once however many processes open it together, and return the format number that it has."""
    if user_version(database):
        return user_version(database)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("BEGIN IMMEDIATE")
    if not database.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:  # another process may have been first
        for statement in tables:
            database.execute(statement)
        if fill is not None:
            fill(database)
        database.execute(f"PRAGMA user_version = {version}")
    database.execute("COMMIT")
    return user_version(database)


def checkpoint(database: sqlite3.Connection) -> None:
    """Fold the log into the file, unless a reader holds an older version: then the next writer does, and nobody waits for it."""
    database.execute("PRAGMA busy_timeout = 0")
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    database.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")


def is_transient(error: Exception) -> bool:
    """Tell whether a file is as good as it was before a failure; else it is not what was written."""
    name = getattr(error, "sqlite_errorname", "") or ""
    return not isinstance(error, sqlite3.Error) or name.startswith(_TRANSIENT)


def to_microseconds(moment: datetime) -> int:
    """Return a moment as microseconds since 1970."""
    return (moment - _EPOCH) // _MICROSECOND


def from_microseconds(count: int) -> datetime:
    """Return the moment so many microseconds after 1970 began."""
    return _EPOCH + count * _MICROSECOND


class SqliteFile:
    """A small database of one file, made with the first change. Thread safe; several processes may share it, and changes wait in line.

    `tables` are made in a new file, which `fill` may then put first rows into; a private one is for its owner's eyes only.
    """

    def __init__(
        self,
        path: Path,
        *,
        tables: Sequence[str],
        version: int,
        wait_ms: int = BUSY_TIMEOUT_MS,
        fill: Callable[[sqlite3.Connection], object] | None = None,
        is_private: bool = False,
    ) -> None:
        self._path = path
        self._tables = tables
        self._version = version
        self._wait_ms = wait_ms
        self._fill = fill
        self._is_private = is_private
        # Reentrant: a caller looks whether there is a file, and begins a transaction while it still holds the connection.
        self._lock = threading.RLock()
        self._database: sqlite3.Connection | None = None

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection | None]:
        """Give the connection; None while there is no file."""
        with self._lock, self._errors():
            yield self._database if self._database is not None or not self._path.exists() else self._open()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Give the connection for one transaction, which is durable when this ends, and nothing when it raises."""
        with self._lock, self._errors():
            database = self._database or self._open()
            # IMMEDIATE: a transaction that began by reading could not wait for another writer's lock, it would fail at its first change.
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
        return disk_errors(self._path.parent, name=self._path.name)

    def _open(self) -> sqlite3.Connection:
        is_new = not self._path.exists()
        if is_new and self._is_private:
            self._path.touch(mode=0o600)  # before SQLite makes it, with what the umask leaves
        database = connect(self._path, wait_ms=self._wait_ms)
        try:
            self._prepare(database)
            if is_new:
                sync_directory(self._path.parent)
        except BaseException:
            database.close()
            raise
        self._database = database
        return database

    def _prepare(self, database: sqlite3.Connection) -> None:
        database.execute("PRAGMA secure_delete = ON")
        database.execute("PRAGMA synchronous = FULL")
        version = make_tables(database, self._tables, version=self._version, fill=self._fill)
        if version > self._version:
            raise BaseVersionError(version, known=self._version)
        if not version:
            raise BaseDamagedError(self._path.name, "the file was made by something else")
