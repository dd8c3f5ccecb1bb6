"""The files of the decision log: each process appends to its own, and goes on in another when one is large enough.

    decisions/<log>.<part>.log      log = when it was begun, and a few random digits; part = 000001, 000002, ...

A batch of lines is in the file completely or not at all, as long as the disk lets what is torn be cut off again.
Each writer holds a lock on its file for as long as it writes, so that maintenance of a log never meets its writer.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from evidentia.backends.embedded.records.database import storage_errors
from evidentia.contracts.errors import EvidentiaError, NotFoundError
from evidentia.contracts.runs import PoliciesRecorded, RunId, RunStarted
from evidentia.foundation import disk
from evidentia.foundation.disk import AppendFile
from evidentia.provenance.decision_chain import CHECKPOINT, GENESIS, SEED_SIZE, EntryBatch, LogPart, Sealer, head_of
from evidentia.provenance.decision_lines import ADMIN_RUN
from evidentia.provenance.merkle import Frontier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from evidentia.contracts.decisions import LogEntry, LogHead
    from evidentia.contracts.ids import Sha256
    from evidentia.contracts.ports import Clock, Entropy

DECISIONS_NAME: Final = "decisions"
SUFFIX: Final = ".log"
MAX_BYTES: Final = 64 << 20
_NAME_BYTES: Final = 6
_MAX_RUNS: Final = 10_000
_NAME: Final = re.compile(r"(?P<log>[0-9A-Za-z-]+)\.(?P<part>[0-9]{6})\.log")


class RunPlace(NamedTuple):
    """Where a run begins, and the hash of the line before it."""

    part: LogPart
    offset: int
    previous: bytes


class DecisionFile(AppendFile):
    """One part of a log that this process appends to. Not thread safe."""

    def __init__(self, folder: Path, part: LogPart) -> None:
        super().__init__(_path(folder, part), is_locked=True)
        self.part = part


class LogAppender:
    """Seals and writes entries. Not thread safe: whoever writes holds the log's `_writing` lock."""

    def __init__(self, directory: Path, *, clock: Clock, entropy: Entropy, max_bytes: int) -> None:
        self._directory = directory
        self._clock = clock
        self._entropy = entropy
        self._max_bytes = max_bytes
        self._policies: dict[Sha256, LogEntry] = {}
        self._stated: set[Sha256] = set()
        self._sealer: Sealer | None = None
        self._parts = 0
        self._file: DecisionFile | None = None
        self._runs: dict[RunId, RunPlace] = {}
        self.problem: str | None = None
        """Why the last entries could not be written; None when they were."""

    @property
    def part(self) -> LogPart | None:
        """Return what is written to; None when nothing is."""
        return None if self._file is None else self._file.part

    def head(self) -> LogHead:
        """Return where the chain stands."""
        return head_of("", GENESIS, Frontier()) if self._sealer is None else self._sealer.head()

    def place_of(self, run_id: RunId) -> RunPlace | None:
        """Return where a run begins in the file that is written to, which nobody else can rewrite; None when it does not begin there."""
        return self._runs.get(run_id)

    def write(self, taken: Sequence[LogEntry | EntryBatch], *, is_synced: bool) -> None:
        """Write entries, all or none, or raise BaseStateError; a batch among them learns its seals."""
        try:
            with storage_errors(self._directory, name=DECISIONS_NAME):
                file = self._file or self._open()
                sealed = self._write(file, taken)
                if is_synced:
                    file.sync()
        except (EvidentiaError, OSError) as error:
            self.problem = str(error)
            if self._file is not None and self._file.is_torn:
                self.break_off()
            raise
        self.problem = None
        # Not before the sync: whoever asks for a record of a durable log must never get one that a crash could still take away.
        for batch, lines in sealed:
            batch.settle(file.part.log, lines)
        if file.bytes >= self._max_bytes:
            self.leave()

    def leave(self) -> None:
        """Sync and close the file; the next entry goes on with the chain in another."""
        if self._file is not None:
            with storage_errors(self._directory, name=DECISIONS_NAME):
                self._file.sync()
            self._close()

    def break_off(self) -> None:
        """Let go of the file as it is, and of its chain: whatever stands at its end, nothing may follow it."""
        self._close()
        self._sealer = None

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        self._runs = {}

    def _open(self) -> DecisionFile:
        if self._sealer is None:
            begun_at = self._clock.now().strftime("%Y%m%dT%H%M%S-%fZ")
            name = f"{begun_at}-{self._entropy.take(_NAME_BYTES).hex()}"
            self._sealer = Sealer(name, seed=self._entropy.take(SEED_SIZE))
            self._stated = set()
            self._parts = 0
        self._file = DecisionFile(self._directory / DECISIONS_NAME, LogPart(self._sealer.log, self._parts + 1))
        self._parts += 1
        return self._file

    def _write(self, file: DecisionFile, taken: Sequence[LogEntry | EntryBatch]) -> list[tuple[EntryBatch, list[tuple[bytes, bytes]]]]:
        """Seal entries and write them; return each batch with its lines, each behind the hash of the line before.

        A chain states each set of policies before the first run under it, also one that another chain stated.
        """
        sealer = self._sealer
        assert sealer is not None  # noqa: S101 - opened with the file
        mark, stated = sealer.mark(), set(self._stated)
        lines: list[bytes] = []
        sealed: list[tuple[EntryBatch, list[tuple[bytes, bytes]]]] = []
        runs: dict[RunId, RunPlace] = {}
        for each in taken:
            told: list[tuple[bytes, bytes]] | None = None
            if isinstance(each, EntryBatch):
                told = []
                sealed.append((each, told))
            for entry in each.entries if isinstance(each, EntryBatch) else (each,):
                kind = type(entry.call)
                if entry.policies not in stated:
                    stated.add(entry.policies)
                    if kind is PoliciesRecorded:
                        self._policies[entry.policies] = entry
                    elif (known := self._policies.get(entry.policies)) is not None:
                        lines.append(sealer.seal(msgspec.structs.replace(known, run_id=ADMIN_RUN, at_us=entry.at_us)))
                if (kind is RunStarted or kind is PoliciesRecorded) and entry.run_id not in runs:
                    runs[entry.run_id] = RunPlace(file.part, file.bytes + sum(map(len, lines)), sealer.previous)
                previous = None if told is None else sealer.previous
                lines.append(sealer.seal(entry))
                if told is not None and previous is not None:
                    told.append((previous, lines[-1]))
        try:
            file.write(b"".join(lines))
        except OSError:
            # Nothing of the batch is in the file, so the chain goes on from where it stood; the caller tries the same entries again.
            sealer.reset(mark)
            raise
        self._stated = stated
        self._remember(runs)
        return sealed

    def _remember(self, runs: dict[RunId, RunPlace]) -> None:
        for run_id, place in runs.items():
            self._runs.setdefault(run_id, place)
        while len(self._runs) > _MAX_RUNS:
            del self._runs[next(iter(self._runs))]


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
    with _existing(part):
        yield from disk.read_blocks(_path(folder, part), offset=offset)


def read_blocks_backwards(folder: Path, part: LogPart, *, end: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Yield a file from `end`, or its own end, back to its beginning, in pieces of whole lines with where each begins."""
    with _existing(part):
        yield from disk.read_blocks_backwards(_path(folder, part), end=end)


def rewrite(folder: Path, part: LogPart, change: Callable[[Iterator[bytes]], Iterable[bytes]]) -> None:
    """Put a changed copy in the place of a file that nobody writes to, at once or not at all; BaseBusyError while somebody does.

    What stands before a checkpoint is removed with it.
    """
    path = _path(folder, part)
    with _existing(part), disk.rewriting(path, change):
        # Only now, and under the lock: until the checkpoint is durable, the parts before it are the only copy of what they say.
        if _opens_with_checkpoint(path):
            for number in range(1, part.part):
                _path(folder, LogPart(part.log, number)).unlink(missing_ok=True)


@contextmanager
def _existing(part: LogPart) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise NotFoundError("decision log", str(part)) from None


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
