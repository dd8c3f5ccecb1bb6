"""Where the files of a backup go: a folder, or one tar. Every file is hashed as it is written and synced before it counts."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, BinaryIO, Final, Protocol

from evidentia.backends.embedded.backup.backup_format import BLOCK, END, MANIFEST_NAME, filling, header_of
from evidentia.contracts.backups import BackupFile, BackupProgress
from evidentia.contracts.errors import BackupRefusedError, BaseStateError
from evidentia.contracts.ids import Sha256
from evidentia.foundation.disk import sync_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

READ_BYTES: Final = 1 << 20
_PRIVATE: Final = 0o600
"""A backup holds tokens' hashes and everybody's documents: it is for its owner's eyes only."""


class Meter:
    """Counts what was written, tells whoever watches, and ends the work when nobody waits for it any more."""

    def __init__(self, total_bytes: int, *, watch: Callable[[BackupProgress], None] | None, is_stopped: Callable[[], bool]) -> None:
        self._total = total_bytes
        self._done = 0
        self._watch = watch
        self._is_stopped = is_stopped

    def advance(self, count: int, *, current: str) -> None:
        """Count bytes of a file."""
        if self._is_stopped():
            raise BaseStateError("the work was given up before it was complete; nothing is left of it")
        self._done += count
        if self._watch is not None:
            self._watch(BackupProgress(done_bytes=self._done, total_bytes=max(self._total, self._done), current=current))


class Sink(Protocol):
    """Takes the files of one backup."""

    files: list[BackupFile]

    def add(self, name: str, blocks: Iterable[bytes]) -> BackupFile:
        """Write a file."""
        ...

    def add_database(self, name: str, fill: Callable[[sqlite3.Connection], None]) -> BackupFile:
        """Write a database that `fill` makes in an empty one."""
        ...

    def blocks(self, name: str) -> Iterator[bytes]:
        """Yield a file back as it was written, in pieces."""
        ...

    def rewind(self, count: int) -> None:
        """Forget every file after the first `count`."""
        ...

    def publish(self, manifest: bytes, destination: Path) -> None:
        """Write the manifest, and then give the whole its name."""
        ...

    def close(self) -> None:
        """Let go of what is open."""
        ...


class FolderSink:
    """A backup as a folder."""

    def __init__(self, work: Path, *, meter: Meter) -> None:
        self._root = work / "files"
        self._root.mkdir(mode=0o700)
        self._meter = meter
        self.files: list[BackupFile] = []

    def add(self, name: str, blocks: Iterable[bytes]) -> BackupFile:
        """Write a file."""
        with os.fdopen(_create(self._path(name)), "wb") as file:
            found = _copy(name, blocks, file, meter=self._meter)
            file.flush()
            os.fsync(file.fileno())
        self.files.append(found)
        return found

    def add_database(self, name: str, fill: Callable[[sqlite3.Connection], None]) -> BackupFile:
        """Write a database that `fill` makes in an empty one."""
        path = self._path(name)
        _fill_database(path, fill)
        with path.open("rb+") as file:
            os.fsync(file.fileno())
            found = _copy(name, pieces(file), None, meter=self._meter)
        self.files.append(found)
        return found

    def blocks(self, name: str) -> Iterator[bytes]:
        """Yield a file back as it was written, in pieces."""
        with (self._root / name).open("rb") as file:
            yield from pieces(file)

    def rewind(self, count: int) -> None:
        """Forget every file after the first `count`."""
        while len(self.files) > count:
            (self._root / self.files.pop().name).unlink()

    def publish(self, manifest: bytes, destination: Path) -> None:
        """Write the manifest, and then give the folder its name."""
        with os.fdopen(_create(self._root / MANIFEST_NAME), "wb") as file:
            file.write(manifest)
            file.flush()
            os.fsync(file.fileno())
        # Inner folders first, then the root, and only then the rename: what has the name of a backup is complete, also after a crash.
        for folder in sorted({(self._root / each.name).parent for each in self.files} | {self._root}, reverse=True):
            sync_directory(folder)
        if destination.exists() or destination.is_symlink():
            raise exists_already(destination)
        self._root.rename(destination)
        sync_directory(destination.parent)

    def close(self) -> None:
        """Let go of nothing: no file stays open."""

    def _path(self, name: str) -> Path:
        path = self._root / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path


