"""A run as a tree of spans: the run, its tools, every document under the search that found it, model calls, judges and steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.calls import SpanId
from evidentia.contracts.runs import (
    BatchClosed,
    CheckBypassed,
    GroundingEntry,
    LlmCall,
    RetrievedDocument,
    RunEnded,
    RunSpan,
    RunStarted,
    RunTrace,
    SpanClosed,
    SpanOpened,
    StepCall,
    ToolCall,
)
from evidentia.governance.expanding import inputs_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from evidentia.contracts.decisions import LogRecord
    from evidentia.contracts.judging import Judgement
    from evidentia.contracts.runs import AnyCall, RunSummary
    from evidentia.governance.expanding import Expander

ROOT: Final = SpanId("run")
_STRUCTURE: Final = frozenset({"span", "duration_ms", "name", "is_retrieval"})


def trace_of(summary: RunSummary, records: Sequence[LogRecord], *, expander: Expander) -> RunTrace:
    """Return the trace of a run from its records, in order; the expander knows the policies that were in force."""
    tree = _Tree(summary, began_us=records[0].entry.at_us, expander=expander)
    for record in records:
        tree.take(record)
    return RunTrace(summary=summary, spans=tree.spans())


class _Span:
    """A span while its run goes by."""

    __slots__ = (
        "attributes",
        "decisions",
        "documents",
        "duration_us",
        "is_open",
        "is_retrieval",
        "kind",
        "name",
        "parent",
        "span_id",
        "start_us",
    )

    def __init__(self, span_id: SpanId, *, parent: SpanId | None, name: str, kind: str, start_us: int, duration_us: int = 0) -> None:
        self.span_id = span_id
        self.parent = parent
        self.name = name
        self.kind = kind
        self.start_us = start_us
        self.duration_us = duration_us
        self.attributes: dict[str, Any] = {}  # Any: JSON as the call gave it
        self.decisions: list[int] = []
        self.documents = 0
        self.is_open = False
        self.is_retrieval = False

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
        self._root = _Span(ROOT, parent=None, name=summary.facts.agent_name, kind="run", start_us=0)
        self._root.attributes = {"status": str(summary.status), "workflow": summary.facts.workflow_name}
        self._spans: dict[SpanId, _Span] = {ROOT: self._root}
        self._search: _Span | None = None
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

    def _placed(self, record: LogRecord, call: AnyCall, at_us: int) -> _Span:
        if isinstance(call, RunStarted | RunEnded | BatchClosed):
            return self._root if isinstance(call, RunStarted | RunEnded) else self._around(call)
        if isinstance(call, SpanOpened):
            return self._opened(call, at_us)
        if isinstance(call, SpanClosed):
            return self._closed(call, at_us)
        span = self._leaf(record.seq, call, at_us)
        self._spans[span.span_id] = span
        return span

    def _leaf(self, seq: int, call: AnyCall, at_us: int) -> _Span:
        own = SpanId(f"s{seq}")
        if isinstance(call, RetrievedDocument):
            parent = self._search_around(call)
            parent.documents += 1
            span = _Span(own, parent=parent.span_id, name=call.source or "document", kind="document", start_us=at_us)
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
        span = _Span(
            own, parent=self._around(call).span_id, name=name, kind=kind, start_us=max(0, at_us - duration_us), duration_us=duration_us
        )
        span.attributes = {key: value for key, value in inputs_of(call).items() if key not in _STRUCTURE}
        if isinstance(call, ToolCall) and call.is_retrieval:
            span.is_retrieval = True
            self._search = span
        return span

    def _opened(self, call: SpanOpened, at_us: int) -> _Span:
        kind = "retrieval" if call.is_retrieval else "tool"
        span = _Span(call.opened, parent=self._around(call).span_id, name=call.name, kind=kind, start_us=at_us)
        span.is_open, span.is_retrieval = True, call.is_retrieval
        return self._spans.setdefault(call.opened, span)

    def _closed(self, call: SpanClosed, at_us: int) -> _Span:
        span = self._spans.get(call.closed, self._root)
        if span is not self._root:
            span.is_open, span.duration_us = False, at_us - span.start_us
            if call.sources is not None:
                span.attributes["sources"] = call.sources
            if call.error:
                span.attributes["error"] = call.error
        return span

    def _around(self, call: AnyCall) -> _Span:
        return self._spans.get(call.span, self._root) if call.span is not None else self._root

    def _search_around(self, call: RetrievedDocument) -> _Span:
        """Return the nearest search of a document: around its span, else the last that is open or was just recorded, else the run."""
        if call.span is not None:
            span: _Span | None = self._around(call)
            while span is not None and not span.is_retrieval:
                span = None if span.parent is None else self._spans.get(span.parent)
            return span or self._root
        opened = [span for span in self._spans.values() if span.is_open and span.is_retrieval]
        return opened[-1] if opened else self._search or self._root

    def _add_judges(self, seq: int, call: AnyCall, span: _Span, at_us: int) -> None:
        """Add a span for every judge that was asked; its tokens and cost stand there."""
        if not isinstance(call, GroundingEntry | RunEnded):
            return
        for place, (policy_id, judgement) in enumerate(call.judgements.items()):
            made = _judge_span(SpanId(f"s{seq}.{place}"), judgement, parent=span.span_id, at_us=at_us)
            made.attributes["policy_id"] = policy_id
            self._spans[made.span_id] = made


def _judge_span(span_id: SpanId, judgement: Judgement, *, parent: SpanId, at_us: int) -> _Span:
    duration_us = judgement.latency_ms * 1_000
    span = _Span(span_id, parent=parent, name=judgement.model, kind="judge", start_us=at_us, duration_us=duration_us)
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
