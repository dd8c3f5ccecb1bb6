"""Token buckets and shares: bursts, refills, and bounds that hold whatever happens."""

from __future__ import annotations

import threading
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from evidentia.foundation.rate_limit import MINUTE_NS, SECOND_NS, Rate, RateLimiter, Shares
from evidentia.testing.virtual_time import VirtualClock

rates = st.builds(Rate, permits=st.integers(1, 600), burst=st.integers(1, 600))


def limited(clock: VirtualClock, *, period_ns: int = SECOND_NS, max_keys: int = 100) -> RateLimiter[str]:
    return RateLimiter(clock, period_ns=period_ns, max_keys=max_keys)


@given(rates, st.sampled_from((SECOND_NS, MINUTE_NS, 7)), st.lists(st.integers(0, 90_000_000_000), min_size=1, max_size=15))
def test_a_bucket_lets_through_what_a_naive_one_with_fractions_does(rate: Rate, period_ns: int, waits_ns: list[int]) -> None:
    clock = VirtualClock()
    limiter = limited(clock, period_ns=period_ns)
    level, since = Fraction(rate.burst), clock.elapsed_ns()
    for wait_ns in waits_ns:
        clock.advance(wait_ns / SECOND_NS)
        now = clock.elapsed_ns()
        for _ in range(3):
            level, since = min(Fraction(rate.burst), level + Fraction(rate.permits * (now - since), period_ns)), now
            is_there = level >= 1

            assert is_there == (limiter.wait_ns("one", rate) == 0)
            assert is_there == (limiter.take("one", rate) == 0)
            level -= is_there


@given(rates, st.lists(st.integers(0, 90_000), min_size=1, max_size=20))
def test_no_span_of_time_sees_more_than_the_burst_and_its_share(rate: Rate, waits_ms: list[int]) -> None:
    clock, taken_at = VirtualClock(), list[int]()
    limiter = limited(clock, period_ns=MINUTE_NS)
    for wait_ms in waits_ms:
        clock.advance(wait_ms / 1_000)
        while limiter.take("one", rate) == 0:
            taken_at.append(clock.elapsed_ns())

    for first, start in enumerate(taken_at):
        for last in range(first, len(taken_at), max(1, len(taken_at) // 50)):
            assert last - first + 1 <= rate.burst + (taken_at[last] - start) * rate.permits // MINUTE_NS


@given(st.integers(1, 10_000), st.integers(1, 8))
def test_after_the_wait_that_is_told_there_is_one_and_before_there_is_none(count: int, workers: int) -> None:
    clock, rate = VirtualClock(), Rate(count, burst=3)
    limiter = limited(clock, period_ns=MINUTE_NS * workers)
    for _ in range(rate.burst):
        assert 0 == limiter.take("one", rate)

    wait_ns = limiter.take("one", rate)
    assert 0 < wait_ns <= -(-MINUTE_NS * workers // count)
    clock.advance((wait_ns - 1) / 1e9)
    assert 0 < limiter.take("one", rate)
    clock.advance(1 / 1e9)
    assert 0 == limiter.take("one", rate)


def test_a_look_takes_nothing() -> None:
    limiter = limited(VirtualClock())

    assert [0] * 5 == [limiter.wait_ns("one", Rate(1, 1)) for _ in range(5)]
    assert 0 == limiter.take("one", Rate(1, 1))
    assert SECOND_NS == limiter.wait_ns("one", Rate(1, 1))


def test_what_is_given_back_can_be_taken_again_up_to_the_burst() -> None:
    limiter, rate = limited(VirtualClock()), Rate(1, 2)
    limiter.give_back("one")
    assert [True, True, False] == [limiter.take("one", rate) == 0 for _ in range(3)]
    limiter.give_back("one")
    assert [True, False] == [limiter.take("one", rate) == 0 for _ in range(2)]
    for _ in range(9):
        limiter.give_back("one")

    assert 2 == sum(limiter.take("one", rate) == 0 for _ in range(9))


def test_a_rate_that_is_lowered_holds_at_once() -> None:
    limiter = limited(VirtualClock())
    limiter.take("one", Rate(100, 100))

    assert 2 == sum(limiter.take("one", Rate(2, 2)) == 0 for _ in range(10))


def test_keys_do_not_share() -> None:
    limiter = limited(VirtualClock())

    assert [0, 0] == [limiter.take(key, Rate(1, 1)) for key in ("a", "b")]


def test_memory_is_bounded_and_who_came_last_is_remembered() -> None:
    limiter, rate = limited(VirtualClock(), max_keys=3), Rate(1, 1)
    for key in ("a", "b", "c", "a", "d"):
        limiter.take(key, rate)

    assert 0 < limiter.wait_ns("a", rate)
    assert 0 < limiter.wait_ns("d", rate)
    assert 0 == limiter.wait_ns("b", rate)


def test_threads_together_take_no_more_than_there_is() -> None:
    limiter, rate, counts = limited(VirtualClock()), Rate(1_000, 1_000), list[int]()
    takers = [threading.Thread(target=lambda: counts.append(sum(limiter.take("x", rate) == 0 for _ in range(400)))) for _ in range(8)]
    for taker in takers:
        taker.start()
    for taker in takers:
        taker.join()

    assert 1_000 == sum(counts)


steps = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 5), st.booleans()), max_size=60)


@given(st.integers(1, 20), st.integers(1, 20), steps)
def test_no_holder_has_more_than_its_share_and_nobody_is_refused_who_has_less_while_there_is_room(
    most: int, of_one: int, played: list[tuple[str, int, bool]]
) -> None:
    shares, held = Shares[str](most, of_one=of_one), dict.fromkeys("abc", 0)
    for key, amount, is_taken in played:
        if is_taken:
            fits = held[key] + amount <= min(of_one, most) and sum(held.values()) + amount <= most

            assert fits == shares.take(key, amount)
            held[key] += amount if fits else 0
        elif held[key] >= amount:
            shares.give_back(key, amount)
            held[key] -= amount

        assert held == {each: shares.held(each) for each in held}
        assert sum(held.values()) == shares.taken


@given(st.integers(1, 10_000), st.integers(1, 100))
def test_a_share_by_percent_is_one_place_at_least_and_never_more_than_all(most: int, percent: int) -> None:
    share = Shares[str].by_percent(most, percent).of_one

    assert 1 <= share <= most
    assert max(1, most * percent // 100) == share
