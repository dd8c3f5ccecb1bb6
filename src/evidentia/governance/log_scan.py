"""Reading the log for a few records of many: headers say which are wanted, and only those are read in full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from evidentia.contracts.decisions import LogEntry, LogRecord
from evidentia.contracts.ids import Sha256
from evidentia.contracts.runs import PoliciesRecorded
from evidentia.governance.kept_logs import lines_of, logs_with_parts, readable
from evidentia.provenance.decision_chain import CHECKPOINT, GENESIS, Checkpoint, decode_checkpoint, is_redacted
from evidentia.provenance.decision_lines import ADMIN_RUN, Header, decode_header, entry_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from evidentia.contracts.runs import RunId
    from evidentia.governance.kept_logs import KeptLogs


_POLICIES: Final = b'"policies"'


class Found(NamedTuple):
    """A record of which only the header was read."""

    log: str
    previous: bytes
    hash: bytes
    header: Header
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


def scan(logs: KeptLogs, is_wanted: Callable[[str, Header], bool], *, run_id: RunId | None = None) -> Iterator[LogRecord]:
    """Yield the records whose header is wanted, in order; before those of a log the policies that its checkpoint kept, as seq 0."""
    for found in scan_headers(logs, is_wanted, run_id=run_id):
        if isinstance(found, Checkpoint):
            yield from kept_policies(found)
        else:
            yield found.record()


def scan_headers(logs: KeptLogs, is_wanted: Callable[[str, Header], bool], *, run_id: RunId | None = None) -> Iterator[Found | Checkpoint]:
    """Yield the records whose header is wanted, in order, and the checkpoints of logs that were cut.

    With `run_id`, lines that hold neither it nor policies are passed over without reading them.
    """
    needle = b"" if run_id is None else msgspec.json.encode(run_id)
    logs.flush()
    for log, parts in logs_with_parts(logs):
        with readable(log):
            yield from _scan_lines(log, lines_of(logs, parts), is_wanted, needle)


def policies_in(found: Found | Checkpoint) -> Iterable[LogRecord]:
    """Return the record of policies that was found, or those that a checkpoint kept."""
    return kept_policies(found) if isinstance(found, Checkpoint) else (found.record(),)


def kept_policies(checkpoint: Checkpoint) -> Iterator[LogRecord]:
    """Yield the policies that a checkpoint kept, in the order of their digests."""
    for digest, policies in sorted(checkpoint.policies.items()):
        entry = LogEntry(at_us=0, run_id=ADMIN_RUN, policies=digest, call=PoliciesRecorded(policies=policies))
        yield LogRecord(log="", seq=0, previous=checkpoint.hash, hash=checkpoint.hash, entry=entry)


def _scan_lines(log: str, lines: Iterable[bytes], is_wanted: Callable[[str, Header], bool], needle: bytes) -> Iterator[Found | Checkpoint]:
    previous = GENESIS.hex().encode()
    for line in lines:
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
            yield Found(log, previous, seal, header, details)
        previous = seal
