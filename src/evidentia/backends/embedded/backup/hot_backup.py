"""A consistent copy of a base that others use meanwhile: nobody waits for it long, and nothing torn gets into it.

logs first      every receipt names a version, which the records that are copied after it have
then records    one read transaction over the database; the files it names are held open against collections
then the rest   what stands still, or is a database of its own
manifest last   written and synced before the whole gets its name; what was killed halfway has none
"""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.backends.embedded.backup.backup_contents import (
    PAGES_AT_ONCE,
    copy_decisions,
    copy_file,
    copy_held,
    copy_named,
    copy_receipts,
    copy_records,
    copy_side_file,
    copy_synonyms,
    left_behind,
    records_snapshot,
)
from evidentia.backends.embedded.backup.backup_format import encode_manifest, sealed
from evidentia.backends.embedded.backup.backup_sink import FolderSink, Meter, Sink, TarSink, exists_already
from evidentia.backends.embedded.records.database import DATABASE_NAME, LOCK_NAME, WriterLock, storage_errors
from evidentia.contracts.backups import BACKUP_FORMAT, BackupManifest, BackupProgress, BackupReport, LeftOut
from evidentia.contracts.errors import BackupRefusedError, BaseForbiddenError
from evidentia.contracts.ids import CorpusVersion, EvidenceState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from evidentia.contracts.ports import Clock
    from evidentia.contracts.provenance import CommitRecord
    from evidentia.contracts.settings import Settings

TAR: Final = ".tar"
_WORK_NAMES: Final = ("files", "files.tar", "records")
_OTHER_ARCHIVES: Final = (".gz", ".tgz", ".bz2", ".xz", ".zst", ".zip", ".7z")


class BaseFiles(NamedTuple):
    """The names that the parts of a base go by, as far as this room does not know them."""

    settings: Sequence[str]
    """The settings, and what else shapes answers and is one file."""
    synonyms: str
    databases: Sequence[str]
    """Beside the records, and durable."""
    rebuilt: Sequence[str]
    """What may be lost, and is left out."""


class EmbeddedBackup:
    """Takes copies of one base. It only reads there, and never holds the writer's lock."""

    def __init__(self, directory: Path, *, files: BaseFiles, settings: Settings, clock: Clock, pages_at_once: int = PAGES_AT_ONCE) -> None:
        self._directory = directory
        self._files = files
        self._settings = settings
        self._clock = clock
        self._pages_at_once = pages_at_once

    def take(
        self, destination: Path, *, watch: Callable[[BackupProgress], None] | None = None, is_stopped: Callable[[], bool] = lambda: False
    ) -> BackupReport:
        """Make a backup in a new folder, or in a new file when the name ends in `.tar`; what exists is refused."""
        target = Path(destination).absolute()
        self._check(target)
        with _errors(self._directory, target), _workplace(target) as work:
            meter = Meter(_size_of(self._directory), watch=watch, is_stopped=is_stopped)
            sink: Sink = TarSink(work, meter=meter) if target.suffix == TAR else FolderSink(work, meter=meter)
            with closing(sink):
                return self._fill(sink, meter, target)

    def _check(self, target: Path) -> None:
        if target.exists() or target.is_symlink():
            raise exists_already(target)
        if target.suffix.lower() in _OTHER_ARCHIVES:
            raise BackupRefusedError(f"'{target.name}' ends in '{target.suffix}'; a backup is a folder or a file that ends in '{TAR}'")
        if not target.parent.is_dir():
            raise BackupRefusedError(f"there is no directory '{target.parent}'; make it first")
        if target.parent.resolve().is_relative_to(self._directory.resolve()):
            raise BackupRefusedError(f"'{target}' lies inside the base; name a place outside")

    def _fill(self, sink: Sink, meter: Meter, target: Path) -> BackupReport:
        """Copy everything in the order that the module says, then name it.

        1. decisions and receipts  2. records  3. segments and vectors  4. databases beside them  5. synonyms, settings, models
        6. the manifest, and with it the name
        """
        taken_at = self._clock.now()
        # Logs before records: what a log names is then in the records, which are copied later and never hold less.
        decisions = copy_decisions(self._directory, sink)
        receipts = copy_receipts(self._directory, sink)
        head = self._copy_records(sink, meter)
        for name in self._files.databases:
            copy_side_file(self._directory / name, sink, advance=partial(meter.advance, 0, current=name))
        left_out = copy_synonyms(self._directory / self._files.synonyms, sink)
        for name in self._files.settings:
            copy_file(self._directory / name, sink)
        left_out += copy_named(self._directory, self._settings, sink)
        left_out += left_behind(self._directory, sink, rebuilt=self._files.rebuilt)
        manifest = _manifest(head, sink, left_out, taken_at=taken_at)
        sink.publish(encode_manifest(manifest), target)
        return BackupReport(
            destination=str(target),
            taken_at=manifest.taken_at,
            sequence=manifest.sequence,
            corpus_version=manifest.corpus_version,
            evidence_state=manifest.evidence_state,
            files=len(manifest.files),
            bytes=sum(each.size for each in manifest.files),
            receipts=receipts,
            decisions=decisions,
            seal=manifest.seal,
            left_out=manifest.left_out,
        )

    def _copy_records(self, sink: Sink, meter: Meter) -> CommitRecord:
        """Copy the database within the read transaction, and the files it names after it: the shorter it is, the better for writers."""
        with ExitStack() as held:
            with records_snapshot(self._directory, held=held) as snapshot:
                advance = partial(meter.advance, 0, current=DATABASE_NAME)
                copy_records(snapshot, sink, DATABASE_NAME, pages_at_once=self._pages_at_once, advance=advance)
            copy_held(snapshot, sink)
        return snapshot.head


