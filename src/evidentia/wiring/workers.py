"""Threads for the engine's own blocking steps."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Answer = TypeVar("Answer")


class ThreadWorkers:
    """Implements `Workers` on the event loop's own pool of threads."""

    async def run(self, work: Callable[[], Answer]) -> Answer:
        """Return what the work returns, or raise what it raises; whoever stops waiting does not stop the work."""
        return await asyncio.to_thread(work)
