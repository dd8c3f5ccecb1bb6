"""Thread pools: who does the work, and what comes back."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import TYPE_CHECKING

import pytest

from evidentia.foundation.offload import INLINE, ThreadPoolBlockingExecutor, ThreadPoolOffloader

if TYPE_CHECKING:
    from collections.abc import Iterator

WORD = contextvars.ContextVar("word", default="none")


@pytest.fixture
def helper() -> Iterator[ThreadPoolOffloader]:
    offloader = ThreadPoolOffloader(helpers=1)
    yield offloader
    offloader.close()


def where() -> str:
    return threading.current_thread().name


def fail() -> str:
    raise LookupError("gone")


def test_inline_work_is_done_by_whoever_waits() -> None:
    assert where() == INLINE.submit(where)()


def test_work_is_done_beside_whoever_asks(helper: ThreadPoolOffloader) -> None:
    released = threading.Event()
    waiting = helper.submit(lambda: released.wait(5) and where())
    released.set()

    assert where() != waiting()


def test_work_that_nobody_is_free_for_is_done_by_whoever_waits(helper: ThreadPoolOffloader) -> None:
    released = threading.Event()
    first = helper.submit(lambda: released.wait(5))
    second = helper.submit(where)

    assert where() == second()
    released.set()
    assert first()


def test_without_helpers_and_after_closing_work_is_done_by_whoever_waits(helper: ThreadPoolOffloader) -> None:
    nobody = ThreadPoolOffloader(helpers=0)
    helper.close()

    assert [where()] * 2 == [nobody.submit(where)(), helper.submit(where)()]
    nobody.close()


def test_what_work_raises_is_raised_where_it_is_waited_for(helper: ThreadPoolOffloader) -> None:
    waiting = helper.submit(fail)

    with pytest.raises(LookupError, match="gone"):
        waiting()


def test_work_sees_the_context_of_whoever_asked(helper: ThreadPoolOffloader) -> None:
    WORD.set("said here")

    assert "said here" == helper.submit(WORD.get)()


def test_blocking_work_leaves_the_loop_free_and_sees_its_context() -> None:
    async def ask() -> tuple[str, str, bool]:
        WORD.set("said on the loop")
        executor = ThreadPoolBlockingExecutor()
        released = threading.Event()
        blocked = executor.run(lambda: released.wait(5))
        found = await executor.run(where), await executor.run(WORD.get)
        released.set()
        is_released = await blocked
        await executor.close()
        await executor.close()
        return *found, is_released

    thread, word, is_released = asyncio.run(ask())

    assert thread.startswith("evidentia-engine")
    assert ("said on the loop", True) == (word, is_released)


def test_blocking_work_that_raises_raises_on_the_loop() -> None:
    async def ask() -> None:
        executor = ThreadPoolBlockingExecutor()
        try:
            await executor.run(fail)
        finally:
            await executor.close()

    with pytest.raises(LookupError, match="gone"):
        asyncio.run(ask())


def test_closing_waits_for_work_that_nobody_waits_for() -> None:
    ended = threading.Event()

    async def leave() -> None:
        executor = ThreadPoolBlockingExecutor()
        begun, released = threading.Event(), threading.Event()

        def work() -> None:
            begun.set()
            released.wait(5)
            ended.set()

        asked = executor.run(work)
        await asyncio.to_thread(begun.wait, 5)
        asked.cancel()
        released.set()
        await executor.close()

    asyncio.run(leave())

    assert ended.is_set()
