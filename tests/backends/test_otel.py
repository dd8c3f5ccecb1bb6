"""Spans, metrics and lines as their readers get them, and what happens when one of them fails."""

from __future__ import annotations

import builtins
import contextvars
import json
import logging
import threading
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import trace as otel
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, StatusCode
from prometheus_client import CollectorRegistry, generate_latest

from engine.trace_samples import STAGES, STARTED, trace
from evidentia.backends.embedded.logs.trace_log import EmbeddedTraces
from evidentia.backends.otel.otel_spans import Captured, OtelTraces
from evidentia.backends.otel.prometheus_metrics import PrometheusMetrics
from evidentia.backends.otel.request_log import LOGGER, RequestLog
from evidentia.contracts.errors import MissingExtraError
from evidentia.contracts.settings import TelemetrySettings
from evidentia.wiring.telemetry_sinks import DeferredSink, TraceHub, sinks_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from opentelemetry.sdk.trace import ReadableSpan

    from evidentia.contracts.telemetry import RequestTrace


class Exported:
    """A tracer provider with what it sent."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def spans(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self._exporter.get_finished_spans()}


@pytest.fixture
def exported() -> Exported:
    return Exported()


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def times_ms(span: ReadableSpan) -> tuple[float, float]:
    """Return when a span began, since the request did, and how long it took."""
    assert span.start_time is not None
    assert span.end_time is not None
    begun_ns = int(STARTED.timestamp()) * 10**9 + STARTED.microsecond * 1_000
    return (span.start_time - begun_ns) / 1e6, (span.end_time - span.start_time) / 1e6


def test_request_is_a_retrieval_in_both_conventions(exported: Exported) -> None:
    OtelTraces(exported.provider).record(trace())

    span = exported.spans()["retrieval"]
    assert (SpanKind.CLIENT, None, StatusCode.UNSET) == (span.kind, span.parent, span.status.status_code)
    assert {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.provider.name": "evidentia",
        "gen_ai.request.top_k": 10.0,
        "gen_ai.agent.name": "planner",
        "agent.name": "planner",
        "openinference.span.kind": "RETRIEVER",
        "retrieval.documents.0.document.id": "1111111111111111",
        "retrieval.documents.0.document.score": 0.75,
        "retrieval.documents.1.document.id": "2222222222222222",
        "retrieval.documents.1.document.score": 0.5,
        "evidentia.request_id": "0123456789abcdef",
        "evidentia.receipt_id": "r-0123456789ab-7",
        "evidentia.result_hash": "a" * 64,
        "evidentia.tenant": "default",
        "evidentia.principal_fingerprint": "f" * 64,
        "evidentia.mode": "hybrid",
        "evidentia.deadline_ms": 250,
        "evidentia.fragments": 2,
        "evidentia.candidates": 40,
        "evidentia.tokens_used": 321,
        "evidentia.cache_hit_ratio": 0.25,
    } == attributes(span)


def test_attribute_names_are_those_of_the_conventions() -> None:
    from openinference.semconv.trace import DocumentAttributes, OpenInferenceSpanKindValues, SpanAttributes
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes

    assert "openinference.span.kind" == SpanAttributes.OPENINFERENCE_SPAN_KIND
    assert ("RETRIEVER", "retrieval.documents") == (OpenInferenceSpanKindValues.RETRIEVER.value, SpanAttributes.RETRIEVAL_DOCUMENTS)
    assert ("document.id", "document.score") == (DocumentAttributes.DOCUMENT_ID, DocumentAttributes.DOCUMENT_SCORE)
    assert "retrieval" == gen_ai_attributes.GenAiOperationNameValues.RETRIEVAL.value
    assert "gen_ai.data_source.id" == gen_ai_attributes.GEN_AI_DATA_SOURCE_ID
    assert "gen_ai.request.top_k" == gen_ai_attributes.GEN_AI_REQUEST_TOP_K


def test_stages_and_sources_are_below_the_request_with_their_times(exported: Exported) -> None:
    OtelTraces(exported.provider).record(trace())

    spans = exported.spans()
    whole = spans.pop("retrieval")
    assert (0.0, 228.5) == times_ms(whole)
    assert {whole.context.span_id} == {span.parent.span_id for span in spans.values() if span.parent}
    assert {*STAGES, *(f"retrieval {name}" for name in ("handbook", "slack", "tickets", "vault", "wiki"))} == set(spans)
    assert (13.5, 200.0) == times_ms(spans["search"])
    assert (13.5, 40.0) == times_ms(spans["retrieval handbook"])
    assert (SpanKind.INTERNAL, SpanKind.CLIENT) == (spans["search"].kind, spans["retrieval handbook"].kind)
    assert {"openinference.span.kind": "RERANKER", "evidentia.stage": "rerank"} == attributes(spans["rerank"])
    assert {"openinference.span.kind": "CHAIN", "evidentia.stage": "seal"} == attributes(spans["seal"])
    assert "3 terms, 0 phrases" == attributes(spans["understand"])["evidentia.note"]


def test_source_says_what_became_of_it(exported: Exported) -> None:
    OtelTraces(exported.provider).record(trace())

    spans = exported.spans()
    assert {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.provider.name": "evidentia",
        "gen_ai.data_source.id": "tickets",
        "openinference.span.kind": "RETRIEVER",
        "evidentia.state": "cached",
        "evidentia.note": "kept for 30 s",
        "evidentia.candidates": 4,
        "evidentia.faults": 0,
        "evidentia.part": 0,
        "evidentia.tier": "session",
    } == attributes(spans["retrieval tickets"])
    errors = {name: (span.status.status_code, attributes(span).get("error.type")) for name, span in spans.items()}
    assert (StatusCode.ERROR, "timeout") == errors["retrieval slack"]
    assert (StatusCode.ERROR, "ConnectionError") == errors["retrieval wiki"]
    assert (StatusCode.UNSET, None) == errors["retrieval vault"]


@pytest.mark.parametrize(
    ("latency_ms", "degraded", "status", "error"),
    [(251.0, (), StatusCode.ERROR, "deadline_exceeded"), (250.0, ("dense",), StatusCode.UNSET, None)],
    ids=["late", "degraded"],
)
def test_only_a_late_answer_is_an_error(
    exported: Exported, latency_ms: float, degraded: tuple[str, ...], status: StatusCode, error: str | None
) -> None:
    OtelTraces(exported.provider).record(trace(latency_ms=latency_ms, degraded=degraded))

    span = exported.spans()["retrieval"]
    assert (status, error) == (span.status.status_code, attributes(span).get("error.type"))
    assert (degraded or None) == attributes(span).get("evidentia.degraded")


def test_span_of_the_caller_is_the_parent(exported: Exported) -> None:
    sink = OtelTraces(exported.provider)
    with exported.provider.get_tracer("caller").start_as_current_span("agent turn") as caller:
        sink.record(trace())

    span = exported.spans()["retrieval"]
    assert span.parent is not None
    assert caller.get_span_context().span_id == span.parent.span_id


def test_span_of_the_caller_is_the_parent_from_behind_its_back_too(exported: Exported) -> None:
    sink = DeferredSink(TraceHub([OtelTraces(exported.provider)]))
    with exported.provider.get_tracer("caller").start_as_current_span("agent turn") as caller:
        sink.record(trace())
    sink.close()

    span = exported.spans()["retrieval"]
    assert span.parent is not None
    assert caller.get_span_context().span_id == span.parent.span_id


def test_trace_that_is_not_sampled_is_not_sent() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(sampler=ALWAYS_OFF)
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    OtelTraces(provider).record(trace())

    assert () == exporter.get_finished_spans()


def test_provider_of_the_process_is_used(exported: Exported, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otel, "_TRACER_PROVIDER", exported.provider)

    OtelTraces().record(trace())

    assert "retrieval" in exported.spans()


def test_content_is_sent_only_by_those_who_hand_it_over(exported: Exported) -> None:
    OtelTraces(exported.provider, capture=lambda _: Captured(query="the question", contents=("first", "second"))).record(trace())

    told = attributes(exported.spans()["retrieval"])
    assert "the question" == told["input.value"] == told["gen_ai.retrieval.query.text"]
    assert "second" == told["retrieval.documents.1.document.content"]


def scraped(registry: CollectorRegistry) -> dict[str, float]:
    lines = generate_latest(registry).decode().splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if not line.startswith("#"))}


def test_metrics_as_they_are_scraped() -> None:
    registry = CollectorRegistry()
    metrics = PrometheusMetrics(registry)
    for each in (trace(), trace(degraded=("dense",)), trace(latency_ms=300.0, degraded=("deadline",))):
        metrics.record(each)

    series = scraped(registry)
    assert [1.0, 1.0, 1.0] == [series[f'evidentia_requests_total{{outcome="{word}"}}'] for word in ("ok", "degraded", "late")]
    assert 3.0 == series["evidentia_request_duration_seconds_count"]
    assert pytest.approx(0.757) == series["evidentia_request_duration_seconds_sum"]
    assert (
        2.0
        == series['evidentia_request_duration_seconds_bucket{le="0.3"}'] - series['evidentia_request_duration_seconds_bucket{le="0.2"}'] - 1
    )
    assert pytest.approx(0.6) == series['evidentia_stage_duration_seconds_sum{stage="search"}']
    assert 3.0 == series['evidentia_source_calls_total{source="slack",state="timed_out"}']
    assert pytest.approx(0.12) == series['evidentia_source_duration_seconds_sum{source="handbook"}']
    assert 3.0 == series['evidentia_cache_hits_total{tier="session"}']
    assert (6.0, 963.0) == (series["evidentia_fragments_total"], series["evidentia_tokens_total"])


def test_series_do_not_grow_with_requests_and_callers() -> None:
    registry = CollectorRegistry()
    metrics = PrometheusMetrics(registry)
    metrics.record(trace())
    first = set(scraped(registry))
    for number in range(50):
        metrics.record(trace(f"id-{number}", receipt_id=None, after_s=number))

    assert first == set(scraped(registry))
    assert not any("f" * 64 in name or "planner" in name or "default" in name for name in first)


def test_two_bases_count_in_one_registry() -> None:
    registry = CollectorRegistry()
    PrometheusMetrics(registry).record(trace())
    PrometheusMetrics(registry).record(trace())

    assert 2.0 == scraped(registry)['evidentia_requests_total{outcome="ok"}']


def test_request_is_one_line_of_json(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger=LOGGER):
        RequestLog().record(trace(latency_ms=260.0, degraded=("deadline",)))

    (line,) = caplog.messages
    told = json.loads(line)
    assert "\n" not in line
    assert ("request answered", "0123456789abcdef", "2026-03-01T12:00:00.250000Z") == (
        told["message"],
        told["request_id"],
        told["started_at"],
    )
    assert (260.0, 250, True, ["deadline"]) == (told["latency_ms"], told["deadline_ms"], told["is_late"], told["degraded"])
    assert STAGES == told["stages_ms"]
    assert {
        "source": "tickets",
        "state": "cached",
        "start_ms": 13.5,
        "duration_ms": 1.0,
        "note": "kept for 30 s",
        "candidates": 4,
        "faults": 0,
        "part": 0,
        "tier": "session",
    } == told["sources"][2]


def test_nothing_is_logged_where_nobody_listens(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger=LOGGER):
        RequestLog().record(trace())

    assert [] == caplog.messages


class Failing:
    """Raises whenever it is told of something."""

    def record(self, trace: RequestTrace) -> None:
        raise ValueError(f"secret {trace.request_id}")

    def close(self) -> None:
        raise OSError("secret")


class Listening:
    """Remembers in which thread and context it was told of what."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str, str]] = []
        self.was_told = threading.Event()

    def record(self, trace: RequestTrace) -> None:
        self.heard.append((trace.request_id, threading.current_thread().name, caller.get()))
        self.was_told.set()


