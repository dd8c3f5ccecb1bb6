"""Runs and requests as rows on a time axis. Pure: from what an operation answers to what a template prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from evidentia.contracts.vocabulary import CoverageState
from evidentia.serving.dashboard.plots import TimeBar, time_bar, time_mark

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from evidentia.contracts.decisions import PolicyDecision
    from evidentia.contracts.protocol import SpanId
    from evidentia.contracts.runs import RunSpan, RunSummary, RunTrace
    from evidentia.contracts.telemetry import RequestTrace, TraceSpan

MAX_DEPTH: Final = 6
"""Deeper spans are not set in any further."""
MAX_SPANS: Final = 2_000
"""Rows of one page."""
MAX_VALUE_LENGTH: Final = 500
_PLACES: Final = 3
FAR_TIMES: Final = 4
"""A deadline of more than so many times the answer's time lies far beyond it."""
MICROS: Final = 1_000_000
LATE: Final = frozenset({CoverageState.TIMED_OUT, CoverageState.FAILED})
UNASKED: Final = frozenset({CoverageState.SKIPPED, CoverageState.DENIED, CoverageState.BREAKER_OPEN})
_GROUNDING: Final = frozenset({"grounding_scores", "citations", "unsupported_claims", "output_confidence", "judgements"})
_NAMES: Final = {"grounding": "grounding entry"}
_SPENDING: Final = ("input_tokens", "output_tokens", "cost_micro")


class Fact(NamedTuple):
    """One attribute of a span, or one value of a decision's metadata."""

    name: str
    text: str


class Grounding(NamedTuple):
    """What an agent said its output rests on."""

    scores: tuple[float, ...]
    citations: tuple[str, ...]
    unsupported: tuple[str, ...]
    confidence: float | None


class SpanRow(NamedTuple):
    """One span of a run, with the decisions that were taken at it."""

    record: str
    """The number of the record that it is; empty for one that is made of several."""
    name: str
    kind: str
    depth: int
    start_ms: float
    duration_ms: float
    bar: TimeBar
    facts: tuple[Fact, ...]
    decisions: tuple[PolicyDecision, ...]
    chunk: str = ""
    """The fragment that was retrieved; empty when the agent did not name it."""
    grounding: Grounding | None = None


class Spent(NamedTuple):
    """What a run's model calls and judges used, as they were recorded."""

    calls: int
    input_tokens: int
    output_tokens: int
    cost: str


class RunView(NamedTuple):
    """A run as a page shows it."""

    rows: tuple[SpanRow, ...]
    spent: Spent
    whole_ms: float
    left_out: int
    unplaced: tuple[PolicyDecision, ...]
    """Decisions that belong to no span that is shown."""


class RequestRow(NamedTuple):
    """A stage of a request, or one source's part in it."""

    name: str
    is_source: bool
    start_ms: float
    duration_ms: float
    bar: TimeBar | None
    """None for a source that was not asked."""
    state: str
    tone: str
    remark: str
    is_past_deadline: bool


class RequestView(NamedTuple):
    """A request as a page shows it."""

    rows: tuple[RequestRow, ...]
    whole_ms: float
    deadline_x: int | None
    is_late: bool
    late_sources: tuple[str, ...]
    skipped_sources: tuple[str, ...]


def view_run(trace: RunTrace, decisions: Sequence[PolicyDecision]) -> RunView:
    """Return the spans of a run as a tree in rows, each decision at its place."""
    by_seq: dict[int, list[PolicyDecision]] = {}
    for decision in decisions:
        by_seq.setdefault(decision.seq, []).append(decision)
    whole_us = max((span.start_us + span.duration_us for span in trace.spans), default=0)
    ordered = _tree(trace.spans)
    rows = tuple(_span_row(span, depth, by_seq, whole_us) for span, depth in ordered[:MAX_SPANS])
    placed = {(each.log, each.seq, each.part) for row in rows for each in row.decisions}
    unplaced = tuple(each for each in decisions if (each.log, each.seq, each.part) not in placed)
    return RunView(rows, spent(trace.spans), whole_us / 1_000, max(0, len(ordered) - MAX_SPANS), unplaced)


def spent(spans: Iterable[RunSpan]) -> Spent:
    """Return what model calls and judges used together."""
    used = [span.attributes for span in spans if span.kind in {"llm", "judge"}]
    totals = [sum(_whole(each.get(name)) for each in used) for name in _SPENDING]
    return Spent(len(used), totals[0], totals[1], f"{totals[2] / MICROS:.6f}".rstrip("0").rstrip(".") or "0")


def duration_ms(run: RunSummary) -> float | None:
    """Return how long a run took; None while it goes on."""
    return None if run.ended_at is None else (run.ended_at - run.started_at).total_seconds() * 1_000


def facts_of(metadata: Mapping[str, Any]) -> tuple[Fact, ...]:  # Any: JSON
    """Return every value by its name, as text; a long one is cut."""
    return tuple(Fact(name, _text(value)) for name, value in metadata.items())


