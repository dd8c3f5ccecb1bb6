"""An event loop on which waiting takes no time: when nothing is ready, its clock jumps to the next timer.

Whatever runs on it is exact and repeatable, and hours pass in milliseconds. Threads do not take part: what they do happens at no
moment of this time, so work that would go to one belongs to `InlineBlockingExecutor`.
"""

from __future__ import annotations

import asyncio
import contextlib
import selectors
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from evidentia.contracts.ports import BlockingExecutor, Clock
from evidentia.testing.determinism import START

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from concurrent.futures import Future
    from contextvars import Context

Answer = TypeVar("Answer")

_NS_PER_S = 1_000_000_000
_FAREWELL_S = 60.0


class DeadlockError(RuntimeError):
    """Everything waits, and nothing is scheduled that could end it."""

    def __init__(self) -> None:
        super().__init__("every task waits for something that nothing will ever do")


class VirtualClock(Clock):
    """Implements `Clock`: `elapsed_ns` is the time of the loop that runs with it, `now` may be made to jump against it."""

    def __init__(self, start: datetime = START) -> None:
        self._start = start
        self._elapsed_ns = 0
        self._jumped = timedelta()

    def now(self) -> datetime:
        """Return the wall clock's time: the elapsed time and every jump so far."""
        return self._start + timedelta(microseconds=self._elapsed_ns // 1_000) + self._jumped

    def elapsed_ns(self) -> int:
        """Return nanoseconds since the clock was made, never going back."""
        return self._elapsed_ns

    def jump(self, seconds: float) -> None:
        """Put the wall clock forward or back, as an operator or a time server would; no time passes."""
        self._jumped += timedelta(seconds=seconds)

    def advance(self, seconds: float) -> None:
        """Let time pass; a loop that runs with the clock does this by itself."""
        if seconds < 0:
            raise ValueError(f"time does not go back: '{seconds}' seconds")
        self._elapsed_ns += round(seconds * _NS_PER_S)


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """The usual event loop on a clock of its own."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(_JumpingSelector(clock))
        self._clock = clock

    def time(self) -> float:
        """Return the seconds that have passed on the clock."""
        return self._clock.elapsed_ns() / _NS_PER_S

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Schedule a callback; any delay at all takes a nanosecond at least, else who waits for the rest of one waits for ever."""
        when = self.time() + delay
        return self.call_at(max(when, self._next()) if delay > 0 else when, callback, *args, context=context)

    def call_at(self, when: float, callback: Callable[..., object], *args: object, context: Context | None = None) -> asyncio.TimerHandle:
        """Schedule a callback for a whole nanosecond, which the clock then meets exactly."""
        exact = round(when * _NS_PER_S) / _NS_PER_S
        return super().call_at(max(exact, self._next()) if when > self.time() else exact, callback, *args, context=context)

    def _next(self) -> float:
        return (self._clock.elapsed_ns() + 1) / _NS_PER_S


class InlineBlockingExecutor(BlockingExecutor):
    """Implements `BlockingExecutor` without threads: the work is done at once, where it is asked for."""

    async def run(self, work: Callable[[], Answer]) -> Answer:
        """Return what the work returns, or raise what it raises."""
        return work()

    def submit(self, work: Callable[[], Answer]) -> Future[Answer]:
        """Refuse: a thread that waits knows nothing of virtual time."""
        raise NotImplementedError


def run_virtual(work: Coroutine[Any, Any, Answer], *, clock: VirtualClock | None = None) -> Answer:  # Any: as in `asyncio.run`
    """Run a coroutine to its end in virtual time, as `asyncio.run` does; DeadlockError when it waits for nothing.

    Tasks that are left are cancelled; those that take no notice are left after a (virtual) minute.
    """
    loop = VirtualTimeLoop(clock or VirtualClock())
    try:
        return loop.run_until_complete(work)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        with contextlib.suppress(DeadlockError):
            if left:
                loop.run_until_complete(asyncio.wait(left, timeout=_FAREWELL_S))
            loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


class _JumpingSelector(selectors.DefaultSelector):
    """Never waits: it lets the time pass that it was to wait for."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready; when nothing is, move the clock on to the next timer."""
        ready = super().select(0)
        if ready:
            return ready
        if timeout is None:
            raise DeadlockError
        if timeout > 0:
            self._clock.advance(timeout)
        return ready
