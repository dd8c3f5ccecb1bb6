"""Verification of all logs of a base: every chain, every head that was kept, and that whatever was taken out was written down."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.decisions import LogFault, LogReport
from evidentia.contracts.errors import BaseDamagedError
from evidentia.governance.kept_logs import logs_with_parts
from evidentia.provenance.decision_audit import ChainAudit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evidentia.contracts.calls import Metadata
    from evidentia.contracts.decisions import LogHead
    from evidentia.governance.kept_logs import KeptLogs
    from evidentia.provenance.decision_chain import LogPart

REDACTION: Final = "redaction"


def verify(logs: KeptLogs, *, heads: Sequence[LogHead] = ()) -> LogReport:
    """Check every log against its chain, and against heads that somebody kept: what is missing at an end shows only there.

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
            acts.append(msgspec.convert(each, _Act))
    return acts


def _audit(logs: KeptLogs, log: str, parts: Iterable[LogPart], *, heads: Sequence[LogHead] = ()) -> ChainAudit:
    return ChainAudit(log, ((part, logs.blocks(part)) for part in parts), heads=[head for head in heads if head.log == log])


def _first_fault(audit: ChainAudit, acts: Sequence[_Act], hearsay: Sequence[_Act]) -> LogFault | None:
    """Return the first place where a log does not fit, or where something was taken out of it and nobody wrote that down."""
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
