"""The decision log of a base: sealed lines in the folder `decisions`, buffered or durable.

Buffered, appending only puts entries on a list; a thread seals and writes them every `flush_ms`, and what it cannot write stays on
the list until it can. Durable, an entry is on disk when `append` returns; callers that come together are synced at once.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import weakref
from contextlib import suppress
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from evidentia.backends.embedded.logs.decision_log_file import (
    DECISIONS_NAME,
    MAX_BYTES,
    LogAppender,
    list_parts,
    read_blocks,
    read_blocks_backwards,
    rewrite,
)
from evidentia.backends.embedded.records.database import storage_errors
from evidentia.contracts.errors import BaseDamagedError, BaseStateError, EvidentiaError
from evidentia.contracts.ports import Clock, DecisionLog, Entropy
from evidentia.foundation.background_writer import BackgroundWriter
from evidentia.provenance.decision_chain import EntryBatch, LogPart, read_records, record_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from evidentia.backends.embedded.logs.decision_log_file import RunPlace
    from evidentia.contracts.decisions import LogEntry, LogHead, LogRecord
    from evidentia.contracts.runs import RunId

MAX_PENDING: Final = 65_536
FLUSH_MS: Final = 200
_AT_ONCE: Final = 256
"""How many entries are sealed between two writes: a caller never waits longer than this for the interpreter."""

_open_logs: weakref.WeakSet[EmbeddedDecisionLog] = weakref.WeakSet()


class EmbeddedDecisionLog(DecisionLog):
    """Implements `DecisionLog` and `KeptLogs`. Thread safe; the file is made with the first entry, and another when it is full."""

    def __init__(
        self,
        directory: Path,
        *,
        clock: Clock,
        entropy: Entropy,
        is_durable: bool = False,
        flush_ms: int = FLUSH_MS,
        max_pending: int = MAX_PENDING,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._directory = directory
        self._make_branch = partial(
            EmbeddedDecisionLog,
            directory,
            clock=clock,
            entropy=entropy,
            is_durable=is_durable,
            flush_ms=flush_ms,
            max_pending=max_pending,
            max_bytes=max_bytes,
        )
        self._branches: dict[str, EmbeddedDecisionLog] = {}
        self._folder = directory / DECISIONS_NAME
        self._appender = LogAppender(directory, clock=clock, entropy=entropy, max_bytes=max_bytes)
        self._is_durable = is_durable
        self._max_pending = max_pending
        self._many = max_pending // 8
        self._is_closed = False
        self._writer = BackgroundWriter(self._drain, name="evidentia-decisions", pause_s=flush_ms / 1_000, is_retrying=True)
        self._begin()
        _open_logs.add(self)
        atexit.register(self.close)

    def _begin(self) -> None:
        """Start with nothing taken and nothing open; also in a child process, whose parent writes what it had taken."""
        self._branching = threading.Lock()
        self._lock = threading.Lock()
        """Held by whoever touches the list, for a moment: an append never waits for the disk behind it."""
        self._pending: list[LogEntry | EntryBatch] = []

    @property
    def _writing(self) -> threading.RLock:
        """Held by whoever writes, and always taken before the other, or two threads could wait for each other."""
        return self._writer.writing

    @property
    def problem(self) -> str | None:
        """Return why entries wait that could not be written; None when all is well."""
        return next((each.problem for each in self._opened() if each.problem is not None), self._appender.problem)

    def branch(self, name: str) -> EmbeddedDecisionLog:
        """Return a log beside this one, the same for the same name, which this one flushes and closes.

        Its records are numbered, chained and proved by themselves, so that they tell nothing of how many others there are.
        """
        with self._branching:
            if name not in self._branches:
                self._branches[name] = self._make_branch()
            return self._branches[name]

    def append(self, entries: Sequence[LogEntry]) -> None:
        """Take entries in order; in durable mode they are on disk when this returns, or it raises BaseStateError."""
        if self._is_durable:
            self._append_durably(EntryBatch(tuple(entries)))
        else:
            self._append_buffered(entries)

    def append_now(self, entries: Sequence[LogEntry]) -> Sequence[LogRecord] | None:
        """Take entries, write all that was taken, and return their records; None where they are taken and cannot be written yet."""
        batch = EntryBatch(tuple(entries))
        if self._is_durable:
            self._append_durably(batch)
        else:
            self._append_buffered((batch,))
            with suppress(EvidentiaError, OSError):  # it stays first in line, and `problem` says why
                self._drain()
        return batch.records()

    def flush(self) -> None:
        """Wait until everything taken so far is written, or say why it cannot be."""
        self._drain()
        for each in self._opened():
            each.flush()

    def records(self, *, run_id: RunId | None = None, after: int = 0) -> Iterator[LogRecord]:
        """Yield records in order, of every process that wrote; in each log those with a greater seq than `after`.

        A run that began in the file this process writes to is looked for there only, from where it begins.
        """
        with suppress(EvidentiaError, OSError):  # what cannot be written is no record yet; `problem` says why
            self.flush()
        with self._writing:
            place = None if run_id is None else self._appender.place_of(run_id)
        parts = self.parts() if place is None else (place.part,)
        for log, of_log in groupby(parts, key=attrgetter("log")):
            yield from self._read(log, tuple(of_log), run_id=run_id, after=after, place=place)

    def head(self) -> LogHead:
        """Return where this process's own log stands."""
        with suppress(EvidentiaError, OSError):
            self._drain()
        with self._writing:
            return self._appender.head()

    def close(self) -> None:
        """Write what is left and let go of the file; when that fails, everything is kept for another try."""
        for each in self._opened():
            each.close()
        with self._writing:
            with self._lock:
                self._is_closed = True  # first, so that nothing is taken after the last is written
            try:
                self._drain()
                self._appender.leave()
            except (EvidentiaError, OSError):
                self._is_closed = False
                raise
        self._writer.close()
        atexit.unregister(self.close)

    def parts(self) -> Sequence[LogPart]:
        """Return the parts of all logs, the oldest log first."""
        with storage_errors(self._directory, name=DECISIONS_NAME):
            return list_parts(self._folder)

    def blocks(self, part: LogPart) -> Iterator[bytes]:
        """Yield a part in pieces of whole lines; only the last may lack its end."""
        return self._blocks(part, place=None)

    def blocks_backwards(self, part: LogPart, *, end: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Yield what stands before `end` in pieces of whole lines with where each begins, the last first; without an `end`, all of it."""
        with storage_errors(self._directory, name=str(part)):
            yield from read_blocks_backwards(self._folder, part, end=end)

    def rewrite(self, part: LogPart, change: Callable[[Iterator[bytes]], Iterable[bytes]]) -> None:
        """Put a changed copy in the place of a part; the one this process writes to is left first, and the next entry begins another."""
        self.flush()
        for each in self._opened():
            each._leave(part)  # noqa: SLF001 - one of the same kind
        with self._writing, storage_errors(self._directory, name=str(part)):
            self._leave(part)
            rewrite(self._folder, part, change)

    def _opened(self) -> list[EmbeddedDecisionLog]:
        with self._branching:
            return list(self._branches.values())

    def _leave(self, part: LogPart) -> None:
        with self._writing:
            if self._appender.part == part:
                self._appender.leave()

    def _read(self, log: str, parts: Sequence[LogPart], *, run_id: RunId | None, after: int, place: RunPlace | None) -> Iterator[LogRecord]:
        blocks = (block for part in parts for block in self._blocks(part, place=place))
        previous = place.previous if place is not None and place.part.log == log else None
        try:
            yield from read_records(log, record_lines(blocks), run_id=run_id, after=after, previous=previous)
        except ValueError as error:  # a MsgspecError is one
            raise BaseDamagedError(f"decision log '{log}'", f"a line cannot be read ({error}); verify the log to see which") from error

    def _blocks(self, part: LogPart, *, place: RunPlace | None) -> Iterator[bytes]:
        offset = place.offset if place is not None and place.part == part else 0
        with storage_errors(self._directory, name=str(part)):
            yield from read_blocks(self._folder, part, offset=offset)

    def _append_buffered(self, entries: Sequence[LogEntry | EntryBatch]) -> None:
        with self._lock:
            pending = self._pending
            taken = len(pending)
            has_room = taken < self._max_pending and not self._is_closed
            if has_room:
                pending.extend(entries)
        if not has_room:
            self._append_when_there_is_room(entries)
        elif not taken:
            self._writer.notify()
        elif taken > self._many:
            self._writer.notify(hurry=True)

    def _append_when_there_is_room(self, entries: Sequence[LogEntry | EntryBatch]) -> None:
        """Write in the caller's own time, since the writer cannot keep up; what cannot be written either is refused."""
        if self._is_closed:
            raise BaseStateError("the decision log is closed")
        try:
            self._drain()
        except (EvidentiaError, OSError):
            if len(self._pending) >= self._max_pending:
                raise
        with self._lock:
            self._pending.extend(entries)
        self._writer.notify()

    def _append_durably(self, batch: EntryBatch) -> None:
        with self._lock:
            if self._is_closed:
                raise BaseStateError("the decision log is closed")
            self._pending.append(batch)
        # Group commit: whoever comes to the writing lock first writes and syncs for all who queued meanwhile; the others find it done.
        with self._writing:
            if not batch.is_settled:
                self._drain()
        batch.check()

    def _drain(self) -> None:
        """Write everything that is pending; what a buffered log fails to write stays first in line, what a durable one fails is refused."""
        with self._writing:
            if self._is_durable:
                self._write_durably()
                return
            while some := self._pending[:_AT_ONCE]:
                self._appender.write(some, is_synced=False)
                with self._lock:
                    del self._pending[: len(some)]

    def _write_durably(self) -> None:
        """Write and sync what callers wait for; the writing lock is held. One failure is everybody's."""
        with self._lock:
            taken, self._pending = self._pending, []
        if not taken:
            return
        try:
            self._appender.write(taken, is_synced=True)
        except (EvidentiaError, OSError) as failure:
            for batch in taken:
                if isinstance(batch, EntryBatch):  # in a durable log all are
                    batch.refuse(failure)

    def _forget(self) -> None:
        """Leave what the parent process had taken to the parent."""
        self._begin()
        self._appender.break_off()


def _forget_all() -> None:
    for log in tuple(_open_logs):
        log._forget()  # noqa: SLF001 - the fork is this module's business


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forget_all)
