"""Requests as metrics of Prometheus: few series, however many requests, callers and questions there are."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from evidentia.contracts.errors import MissingExtraError
from evidentia.contracts.ports import TraceSink

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from evidentia.contracts.telemetry import RequestTrace, TraceSpan

REQUEST_BUCKETS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0, 5.0, 10.0)
STAGE_BUCKETS_S: Final = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
_MS_PER_S: Final = 1_000
_sharing = threading.Lock()
_shared: WeakKeyDictionary[CollectorRegistry, _Families] = WeakKeyDictionary()


def outcome_of(trace: RequestTrace) -> str:
    """Return `late` for an answer after its deadline, `degraded` for one that lacks something, else `ok`."""
    if trace.latency_ms > trace.deadline_ms:
        return "late"
    return "degraded" if trace.degraded else "ok"


class PrometheusMetrics(TraceSink):
    """Implements `TraceSink` by counting; all bases of a process that count in one registry share its series. Thread safe."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        try:
            from prometheus_client import REGISTRY
        except ImportError as error:
            raise MissingExtraError("otel", needed_for="telemetry.metrics") from error
        chosen = REGISTRY if registry is None else registry
        with _sharing:
            if chosen not in _shared:
                _shared[chosen] = _Families(chosen)
            self._families = _shared[chosen]

    def record(self, trace: RequestTrace) -> None:
        """Count a request, its stages and its sources."""
        families = self._families
        families.requests.labels(outcome_of(trace)).inc()
        families.duration.observe(trace.latency_ms / _MS_PER_S)
        families.fragments.inc(trace.fragments)
        families.tokens.inc(trace.tokens_used)
        for span in trace.spans:
            if span.kind == "source":
                families.count_source(span)
            else:
                families.stage_duration.labels(span.name).observe(span.duration_ms / _MS_PER_S)


class _Families:
    """The series of one registry; a label is a stage, a source, or one of a few words."""

    def __init__(self, registry: CollectorRegistry) -> None:
        from prometheus_client import Counter, Histogram

        self.requests = Counter("evidentia_requests", "Requests answered, by outcome.", ["outcome"], registry=registry)
        self.duration = Histogram(
            "evidentia_request_duration_seconds", "From door to answer.", registry=registry, buckets=REQUEST_BUCKETS_S
        )
        self.stage_duration = Histogram(
            "evidentia_stage_duration_seconds", "Time in one stage.", ["stage"], registry=registry, buckets=STAGE_BUCKETS_S
        )
        self.source_calls = Counter(
            "evidentia_source_calls", "What sources did for requests, by state.", ["source", "state"], registry=registry
        )
        self.source_duration = Histogram(
            "evidentia_source_duration_seconds", "Until a source was done.", ["source"], registry=registry, buckets=REQUEST_BUCKETS_S
        )
        self.cache_hits = Counter("evidentia_cache_hits", "Sources answered from what was kept, by tier.", ["tier"], registry=registry)
        self.fragments = Counter("evidentia_fragments", "Fragments given out.", registry=registry)
        self.tokens = Counter("evidentia_tokens", "Tokens given out.", registry=registry)

    def count_source(self, span: TraceSpan) -> None:
        self.source_calls.labels(span.name, span.state.value if span.state else "unknown").inc()
        self.source_duration.labels(span.name).observe(span.duration_ms / _MS_PER_S)
        if "tier" in span.attributes:
            self.cache_hits.labels(str(span.attributes["tier"])).inc()
