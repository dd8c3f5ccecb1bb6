"""What is counted at the doors: requests by door, operation and status. Labels are words of this program, never of a request."""

from __future__ import annotations

import os
import threading
from typing import Final
from weakref import WeakKeyDictionary

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

BUCKETS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
TOGETHER: Final = "PROMETHEUS_MULTIPROC_DIR"
"""The variable that names the folder in which several processes count together."""
_NS_PER_S: Final = 1_000_000_000
_RATE_LIMITED: Final = 429
_sharing = threading.Lock()
_shared: WeakKeyDictionary[CollectorRegistry, DoorMeasures] = WeakKeyDictionary()


class DoorMeasures:
    """The series of one registry. Thread safe."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "evidentia_door_requests", "Requests answered at a door.", ["door", "operation", "status"], registry=registry
        )
        self._duration = Histogram(
            "evidentia_door_duration_seconds",
            "From the request's head to the end of its answer.",
            ["door", "operation"],
            registry=registry,
            buckets=BUCKETS_S,
        )
        self._in_flight = Gauge("evidentia_door_in_flight", "Requests under way.", ["door"], registry=registry, multiprocess_mode="livesum")
        self._limited = Counter("evidentia_door_rate_limited", "Requests refused for being too many.", ["door"], registry=registry)

    @classmethod
    def shared(cls) -> DoorMeasures:
        """Return the series of this process."""
        with _sharing:
            if REGISTRY not in _shared:
                _shared[REGISTRY] = cls(REGISTRY)
            return _shared[REGISTRY]

    def begin(self, door: str) -> None:
        """Count a request that has come."""
        self._in_flight.labels(door).inc()

    def end(self, door: str, operation: str, status: int, *, took_ns: int) -> None:
        """Count how it was answered."""
        self.leave(door)
        self.count(door, operation, status, took_ns=took_ns)

    def leave(self, door: str) -> None:
        """Count that it is no longer under way."""
        self._in_flight.labels(door).dec()

    def count(self, door: str, operation: str, status: int, *, took_ns: int) -> None:
        """Count one answer."""
        self._requests.labels(door, operation, str(status)).inc()
        self._duration.labels(door, operation).observe(took_ns / _NS_PER_S)
        if status == _RATE_LIMITED:
            self._limited.labels(door).inc()


def exposition() -> bytes:
    """Return everything that was counted in this process and in those that count with it, as Prometheus reads it."""
    if TOGETHER not in os.environ:
        return generate_latest(REGISTRY)
    gathered = CollectorRegistry()
    MultiProcessCollector(gathered)  # type: ignore[no-untyped-call] # the package has no type here
    return generate_latest(gathered)
