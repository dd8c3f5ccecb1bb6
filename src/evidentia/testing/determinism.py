"""A clock that moves only when told, and entropy that repeats: for tests that compare bytes."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta

from evidentia.contracts.ports import Clock, Entropy

START = datetime(2026, 1, 1, tzinfo=UTC)


class SteppingClock(Clock):
    """Implements `Clock`: each reading is one step later than the one before."""

    def __init__(self, start: datetime = START, *, step_s: int = 1) -> None:
        self._now = start
        self._step = timedelta(seconds=step_s)

    def now(self) -> datetime:
        """Return the time and move on by one step."""
        reading = self._now
        self._now += self._step
        return reading

    def elapsed_ns(self) -> int:
        """Return the time that has passed as nanoseconds, without moving on."""
        return int((self._now - START).total_seconds()) * 10**9


class RepeatableEntropy(Entropy):
    """Implements `Entropy` from a seed; never use it for a base that anyone relies on."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._drawn = 0

    def take(self, count: int) -> bytes:
        """Return the next bytes of the sequence that the seed begins."""
        self._drawn += 1
        return hashlib.shake_128(f"{self._seed}:{self._drawn}".encode()).digest(count)