caller: contextvars.ContextVar[str] = contextvars.ContextVar("caller", default="nobody")


def test_what_one_sink_raises_is_counted_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    listening = Listening()
    hub = TraceHub([Failing(), listening, Failing()])
    with caplog.at_level(logging.WARNING):
        for number in range(3):
            hub.record(trace(f"id-{number}"))
        hub.close()

    assert ["id-0", "id-1", "id-2"] == [each[0] for each in listening.heard]
    assert [4, 0, 4] == hub.failures
    assert 2 * ["telemetry: Failing failed with ValueError; this is said once, its failures are counted"] == caplog.messages


def test_slow_sinks_are_told_elsewhere_in_the_context_of_the_caller() -> None:
    listening = Listening()
    sink = DeferredSink(TraceHub([listening]))
    token = caller.set("alice")
    sink.record(trace("id-1"))
    caller.reset(token)

    assert listening.was_told.wait(10)
    assert [("id-1", "evidentia-telemetry", "alice")] == listening.heard
    sink.close()


def test_closing_passes_on_what_waits_and_ends_the_taking() -> None:
    listening = Listening()
    sink = DeferredSink(TraceHub([listening]))
    for number in range(20):
        sink.record(trace(f"id-{number:02}"))
    sink.close()
    sink.record(trace("late"))
    sink.close()

    assert [f"id-{number:02}" for number in range(20)] == [each[0] for each in listening.heard]


