"""How often a source may be asked: one token bucket per source, in whole nanoseconds. It counts the calls of this process alone."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from evidentia.contracts.ids import SourceId
    from evidentia.contracts.ports import Clock

_CALL: Final = 10**9
"""What one call takes from a bucket; `max_qps` per nanosecond flow in, so that a bucket counts in billionths of a call."""


class RateLimiter:
    """Tells whether a source may be asked now. Thread safe.

    A bucket is full at first and holds one second's worth of calls, so that in any t seconds there are at most
    `max_qps * (t + 1)` of them. A source without a limit has no bucket.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._buckets: dict[SourceId, tuple[int, int]] = {}

    def allows(self, source_id: SourceId, max_qps: int | None) -> bool:
        """Tell whether a call would be let through now, without counting one."""
        if max_qps is None:
            return True
        with self._lock:
            return self._level(source_id, max_qps, self._clock.elapsed_ns()) >= _CALL

    def take(self, source_id: SourceId, max_qps: int | None) -> bool:
        """Count one call if it may be made now, and tell whether it may."""
        if max_qps is None:
            return True
        with self._lock:  # the clock is read inside, so that no call is dated before the one that was counted last
            now_ns = self._clock.elapsed_ns()
            level = self._level(source_id, max_qps, now_ns)
            if level < _CALL:
                return False
            self._buckets[source_id] = (level - _CALL, now_ns)
            return True

    def _level(self, source_id: SourceId, max_qps: int, now_ns: int) -> int:
        full = max_qps * _CALL
        level, since_ns = self._buckets.get(source_id, (full, now_ns))
        return min(full, level + max_qps * (now_ns - since_ns))
