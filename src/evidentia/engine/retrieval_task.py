"""A live request: where its steps run, how long they are waited for, and what stops them. The steps themselves know nothing of this.

Where nobody outside is asked, a request goes from its question to its answer in one piece of work on a thread: handing work over and
back costs more than most of the steps. What sources said goes to the answer where it is, on the event loop, as long as that waits for
nothing and takes no longer than a few handings over.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from concurrent import futures
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from evidentia.contracts.evidence import EvidenceRequest, EvidenceResponse, ProvisionalFragments, SourceFinished, StreamEvent
from evidentia.engine.external_candidates import coverage_of
from evidentia.engine.result_hashes import sealed
from evidentia.engine.stage_log import StageLog, build_trace
from evidentia.federation.deadline import Stages
from evidentia.federation.federated_search import EarlyStop, PreparedRound, RoundReplies
from evidentia.foundation.outbound_http import outbound_deadline

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from evidentia.contracts.access import Principal
    from evidentia.contracts.ports import BlockingExecutor
    from evidentia.contracts.retrieval import SourceReply
    from evidentia.engine.pipeline import Engine, OwnSearch, Prepared, Searched
    from evidentia.engine.question import Question

RECEIPT_IS_LATE: Final = "receipt: it was not on disk when the time was up, so the answer goes without one"
MAX_CANDIDATES: Final = 200
MAX_CHARS: Final = 100_000
"""What sources said is only taken to its answer on the event loop when it is no more than this: others wait there for their turn."""
NO_REPLIES: Final = RoundReplies()
_MS_PER_S = 1_000


class RetrievalTask:
    """Takes one request through the steps of an engine, in time. It belongs to the event loop that runs it.

    `prefetch` asks every source anew and has what they say kept until it changes. `no_deadline` waits for the base itself, however
    long it takes. `watch` is told of every source, and what the answer would be by then.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        executor: BlockingExecutor,
        watch: Callable[[StreamEvent], None] | None = None,
        prefetch: bool = False,
        no_deadline: bool = False,
    ) -> None:
        self._engine = engine
        self._executor = executor
        self._watch = watch
        self._prefetch = prefetch
        self._no_deadline = no_deadline
        self._lock = threading.Lock()
        """Held while either side says who makes the answer: the thread that searches, or the event loop that has given it up."""
        self._given_up = threading.Event()
        self._is_concluding = False
        self._prepared: Prepared | None = None
        self._answer: EvidenceResponse | None = None
        """What can be handed out by now: the answer without its receipt, later the answer with it."""
        self._question: Question | None = None

    async def run(self, request: EvidenceRequest, *, principal: Principal) -> EvidenceResponse:
        """Return the answer. What takes longer than its share of the deadline takes no part in it, and the answer says so.

        Whoever stops waiting stops the work: no step begins after that, sources' calls are cancelled, and nothing is written.
        """
        log = StageLog(self._engine.clock, deadline_ms=request.latency_deadline_ms)
        try:
            response = await self._run(request, principal=principal, log=log)
        except BaseException:
            log.cancel()
            raise
        self._trace(response, log)
        return response

    def run_blocking(
        self, request: EvidenceRequest, *, principal: Principal, on_loop: Callable[[Coroutine[Any, Any, bool]], bool]
    ) -> EvidenceResponse:
        """Do what `run` does for a caller without an event loop; `on_loop` runs what needs one, such as asking sources."""
        log = StageLog(self._engine.clock, deadline_ms=request.latency_deadline_ms)
        try:
            search_ms = self._search_ms(request, log)
            with outbound_deadline(None if search_ms is None else search_ms / _MS_PER_S):
                working = self._executor.submit(partial(self._prepare_and_answer, request, principal=principal, log=log))
            _block(working, search_ms)
            if self._is_given_up():
                if self._prepared is None:
                    _block(working, None)
                is_done = on_loop(self._answer_given_up(log))
            else:
                _block(working, self._left_ms(log))
                if self._answer is None:
                    _block(working, None)
                is_done = working.done()
        except BaseException:
            log.cancel()
            raise
        response = self._handed_out(log, is_done=is_done)
        self._trace(response, log)
        return response

    async def _run(self, request: EvidenceRequest, *, principal: Principal, log: StageLog) -> EvidenceResponse:
        work = partial(self._prepare_and_answer, request, principal=principal, log=log)
        search_ms = self._search_ms(request, log)
        # The executor hands the context on: an encoder behind an endpoint is not asked again once there is no time to search.
        with outbound_deadline(None if search_ms is None else search_ms / _MS_PER_S):
            working: asyncio.Future[None] = asyncio.ensure_future(self._executor.run(work))
        await self._wait(working, search_ms)
        if self._is_given_up():
            if self._prepared is None:  # it took longer to understand than there was time to search
                await self._wait(working, None)
            working = await self._answer_here(log)
        return self._handed_out(log, is_done=await self._has_ended(working, log))

    def _is_given_up(self) -> bool:
        """Tell whether the thread that searches is waited for no longer; from here on it does not begin to answer."""
        with self._lock:
            if not self._is_concluding:
                self._given_up.set()
        return self._given_up.is_set()

    async def _answer_given_up(self, log: StageLog) -> bool:
        return await self._has_ended(await self._answer_here(log), log)

    async def _has_ended(self, working: asyncio.Future[None], log: StageLog) -> bool:
        """Wait for the answer, and tell whether all that belongs to it was done in time, too."""
        await self._wait(working, self._left_ms(log))
        if self._answer is None:
            await self._wait(working, None)
        return working.done()

    def _left_ms(self, log: StageLog) -> float | None:
        return None if self._no_deadline else max(0.0, log.left_ms())

    def _handed_out(self, log: StageLog, *, is_done: bool) -> EvidenceResponse:
        if self._answer is None:
            raise AssertionError  # work that ends without an answer raises
        answer = self._answer if is_done else msgspec.structs.replace(self._answer, latency_ms=log.elapsed_ms())
        return answer if answer.response_hash else sealed(answer)

    def _search_ms(self, request: EvidenceRequest, log: StageLog) -> float | None:
        """Return how long the preparation and the base's own search may take; a deadline that is no number is refused by the first step."""
        if self._no_deadline or not isinstance(request.latency_deadline_ms, int):
            return None
        return max(1.0, Stages(request.latency_deadline_ms).fan_out_ends_ms - log.elapsed_ms())

    def _prepare_and_answer(self, request: EvidenceRequest, *, principal: Principal, log: StageLog) -> None:
        """On a thread: prepare, and answer too unless somebody outside is asked, somebody watches, or nobody waits for it any more."""
        prepared = self._engine.prepare(request, principal=principal, log=log, prefetch=self._prefetch)
        with self._lock:
            self._prepared = prepared
            if self._given_up.is_set() or self._watch is not None or prepared.round is not None:
                return
        own = self._engine.search_base(prepared.question)
        with self._lock:  # from here on the log is this thread's, or it must not be touched: the event loop goes on with it
            if self._given_up.is_set():
                return
            self._is_concluding = True
        self._finish(self._engine.gather(prepared.question, own, (), log), None, NO_REPLIES, log)

    async def _answer_here(self, log: StageLog) -> asyncio.Future[None]:
        """Search where that is still to be done, and take what was found to the answer: here where that is soon done, else on a thread."""
        if self._prepared is None:
            raise AssertionError  # preparing either ends or raises
        question, prepared_round = self._prepared
        own, heard = None, NO_REPLIES
        if prepared_round is not None or self._watch is not None:
            gathering = ScatterGather(
                self._engine, self._prepared, log=log, executor=self._executor, watch=self._watch, no_deadline=self._no_deadline
            )
            own, heard = await gathering.run()
        searched = self._engine.gather(question, own, heard.replies, log)
        finish = partial(self._finish, searched, prepared_round, heard, log)
        if not (self._engine.is_cpu_only(searched.question) and _is_little(heard.replies)):
            return asyncio.ensure_future(self._executor.run(finish))
        finish()
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    def _finish(self, searched: Searched, prepared_round: PreparedRound | None, heard: RoundReplies, log: StageLog) -> None:
        """Answer, write down what policies said, then the receipt, then what sources said: in this order.

        Decisions come first, because they may let the answer fail; the answer stands before its receipt is on disk, so that a slow
        disk does not hold it up; the cache comes last, because nobody waits for it.
        """
        answered = self._engine.conclude(searched, log)
        self._question = answered.question
        log.check_cancelled()  # what nobody waits for is not written down
        self._engine.write_decisions(answered)
        missing = (RECEIPT_IS_LATE,) if answered.question.request.receipt else ()
        self._answer = msgspec.structs.replace(answered.response, degraded=(*answered.response.degraded, *missing))
        self._answer = self._engine.write_receipt(answered, log)
        if prepared_round is not None:
            self._engine.federation.keep(prepared_round, heard)

    def _trace(self, response: EvidenceResponse, log: StageLog) -> None:
        if self._engine.sink is None or self._question is None:
            return
        question = self._question
        trace = build_trace(
            response=response,
            request=question.request,
            fingerprint=question.scope.fingerprint,
            replies=question.inputs.replies,
            started_at=log.started_at,
            stages=response.stage_latencies_ms,
            notes=response.decisions,
        )
        self._engine.sink.record(trace)

    async def _wait(self, working: asyncio.Future[None], max_ms: float | None) -> None:
        """Wait for a thread, no longer than that, and raise what it raised; a thread that is not waited for any more ends by itself."""
        if not working.done():
            try:
                await asyncio.wait({working}, timeout=None if max_ms is None else max_ms / _MS_PER_S)
            finally:
                if not working.done():
                    working.add_done_callback(discard_exception)
        if working.done():
            working.result()


