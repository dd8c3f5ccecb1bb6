"""Step 6 for one request: the base's own search and the sources outside, side by side, until the time for searching is over."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from evidentia.contracts.streaming import ProvisionalFragments, SourceFinished
from evidentia.engine.deadline import Stages
from evidentia.engine.legs import NOTHING_FOUND
from evidentia.engine.outsiders import coverage_of
from evidentia.engine.trail import Trail

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evidentia.contracts.ports import BlockingExecutor
    from evidentia.contracts.retrieval import SourceReply
    from evidentia.contracts.streaming import StreamEvent
    from evidentia.engine.federation import Federation, Round
    from evidentia.engine.legs import Found
    from evidentia.engine.pipeline import Engine, Searched
    from evidentia.engine.question import Question

TOO_SLOW = "the search took longer than its share of the deadline"
_MS_PER_S = 1_000


class Gathering:
    """Gathers what answers one question. Whoever asks for a stream is told of every source, and what the answer would be by then."""

    def __init__(
        self,
        engine: Engine,
        question: Question,
        asking: Round | None,
        *,
        trail: Trail,
        workers: BlockingExecutor,
        federation: Federation | None,
        watch: Callable[[StreamEvent], None] | None,
        is_patient: bool,
    ) -> None:
        self._engine = engine
        self._question = question
        self._trail = trail
        self._workers = workers
        self._federation = federation
        self._asking = asking
        self._watch = watch
        self._is_patient = is_patient
        self._stages = Stages(question.request.latency_deadline_ms)
        self._searched: Searched | None = None
        self._replies: list[SourceReply] = []
        self._awaited = Counter(asking.sources if asking is not None else ())
        """The sources outside the base of which there will be a reply, with how many."""
        self._provisional: asyncio.Task[None] | None = None

    async def run(self) -> tuple[Question, Found]:
        """Return the question with what others said of it, and what the base itself holds."""
        known, calls = (self._asking.known, len(self._asking.calls)) if self._asking else ((), 0)
        self._engine.mark_sources(self._question, known, calls=calls, trail=self._trail)
        try:
            replies = await (self._side_by_side() if self._question.plan.searched else self._outside_alone())
        finally:
            if self._provisional is not None:
                self._provisional.cancel()
        question, found = self._answered(replies)
        searched = self._searched._replace(question=question) if self._searched else self._engine.missed(question)
        self._engine.mark_search(searched, self._trail)
        return question, found

    async def _side_by_side(self) -> tuple[SourceReply, ...]:
        """Ask the sources outside while the base is searched."""
        asking = None if self._asking is None else asyncio.ensure_future(self._ask(self._asking))
        try:
            self._searched = await self._own()
            self._tell_own()
            return () if asking is None else await asking
        finally:
            if asking is not None:
                asking.cancel()

    async def _outside_alone(self) -> tuple[SourceReply, ...]:
        """Ask the sources outside where nothing of the base is searched, which takes no time and so no task beside."""
        self._searched = self._engine.search(self._question)
        self._tell_own()
        return () if self._asking is None else await self._ask(self._asking)

    async def _own(self) -> Searched | None:
        """Search the base; None when that takes longer than there is time for, which the thread then finds out by itself."""
        searching = asyncio.ensure_future(self._workers.run(partial(self._engine.search, self._question)))
        left_ms = max(1.0, self._stages.fan_out_ends_ms - self._trail.elapsed_ms())
        try:
            await asyncio.wait({searching}, timeout=None if self._is_patient else left_ms / _MS_PER_S)
        finally:
            if not searching.done():
                searching.add_done_callback(look_away)
        return searching.result() if searching.done() else None

    async def _ask(self, asking: Round) -> tuple[SourceReply, ...]:
        if self._federation is None:
            raise AssertionError  # only a federation makes rounds
        return await self._federation.ask(
            asking,
            started_ns=self._trail.started_ns,
            own_confidences=self._own_confidences if self._question.request.early_stop else None,
            on_finished=self._finished if self._watch is not None else None,
        )

    def _own_confidences(self) -> Sequence[float] | None:
        """Return how likely the best of the base's own are to be relevant; None while it is still being searched."""
        if self._searched is None:
            return None
        return self._engine.confidences(self._searched.question, self._searched.found)

    def _answered(self, replies: Sequence[SourceReply]) -> tuple[Question, Found]:
        question = self._searched.question if self._searched else self._question
        missing = "" if self._searched else TOO_SLOW
        inputs = msgspec.structs.replace(question.inputs, replies=tuple(replies), own_missing=missing)
        return question._replace(inputs=inputs), self._searched.found if self._searched else NOTHING_FOUND

    def _tell_own(self) -> None:
        if self._watch is None:
            return
        question, found = self._answered(())
        for source, report in self._engine.coverage(question, found, elapsed_ms=self._trail.elapsed_ms()).items():
            if source not in self._awaited:
                self._watch(SourceFinished(source_id=source, report=report))
        self._offer()

    def _finished(self, reply: SourceReply) -> None:
        """Take note of a reply; a source that was asked several parts has finished with the last of them."""
        source = reply.source_id
        self._replies.append(reply)
        told = [each for each in self._replies if each.source_id == source]
        if self._watch is not None and len(told) == self._awaited[source]:
            self._watch(SourceFinished(source_id=source, report=coverage_of(told)[source]))
        self._offer()

    def _offer(self) -> None:
        """Work out what the answer would be now, unless that is already being done."""
        if self._searched is not None and (self._provisional is None or self._provisional.done()):
            self._provisional = asyncio.ensure_future(self._provide())

    async def _provide(self) -> None:
        question, found = self._answered(tuple(self._replies))
        question = question._replace(request=msgspec.structs.replace(question.request, receipt=False))
        trail = Trail(self._engine.clock, deadline_ms=question.request.latency_deadline_ms)
        run = await self._workers.run(partial(self._engine.conclude, question, found, trail))
        if self._watch is not None:
            sources = sorted({*question.plan.searched, *(reply.source_id for reply in question.inputs.replies)})
            self._watch(ProvisionalFragments(fragments=run.response.fragments, sources=tuple(sources)))


def look_away(working: asyncio.Future[Any]) -> None:  # Any: whatever it was to return
    """Take note of how a piece of work ended that nobody waits for any more."""
    if not working.cancelled():
        working.exception()
