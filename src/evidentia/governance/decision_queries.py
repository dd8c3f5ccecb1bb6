"""Queries over the decision log: decisions, runs and traces. Everything is derived from records, and nothing else is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from evidentia.contracts.decisions import DecisionCounts, DecisionStatus, LogRecord, PolicyDecision
from evidentia.contracts.errors import NotFoundError
from evidentia.contracts.policies import PolicyAction
from evidentia.contracts.protocol import SpanId
from evidentia.contracts.runs import (
    BatchClosed,
    CheckBypassed,
    GroundingEntry,
    LlmCall,
    Phase,
    RetrievedDocument,
    RunEnded,
    RunFacts,
    RunId,
    RunSpan,
    RunStarted,
    RunTrace,
    SpanClosed,
    SpanOpened,
    StepCall,
    ToolCall,
)
from evidentia.governance.decision_expansion import Expander, expand, inputs_of, micros
from evidentia.governance.log_scan import KeptLogs, ScannedRecord, policies_in, run_needle, runs_of, scan, scan_headers
from evidentia.governance.reverse_reader import LogPosition, NewestFirst, PendingRecord, RecordFilter
from evidentia.governance.run_summaries import DecisionTally, recorded_outcomes, summaries
from evidentia.provenance.decision_chain import Checkpoint
from evidentia.provenance.decision_lines import ADMIN_RUN, DOCUMENT, LineHeader, VerdictSummary, outcomes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.contracts.ids import Sha256
    from evidentia.contracts.judging import Judgement
    from evidentia.contracts.runs import AnyCall, RunStatus, RunSummary


__all__ = ["DecisionFilter", "DecisionSlice", "LogPosition", "count_decisions", "decisions", "expand", "runs", "summaries", "trace"]

Shown = Callable[[RunFacts, PolicyDecision], PolicyDecision]

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
    owner: str | None = None
    """Whose runs, by `RunFacts.owner`; what began before its log does is nobody's."""
    action: PolicyAction | None = None
    phase: Phase | None = None
    category: str | None = None
    policy: str | None = None
    """A policy's id or name; also one that did not decide, when it said something."""
    status: DecisionStatus | None = None
    since: datetime | None = None


class DecisionSlice(msgspec.Struct, frozen=True, kw_only=True):
    """Decisions in the order that was asked for, and where the next page begins; None after the last."""

    decisions: tuple[PolicyDecision, ...]
    next: LogPosition | None = None


def decisions(
    logs: KeptLogs,
    wanted: DecisionFilter | None = None,
    *,
    after: LogPosition | None = None,
    limit: int = PAGE,
    is_newest_first: bool = False,
    shown: Shown = lambda _, decision: decision,
) -> DecisionSlice:
    """Return a page of decisions; the decisions of one record stay together, so a page may be a little longer than asked for.

    `shown` returns what is to be seen of a decision, by the facts of its run.

    With `is_newest_first`, logs and records run backwards, and `after` is the position of the last one on the page before.
    """
    rules = wanted or DecisionFilter()
    since_us = None if rules.since is None else micros(rules.since, field="since")

    def is_wanted(header: LineHeader) -> bool:
        is_in_time = since_us is None or header.at_us >= since_us
        is_of_run = rules.run_id is None or rules.run_id == header.run_id
        return is_of_run and is_in_time and _may_match(header, rules)

    if is_newest_first:
        return _newest(logs, rules, _wanted(logs, rules, is_wanted, since_us), after=after, limit=limit, shown=shown)
    expander = Expander()
    page: list[tuple[LogPosition, tuple[PolicyDecision, ...]]] = []
    count = 0
    for record in scan(logs, lambda _, header: header.kind in {"policies", "run"} or is_wanted(header), run_id=rules.run_id):
        position = LogPosition(record.log, record.seq)
        if after is not None and position[:2] <= after[:2]:
            expander.learn(record)
            continue
        expander.learn(record)
        facts = expander.facts(record.entry.run_id)
        found = tuple(shown(facts, each) for each in expander.expand(record) if _matches(each, rules))
        if found:
            page.append((position, found))
            count += len(found)
        # One record more than fits tells that there is another page.
        if count > limit and len(page) > 1:
            break
    return _page(page, limit)


