"""Maintenance of the decision log, an audit log: verification, redaction, retention, and inclusion and consistency proofs.

Whatever changes a log is written down first, as a step of the run `admin`, with who did it and why; a log from which something
was taken without a record of that does not verify.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.decisions import LogEntry, LogFault, LogHead, LogReport, RecordProof
from evidentia.contracts.decoding import convert
from evidentia.contracts.errors import BaseBusyError, BaseDamagedError, InvalidFieldError
from evidentia.contracts.runs import RunId, StepCall
from evidentia.governance.decision_expansion import micros
from evidentia.governance.log_scan import KeptLogs, lines_of, logs_with_parts
from evidentia.provenance.decision_audit import ChainAudit, checkpoint_after
from evidentia.provenance.decision_chain import CHECKPOINT, encode_checkpoint, is_redacted, record_lines, redact_line, split_line, with_ends
from evidentia.provenance.decision_lines import ADMIN_RUN, NO_POLICIES, LineHeader, decode_header
from evidentia.provenance.decision_proofs import GrowthProof, LogTree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

    from evidentia.contracts.ports import Clock
    from evidentia.contracts.protocol import Metadata
    from evidentia.provenance.decision_chain import LogPart


__all__ = ["MaintenanceReport", "log_tree", "prove", "prove_growth", "redact", "retire", "verify"]


RETENTION = "retention"
_KEPT_KINDS = frozenset({"policies"})
"""Records of these kinds hold nothing about anybody, and every later one needs them."""


class MaintenanceReport(msgspec.Struct, frozen=True, kw_only=True):
    """How many records were redacted or retired, and in which logs."""

    records: int
    logs: tuple[str, ...] = ()
    busy: tuple[str, ...] = ()
    """Logs that were left for later, since another process writes to the part that would have to change."""


def redact(
    logs: KeptLogs,
    *,
    by: str,
    why: str,
    clock: Clock,
    record: tuple[str, int] | None = None,
    run_id: RunId | None = None,
    before: datetime | None = None,
) -> MaintenanceReport:
    """Take the details out of one record (its log and seq), of a run, or of all that are older; several say which must all be true.

    Raises BaseBusyError when another process writes to a part that would have to change; what was done before stays done.
    """
    _check_reason(by, why)
    if record is None and run_id is None and before is None:
        raise InvalidFieldError("record", "name a record, a run or a date")
    limit_us = None if before is None else micros(before, field="before")

    def is_meant(log: str, header: LineHeader) -> bool:
        return (
            header.kind not in _KEPT_KINDS
            and header.run_id != ADMIN_RUN
            and (record is None or record == (log, header.seq))
            and (run_id is None or run_id == header.run_id)
            and (limit_us is None or header.at_us < limit_us)
        )

    logs.flush()
    count, touched = 0, []
    for log, parts in logs_with_parts(logs):
        found = [(part, ranges) for part in parts if (ranges := _ranges(_seqs(logs, part, is_meant)))]
        if found:
            check_whole(logs, log, parts)
            touched.append(log)
        for part, ranges in found:
            act = _act(REDACTION, by=by, why=why, clock=clock, log=log, seqs=ranges)
            logs.rewrite(part, _redacted_lines(logs, act, ranges))
            count += sum(end - start for start, end in ranges)
    return MaintenanceReport(records=count, logs=tuple(touched))


def retire(logs: KeptLogs, *, before: datetime, by: str, why: str, clock: Clock) -> MaintenanceReport:
    """Remove the beginning of every log up to the first record that is not older; a checkpoint stands in its place.

    A log that would have to be cut where another process writes is left for later, and named.
    """
    _check_reason(by, why)
    limit_us = micros(before, field="before")
    logs.flush()
    count, touched, busy = 0, [], []
    for log, parts in logs_with_parts(logs):
        first, last = _old_records(lines_of(logs, parts), limit_us)
        if last < first:
            continue
        audit = check_whole(logs, log, parts)
        checkpoint = checkpoint_after(lines_of(logs, parts), last=last)
        line = encode_checkpoint(checkpoint)
        digest = hashlib.sha256(line[:-1]).hexdigest()
        act = _act(RETENTION, by=by, why=why, clock=clock, log=log, size=last, hash=checkpoint.hash, checkpoint=digest)
        kept_from = min(last + 1, audit.head().size)
        try:
            logs.rewrite(audit.place_of(kept_from)[0], _retained_lines(logs, act, line, last=last))
        except BaseBusyError:
            busy.append(log)
            continue
        count += last - first + 1
        touched.append(log)
    return MaintenanceReport(records=count, logs=tuple(touched), busy=tuple(busy))


def prove(logs: KeptLogs, log: str, seq: int, *, size: int | None = None) -> RecordProof:
    """Return the proof that a record stands in a log, against its head of a size, the present one by default."""
    return log_tree(logs, log).prove_record(seq, size=size)


def prove_growth(logs: KeptLogs, first: LogHead, second: LogHead) -> GrowthProof:
    """Return the proof that a later head of a log has everything that an earlier one had."""
    return log_tree(logs, second.log).prove_growth(first, second)


def log_tree(logs: KeptLogs, log: str) -> LogTree:
    """Return the Merkle tree of a log, for many proofs of it."""
    logs.flush()
    return LogTree(log, lines_of(logs, [part for part in logs.parts() if part.log == log]))


def _check_reason(by: str, why: str) -> None:
    for field, value in (("by", by), ("why", why)):
        if not value.strip():
            raise InvalidFieldError(field, "say who does this and why: it is written down")


def _act(act: str, *, by: str, why: str, clock: Clock, **about: object) -> LogEntry:
    at_us = micros(clock.now(), field="clock")
    call = StepCall(name=act, attributes={"by": by, "why": why, **about})
    return LogEntry(at_us=at_us, run_id=ADMIN_RUN, policies=NO_POLICIES, call=call)


def _seqs(logs: KeptLogs, part: LogPart, is_meant: Callable[[str, LineHeader], bool]) -> Iterator[int]:
    for line in record_lines(logs.blocks(part)):
        if not line.startswith(CHECKPOINT):
            parts = split_line(line)
            header = decode_header(parts.header)
            if not is_redacted(parts.details) and is_meant(part.log, header):
                yield header.seq


def _ranges(seqs: Iterable[int]) -> list[tuple[int, int]]:
    """Return numbers as ranges without their ends."""
    return merge_ranges((seq, seq + 1) for seq in seqs)


def _write_down(logs: KeptLogs, act: LogEntry) -> None:
    """Write down what is about to be done; nothing is done that could not be written down."""
    logs.append([act])
    logs.flush()


def _redacted_lines(logs: KeptLogs, act: LogEntry, ranges: list[tuple[int, int]]) -> Callable[[Iterator[bytes]], Iterator[bytes]]:
    starts = [start for start, _ in ranges]

    def is_meant(seq: int) -> bool:
        place = bisect_right(starts, seq) - 1
        return place >= 0 and seq < ranges[place][1]

    def change(blocks: Iterator[bytes]) -> Iterator[bytes]:
        _write_down(logs, act)
        for line in with_ends(blocks):
            if not line.endswith(b"\n") or line.startswith(CHECKPOINT):
                yield line
                continue
            parts = split_line(line[:-1])
            is_redactable = is_meant(decode_header(parts.header).seq) and not is_redacted(parts.details)
            yield redact_line(parts) if is_redactable else line

    return change


def _old_records(lines: Iterator[bytes], limit_us: int) -> tuple[int, int]:
    """Return the first seq of a log and the last before the first record that is not older."""
    first, last = 1, 0
    for line in lines:
        if line.startswith(CHECKPOINT):
            continue
        header = decode_header(split_line(line).header)
        if not last:
            first, last = header.seq, header.seq - 1
        if header.at_us >= limit_us:
            break
        last = header.seq
    return first, last


def _retained_lines(logs: KeptLogs, act: LogEntry, opening: bytes, *, last: int) -> Callable[[Iterator[bytes]], Iterator[bytes]]:
    def change(blocks: Iterator[bytes]) -> Iterator[bytes]:
        _write_down(logs, act)
        yield opening
        for line in with_ends(blocks):
            is_torn = not line.endswith(b"\n")
            if is_torn or (not line.startswith(CHECKPOINT) and decode_header(split_line(line).header).seq > last):
                yield line

    return change


# --- verification ---
# Verification of all logs of a base: every chain, every head that was kept, and that whatever was taken out was written down.

REDACTION: Final = "redaction"


def verify(logs: KeptLogs, *, heads: Sequence[LogHead] = ()) -> LogReport:
    """Check every log against its chain, and against heads that were kept elsewhere: what is missing at an end shows only there.

    What a killed writer left unfinished is named among the faults and is not held against the log.
    """
    logs.flush()
    audits = [_audit(logs, name, parts, heads=heads) for name, parts in logs_with_parts(logs)]
    acts = _read_acts(told for audit in audits for told in audit.acts)
    hearsay = _read_acts(told for audit in audits for told in audit.hearsay)
    faults = [fault for audit in audits if (fault := _first_fault(audit, acts, hearsay)) is not None]
    known = [audit.log for audit in audits]
    gone = sorted({head.log for head in heads if head.size and head.log not in known})
    faults += [LogFault(log=name, line=1, problem="the log is missing") for name in gone]
    torn = [audit.torn for audit in audits if audit.torn is not None]
    return LogReport(
        ok=not faults,
        logs=len(audits),
        records=sum(audit.records for audit in audits),
        redacted=sum(end - start for audit in audits for start, end in audit.redacted),
        retired=sum(audit.checkpoint.size for audit in audits),
        faults=(*faults, *torn),
        heads=tuple(audit.head() for audit in audits if audit.fault is None),
    )


def check_whole(logs: KeptLogs, log: str, parts: Iterable[LogPart]) -> ChainAudit:
    """Refuse to change a log that does not fit: that would hide what happened to it."""
    audit = _audit(logs, log, parts)
    if audit.fault is not None:
        where = f"decision log '{audit.fault.log}', line {audit.fault.line}"
        raise BaseDamagedError(where, f"{audit.fault.problem}; nothing is taken out of it until that is settled")
    return audit


def merge_ranges(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ranges without their ends, in order, those that meet as one."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


class _Act(msgspec.Struct, frozen=True, kw_only=True):
    """What a record says was done to a log, as far as verification asks."""

    act: str
    log: str
    seqs: tuple[tuple[int, int], ...] = ()
    checkpoint: str = ""


def _read_acts(told: Iterable[Metadata]) -> list[_Act]:
    acts: list[_Act] = []
    for each in told:
        with suppress(msgspec.ValidationError):
            acts.append(convert(each, _Act))
    return acts


def _audit(logs: KeptLogs, log: str, parts: Iterable[LogPart], *, heads: Sequence[LogHead] = ()) -> ChainAudit:
    return ChainAudit(log, ((part, logs.blocks(part)) for part in parts), heads=[head for head in heads if head.log == log])


def _first_fault(audit: ChainAudit, acts: Sequence[_Act], hearsay: Sequence[_Act]) -> LogFault | None:
    """Return the first place where a log does not fit, or where something was taken out of it without a record of that."""
    own = [act for act in acts if act.log == audit.log]
    known = [act.checkpoint for act in (*own, *(hearsay if audit.fault is not None else ()))]
    if audit.checkpoint_digest and audit.checkpoint_digest not in known:
        first = str(audit.starts[0][1])
        return LogFault(log=first, line=1, problem="records were retired, and no record says that this checkpoint stands for them")
    if audit.fault is not None:
        return audit.fault
    told = merge_ranges(each for act in own if act.act == REDACTION for each in act.seqs)
    for start, end in audit.redacted:
        if not any(first <= start and end <= last for first, last in told):
            part, line = audit.place_of(start)
            return LogFault(log=str(part), line=line, problem="details were taken out, and no record says by whom")
    return None
