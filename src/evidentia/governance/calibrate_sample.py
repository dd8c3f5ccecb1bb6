"""One pass over the log that sorts a rule's values by what became of their run. Eight bytes a value, whatever the log holds."""

from __future__ import annotations

from array import array
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from evidentia.contracts.runs import RunEnded, RunStarted, RunStatus
from evidentia.governance.calibrate_values import of_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evidentia.contracts.decisions import LogEntry, LogRecord
    from evidentia.contracts.policies import PolicyId
    from evidentia.contracts.runs import RunId
    from evidentia.governance.calibrate_values import AnyRules, Measure


class Sample:
    """The values of good runs, those of all runs, and the worst of each run."""

    def __init__(self, measure: Measure, rules: AnyRules) -> None:
        self._measure = measure
        self._rules = rules
        self.good = array("d")
        self.good_sizes = array("q")
        """How many of `good` belong to each run, in order."""
        self.values = array("d")
        self.worst = array("d")
        self.runs = 0
        self.good_runs = 0
        self.redacted = 0
        self.unfinished = 0

    def take(self, values: Sequence[float], *, is_good: bool) -> None:
        """Take the values of a run that is over."""
        self.runs += 1
        self.good_runs += is_good
        if not values:
            return
        kept = [of_run(values, self._rules)] if self._measure.is_of_run else values
        self.values.extend(kept)
        self.worst.append(max(kept) if self._measure.is_upper else min(kept))
        if is_good:
            self.good.extend(kept)
            self.good_sizes.append(len(kept))


class _OpenRun:
    """A run that has not ended yet."""

    __slots__ = ("is_blocked", "values")

    def __init__(self) -> None:
        self.values = array("d")
        self.is_blocked = False


def collect(
    records: Iterable[LogRecord],
    measure: Measure,
    rules: AnyRules,
    *,
    policy_id: PolicyId | None,
    tenant: str,
    agent: str | None,
    since_us: int | None,
) -> Sample:
    """Return the values of every run of a tenant that passes the filter: of an agent (a name or a glob), begun at or after a moment."""
    sample = Sample(measure, rules)
    opened: dict[RunId, _OpenRun] = {}
    for record in records:
        entry = record.entry
        if isinstance(entry.call, RunStarted):
            if not record.is_redacted and _is_wanted(entry, entry.call, tenant=tenant, agent=agent, since_us=since_us):
                opened[entry.run_id] = _OpenRun()
            continue
        run = opened.get(entry.run_id)
        if run is None:
            continue
        run.is_blocked = run.is_blocked or any(verdict.stops for verdict in entry.verdicts)
        if record.is_redacted:
            sample.redacted += 1
        else:
            run.values.extend(measure.read(entry.call, rules, policy_id))
        if isinstance(entry.call, RunEnded):
            del opened[entry.run_id]
            sample.take(run.values, is_good=entry.call.status is RunStatus.SUCCESS and not run.is_blocked)
    sample.unfinished = len(opened)
    for run in opened.values():  # in the order of their beginning, which the log decides
        sample.take(run.values, is_good=False)
    return sample


def _is_wanted(entry: LogEntry, call: RunStarted, *, tenant: str, agent: str | None, since_us: int | None) -> bool:
    if call.facts.tenant != tenant or (since_us is not None and entry.at_us < since_us):
        return False
    return agent is None or call.facts.agent_name == agent or fnmatchcase(call.facts.agent_name, agent)
