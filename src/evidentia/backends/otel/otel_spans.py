"""Requests as spans of OpenTelemetry, sent wherever the process has set up to send them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.contracts.errors import MissingExtraError
from evidentia.contracts.ports import TraceSink
from evidentia.contracts.vocabulary import CoverageState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import ModuleType

    from opentelemetry.context import Context
    from opentelemetry.trace import Tracer, TracerProvider

    from evidentia.contracts.telemetry import RequestTrace, TraceSpan

    Attributes = dict[str, str | int | float | bool | tuple[str, ...]]


SCOPE: Final = "evidentia"
SCHEMA: Final = "https://opentelemetry.io/schemas/1.41.0"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_NS_PER_US: Final = 1_000
_NS_PER_MS: Final = 1_000_000


class Captured(NamedTuple):
    """Content of a request for whoever decided to send it: the question, and the fragments in the order of the answer."""

    query: str
    contents: Sequence[str]


class OtelTraces(TraceSink):
    """Implements `TraceSink`: a span for a request, and one below it for every stage and source. Thread safe.

    The span that is current where `record` is called is the parent. Traces hold no content, so there is none to send;
    `capture` is for those who have it and want it sent.
    """

    def __init__(self, provider: TracerProvider | None = None, *, capture: Callable[[RequestTrace], Captured | None] | None = None) -> None:
        self._api = _import_api()
        self._tracer: Tracer = self._api.get_tracer(SCOPE, tracer_provider=provider, schema_url=SCHEMA)
        self._capture = capture

    def record(self, trace: RequestTrace) -> None:
        """Send the spans of a request, with the times at which it happened."""
        started_ns = (trace.started_at - _EPOCH) // _MICROSECOND * _NS_PER_US
        kind, attributes = self._api.SpanKind.CLIENT, request_attributes(trace) | self._captured(trace)
        request = self._tracer.start_span(RETRIEVAL, kind=kind, attributes=attributes, start_time=started_ns)
        if request.is_recording():  # a trace that is not sampled costs no more than this
            below = self._api.set_span_in_context(request)
            for span in trace.spans:
                self._send(span, below=below, started_ns=started_ns)
        if error := request_error(trace):
            request.set_status(self._api.StatusCode.ERROR, error)
        request.end(started_ns + _ns(trace.latency_ms))

    def _send(self, span: TraceSpan, *, below: Context, started_ns: int) -> None:
        is_source = span.kind == "source"
        begun_ns = started_ns + _ns(span.start_ms)
        sent = self._tracer.start_span(
            f"{RETRIEVAL} {span.name}" if is_source else span.name,
            context=below,
            kind=self._api.SpanKind.CLIENT if is_source else self._api.SpanKind.INTERNAL,
            attributes=source_attributes(span) if is_source else stage_attributes(span),
            start_time=begun_ns,
        )
        if is_source and (error := source_error(span)):
            sent.set_status(self._api.StatusCode.ERROR, error)
        sent.end(begun_ns + _ns(span.duration_ms))

    def _captured(self, trace: RequestTrace) -> Attributes:
        captured = self._capture(trace) if self._capture else None
        if captured is None:
            return {}
        attributes: Attributes = {"gen_ai.retrieval.query.text": captured.query, "input.value": captured.query}
        for place, content in enumerate(captured.contents):
            attributes[f"retrieval.documents.{place}.document.content"] = content
        return attributes


def _ns(duration_ms: float) -> int:
    return int(duration_ms * _NS_PER_MS)


def _import_api() -> ModuleType:
    try:
        import opentelemetry.trace
    except ImportError as error:
        raise MissingExtraError("otel", needed_for="telemetry.opentelemetry") from error
    return opentelemetry.trace


# --- conventions ---
# What the spans say, in the words of two conventions side by side, for readers of either. OpenTelemetry: the GenAI conventions for
# retrieval spans, in development, as of semantic conventions 1.41; what they mark as opt-in (`gen_ai.retrieval.documents`,
# `gen_ai.retrieval.query.text`) is left out. OpenInference: 0.1, kind and documents.

RETRIEVAL: Final = "retrieval"
PROVIDER: Final = "evidentia"
DEADLINE: Final = "deadline_exceeded"
DOCUMENT: Final = "document."
"""How the attributes begin that name the fragments of an answer: `document.<place>.id` and `document.<place>.score`."""
_KIND: Final = "openinference.span.kind"
_STAGE_KINDS: Final = {"rerank": "RERANKER", "govern": "GUARDRAIL"}
_ERRORS: Final = {CoverageState.TIMED_OUT: "timeout", CoverageState.BREAKER_OPEN: "breaker_open"}


def request_attributes(trace: RequestTrace) -> Attributes:
    """Return what is said of a request as a whole."""
    attributes: Attributes = {
        "gen_ai.operation.name": RETRIEVAL,
        "gen_ai.provider.name": PROVIDER,
        "gen_ai.request.top_k": float(trace.limit),
        _KIND: "RETRIEVER",
        "evidentia.request_id": trace.request_id,
        "evidentia.result_hash": trace.result_hash,
        "evidentia.tenant": trace.tenant,
        "evidentia.principal_fingerprint": trace.principal_fingerprint,
        "evidentia.mode": trace.mode,
        "evidentia.deadline_ms": trace.deadline_ms,
        "evidentia.fragments": trace.fragments,
        "evidentia.candidates": trace.candidates,
        "evidentia.tokens_used": trace.tokens_used,
        "evidentia.cache_hit_ratio": trace.cache_hit_ratio,
    }
    if trace.receipt_id is not None:
        attributes["evidentia.receipt_id"] = trace.receipt_id
    if trace.degraded:
        attributes["evidentia.degraded"] = trace.degraded
    if trace.agent_name:
        attributes["gen_ai.agent.name"] = attributes["agent.name"] = trace.agent_name
    if request_error(trace):
        attributes["error.type"] = request_error(trace)
    return attributes | _documents(trace)


def stage_attributes(span: TraceSpan) -> Attributes:
    """Return what is said of a stage; the fragments are named by the request."""
    attributes: Attributes = {_KIND: _STAGE_KINDS.get(span.name, "CHAIN"), "evidentia.stage": span.name}
    if span.note:
        attributes["evidentia.note"] = span.note
    return attributes | _own(span.attributes)


def source_attributes(span: TraceSpan) -> Attributes:
    """Return what is said of one source's part."""
    attributes: Attributes = {
        "gen_ai.operation.name": RETRIEVAL,
        "gen_ai.provider.name": PROVIDER,
        "gen_ai.data_source.id": span.name,
        _KIND: "RETRIEVER",
        "evidentia.state": span.state.value if span.state else "",
    }
    if span.note:
        attributes["evidentia.note"] = span.note
    if source_error(span):
        attributes["error.type"] = source_error(span)
    return attributes | _own(span.attributes)


def request_error(trace: RequestTrace) -> str:
    """Return what kind of error a request ended in: an answer that lacks something is none, one that is late is."""
    return DEADLINE if trace.latency_ms > trace.deadline_ms else ""


def source_error(span: TraceSpan) -> str:
    """Return what kind of error a source's part ended in; a source that was not to be asked made none."""
    if span.state is CoverageState.FAILED:
        return span.note or "_OTHER"
    return _ERRORS.get(span.state, "") if span.state else ""


def _documents(trace: RequestTrace) -> Attributes:
    """Return the ids and scores of the answer's fragments, best first, as OpenInference spells them."""
    named: Attributes = {}
    for span in trace.spans:
        for name, value in span.attributes.items():
            if span.kind == "stage" and name.startswith(DOCUMENT):
                place, _, field = name.removeprefix(DOCUMENT).partition(".")
                named[f"retrieval.documents.{place}.document.{field}"] = value
    return named


def _own(attributes: Mapping[str, str | int | float | bool]) -> Attributes:
    return {f"evidentia.{name}": value for name, value in attributes.items() if not name.startswith(DOCUMENT)}
