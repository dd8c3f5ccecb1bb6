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
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from evidentia.backends.embedded.database import storage_errors
from evidentia.backends.embedded.decision_log_file import DECISIONS_NAME, list_parts, read_blocks, read_blocks_backwards, rewrite
from evidentia.backends.embedded.decision_log_pen import MAX_BYTES, DecisionPen
from evidentia.contracts.errors import BaseDamagedError, BaseStateError, EvidentiaError
from evidentia.provenance.decision_chain import read_records, record_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from evidentia.backends.embedded.decision_log_pen import Place
    from evidentia.contracts.decisions import LogEntry, LogHead, LogRecord
    from evidentia.contracts.ports import Clock, Entropy
    from evidentia.contracts.runs import RunId
    from evidentia.provenance.decision_chain import LogPart

MAX_PENDING: Final = 65_536
FLUSH_MS: Final = 200
_AT_ONCE: Final = 256
"""How many entries are sealed between two writes: a caller never waits longer than this for the interpreter."""

_open_logs: weakref.WeakSet[EmbeddedDecisionLog] = weakref.WeakSet()


class _Batch:
    """The entries of one durable `append`, and what became of them."""

    __slots__ = ("entries", "error", "is_done")

    def __init__(self, entries: Sequence[LogEntry]) -> None:
        self.entries = entries
        self.is_done = False
        self.error: Exception | None = None


