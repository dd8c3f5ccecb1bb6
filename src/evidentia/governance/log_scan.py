"""Reading the log for a few records of many: headers say which are wanted, and only those are read in full."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import msgspec

from evidentia.contracts.decisions import LogEntry, LogRecord
from evidentia.contracts.errors import BaseDamagedError
from evidentia.contracts.ids import Sha256
from evidentia.contracts.ports import DecisionLog
from evidentia.contracts.runs import PoliciesRecorded, RunFacts, RunId, RunStarted
from evidentia.provenance.decision_chain import CHECKPOINT, GENESIS, Checkpoint, LogPart, decode_checkpoint, is_redacted, record_lines
from evidentia.provenance.decision_lines import ADMIN_RUN, LineHeader, decode_header, entry_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


_POLICIES: Final = b'"policies"'


class ScannedRecord(NamedTuple):
    """A record of which only the header was read."""

    log: str
    previous: bytes
    hash: bytes
    header: LineHeader
    details: bytes

    def record(self) -> LogRecord:
        """Read it in full."""
        return LogRecord(
            log=self.log,
            seq=self.header.seq,
            previous=Sha256(self.previous.decode("ascii")),
            hash=Sha256(self.hash.decode("ascii")),
            entry=entry_of(self.header, self.details),
            is_redacted=is_redacted(self.details),
        )


def scan(logs: KeptLogs, is_wanted: Callable[[str, LineHeader], bool], *, run_id: RunId | None = None) -> Iterator[LogRecord]:
    """Yield the records whose header is wanted, in order; before those of a log the policies that its checkpoint kept, as seq 0."""
    for found in scan_headers(logs, is_wanted, run_id=run_id):
        if isinstance(found, Checkpoint):
            yield from kept_policies(found)
        else:
            yield found.record()


def scan_headers(
    logs: KeptLogs, is_wanted: Callable[[str, LineHeader], bool], *, run_id: RunId | None = None
) -> Iterator[ScannedRecord | Checkpoint]:
    """Yield the records whose header is wanted, in order, and the checkpoints of logs that were cut.

    With `run_id`, lines that hold neither it nor policies are passed over without reading them.
    """
    needle = b"" if run_id is None else run_needle(run_id)
    logs.flush()
    for log, parts in logs_with_parts(logs):
        with readable(log):
            blocks = (block for part in parts for block in logs.blocks(part))
            yield from _scan_blocks(log, blocks, is_wanted, needle)


def run_needle(run_id: RunId) -> bytes:
    """Return a run as it stands in the header of each of its records."""
    return msgspec.json.encode(run_id).replace(b" ", b"\\u0020")


def policies_in(found: ScannedRecord | Checkpoint) -> Iterable[LogRecord]:
    """Return the record of policies that was found, or those that a checkpoint kept."""
    return kept_policies(found) if isinstance(found, Checkpoint) else (found.record(),)


def kept_policies(checkpoint: Checkpoint) -> Iterator[LogRecord]:
    """Yield the policies that a checkpoint kept, in the order of their digests."""
    for digest, policies in sorted(checkpoint.policies.items()):
        entry = LogEntry(at_us=0, run_id=ADMIN_RUN, policies=digest, call=PoliciesRecorded(policies=policies))
        yield LogRecord(log="", seq=0, previous=checkpoint.hash, hash=checkpoint.hash, entry=entry)


def _scan_blocks(
    log: str, blocks: Iterable[bytes], is_wanted: Callable[[str, LineHeader], bool], needle: bytes
) -> Iterator[ScannedRecord | Checkpoint]:
    previous = GENESIS.hex().encode()
    for block in blocks:
        # Whole pieces are passed over at once: of most logs, a run is a small part.
        if needle not in block and _POLICIES not in block and not block.startswith(CHECKPOINT):
            previous = _last_seal(block, previous)
            continue
        for line in record_lines((block,)):
            if line.startswith(CHECKPOINT):
                checkpoint = decode_checkpoint(line)
                previous = checkpoint.hash.encode()
                yield checkpoint
                continue
            if needle not in line and _POLICIES not in line:
                previous = line[: len(previous)]
                continue
            seal, header_bytes, details = line.split(b" ", 2)
            header = decode_header(header_bytes)
            if is_wanted(log, header):
                yield ScannedRecord(log, previous, seal, header, details)
            previous = seal


def _last_seal(block: bytes, previous: bytes) -> bytes:
    """Return the hash of the last whole line of a block."""
    end = block.rfind(b"\n")
    begin = block.rfind(b"\n", 0, end) + 1
    return block[begin : begin + len(previous)] if end >= 0 else previous


# --- logs of a base ---
# What care, reading and replay of the decision log need beyond appending to it: the lines of every log, and a way to change them.


class KeptLogs(DecisionLog, Protocol):
    """Gives the lines of every log in a base. Thread safe."""

    def parts(self) -> Sequence[LogPart]:
        """Return the parts of all logs, the oldest log first."""
        ...

    def blocks(self, part: LogPart) -> Iterator[bytes]:
        """Yield a part in pieces of whole lines; only the last may lack its end."""
        ...

    def rewrite(self, part: LogPart, change: Callable[[Iterator[bytes]], Iterable[bytes]]) -> None:
        """Put a changed copy in the place of a part, at once or not at all; BaseBusyError while another process writes to it.

        Parts before one that then opens with a checkpoint are removed.
        """
        ...


def logs_with_parts(logs: KeptLogs) -> list[tuple[str, tuple[LogPart, ...]]]:
    """Return every log with its parts, the oldest first."""
    return [(log, tuple(parts)) for log, parts in groupby(logs.parts(), key=attrgetter("log"))]


@contextmanager
def readable(log: str) -> Iterator[None]:
    """Say of which log a line could not be read."""
    try:
        yield
    except ValueError as error:  # a MsgspecError is one
        raise BaseDamagedError(f"decision log '{log}'", f"a line cannot be read ({error}); verify the log to see which") from error


def lines_of(logs: KeptLogs, parts: Iterable[LogPart]) -> Iterator[bytes]:
    """Yield the lines of parts of one log, without their ends."""
    return record_lines(block for part in parts for block in logs.blocks(part))


# --- marks of a line ---
# Finding a few lines of a log by what they hold: where runs begin and end, where policies are stated, whose runs they are.

RUN_MARK: Final = b'","run","'
END_MARK: Final = b'","end","'
POLICIES_MARK: Final = b'","policies","'
"""How the kind stands in a header, between the run and the digest of the policies."""


def marks_of(runs: Iterable[RunId], digests: Iterable[Sha256]) -> list[bytes]:
    """Return how the kind stands in a header before the digest; details may hold the same, so headers decide."""
    stated = [b'","policies","%b"' % digest.encode() for digest in sorted(digests)]
    return [*stated, RUN_MARK, END_MARK] if runs else stated


def marked(content: bytes, marks: Iterable[bytes]) -> list[bytes]:
    """Return the lines that hold a mark, or open a log that was cut, the last first."""
    starts: set[int] = {0} if content.startswith(CHECKPOINT) else set()
    for mark in marks:
        found = content.find(mark)
        while found >= 0:
            starts.add(content.rfind(b"\n", 0, found) + 1)
            found = content.find(mark, found + 1)
    ends = ((start, content.find(b"\n", start)) for start in sorted(starts, reverse=True))
    return [content[start:end] for start, end in ends if end >= 0]


def read_line(log: str, line: bytes) -> LogRecord:
    """Return a record of which the place in the chain does not matter."""
    seal, header, details = line.split(b" ", 2)
    return ScannedRecord(log, seal, seal, decode_header(header), details).record()


def beginnings_of(logs: KeptLogs, run_ids: Iterable[RunId]) -> dict[RunId, list[RunFacts]]:
    """Return whose runs these are, by every line that begins one of them; of one that was redacted nobody's."""
    wanted = tuple(run_ids)
    marks = [run_needle(run_id) + b',"run","' for run_id in wanted]
    logs.flush()
    begun: dict[RunId, list[RunFacts]] = {}
    for log, parts in logs_with_parts(logs):
        with readable(log):
            for content in (content for part in parts for content in logs.blocks(part)):
                records = (read_line(log, line) for line in marked(content, marks) if not line.startswith(CHECKPOINT))
                for record in records:
                    run_id, call = record.entry.run_id, record.entry.call
                    if isinstance(call, RunStarted) and run_id in wanted:
                        facts = RunFacts(run_id=run_id, agent_name="", tenant="") if record.is_redacted else call.facts
                        begun.setdefault(run_id, []).append(facts)
    return begun


def runs_of(logs: KeptLogs, agent: str) -> set[RunId]:
    """Return the runs of an agent, by the lines that begin them."""
    return _runs_with(logs, (b'"agent_name":' + msgspec.json.encode(agent),), ("run",))


def runs_holding(logs: KeptLogs, marks: tuple[bytes, ...]) -> set[RunId]:
    """Return the runs of which a line holds one of the marks, be it in its header or in its details."""
    return _runs_with(logs, marks, ())


def _runs_with(logs: KeptLogs, marks: tuple[bytes, ...], kinds: tuple[str, ...]) -> set[RunId]:
    logs.flush()
    found: set[RunId] = set()
    for log, parts in logs_with_parts(logs):
        with readable(log):
            lines = (line for part in parts for content in logs.blocks(part) for line in marked(content, marks))
            headers = (decode_header(line.split(b" ", 2)[1]) for line in lines if not line.startswith(CHECKPOINT))
            found.update(header.run_id for header in headers if not kinds or header.kind in kinds)
    return found
