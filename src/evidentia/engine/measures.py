"""What is counted of a source: its calls, how they ended and how long they took, in a form that can be added up across processes.

A duration from 16 microseconds on is told apart from another to one part in 16. A percentile is given as the upper edge of its
bucket: never less than what was measured, and at most 6.25 percent more, or one microsecond where that is more.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec

from evidentia.contracts.vocabulary import CoverageState

Moment = Annotated[datetime, msgspec.Meta(tz=True)]
"""A time with its offset; one without could not be compared."""
WINDOW_CALLS = 500
"""So many calls make a window; percentiles speak of the last full one and the one that is being filled."""
MAX_DURATION_US = 2**40
"""About twelve days; longer is counted as this."""
_STEP_BITS = 4
_STEPS = 1 << _STEP_BITS


class Latencies(msgspec.Struct, kw_only=True):
    """The calls of two windows, each as bucket and count; what is older is forgotten. Changed in place, not thread safe."""

    previous: dict[int, int] = {}
    current: dict[int, int] = {}
    previous_calls: int = 0
    current_calls: int = 0

    @property
    def calls(self) -> int:
        """Return how many calls are remembered: all of the first window, later one to two windows."""
        return self.previous_calls + self.current_calls

    def count(self, bucket: int, calls: int = 1) -> None:
        """Count calls of one duration; a window that is full becomes the previous one."""
        self.current[bucket] = self.current.get(bucket, 0) + calls
        self.current_calls += calls
        if self.current_calls >= WINDOW_CALLS:
            self.previous, self.previous_calls = self.current, self.current_calls
            self.current, self.current_calls = {}, 0

    def add(self, later: Latencies) -> None:
        """Count the calls of another record as if they came after those of this one."""
        for counts in (later.previous, later.current):
            for bucket, calls in counts.items():
                self.count(bucket, calls)

    def percentile_us(self, percent: int) -> int | None:
        """Return within how many microseconds so many of 100 calls ended; None without any call."""
        wanted = -(-self.calls * percent // 100)
        for bucket in sorted(self.previous.keys() | self.current.keys()):
            wanted -= self.previous.get(bucket, 0) + self.current.get(bucket, 0)
            if wanted <= 0:
                return upper_us(bucket)
        return None


class Measures(msgspec.Struct, kw_only=True):
    """What is known of one source, in the form in which the store keeps it; changed in place, not thread safe."""

    calls: int = 0
    failures: int = 0
    timeouts: int = 0
    latencies: Latencies = msgspec.field(default_factory=Latencies)
    last_success_at: Moment | None = None
    last_failure_at: Moment | None = None
    last_problem: str = ""
    newest_at: Moment | None = None
    seen_at: Moment | None = None

    def count(self, state: CoverageState, *, bucket: int, at: Moment, problem: str) -> None:
        """Count one call that ended so; a failure says nothing of how long an answer takes."""
        self.calls += 1
        if state is not CoverageState.FAILED:
            self.latencies.count(bucket)
        if state is CoverageState.SEARCHED:
            self.last_success_at = at
            return
        self.failures += state is CoverageState.FAILED
        self.timeouts += state is CoverageState.TIMED_OUT
        self.last_failure_at, self.last_problem = at, problem

    def add(self, later: Measures) -> None:
        """Count what another record has as if it came after this one."""
        self.calls += later.calls
        self.failures += later.failures
        self.timeouts += later.timeouts
        self.latencies.add(later.latencies)
        self.last_success_at = later_of(self.last_success_at, later.last_success_at)
        if later.last_failure_at and later.last_failure_at == later_of(self.last_failure_at, later.last_failure_at):
            self.last_failure_at, self.last_problem = later.last_failure_at, later.last_problem
        self.newest_at = later_of(self.newest_at, later.newest_at)
        self.seen_at = later_of(self.seen_at, later.seen_at)


def bucket_of(elapsed_ms: float) -> int:
    """Return the bucket of a duration; less than nothing counts as nothing, and what is no number as the longest."""
    if elapsed_ms < 0:
        return 0
    micros = int(elapsed_ms * 1_000) if elapsed_ms * 1_000 < MAX_DURATION_US else MAX_DURATION_US
    if micros < _STEPS:
        return micros
    doublings = micros.bit_length() - 1 - _STEP_BITS
    return doublings * _STEPS + (micros >> doublings)


def upper_us(bucket: int) -> int:
    """Return the microseconds that no duration in a bucket reaches."""
    if bucket < _STEPS:
        return bucket + 1
    doublings, step = bucket // _STEPS - 1, bucket % _STEPS + _STEPS
    return (step + 1) << doublings


def later_of(first: datetime | None, second: datetime | None) -> datetime | None:
    """Return the later of two times, as far as they are known."""
    return max((each for each in (first, second) if each is not None), default=None)
