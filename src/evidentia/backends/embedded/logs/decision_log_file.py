"""The files of the decision log: each process appends to its own, and goes on in another when one is large enough.

    decisions/<log>.<part>.log      log = when it was begun, and a few random digits; part = 000001, 000002, ...

A batch of lines is in the file completely or not at all, as long as the disk lets what is torn be cut off again.
Each writer holds a lock on its file for as long as it writes, so that care of a log never meets a pen.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from evidentia.contracts.errors import BaseBusyError, NotFoundError
from evidentia.provenance.decision_chain import CHECKPOINT, LogPart

if sys.platform != "win32":  # there, a file that is open cannot be replaced in the first place
    import fcntl

from evidentia.foundation.disk import sync_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

DECISIONS_NAME: Final = "decisions"
SUFFIX: Final = ".log"
_NAME: Final = re.compile(r"(?P<log>[0-9A-Za-z-]+)\.(?P<part>[0-9]{6})\.log")
_BLOCK_BYTES: Final = 1 << 20
_BACK_BYTES: Final = 1 << 18
"""Of a piece that is read from the end, where mostly little is wanted."""


class DecisionFile:
    """One file that this process appends to. Not thread safe."""

    def __init__(self, folder: Path, part: LogPart) -> None:
        folder.mkdir(exist_ok=True)
        self.part = part
        self.bytes = 0
        self.is_torn = False
        """Something may stand at its end that could not be cut off; nothing may follow it."""
        self._handle = os.open(_path(folder, part), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        _lock(self._handle)
        sync_directory(folder)
        sync_directory(folder.parent)

    def write(self, content: bytes) -> None:
        """Append lines, all or none."""
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


def list_parts(folder: Path) -> list[LogPart]:
    """Return the parts of all logs by the age of the log; those before a checkpoint are retired, and only still there."""
    found = sorted(part for path in _entries(folder) if (part := _part(path)) is not None)
    first: dict[str, int] = {}
    for part in found:
        if part.part > 1 and _opens_with_checkpoint(_path(folder, part)):
            first[part.log] = part.part
    return [part for part in found if part.part >= first.get(part.log, 0)]


def read_blocks(folder: Path, part: LogPart, *, offset: int = 0) -> Iterator[bytes]:
    """Yield a file from an offset on, in pieces of whole lines; only the last may lack its end."""
    try:
        file = _path(folder, part).open("rb")
    except FileNotFoundError:
        raise NotFoundError("decision log", str(part)) from None
    with file:
        file.seek(offset)
        rest = b""
        while block := file.read(_BLOCK_BYTES):
            end = block.rfind(b"\n") + 1
            if end:
                yield rest + block[:end]
                rest = block[end:]
            else:
                rest += block
        if rest:
            yield rest


def read_blocks_backwards(
    folder: Path, part: LogPart, *, end: int | None = None, piece_bytes: int = _BACK_BYTES
) -> Iterator[tuple[int, bytes]]:
    """Yield a file from `end`, or its own end, back to its beginning, in pieces of whole lines with where each begins."""
    try:
        file = _path(folder, part).open("rb")
    except FileNotFoundError:
        raise NotFoundError("decision log", str(part)) from None
    with file:
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


def rewrite(folder: Path, part: LogPart, change: Callable[[Iterator[bytes]], Iterable[bytes]]) -> None:
    """Put a changed copy in the place of a file that nobody writes to, at once or not at all; BaseBusyError while somebody does.

    What stands before a checkpoint is removed with it.
    """
    path = _path(folder, part)
    copy = path.with_suffix(".new")
    with _held(path):
        try:
            with copy.open("wb") as file:
                file.writelines(change(read_blocks(folder, part)))
                file.flush()
                os.fsync(file.fileno())
            copy.replace(path)
        finally:
            copy.unlink(missing_ok=True)
        sync_directory(folder)
        if _opens_with_checkpoint(path):
            for number in range(1, part.part):
                _path(folder, LogPart(part.log, number)).unlink(missing_ok=True)


def _path(folder: Path, part: LogPart) -> Path:
    name = f"{part}{SUFFIX}"
    if _part(name) != part:
        raise NotFoundError("decision log", str(part))
    return folder / name


def _entries(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in os.scandir(folder)]
    except FileNotFoundError:
        return []


def _part(file_name: str) -> LogPart | None:
    named = _NAME.fullmatch(file_name)
    return None if named is None else LogPart(named["log"], int(named["part"]))


def _opens_with_checkpoint(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(CHECKPOINT)) == CHECKPOINT
    except FileNotFoundError:
        return False


@contextmanager
def _held(path: Path) -> Iterator[None]:
    """Hold the lock of a log; one that was replaced while it was opened is opened again."""
    while True:
        try:
            handle = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            raise NotFoundError("decision log", path.stem) from None
        try:
            try:
                _lock(handle)
            except BlockingIOError as error:
                raise BaseBusyError(str(path), waited_ms=0) from error
            if os.path.samestat(os.fstat(handle), path.stat()):
                yield
                return
        finally:
            os.close(handle)


def _lock(handle: int) -> None:
    if sys.platform != "win32":
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
