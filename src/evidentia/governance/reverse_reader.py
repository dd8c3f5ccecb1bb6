"""Logs from their ends: the newest records that are wanted, each with the beginning of its run, and no more read than that takes."""

from __future__ import annotations

import heapq
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, runtime_checkable
from weakref import WeakKeyDictionary

from evidentia.governance.log_scan import (
    END_MARK,
    POLICIES_MARK,
    RUN_MARK,
    ScannedRecord,
    kept_policies,
    logs_with_parts,
    marked,
    marks_of,
    read_line,
    readable,
)
from evidentia.provenance.decision_chain import CHECKPOINT, GENESIS, LogPart, decode_checkpoint, is_redacted
from evidentia.provenance.decision_lines import LineHeader, decode_header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from evidentia.contracts.decisions import LogRecord
    from evidentia.contracts.ids import Sha256
    from evidentia.contracts.runs import RunId
    from evidentia.governance.decision_expansion import Expander
    from evidentia.governance.log_scan import KeptLogs

_HASH_DIGITS: Final = 64
_NEVER: Final = 1 << 62


class LogPosition(NamedTuple):
    """Where a record stands: logs are in the order of their names, which is that of their beginnings."""

    log: str
    seq: int
    least_us: int = 0
    """The earliest time among what was shown up to here; logs that are read from their ends go on below it."""


Block = tuple[int, bytes]
"""Where in a part it begins, and whole lines."""


@runtime_checkable
class SupportsReverseRead(Protocol):
    """A keeper of logs that can read a part from its end without reading all of it."""

    def blocks_backwards(self, part: LogPart, *, end: int | None = None) -> Iterator[Block]:
        """Yield what stands before `end` in pieces of whole lines with where each begins, the last first; without an `end`, all of it."""
        ...


class RecordFilter(NamedTuple):
    """Which records are looked for; the header alone decides."""

    is_wanted: Callable[[LineHeader], bool]
    needles: tuple[bytes, ...] = ()
    """A line without any of these is not wanted; none of them means that any line may be."""
    since_us: int | None = None


_known: Final[WeakKeyDictionary[KeptLogs, dict[Sha256, LogRecord]]] = WeakKeyDictionary()
"""Policies by their digests, of logs that are open: most records stand under policies that were stated long before them."""
_MAX_KNOWN: Final = 256


class PendingRecord:
    """A record that is wanted, and the beginning of its run once that is found."""

    __slots__ = ("found", "is_settled", "started")

    def __init__(self, found: ScannedRecord) -> None:
        self.found = found
        self.started: LogRecord | None = None
        self.is_settled = False
        """Whether `started` is known, or known to be nowhere."""

    def settle(self, started: LogRecord | None) -> None:
        """Say under which beginning the record stands."""
        self.started, self.is_settled = started, True


