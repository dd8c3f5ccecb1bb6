"""Reading the log for a few records of many: headers say which are wanted, and only those are read in full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from evidentia.contracts.decisions import LogEntry, LogRecord
from evidentia.contracts.ids import Sha256
from evidentia.contracts.runs import PoliciesRecorded
from evidentia.governance.kept_logs import logs_with_parts, readable
from evidentia.provenance.decision_chain import CHECKPOINT, GENESIS, Checkpoint, decode_checkpoint, is_redacted, record_lines
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
    needle = b"" if run_id is None else run_needle(run_id)
    logs.flush()
    for log, parts in logs_with_parts(logs):
        with readable(log):
            blocks = (block for part in parts for block in logs.blocks(part))
            yield from _scan_blocks(log, blocks, is_wanted, needle)


def run_needle(run_id: RunId) -> bytes:
    """Return a run as it stands in the header of each of its records."""
    return msgspec.json.encode(run_id).replace(b" ", b"\\u0020")


def policies_in(found: Found | Checkpoint) -> Iterable[LogRecord]:
    """Return the record of policies that was found, or those that a checkpoint kept."""
    return kept_policies(found) if isinstance(found, Checkpoint) else (found.record(),)


def kept_policies(checkpoint: Checkpoint) -> Iterator[LogRecord]:
    """Yield the policies that a checkpoint kept, in the order of their digests."""
    for digest, policies in sorted(checkpoint.policies.items()):
        entry = LogEntry(at_us=0, run_id=ADMIN_RUN, policies=digest, call=PoliciesRecorded(policies=policies))
        yield LogRecord(log="", seq=0, previous=checkpoint.hash, hash=checkpoint.hash, entry=entry)


def _scan_blocks(
    log: str, blocks: Iterable[bytes], is_wanted: Callable[[str, Header], bool], needle: bytes
) -> Iterator[Found | Checkpoint]:
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
                yield Found(log, previous, seal, header, details)
            previous = seal


def _last_seal(block: bytes, previous: bytes) -> bytes:
    """Return the hash of the last whole line of a block."""
    end = block.rfind(b"\n")
    begin = block.rfind(b"\n", 0, end) + 1
    return block[begin : begin + len(previous)] if end >= 0 else previous
