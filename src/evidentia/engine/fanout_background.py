"""Calls whose callers have left: late ones go on for a while, so that the next caller finds their answer kept, and then end for good."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from evidentia.engine.fanout_flights import AsyncFlight
from evidentia.engine.fanout_replies import finished_reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from evidentia.contracts.ids import SourceId
    from evidentia.contracts.retrieval import SourceReply
    from evidentia.contracts.settings import FanoutSettings
    from evidentia.engine.fanout_flights import Flight, SourceCall
    from evidentia.engine.fanout_round import Round

MAX_STUCK = 64
"""When so many calls of one source have not ended although they were given up, it is not asked any more."""
_FAREWELL_S = 1.0
"""How long `close` waits for calls that were given up."""


class Background:
    """Holds the calls that nobody waits for, on whichever event loop they are."""

    def __init__(self, *, settings: FanoutSettings, on_late: Callable[[SourceCall, SourceReply], None]) -> None:
        self._settings = settings
        self._on_late = on_late
        self._held: dict[Flight, None] = {}

    def why_refused(self, source_id: SourceId) -> str:
        """Return in words why a source must not be given more to do, or nothing when it may."""
        if not self._held or self._count(source_id, is_late=False) < MAX_STUCK:
            return ""
        return f"not asked: {MAX_STUCK} earlier calls of it have not ended although they were given up"

    def carry_on(self, one: Round, flight: Flight) -> None:
        """Let a call go on without its caller, if it may; else end it."""
        settings = self._settings
        source_id = flight.call.descriptor.source_id
        if settings.background_ms <= flight.call.wait_ms or self._count(source_id, is_late=True) >= settings.background_calls:
            flight.give_up()
            return
        flight.is_late = True
        flight.on_end = self._finish
        flight.asked_ns, flight.started_ns = one.asked_ns, one.started_ns
        flight.timer = one.loop.call_at(one.moment_s(settings.background_ms), self._end, flight)
        self._held[flight] = None

    def hold(self, flight: Flight) -> None:
        """Hold a task that has not ended, since the event loop itself does not."""
        if isinstance(flight, AsyncFlight) and flight.task is not None and not flight.task.done():
            self._held[flight] = None
            flight.task.add_done_callback(lambda _: self._held.pop(flight, None))

    async def close(self) -> None:
        """Give up every call, and wait a little for those of this event loop."""
        here = asyncio.get_running_loop()
        tasks: list[asyncio.Task[None]] = []
        for flight in list(self._held):
            if flight.loop is here:
                self._end(flight)
                tasks += [flight.task] if isinstance(flight, AsyncFlight) and flight.task is not None else []
            elif flight.loop is not None:
                with contextlib.suppress(RuntimeError):  # that loop was closed, and the call with it
                    flight.loop.call_soon_threadsafe(self._end, flight)
        if tasks:
            await asyncio.wait(tasks, timeout=_FAREWELL_S)

    def _finish(self, flight: Flight) -> None:
        self._forget(flight)
        if flight.problem is None and flight.loop is not None:
            # Not from here: this runs inside the call, and what `on_late` raises belongs to the event loop's handler.
            flight.loop.call_soon(self._tell, flight)

    def _tell(self, flight: Flight) -> None:
        self._on_late(flight.call, finished_reply(flight, asked_ns=flight.asked_ns, started_ns=flight.started_ns))

    def _end(self, flight: Flight) -> None:
        self._forget(flight)
        flight.give_up()
        self.hold(flight)

    def _forget(self, flight: Flight) -> None:
        flight.is_late = False
        if flight.timer is not None:
            flight.timer.cancel()
            flight.timer = None
        self._held.pop(flight, None)

    def _count(self, source_id: SourceId, *, is_late: bool) -> int:
        """Count the calls of a source that nobody waits for; those of an event loop that was closed are over."""
        count = 0
        for flight in list(self._held):
            if flight.loop is not None and flight.loop.is_closed():
                self._held.pop(flight, None)
            elif flight.is_late is is_late and flight.call.descriptor.source_id == source_id:
                count += 1
        return count