class ScatterGather:
    """Step 6 of one request: the base's own search and the sources outside, side by side, until the time for searching is over."""

    def __init__(
        self,
        engine: Engine,
        prepared: Prepared,
        *,
        log: StageLog,
        executor: BlockingExecutor,
        watch: Callable[[StreamEvent], None] | None,
        no_deadline: bool,
    ) -> None:
        self._engine = engine
        self._question, self._round = prepared
        self._log = log
        self._executor = executor
        self._watch = watch
        self._no_deadline = no_deadline
        self._own: OwnSearch | None = None
        self._early_stop = self._early_stop_of(prepared)
        self._replies: list[SourceReply] = []
        self._awaited = Counter(self._round.sources if self._round is not None else ())
        """The sources outside the base of which there will be a reply, with how many."""
        self._provisional: asyncio.Task[None] | None = None
        self._provisional_log = self._other_log()

    async def run(self) -> tuple[OwnSearch | None, RoundReplies]:
        """Return what the base itself holds, None where that took too long, and what others said."""
        try:
            heard = await (self._side_by_side() if self._question.plan.searched else self._outside_alone())
        finally:
            if self._provisional is not None:
                self._provisional.cancel()
                self._provisional_log.cancel()
        return self._own, heard

    def _early_stop_of(self, prepared: Prepared) -> EarlyStop | None:
        request = prepared.question.request
        if not request.early_stop or prepared.round is None:
            return None
        return EarlyStop(self._engine.federation.settings, limit=request.limit, known=prepared.round.known)

    async def _side_by_side(self) -> RoundReplies:
        """Ask the sources outside while the base is searched."""
        asking = None if self._round is None else asyncio.ensure_future(self._ask(self._round))
        try:
            self._found_own(await self._search_base())
            return NO_REPLIES if asking is None else await asking
        finally:
            if asking is not None:
                asking.cancel()

    async def _outside_alone(self) -> RoundReplies:
        """Ask the sources outside where nothing of the base is searched, which takes no time and so no task beside."""
        self._found_own(self._engine.search_base(self._question))
        return NO_REPLIES if self._round is None else await self._ask(self._round)

    async def _search_base(self) -> OwnSearch | None:
        """Search the base; None when that takes longer than there is time for: its thread is not waited for, and finds nobody there."""
        searching = asyncio.ensure_future(self._executor.run(partial(self._engine.search_base, self._question)))
        left_ms = max(1.0, Stages(self._question.request.latency_deadline_ms).fan_out_ends_ms - self._log.elapsed_ms())
        try:
            await asyncio.wait({searching}, timeout=None if self._no_deadline else left_ms / _MS_PER_S)
        finally:
            if not searching.done():
                searching.add_done_callback(discard_exception)
        return searching.result() if searching.done() else None

    async def _ask(self, prepared_round: PreparedRound) -> RoundReplies:
        return await self._engine.federation.ask(
            prepared_round,
            started_ns=self._log.started_ns,
            early_stop=self._early_stop,
            on_finished=self._finished if self._watch is not None else None,
        )

    def _found_own(self, own: OwnSearch | None) -> None:
        """Take note of what the base itself holds, and tell those who wait for it."""
        self._own = own
        if self._early_stop is not None and own is not None:
            self._early_stop.own = self._engine.confidences(own)
        if self._watch is None:
            return
        for source, report in self._engine.coverage(self._gathered(()), elapsed_ms=self._log.elapsed_ms()).items():
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

    def _gathered(self, replies: Sequence[SourceReply]) -> Searched:
        """Return what there is by now, told to nobody's log."""
        return self._engine.gather(self._question, self._own, replies, self._other_log())

    def _other_log(self) -> StageLog:
        return StageLog(self._engine.clock, deadline_ms=self._question.request.latency_deadline_ms)

    def _offer(self) -> None:
        """Work out what the answer would be now, unless that is already being done."""
        if self._own is not None and (self._provisional is None or self._provisional.done()):
            self._provisional = asyncio.ensure_future(self._provide())

    async def _provide(self) -> None:
        searched = self._gathered(tuple(self._replies))
        question = searched.question
        quiet = searched._replace(question=question._replace(request=msgspec.structs.replace(question.request, receipt=False)))
        self._provisional_log = self._other_log()
        answered = await self._executor.run(partial(self._engine.conclude, quiet, self._provisional_log))
        if self._watch is not None:
            sources = sorted({*question.plan.searched, *(reply.source_id for reply in question.inputs.replies)})
            self._watch(ProvisionalFragments(fragments=answered.response.fragments, sources=tuple(sources)))


def _block(working: futures.Future[None], max_ms: float | None) -> None:
    """Wait for a thread, no longer than that, and raise what it raised; what it raises later nobody hears."""
    if working.done() or futures.wait((working,), None if max_ms is None else max_ms / _MS_PER_S).done:
        working.result()


def discard_exception(working: asyncio.Future[Any]) -> None:  # Any: whatever it was to return
    """Take note of how a piece of work ended that nobody waits for any more."""
    if not working.cancelled():
        working.exception()


def _is_little(replies: Sequence[SourceReply]) -> bool:
    candidates = [candidate for reply in replies for candidate in reply.candidates]
    return len(candidates) <= MAX_CANDIDATES and sum([len(candidate.content) for candidate in candidates]) <= MAX_CHARS
