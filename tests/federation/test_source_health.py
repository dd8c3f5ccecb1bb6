"""What is measured of sources: counts, percentiles within their bound, data age, and several processes with one store."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.contracts.errors import BaseBusyError
from evidentia.contracts.ids import SourceId
from evidentia.contracts.sources import FreshnessReport, SourceDescriptor, SourceHealth
from evidentia.contracts.vocabulary import BreakerState, CoverageState
from evidentia.federation.source_health import MAX_DURATION_US, HealthBook, Latencies, freshness_report, latency_bucket, upper_us

if TYPE_CHECKING:
    from collections.abc import Callable

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
WIKI, LOGS = SourceId("wiki"), SourceId("logs")
SEARCHED, TIMED_OUT, FAILED = CoverageState.SEARCHED, CoverageState.TIMED_OUT, CoverageState.FAILED


class HandClock:
    """Implements `Clock`: it stands still until it is moved."""

    def __init__(self) -> None:
        self.seconds = 0

    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.seconds)

    def elapsed_ns(self) -> int:
        return self.seconds * 10**9


class FailingStore:
    """Implements `KeyValueStore` in memory, and fails when told to."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        self.is_broken = False
        self.writes = 0
        self.during_put: Callable[[], None] | None = None

    def get(self, key: str) -> bytes | None:
        self._check()
        return self.kept.get(key)

    def put(self, key: str, value: bytes) -> None:
        self._check()
        if self.during_put:
            self.during_put()
        self.writes += 1
        self.kept[key] = value

    def close(self) -> None:
        self.kept.clear()

    def _check(self) -> None:
        if self.is_broken:
            raise BaseBusyError("shelf", waited_ms=0)


def book(shelf: FailingStore | None = None, clock: HandClock | None = None) -> HealthBook:
    return HealthBook(shelf, clock=clock or HandClock())


# --- counting ---


def test_a_source_that_was_never_asked_has_no_figures() -> None:
    fresh = book()

    assert SourceHealth() == fresh.health(WIKI)
    assert (None, None, None) == (fresh.outlook(WIKI).p99_ms, fresh.outlook(WIKI).age_s, fresh.newest_at(WIKI))


def test_calls_are_counted_by_how_they_ended() -> None:
    clock = HandClock()
    health = book(clock=clock)
    for state, problem in ((SEARCHED, ""), (FAILED, "no route"), (TIMED_OUT, "late"), (SEARCHED, "")):
        clock.seconds += 1
        health.record(WIKI, state, 5.0, problem)

    found = health.health(WIKI, breaker=BreakerState.HALF_OPEN)
    assert (4, 1, 1) == (found.calls, found.failures, found.timeouts)
    assert (NOON + timedelta(seconds=4), NOON + timedelta(seconds=3)) == (found.last_success_at, found.last_failure_at)
    assert ("late", BreakerState.HALF_OPEN) == (found.last_problem, found.breaker)
    assert SourceHealth() == health.health(LOGS)


@pytest.mark.parametrize("state", sorted(set(CoverageState) - {SEARCHED, TIMED_OUT, FAILED}))
def test_what_was_no_call_is_not_counted(state: CoverageState) -> None:
    health = book()
    health.record(WIKI, state, 5.0, "x")

    assert SourceHealth() == health.health(WIKI)


def test_a_problem_is_one_printable_line_of_bounded_length() -> None:
    health = book()
    health.record(WIKI, FAILED, 1.0, "\x1b[2Jgone\n\u202e" + "x" * 10_000)

    shown = health.health(WIKI).last_problem
    assert shown.startswith("\\x1b[2Jgone\\n\\u202e")
    assert shown.isprintable()
    assert len(shown) < 220


# --- percentiles ---


def test_the_p99_is_unknown_before_a_hundred_measured_calls() -> None:
    health = book()
    for _ in range(99):
        health.record(WIKI, SEARCHED, 20.0, "")
        health.record(WIKI, FAILED, 90_000.0, "failures measure nothing")

    assert health.outlook(WIKI).p99_ms is None
    assert health.health(WIKI).p99_ms is None
    health.record(WIKI, TIMED_OUT, 20.0, "late")
    assert 20 <= (health.outlook(WIKI).p99_ms or 0) <= 22


def test_a_time_out_counts_with_the_time_that_was_waited() -> None:
    health = book()
    for number in range(100):
        health.record(WIKI, TIMED_OUT if number < 5 else SEARCHED, 300.0 if number < 5 else 10.0, "")

    assert 300 <= (health.outlook(WIKI).p99_ms or 0) <= 320


