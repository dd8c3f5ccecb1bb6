"""What the decision log tells: decisions, runs and traces. Everything is derived from records, and nothing else is kept."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.decisions import DecisionStatus, PolicyDecision
from evidentia.contracts.errors import NotFoundError
from evidentia.contracts.policies import PolicyAction
from evidentia.contracts.runs import Phase, RunId, RunStarted
from evidentia.governance.expanding import Expander, expand, micros
from evidentia.governance.log_marks import runs_of
from evidentia.governance.log_scan import Found, policies_in, run_needle, scan, scan_headers
from evidentia.governance.reverse_reader import Newest, Position, Wanted
from evidentia.governance.run_summaries import summaries
from evidentia.governance.tracing import trace_of
from evidentia.provenance.decision_lines import ADMIN_RUN

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evidentia.contracts.decisions import LogRecord
    from evidentia.contracts.runs import RunStatus, RunSummary, RunTrace
    from evidentia.governance.kept_logs import KeptLogs
    from evidentia.governance.reverse_reader import Kept
    from evidentia.provenance.decision_lines import Header

__all__ = ["DecisionFilter", "DecisionPage", "Position", "decisions", "expand", "runs", "summaries", "trace"]

PAGE: Final = 100
_FEW_RUNS: Final = 8
_NOWHERE: Final = b"\n\n"
"""What no line holds."""
_MAX_AT_ONCE: Final = 4_096
"""How many records are held at a time, since some hold no decision that is wanted."""


class DecisionFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which decisions are wanted; everything given must be true of them."""

    run_id: RunId | None = None
    agent: str | None = None
    tenant: str | None = None
    action: PolicyAction | None = None
    phase: Phase | None = None
    category: str | None = None
    policy: str | None = None
    """A policy's id or name; also one that did not decide, when it said something."""
    status: DecisionStatus | None = None
    since: datetime | None = None


class DecisionPage(msgspec.Struct, frozen=True, kw_only=True):
    """Decisions in the order that was asked for, and where the next page begins; None after the last."""

    decisions: tuple[PolicyDecision, ...]
    next: Position | None = None


def decisions(
    logs: KeptLogs,
    wanted: DecisionFilter | None = None,
    *,
    after: Position | None = None,
    limit: int = PAGE,
    is_newest_first: bool = False,
) -> DecisionPage:
    """Return a page of decisions; the decisions of one record stay together, so a page may be a little longer than asked for.

    With `is_newest_first`, logs and records run backwards, and `after` is the position of the last one on the page before.
    """
    rules = wanted or DecisionFilter()
    since_us = None if rules.since is None else micros(rules.since, field="since")

    def is_wanted(header: Header) -> bool:
        is_in_time = since_us is None or header.at_us >= since_us
        is_of_run = rules.run_id is None or rules.run_id == header.run_id
        return is_of_run and is_in_time and _may_match(header, rules)

    if is_newest_first:
        return _newest(logs, rules, _wanted(logs, rules, is_wanted, since_us), after=after, limit=limit)
    expander = Expander()
    page: list[tuple[Position, tuple[PolicyDecision, ...]]] = []
    count = 0
    for record in scan(logs, lambda _, header: header.kind in {"policies", "run"} or is_wanted(header), run_id=rules.run_id):
        position = Position(record.log, record.seq)
        if after is not None and position[:2] <= after[:2]:
            expander.learn(record)
            continue
        found = tuple(each for each in expander.expand(record) if _matches(each, rules))
        if found:
            page.append((position, found))
            count += len(found)
        # One record more than fits tells that there is another page.
        if count > limit and len(page) > 1:
            break
    return _page(page, limit)


def runs(
    logs: KeptLogs,
    *,
    agent: str | None = None,
    status: RunStatus | None = None,
    since: datetime | None = None,
    limit: int | None = None,
) -> tuple[RunSummary, ...]:
    """Return runs, those that began last first."""
    since_us = 0 if since is None else micros(since, field="since")
    found = summaries(scan_headers(logs, lambda _, header: header.run_id != ADMIN_RUN))
    wanted = [
        run
        for run in found
        if (agent is None or agent == run.facts.agent_name)
        and (status is None or status == run.status)
        and micros(run.started_at, field="started_at") >= since_us
    ]
    wanted.sort(key=lambda run: run.facts.run_id)
    wanted.sort(key=lambda run: run.started_at, reverse=True)
    return tuple(wanted[:limit])


