"""Runs as lines of a list, from the headers of their records: only the beginning and the end of a run are read in full."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final, get_args

import msgspec

from evidentia.contracts.decisions import DecisionStatus
from evidentia.contracts.policies import PolicyAction
from evidentia.contracts.runs import CheckBypassed, RecordableCall, RunEnded, RunFacts, RunId, RunStarted, RunStatus, RunSummary
from evidentia.governance.decision_expansion import Expander, micros, moment
from evidentia.governance.decision_replay import APPROVAL, has_stopped
from evidentia.governance.log_scan import KeptLogs, ScannedRecord, run_needle, runs_holding, runs_of
from evidentia.governance.reverse_reader import LogPosition, NewestFirst, RecordFilter
from evidentia.provenance.decision_lines import ADMIN_RUN, LineHeader, VerdictSummary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from evidentia.provenance.decision_chain import Checkpoint


_ANNOUNCED = frozenset(call.__struct_config__.tag for call in get_args(RecordableCall) if call.is_announced)
"""Calls that are said before they happen; what stops one prevents it, and the run goes on."""
_NO_CALLS = frozenset({"policies", "run", "end", "span_end"})


def summaries(found: Iterable[ScannedRecord | Checkpoint]) -> tuple[RunSummary, ...]:
    """Return a line for every run among records, in the order in which they began; shadow and provisional verdicts are not counted."""
    seen: dict[RunId, _SummaryBuilder] = {}
    for each in found:
        if not isinstance(each, ScannedRecord) or each.header.kind == "policies":
            continue
        known = seen.get(each.header.run_id)
        if known is None:
            known = seen[each.header.run_id] = _SummaryBuilder(each.header)
        known.take(each)
    return tuple(run.summary() for run in seen.values())


class _SummaryBuilder:
    """A run as its records go by."""

    __slots__ = ("blocks", "bypasses", "calls", "documents", "end_us", "facts", "first", "is_stopped_at_end", "status", "warnings")

    def __init__(self, first: LineHeader) -> None:
        self.first = first
        self.facts = RunFacts(run_id=first.run_id, agent_name="")
        self.end_us: int | None = None
        self.is_stopped_at_end = False
        self.status = RunStatus.RUNNING
        self.calls = self.documents = self.warnings = self.blocks = self.bypasses = 0

    def take(self, found: ScannedRecord) -> None:
        """Count one record."""
        kind = found.header.kind
        if kind == "run":
            call = found.record().entry.call
            self.facts = call.facts if isinstance(call, RunStarted) else self.facts
        elif kind == "end":
            call = found.record().entry.call
            self.end_us = found.header.at_us
            self.status = call.status if isinstance(call, RunEnded) else self.status
            self.is_stopped_at_end = any(map(has_stopped, found.header.outcomes))
            self.status = RunStatus.BLOCKED if self.is_stopped_at_end else self.status
        elif kind == "bypass" and self.is_stopped_at_end:
            call = found.record().entry.call
            is_approved = isinstance(call, CheckBypassed) and call.what == APPROVAL
            self.status = RunStatus.SUCCESS if is_approved else self.status
        self.calls += kind not in _NO_CALLS
        self.documents += kind == "retrieval"
        self.bypasses += kind == "bypass"
        for outcome in found.header.outcomes:
            self._count(outcome, is_announced=kind in _ANNOUNCED)

    def summary(self) -> RunSummary:
        """Return the line of the run."""
        return RunSummary(
            facts=self.facts,
            status=self.status,
            started_at=moment(self.first.at_us),
            ended_at=None if self.end_us is None else moment(self.end_us),
            calls=self.calls,
            documents=self.documents,
            warnings=self.warnings,
            blocks=self.blocks,
            bypasses=self.bypasses,
            policies=self.first.policies,
        )

    def _count(self, outcome: VerdictSummary, *, is_announced: bool) -> None:
        self.bypasses += outcome.status is DecisionStatus.BYPASSED
        if outcome.status is DecisionStatus.EVALUATED:
            self.warnings += outcome.action is PolicyAction.WARN
            self.blocks += outcome.action.stops
            if outcome.is_enforced and outcome.action.stops and self.end_us is None and not is_announced:
                self.status = RunStatus.BLOCKED


# --- newest runs ---
# Runs as lines of a list, read from the ends of the logs: no more of them than the page takes.

PAGE: Final = 50
_FEW_RUNS: Final = 8
_NOWHERE: Final = b"\n\n"
"""What no line holds."""
_STATUS_MARKS: Final = {
    RunStatus.BLOCKED: (b'"block"', b'"skip"', b'"throttle"', b'"blocked"'),
    RunStatus.ERROR: (b'"error"',),
}
"""What at least one line of every run with this status holds."""


class RunFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs are wanted; everything given must be true of them."""

    tenant: str | None = None
    agent: str | None = None
    status: RunStatus | None = None
    since: datetime | None = None


