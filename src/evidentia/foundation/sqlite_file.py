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
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from evidentia.contracts.errors import BaseDamagedError, BaseVersionError
from evidentia.foundation.disk import BUSY_TIMEOUT_MS, PRIVATE_FILE, disk_errors, sync_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

Answer = TypeVar("Answer")

CACHE_WAIT_MS: Final = 500
"""How long another process may be writing before a change to a `CacheFile` is given up: nobody waits long for what may be lost."""
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
    if mode == "rwc" and not path.exists():
        # Before SQLite makes it with what the umask leaves; the files beside it get the same mode. Where it cannot be made, SQLite says so.
        with suppress(OSError):
            path.touch(mode=PRIVATE_FILE)
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

    `tables` are made in a new file, which `fill` may then put first rows into.
    """

    def __init__(
        self,
        path: Path,
        *,
        tables: Sequence[str],
        version: int,
        wait_ms: int = BUSY_TIMEOUT_MS,
        fill: Callable[[sqlite3.Connection], object] | None = None,
    ) -> None:
        self._path = path
        self._tables = tables
        self._version = version
        self._wait_ms = wait_ms
        self._fill = fill
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


class CacheFile:
    """A database of one file that may be lost: nothing that goes wrong with it is ever raised. Thread safe; made with the first change.

    Several processes may share it. A file that cannot be read is set aside for a new one; one of an older format is deleted for it.
    """

    def __init__(self, path: Path, *, tables: Sequence[str], version: int, wait_ms: int = CACHE_WAIT_MS) -> None:
        self._path = path
        self._tables = tables
        self._version = version
        self._wait_ms = wait_ms
        # Reentrant: whoever keeps something in memory beside the file holds it around several calls.
        self.lock = threading.RLock()
        self._database: sqlite3.Connection | None = None
        self._opened_as: tuple[int, int] | None = None

    def read(self, query: Callable[[sqlite3.Connection], Answer], *, otherwise: Answer) -> Answer:
        """Return what a query finds; something else where there is no file, or none that can be read."""
        with self.lock:
            try:
                database = self._database if self._database is not None or not self._path.exists() else self._open()
                return otherwise if database is None else query(database)
            except _FAILURES as error:
                self.recover(error)
                return otherwise

    def rows(self, statement: str, values: Sequence[object] = ()) -> list[Any]:
        """Return the rows that a statement finds; none where there is no file, or none that can be read."""
        return self.read(lambda database: database.execute(statement, values).fetchall(), otherwise=[])

    def write(self, change: Callable[[sqlite3.Connection], Answer]) -> Answer | None:
        """Make a change in one transaction and return what it returns; None when it cannot be made."""
        with self.lock:
            for _ in range(2):  # a damaged file is set aside after the first attempt
                try:
                    database = self._database or self._open()
                    # IMMEDIATE: as above, a change that began by reading could not wait.
                    database.execute("BEGIN IMMEDIATE")
                    changed = change(database)
                    database.execute("COMMIT")
                except _FAILURES as error:
                    if not self.recover(error):
                        return None
                else:
                    return changed
            return None

    def recover(self, error: Exception) -> bool:
        """Undo what was begun before a failure, and set a damaged file aside; tell whether another attempt is worth while."""
        if self._database is not None:
            with suppress(sqlite3.Error):
                self._database.execute("ROLLBACK")
        if is_transient(error):
            return False
        opened_as = self._opened_as
        self.close()
        with suppress(OSError):
            if opened_as in (None, self._identity()):  # else another process has set it aside already
                for ending in ("-wal", "-shm"):
                    self._path.with_name(self._path.name + ending).unlink(missing_ok=True)
                if isinstance(error, _OlderFormatError):
                    self._path.unlink()
                else:
                    self._path.replace(self._path.with_name(f"{self._path.name}.damaged"))
        return True

    def close(self) -> None:
        """Give back what is held."""
        with self.lock:
            if self._database is not None:
                with suppress(sqlite3.Error):
                    self._database.close()
            self._database = self._opened_as = None

    def _open(self) -> sqlite3.Connection:
        database = connect(self._path, wait_ms=self._wait_ms)
        try:
            database.execute("PRAGMA synchronous = OFF")  # what a crash takes away may be lost
            self._check(make_tables(database, self._tables, version=self._version))
            self._database, self._opened_as = database, self._identity()
        except BaseException:
            database.close()
            raise
        return database

    def _check(self, version: int) -> None:
        if 0 < version < self._version:
            raise _OlderFormatError
        if version != self._version:
            raise sqlite3.DatabaseError("the file was made by something else")

    def _identity(self) -> tuple[int, int]:
        stat = self._path.stat()
        return stat.st_dev, stat.st_ino


class _OlderFormatError(sqlite3.DatabaseError):
    """A file that an older release made: nothing in it is of use any more."""


_FAILURES: Final = (sqlite3.Error, OSError, OverflowError)
