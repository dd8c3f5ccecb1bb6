"""A source that fails in a row is left alone for longer and longer, and one probe at a time finds out whether it is back."""

from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from evidentia.contracts.vocabulary import BreakerState
from evidentia.federation.circuit_breaker import REFUSED, Breaker
from evidentia.testing.virtual_time import VirtualClock

FAILURES = 3
OPEN_MS = 100


def new_breaker(clock: VirtualClock) -> Breaker:
    return Breaker(clock, failures=FAILURES, open_ms=OPEN_MS)


def state_of(breaker: Breaker) -> BreakerState:
    return breaker.state


def fail_once(breaker: Breaker) -> None:
    ticket = breaker.admit()
    assert ticket != REFUSED
    breaker.failed(ticket)


def opened(clock: VirtualClock) -> Breaker:
    breaker = new_breaker(clock)
    for _ in range(FAILURES):
        fail_once(breaker)
    return breaker


def test_it_opens_after_so_many_failures_in_a_row() -> None:
    breaker = new_breaker(VirtualClock())
    for _ in range(FAILURES - 1):
        fail_once(breaker)

    assert BreakerState.CLOSED is state_of(breaker)

    fail_once(breaker)

    assert BreakerState.OPEN is state_of(breaker)
    assert REFUSED == breaker.admit()
    assert "not asked: it failed 3 times in a row and is left alone for 100 ms" == breaker.why_refused


def test_a_success_in_between_begins_the_count_anew() -> None:
    breaker = new_breaker(VirtualClock())
    for _ in range(FAILURES - 1):
        fail_once(breaker)
    breaker.succeeded(breaker.admit())
    for _ in range(FAILURES - 1):
        fail_once(breaker)

    assert BreakerState.CLOSED is state_of(breaker)


def test_after_its_rest_exactly_one_call_is_let_through() -> None:
    clock = VirtualClock()
    breaker = opened(clock)
    clock.advance(OPEN_MS / 1_000)

    probe = breaker.admit()

    assert BreakerState.HALF_OPEN is state_of(breaker)
    assert REFUSED != probe
    assert REFUSED == breaker.admit()
    assert "not asked: one call is out to see whether it answers again" == breaker.why_refused


def test_a_probe_that_succeeds_closes_it_and_forgets_the_doubling() -> None:
    clock = VirtualClock()
    breaker = opened(clock)
    clock.advance(OPEN_MS / 1_000)
    fail_once(breaker)
    clock.advance(2 * OPEN_MS / 1_000)
    breaker.succeeded(breaker.admit())

    assert BreakerState.CLOSED is state_of(breaker)

    for _ in range(FAILURES):
        fail_once(breaker)
    clock.advance(OPEN_MS / 1_000)

    assert BreakerState.HALF_OPEN is state_of(breaker)


def test_the_rest_doubles_up_to_32_times() -> None:
    clock = VirtualClock()
    breaker = opened(clock)
    rests_ms = []
    for _ in range(8):
        began_ns = clock.elapsed_ns()
        while breaker.state is BreakerState.OPEN:
            clock.advance(OPEN_MS / 1_000)
        rests_ms.append((clock.elapsed_ns() - began_ns) // 1_000_000)
        fail_once(breaker)

    assert [100, 200, 400, 800, 1_600, 3_200, 3_200, 3_200] == rests_ms


def test_a_probe_that_was_never_made_gives_its_place_back() -> None:
    clock = VirtualClock()
    breaker = opened(clock)
    clock.advance(OPEN_MS / 1_000)
    breaker.released(breaker.admit())

    assert BreakerState.HALF_OPEN is state_of(breaker)
    assert REFUSED != breaker.admit()


def test_calls_from_before_it_opened_change_nothing() -> None:
    clock = VirtualClock()
    breaker = new_breaker(clock)
    early = [breaker.admit() for _ in range(FAILURES + 2)]
    for ticket in early[:FAILURES]:
        breaker.failed(ticket)
    breaker.succeeded(early[FAILURES])
    breaker.failed(early[FAILURES + 1])

    assert BreakerState.OPEN is state_of(breaker)
    assert "not asked: it failed 3 times in a row and is left alone for 100 ms" == breaker.why_refused

    clock.advance(OPEN_MS / 1_000)
    probe = breaker.admit()
    breaker.released(early[0])

    assert REFUSED != probe
    assert REFUSED == breaker.admit()


def test_a_jump_of_the_wall_clock_opens_and_closes_nothing() -> None:
    clock = VirtualClock()
    breaker = opened(clock)
    clock.jump(1_000_000)

    assert BreakerState.OPEN is state_of(breaker)

    clock.jump(-2_000_000)
    clock.advance(OPEN_MS / 1_000)

    assert BreakerState.HALF_OPEN is state_of(breaker)


@given(st.lists(st.sampled_from(["admit", "succeeded", "failed", "released", "wait"]), max_size=80))
def test_never_more_than_one_probe_is_out_and_never_a_call_while_it_rests(steps: list[str]) -> None:
    clock = VirtualClock()
    breaker = new_breaker(clock)
    usual: list[int] = []
    probes: list[int] = []
    for step in steps:
        if step == "wait":
            clock.advance(OPEN_MS / 1_000)
        elif step == "admit":
            before = breaker.state
            ticket = breaker.admit()
            assert (before is BreakerState.OPEN) <= (ticket == REFUSED)
            assert (before is BreakerState.CLOSED) <= (ticket != REFUSED)
            if ticket != REFUSED:
                (usual if before is BreakerState.CLOSED else probes).append(ticket)
        elif probes or usual:
            getattr(breaker, step)((probes or usual).pop())
        assert len(probes) <= 1


def test_of_many_threads_one_gets_the_probe() -> None:
    clock = VirtualClock()
    breaker = opened(clock)
    clock.advance(OPEN_MS / 1_000)
    barrier = threading.Barrier(8)
    tickets: list[int] = []

    def ask() -> None:
        barrier.wait()
        tickets.append(breaker.admit())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert 7 == tickets.count(REFUSED)
