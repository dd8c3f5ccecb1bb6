"""Runs as lines of a list, from the headers of their records: only the beginning and the end of a run are read in full."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from evidentia.contracts.decisions import DecisionStatus
from evidentia.contracts.policies import PolicyAction
from evidentia.contracts.runs import RecordableCall, RunEnded, RunFacts, RunStarted, RunStatus, RunSummary
from evidentia.governance.expanding import moment
from evidentia.governance.log_scan import Found

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evidentia.contracts.runs import RunId
    from evidentia.provenance.decision_chain import Checkpoint
    from evidentia.provenance.decision_lines import Header, Outcome

_AHEAD = frozenset(call.__struct_config__.tag for call in get_args(RecordableCall) if call.is_ahead)
"""Calls that are said before they happen; what stops one prevents it, and the run goes on."""
_NO_CALLS = frozenset({"policies", "run", "end", "span_end"})


def summaries(found: Iterable[Found | Checkpoint]) -> tuple[RunSummary, ...]:
    """Return a line for every run among records, in the order in which they began; shadow and provisional verdicts are not counted."""
    seen: dict[RunId, _Summing] = {}
    for each in found:
        if not isinstance(each, Found) or each.header.kind == "policies":
            continue
        known = seen.get(each.header.run_id)
        if known is None:
            known = seen[each.header.run_id] = _Summing(each.header)
        known.take(each)
    return tuple(run.summary() for run in seen.values())


class _Summing:
    """A run as its records go by."""

    __slots__ = ("blocks", "bypasses", "calls", "documents", "end_us", "facts", "first", "status", "warnings")

    def __init__(self, first: Header) -> None:
        self.first = first
        self.facts = RunFacts(run_id=first.run_id, agent_name="")
        self.end_us: int | None = None
        self.status = RunStatus.RUNNING
        self.calls = self.documents = self.warnings = self.blocks = self.bypasses = 0

    def take(self, found: Found) -> None:
        """Count one record."""
        kind = found.header.kind
        if kind == "run":
            call = found.record().entry.call
            self.facts = call.facts if isinstance(call, RunStarted) else self.facts
        elif kind == "end":
            call = found.record().entry.call
            self.end_us = found.header.at_us
            self.status = call.status if isinstance(call, RunEnded) else self.status
        self.calls += kind not in _NO_CALLS
        self.documents += kind == "retrieval"
        self.bypasses += kind == "bypass"
        for outcome in found.header.outcomes:
            self._count(outcome, is_ahead=kind in _AHEAD)

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

    def _count(self, outcome: Outcome, *, is_ahead: bool) -> None:
        self.bypasses += outcome.status is DecisionStatus.BYPASSED
        if outcome.status is DecisionStatus.EVALUATED:
            self.warnings += outcome.action is PolicyAction.WARN
            self.blocks += outcome.action.stops
            if outcome.is_enforced and outcome.action.stops and self.end_us is None and not is_ahead:
                self.status = RunStatus.BLOCKED
