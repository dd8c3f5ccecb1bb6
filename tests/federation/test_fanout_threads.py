"""Sources that block, on the real clock: their threads are capped, and nothing is left behind once they let go."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.fanout_samples import Watched, call_of, without_times
from evidentia.contracts.ids import SourceId
from evidentia.contracts.retrieval import Candidate
from evidentia.contracts.settings import FanoutSettings, SourceSettings
from evidentia.contracts.vocabulary import BreakerState, CoverageState
from evidentia.testing.faulty_sources import FaultyBlockingSource, FaultySource, SourceFault
from evidentia.wiring.system import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from evidentia.contracts.retrieval import SourceAsk, SourceReply
    from evidentia.federation.fanout import SourceCall

PATIENCE_MS = 30_000
PATIENCE_S = PATIENCE_MS / 1_000


def fan_out(*calls: SourceCall, watched: Watched | None = None) -> list[SourceReply]:
    watched = watched or Watched(SystemClock())

    async def main() -> list[SourceReply]:
        replies = await watched.fan_out.run(calls, started_ns=0)
        await watched.fan_out.close()
        return replies

    return asyncio.run(main())


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for something that another thread does."""
    async with asyncio.timeout(PATIENCE_S):
        while not is_so():  # noqa: ASYNC110 (a thread that ends sets no event)
            await asyncio.sleep(0.002)


def source_threads() -> int:
    return sum(thread.name.startswith("evidentia source") for thread in threading.enumerate())


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 (a listing that opens nothing else)


@pytest.mark.parametrize(
    "fault",
    [SourceFault.NONE, SourceFault.EMPTY, SourceFault.CRASH, SourceFault.WRONG_TYPES, SourceFault.LYING_SCORES, SourceFault.ENDLESS],
)
def test_a_source_that_blocks_is_read_as_one_that_does_not(fault: SourceFault) -> None:
    limits = SourceSettings(most_candidates=20)
    (blocking,) = fan_out(call_of(FaultyBlockingSource(fault, seed=3), wait_ms=PATIENCE_MS), watched=Watched(SystemClock(), limits=limits))
    (other,) = fan_out(call_of(FaultySource(fault, seed=3), wait_ms=PATIENCE_MS), watched=Watched(SystemClock(), limits=limits))

    assert without_times(other) == without_times(blocking)


@pytest.mark.parametrize(
    "fault",
    [SourceFault.ERROR, SourceFault.SYSTEM_EXIT, SourceFault.KEYBOARD_INTERRUPT, SourceFault.GENERATOR_EXIT, SourceFault.CANCELS_ITSELF],
)
def test_whatever_is_raised_on_a_thread_is_the_failure_of_the_source(fault: SourceFault) -> None:
    (reply,) = fan_out(call_of(FaultyBlockingSource(fault), wait_ms=PATIENCE_MS))

    assert CoverageState.FAILED is reply.report.state
    assert "raised by a faulty source" not in reply.report.reason


def test_a_thread_that_cannot_iterate_what_it_got_fails() -> None:
    class NoIterator:
        def retrieve_blocking(self, ask: SourceAsk) -> int:
            return ask.limit

    (reply,) = fan_out(call_of(NoIterator(), wait_ms=PATIENCE_MS))  # type: ignore[arg-type]

    assert "TypeError; nothing had come" == reply.report.reason


def test_while_a_source_hangs_its_threads_are_capped_and_what_it_had_said_is_kept() -> None:
    source = FaultyBlockingSource(SourceFault.HANG, hangs_after=3)
    watched = Watched(SystemClock(), settings=FanoutSettings(blocking_threads=2, breaker_failures=100, background_calls=0))

    async def main() -> tuple[list[SourceReply], list[SourceReply], int]:
        first = await watched.fan_out.run([call_of(source, wait_ms=200), call_of(source, wait_ms=200)], started_ns=0)
        second = [(await watched.fan_out.run([call_of(source, wait_ms=PATIENCE_MS)], started_ns=0))[0] for _ in range(50)]
        hanging = source_threads()
        source.release()
        await watched.fan_out.close()
        await until(lambda: source_threads() == 0)
        return first, second, hanging

    first, second, hanging = asyncio.run(main())

    assert ["timed_out", "timed_out"] == [reply.report.state for reply in first]
    assert [3, 3] == [len(reply.candidates) for reply in first]
    assert ["not asked: all of its 2 threads are taken by earlier calls"] * 50 == [reply.report.reason for reply in second]
    assert 2 == hanging
    assert 2 == source.calls


def test_a_late_answer_from_a_thread_is_handed_over() -> None:
    source = FaultyBlockingSource(SourceFault.HANG, hangs_after=1)
    watched = Watched(SystemClock(), settings=FanoutSettings(background_ms=PATIENCE_MS))

    async def main() -> list[SourceReply]:
        replies = await watched.fan_out.run([call_of(source, wait_ms=20)], started_ns=0)
        source.release()
        await until(lambda: bool(watched.late))
        await watched.fan_out.close()
        return replies

    (reply,) = asyncio.run(main())

    assert CoverageState.TIMED_OUT is reply.report.state
    assert [("source", 10)] == [(late.source_id, len(late.candidates)) for _, late in watched.late]


