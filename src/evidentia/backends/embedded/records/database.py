"""Opening the SQLite file of a base, and what its failures mean to a user."""

from __future__ import annotations

import errno
import os
import sqlite3
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import msgspec

from evidentia.backends.embedded.records import schema
from evidentia.contracts.errors import (
    BaseBusyError,
    BaseDamagedError,
    BaseForbiddenError,
    BaseFullError,
    BaseMissingError,
    BaseReadOnlyError,
    EvidentiaError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path


DATABASE_NAME = "evidentia.sqlite"
SEGMENTS_NAME = "segments"
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}
_BUSY_TIMEOUT_MS = 10_000
_CACHE_KIB = 65_536
_MAPPED_BYTES = 1 << 31
"""SQLite itself maps no more."""
_KEYS_PER_QUERY = 500


def database_path(directory: Path) -> Path:
    """Return where the database of a base lies."""
    return directory / DATABASE_NAME


def open_for_reading(directory: Path) -> sqlite3.Connection:
    """Open a base for reading; works on a directory that cannot be written, too."""
    path = database_path(directory)
    if not path.is_file():
        raise BaseMissingError(str(directory))
    if not os.access(path, os.R_OK):
        raise BaseForbiddenError(str(directory))
    with storage_errors(directory):
        database = _connect(path, mode="ro")
        schema.schema_version(database)
        return database


def open_for_searching(directory: Path) -> sqlite3.Connection:
    """Open a base for reading here and there, and often: pages are mapped, and not looked through each time one is touched.

    A read takes 0.6 of the time. A page that cannot be read is still an error; to look for damage, open for reading.
    """
    database = open_for_reading(directory)
    with storage_errors(directory):
        database.execute("PRAGMA cell_size_check = OFF")
        database.execute(f"PRAGMA mmap_size = {_MAPPED_BYTES}")
        return database


def open_for_writing(directory: Path) -> sqlite3.Connection:
    """Open a base for writing and bring it up to the present schema; the caller holds the writer's lock."""
    path = database_path(directory)
    if not path.is_file():
        raise BaseMissingError(str(directory))
    with storage_errors(directory):
        database = _connect(path, mode="rw")
        database.execute("PRAGMA synchronous = FULL")
        database.execute("PRAGMA secure_delete = ON")
        database.execute("PRAGMA wal_autocheckpoint = 4000")
        schema.migrate(database)
        return database


def create_database(directory: Path, *, fill: Callable[[sqlite3.Connection], object]) -> None:
    """Make the database of a new base, complete or not at all; `fill` puts in what an empty base begins with."""
    with storage_errors(directory):
        unfinished = directory / f"{DATABASE_NAME}.new"
        unfinished.unlink(missing_ok=True)
        database = sqlite3.connect(unfinished, isolation_level=None)
        try:
            schema.create(database)
            fill(database)
        finally:
            database.close()
        unfinished.replace(database_path(directory))
        sync_directory(directory)


@contextmanager
def storage_errors(directory: Path, *, name: str = DATABASE_NAME) -> Iterator[None]:
    """Say in the user's terms what went wrong with the disk or the database; `name` is the file that is read or written."""
    try:
        yield
    except EvidentiaError:
        raise
    except sqlite3.Error as error:
        raise _meaning(error, directory, name=name) from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BaseDamagedError(name, f"a record cannot be read ({error})") from error
    except OSError as error:
        if error.errno in _FULL:
            raise BaseFullError(str(directory)) from error
        if error.errno in _FORBIDDEN:
            raise BaseReadOnlyError(str(directory)) from error
        if error.errno == errno.EIO:
            raise BaseDamagedError(str(error.filename or directory), error.strerror or str(error)) from error
        raise


def select_in(
    database: sqlite3.Connection, statement: str, keys: Sequence[int] | Sequence[str] | Sequence[bytes]
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a statement whose one `%s` stands for a list of keys; any number of keys may be asked for.

    The columns have the types of `schema`, which only the statement's author knows, hence Any.
    """
    for start in range(0, len(keys), _KEYS_PER_QUERY):
        part = keys[start : start + _KEYS_PER_QUERY]
        yield from database.execute(statement % ",".join("?" * len(part)), part)


def close_after_writing(database: sqlite3.Connection) -> None:
    """Close a connection that wrote, and fold the log into the file; commits are durable in the log, so that can also wait."""
    with suppress(sqlite3.Error):
        fold_log(database)
    database.close()


def fold_log(database: sqlite3.Connection) -> None:
    """Fold the log into the file, unless a reader holds an older version: then the next writer does, and nobody waits for it."""
    database.execute("PRAGMA busy_timeout = 0")
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    database.execute(f"PRAGMA busy_timeout = {_BUSY_TIMEOUT_MS}")


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _connect(path: Path, *, mode: str) -> sqlite3.Connection:
    has_log = path.with_name(path.name + "-wal").exists()
    is_fixed = mode == "ro" and not has_log and not os.access(path.parent, os.W_OK)
    options = f"mode={mode}&immutable=1" if is_fixed else f"mode={mode}"
    uri = f"{path.resolve().as_uri()}?{options}"
    database = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, cached_statements=256)
    database.execute(f"PRAGMA busy_timeout = {_BUSY_TIMEOUT_MS}")
    database.execute("PRAGMA trusted_schema = OFF")
    database.execute("PRAGMA cell_size_check = ON")
    database.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    return database


def _meaning(error: sqlite3.Error, directory: Path, *, name: str) -> EvidentiaError:
    problem = getattr(error, "sqlite_errorname", "") or ""
    if problem.startswith(("SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_FSYNC", "SQLITE_IOERR_SHM", "SQLITE_IOERR_TRUNCATE")):
        return BaseFullError(str(directory))
    if problem.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        return BaseReadOnlyError(str(directory))
    if problem.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return BaseBusyError(str(directory), waited_ms=_BUSY_TIMEOUT_MS)
    return BaseDamagedError(name, str(error))


# --- writer lock ---
# One writer at a time, across processes; a writer that dies gives the lock up.
#
# The lock is an exclusive transaction on a small SQLite file of its own: portable, released by the operating system when the process
# ends, and waited for with SQLite's own timeout.

LOCK_NAME = "writer.lock"


class WriterLock:
    """Held from construction until `release`."""

    def __init__(self, directory: Path, *, wait_ms: int) -> None:
        path = directory / LOCK_NAME
        with storage_errors(directory):
            self._handle = sqlite3.connect(path, isolation_level=None, timeout=wait_ms / 1000, check_same_thread=False)
            try:
                self._handle.execute("PRAGMA locking_mode = EXCLUSIVE")
                self._handle.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError as error:
                self._handle.close()
                if "locked" in str(error):
                    raise BaseBusyError(str(directory), waited_ms=wait_ms) from error
                raise

    def release(self) -> None:
        """Let the next writer in."""
        self._handle.close()
