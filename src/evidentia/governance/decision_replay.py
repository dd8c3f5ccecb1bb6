"""Every decision of the log again, from the log alone: the policies and the calls it holds go through the evaluator once more.

What comes out must be what was written down, to the letter. Nothing is enforced, asked or written; a judge's answers are in the calls.
Memory is bounded by the runs that are open at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.decisions import DecisionStatus
from evidentia.contracts.errors import EvidentiaError
from evidentia.contracts.runs import AnyCall, CheckBypassed, PoliciesRecorded, RunEnded, RunId, RunStarted, RunStatus
from evidentia.governance.log_scan import KeptLogs, lines_of, logs_with_parts, readable
from evidentia.policy.evaluator import PolicySet, RunEvaluator
from evidentia.provenance.decision_chain import CHECKPOINT, decode_checkpoint
from evidentia.provenance.decision_lines import (
    ADMIN_RUN,
    DOCUMENT,
    REDACTED_MARK,
    decode_details,
    decode_document,
    decode_header,
    decode_verdicts,
    encode_verdicts,
    outcomes_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evidentia.contracts.decisions import Verdict
    from evidentia.contracts.ids import Sha256
    from evidentia.contracts.policies import Policy
    from evidentia.contracts.protocol import RunCall
    from evidentia.provenance.decision_lines import LineHeader, VerdictSummary


APPROVAL: Final = "approval"
"""The bypass that says a stopped call was approved."""
MAX_MISMATCHES: Final = 100
MAX_OPEN_RUNS: Final = 100_000


class ReplayMismatch(msgspec.Struct, frozen=True, kw_only=True):
    """A decision that comes out differently, or cannot have been taken as it was written down."""

    log: str
    seq: int
    run_id: RunId
    what: str
    """What differs: `policies`, `count`, `outcomes`, `refused`, or a field of a verdict such as `verdicts[0].decisive.reason`."""
    recorded: str
    derived: str


class DecisionReplayReport(msgspec.Struct, frozen=True, kw_only=True):
    """What replay found."""

    ok: bool
    records: int
    """All that were read."""
    decisions: int
    """Those that were decided about again."""
    runs: int
    redacted: int = 0
    """Records whose content was taken out: they cannot be decided about again."""
    not_replayable: int = 0
    """Records of runs whose beginning, policies or earlier records are not there any more."""
    mismatch_count: int = 0
    mismatches: tuple[ReplayMismatch, ...] = ()
    """The first of them."""


def replay(logs: KeptLogs, *, max_mismatches: int = MAX_MISMATCHES) -> DecisionReplayReport:
    """Decide everything in the log again, and compare."""
    replaying = DecisionReplayer(max_mismatches=max_mismatches)
    logs.flush()
    for log, parts in logs_with_parts(logs):
        with readable(log):
            replaying.read(log, lines_of(logs, parts))
    return replaying.report()


class _ReplayedRun:
    """A run as it is replayed."""

    __slots__ = ("evaluator", "policies", "record", "stops")

    def __init__(self, evaluator: RunEvaluator, policies: Sha256) -> None:
        self.evaluator = evaluator
        self.record = evaluator.record
        self.policies = policies
        self.stops = 0

    def note(self, call: RunCall, verdicts: Sequence[Verdict]) -> None:
        """Count a call that was stopped; one that was prevented stopped nothing else."""
        self.stops += not call.is_announced and any(verdict.stops for verdict in verdicts)

    def lift_stop(self) -> None:
        """Take one stop back, since the call was approved; once all are, what comes is enforced again."""
        self.stops = max(0, self.stops - 1)
        if not self.stops:
            self.evaluator.is_stopped = False


class DecisionReplayer:
    """The open runs and what was found so far. Not thread safe."""

    def __init__(self, *, max_mismatches: int = MAX_MISMATCHES) -> None:
        self._most = max_mismatches
        self._sets: dict[Sha256, PolicySet] = {}
        self._open: dict[RunId, _ReplayedRun] = {}
        self._mismatches: list[ReplayMismatch] = []
        self._mismatch_count = self._records = self._decisions = self._runs = self._redacted = self._not_replayable = 0
        self._log = ""

    def read(self, log: str, lines: Iterable[bytes]) -> None:
        """Replay the lines of one log; written out, since nearly all of a log are documents that pass."""
        self._log = log
        runs, records, decisions = self._open, 0, 0
        for line in lines:
            if line.startswith(CHECKPOINT):
                self._resume(line)
                continue
            _, header_bytes, details = line.split(b" ", 2)
            header = decode_header(header_bytes)
            records += 1
            run = runs.get(header.run_id)
            if run is None or header.kind != DOCUMENT or details[:1] == REDACTED_MARK:
                self._take_other(header, details, run)
                continue
            document, recorded = decode_document(details)
            try:
                verdicts = run.record(document)
            except EvidentiaError as error:
                self._miss(header, "refused", recorded="decided", derived=str(error))
                continue
            decisions += 1
            if verdicts or header.outcomes:
                run.note(document, verdicts)
                self._compare(header, bytes(recorded), verdicts)
            if run.evaluator.count != header.count or header.policies != run.policies:
                self._compare_header(header, run)
        self._records += records
        self._decisions += decisions

    def report(self) -> DecisionReplayReport:
        """Return what was found so far."""
        return DecisionReplayReport(
            ok=not self._mismatch_count,
            records=self._records,
            decisions=self._decisions,
            runs=self._runs,
            redacted=self._redacted,
            not_replayable=self._not_replayable,
            mismatch_count=self._mismatch_count,
            mismatches=tuple(self._mismatches),
        )

    def _take_other(self, header: LineHeader, details: bytes, run: _ReplayedRun | None) -> None:
        if header.run_id == ADMIN_RUN and header.kind != "policies":
            return
        if details[:1] == REDACTED_MARK:
            self._redacted += 1
            self._open.pop(header.run_id, None)  # what comes after depends on what was taken out
            return
        read = decode_details(header.kind, details)
        if isinstance(read.call, PoliciesRecorded):
            self._learn(header, read.call.policies)
        elif isinstance(read.call, RunStarted):
            self._start(header, read.call, read.verdicts)
        elif run is None:
            self._not_replayable += 1
        else:
            self._decide(header, read.call, read.verdicts, run)

    def _decide(self, header: LineHeader, call: AnyCall, recorded: bytes, run: _ReplayedRun) -> None:
        self._decisions += 1
        if isinstance(call, CheckBypassed) and call.what == APPROVAL:
            run.lift_stop()
        try:
            verdicts = run.evaluator.finish(as_asked(call, header.outcomes)) if isinstance(call, RunEnded) else run.record(call)
        except EvidentiaError as error:
            self._miss(header, "refused", recorded="decided", derived=str(error))
            return
        run.note(call, verdicts)
        self._compare(header, recorded, verdicts)
        if isinstance(call, RunEnded):
            del self._open[header.run_id]
            return
        self._compare_header(header, run)

    def _start(self, header: LineHeader, call: RunStarted, recorded: bytes) -> None:
        policies = self._sets.get(header.policies)
        if policies is None:
            self._not_replayable += 1
            return
        if len(self._open) >= MAX_OPEN_RUNS:
            del self._open[next(iter(self._open))]
        self._runs += 1
        self._decisions += 1
        run = self._open[header.run_id] = _ReplayedRun(
            RunEvaluator(policies, is_enforced=call.is_enforced, edition=call.edition), header.policies
        )
        self._compare(header, recorded, run.evaluator.begin())

    def _learn(self, header: LineHeader, policies: tuple[Policy, ...]) -> None:
        if header.policies in self._sets:
            return
        try:
            made = PolicySet.of(policies)
        except EvidentiaError as error:
            self._miss(header, "policies", recorded="in force", derived=str(error))
            return
        if made.digest != header.policies:
            self._miss(header, "policies", recorded=header.policies, derived=made.digest)
            return
        self._sets[header.policies] = made

    def _resume(self, line: bytes) -> None:
        for digest, policies in sorted(decode_checkpoint(line).policies.items()):
            made = PolicySet.of(policies)
            if made.digest == digest:
                self._sets.setdefault(digest, made)

    def _compare(self, header: LineHeader, recorded: bytes, verdicts: tuple[Verdict, ...]) -> None:
        if outcomes_of(verdicts) != header.outcomes:
            self._miss(header, "outcomes", recorded=str(header.outcomes), derived=str(outcomes_of(verdicts)))
        derived = encode_verdicts(verdicts)
        if recorded == derived:
            return
        before, after = decode_verdicts(recorded), decode_verdicts(derived)  # both read back, so that a list is a list in either
        if before != after:
            what, was, came = first_difference(msgspec.to_builtins(before), msgspec.to_builtins(after), "verdicts")
            self._miss(header, what, recorded=was, derived=came)

    def _compare_header(self, header: LineHeader, run: _ReplayedRun) -> None:
        if header.policies != run.policies:
            self._miss(header, "policies", recorded=header.policies, derived=run.policies)
        if run.evaluator.count != header.count:
            self._miss(header, "count", recorded=str(header.count), derived=str(run.evaluator.count))

    def _miss(self, header: LineHeader, what: str, *, recorded: str, derived: str) -> None:
        self._mismatch_count += 1
        if len(self._mismatches) < self._most:
            self._mismatches.append(
                ReplayMismatch(log=self._log, seq=header.seq, run_id=header.run_id, what=what, recorded=recorded, derived=derived)
            )


def as_asked(end: RunEnded, outcomes: Iterable[VerdictSummary]) -> RunEnded:
    """Return an end as it was decided about: one that its own verdicts stopped had ended well until then."""
    return msgspec.structs.replace(end, status=RunStatus.SUCCESS) if any(map(has_stopped, outcomes)) else end


def has_stopped(outcome: VerdictSummary) -> bool:
    """Tell whether a verdict stopped its call."""
    return outcome.is_enforced and outcome.action.stops and outcome.status is not DecisionStatus.PROVISIONAL


# --- differences ---
# Where two JSON values differ first, in words a reader can look up.


def first_difference(before: object, after: object, path: str) -> tuple[str, str, str]:
    """Return where two JSON values differ first, and both sides of it."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            if before.get(key) != after.get(key):
                return first_difference(before.get(key), after.get(key), f"{path}.{key}")
    if isinstance(before, list | tuple) and isinstance(after, list | tuple) and len(before) == len(after):
        for place, (was, came) in enumerate(zip(before, after, strict=True)):
            if was != came:
                return first_difference(was, came, f"{path}[{place}]")
    return path, str(before), str(after)