def test_a_thread_whose_caller_has_gone_stops_at_the_next_proposal() -> None:
    read: list[int] = []
    closed = threading.Event()
    may_go_on = threading.Event()

    class Long:
        def retrieve_blocking(self, ask: SourceAsk) -> Iterator[object]:
            try:
                for place in range(1_000):
                    read.append(place)
                    yield Candidate(content=f"{ask.query.text} {place}")
                    may_go_on.wait(PATIENCE_S)
            finally:
                closed.set()

    watched = Watched(SystemClock(), settings=FanoutSettings(background_ms=0))

    async def main() -> None:
        await watched.fan_out.run([call_of(Long(), wait_ms=30)], started_ns=0)
        may_go_on.set()
        await until(closed.is_set)
        await watched.fan_out.close()

    asyncio.run(main())

    assert 2 >= len(read)


def test_a_loop_that_is_closed_while_a_thread_is_out_harms_neither() -> None:
    source = FaultyBlockingSource(SourceFault.HANG)
    watched = Watched(SystemClock(), settings=FanoutSettings(blocking_threads=1, background_calls=1))

    async def one(wait_ms: int) -> CoverageState:
        return (await watched.fan_out.run([call_of(source, wait_ms=wait_ms)], started_ns=0))[0].report.state

    states = [asyncio.run(one(10)), asyncio.run(one(10))]
    source.release()

    async def again() -> CoverageState:
        bulkhead = watched.fan_out._bulkheads[SourceId("source")]
        await until(lambda: bulkhead._idle > len(bulkhead._waiting))
        state = await one(PATIENCE_MS)
        await watched.fan_out.close()
        return state

    assert ["timed_out", "skipped", "searched"] == [*states, asyncio.run(again())]
    assert [] == watched.late


def test_calls_of_a_loop_that_was_closed_take_no_place_in_the_background() -> None:
    source = FaultyBlockingSource(SourceFault.HANG)
    watched = Watched(SystemClock(), settings=FanoutSettings(blocking_threads=2, background_calls=1, background_ms=PATIENCE_MS))

    async def one() -> None:
        await watched.fan_out.run([call_of(source, wait_ms=10)], started_ns=0)

    async def main() -> None:
        await one()
        source.release()
        await until(lambda: bool(watched.late))
        await watched.fan_out.close()

    asyncio.run(one())
    asyncio.run(main())

    assert 1 == len(watched.late)


def test_a_probe_that_finds_no_thread_gives_its_place_back() -> None:
    source = FaultyBlockingSource(SourceFault.HANG)
    settings = FanoutSettings(blocking_threads=1, breaker_failures=1, breaker_open_ms=1, background_ms=0)
    watched = Watched(SystemClock(), settings=settings)

    async def one(wait_ms: int) -> CoverageState:
        await until(lambda: watched.fan_out.breaker(SourceId("source")) is not BreakerState.OPEN)
        return (await watched.fan_out.run([call_of(source, wait_ms=wait_ms)], started_ns=0))[0].report.state

    async def main() -> list[CoverageState]:
        states = [await one(10), await one(10), await one(10)]
        source.release()
        bulkhead = watched.fan_out._bulkheads[SourceId("source")]
        await until(lambda: bulkhead._idle > len(bulkhead._waiting))
        states.append(await one(PATIENCE_MS))
        await watched.fan_out.close()
        return states

    assert ["timed_out", "skipped", "skipped", "searched"] == asyncio.run(main())


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files where Linux lists them")
@pytest.mark.slow
def test_ten_thousand_faulty_requests_leave_no_thread_task_or_file_behind() -> None:
    settings = FanoutSettings(blocking_threads=3, background_ms=40, background_calls=2, breaker_failures=1_000_000)
    watched = Watched(SystemClock(), settings=settings, limits=SourceSettings(most_candidates=5, most_chars=200, most_reply_chars=2_000))
    quick = [fault for fault in SourceFault if fault not in (SourceFault.HANG, SourceFault.IGNORES_CANCELLATION)]
    hung = FaultyBlockingSource(SourceFault.HANG)
    blocking = [FaultyBlockingSource(fault, proposals=2) for fault in quick]
    others = [FaultySource(fault, proposals=2) for fault in quick]
    stubborn = FaultySource(SourceFault.IGNORES_CANCELLATION, stubborn_ms=100)
    endless = FaultySource(SourceFault.HANG)
    states: set[str] = set()
    max_threads = 0

    def calls_of(turn: int) -> list[SourceCall]:
        one, other = turn % len(quick), (turn * 7 + 3) % len(quick)
        calls = [call_of(others[other], f"async {other}", wait_ms=PATIENCE_MS)]
        if turn % 5 == 0:
            calls.append(call_of(blocking[one], f"blocking {one}", wait_ms=PATIENCE_MS))
        if turn % 200 == 0:
            calls += [
                call_of(hung, "hung thread", wait_ms=5),
                call_of(stubborn, "stubborn", wait_ms=5),
                call_of(endless, "hung", wait_ms=5),
            ]
        return calls

    async def main() -> tuple[int, int]:
        nonlocal max_threads
        before = len(asyncio.all_tasks())
        files_before = open_files()
        for turn in range(0, 10_000, 4):
            for replies in await asyncio.gather(*(watched.fan_out.run(calls_of(turn + each), started_ns=0) for each in range(4))):
                states.update(reply.report.state for reply in replies)
            if turn % 400 == 0:
                max_threads = max(max_threads, sum(thread.name.endswith("hung thread") for thread in threading.enumerate()))
        hung.release()
        await watched.fan_out.close()
        await until(lambda: source_threads() == 0 and len(asyncio.all_tasks()) == before)
        return len(asyncio.all_tasks()) - before, open_files() - files_before

    tasks, files = asyncio.run(main())

    assert {"searched", "failed", "timed_out", "skipped"} == states
    assert (0, 0) == (tasks, files)
    assert 3 == max_threads
    assert 0 == source_threads()
