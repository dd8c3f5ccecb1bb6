"""Asks many sources at once and comes back in time, whatever they do, with an account of each.

Time is the event loop's: a jump of the wall clock moves no deadline.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from evidentia.contracts.vocabulary import BreakerState, CoverageState
from evidentia.engine.breaker import REFUSED, Breaker
from evidentia.engine.bulkhead import Bulkhead
from evidentia.engine.fanout_background import Background
from evidentia.engine.fanout_flights import AsyncFlight, BlockingFlight, SourceCall
from evidentia.engine.fanout_replies import finished_reply, late_reply, refused_reply, stopped_reply
from evidentia.engine.fanout_round import Round
from evidentia.sources.intake import Intake

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evidentia.contracts.ids import SourceId
    from evidentia.contracts.ports import Clock
    from evidentia.contracts.retrieval import SourceReply
    from evidentia.contracts.settings import FanoutSettings, SourceSettings

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
        one = Round(
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

    def _ask(self, one: Round, position: int, call: SourceCall) -> None:
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

    def _start(self, one: Round, position: int, call: SourceCall, *, intake: Intake, ticket: int) -> str:
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

    def _settle_landed(self, one: Round) -> bool:
        has_landed = bool(one.landed)
        while one.landed:
            flight = one.landed.pop(0)
            reply = finished_reply(flight, asked_ns=one.asked_ns, started_ns=one.started_ns)
            breaker = self._breaker_of(reply.source_id)
            problem = flight.problem
            (breaker.succeeded if problem is None else breaker.failed)(flight.ticket)
            self._record(reply.source_id, reply.report.state, reply.report.elapsed_ms, "" if problem is None else problem.shared)
            one.settle(flight.position, reply)
        return has_landed

    def _settle_due(self, one: Round) -> None:
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

    def _stop(self, one: Round, reason: str) -> None:
        """Give up what is still out, if there is a reason; nothing is learnt about those sources."""
        if not reason:
            return
        now_ns = self._clock.elapsed_ns()
        for position, flight in list(one.out.items()):
            flight.give_up()
            self._breaker_of(flight.call.descriptor.source_id).released(flight.ticket)
            one.settle(position, stopped_reply(flight, reason, asked_ns=one.asked_ns, started_ns=one.started_ns, now_ns=now_ns))

    def _let_go(self, one: Round) -> None:
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
        return self._bulkheads.setdefault(source_id, Bulkhead(source_id, max_threads=self._settings.blocking_threads))


def _is_blocking(retriever: object) -> bool:
    try:
        return hasattr(retriever, "retrieve_blocking")
    except BaseException:  # noqa: BLE001 (a retriever that cannot be looked at fails when it is asked)
        return False
