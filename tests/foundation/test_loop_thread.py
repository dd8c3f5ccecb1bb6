"""An event loop on a thread of its own: who asks, who leaves, and how it ends."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from evidentia.foundation.loop_thread import LoopThread

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

NAME = "a loop of its own"


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    thread = LoopThread(NAME)
    yield thread
    thread.close()


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == NAME]


async def here() -> str:
    return threading.current_thread().name


async def fail() -> None:
    raise LookupError("gone")


async def count(closed: list[str]) -> AsyncGenerator[int, None]:
    try:
        for number in range(3):
            yield number
    finally:
        closed.append("closed")


def test_there_is_no_thread_before_anything_is_run(loop: LoopThread) -> None:
    assert not loop.is_running
    assert [] == threads()


def test_a_coroutine_runs_on_the_thread_and_its_result_comes_back(loop: LoopThread) -> None:
    assert NAME == loop.run(here())
    assert 1 == len(threads())


def test_what_a_coroutine_raises_is_raised_where_it_was_asked_for(loop: LoopThread) -> None:
    with pytest.raises(LookupError, match="gone"):
        loop.run(fail())


def test_a_loop_that_asks_is_not_blocked(loop: LoopThread) -> None:
    async def ask() -> tuple[str, str]:
        released = asyncio.Event()
        asking = asyncio.create_task(loop.run_async(_after(released, asyncio.get_running_loop())))
        await asyncio.sleep(0)
        released.set()
        return await asking, await here()

    there, own = asyncio.run(ask())

    assert NAME == there
    assert NAME != own


async def _after(released: asyncio.Event, owner: asyncio.AbstractEventLoop) -> str:
    await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_wait(released), owner))
    return await here()


async def _wait(released: asyncio.Event) -> None:
    await released.wait()


def test_whoever_stops_waiting_cancels_the_work(loop: LoopThread) -> None:
    begun, cancelled = threading.Event(), threading.Event()

    async def hang() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async def leave() -> None:
        asking = asyncio.create_task(loop.run_async(hang()))
        await asyncio.to_thread(begun.wait, 5)
        asking.cancel()
        await asyncio.wait([asking])

    asyncio.run(leave())

    assert cancelled.wait(5)


def test_a_generator_is_read_to_its_end_and_closed(loop: LoopThread) -> None:
    closed: list[str] = []

    assert [0, 1, 2] == list(loop.stream(count(closed)))
    assert ["closed"] == closed


def test_a_generator_that_is_left_early_is_closed(loop: LoopThread) -> None:
    closed: list[str] = []
    reading = loop.stream(count(closed))

    assert 0 == next(reading)
    reading.close()  # type: ignore[attr-defined] # an iterator that is a generator

    assert ["closed"] == closed


def test_closing_cancels_what_is_left_and_ends_the_thread() -> None:
    loop = LoopThread(NAME)
    begun, ended = threading.Event(), threading.Event()

    async def hang() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def leave_behind() -> None:
        _left.append(asyncio.create_task(hang()))

    _left: list[asyncio.Task[None]] = []
    loop.run(leave_behind())
    assert begun.wait(5)
    loop.close()

    assert ended.is_set()
    assert [] == threads()
    assert not loop.is_running


def test_a_closed_loop_can_be_used_again(loop: LoopThread) -> None:
    loop.run(here())
    loop.close()
    loop.close()

    assert NAME == loop.run(here())


def test_closing_does_not_block_the_loop_that_asks(loop: LoopThread) -> None:
    async def open_and_close() -> bool:
        await loop.run_async(here())
        await loop.aclose()
        await loop.aclose()
        return loop.is_running

    assert not asyncio.run(open_and_close())


def test_many_threads_share_one_loop(loop: LoopThread) -> None:
    found: list[str] = []
    asking = [threading.Thread(target=lambda: found.append(loop.run(here()))) for _ in range(8)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()

    assert [NAME] * 8 == found
    assert 1 == len(threads())
