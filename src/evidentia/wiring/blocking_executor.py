"""Threads for the engine's own blocking steps."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Answer = TypeVar("Answer")
Told = TypeVar("Told")
_NAME = "evidentia-engine"


class ThreadPoolBlockingExecutor:
    """Implements `BlockingExecutor` on a pool of threads of its own, which are started when they are needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    def run(self, work: Callable[[], Answer]) -> asyncio.Future[Answer]:
        """Begin at once, and return what will have what the work returns or raises; nobody who stops waiting stops work that has begun."""
        loop = asyncio.get_running_loop()
        told: asyncio.Future[Answer] = loop.create_future()
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(thread_name_prefix=_NAME)
            self._pool.submit(_work, work, contextvars.copy_context(), loop, told)
        return told

    async def close(self) -> None:
        """Wait for the work that was begun, also for that which nobody waits for any more: it uses what is closed next."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            await asyncio.to_thread(pool.shutdown)


def _work(work: Callable[[], Answer], context: contextvars.Context, loop: asyncio.AbstractEventLoop, told: asyncio.Future[Answer]) -> None:
    """Do the work, unless nobody waits any more before it begins, and tell the event loop what came of it."""
    if told.cancelled():
        return
    try:
        tell = partial(_tell, told.set_result, context.run(work))
    except BaseException as error:  # noqa: BLE001 (it is raised again where somebody waits for the work)
        tell = partial(_tell, told.set_exception, error)
    with suppress(RuntimeError):  # the loop was closed meanwhile, and nobody waits
        loop.call_soon_threadsafe(tell)


def _tell(tell: Callable[[Told], None], what: Told) -> None:
    with suppress(asyncio.InvalidStateError):  # nobody waits any more
        tell(what)