class EmbeddedDecisionLog:
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
        self._folder = directory / DECISIONS_NAME
        self._pen = DecisionPen(directory, clock=clock, entropy=entropy, max_bytes=max_bytes)
        self._is_durable = is_durable
        self._flush_s = flush_ms / 1_000
        self._most_pending = max_pending
        self._many = max_pending // 8
        self._is_closed = False
        self._begin()
        _open_logs.add(self)
        atexit.register(self.close)

    def _begin(self) -> None:
        """Start with nothing taken and nothing open; also in a child process, whose parent writes what it had taken."""
        self._lock = threading.Lock()
        """Held by whoever touches the lists."""
        self._writing = threading.RLock()
        """Held by whoever writes, and taken before the other."""
        self._pending: list[LogEntry] = []
        self._waiting: list[_Batch] = []
        self._wake, self._is_full = threading.Event(), threading.Event()
        self._writer: threading.Thread | None = None

    @property
    def problem(self) -> str | None:
        """Return why entries wait that could not be written; None when all is well."""
        return self._pen.problem

    def append(self, entries: Sequence[LogEntry]) -> None:
        """Take entries in order; in durable mode they are on disk when this returns, or it raises BaseStateError."""
        if self._is_durable:
            self._append_durably(entries)
            return
        with self._lock:
            pending = self._pending
            taken = len(pending)
            has_room = taken < self._most_pending and not self._is_closed
            if has_room:
                pending.extend(entries)
        if not has_room:
            self._append_when_there_is_room(entries)
        elif not taken:
            self._wake_writer()
        elif taken > self._many and not self._is_full.is_set():
            self._is_full.set()

    def flush(self) -> None:
        """Wait until everything taken so far is written, or say why it cannot be."""
        self._drain()

    def records(self, *, run_id: RunId | None = None, after: int = 0) -> Iterator[LogRecord]:
        """Yield records in order, of every process that wrote; in each log those with a greater seq than `after`.

        A run that began in the file this process writes to is looked for there only, from where it begins.
        """
        with suppress(EvidentiaError, OSError):  # what cannot be written is no record yet; `problem` says why
            self._drain()
        with self._writing:
            place = None if run_id is None else self._pen.place_of(run_id)
        parts = self.parts() if place is None else (place.part,)
        for log, of_log in groupby(parts, key=attrgetter("log")):
            yield from self._read(log, tuple(of_log), run_id=run_id, after=after, place=place)

    def head(self) -> LogHead:
        """Return where this process's own log stands."""
        with suppress(EvidentiaError, OSError):
            self._drain()
        with self._writing:
            return self._pen.head()

    def close(self) -> None:
        """Write what is left and let go of the file; when that fails, everything is kept for another try."""
        with self._writing:
            with self._lock:
                self._is_closed = True  # first, so that nothing is taken after the last is written
                together, self._waiting = self._waiting, []
            try:
                self._write_durably(together)
                self._drain()
                self._pen.leave()
            except (EvidentiaError, OSError):
                self._is_closed = False
                raise
        self._wake.set()
        self._is_full.set()
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
        self._drain()
        with self._writing, storage_errors(self._directory, name=str(part)):
            if self._pen.part == part:
                self._pen.leave()
            rewrite(self._folder, part, change)

    def _read(self, log: str, parts: Sequence[LogPart], *, run_id: RunId | None, after: int, place: Place | None) -> Iterator[LogRecord]:
        blocks = (block for part in parts for block in self._blocks(part, place=place))
        previous = place.previous if place is not None and place.part.log == log else None
        try:
            yield from read_records(log, record_lines(blocks), run_id=run_id, after=after, previous=previous)
        except ValueError as error:  # a MsgspecError is one
            raise BaseDamagedError(f"decision log '{log}'", f"a line cannot be read ({error}); verify the log to see which") from error

    def _blocks(self, part: LogPart, *, place: Place | None) -> Iterator[bytes]:
        offset = place.offset if place is not None and place.part == part else 0
        with storage_errors(self._directory, name=str(part)):
            yield from read_blocks(self._folder, part, offset=offset)

    def _append_when_there_is_room(self, entries: Sequence[LogEntry]) -> None:
        """Write in the caller's own time, since the writer cannot keep up; what cannot be written either is refused."""
        if self._is_closed:
            raise BaseStateError("the decision log is closed")
        try:
            self._drain()
        except (EvidentiaError, OSError):
            if len(self._pending) >= self._most_pending:
                raise
        with self._lock:
            self._pending.extend(entries)
        self._wake_writer()

    def _append_durably(self, entries: Sequence[LogEntry]) -> None:
        batch = _Batch(entries)
        with self._lock:
            if self._is_closed:
                raise BaseStateError("the decision log is closed")
            self._waiting.append(batch)
        with self._writing:
            if not batch.is_done:
                with self._lock:
                    together, self._waiting = self._waiting, []
                self._write_durably(together)
        if batch.error is not None:
            raise batch.error

    def _write_durably(self, together: list[_Batch]) -> None:
        """Write and sync several batches; the writing lock is held. One failure is everybody's."""
        if not together:
            return
        error: Exception | None = None
        try:
            self._pen.write([entry for batch in together for entry in batch.entries], is_synced=True)
        except (EvidentiaError, OSError) as failure:
            error = failure
        for batch in together:
            batch.is_done, batch.error = True, error

    def _drain(self) -> None:
        """Write everything that is pending, part by part; what fails stays first in line."""
        with self._writing:
            while part := self._pending[:_AT_ONCE]:
                self._pen.write(part, is_synced=False)
                with self._lock:
                    del self._pending[: len(part)]

    def _wake_writer(self) -> None:
        with self._lock:
            if self._writer is None and not self._is_closed:
                self._writer = threading.Thread(target=self._keep_writing, name="evidentia-decisions", daemon=True)
                self._writer.start()
        self._wake.set()

    def _keep_writing(self) -> None:
        """Wait for the first entry, give others time to join it, write them all; and again."""
        while not self._is_closed:
            self._wake.wait()
            self._wake.clear()
            self._is_full.wait(self._flush_s)
            self._is_full.clear()
            try:
                self._drain()
            except (EvidentiaError, OSError):  # kept and tried again; `problem` says why
                self._wake.set()

    def _forget(self) -> None:
        """Leave what the parent process had taken to the parent."""
        self._begin()
        self._pen.break_off()


def _forget_all() -> None:
    for log in tuple(_open_logs):
        log._forget()  # noqa: SLF001 - the fork is this module's business


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forget_all)