class RunsPage(msgspec.Struct, frozen=True, kw_only=True):
    """Runs, those that began last first, and where the next page begins; None after the last."""

    runs: tuple[RunSummary, ...]
    next: LogPosition | None = None


def newest_runs(logs: KeptLogs, wanted: RunFilter | None = None, *, after: LogPosition | None = None, limit: int = PAGE) -> RunsPage:
    """Return a page of runs; `after` is where the last run of the page before begins."""
    rules = wanted or RunFilter()
    shown: list[tuple[LogPosition, RunSummary]] = []
    is_begun = after is None
    for position, summary in _runs(logs, rules):
        if not is_begun:
            is_begun = after is not None and position[:2] == after[:2]
            continue
        if _is_wanted(summary, rules):
            shown.append((position, summary))
        if len(shown) > limit:
            return RunsPage(runs=tuple(run for _, run in shown[:limit]), next=shown[limit - 1][0])
    return RunsPage(runs=tuple(run for _, run in shown))


def _runs(logs: KeptLogs, rules: RunFilter) -> Iterator[tuple[LogPosition, RunSummary]]:
    """Yield every run where it begins, the last first; then those whose beginning is not there any more, by their ids."""
    open_runs: dict[RunId, list[ScannedRecord]] = {}
    newest = NewestFirst(logs, _lines(logs, rules), expander=Expander())
    for kept in newest.walk():
        found = kept.found
        header = found.header
        open_runs.setdefault(header.run_id, []).append(found)
        if header.kind == "run":
            yield LogPosition(found.log, header.seq, header.at_us), _summary(open_runs.pop(header.run_id))
    for _, left in sorted(open_runs.items()):
        first = left[-1]
        yield LogPosition(first.log, first.header.seq, first.header.at_us), _summary(left)


def _summary(backwards: list[ScannedRecord]) -> RunSummary:
    (summary,) = summaries(backwards[::-1])
    return summary


def _lines(logs: KeptLogs, rules: RunFilter) -> RecordFilter:
    since_us = None if rules.since is None else micros(rules.since, field="since")
    own = _candidates(logs, rules)
    if own is None:
        return RecordFilter(lambda header: header.run_id != ADMIN_RUN, since_us=since_us)
    needles = tuple(run_needle(run_id) for run_id in sorted(own)) if len(own) <= _FEW_RUNS else ()
    return RecordFilter(lambda header: header.run_id in own, needles=needles or (() if own else (_NOWHERE,)), since_us=since_us)


def _candidates(logs: KeptLogs, rules: RunFilter) -> set[RunId] | None:
    """Return the runs that may be wanted, where a look at single lines tells; None where it does not."""
    of_agent = None if rules.agent is None else runs_of(logs, rules.agent)
    marks = _STATUS_MARKS.get(rules.status) if rules.status else None
    with_status = None if marks is None else runs_holding(logs, marks)
    if of_agent is None or with_status is None:
        return with_status if of_agent is None else of_agent
    return of_agent & with_status


def _is_wanted(run: RunSummary, rules: RunFilter) -> bool:
    pairs = ((rules.tenant, run.facts.tenant), (rules.agent, run.facts.agent_name), (rules.status, run.status))
    is_recent = rules.since is None or run.started_at >= rules.since
    return is_recent and all(wanted is None or wanted == found for wanted, found in pairs)