def test_what_is_a_thousand_calls_back_is_forgotten() -> None:
    health = book()
    for elapsed_ms in [900.0] * 1_000 + [10.0] * 1_000:
        health.record(WIKI, SEARCHED, elapsed_ms, "")

    assert 10 <= (health.outlook(WIKI).p99_ms or 0) <= 11
    assert 2_000 == health.health(WIKI).calls


@given(st.lists(st.floats(0, 10_000), min_size=1, max_size=400), st.sampled_from([1, 50, 99, 100]))
def test_a_percentile_is_at_least_what_was_measured_and_little_more(elapsed_ms: list[float], percent: int) -> None:
    latencies = Latencies()
    for each in elapsed_ms:
        latencies.count(latency_bucket(each))
    measured_us = int(sorted(elapsed_ms)[math.ceil(len(elapsed_ms) * percent / 100) - 1] * 1_000)

    found_us = latencies.percentile_us(percent)
    assert found_us is not None
    assert measured_us < found_us <= max(measured_us + 1, measured_us + measured_us / 16)


@given(st.integers(0, MAX_DURATION_US - 1), st.integers(0, MAX_DURATION_US - 1))
def test_buckets_follow_each_other_without_gap_or_overlap(first: int, second: int) -> None:
    one, other = sorted((first, second))

    assert latency_bucket(one / 1_000) <= latency_bucket(other / 1_000)
    assert latency_bucket(upper_us(latency_bucket(one / 1_000)) / 1_000) == latency_bucket(one / 1_000) + 1


def test_durations_that_cannot_be_are_put_at_the_ends() -> None:
    assert 0 == latency_bucket(-1.0)
    assert latency_bucket(math.inf) == latency_bucket(math.nan) == latency_bucket(1e300) == latency_bucket(MAX_DURATION_US / 1_000)


# --- age of data ---


def test_data_is_as_old_as_it_was_when_last_seen() -> None:
    clock = HandClock()
    health = book(clock=clock)
    health.saw(WIKI, NOON - timedelta(hours=2), NOON)
    health.saw(WIKI, NOON - timedelta(hours=3), NOON + timedelta(minutes=1))
    health.saw(WIKI, None, NOON + timedelta(days=9))
    clock.seconds += 10**6

    assert 7_260 == health.outlook(WIKI).age_s
    assert NOON - timedelta(hours=2) == health.newest_at(WIKI)


def test_a_date_in_the_future_is_the_present_and_one_without_an_offset_is_none() -> None:
    health = book()
    health.saw(WIKI, NOON + timedelta(days=9_000), NOON)
    health.saw(LOGS, NOON.replace(tzinfo=None), NOON)

    assert (0, NOON, None) == (health.outlook(WIKI).age_s, health.newest_at(WIKI), health.newest_at(LOGS))


def test_a_report_sets_the_age_beside_the_promise() -> None:
    promising = SourceDescriptor(source_id=WIKI, freshness_sla_s=60)
    kept, broken = NOON - timedelta(seconds=60), NOON - timedelta(seconds=60, microseconds=1)

    reports = [freshness_report(promising, newest_at=newest, now=NOON) for newest in (kept, broken, None)]

    assert FreshnessReport(source_id=WIKI, freshness_sla_s=60, age_s=60, is_fresh=True, newest_at=kept) == reports[0]
    assert [(60, True), (61, False), (None, None)] == [(each.age_s, each.is_fresh) for each in reports]


def test_a_report_without_a_promise_has_an_age_and_no_verdict() -> None:
    report = freshness_report(SourceDescriptor(source_id=WIKI), newest_at=NOON + timedelta(days=1), now=NOON)

    assert (0, None, None) == (report.age_s, report.is_fresh, report.freshness_sla_s)


# --- several processes, one store ---


def test_another_process_sees_what_was_flushed() -> None:
    shelf = FailingStore()
    health = book(shelf)
    for _ in range(120):
        health.record(WIKI, SEARCHED, 20.0, "")
    health.saw(WIKI, NOON - timedelta(hours=1), NOON)
    assert SourceHealth() == book(shelf).health(WIKI)
    health.flush()

    other = book(shelf)
    assert health.health(WIKI) == other.health(WIKI)
    assert health.outlook(WIKI).p99_ms == other.outlook(WIKI).p99_ms
    assert 3_600 == other.outlook(WIKI).age_s


