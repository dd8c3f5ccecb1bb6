"""One writer at a time, across processes; a writer that dies gives the lock up.

The lock is an exclusive transaction on a small SQLite file of its own: portable, released by the operating system when
the process ends, and waited for with SQLite's own timeout.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from evidentia.backends.embedded.database import storage_errors
from evidentia.contracts.errors import BaseBusyError

if TYPE_CHECKING:
    from pathlib import Path

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