class TarSink:
    """A backup as one tar; a header is written when its content is, since only then the size is known."""

    def __init__(self, work: Path, *, meter: Meter) -> None:
        self._work = work
        self._path = work / "files.tar"
        self._file = os.fdopen(_create(self._path), "wb+")
        self._meter = meter
        self._starts: list[int] = []
        self.files: list[BackupFile] = []

    def add(self, name: str, blocks: Iterable[bytes]) -> BackupFile:
        """Write a file."""
        start = self._file.seek(0, os.SEEK_END)
        self._file.write(bytes(BLOCK))
        found = _copy(name, blocks, self._file, meter=self._meter)
        self._file.write(filling(found.size))
        self._file.seek(start)
        self._file.write(header_of(name, found.size))
        self._starts.append(start)
        self.files.append(found)
        return found

    def add_database(self, name: str, fill: Callable[[sqlite3.Connection], None]) -> BackupFile:
        """Write a database that `fill` makes in an empty one, which lies beside the tar until then."""
        path = self._work / "records"
        _fill_database(path, fill)
        with path.open("rb") as file:
            found = self.add(name, pieces(file))
        path.unlink()
        return found

    def blocks(self, name: str) -> Iterator[bytes]:
        """Yield a file back as it was written, in pieces."""
        number = next(number for number, each in enumerate(self.files) if each.name == name)
        self._file.flush()
        with self._path.open("rb") as file:
            yield from section(file, self._starts[number] + BLOCK, self.files[number].size)

    def rewind(self, count: int) -> None:
        """Forget every file after the first `count`."""
        if count < len(self.files):
            self._file.seek(self._starts[count])
            self._file.truncate()
            del self._starts[count:], self.files[count:]

    def publish(self, manifest: bytes, destination: Path) -> None:
        """Write the manifest as the last file, and then give the tar its name, unless somebody else took it meanwhile."""
        self._file.seek(0, os.SEEK_END)
        self._file.write(header_of(MANIFEST_NAME, len(manifest)) + manifest + filling(len(manifest)) + END)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        try:
            os.link(self._path, destination)
        except FileExistsError as error:
            raise exists_already(destination) from error
        except OSError:  # not every file system has links
            if destination.exists() or destination.is_symlink():
                raise exists_already(destination) from None
            self._path.rename(destination)
        sync_directory(destination.parent)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def exists_already(destination: Path) -> BackupRefusedError:
    """Return the error for a destination that is taken."""
    return BackupRefusedError(f"'{destination}' exists already, and nothing is overwritten; name one that does not exist")


def section(file: BinaryIO, offset: int, size: int) -> Iterator[bytes]:
    """Yield a stretch of a file, in pieces."""
    file.seek(offset)
    while size > 0 and (block := file.read(min(size, READ_BYTES))):
        size -= len(block)
        yield block


def _create(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, _PRIVATE)


def _fill_database(path: Path, fill: Callable[[sqlite3.Connection], None]) -> None:
    os.close(_create(path))
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        # Nobody reads this file before it is whole, and it is synced once, at the end.
        database.execute("PRAGMA journal_mode = OFF")
        database.execute("PRAGMA synchronous = OFF")
        fill(database)


def _copy(name: str, blocks: Iterable[bytes], file: BinaryIO | None, *, meter: Meter) -> BackupFile:
    digest, size = hashlib.sha256(), 0
    for block in blocks:
        if file is not None:
            file.write(block)
        digest.update(block)
        size += len(block)
        meter.advance(len(block), current=name)
    return BackupFile(name=name, size=size, sha256=Sha256(digest.hexdigest()))


def pieces(file: BinaryIO) -> Iterator[bytes]:
    """Yield a file from its beginning."""
    file.seek(0)
    while block := file.read(READ_BYTES):
        yield block