def trace(logs: KeptLogs, run_id: RunId) -> RunTrace:
    """Return a run with its spans, or raise NotFoundError."""
    expander = Expander()
    found: list[Found] = []
    for each in scan_headers(logs, lambda _, header: header.run_id == run_id or header.kind == "policies", run_id=run_id):
        if isinstance(each, Found) and each.header.kind != "policies":
            found.append(each)
            continue
        for record in policies_in(each):
            expander.learn(record)
    if not found:
        raise NotFoundError("run", run_id)
    (summary,) = summaries(found)
    return trace_of(summary, [each.record() for each in found], expander=expander)


def _newest(logs: KeptLogs, rules: DecisionFilter, wanted: Wanted, *, after: Position | None, limit: int) -> DecisionPage:
    """Return the newest page from the ends of the logs; what stands before it is read only for the beginnings of its runs."""
    expander = Expander()
    newest = Newest(logs, wanted, expander=expander, after=after)
    page: list[tuple[Position, tuple[PolicyDecision, ...]]] = []
    count, size = 0, limit + 1
    while taken := newest.take(size):
        for kept in taken:
            if not _is_of(kept.started, rules):
                continue
            made = tuple(each for each in _told(kept, expander) if _matches(each, rules))
            if made:
                page.append((newest.place_of(kept), made))
                count += len(made)
            if count > limit and len(page) > 1:
                return _page(page, limit)
        size = min(2 * size, _MAX_AT_ONCE)
    return _page(page, limit)


def _told(kept: Kept, expander: Expander) -> tuple[PolicyDecision, ...]:
    if kept.started is None:
        expander.forget(kept.found.header.run_id)
    else:
        expander.learn(kept.started)
    return expander.expand(kept.found.record())


def _wanted(logs: KeptLogs, rules: DecisionFilter, is_wanted: Callable[[Header], bool], since_us: int | None) -> Wanted:
    """Return which lines are wanted, with what they hold: most of a log need not be read to know that it is not."""
    if rules.run_id is not None:
        return Wanted(is_wanted, needles=(run_needle(rules.run_id),), since_us=since_us)
    action = None if rules.action in (None, PolicyAction.ALLOW) else rules.action
    needles: tuple[bytes, ...] = () if action is None else (msgspec.json.encode(action), b'"bypass"')
    if rules.agent is None:
        return Wanted(is_wanted, needles=needles, since_us=since_us)
    own = runs_of(logs, rules.agent)
    if len(own) <= _FEW_RUNS:
        needles = tuple(run_needle(run_id) for run_id in sorted(own)) or (_NOWHERE,)
    return Wanted(lambda header: header.run_id in own and is_wanted(header), needles=needles, since_us=since_us)


def _is_of(started: LogRecord | None, rules: DecisionFilter) -> bool:
    """Tell whether a run is one that is asked for; of one whose beginning is not known its decisions tell."""
    if started is None or not isinstance(started.entry.call, RunStarted):
        return True
    facts = started.entry.call.facts
    return rules.agent in (None, facts.agent_name) and rules.tenant in (None, facts.tenant)


def _may_match(header: Header, rules: DecisionFilter) -> bool:
    """Tell from its header whether a record may hold a wanted decision; most that pass need not be read to know that they do not."""
    if header.kind == "bypass":
        return True
    if not header.outcomes:
        return rules.action in (None, PolicyAction.ALLOW) and rules.phase in (None, Phase.MID_EXECUTION)
    return any(
        (rules.action is None or rules.action == outcome.action)
        and (rules.phase is None or rules.phase == outcome.phase)
        and (rules.category is None or rules.category == outcome.category)
        and (rules.status is None or rules.status == outcome.status)
        for outcome in header.outcomes
    )


def _matches(decision: PolicyDecision, rules: DecisionFilter) -> bool:
    names = (decision.policy_id, decision.policy_name)
    said = ((each.policy_id, each.policy_name) for each in decision.evaluations)
    pairs = (
        (rules.run_id, decision.run_id),
        (rules.agent, decision.agent_name),
        (rules.tenant, decision.tenant),
        (rules.action, decision.action),
        (rules.phase, decision.phase),
        (rules.category, decision.category),
        (rules.status, decision.status),
    )
    return (
        all(wanted is None or wanted == found for wanted, found in pairs)
        and (rules.policy is None or rules.policy in names or any(rules.policy in each for each in said))
        and (rules.since is None or decision.at >= rules.since)
    )


def _page(found: Sequence[tuple[Position, tuple[PolicyDecision, ...]]], limit: int) -> DecisionPage:
    """Return the records that fit, at least one; what is left is told by the position of the last."""
    kept: list[PolicyDecision] = []
    last: Position | None = None
    for position, made in found:
        if kept and len(kept) + len(made) > limit:
            return DecisionPage(decisions=tuple(kept), next=last)
        kept.extend(made)
        last = position
    return DecisionPage(decisions=tuple(kept))