def _manifest(head: CommitRecord, sink: Sink, left_out: list[LeftOut], *, taken_at: datetime) -> BackupManifest:
    return sealed(
        BackupManifest(
            format=BACKUP_FORMAT,
            taken_at=taken_at,
            base_id=head.base_id,
            sequence=head.sequence,
            corpus_version=CorpusVersion(head.corpus_version),
            evidence_state=EvidenceState(head.evidence_state),
            files=tuple(sink.files),
            left_out=tuple(left_out),
        )
    )


@contextmanager
def _workplace(target: Path) -> Iterator[Path]:
    """Give an empty folder beside the destination that is removed in the end; what a killed backup left there goes first."""
    work = target.with_name(f"{target.name}.partial")
    try:
        work.mkdir(mode=0o700)
    except FileExistsError as error:
        if not _is_ours(work):
            raise BackupRefusedError(f"'{work}' is in the way, and no backup made it; name another destination") from error
    lock = WriterLock(work, wait_ms=0)
    try:
        for name in _WORK_NAMES:
            _remove(work / name)
        yield work
    finally:
        lock.release()
        shutil.rmtree(work, ignore_errors=True)


def _is_ours(work: Path) -> bool:
    """Tell whether a killed backup of this user left a folder: nothing else is ever removed."""
    if work.is_symlink() or not work.is_dir() or (sys.platform != "win32" and work.stat().st_uid != os.geteuid()):
        return False
    found = {path.name for path in work.iterdir()}
    return not found or (LOCK_NAME in found and found <= {*_WORK_NAMES, LOCK_NAME, f"{LOCK_NAME}-journal"})


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def _errors(directory: Path, target: Path) -> Iterator[None]:
    """Say in the user's terms what went wrong, and on which side."""
    with storage_errors(target.parent):
        try:
            yield
        except PermissionError as error:
            if error.filename is not None and Path(error.filename).absolute().is_relative_to(directory.absolute()):
                raise BaseForbiddenError(str(error.filename)) from error
            raise


def _size_of(directory: Path) -> int:
    """Return about how much there is to copy; a file that goes away meanwhile counts for nothing."""
    size = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            with suppress(OSError):
                size += (Path(folder) / name).stat().st_size
    return size