def count_decisions(logs: KeptLogs, wanted: DecisionFilter | None = None) -> DecisionCounts:
    """Return how many decisions fit a filter: as many as the pages of `decisions` hold. One look at each line; few are read in full."""
    rules = wanted or DecisionFilter()
    since_us = None if rules.since is None else micros(rules.since, field="since")
    counter = _Counter(rules)
    for found in scan_headers(logs, lambda *_: True, run_id=rules.run_id):
        if isinstance(found, Checkpoint) or found.header.kind == "policies":
            counter.learn(found)
        elif rules.run_id in (None, found.header.run_id):
            counter.take(found, is_in_time=since_us is None or found.header.at_us >= since_us)
    return counter.counts()


class _Counter:
    """Counts what fits a filter while records go by; calls that passed alike are most of any log, and are counted together."""

    def __init__(self, rules: DecisionFilter) -> None:
        self._rules = rules
        self._tally = DecisionTally()
        self._expander = Expander()
        self._started: dict[RunId, LogRecord] = {}
        self._is_wanted: dict[RunId, bool] = {}
        self._passed: dict[_Passing, tuple[VerdictSummary, ...]] = {}
        self._passes: dict[_Passing, int] = {}

    def learn(self, found: ScannedRecord | Checkpoint) -> None:
        """Take in policies."""
        for record in policies_in(found):
            self._expander.learn(record)

    def take(self, found: ScannedRecord, *, is_in_time: bool) -> None:
        """Count one record."""
        run_id = found.header.run_id
        if found.header.kind == "run":
            self._started[run_id] = found.record()
            self._expander.learn(self._started[run_id])
            self._is_wanted.pop(run_id, None)
        if is_in_time:
            if run_id not in self._is_wanted:
                self._is_wanted[run_id] = self._is_of_a_wanted_run(run_id)
            if self._is_wanted[run_id]:
                self._count(found)
        if found.header.kind == "end":
            self._started.pop(run_id, None)
            self._is_wanted.pop(run_id, None)
            self._expander.forget(run_id)

    def counts(self) -> DecisionCounts:
        """Return what was counted."""
        for key, times in self._passes.items():
            for each in self._passed[key]:
                if _fits(each, self._rules):
                    self._tally.add(each, times=times)
        self._passes.clear()
        return self._tally.counts()

    def _is_of_a_wanted_run(self, run_id: RunId) -> bool:
        started, rules = self._started.get(run_id), self._rules
        return _is_of(started, rules) and (started is not None or (rules.agent in (None, "") and rules.tenant in (None, "")))

    def _count(self, found: ScannedRecord) -> None:
        header = found.header
        if self._rules.policy is not None:
            # Which policies said something beside the one that decided stands in the record alone.
            for each in self._expander.expand(found.record()):
                if _matches(each, self._rules):
                    self._tally.add(each)
        elif outcomes := recorded_outcomes(found):
            self._add(outcomes)
        elif header.kind == DOCUMENT and _JUDGED in found.details:
            self._add(outcomes_of(self._expander.verdicts(found.record())))
        elif self._expander.knows(header.policies):
            key = (header.policies, header.kind, self._expander.is_enforced(header.run_id))
            if key not in self._passed:
                self._passed[key] = outcomes_of(self._expander.verdicts(found.record()))
            self._passes[key] = self._passes.get(key, 0) + 1

    def _add(self, outcomes: Sequence[VerdictSummary]) -> None:
        for each in outcomes:
            if _fits(each, self._rules):
                self._tally.add(each)


_Passing = tuple["Sha256", str, bool]
"""The policies, the kind of a call, and whether its run is enforced: what decides for what a call stands that passed."""
_JUDGED: Final = b'"j":'
"""How the field of a document begins that says by which policies it was judged before; then it stands for other decisions."""


