"""An event loop on a thread of its own, for callers that have none, and for connections that outlive the loops of those who ask."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine, Iterator
    from concurrent.futures import Future

Answer = TypeVar("Answer")


class LoopThread:
    """Runs coroutines for callers of any thread and any loop but its own. Thread safe.

    The thread starts with the first coroutine and ends with `close`, or with the process; used again after that, it starts again.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._running: tuple[threading.Thread, asyncio.AbstractEventLoop] | None = None

    @property
    def is_running(self) -> bool:
        """Tell whether there is a thread."""
        return self._running is not None

    def run(self, work: Coroutine[Any, Any, Answer]) -> Answer:  # Any: what a coroutine yields and is sent is the loop's affair
        """Run a coroutine to its end and return what it returns, or raise what it raises."""
        running = self._submit(work)
        try:
            return running.result()
        except BaseException:  # an interrupt in a notebook ends the work too; what is already done is not undone
            running.cancel()
            raise

    async def run_async(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Return what a coroutine returns there, without blocking the loop that asks; whoever stops waiting cancels it."""
        return await asyncio.wrap_future(self._submit(work))

    def stream(self, events: AsyncGenerator[Answer, None]) -> Iterator[Answer]:
        """Yield what an async generator yields; leaving early closes it."""
        try:
            while True:
                try:
                    yield self.run(_next(events))
                except StopAsyncIteration:
                    return
        finally:
            self.run(events.aclose())

    def close(self) -> None:
        """Cancel what still runs there, stop the loop and wait for its thread."""
        with self._lock:
            running, self._running = self._running, None
        if running is not None and running[0].is_alive():
            running[1].call_soon_threadsafe(running[1].stop)
            running[0].join()

    async def aclose(self) -> None:
        """Do what `close` does, without blocking the loop that asks."""
        if self._running is not None:
            await asyncio.to_thread(self.close)

    def _submit(self, work: Coroutine[Any, Any, Answer]) -> Future[Answer]:
        # Under the lock: a loop that is found is not stopped before the work was handed to it.
        with self._lock:
            # A forked process has the object without the thread.
            if self._running is None or not self._running[0].is_alive():
                loop = asyncio.new_event_loop()
                thread = threading.Thread(target=_serve, args=(loop,), name=self._name, daemon=True)
                thread.start()
                self._running = (thread, loop)
            return asyncio.run_coroutine_threadsafe(work, self._running[1])


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop until it is stopped. Threads of its executor are not waited for: one of them may hang in somebody else's code."""
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        asyncio.set_event_loop(None)
        loop.close()


async def _next(events: AsyncGenerator[Answer, None]) -> Answer:
    return await anext(events)
