"""Time that passes only when everybody waits."""

from __future__ import annotations

import asyncio

import pytest

from evidentia.testing.determinism import START
from evidentia.testing.virtual_time import DeadlockError, InlineBlockingExecutor, VirtualClock, run_virtual


def test_waiting_moves_the_clock_by_exactly_the_wait() -> None:
    clock = VirtualClock()
    moments_ns: list[int] = []

    async def main() -> None:
        for seconds in (0.1, 0.2, 3_600.0, 0.0, 1e-9):
            await asyncio.sleep(seconds)
            moments_ns.append(clock.elapsed_ns())

    run_virtual(main(), clock=clock)

    assert [100_000_000, 300_000_000, 3_600_300_000_000, 3_600_300_000_000, 3_600_300_000_001] == moments_ns


def test_tasks_wake_in_the_order_of_their_timers() -> None:
    woken: list[int] = []

    async def sleeper(ms: int) -> None:
        await asyncio.sleep(ms / 1_000)
        woken.append(ms)

    async def main() -> None:
        await asyncio.gather(*(sleeper(ms) for ms in (30, 10, 20)))

    run_virtual(main())

    assert [10, 20, 30] == woken


def test_whoever_waits_for_the_rest_of_a_nanosecond_gets_there() -> None:
    async def main() -> int:
        loop = asyncio.get_running_loop()
        turns = 0
        until_s = loop.time() + 1.5 + 1e-10
        while loop.time() < until_s:
            await asyncio.sleep(until_s - loop.time())
            turns += 1
        return turns

    assert 3 > run_virtual(main())


def test_a_timeout_ends_what_takes_longer() -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with asyncio.timeout(0.25):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        run_virtual(main(), clock=clock)

    assert 250_000_000 == clock.elapsed_ns()


def test_waiting_for_nothing_is_found_out() -> None:
    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(DeadlockError):
        run_virtual(main())


def test_the_wall_clock_may_jump_and_no_time_passes() -> None:
    clock = VirtualClock()
    clock.advance(2)
    clock.jump(-3_600)

    assert -3_598 == (clock.now() - START).total_seconds()
    assert 2_000_000_000 == clock.elapsed_ns()
    with pytest.raises(ValueError, match="time does not go back"):
        clock.advance(-1)


def test_tasks_that_are_left_are_cancelled_and_stubborn_ones_left_alone() -> None:
    ended: list[str] = []

    async def left(name: str, *, is_stubborn: bool) -> None:
        try:
            await asyncio.sleep(1_000)
        except asyncio.CancelledError:
            if is_stubborn:
                await asyncio.sleep(10)
            ended.append(name)

    async def main() -> str:
        tasks.append(asyncio.create_task(left("meek", is_stubborn=False)))
        tasks.append(asyncio.create_task(left("stubborn", is_stubborn=True)))
        await asyncio.sleep(0)
        return "done"

    tasks: list[asyncio.Task[None]] = []

    assert "done" == run_virtual(main())
    assert ["meek", "stubborn"] == ended


def test_inline_workers_return_and_raise_what_the_work_does() -> None:
    workers = InlineBlockingExecutor()

    async def main() -> int:
        with pytest.raises(ZeroDivisionError):
            await workers.run(lambda: 1 // 0)
        return await workers.run(lambda: 6 * 7)

    assert 42 == run_virtual(main())