def _fits(outcome: VerdictSummary, rules: DecisionFilter) -> bool:
    pairs = (
        (rules.action, outcome.action),
        (rules.phase, outcome.phase),
        (rules.category, outcome.category),
        (rules.status, outcome.status),
    )
    return all(wanted is None or wanted == found for wanted, found in pairs)


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
    found: list[ScannedRecord] = []
    for each in scan_headers(logs, lambda _, header: header.run_id == run_id or header.kind == "policies", run_id=run_id):
        if isinstance(each, ScannedRecord) and each.header.kind != "policies":
            found.append(each)
            continue
        for record in policies_in(each):
            expander.learn(record)
    if not found:
        raise NotFoundError("run", run_id)
    (summary,) = summaries(found)
    return trace_of(summary, [each.record() for each in found], expander=expander)


def _newest(
    logs: KeptLogs, rules: DecisionFilter, wanted: RecordFilter, *, after: LogPosition | None, limit: int, shown: Shown
) -> DecisionSlice:
    """Return the newest page from the ends of the logs; what stands before it is read only for the beginnings of its runs."""
    expander = Expander()
    newest = NewestFirst(logs, wanted, expander=expander, after=after)
    page: list[tuple[LogPosition, tuple[PolicyDecision, ...]]] = []
    count, size = 0, limit + 1
    while taken := newest.take(size):
        for kept in taken:
            if not _is_of(kept.started, rules):
                continue
            facts = _facts_of(kept)
            made = tuple(shown(facts, each) for each in _decisions_of(kept, expander) if _matches(each, rules))
            if made:
                page.append((newest.place_of(kept), made))
                count += len(made)
            if count > limit and len(page) > 1:
                return _page(page, limit)
        size = min(2 * size, _MAX_AT_ONCE)
    return _page(page, limit)


def _facts_of(kept: PendingRecord) -> RunFacts:
    started = None if kept.started is None else kept.started.entry.call
    return started.facts if isinstance(started, RunStarted) else RunFacts(run_id=kept.found.header.run_id, agent_name="", tenant="")


def _decisions_of(kept: PendingRecord, expander: Expander) -> tuple[PolicyDecision, ...]:
    if kept.started is None:
        expander.forget(kept.found.header.run_id)
    else:
        expander.learn(kept.started)
    return expander.expand(kept.found.record())


def _wanted(logs: KeptLogs, rules: DecisionFilter, is_wanted: Callable[[LineHeader], bool], since_us: int | None) -> RecordFilter:
    """Return which lines are wanted, with what they hold: most of a log need not be read to know that it is not."""
    if rules.run_id is not None:
        return RecordFilter(is_wanted, needles=(run_needle(rules.run_id),), since_us=since_us)
    action = None if rules.action in (None, PolicyAction.ALLOW) else rules.action
    needles: tuple[bytes, ...] = () if action is None else (msgspec.json.encode(action), b'"bypass"')
    if rules.agent is None:
        return RecordFilter(is_wanted, needles=needles, since_us=since_us)
    own = runs_of(logs, rules.agent)
    if len(own) <= _FEW_RUNS:
        needles = tuple(run_needle(run_id) for run_id in sorted(own)) or (_NOWHERE,)
    return RecordFilter(lambda header: header.run_id in own and is_wanted(header), needles=needles, since_us=since_us)


def _is_of(started: LogRecord | None, rules: DecisionFilter) -> bool:
    """Tell whether a run is one that is asked for; of one whose beginning is not known its decisions tell."""
    if started is None or not isinstance(started.entry.call, RunStarted):
        return rules.owner is None
    facts = started.entry.call.facts
    return rules.agent in (None, facts.agent_name) and rules.tenant in (None, facts.tenant) and rules.owner in (None, facts.owner)


def _may_match(header: LineHeader, rules: DecisionFilter) -> bool:
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


