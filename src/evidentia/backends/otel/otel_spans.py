"""Requests as spans of OpenTelemetry, sent wherever the process has set up to send them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.backends.otel.conventions import (
    RETRIEVAL,
    request_attributes,
    request_error,
    source_attributes,
    source_error,
    stage_attributes,
)
from evidentia.contracts.errors import MissingExtraError
from evidentia.contracts.ports import TraceSink

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    from opentelemetry.context import Context
    from opentelemetry.trace import Tracer, TracerProvider

    from evidentia.backends.otel.conventions import Attributes
    from evidentia.contracts.telemetry import RequestTrace, TraceSpan

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
