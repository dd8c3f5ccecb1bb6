"""The decision log without a base: the same lines and the same chain, in memory."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from evidentia.contracts.errors import NotFoundError
from evidentia.contracts.ports import DecisionLog, Entropy
from evidentia.provenance.decision_chain import SEED_SIZE, EntryBatch, LogPart, Sealer, read_records, record_lines, with_ends

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from evidentia.contracts.decisions import LogEntry, LogHead, LogRecord
    from evidentia.contracts.runs import RunId

_LINES_PER_BLOCK = 4_096


class MemoryLog(DecisionLog):
    """Implements `DecisionLog` and `KeptLogs` with one log of one part. Thread safe; entries are sealed when they are read."""

    problem: str | None = None
    """Memory is always there."""

    def __init__(self, *, entropy: Entropy, name: str = "memory") -> None:
        self._lock = threading.Lock()
        self._pending: list[LogEntry | EntryBatch] = []
        self._lines: list[bytes] = []
        self._begins: dict[RunId, int] = {}
        """The place of the first line of each run, while no line was moved."""
        self._is_rewritten = False
        self._sealer = Sealer(name, seed=entropy.take(SEED_SIZE))
        self._part = LogPart(name, 1)

    def append(self, entries: Sequence[LogEntry]) -> None:
        """Take entries in order."""
        with self._lock:
            self._pending.extend(entries)

    def append_now(self, entries: Sequence[LogEntry]) -> Sequence[LogRecord]:
        """Take entries in order, and return their records."""
        batch = EntryBatch(tuple(entries))
        with self._lock:
            self._pending.append(batch)
            self._seal()
        return batch.records() or ()

    def flush(self) -> None:
        """Seal everything taken so far."""
        with self._lock:
            self._seal()

    def records(self, *, run_id: RunId | None = None, after: int = 0) -> Iterator[LogRecord]:
        """Yield the records in order whose seq is greater than `after`; those of a run are looked for from where it begins."""
        lines = self._sealed(self._part)
        first = 0 if run_id is None else self._begins.get(run_id, 0 if self._is_rewritten else len(lines))
        previous = lines[first - 1].partition(b" ")[0] if first else None
        return read_records(self._part.log, record_lines(lines[first:]), run_id=run_id, after=after, previous=previous)

    def head(self) -> LogHead:
        """Return where the log stands."""
        with self._lock:
            self._seal()
            return self._sealer.head()

    def close(self) -> None:
        """Seal what is left; the log stays readable."""
        self.flush()

    def parts(self) -> Sequence[LogPart]:
        """Return the one part there is."""
        return (self._part,)

    def blocks(self, part: LogPart) -> Iterator[bytes]:
        """Yield the log as it stands now, in pieces of whole lines."""
        lines = self._sealed(part)
        return (b"".join(lines[start : start + _LINES_PER_BLOCK]) for start in range(0, len(lines), _LINES_PER_BLOCK))

    def rewrite(self, part: LogPart, change: Callable[[Iterator[bytes]], Iterable[bytes]]) -> None:
        """Put a changed copy in the place of the log; what is appended meanwhile comes after it."""
        lines = self._sealed(part)
        changed = list(with_ends(change(iter((b"".join(lines),)))))
        with self._lock:
            self._lines = changed + self._lines[len(lines) :]
            self._begins.clear()
            self._is_rewritten = True

    def _sealed(self, part: LogPart) -> Sequence[bytes]:
        if part != self._part:
            raise NotFoundError("decision log", str(part))
        with self._lock:
            self._seal()
            return tuple(self._lines)

    def _seal(self) -> None:
        for taken in self._pending:
            if isinstance(taken, EntryBatch):
                taken.settle(self._part.log, [(self._sealer.previous, self._seal_one(entry)) for entry in taken.entries])
            else:
                self._seal_one(taken)
        self._pending.clear()

    def _seal_one(self, entry: LogEntry) -> bytes:
        if not self._is_rewritten:
            self._begins.setdefault(entry.run_id, len(self._lines))
        line = self._sealer.seal(entry)
        self._lines.append(line)
        return line
