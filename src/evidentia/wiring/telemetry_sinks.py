"""Who is told of requests, by the settings; whatever goes wrong there stays there and is said once."""

from __future__ import annotations

import contextvars
import logging
from collections import deque
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from evidentia.backends.embedded.logs.trace_log import EmbeddedTraces
from evidentia.contracts.ports import TraceSink
from evidentia.foundation.background_writer import BackgroundWriter

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evidentia.contracts.settings import TelemetrySettings
    from evidentia.contracts.telemetry import RequestTrace

MAX_WAITING: Final = 10_000
"""So many traces wait for slow sinks; when more come, the oldest go."""
PAUSE_S: Final = 0.05
"""How long traces gather before they are passed on, so that an answering thread is not interrupted for each."""
CLOSE_S: Final = 5.0
"""How long closing waits for a sink that hangs."""

_log = logging.getLogger("evidentia.telemetry")


@runtime_checkable
class SupportsClosing(Protocol):
    """Holds something that has to be finished or given back."""

    def close(self) -> None:
        """Finish it or give it back."""
        ...


def sinks_of(settings: TelemetrySettings, *, path: Path) -> Sequence[TraceSink]:
    """Return who is told of requests, a base's own file among them; a package that is missing is named here, before the first request.

    What a base remembers is put down on the answering thread, which takes microseconds; all others are told behind its back.
    """
    sinks: list[TraceSink] = []
    if settings.traces:
        sinks.append(EmbeddedTraces(path, keep=settings.traces))
    if slow := _slow_sinks(settings):
        sinks.append(DeferredSink(TraceHub(slow)))
    return tuple(sinks)


def _slow_sinks(settings: TelemetrySettings) -> list[TraceSink]:
    sinks: list[TraceSink] = []
    if settings.metrics:
        from evidentia.backends.otel.prometheus_metrics import PrometheusMetrics

        sinks.append(PrometheusMetrics())
    if settings.logs:
        from evidentia.backends.otel.request_log import RequestLog

        sinks.append(RequestLog())
    if settings.opentelemetry:
        from evidentia.backends.otel.otel_spans import OtelTraces

        sinks.append(OtelTraces())
    return sinks


class TraceHub(TraceSink):
    """Implements `TraceSink` over several: what one of them raises reaches neither the others nor the caller. Thread safe."""

    def __init__(self, sinks: Sequence[TraceSink]) -> None:
        self.sinks = tuple(sinks)
        self.failures = [0] * len(self.sinks)
        """How often each sink raised, in their order."""

    def record(self, trace: RequestTrace) -> None:
        """Tell every sink."""
        for place, sink in enumerate(self.sinks):
            try:
                sink.record(trace)
            except Exception as error:  # noqa: BLE001 - an answer is not lost because somebody could not be told of it
                self._count(place, error)

    def close(self) -> None:
        """Close every sink that can be closed."""
        for place, sink in enumerate(self.sinks):
            try:
                if isinstance(sink, SupportsClosing):
                    sink.close()
            except Exception as error:  # noqa: BLE001 - likewise, the base closes whatever its telemetry does
                self._count(place, error)

    def _count(self, place: int, error: Exception) -> None:
        """Count a failure; the first of a sink is logged with its type alone, since its words may quote anything."""
        self.failures[place] += 1
        if self.failures[place] == 1:
            names = type(self.sinks[place]).__name__, type(error).__name__
            _log.warning("telemetry: %s failed with %s; this is said once, its failures are counted", *names)


class DeferredSink(TraceSink):
    """Implements `TraceSink`: passes traces on from a thread of its own, each in the context of whoever recorded it. Thread safe."""

    def __init__(self, hub: TraceHub) -> None:
        self._hub = hub
        self._waiting: deque[tuple[contextvars.Context, RequestTrace]] = deque(maxlen=MAX_WAITING)
        self._writer = BackgroundWriter(self._pass_on, name="evidentia-telemetry", pause_s=PAUSE_S)

    def record(self, trace: RequestTrace) -> None:
        """Put a trace down with the context of the caller; after `close` it is passed over."""
        if not self._writer.is_closed:
            self._waiting.append((contextvars.copy_context(), trace))
            self._writer.notify()

    def close(self) -> None:
        """Pass on what waits, then close the sinks; one that hangs is left behind."""
        if self._writer.close(timeout_s=CLOSE_S):
            self._hub.close()

    def _pass_on(self) -> None:
        while self._waiting:
            context, trace = self._waiting.popleft()
            context.run(self._hub.record, trace)
