"""What the disk promises: names that outlive a crash, and failures of files and databases in the user's terms."""

from __future__ import annotations

import errno
import os
import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.errors import BaseBusyError, BaseDamagedError, BaseFullError, BaseReadOnlyError, EvidentiaError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BUSY_TIMEOUT_MS: Final = 10_000
"""How long SQLite waits for another writer, unless it is told otherwise."""
_FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN: Final = {errno.EACCES, errno.EPERM, errno.EROFS}
_SQLITE_FULL: Final = ("SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_FSYNC", "SQLITE_IOERR_SHM", "SQLITE_IOERR_TRUNCATE")


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable: a file that is synced can still lose its name in a crash."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def disk_errors(directory: Path, *, name: str) -> Iterator[None]:
    """Say in the user's terms what went wrong with the disk or a database; `name` is the file that is read or written."""
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


def _meaning(error: sqlite3.Error, directory: Path, *, name: str) -> EvidentiaError:
    problem = getattr(error, "sqlite_errorname", "") or ""
    if problem.startswith(_SQLITE_FULL):
        return BaseFullError(str(directory))
    if problem.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        return BaseReadOnlyError(str(directory))
    if problem.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return BaseBusyError(str(directory), waited_ms=BUSY_TIMEOUT_MS)
    return BaseDamagedError(name, str(error))
