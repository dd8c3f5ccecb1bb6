"""A request on a worker's thread: where nobody outside is asked, it goes there from its question to its answer in one piece of work.

Handing work to a thread and back costs more than most of the steps. So what sources said goes to the answer where it is, on the event
loop, as long as that waits for nothing and takes no longer than a few handings over. Whoever waits can give up the search meanwhile; the
thread finds that out by itself when it has searched, and leaves the answer to the one who waits.
"""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.engine.gathering import look_away

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evidentia.contracts.evidence import EvidenceResponse
    from evidentia.contracts.ports import BlockingExecutor
    from evidentia.contracts.retrieval import SourceReply
    from evidentia.engine.federation import Round
    from evidentia.engine.legs import Found
    from evidentia.engine.pipeline import Engine
    from evidentia.engine.question import Question
    from evidentia.engine.trail import Trail

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
