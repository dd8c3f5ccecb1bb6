"""Runs coroutines for callers that are not async, also inside a notebook whose own loop is running."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine, Iterator

Answer = TypeVar("Answer")


class Portal:
    """An event loop on a thread of its own, started when first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, work: Coroutine[Any, Any, Answer]) -> Answer:  # Any: what a coroutine yields and is sent is the loop's affair
        """Run the coroutine to its end and return what it returns, or raise what it raises."""
        running = asyncio.run_coroutine_threadsafe(work, self._running_loop())
        try:
            return running.result()
        except BaseException:  # an interrupt in a notebook ends the work too; what is already done is not undone
            running.cancel()
            raise

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
        """Stop the loop and wait for its thread."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="evidentia", daemon=True)
                self._thread.start()
            return self._loop


async def _next(events: AsyncGenerator[Answer, None]) -> Answer:
    return await anext(events)
