"""Candidate policies over recorded traffic: what they would stop, let go and warn about that was decided otherwise then.

One pass over the decision log with the evaluator that decides live runs; nothing is enforced and nothing is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.decisions import DecisionStatus, LogRecord, Verdict
from evidentia.contracts.policies import Enforcement, Policy, PolicyId
from evidentia.contracts.policy_trials import ShadowReport
from evidentia.contracts.runs import GroundingEntry, PoliciesRecorded, RetrievedDocument, RunEnded, RunId, RunStarted
from evidentia.governance.decision_replay import as_asked
from evidentia.governance.log_scan import KeptLogs, ScannedRecord, kept_policies, lines_of, logs_with_parts, readable
from evidentia.governance.shadow_tally import NOTHING, Decided, RecordPlace, ShadowOutcome, ShadowTally, decided, outcome_of
from evidentia.policy.evaluator import PolicySet, RunEvaluator
from evidentia.policy.rules import check_policy
from evidentia.provenance.decision_chain import CHECKPOINT, GENESIS, decode_checkpoint
from evidentia.provenance.decision_lines import (
    ADMIN_RUN,
    DOCUMENT,
    REDACTED_MARK,
    decode_details,
    decode_document,
    decode_header,
    outcomes_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from evidentia.contracts.ids import Sha256
    from evidentia.contracts.protocol import RunCall
    from evidentia.provenance.decision_lines import LineHeader
    from evidentia.provenance.decision_lines import VerdictSummary as Recorded

MAX_OPEN_RUNS: Final = 50_000
"""Runs that are followed at a time; the one that began first is given up for a further one."""


_GROUNDING: Final = "grounding"
_RUN: Final = "run"


def shadow(
    records: Iterable[LogRecord],
    candidates: Sequence[Policy],
    *,
    is_whole: bool = False,
    without: Collection[str] = (),
    since_us: int | None = None,
) -> ShadowReport:
    """Return what would change if the candidates were enforced.

    A candidate takes the place of the recorded policy with its id or name; the other recorded policies stay in force, apart from
    those named in `without`. With `is_whole` the candidates are all there is. Runs that began before `since_us` are left out.
    """
    replay = _Shadow(candidates, is_whole=is_whole, without=without, since_us=since_us)
    for record in records:
        replay.take(record)
    return replay.report()


def shadow_log(
    logs: KeptLogs,
    candidates: Sequence[Policy],
    *,
    is_whole: bool = False,
    without: Collection[str] = (),
    since_us: int | None = None,
    counted: Callable[[Iterator[bytes]], Iterator[bytes]] = iter,
) -> ShadowReport:
    """Return the same for everything in the logs, read line by line; `counted` sees every line on its way."""
    replay = _Shadow(candidates, is_whole=is_whole, without=without, since_us=since_us)
    logs.flush()
    for log, parts in logs_with_parts(logs):
        with readable(log):
            replay.read(log, counted(lines_of(logs, parts)))
    return replay.report()


class _ShadowRun:
    """A recorded run under the candidates."""

    __slots__ = ("agent", "evaluator", "has_judge", "is_stopped", "record", "was_stopped")

    def __init__(self, policies: PolicySet, agent: str) -> None:
        self.evaluator = RunEvaluator(policies)
        self.record = self.evaluator.record
        self.agent = agent
        self.is_stopped = False
        self.was_stopped = False
        self.has_judge = any(policy.body.rules.get("llm_grounding_check") for policy in policies.policies)


class _Shadow:
    """The pass itself: the runs that are open, the policies the log tells of, and the counts."""

    def __init__(self, candidates: Sequence[Policy], *, is_whole: bool, without: Collection[str], since_us: int | None) -> None:
        self._candidates = tuple(_enforced(policy) for policy in candidates)
        self._is_whole = is_whole
        self._since_us = since_us
        self._replaced = {name for policy in candidates for name in (policy.policy_id, policy.body.name)} | set(without)
        self._recorded: dict[Sha256, tuple[Policy, ...]] = {PolicySet().digest: ()}
        self._sets: dict[Sha256, PolicySet] = {}
        self._ignored: set[Sha256] = set()
        self._runs: dict[RunId, _ShadowRun] = {}
        self._tally = ShadowTally()
        self._counts = dict.fromkeys(
            (
                "runs",
                "runs_newly_blocked",
                "runs_newly_allowed",
                "after_stop",
                "truncated_runs",
                "given_up_runs",
                "unknown_runs",
                "redacted",
                "unjudged",
            ),
            0,
        )

    def read(self, log: str, lines: Iterable[bytes]) -> None:
        """Take the lines of one log; a document that comes to the same then and now, as most do, is never made a record."""
        runs, unchanged, after_stop, previous = self._runs, 0, 0, GENESIS.hex().encode()
        for line in lines:
            if line.startswith(CHECKPOINT):
                checkpoint = decode_checkpoint(line)
                previous = checkpoint.hash.encode()
                for record in kept_policies(checkpoint):
                    self.take(record)
                continue
            seal, header_bytes, details = line.split(b" ", 2)
            header = decode_header(header_bytes)
            kind = header.kind
            is_quick = (kind == DOCUMENT or (kind == _GROUNDING and not header.outcomes)) and details[:1] != REDACTED_MARK
            run = runs.get(header.run_id) if is_quick else None
            if run is None:
                if kind == _RUN and details[:1] != REDACTED_MARK:
                    self._begin(header, details)
                elif not is_quick and (header.run_id != ADMIN_RUN or kind == "policies"):
                    self.take(ScannedRecord(log, previous, seal, header, details).record())
            elif run.is_stopped:
                after_stop += 1
            elif kind != DOCUMENT and run.has_judge:
                self.take(ScannedRecord(log, previous, seal, header, details).record())
            else:
                call = decode_document(details)[0] if kind == DOCUMENT else decode_details(kind, details).call
                verdicts = run.record(call)
                if (not verdicts and not header.outcomes) or self._is_as_before(header.outcomes, verdicts):
                    unchanged += 1
                elif header.outcomes:
                    self._compare(run, verdicts, ScannedRecord(log, previous, seal, header, details).record())
                else:
                    self._weigh(run, NOTHING, verdicts, call, place=RecordPlace(log, header.seq, header.run_id))
            previous = seal
        self._tally.unchanged += unchanged
        self._counts["after_stop"] += after_stop

    def _begin(self, header: LineHeader, details: bytes) -> None:
        call = decode_details(header.kind, details).call
        if isinstance(call, RunStarted):
            self._start(call, run_id=header.run_id, policies=header.policies, at_us=header.at_us)

    def _is_as_before(self, recorded: Sequence[Recorded], verdicts: Sequence[Verdict]) -> bool:
        """Tell from the header alone that a call went on then as it would now; False where that takes a closer look."""
        if self._ignored or any(each.action.stops or each.status is DecisionStatus.PROVISIONAL for each in recorded):
            return False
        before = max((outcome_of(each.action).rank for each in recorded), default=ShadowOutcome.PASSED.rank)
        return before == decided(verdicts).outcome.rank

    def take(self, record: LogRecord) -> None:
        """Decide about one recorded call."""
        call = record.entry.call
        if isinstance(call, PoliciesRecorded):
            self._recorded[record.entry.policies] = call.policies
            self._ignored |= {policy.digest for policy in call.policies if policy.body.enforcement is Enforcement.SHADOW}
            return
        if isinstance(call, RunStarted):
            if not record.is_redacted:
                self._start(call, run_id=record.entry.run_id, policies=record.entry.policies, at_us=record.entry.at_us)
            return
        run = self._runs.get(record.entry.run_id)
        if run is None:
            return
        if isinstance(call, RunEnded):
            self._end(run, record, call)
        elif record.is_redacted:
            self._counts["redacted"] += 1
        elif run.is_stopped:
            self._counts["after_stop"] += 1
        else:
            if run.has_judge and isinstance(call, GroundingEntry):
                self._counts["unjudged"] += sum(ask.policy_id not in call.judgements for ask in run.evaluator.asks(call))
            self._compare(run, run.record(call), record)

    def report(self) -> ShadowReport:
        """Return what was counted."""
        names = tuple(sorted(policy.body.name for policy in self._candidates))
        return ShadowReport(candidates=names, changes=self._tally.changes(), unfinished_runs=len(self._runs), **self._counts)

    def _start(self, call: RunStarted, *, run_id: RunId, policies: Sha256, at_us: int) -> None:
        """Follow a run from its beginning, which no policy stops."""
        if self._since_us is not None and at_us < self._since_us:
            return
        if not self._is_whole and policies not in self._recorded:
            self._counts["unknown_runs"] += 1
            return
        if len(self._runs) >= MAX_OPEN_RUNS:
            self._runs.pop(next(iter(self._runs)))
            self._counts["given_up_runs"] += 1
        self._counts["runs"] += 1
        self._runs[run_id] = _ShadowRun(self._set_for(policies).for_run(call.facts), call.facts.agent_name)
        self._tally.unchanged += 1

    def _set_for(self, digest: Sha256) -> PolicySet:
        known = self._sets.get(digest)
        if known is None:
            recorded = () if self._is_whole else self._recorded[digest]
            kept = [each for each in recorded if not {each.policy_id, each.body.name} & self._replaced]
            known = self._sets[digest] = PolicySet.of([*kept, *self._candidates])
        return known

    def _compare(self, run: _ShadowRun, verdicts: Sequence[Verdict], record: LogRecord) -> None:
        before = decided(record.entry.verdicts, ignored=self._ignored) if record.entry.verdicts else NOTHING
        place = RecordPlace(record.log, record.seq, record.entry.run_id)
        self._weigh(run, before, verdicts, record.entry.call, place=place)

    def _weigh(self, run: _ShadowRun, before: Decided, verdicts: Sequence[Verdict], call: RunCall, *, place: RecordPlace) -> None:
        after = decided(verdicts, ignored=self._ignored) if verdicts else NOTHING
        source = call.source if isinstance(call, RetrievedDocument) else None
        self._tally.take(before, after, place, agent=run.agent, source=source)
        if call.is_announced:  # what is prevented stops nothing but itself
            return
        run.was_stopped = run.was_stopped or before.outcome is ShadowOutcome.BLOCKED
        run.is_stopped = after.outcome is ShadowOutcome.BLOCKED

    def _end(self, run: _ShadowRun, record: LogRecord, call: RunEnded) -> None:
        del self._runs[record.entry.run_id]
        if run.was_stopped and not run.is_stopped:
            self._counts["truncated_runs"] += 1
        elif run.is_stopped:
            self._counts["after_stop"] += 1
            run.was_stopped = run.was_stopped or decided(record.entry.verdicts, ignored=self._ignored).outcome is ShadowOutcome.BLOCKED
        elif record.is_redacted:
            self._counts["redacted"] += 1
        else:
            self._compare(run, run.evaluator.finish(as_asked(call, outcomes_of(record.entry.verdicts))), record)
        self._counts["runs_newly_blocked"] += run.is_stopped and not run.was_stopped
        self._counts["runs_newly_allowed"] += run.was_stopped and not run.is_stopped


def _enforced(policy: Policy) -> Policy:
    """Return a candidate as it would be in force, whatever it says of its own enforcement."""
    if policy.body.enforcement is Enforcement.ENFORCE and policy.body.enabled:
        return policy
    body = msgspec.structs.replace(policy.body, enforcement=Enforcement.ENFORCE, enabled=True)
    return check_policy(body, policy_id=PolicyId(policy.policy_id), version=policy.version, tenant=policy.tenant)
