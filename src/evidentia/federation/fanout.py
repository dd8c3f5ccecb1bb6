"""Asks many sources at once and comes back in time, whatever they do, with an account of each.

Time is the event loop's: a jump of the wall clock moves no deadline.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from evidentia.contracts.vocabulary import BreakerState, CoverageState
from evidentia.federation.bulkhead import Bulkhead
from evidentia.federation.circuit_breaker import REFUSED, Breaker
from evidentia.federation.source_calls import (
    AsyncFlight,
    BlockingFlight,
    SourceCall,
    finished_reply,
    late_reply,
    refused_reply,
    stopped_reply,
)
from evidentia.sources.intake import Intake

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evidentia.contracts.ids import SourceId
    from evidentia.contracts.ports import Clock
    from evidentia.contracts.retrieval import SourceReply
    from evidentia.contracts.settings import FanoutSettings, SourceSettings
    from evidentia.federation.source_calls import Flight


__all__ = ["FanOut", "SourceCall"]

FORGIVEN_MS = 100
"""A call that ends well within this time of its caller's leaving, or within as long as the caller waited, was slow and did not fail."""


class FanOut:
    """Asks sources, remembers which of them to leave alone, and lets late ones go on for a while.

    It may be used from several event loops, one after the other. `record` is told of every call that was made, once: how it
    ended for its caller, how long that took, and what the problem was. `on_late` is given the reply of a call that finished
    well after its caller had left. Both are called on the event loop and must be quick.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        settings: FanoutSettings,
        limits: SourceSettings,
        record: Callable[[SourceId, CoverageState, float, str], None],
        on_late: Callable[[SourceCall, SourceReply], None],
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._limits = limits
        self._record = record
        self._on_late = on_late
        self._background = Background(settings=settings, on_late=self._late)
        self._breakers: dict[SourceId, Breaker] = {}
        self._bulkheads: dict[SourceId, Bulkhead] = {}
        self._is_closed = False

    def breaker(self, source_id: SourceId) -> BreakerState:
        """Return whether a source would be asked; one that never was would."""
        known = self._breakers.get(source_id)
        return BreakerState.CLOSED if known is None else known.state

    async def run(
        self,
        calls: Sequence[SourceCall],
        *,
        started_ns: int,
        enough: Callable[[Sequence[SourceReply]], str] | None = None,
        on_finished: Callable[[SourceReply], None] | None = None,
    ) -> list[SourceReply]:
        """Return one reply per call, in the order of the calls, as soon as all have ended or the longest wait is over.

        Whatever a source does is in its reply. `enough` is shown the replies so far whenever one has come; a reason ends the
        waiting. `on_finished` is given every reply when it is known. When the caller is cancelled, so are the calls.

        1. Ask every source that may be asked.
        2. Wait for them, for the next wait to be over, or for enough.
        3. Let go of whatever is still out.
        """
        one = FanOutRound(
            self._clock,
            loop=asyncio.get_running_loop(),
            calls=len(calls),
            started_ns=started_ns,
            wakes_for_each=enough is not None or on_finished is not None,
            on_finished=on_finished,
        )
        try:
            for position, call in enumerate(calls):
                self._ask(one, position, call)
            while one.out or one.landed:
                is_due = await one.wait()
                has_landed = self._settle_landed(one)
                if is_due:
                    self._settle_due(one)
                if enough is not None and has_landed and one.out:
                    self._stop(one, enough(one.known()))
        finally:
            self._let_go(one)
        return list(one.known())

    async def close(self) -> None:
        """Give up every call that goes on in the background, and let the threads end that a source does not hold."""
        self._is_closed = True
        for bulkhead in list(self._bulkheads.values()):
            bulkhead.close()
        await self._background.close()

    def _ask(self, one: FanOutRound, position: int, call: SourceCall) -> None:
        """Begin a call, or settle it with the reason why not."""
        if self._is_closed or call.wait_ms <= 0:
            reason = "not asked: the base is closing" if self._is_closed else "not asked: no time was left for it"
            one.settle(position, refused_reply(call, CoverageState.SKIPPED, reason))
            return
        intake = Intake(call.descriptor, call.ask, settings=self._limits, now=self._clock.now, admits=call.admits)
        breaker = self._breaker_of(call.descriptor.source_id)
        ticket = breaker.admit()
        if ticket == REFUSED:
            one.settle(position, refused_reply(call, CoverageState.BREAKER_OPEN, breaker.why_refused))
            return
        refusal = self._start(one, position, call, intake=intake, ticket=ticket)
        if refusal:
            breaker.released(ticket)
            one.settle(position, refused_reply(call, CoverageState.SKIPPED, refusal))

    def _start(self, one: FanOutRound, position: int, call: SourceCall, *, intake: Intake, ticket: int) -> str:
        source_id, elapsed_ns = call.descriptor.source_id, self._clock.elapsed_ns
        if _is_blocking(call.retriever):
            blocking = BlockingFlight(call, position=position, ticket=ticket, intake=intake, elapsed_ns=elapsed_ns, on_end=one.land)
            one.launch(blocking)
            return blocking.start(one.loop, self._bulkhead_of(source_id))
        refusal = self._background.why_refused(source_id)
        if not refusal:
            flight = AsyncFlight(call, position=position, ticket=ticket, intake=intake, elapsed_ns=elapsed_ns, on_end=one.land)
            one.launch(flight)
            flight.start(one.loop)
        return refusal

    def _settle_landed(self, one: FanOutRound) -> bool:
        has_landed = bool(one.landed)
        while one.landed:
            flight = one.landed.pop(0)
            reply = finished_reply(flight, asked_ns=one.asked_ns, started_ns=one.started_ns)
            breaker = self._breaker_of(reply.source_id)
            problem = flight.problem
            (breaker.succeeded if problem is None else breaker.failed)(flight.ticket)
            self._record(reply.source_id, reply.report.state, reply.report.elapsed_ms, "" if problem is None else problem.told)
            one.settle(flight.position, reply)
        return has_landed

    def _settle_due(self, one: FanOutRound) -> None:
        for flight in one.due():
            now_ns = self._clock.elapsed_ns()
            reply = late_reply(flight, asked_ns=one.asked_ns, started_ns=one.started_ns, now_ns=now_ns)
            self._breaker_of(reply.source_id).failed(flight.ticket)
            self._record(reply.source_id, reply.report.state, reply.report.elapsed_ms, f"not finished within {flight.call.wait_ms} ms")
            self._background.carry_on(one, flight)
            one.settle(flight.position, reply)

    def _late(self, call: SourceCall, reply: SourceReply) -> None:
        """Pass on what came late; what came only a little late was not a failure."""
        if reply.report.elapsed_ms <= call.wait_ms + max(call.wait_ms, FORGIVEN_MS):
            self._breaker_of(reply.source_id).recovered()
        self._on_late(call, reply)

    def _stop(self, one: FanOutRound, reason: str) -> None:
        """Give up what is still out, if there is a reason; nothing is learnt about those sources."""
        if not reason:
            return
        now_ns = self._clock.elapsed_ns()
        for position, flight in list(one.out.items()):
            flight.give_up()
            self._breaker_of(flight.call.descriptor.source_id).released(flight.ticket)
            one.settle(position, stopped_reply(flight, reason, asked_ns=one.asked_ns, started_ns=one.started_ns, now_ns=now_ns))

    def _let_go(self, one: FanOutRound) -> None:
        """Cancel what nobody has settled, which only happens when the caller was cancelled, and hold on to tasks that still end."""
        for flight in [*one.out.values(), *one.landed]:
            flight.give_up()
            self._breaker_of(flight.call.descriptor.source_id).released(flight.ticket)
        for flight in one.flights:
            self._background.hold(flight)
        one.flights.clear()  # they know the round too, and would wait for the collector of cycles

    def _breaker_of(self, source_id: SourceId) -> Breaker:
        known = self._breakers.get(source_id)
        if known is not None:
            return known
        settings = self._settings
        new = Breaker(self._clock, failures=settings.breaker_failures, open_ms=settings.breaker_open_ms)
        return self._breakers.setdefault(source_id, new)

    def _bulkhead_of(self, source_id: SourceId) -> Bulkhead:
        known = self._bulkheads.get(source_id)
        if known is not None:
            return known
        return self._bulkheads.setdefault(source_id, Bulkhead(f"source {source_id}", max_threads=self._settings.blocking_threads))


def _is_blocking(retriever: object) -> bool:
    try:
        return hasattr(retriever, "retrieve_blocking")
    except BaseException:  # noqa: BLE001 (a retriever that cannot be looked at fails when it is asked)
        return False


# --- fanout round ---
# One fan-out while it lasts: which calls are out, which have landed, and what each reply is; one timer for all of them.

_MS_PER_S = 1_000


class FanOutRound:
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


# --- fanout background ---
# Calls whose callers have left: late ones go on for a while, so that the next caller finds their answer kept, and then end for good.

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

    def carry_on(self, one: FanOutRound, flight: Flight) -> None:
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
