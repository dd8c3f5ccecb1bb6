"""What the disk promises: names that outlive a crash, failures of files and databases in the user's terms, and append-only files.

An append-only file is made with a durable name, appended to completely or not at all, read in whole lines, and replaced at once. What a
line says, and how it seals the one before, is for those who write it.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import sys
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, Final, Literal

import msgspec

from evidentia.contracts.errors import BaseBusyError, BaseDamagedError, BaseFullError, BaseReadOnlyError, BaseStateError, EvidentiaError

if sys.platform != "win32":  # there, a file that is open cannot be replaced in the first place
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

BUSY_TIMEOUT_MS: Final = 10_000
"""How long SQLite waits for another writer, unless it is told otherwise."""
_FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN: Final = {errno.EACCES, errno.EPERM, errno.EROFS}
_SQLITE_FULL: Final = ("SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_FSYNC", "SQLITE_IOERR_SHM", "SQLITE_IOERR_TRUNCATE")


PRIVATE_FILE: Final = 0o600
PRIVATE_DIRECTORY: Final = 0o700
"""What is in a base is for the user who runs it, whatever the umask says: whoever reads the files reads everything."""


def make_private_directory(path: Path) -> None:
    """Make a directory that its owner alone may enter, and its parents as they come; one that is there stays as it is."""
    path.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)


def open_private(path: Path, mode: Literal["wb", "xb"]) -> BinaryIO:
    """Open a file for writing that its owner alone may read; one that is there stays as open as it is."""
    return open(path, mode, opener=_private_opener)


def _private_opener(path: str, flags: int) -> int:
    return os.open(path, flags, PRIVATE_FILE)


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
    if isinstance(error, sqlite3.ProgrammingError) and "closed" in str(error):
        return BaseStateError("the base was closed; connect to it again")
    if problem.startswith(_SQLITE_FULL):
        return BaseFullError(str(directory))
    if problem.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        return BaseReadOnlyError(str(directory))
    if problem.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return BaseBusyError(str(directory), waited_ms=BUSY_TIMEOUT_MS)
    return BaseDamagedError(name, str(error))


# --- append-only files ---

_BLOCK_BYTES: Final = 1 << 20
_BACK_BYTES: Final = 1 << 18
"""Of a piece that is read from the end, where mostly little is wanted."""


class AppendFile:
    """One new file that this process appends to. Not thread safe.

    One that `is_locked` holds a lock for as long as it is open, so that a rewrite never meets its writer.
    """

    def __init__(self, path: Path, *, is_locked: bool = False) -> None:
        make_private_directory(path.parent)
        self.bytes = 0
        self.is_torn = False
        """Something may stand at its end that could not be cut off; nothing may follow it."""
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, PRIVATE_FILE)
        if is_locked:
            _lock(self._handle)
        # The file's name, then that of its folder, which may be new as well: a line counts as durable once its own file is synced,
        # and that is true only if a crash cannot take the name away.
        sync_directory(path.parent)
        sync_directory(path.parent.parent)

    def write(self, content: bytes) -> None:
        """Append lines, all or none: what a full disk took of them is cut off again."""
        left = memoryview(content)
        try:
            while left:
                left = left[os.write(self._handle, left) :]
        except OSError:
            self._cut()
            raise
        self.bytes += len(content)

    def sync(self) -> None:
        """Wait until everything written is on disk."""
        try:
            os.fsync(self._handle)
        except OSError:
            # After a failed fsync the kernel may have dropped the pages and call the next one a success: the file cannot be trusted.
            self.is_torn = True
            raise

    def close(self) -> None:
        """Let go of the file."""
        with suppress(OSError):
            os.close(self._handle)

    def _cut(self) -> None:
        try:
            os.ftruncate(self._handle, self.bytes)
        except OSError:
            self.is_torn = True


def read_blocks(path: Path, *, offset: int = 0) -> Iterator[bytes]:
    """Yield a file from an offset on, in pieces of whole lines; only the last may lack its end."""
    with path.open("rb") as file:
        file.seek(offset)
        yield from whole_lines(iter(partial(file.read, _BLOCK_BYTES), b""), keeps_rest=True)


def whole_lines(blocks: Iterable[bytes], *, keeps_rest: bool = False) -> Iterator[bytes]:
    """Yield pieces that end where a line does; what stands after the last end is left out, or comes last."""
    rest = b""
    for block in blocks:
        end = block.rfind(b"\n") + 1
        if end:
            yield rest + block[:end]
            rest = block[end:]
        else:
            rest += block
    if rest and keeps_rest:
        yield rest


def read_blocks_backwards(path: Path, *, end: int | None = None, piece_bytes: int = _BACK_BYTES) -> Iterator[tuple[int, bytes]]:
    """Yield a file from `end`, or its own end, back to its beginning, in pieces of whole lines with where each begins."""
    with path.open("rb") as file:
        stop = file.seek(0, os.SEEK_END) if end is None else end
        rest = b""
        while stop:
            start = max(0, stop - piece_bytes)
            file.seek(start)
            content = file.read(stop - start) + rest
            cut = content.find(b"\n") + 1 if start else 0
            is_within_line = start and not cut
            if not is_within_line and content[cut:]:
                yield start + cut, content[cut:]
            rest = content if is_within_line else content[:cut]
            stop = start


@contextmanager
def rewriting(path: Path, change: Callable[[Iterator[bytes]], Iterable[bytes]]) -> Iterator[None]:
    """Put a changed copy in the place of a file that nobody writes to, at once or not at all; BaseBusyError while somebody does.

    Within the context the copy stands there, durably, and the lock is still held: what belongs to the change can be done then.
    """
    copy = path.with_suffix(".new")
    with _held(path):
        try:
            with open_private(copy, "wb") as file:
                file.writelines(change(read_blocks(path)))
                file.flush()
                os.fsync(file.fileno())  # before the name moves, or a crash could leave the name on an empty file
            copy.replace(path)
        finally:
            copy.unlink(missing_ok=True)
        sync_directory(path.parent)
        yield


@contextmanager
def _held(path: Path) -> Iterator[None]:
    """Hold the lock of a file; one that was replaced while it was opened is opened again."""
    while True:
        handle = os.open(path, os.O_RDWR)
        try:
            try:
                _lock(handle)
            except BlockingIOError as error:
                raise BaseBusyError(str(path), waited_ms=0) from error
            # The lock belongs to the inode: after a rewrite by somebody else the name stands for another one, and this lock for nothing.
            if os.path.samestat(os.fstat(handle), path.stat()):
                yield
                return
        finally:
            os.close(handle)


def _lock(handle: int) -> None:
    if sys.platform != "win32":
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
