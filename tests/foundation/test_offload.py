"""Thread pools: who does the work, and what comes back."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from functools import partial
from typing import TYPE_CHECKING

import pytest

from evidentia.foundation.offload import (
    INLINE,
    AbandonedError,
    ThreadPoolBlockingExecutor,
    ThreadPoolOffloader,
    abandonable,
    check_abandoned,
    on_behalf_of,
)

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


# --- shares ---


def test_a_caller_who_is_not_alone_leaves_threads_to_the_others() -> None:
    executor = ThreadPoolBlockingExecutor(max_threads=6)
    may_go, begun = threading.Event(), threading.Semaphore(0)
    running: list[str] = []

    def hold(name: str) -> str:
        running.append(name)
        begun.release()
        assert may_go.wait(60)
        return name

    with on_behalf_of("modest"):
        executor.submit(lambda: None).result(60)
    with on_behalf_of("greedy"):
        held = [executor.submit(partial(hold, "greedy")) for _ in range(20)]
    for _ in range(2):
        assert begun.acquire(timeout=60)
    with on_behalf_of("modest"):
        answer = executor.submit(lambda: "answered").result(60)
    was_running = list(running)
    may_go.set()

    assert "answered" == answer
    assert ["greedy"] * 2 == was_running
    assert ["greedy"] * 20 == [each.result(60) for each in held]
    executor.shutdown()


def test_a_caller_alone_has_all_threads_and_what_waits_is_done_before_the_end() -> None:
    executor = ThreadPoolBlockingExecutor(max_threads=6)
    may_go, begun = threading.Event(), threading.Semaphore(0)

    def hold() -> int:
        begun.release()
        assert may_go.wait(60)
        return 1

    with on_behalf_of("alone"):
        held = [executor.submit(hold) for _ in range(9)]
        cancelled = executor.submit(hold)
    for _ in range(6):
        assert begun.acquire(timeout=60)
    assert cancelled.cancel()
    threading.Timer(0, may_go.set).start()
    executor.shutdown()

    assert [1] * 9 == [each.result(0) for each in held]


def test_work_ends_by_itself_once_nobody_waits_for_it() -> None:
    is_left = threading.Event()
    with abandonable(is_left.is_set):
        check_abandoned()
        is_left.set()
        with pytest.raises(AbandonedError):
            check_abandoned()

    check_abandoned()
