"""The SQLite file of a base: opening it to read, to search and to write, and the lock that lets one writer in at a time."""

from __future__ import annotations

import os
import sqlite3
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any, Literal

from evidentia.backends.embedded.records import schema
from evidentia.contracts.errors import BaseBusyError, BaseForbiddenError, BaseMissingError
from evidentia.foundation.disk import disk_errors, sync_directory
from evidentia.foundation.sqlite_file import checkpoint, connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path


DATABASE_NAME = "evidentia.sqlite"
SEGMENTS_NAME = "segments"
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
        database = _connected(path, mode="ro")
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
        database = _connected(path, mode="rw")
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
        database = connect(unfinished)
        try:
            schema.create(database)
            fill(database)
        finally:
            database.close()
        unfinished.replace(database_path(directory))  # closed before, so that no log is left under the other name
        sync_directory(directory)


def storage_errors(directory: Path, *, name: str = DATABASE_NAME) -> AbstractContextManager[None]:
    """Say in the user's terms what went wrong with the disk or the database; `name` is the file that is read or written."""
    return disk_errors(directory, name=name)


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
        checkpoint(database)
    database.close()


def _connected(path: Path, *, mode: Literal["ro", "rw"]) -> sqlite3.Connection:
    database = connect(path, mode=mode, cached_statements=256)
    database.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    return database


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
            self._handle = connect(path, wait_ms=wait_ms)
            try:
                # The transaction is never finished: the lock lasts as long as the connection, and the connection as long as the process.
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