def _page(found: Sequence[tuple[LogPosition, tuple[PolicyDecision, ...]]], limit: int) -> DecisionSlice:
    """Return the records that fit, at least one; what is left is read from the position of the last on."""
    kept: list[PolicyDecision] = []
    last: LogPosition | None = None
    for position, made in found:
        if kept and len(kept) + len(made) > limit:
            return DecisionSlice(decisions=tuple(kept), next=last)
        kept.extend(made)
        last = position
    return DecisionSlice(decisions=tuple(kept))


# --- trace of a run ---
# A run as a tree of spans: the run, its tools, every document under the search that found it, model calls, judges and steps.

ROOT: Final = SpanId("run")
_STRUCTURE: Final = frozenset({"span", "duration_ms", "name", "is_retrieval"})


def trace_of(summary: RunSummary, records: Sequence[LogRecord], *, expander: Expander) -> RunTrace:
    """Return the trace of a run from its records, in order; the expander knows the policies that were in force."""
    tree = _Tree(summary, began_us=records[0].entry.at_us, expander=expander)
    for record in records:
        tree.take(record)
    return RunTrace(summary=summary, spans=tree.spans())


@dataclass(slots=True, eq=False)
class _SpanNode:
    """A span while its run goes by."""

    span_id: SpanId
    _: KW_ONLY
    parent: SpanId | None
    name: str
    kind: str
    start_us: int
    duration_us: int = 0
    attributes: dict[str, Any] = field(default_factory=dict)  # Any: JSON as the call gave it
    decisions: list[int] = field(default_factory=list)
    documents: int = 0
    is_open: bool = False
    is_retrieval: bool = False

    def finished(self) -> RunSpan:
        """Return the span; a search that did not say how many sources it found has as many as were recorded under it."""
        if self.is_retrieval and self.attributes.get("sources") is None:
            self.attributes["sources"] = self.documents
        return RunSpan(
            span_id=self.span_id,
            parent=self.parent,
            name=self.name,
            kind=self.kind,
            start_us=self.start_us,
            duration_us=self.duration_us,
            attributes=self.attributes,
            decisions=tuple(self.decisions),
        )


