"""An event loop on a thread of its own, so that a connection outlives the loops of those who ask, and its imports hold up none of them."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

_Answer = TypeVar("_Answer")


class OwnLoop:
    """Runs coroutines for whichever loop asks. The thread starts with the first of them and ends with `aclose`, or with the process."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._running: tuple[threading.Thread, asyncio.AbstractEventLoop] | None = None

    @property
    def is_running(self) -> bool:
        """Tell whether there is a thread."""
        return self._running is not None

    async def run(self, work: Coroutine[object, object, _Answer]) -> _Answer:
        """Return what a coroutine returns there; whoever stops waiting cancels it."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop()))

    async def aclose(self) -> None:
        """Stop the loop and wait for its thread."""
        with self._lock:
            running, self._running = self._running, None
        if running is not None:
            running[1].call_soon_threadsafe(running[1].stop)
            await asyncio.to_thread(running[0].join)

    def _loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._running is None:
                loop = asyncio.new_event_loop()
                thread = threading.Thread(target=_serve, args=(loop,), name=self._name, daemon=True)
                thread.start()
                self._running = (thread, loop)
            return self._running[1]


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.get_loop().run_forever()
