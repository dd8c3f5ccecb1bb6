"""A small SQLite file beside a base: made with the first change, one connection, one transaction at a time."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from evidentia.backends.embedded.database import storage_errors, sync_directory
from evidentia.contracts.errors import BaseVersionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

WAIT_MS: Final = 10_000
_SETTINGS: Final = ("trusted_schema = OFF", "cell_size_check = ON", "secure_delete = ON", "synchronous = FULL")


class SideFile:
    """One connection to the file. Thread safe; several processes may share the file, and changes wait for each other.

    `tables` are made in a new file, which `fill` may then put first rows into; a private one is for its owner's eyes only.
    """

    def __init__(
        self,
        path: Path,
        *,
        tables: Sequence[str],
        format_number: int,
        wait_ms: int = WAIT_MS,
        fill: Callable[[sqlite3.Connection], object] = lambda _: None,
        is_private: bool = False,
    ) -> None:
        self._path = path
        self._tables = tables
        self._format = format_number
        self._wait_ms = wait_ms
        self._fill = fill
        self._is_private = is_private
        self._lock = threading.RLock()
        self._database: sqlite3.Connection | None = None

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection | None]:
        """Give the connection; None while there is no file."""
        with self._lock, self._errors():
            yield self._database if self._database is not None or not self._path.exists() else self._open()

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

    def _open(self) -> sqlite3.Connection:
        is_new = not self._path.exists()
        if is_new and self._is_private:
            self._path.touch(mode=0o600)
        database = sqlite3.connect(self._path, timeout=self._wait_ms / 1_000, isolation_level=None, check_same_thread=False)
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
        for setting in _SETTINGS:
            database.execute(f"PRAGMA {setting}")
        if not _format_of(database):
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("BEGIN IMMEDIATE")
            if not _format_of(database):  # another process may have been first
                for statement in self._tables:
                    database.execute(statement)
                self._fill(database)
                database.execute(f"PRAGMA user_version = {self._format}")
            database.execute("COMMIT")
        if _format_of(database) > self._format:
            raise BaseVersionError(_format_of(database), known=self._format)


def _format_of(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA user_version").fetchone()[0])
