"""Threads for the engine's own blocking steps."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Answer = TypeVar("Answer")
_NAME = "evidentia-engine"


class ThreadWorkers:
    """Implements `Workers` on a pool of threads of its own, which are started when they are needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    async def run(self, work: Callable[[], Answer]) -> Answer:
        """Return what the work returns, or raise what it raises; whoever stops waiting does not stop work that has begun."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(thread_name_prefix=_NAME)
            working = self._pool.submit(contextvars.copy_context().run, work)
        return await asyncio.wrap_future(working)

    async def close(self) -> None:
        """Wait for the work that was begun, also for that which nobody waits for any more: it uses what is closed next."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            await asyncio.to_thread(pool.shutdown)
