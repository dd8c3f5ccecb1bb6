"""A request on a worker's thread: where nobody outside is asked, it goes there from its question to its answer in one piece of work.

Handing work to a thread and back costs more than most of the steps. So what sources said goes to the answer where it is, on the event
loop, as long as that waits for nothing and takes no longer than a few handings over. Whoever waits can give up the search meanwhile; the
thread finds that out by itself when it has searched, and leaves the answer to the one who waits.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from evidentia.contracts.evidence import ProvisionalFragments, SourceFinished
from evidentia.engine.external_candidates import coverage_of
from evidentia.engine.legs import NOTHING_FOUND
from evidentia.engine.stage_log import Trail
from evidentia.federation.deadline import Stages

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evidentia.contracts.evidence import EvidenceResponse, StreamEvent
    from evidentia.contracts.ports import BlockingExecutor
    from evidentia.contracts.retrieval import SourceReply
    from evidentia.engine.federation import Federation, Round
    from evidentia.engine.legs import Found
    from evidentia.engine.pipeline import Engine, Searched
    from evidentia.engine.question import Question


MAX_CANDIDATES: Final = 200
MAX_CHARS: Final = 100_000
"""What sources said is only taken to its answer on the event loop when it is no more than this: others wait there for their turn."""
_MS_PER_S = 1_000


class Attempt:
    """One request from its question to its answer; it belongs to the event loop that starts it."""

    def __init__(
        self,
        engine: Engine,
        *,
        begin: Callable[[], tuple[Question, Round | None]],
        trail: Trail,
        workers: BlockingExecutor,
        is_watched: bool,
        is_patient: bool,
    ) -> None:
        self._engine = engine
        self._begin = begin
        self._trail = trail
        self._workers = workers
        self._is_watched = is_watched
        self._is_patient = is_patient
        self._lock = threading.Lock()
        self._given_up = threading.Event()
        self._begun: tuple[Question, Round | None] | None = None
        self._is_concluding = False
        self._answers: list[EvidenceResponse] = []
        """The answer without its receipt, then the answer with it."""
        self._working = asyncio.ensure_future(workers.run(self._work))

    async def begins(self, *, ends_ms: int) -> bool:
        """Wait for the understanding and the base's own search, until their time is over; tell whether it goes on to the answer."""
        await self._wait(None if self._is_patient else max(1.0, ends_ms - self._trail.elapsed_ms()))
        with self._lock:
            if not self._is_concluding:
                self._given_up.set()
            return self._is_concluding

    async def begun(self) -> tuple[Question, Round | None]:
        """Return the question, and whom it asks; one that took longer to understand than there was time to search is waited for."""
        if self._begun is None:
            await self._wait(None)
        if self._begun is None:
            raise AssertionError  # it either begins or raises
        return self._begun

    def go_on(self, question: Question, found: Found, asking: Round | None) -> None:
        """Take what was found elsewhere to the answer: here where that is soon done, else on a thread."""
        if self._engine.waits_for_nothing(question) and _is_little(question.inputs.replies):
            self._conclude(question, found, asking)
        else:
            self._working = asyncio.ensure_future(self._workers.run(partial(self._conclude, question, found, asking)))

    async def answer(self) -> EvidenceResponse:
        """Return the answer with its receipt; without one when the disk takes longer for it than there is time."""
        await self._wait(None if self._is_patient else max(0.0, self._trail.left_ms()))
        if not self._answers:
            await self._wait(None)
        answer = self._answers[-1]
        return answer if self._working.done() else msgspec.structs.replace(answer, latency_ms=self._trail.elapsed_ms())

    def _work(self) -> None:
        """Understand the question, and answer it unless somebody outside is asked, somebody watches, or nobody waits any more."""
        question, asking = self._begin()
        with self._lock:
            self._begun = question, asking
            if self._given_up.is_set() or self._is_watched or asking is not None:
                return
            self._engine.mark_sources(question, (), calls=0, trail=self._trail)
        searched = self._engine.search(question)
        with self._lock:
            if self._given_up.is_set():
                return
            self._is_concluding = True
        self._engine.mark_search(searched, self._trail)
        self._conclude(searched.question, searched.found, None)

    def _conclude(self, question: Question, found: Found, asking: Round | None) -> None:
        self._engine.conclude_into(self._answers, question, found, asking, self._trail)

    async def _wait(self, max_ms: float | None) -> None:
        """Wait for the thread, no longer than that, and raise what it raised; whoever stops waiting does not stop it."""
        if not self._working.done():
            try:
                await asyncio.wait({self._working}, timeout=None if max_ms is None else max_ms / _MS_PER_S)
            finally:
                if not self._working.done():
                    self._working.add_done_callback(look_away)
        if self._working.done():
            self._working.result()


def _is_little(replies: Sequence[SourceReply]) -> bool:
    candidates = [candidate for reply in replies for candidate in reply.candidates]
    return len(candidates) <= MAX_CANDIDATES and sum([len(candidate.content) for candidate in candidates]) <= MAX_CHARS


# --- gathering ---
# Step 6 for one request: the base's own search and the sources outside, side by side, until the time for searching is over.

TOO_SLOW = "the search took longer than its share of the deadline"


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