def test_settings_say_who_is_told(tmp_path: Path) -> None:
    def told(**settings: object) -> list[str]:
        sinks = sinks_of(TelemetrySettings(**settings), path=tmp_path / "traces.db")  # type: ignore[arg-type]  # by field
        return [type(sink).__name__ for sink in sinks]

    assert ["EmbeddedTraces"] == told()
    assert [] == told(traces=0)
    assert ["DeferredSink"] == told(traces=0, logs=True)
    assert ["EmbeddedTraces", "DeferredSink"] == told(opentelemetry=True, metrics=True, logs=True)


def test_all_sinks_together(exported: Exported, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    monkeypatch.setattr(otel, "_TRACER_PROVIDER", exported.provider)
    settings = TelemetrySettings(opentelemetry=True, metrics=True, logs=True)
    sinks = sinks_of(settings, path=tmp_path / "traces.db")
    hub = TraceHub(sinks)
    with caplog.at_level(logging.INFO, logger=LOGGER):
        hub.record(trace())
        hub.close()

    assert isinstance(sinks[0], EmbeddedTraces)
    assert [trace()] == sinks[0].traces(limit=1)
    assert "retrieval" in exported.spans()
    assert 1 == len(caplog.messages)
    assert [0, 0] == hub.failures


@pytest.mark.parametrize(
    ("package", "make"), [("opentelemetry", OtelTraces), ("prometheus_client", PrometheusMetrics)], ids=["spans", "metrics"]
)
def test_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch, package: str, make: Callable[[], object]) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] == package:
            raise ModuleNotFoundError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)

    with pytest.raises(MissingExtraError, match=r"needs the extra 'otel': pip install 'evidentia\[otel\]'"):
        make()