def test_processes_add_up_and_nothing_is_counted_twice() -> None:
    shelf = FailingStore()
    first, second = book(shelf), book(shelf)
    for _ in range(3):
        first.record(WIKI, SEARCHED, 10.0, "")
        second.record(WIKI, FAILED, 10.0, "gone")
        first.flush()
        second.flush()
        second.flush()

    assert (3, 6) == (first.health(WIKI).failures + 1, second.health(WIKI).calls)
    first.record(WIKI, SEARCHED, 10.0, "")
    first.flush()
    assert (7, 3, "gone") == ((seen := first.health(WIKI)).calls, seen.failures, seen.last_problem)
    assert seen == book(shelf).health(WIKI)


def test_what_a_process_measured_before_it_met_the_store_counts_too() -> None:
    shelf = FailingStore()
    earlier = book(shelf)
    earlier.record(WIKI, SEARCHED, 10.0, "")
    earlier.flush()
    later = book(shelf)
    later.record(WIKI, SEARCHED, 10.0, "")

    assert 2 == later.health(WIKI).calls
    later.flush()
    assert 2 == later.health(WIKI).calls == book(shelf).health(WIKI).calls


def test_recording_never_touches_the_store() -> None:
    shelf = FailingStore()
    shelf.is_broken = True
    health = book(shelf)
    health.record(WIKI, SEARCHED, 10.0, "")
    health.saw(WIKI, NOON, NOON)

    assert 1 == health.health(WIKI).calls


def test_a_store_that_fails_loses_nothing_and_is_written_when_it_is_back() -> None:
    shelf = FailingStore()
    health = book(shelf)
    health.record(WIKI, SEARCHED, 10.0, "")
    shelf.is_broken = True
    health.flush()
    health.record(WIKI, FAILED, 10.0, "gone")
    assert 2 == health.health(WIKI).calls
    shelf.is_broken = False
    health.flush()

    assert (2, 1) == ((seen := book(shelf).health(WIKI)).calls, seen.failures)
    assert seen == health.health(WIKI)


def test_what_is_on_its_way_to_the_store_is_neither_lost_nor_missing_meanwhile() -> None:
    shelf = FailingStore()
    health = book(shelf)
    health.record(WIKI, SEARCHED, 10.0, "")
    seen = []

    def interrupt() -> None:
        seen.append(health.health(WIKI).calls)
        health.record(WIKI, SEARCHED, 10.0, "")
        raise BaseBusyError("shelf", waited_ms=0)

    shelf.during_put = interrupt
    health.flush()
    shelf.during_put = None
    seen.append(health.health(WIKI).calls)
    health.flush()

    assert [1, 2, 2, 2] == [*seen, health.health(WIKI).calls, book(shelf).health(WIKI).calls]


@pytest.mark.parametrize("junk", [b"", b"\xff\x00", b"{}", b'{"calls": "many"}', b'{"seen_at": "2026-01-01T00:00:00"}'])
def test_a_lost_or_foreign_entry_is_history_and_no_more(junk: bytes) -> None:
    shelf = FailingStore()
    shelf.put("health/wiki", junk)
    health = book(shelf)
    health.record(WIKI, SEARCHED, 10.0, "")
    health.saw(WIKI, NOON, NOON)
    health.flush()

    assert 1 == health.health(WIKI).calls == book(shelf).health(WIKI).calls


def test_what_is_not_due_is_not_written() -> None:
    shelf, clock = FailingStore(), HandClock()
    health = book(shelf, clock)
    health.record(WIKI, SEARCHED, 10.0, "")
    clock.seconds = 9
    health.flush(only_when_due=True)
    assert 0 == shelf.writes
    clock.seconds = 10
    health.flush(only_when_due=True)
    health.record(WIKI, SEARCHED, 10.0, "")
    health.flush(only_when_due=True)

    assert 1 == shelf.writes
    assert (1, 2) == (book(shelf).health(WIKI).calls, health.health(WIKI).calls)


def test_threads_that_record_and_flush_lose_no_call() -> None:
    shelf = FailingStore()
    health = book(shelf)

    def work(number: int) -> None:
        health.record(WIKI, SEARCHED, 1.0, "")
        if number % 7 == 0:
            health.flush()
        assert health.health(WIKI).calls >= 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(2_000)))
    health.flush()

    assert 2_000 == health.health(WIKI).calls == book(shelf).health(WIKI).calls