class ReverseReader:
    """One log from its end. Not thread safe."""

    def __init__(self, logs: KeptLogs, log: str, parts: Sequence[LogPart], *, wanted: RecordFilter, expander: Expander) -> None:
        self.log = log
        self._logs = logs
        self._parts = tuple(reversed(parts))
        self._wanted = wanted
        self._expander = expander
        self._at: tuple[int, int | None] = (0, None)
        """The part, and where in it the lines end that were not looked at yet."""
        self._waiting: dict[RunId, list[PendingRecord]] = {}
        self._ahead: dict[RunId, LogRecord | None] = {}
        """Beginnings that were found before the lines in between were looked at; None where an end, or nothing, was found first."""
        self.digests: set[Sha256] = set()
        """Policies that are known already."""

    def records(self) -> Iterator[PendingRecord]:
        """Yield what is wanted, the last first; not every one is settled yet."""
        held: list[tuple[bytes, LineHeader, bytes]] = []
        for _, content in self._blocks():
            # All of a piece at once: what is looked for ahead begins where it ends.
            yield from list(self._taken(content, held))
        if held:
            yield self._kept(held.pop(), GENESIS.hex().encode())

    def settle(self, kept: Iterable[PendingRecord], *, digests: set[Sha256], older: Sequence[ReverseReader]) -> None:
        """Find the beginnings of runs, and policies, before the lines that were looked at: here, else in older logs."""
        runs = {each.found.header.run_id for each in kept if not each.is_settled}
        self._recall(digests)
        missing = digests - self.digests
        for log in (self, *older):
            if not runs and not missing:
                return
            for run_id, started in log.beginnings(runs, missing):
                self._settle(run_id, started)
        for run_id in sorted(runs):
            self._settle(run_id, None)

    def beginnings(self, runs: set[RunId], digests: set[Sha256]) -> Iterator[tuple[RunId, LogRecord | None]]:
        """Yield where runs begin among what was not looked at yet, None where one ended first; both sets lose what was found."""
        for _, content in self._blocks(is_peek=True):
            for line in marked(content, marks_of(runs, digests)):
                if line.startswith(CHECKPOINT):
                    digests -= self._learn(kept_policies(decode_checkpoint(line)))
                    continue
                header = decode_header(line.split(b" ", 2)[1])
                if header.kind == "policies":
                    digests -= self._learn((read_line(self.log, line),))
                elif header.run_id in runs and header.kind in {"run", "end"}:
                    runs.discard(header.run_id)
                    yield header.run_id, read_line(self.log, line) if header.kind == "run" else None
            if not runs and not digests:
                return

    def _settle(self, run_id: RunId, started: LogRecord | None) -> None:
        self._ahead[run_id] = started
        for each in self._waiting.pop(run_id, ()):
            each.settle(started)

    def _blocks(self, *, is_peek: bool = False) -> Iterator[Block]:
        """Yield what was not looked at yet; looking ahead leaves the place where it is."""
        place, end = self._at
        for number in range(place, len(self._parts)):
            for block in _backwards(self._logs, self._parts[number], end=end):
                if not is_peek:
                    self._at = (number, block[0])
                yield block
            end = None
            if not is_peek:
                self._at = (number + 1, None)

    def _taken(self, content: bytes, held: list[tuple[bytes, LineHeader, bytes]]) -> Iterator[PendingRecord]:
        """Yield what is wanted in a block; the last of it waits in `held` for the line before it, whose hash it names."""
        is_wanted, needles, since_us = self._wanted
        if needles and not held and not self._waiting and not _holds(content, needles):
            self._ahead.clear()
            return
        for line in reversed(_lines(content)):
            if held:
                yield self._kept(held.pop(), _seal_of(line))
            if since_us is not None and not self._waiting and _at_us(line) < since_us:
                self._ahead.clear()
                continue
            is_mark = RUN_MARK in line or END_MARK in line or POLICIES_MARK in line or line.startswith(CHECKPOINT)
            if not is_mark and ((needles and not _holds(line, needles)) or (since_us is not None and _at_us(line) < since_us)):
                continue
            if line.startswith(CHECKPOINT):
                self._learn(kept_policies(decode_checkpoint(line)))
                continue
            seal, header_bytes, details = line.split(b" ", 2)
            header = decode_header(header_bytes)
            if header.kind == "policies":
                self._learn((read_line(self.log, line),))
                continue
            if header.kind == "end":
                self._meet_end(header.run_id)
            if is_wanted(header):
                held.append((seal, header, details))
            if header.kind == "run":
                self._meet_beginning(header.run_id, line)

    def _kept(self, held: tuple[bytes, LineHeader, bytes], previous: bytes) -> PendingRecord:
        seal, header, details = held
        kept = PendingRecord(ScannedRecord(self.log, previous, seal, header, details))
        if header.kind == "run":
            kept.settle(kept.found.record())
        elif header.run_id in self._ahead:
            kept.settle(self._ahead[header.run_id])
        else:
            self._waiting.setdefault(header.run_id, []).append(kept)
        return kept

    def _meet_end(self, run_id: RunId) -> None:
        """What was recorded under a run after its end has no beginning."""
        self._ahead.pop(run_id, None)
        for each in self._waiting.pop(run_id, ()):
            each.settle(None)

    def _meet_beginning(self, run_id: RunId, line: bytes) -> None:
        self._ahead.pop(run_id, None)
        waiting = self._waiting.pop(run_id, ())
        if waiting:
            started = read_line(self.log, line)
            for each in waiting:
                each.settle(started)

    def _learn(self, policies: Iterable[LogRecord]) -> set[Sha256]:
        known = _known.setdefault(self._logs, {})
        for record in policies:
            self.digests.add(record.entry.policies)
            self._expander.learn(record)
            while len(known) >= _MAX_KNOWN:
                known.pop(next(iter(known)), None)
            known[record.entry.policies] = record
        return self.digests

    def _recall(self, digests: set[Sha256]) -> None:
        """Take policies that were read before; a digest stands for the same policies wherever it stands in these logs."""
        known = _known.get(self._logs, {})
        self._learn([known[digest] for digest in sorted(digests - self.digests) if digest in known])


