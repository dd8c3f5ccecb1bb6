"""A base made from a backup: every byte is checked first, and the records, which make it a base, get their name last."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import stat
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, Protocol

from evidentia.backends.embedded.backup.backup_format import LARGEST_MANIFEST, MANIFEST_NAME, TarMember, decode_manifest, read_members
from evidentia.backends.embedded.backup.backup_sink import Meter, pieces, section
from evidentia.backends.embedded.records import schema
from evidentia.backends.embedded.records.commit_log import stored_head
from evidentia.backends.embedded.records.database import DATABASE_NAME, SEGMENTS_NAME, storage_errors
from evidentia.contracts.backups import BackupFile, BackupManifest, BackupProgress, RestoreReport
from evidentia.contracts.errors import BackupDamagedError, BackupRefusedError, BaseForbiddenError
from evidentia.foundation.disk import PRIVATE_DIRECTORY, make_private_directory, open_private, sync_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


_UNNAMED: Final = f"{DATABASE_NAME}.new"


class _OpenBackup(Protocol):
    """A backup, open for reading."""

    def sizes(self) -> Mapping[str, int]:
        """Return every file that is there, the manifest among them, with its size."""
        ...

    def blocks(self, name: str) -> Iterator[bytes]:
        """Yield a file in pieces."""
        ...


def restore_backup(
    backup: Path,
    directory: Path,
    *,
    watch: Callable[[BackupProgress], None] | None = None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> RestoreReport:
    """Make a base from a backup in a directory that is new or empty.

    1. read the manifest  2. check that exactly its files are there, each with its hash  3. copy them  4. name the records
    """
    backup, directory = Path(backup), Path(directory)
    _refuse_occupied(directory)
    with _opened(backup) as kept:
        manifest = _read_manifest(backup, kept)
        total = sum(each.size for each in manifest.files)
        meter = Meter(2 * total, watch=watch, is_stopped=is_stopped)
        _check_list(manifest, kept)
        for each in manifest.files:
            _pass_on(each, kept.blocks(each.name), None, meter=meter)
        with storage_errors(directory), _new_base(directory):
            for each in manifest.files:
                _copy(each, kept, directory, meter=meter)
            _finish(manifest, directory)
    return RestoreReport(
        directory=str(directory),
        taken_at=manifest.taken_at,
        sequence=manifest.sequence,
        corpus_version=manifest.corpus_version,
        evidence_state=manifest.evidence_state,
        files=len(manifest.files),
        bytes=total,
    )


class _Folder:
    def __init__(self, root: Path) -> None:
        self._root = root

    def sizes(self) -> dict[str, int]:
        found: dict[str, int] = {}
        pending = [self._root]
        while pending:
            for path in sorted(pending.pop().iterdir()):
                name, state = path.relative_to(self._root).as_posix(), path.lstat()
                if stat.S_ISDIR(state.st_mode):
                    pending.append(path)
                elif stat.S_ISREG(state.st_mode):
                    found[name] = state.st_size
                else:
                    raise BackupDamagedError(str(self._root), f"{name!a} is a link or another thing that is no file")
        return found

    def blocks(self, name: str) -> Iterator[bytes]:
        with (self._root / name).open("rb") as file:
            yield from pieces(file)


class _Tar:
    def __init__(self, file: BinaryIO, members: Iterable[TarMember], *, where: str) -> None:
        self._file = file
        self._members: dict[str, TarMember] = {}
        for member in members:
            if member.name in self._members:
                raise BackupDamagedError(where, f"it holds {member.name!a} twice")
            self._members[member.name] = member

    def sizes(self) -> dict[str, int]:
        return {name: member.size for name, member in self._members.items()}

    def blocks(self, name: str) -> Iterator[bytes]:
        member = self._members[name]
        yield from section(self._file, member.offset, member.size)


@contextmanager
def _opened(backup: Path) -> Iterator[_OpenBackup]:
    try:
        if backup.is_dir():
            yield _Folder(backup)
            return
        with backup.open("rb") as file:
            yield _Tar(file, read_members(file, where=str(backup)), where=str(backup))
    except FileNotFoundError as error:
        if error.filename == str(backup):
            raise BackupRefusedError(f"there is no backup at '{backup}'") from error
        raise BackupDamagedError(str(error.filename), "it went away while it was read") from error
    except PermissionError as error:
        raise BaseForbiddenError(str(error.filename or backup)) from error


def _refuse_occupied(directory: Path) -> None:
    if directory.is_symlink() or directory.exists():
        if not directory.is_dir():
            raise BackupRefusedError(f"'{directory}' is no directory; name one that is new or empty")
        if any(directory.iterdir()):
            raise BackupRefusedError(f"'{directory}' is not empty, and nothing is overwritten; name a directory that is new or empty")


def _read_manifest(backup: Path, kept: _OpenBackup) -> BackupManifest:
    size = kept.sizes().get(MANIFEST_NAME)
    if size is None:
        raise BackupRefusedError(f"'{backup}' has no {MANIFEST_NAME}: it is no backup, or one that was never finished")
    if size > LARGEST_MANIFEST:
        raise BackupDamagedError(MANIFEST_NAME, f"it has {size} bytes, which is too many")
    return decode_manifest(b"".join(kept.blocks(MANIFEST_NAME)), where=str(backup))


def _check_list(manifest: BackupManifest, kept: _OpenBackup) -> None:
    there = dict(kept.sizes())
    del there[MANIFEST_NAME]
    for each in manifest.files:
        size = there.pop(each.name, None)
        if size is None:
            raise BackupDamagedError(each.name, "it is missing")
        if size != each.size:
            raise BackupDamagedError(each.name, f"it has {size} bytes instead of {each.size}")
    if there:
        raise BackupDamagedError(min(there), "it is there, and the manifest does not name it")
    if DATABASE_NAME not in [each.name for each in manifest.files]:
        raise BackupDamagedError(MANIFEST_NAME, f"it does not name '{DATABASE_NAME}'")


def _pass_on(expected: BackupFile, blocks: Iterable[bytes], file: BinaryIO | None, *, meter: Meter) -> None:
    digest = hashlib.sha256()
    for block in blocks:
        digest.update(block)
        if file is not None:
            file.write(block)
        meter.advance(len(block), current=expected.name)
    if digest.hexdigest() != expected.sha256:
        raise BackupDamagedError(expected.name, "it does not have the hash that the manifest names")


@contextmanager
def _new_base(directory: Path) -> Iterator[None]:
    """Make the directory, and leave it as it was found when anything goes wrong."""
    was_there = directory.is_dir()
    mode = stat.S_IMODE(directory.stat().st_mode) if was_there else PRIVATE_DIRECTORY
    make_private_directory(directory)
    directory.chmod(PRIVATE_DIRECTORY)
    try:
        make_private_directory(directory / SEGMENTS_NAME)
        yield
    except BaseException:
        for path in list(directory.iterdir()):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        directory.chmod(mode)
        if not was_there:
            directory.rmdir()
        raise


def _copy(file: BackupFile, kept: _OpenBackup, directory: Path, *, meter: Meter) -> None:
    path = directory / (_UNNAMED if file.name == DATABASE_NAME else file.name)
    make_private_directory(path.parent)
    with open_private(path, "xb") as target:
        _pass_on(file, kept.blocks(file.name), target, meter=meter)
        target.flush()
        os.fsync(target.fileno())


def _finish(manifest: BackupManifest, directory: Path) -> None:
    """Check that the records are those that the manifest speaks of, and make the base by giving them their name."""
    unnamed = directory / _UNNAMED
    try:
        with closing(sqlite3.connect(f"{unnamed.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            schema.schema_version(database)
            head = stored_head(database)[0]
    except sqlite3.Error as error:
        raise BackupDamagedError(DATABASE_NAME, f"it cannot be read ({error})") from error
    found = (head.base_id, head.sequence, head.corpus_version, head.evidence_state)
    if found != (manifest.base_id, manifest.sequence, manifest.corpus_version, manifest.evidence_state):
        raise BackupDamagedError(DATABASE_NAME, f"its newest version is {head.sequence}, which is not the one that the manifest names")
    # Every other name is durable before the records get theirs: a directory that has them is a base, and must be a whole one.
    for folder in sorted({(directory / each.name).parent for each in manifest.files} | {directory / SEGMENTS_NAME}, reverse=True):
        sync_directory(folder)
    unnamed.replace(directory / DATABASE_NAME)
    sync_directory(directory)
    sync_directory(directory.absolute().parent)
