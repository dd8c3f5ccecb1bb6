"""One fan-out while it lasts: which calls are out, which have landed, and what each reply is; one timer for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

    from evidentia.contracts.ports import Clock
    from evidentia.contracts.retrieval import SourceReply
    from evidentia.engine.fanout_flights import Flight

_MS_PER_S = 1_000


class Round:
    """The calls of one fan-out. It lives on one event loop, and on that loop only."""

    def __init__(
        self,
        clock: Clock,
        *,
        loop: asyncio.AbstractEventLoop,
        calls: int,
        started_ns: int,
        wakes_for_each: bool,
        on_finished: Callable[[SourceReply], None] | None,
    ) -> None:
        self.loop = loop
        self.started_ns = started_ns
        self.asked_ns = clock.elapsed_ns()
        self.out: dict[int, Flight] = {}
        self.landed: list[Flight] = []
        self.flights: list[Flight] = []
        self._start_s = loop.time()
        self._wakes_for_each = wakes_for_each
        self._on_finished = on_finished
        self._replies: list[SourceReply | None] = [None] * calls
        self._waiter: asyncio.Future[bool] | None = None
        self._due_ms = 0

    def launch(self, flight: Flight) -> None:
        """Count a call among those that are out."""
        self.out[flight.position] = flight
        self.flights.append(flight)

    def land(self, flight: Flight) -> None:
        """Take note that a call ended by itself; whoever waits is woken for it, or for the last one only."""
        if self.out.pop(flight.position, None) is not None:
            self.landed.append(flight)
            if self._wakes_for_each or not self.out:
                self._wake(is_due=False)

    def settle(self, position: int, reply: SourceReply) -> None:
        """Keep the reply of a call."""
        self.out.pop(position, None)
        self._replies[position] = reply
        if self._on_finished is not None:
            self._on_finished(reply)

    async def wait(self) -> bool:
        """Wait until a call that matters has landed or the next wait is over, and tell whether it is the latter."""
        if not self.out or (self.landed and self._wakes_for_each):
            return False
        self._waiter = self.loop.create_future()
        self._due_ms = min(flight.call.wait_ms for flight in self.out.values())
        timer = self.loop.call_at(self.moment_s(self._due_ms), self._expire)
        try:
            return await self._waiter
        finally:
            timer.cancel()
            self._waiter = None

    def due(self) -> list[Flight]:
        """Return the calls that are still out and whose wait is over: the one that was waited for may have landed meanwhile."""
        return [flight for flight in self.out.values() if flight.call.wait_ms <= self._due_ms]

    def moment_s(self, after_ms: int) -> float:
        """Return the event loop's time so many milliseconds after the round began."""
        return self._start_s + after_ms / _MS_PER_S

    def known(self) -> Sequence[SourceReply]:
        """Return the replies that there are so far, in the order of the calls."""
        return [reply for reply in self._replies if reply is not None]

    def _expire(self) -> None:
        self._wake(is_due=True)

    def _wake(self, *, is_due: bool) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(is_due)
