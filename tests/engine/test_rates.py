"""The rate limiter: bursts, refills, and a bound that holds whatever happens."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from evidentia.contracts.ids import SourceId
from evidentia.federation.circuit_breaker import RateLimiter

WIKI, LOGS = SourceId("wiki"), SourceId("logs")
SECOND = 10**9


class HandClock:
    """Implements `Clock`: it stands still until it is moved."""

    def __init__(self) -> None:
        self.ns = 5 * SECOND

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def elapsed_ns(self) -> int:
        return self.ns


def test_one_seconds_worth_goes_through_at_once_and_no_more() -> None:
    limiter = RateLimiter(HandClock())

    assert [True, True, True, False, False] == [limiter.take(WIKI, 3) for _ in range(5)]


def test_a_look_takes_nothing() -> None:
    limiter = RateLimiter(HandClock())

    assert all(limiter.allows(WIKI, 1) for _ in range(5))
    assert limiter.take(WIKI, 1)
    assert not limiter.allows(WIKI, 1)


def test_a_call_comes_back_exactly_when_its_share_of_the_second_has_passed() -> None:
    clock = HandClock()
    limiter = RateLimiter(clock)
    assert [True, True, True, True, False] == [limiter.take(WIKI, 4) for _ in range(5)]

    clock.ns += SECOND // 4 - 1
    assert not limiter.take(WIKI, 4)
    clock.ns += 1
    assert limiter.allows(WIKI, 4)
    assert [True, False] == [limiter.take(WIKI, 4) for _ in range(2)]


def test_a_long_rest_saves_up_one_second_at_most() -> None:
    clock = HandClock()
    limiter = RateLimiter(clock)
    limiter.take(WIKI, 2)
    clock.ns += 3_600 * SECOND

    assert 2 == sum(limiter.take(WIKI, 2) for _ in range(10))


def test_sources_do_not_share_and_no_limit_is_none() -> None:
    limiter = RateLimiter(HandClock())

    assert limiter.take(WIKI, 1)
    assert limiter.take(LOGS, 1)
    assert all(limiter.take(WIKI, None) and limiter.allows(WIKI, None) for _ in range(100))
    assert not limiter.take(WIKI, 1)


def test_a_limit_that_is_lowered_holds_at_once() -> None:
    limiter = RateLimiter(HandClock())
    limiter.take(WIKI, 100)

    assert 2 == sum(limiter.take(WIKI, 2) for _ in range(10))


@given(st.integers(1, 50), st.lists(st.integers(0, SECOND // 2), max_size=60))
def test_no_stretch_of_time_has_more_calls_than_its_length_allows(max_qps: int, pauses: list[int]) -> None:
    clock = HandClock()
    limiter = RateLimiter(clock)
    taken = []
    for pause in pauses:
        clock.ns += pause
        while limiter.take(WIKI, max_qps):
            taken.append(clock.ns)

    for start in range(0, len(taken), 7):
        for stop in range(start, len(taken), 5):
            calls, length_ns = stop - start + 1, taken[stop] - taken[start]
            assert calls * SECOND <= max_qps * (length_ns + SECOND)


def test_threads_together_get_no_more_than_one_would() -> None:
    limiter = RateLimiter(HandClock())
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda _: limiter.take(WIKI, 50), range(400)))

    assert 50 == sum(taken)
