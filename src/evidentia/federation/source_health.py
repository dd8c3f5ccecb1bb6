"""What was measured of every source outside the base: how often it was asked, how long it took, how old its data was.

Recording is memory work only and touches no store, so that it is never in the way of a request. What several processes measured
is added up in the store when they flush; without a store, or with a lost one, only history is missing.
"""

from __future__ import annotations

from datetime import datetime
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import msgspec

from evidentia.contracts.decoding import decode_json
from evidentia.contracts.errors import EvidentiaError
from evidentia.contracts.sources import FreshnessReport, SourceDescriptor, SourceHealth
from evidentia.contracts.vocabulary import BreakerState, CoverageState
from evidentia.ranking.signals import data_age_s

if TYPE_CHECKING:
    from evidentia.contracts.ids import SourceId
    from evidentia.contracts.ports import Clock, KeyValueStore


LEAST_CALLS: Final = 100
"""Before so many measured calls the expected p99 stands."""
DUE_AFTER_S: Final = 10
"""How long what was measured may wait before `flush(only_when_due=True)` writes it down."""
MAX_PROBLEM_LENGTH: Final = 200
PREFIX: Final = "health/"
"""What the names in the store begin with; the source's id follows."""
_US_PER_MS: Final = 1_000
_CALLS: Final = (CoverageState.SEARCHED, CoverageState.TIMED_OUT, CoverageState.FAILED)


class Outlook(NamedTuple):
    """How long a source takes, and how old its data is."""

    p99_ms: int | None
    """Within how many milliseconds 99 of 100 of the last 500 to 1,000 calls ended, rounded up; None before 100 calls.

    Before the rounding it is at most 6.25 percent more than was measured, never less. Up to nine calls may not be in it yet.
    """
    age_s: int | None
    """How old its data was when it was last seen; it does not age while nobody asks."""