class NewestFirst:
    """All logs from their ends, by time where several were written at once. Not thread safe."""

    def __init__(self, logs: KeptLogs, wanted: RecordFilter, *, expander: Expander, after: LogPosition | None = None) -> None:
        logs.flush()
        parts = logs_with_parts(logs)[::-1]
        self._logs = [ReverseReader(logs, log, of_log, wanted=wanted, expander=expander) for log, of_log in parts]
        self._merged = heapq.merge(
            *(self._read(place, after) for place in range(len(self._logs))), key=lambda each: (-each[1].found.header.at_us, each[0])
        )
        self._least_us = None if after is None else after.least_us

    def take(self, count: int) -> list[PendingRecord]:
        """Return the next records, settled; fewer than asked for when there are no more."""
        taken = list(islice(self._merged, count))
        for place in sorted({place for place, _ in taken}):
            log, own = self._logs[place], [kept for number, kept in taken if number == place]
            with readable(log.log):
                log.settle(
                    own, digests={each.found.header.policies for each in own if _needs_policies(each)}, older=self._logs[place + 1 :]
                )
        return [kept for _, kept in taken]

    def walk(self) -> Iterator[PendingRecord]:
        """Yield records one by one, none of them settled."""
        return (kept for _, kept in self._merged)

    def place_of(self, kept: PendingRecord) -> LogPosition:
        """Return where a record stands; each one that is shown is to be asked for, in order."""
        at_us = kept.found.header.at_us
        self._least_us = at_us if self._least_us is None else min(at_us, self._least_us)
        return LogPosition(kept.found.log, kept.found.header.seq, self._least_us)

    def _read(self, place: int, after: LogPosition | None) -> Iterator[tuple[int, PendingRecord]]:
        log = self._logs[place]
        is_begun = after is None
        with readable(log.log):
            for kept in log.records():
                is_begun = is_begun or _is_after(kept, after)
                if is_begun:
                    yield place, kept


def _is_after(kept: PendingRecord, after: LogPosition | None) -> bool:
    found = kept.found
    if after is None:
        return True
    if found.log == after.log:
        return found.header.seq < after.seq
    return found.header.at_us < after.least_us or (found.header.at_us == after.least_us and found.log < after.log)


def _needs_policies(kept: PendingRecord) -> bool:
    """Tell whether a record can be told only with the policies it stands under: what passed, and what was taken out."""
    return not kept.found.header.outcomes or is_redacted(kept.found.details)


def _backwards(logs: KeptLogs, part: LogPart, *, end: int | None) -> Iterator[Block]:
    if isinstance(logs, SupportsReverseRead):
        yield from logs.blocks_backwards(part, end=end)
        return
    blocks: list[Block] = []
    start = 0
    for content in logs.blocks(part):
        blocks.append((start, content))
        start += len(content)
    yield from (block for block in reversed(blocks) if end is None or block[0] < end)


def _lines(content: bytes) -> list[bytes]:
    """Return whole lines without their ends; what stands after the last end is torn, or not written yet."""
    lines = content.split(b"\n")
    lines.pop()
    return lines


def _seal_of(line: bytes) -> bytes:
    return decode_checkpoint(line).hash.encode() if line.startswith(CHECKPOINT) else line[:_HASH_DIGITS]


def _at_us(line: bytes) -> int:
    """Return the time in a header without reading the rest of it; a line that has no header is never too old."""
    if line.startswith(CHECKPOINT):
        return _NEVER
    begin = line.index(b",", _HASH_DIGITS) + 1
    return int(line[begin : line.index(b",", begin)])


def _holds(line: bytes, needles: tuple[bytes, ...]) -> bool:
    for needle in needles:  # noqa: SIM110 - a loop costs half of what `any` does, and every line of a log is asked
        if needle in line:
            return True
    return False