def view_request(trace: RequestTrace, *, is_close: bool = False) -> RequestView:
    """Return stages and sources on an axis that ends at the answer or the deadline, whichever is later.

    Seen from close by, a deadline that lies so far beyond the answer that nothing else could be made out is left off.
    """
    is_far = is_close and trace.latency_ms * FAR_TIMES < trace.deadline_ms
    whole = trace.latency_ms if is_far else max(trace.latency_ms, float(trace.deadline_ms))
    late = trace.latency_ms > trace.deadline_ms
    first = RequestRow(
        "request",
        is_source=False,
        start_ms=0.0,
        duration_ms=trace.latency_ms,
        bar=time_bar(0.0, trace.latency_ms, whole),
        state="answered late" if late else "answered",
        tone="bad" if late else "good",
        remark="",
        is_past_deadline=late,
    )
    sources = [span for span in trace.spans if span.kind == "source"]
    return RequestView(
        rows=(first, *(_request_row(span, trace.deadline_ms, whole) for span in sorted(trace.spans, key=lambda span: span.start_ms))),
        whole_ms=whole,
        deadline_x=None if is_far else time_mark(float(trace.deadline_ms), whole),
        is_late=late,
        late_sources=tuple(span.name for span in sources if span.state in LATE),
        skipped_sources=tuple(span.name for span in sources if span.state in UNASKED),
    )


def _tree(spans: Sequence[RunSpan]) -> list[tuple[RunSpan, int]]:
    """Return every span below its parent, siblings as they began; a span whose parent is not there stands at the top."""
    known = {span.span_id for span in spans}
    children: dict[SpanId | None, list[RunSpan]] = {}
    for span in spans:
        children.setdefault(span.parent if span.parent in known and span.parent != span.span_id else None, []).append(span)
    ordered: list[tuple[RunSpan, int]] = []
    waiting = [(span, 0) for span in reversed(children.get(None, []))]
    while waiting:
        span, depth = waiting.pop()
        ordered.append((span, depth))
        waiting += [(child, depth + 1) for child in reversed(children.get(span.span_id, []))]
    return ordered


def _span_row(span: RunSpan, depth: int, by_seq: Mapping[int, Sequence[PolicyDecision]], whole_us: int) -> SpanRow:
    attributes = span.attributes
    kept = {name: value for name, value in attributes.items() if name not in _GROUNDING and name != "chunk_id" and value not in (None, "")}
    return SpanRow(
        record=_record(span.span_id),
        name=_NAMES.get(span.kind, span.name) or span.kind,
        kind=span.kind,
        depth=min(depth, MAX_DEPTH),
        start_ms=span.start_us / 1_000,
        duration_ms=span.duration_us / 1_000,
        bar=time_bar(span.start_us, span.duration_us, whole_us),
        facts=facts_of(kept),
        decisions=tuple(decision for seq in span.decisions for decision in by_seq.get(seq, ())),
        chunk=str(attributes.get("chunk_id", "")),
        grounding=_grounding(attributes) if span.kind == "grounding" else None,
    )


def _record(span_id: str) -> str:
    digits = span_id[1:]
    return digits if span_id.startswith("s") and digits.isascii() and digits.isdecimal() else ""


def _grounding(attributes: Mapping[str, Any]) -> Grounding:  # Any: JSON
    return Grounding(
        scores=tuple(attributes.get("grounding_scores", ())),
        citations=tuple(str(each) for each in attributes.get("citations", ())),
        unsupported=tuple(str(each) for each in attributes.get("unsupported_claims", ())),
        confidence=attributes.get("output_confidence"),
    )


def _request_row(span: TraceSpan, deadline_ms: int, whole_ms: float) -> RequestRow:
    is_source = span.kind == "source"
    said = [] if span.state is None else [span.state.value.replace("_", " ")]
    remarks = [f"{value} {name}" for name, value in span.attributes.items() if name in {"candidates", "faults"} and value]
    remarks += [f"from {span.attributes['tier']}"] if "tier" in span.attributes else []
    is_past = span.state not in UNASKED and span.start_ms + span.duration_ms > deadline_ms
    return RequestRow(
        name=span.name,
        is_source=is_source,
        start_ms=span.start_ms,
        duration_ms=span.duration_ms,
        bar=None if span.state in UNASKED else time_bar(span.start_ms, span.duration_ms, whole_ms),
        state=", ".join(said),
        tone=_tone(span.state),
        remark="; ".join([*remarks, *([span.note] if span.note else [])]),
        is_past_deadline=is_past,
    )


def _tone(state: CoverageState | None) -> str:
    if state in LATE:
        return "bad"
    if state in UNASKED or state is CoverageState.STALE:
        return "warn"
    return "" if state is None else "good"


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def _text(value: Any) -> str:  # noqa: ANN401 - JSON
    text = value if isinstance(value, str) else msgspec.json.encode(_rounded(value)).decode()
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[:MAX_VALUE_LENGTH]}…"


def _rounded(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Return a value whose fractions have no more digits than people read."""
    if isinstance(value, float):
        return round(value, _PLACES)
    if isinstance(value, dict):
        return {name: _rounded(inner) for name, inner in value.items()}
    return [_rounded(inner) for inner in value] if isinstance(value, (list, tuple)) else value
