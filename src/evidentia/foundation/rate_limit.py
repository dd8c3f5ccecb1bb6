"""Token buckets: how often each of many may come. One number each, whole nanoseconds, and no more than so many are remembered.

A bucket is the moment at which it would be full again (the virtual scheduling form of the leaky bucket, ITU-T I.371): it is
full when that moment has passed, and empty when it lies a whole burst ahead.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from evidentia.contracts.ports import Clock

MAX_KEPT: Final = 100_000
MAX_BURST: Final = 10_000
"""However much a minute allows, no more than this at once."""
_MINUTE_NS: Final = 60_000_000_000


class Pace(NamedTuple):
    """How often: one every so many nanoseconds, and so many at once after a rest."""

    interval_ns: int
    burst: int

    @classmethod
    def of(cls, per_minute: int, *, workers: int = 1) -> Pace:
        """Return one worker's share of so many a minute; a minute's share may come at once, one at least."""
        return cls(max(1, _MINUTE_NS * workers // per_minute), max(1, min(per_minute // workers, MAX_BURST)))


class Buckets:
    """One bucket for each key. Thread safe, and each call costs the same however many there are.

    Beyond `most_kept` the one that was not used for longest is forgotten, which fills it.
    """

    def __init__(self, *, clock: Clock, max_kept: int = MAX_KEPT) -> None:
        self._clock = clock
        self._most_kept = max_kept
        self._full_at: dict[str, int] = {}
        self._lock = threading.Lock()

    def take(self, key: str, pace: Pace) -> int:
        """Take one, and return 0; where there is none, take nothing and return after how many nanoseconds there will be."""
        with self._lock:
            now = self._clock.elapsed_ns()
            full_at = max(self._full_at.pop(key, 0), now)
            wait_ns = full_at - now - pace.interval_ns * (pace.burst - 1)
            if wait_ns > 0:
                self._full_at[key] = full_at
                return wait_ns
            if len(self._full_at) >= self._most_kept:
                del self._full_at[next(iter(self._full_at))]
            self._full_at[key] = full_at + pace.interval_ns
            return 0

    def give_back(self, key: str, pace: Pace) -> None:
        """Put back one that was taken."""
        with self._lock:
            if key in self._full_at:
                self._full_at[key] -= pace.interval_ns