class HealthBook:
    """Keeps the health of sources. Thread safe; a record costs microseconds.

    `record` and `saw` never touch the store. The questions read it when they meet a source for the first time. `flush` writes, and
    reads what others wrote meanwhile; two processes that flush one source at the same instant may lose what one of them added.
    """

    def __init__(self, store: KeyValueStore | None, *, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._lock = Lock()
        self._flushing = Lock()
        self._pages: dict[SourceId, _Page] = {}
        self._flushed_ns = clock.elapsed_ns()

    def record(self, source_id: SourceId, state: CoverageState, elapsed_ms: float, problem: str) -> None:
        """Count one call: a search is a success, a time-out or a failure is not, and whatever else happened was no call.

        A time-out counts with the time that was waited, so that a source that has become slower is found out. A failure says
        nothing of how long an answer takes.
        """
        if state not in _CALLS:
            return
        now, bucket, shown = self._clock.now(), latency_bucket(elapsed_ms), _legible(problem)
        with self._lock:
            for measures in self._page(source_id).both():
                measures.count(state, bucket=bucket, at=now, problem=shown)

    def saw(self, source_id: SourceId, newest: datetime | None, at: datetime) -> None:
        """Take note of the newest date among what a source said; a reply without dates says nothing of its age.

        A date in the future counts as the present, so that it cannot make the source look new for ever.
        """
        if newest is None or newest.utcoffset() is None:
            return
        with self._lock:
            for measures in self._page(source_id).both():
                measures.newest_at = later_of(measures.newest_at, min(newest, at))
                measures.seen_at = later_of(measures.seen_at, at)

    def outlook(self, source_id: SourceId) -> Outlook:
        """Return what a plan has to know of a source."""
        self._meet(source_id)
        with self._lock:
            page = self._page(source_id)
            return Outlook(page.p99_ms(), page.age_s())

    def health(self, source_id: SourceId, *, breaker: BreakerState = BreakerState.CLOSED) -> SourceHealth:
        """Return what was measured of a source; `breaker` is passed through."""
        self._meet(source_id)
        with self._lock:
            page = self._page(source_id)
            whole, p99_ms = page.whole, page.p99_ms()
            p50_us = whole.latencies.percentile_us(50)
            return SourceHealth(
                calls=whole.calls,
                failures=whole.failures,
                timeouts=whole.timeouts,
                p50_ms=None if p50_us is None else p50_us / _US_PER_MS,
                p99_ms=None if p99_ms is None else float(p99_ms),
                last_success_at=whole.last_success_at,
                last_failure_at=whole.last_failure_at,
                last_problem=whole.last_problem,
                breaker=breaker,
            )

    def newest_at(self, source_id: SourceId) -> datetime | None:
        """Return the newest date that a source's data was seen to have."""
        self._meet(source_id)
        with self._lock:
            return self._page(source_id).whole.newest_at

    def flush(self, *, only_when_due: bool = False) -> None:
        """Add what was measured to what the store has; with `only_when_due`, at most every ten seconds.

        Where the store fails, everything stays for the next time. Meant for after an answer, and for the end.
        """
        if self._store is None or (only_when_due and self._clock.elapsed_ns() - self._flushed_ns < DUE_AFTER_S * 10**9):
            return
        with self._flushing:
            self._flushed_ns = self._clock.elapsed_ns()
            with self._lock:
                waiting = sorted(source_id for source_id, page in self._pages.items() if page.unsaved)
            for source_id in waiting:
                self._save(source_id, self._store)

    def _page(self, source_id: SourceId) -> _Page:
        page = self._pages.get(source_id)
        if page is None:
            page = self._pages[source_id] = _Page(is_met=self._store is None)
        return page

    def _meet(self, source_id: SourceId) -> None:
        """Read what the store knows of a source, once; a store that fails knows nothing."""
        known = self._pages.get(source_id)
        if self._store is None or (known is not None and known.is_met):
            return
        try:
            stored = _stored(self._store, source_id)
        except EvidentiaError:
            stored = Measures()
        with self._lock:
            page = self._page(source_id)
            if not page.is_met:
                page.become(stored)

    def _save(self, source_id: SourceId, store: KeyValueStore) -> None:
        self._meet(source_id)  # so that nobody takes over from the store what lacks what is on its way there
        with self._lock:
            page = self._page(source_id)
            taken = page.take()
        try:
            stored = _stored(store, source_id)
            stored.add(taken)
            store.put(f"{PREFIX}{source_id}", msgspec.json.encode(stored))
        except EvidentiaError:
            with self._lock:
                page.give_back(taken)
            return
        with self._lock:
            page.become(stored)


class _Page:
    """One source in the book: all that is known of it, and the part of that which the store does not have yet."""

    __slots__ = ("_p99", "is_met", "unsaved", "whole")

    def __init__(self, *, is_met: bool) -> None:
        self.is_met = is_met
        self.whole = Measures()
        self.unsaved: Measures | None = None
        self._p99: tuple[int, int | None] = (-1, None)

    def both(self) -> tuple[Measures, Measures]:
        """Return the two records that everything new is counted in."""
        if self.unsaved is None:
            self.unsaved = Measures()
        return self.whole, self.unsaved

    def take(self) -> Measures:
        """Return what the store does not have, which is then its taker's."""
        taken, self.unsaved = self.unsaved or Measures(), None
        return taken

    def give_back(self, taken: Measures) -> None:
        """Keep what could not be stored, as older than what came since."""
        if self.unsaved:
            taken.add(self.unsaved)
        self.unsaved = taken

    def become(self, stored: Measures) -> None:
        """Take over what the store has, with what was measured beside it."""
        self.whole, self.is_met = stored, True
        self._p99 = (-1, None)
        if self.unsaved:
            self.whole.add(self.unsaved)

    def age_s(self) -> int | None:
        """Return how old the data was when it was last seen."""
        newest_at, seen_at = self.whole.newest_at, self.whole.seen_at
        return None if newest_at is None or seen_at is None else data_age_s(newest_at, at=seen_at)

    def p99_ms(self) -> int | None:
        """Return the p99 of the calls that are remembered, worked out anew after every ten of them; None before `LEAST_CALLS`."""
        latencies = self.whole.latencies
        if latencies.calls < LEAST_CALLS:
            return None
        tens = self.whole.calls // 10
        if tens != self._p99[0]:
            micros = latencies.percentile_us(99)
            self._p99 = (tens, None if micros is None else -(-micros // _US_PER_MS))
        return self._p99[1]


def _stored(store: KeyValueStore, source_id: SourceId) -> Measures:
    """Return what the store has of a source; what cannot be read was never there."""
    kept = store.get(f"{PREFIX}{source_id}")
    try:
        return Measures() if kept is None else decode_json(kept, Measures)
    except msgspec.MsgspecError:
        return Measures()


def _legible(problem: str) -> str:
    r"""Return one line of bounded length; what cannot be printed is written as an escape such as `\x1b`."""
    shown = problem if len(problem) <= MAX_PROBLEM_LENGTH else f"{problem[: MAX_PROBLEM_LENGTH - 1]}…"
    if shown.isprintable():
        return shown
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in shown)


# --- measures ---
# What is counted of a source: its calls, how they ended and how long they took, in a form that can be added up across processes.
#
# A duration from 16 microseconds on is told apart from another to one part in 16. A percentile is given as the upper edge of its bucket:
# never less than what was measured, and at most 6.25 percent more, or one microsecond where that is more.

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


def latency_bucket(elapsed_ms: float) -> int:
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


# --- freshness ---
# How old a source's data is beside what it promises; pure.


def freshness_report(descriptor: SourceDescriptor, *, newest_at: datetime | None, now: datetime) -> FreshnessReport:
    """Return the age of a source's newest data in whole seconds, and whether that keeps its promise; both times have an offset."""
    age_s = None if newest_at is None else data_age_s(newest_at, at=now)
    promised_s = descriptor.freshness_sla_s
    return FreshnessReport(
        source_id=descriptor.source_id,
        freshness_sla_s=promised_s,
        age_s=age_s,
        is_fresh=None if age_s is None or promised_s is None else age_s <= promised_s,
        newest_at=newest_at,
    )
