"""Token buckets, how often each of many may come, and shares, how much each of them may hold; whole numbers, and bounded memory."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable

    from evidentia.contracts.ports import Clock

Key = TypeVar("Key", bound="Hashable")

MAX_KEYS: Final = 100_000
SECOND_NS: Final = 1_000_000_000
MINUTE_NS: Final = 60 * SECOND_NS


class Rate(NamedTuple):
    """How often: so many in a limiter's period, and so many at once after a rest."""

    permits: int
    burst: int


class RateLimiter(Generic[Key]):
    """One bucket for each key, full at first. Thread safe, and each call costs the same however many keys there are.

    In any t nanoseconds there are at most `burst + permits * t / period_ns` of a key. Beyond `max_keys`, the key that was not used for
    longest is forgotten, which fills its bucket. A rate may be another one each time; what is in the bucket stays, up to the new burst.
    """

    def __init__(self, clock: Clock, *, period_ns: int = SECOND_NS, max_keys: int = MAX_KEYS) -> None:
        self._clock = clock
        self._period_ns = period_ns
        """What one call takes from a bucket, into which `permits` flow per nanosecond: no division, so no rounding."""
        self._max_keys = max_keys
        self._lock = threading.Lock()
        self._buckets: dict[Key, tuple[int, int]] = {}

    def take(self, key: Key, rate: Rate) -> int:
        """Take one, and return 0; where there is none, take nothing and return after how many nanoseconds there will be."""
        with self._lock:
            # The clock is read inside, so that no call is dated before the one that was counted last.
            now = self._clock.elapsed_ns()
            level = self._level(key, rate, now)
            wait_ns = self._wait_ns(level, rate)
            # Put at the end: the first of the dictionary is the one that was not used for longest.
            if self._buckets.pop(key, None) is None and len(self._buckets) >= self._max_keys:
                del self._buckets[next(iter(self._buckets))]
            self._buckets[key] = (level if wait_ns else level - self._period_ns, now)
            return wait_ns

    def wait_ns(self, key: Key, rate: Rate) -> int:
        """Return after how many nanoseconds there will be one, 0 for now, without taking it."""
        with self._lock:
            return self._wait_ns(self._level(key, rate, self._clock.elapsed_ns()), rate)

    def give_back(self, key: Key) -> None:
        """Put back one that was taken."""
        with self._lock:
            if key in self._buckets:
                level, since_ns = self._buckets[key]
                self._buckets[key] = (level + self._period_ns, since_ns)

    def _level(self, key: Key, rate: Rate, now: int) -> int:
        full = rate.burst * self._period_ns
        level, since_ns = self._buckets.get(key, (full, now))
        return min(full, level + rate.permits * (now - since_ns))

    def _wait_ns(self, level: int, rate: Rate) -> int:
        return max(0, -(-(self._period_ns - level) // rate.permits))


class Shares(Generic[Key]):
    """A pool of `most` places, of which one holder has at most `of_one`. Thread safe.

    Nobody waits here: whoever finds no place is told so, and what is held by nobody is not remembered.
    """

    def __init__(self, most: int, *, of_one: int) -> None:
        self.most = most
        self.of_one = min(most, of_one)
        self._lock = threading.Lock()
        self._held: dict[Key, int] = {}
        self._taken = 0

    @classmethod
    def by_percent(cls, most: int, percent: int) -> Shares[Key]:
        """Return a pool of which one holder has so many per cent, one place at least."""
        return cls(most, of_one=max(1, most * percent // 100))

    def take(self, key: Key, amount: int = 1) -> bool:
        """Take places and return True; where the holder or the pool has not so many, take nothing and return False."""
        with self._lock:
            own = self._held.get(key, 0) + amount
            if own > self.of_one or self._taken + amount > self.most:
                return False
            self._held[key] = own
            self._taken += amount
            return True

    def give_back(self, key: Key, amount: int = 1) -> None:
        """Put back places that were taken."""
        with self._lock:
            left = self._held.pop(key) - amount
            if left:
                self._held[key] = left
            self._taken -= amount

    def held(self, key: Key) -> int:
        """Return how many a holder has."""
        with self._lock:
            return self._held.get(key, 0)

    @property
    def taken(self) -> int:
        """Return how many all holders have."""
        return self._taken
