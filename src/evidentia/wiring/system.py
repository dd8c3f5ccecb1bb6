"""The real clock and the real source of randomness, the only ones in the house."""

from __future__ import annotations

import os
import threading
import time
from datetime import UTC, datetime

from evidentia.contracts.ports import Clock, Entropy

_POOL_BYTES = 4096


class SystemClock(Clock):
    """Implements `Clock`; whole microseconds, always UTC."""

    def now(self) -> datetime:
        """Return the present moment in UTC."""
        return datetime.now(UTC)

    def elapsed_ns(self) -> int:
        """Return nanoseconds since some fixed moment, never going back."""
        return time.perf_counter_ns()


class SystemEntropy(Entropy):
    """Implements `Entropy` from the operating system, drawn in larger draughts. Thread safe: no byte is given twice."""

    def __init__(self) -> None:
        self._pool = b""
        self._lock = threading.Lock()

    def take(self, count: int) -> bytes:
        """Return `count` unpredictable bytes."""
        with self._lock:
            if len(self._pool) < count:
                self._pool = os.urandom(max(count, _POOL_BYTES))
            taken, self._pool = self._pool[:count], self._pool[count:]
            return taken