class _Tree:
    """The spans of one run, by their ids, in the order in which they began."""

    def __init__(self, summary: RunSummary, *, began_us: int, expander: Expander) -> None:
        self._began_us = began_us
        self._root = _SpanNode(ROOT, parent=None, name=summary.facts.agent_name, kind="run", start_us=0)
        self._root.attributes = {"status": str(summary.status), "workflow": summary.facts.workflow_name}
        self._spans: dict[SpanId, _SpanNode] = {ROOT: self._root}
        self._search: _SpanNode | None = None
        """The tool call that searched last; documents belong to it until something else is recorded."""
        self._expander = expander

    def take(self, record: LogRecord) -> None:
        """Put one record in its place."""
        call = record.entry.call
        at_us = record.entry.at_us - self._began_us
        self._root.duration_us = max(self._root.duration_us, at_us)
        if not isinstance(call, RetrievedDocument | BatchClosed | SpanOpened | SpanClosed):
            self._search = None
        span = self._placed(record, call, at_us)
        if record.is_redacted:
            span.attributes["is_redacted"] = True
        if self._expander.expand(record):
            span.decisions.append(record.seq)
        self._add_judges(record.seq, call, span, at_us)

    def spans(self) -> tuple[RunSpan, ...]:
        """Return all spans; the run comes first, others when they began, then in the order of their records."""
        return tuple(span.finished() for span in sorted(self._spans.values(), key=lambda span: (span is not self._root, span.start_us)))

    def _placed(self, record: LogRecord, call: AnyCall, at_us: int) -> _SpanNode:
        if isinstance(call, RunStarted | RunEnded | BatchClosed):
            return self._root if isinstance(call, RunStarted | RunEnded) else self._around(call)
        if isinstance(call, SpanOpened):
            return self._opened(call, at_us)
        if isinstance(call, SpanClosed):
            return self._closed(call, at_us)
        span = self._leaf(record.seq, call, at_us)
        self._spans[span.span_id] = span
        return span

    def _leaf(self, seq: int, call: AnyCall, at_us: int) -> _SpanNode:
        own = SpanId(f"s{seq}")
        if isinstance(call, RetrievedDocument):
            parent = self._search_around(call)
            parent.documents += 1
            span = _SpanNode(own, parent=parent.span_id, name=call.source or "document", kind="document", start_us=at_us)
            span.attributes = {
                "relevance": call.relevance_score,
                "source": call.source,
                "collection": call.collection,
                "age": call.age_days,
                **({"chunk_id": call.chunk_id} if call.chunk_id else {}),
                **({"batch": call.batch} if call.batch is not None else {}),
            }
            return span
        name, kind, duration_us = _described(call)
        span = _SpanNode(
            own, parent=self._around(call).span_id, name=name, kind=kind, start_us=max(0, at_us - duration_us), duration_us=duration_us
        )
        span.attributes = {key: value for key, value in inputs_of(call).items() if key not in _STRUCTURE}
        if isinstance(call, ToolCall) and call.is_retrieval:
            span.is_retrieval = True
            self._search = span
        return span

    def _opened(self, call: SpanOpened, at_us: int) -> _SpanNode:
        kind = "retrieval" if call.is_retrieval else "tool"
        span = _SpanNode(call.opened, parent=self._around(call).span_id, name=call.name, kind=kind, start_us=at_us)
        span.is_open, span.is_retrieval = True, call.is_retrieval
        return self._spans.setdefault(call.opened, span)

    def _closed(self, call: SpanClosed, at_us: int) -> _SpanNode:
        span = self._spans.get(call.closed, self._root)
        if span is not self._root:
            span.is_open, span.duration_us = False, at_us - span.start_us
            if call.sources is not None:
                span.attributes["sources"] = call.sources
            if call.error:
                span.attributes["error"] = call.error
        return span

    def _around(self, call: AnyCall) -> _SpanNode:
        return self._spans.get(call.span, self._root) if call.span is not None else self._root

    def _search_around(self, call: RetrievedDocument) -> _SpanNode:
        """Return the nearest search of a document: around its span, else the last that is open or was just recorded, else the run."""
        if call.span is not None:
            span: _SpanNode | None = self._around(call)
            while span is not None and not span.is_retrieval:
                span = None if span.parent is None else self._spans.get(span.parent)
            return span or self._root
        opened = [span for span in self._spans.values() if span.is_open and span.is_retrieval]
        return opened[-1] if opened else self._search or self._root

    def _add_judges(self, seq: int, call: AnyCall, span: _SpanNode, at_us: int) -> None:
        """Add a span for every judge that was asked; its tokens and cost stand there."""
        if not isinstance(call, GroundingEntry | RunEnded):
            return
        for place, (policy_id, judgement) in enumerate(call.judgements.items()):
            made = _judge_span(SpanId(f"s{seq}.{place}"), judgement, parent=span.span_id, at_us=at_us)
            made.attributes["policy_id"] = policy_id
            self._spans[made.span_id] = made


def _judge_span(span_id: SpanId, judgement: Judgement, *, parent: SpanId, at_us: int) -> _SpanNode:
    duration_us = judgement.latency_ms * 1_000
    span = _SpanNode(span_id, parent=parent, name=judgement.model, kind="judge", start_us=at_us, duration_us=duration_us)
    span.attributes = msgspec.to_builtins(judgement)
    return span


def _described(call: AnyCall) -> tuple[str, str, int]:
    """Return the name and kind of a call, and how long it took."""
    if isinstance(call, ToolCall):
        return call.name, "retrieval" if call.is_retrieval else "tool", round(call.duration_ms * 1_000)
    if isinstance(call, LlmCall):
        return call.model, "llm", round(call.duration_ms * 1_000)
    if isinstance(call, StepCall):
        return call.name, "step", 0
    if isinstance(call, CheckBypassed):
        return call.what, "bypass", 0
    return type(call).__name__, "grounding" if isinstance(call, GroundingEntry) else "step", 0
