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
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from evidentia.contracts.errors import SearchTimedOutError
from evidentia.contracts.evidence import EvidenceRequest, EvidenceResponse, ProvisionalFragments, SourceFinished, StreamEvent
from evidentia.contracts.vocabulary import OnTimeout
from evidentia.engine.external_candidates import coverage_of
from evidentia.engine.result_hashes import sealed
from evidentia.engine.stage_log import StageLog, build_trace, coarse, told
from evidentia.federation.deadline import Stages
from evidentia.federation.federated_search import EarlyStop, PreparedRound, RoundReplies
from evidentia.foundation.offload import abandonable

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from evidentia.contracts.access import Principal
    from evidentia.contracts.ports import BlockingExecutor
    from evidentia.contracts.retrieval import SourceReply
    from evidentia.engine.pipeline import Answered, Engine, OwnSearch, Prepared, Searched
    from evidentia.engine.question import Question

RECEIPT_IS_LATE: Final = "receipt: it was not on disk when the time was up, so the answer goes without one"
GRACE_MS: Final = 5
"""How long an answer that is being put together is waited for when the deadline is over."""
MAX_CANDIDATES: Final = 200
MAX_CHARS: Final = 100_000
"""What sources said is only taken to its answer on the event loop when it is no more than this: others wait there for their turn."""
NO_REPLIES: Final = RoundReplies()
_MS_PER_S = 1_000


class _Asked(NamedTuple):
    """A request as it is taken through the steps; without a deadline it is waited for, however long the base takes."""

    request: EvidenceRequest
    principal: Principal
    log: StageLog
    has_deadline: bool

    @property
    def stages(self) -> Stages:
        """Return the shares of its deadline."""
        return Stages(self.request.latency_deadline_ms if self.has_deadline else 0)

    def left_ms(self, ends_ms: float) -> float | None:
        """Return how much is left of a time that ends so many milliseconds after the request began; None for no end."""
        return max(0.0, ends_ms - self.log.elapsed_ms()) if self.has_deadline else None


class RetrievalTask:
    """Takes one request through the steps of an engine, in time. It belongs to the event loop that runs it.

    `prefetch` asks every source anew and has what they say kept until it changes. `no_deadline` waits for the base itself, however
    long it takes. `watch` is told of every source, and what the answer would be by then. `remarks` are what the answer says of itself.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        executor: BlockingExecutor,
        watch: Callable[[StreamEvent], None] | None = None,
        prefetch: bool = False,
        no_deadline: bool = False,
        remarks: Sequence[str] = (),
    ) -> None:
        self._engine = engine
        self._executor = executor
        self._watch = watch
        self._remarks = remarks
        self._prefetch = prefetch
        self._no_deadline = no_deadline
        self._lock = threading.Lock()
        """Held while either side says who makes the answer: the thread that searches, or the event loop that has given it up."""
        self._given_up = threading.Event()
        self._is_concluding = False
        self._prepared: Prepared | None = None
        self._as_written: tuple[OwnSearch, StageLog] | None = None
        """What the second attempt found, with its log."""
        self._answer: EvidenceResponse | None = None
        """What can be handed out by now: the answer without its receipt, later the answer with it."""
        self._question: Question | None = None
        self._stages: Mapping[str, float] = {}

    async def run(self, request: EvidenceRequest, *, principal: Principal) -> EvidenceResponse:
        """Return the answer. What takes longer than its share of the deadline takes no part in it, and the answer says so.

        Whoever stops waiting stops the work: no step begins after that, sources' calls are cancelled, and nothing is written.
        """
        asked = self._asked(request, principal)
        try:
            work = asyncio.ensure_future(self._executor.run(partial(self._prepare_and_answer, asked)))
            await _wait(work, asked.left_ms(asked.stages.plain_begins_ms))
            is_done = await self._go_on(asked, work)
        except BaseException:
            asked.log.cancel()
            raise
        return self._handed_out(asked.log, is_done=is_done)

    def run_blocking(
        self, request: EvidenceRequest, *, principal: Principal, on_loop: Callable[[Coroutine[Any, Any, bool]], bool]
    ) -> EvidenceResponse:
        """Do what `run` does for a caller without an event loop; `on_loop` runs what needs one, such as asking sources."""
        asked = self._asked(request, principal)
        try:
            work = self._executor.submit(partial(self._prepare_and_answer, asked))
            _block(work, asked.left_ms(asked.stages.plain_begins_ms))
            is_done = (work.done() and self._answer is not None) or on_loop(self._go_on_beside(asked, work))
        except BaseException:
            asked.log.cancel()
            raise
        return self._handed_out(asked.log, is_done=is_done)

    def _asked(self, request: EvidenceRequest, principal: Principal) -> _Asked:
        no_deadline = self._no_deadline or request.on_timeout == OnTimeout.WAIT
        # A deadline that is no number is refused by the first step.
        has_deadline = not (no_deadline or not isinstance(request.latency_deadline_ms, int))
        log = StageLog(self._engine.clock, deadline_ms=request.latency_deadline_ms, no_deadline=no_deadline, remarks=self._remarks)
        return _Asked(request, principal, log, has_deadline=has_deadline)

    async def _go_on_beside(self, asked: _Asked, work: futures.Future[None]) -> bool:
        return await self._go_on(asked, asyncio.wrap_future(work))

    async def _go_on(self, asked: _Asked, work: asyncio.Future[None]) -> bool:
        """Wait for the answer, and tell whether all that belongs to it was done in time, too.

        1. Where the thread is still at it, have the words searched as they are written, beside.
        2. Once the time to search is over, go on with what there is, or with what comes first.
        3. Once the deadline is over, answer without evidence.
        """
        plain: asyncio.Future[None] | None = None
        if not work.done() and asked.has_deadline and (self._prepared is None or self._prepared.question.uses_vectors):
            plain = asyncio.ensure_future(self._executor.run(partial(self._search_as_written, asked)))
            plain.add_done_callback(discard_exception)
        if not work.done():
            await _wait(work, asked.left_ms(asked.stages.fan_out_ends_ms))
        if not work.done() and self._as_written is None and not self._is_concluding:
            # Evidence is worth more than the time of those who would work on it.
            searching = {each for each in (work, plain) if each is not None}
            left_s = (asked.left_ms(asked.stages.ends_ms("rerank")) or 0) / _MS_PER_S
            await asyncio.wait(searching, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
        if self._is_given_up():
            work = await self._answer_here(asked)
        await _wait(work, asked.left_ms(asked.log.deadline_ms))
        if self._answer is None and not work.done():  # evidence that is being put together is worth a moment
            await _wait(work, GRACE_MS)
        if self._answer is None:
            self._answer_unsearched(asked)
        return work.done()

    def _is_given_up(self) -> bool:
        """Tell whether the thread that searches is waited for no longer; from here on it does not begin to answer."""
        with self._lock:
            if not self._is_concluding:
                self._given_up.set()
        return self._given_up.is_set()

    def _handed_out(self, log: StageLog, *, is_done: bool) -> EvidenceResponse:
        if self._answer is None:
            raise AssertionError  # work that ends without an answer raises
        response = self._answer if is_done else msgspec.structs.replace(self._answer, latency_ms=log.elapsed_ms())
        response = response if response.response_hash else sealed(response)
        self._trace(response, log)
        return told(response, is_owners=self._question is not None and self._question.is_owners)

    def _prepare_and_answer(self, asked: _Asked) -> None:
        """On a thread: prepare, and answer too unless somebody outside is asked, somebody watches, or nobody waits for it any more."""
        request, principal, log, _ = asked
        with abandonable(lambda: log.is_cancelled):
            prepared = self._engine.prepare(request, principal=principal, log=log, prefetch=self._prefetch)
        with self._lock:
            self._prepared = prepared
            if self._given_up.is_set() or self._watch is not None or prepared.round is not None:
                return
        with abandonable(lambda: log.is_cancelled or self._given_up.is_set()):  # what is found after that takes no part
            own = self._engine.search_base(prepared.question)
        with self._lock:  # from here on the log is this thread's, or it must not be touched: the event loop goes on with it
            if self._given_up.is_set():
                return
            self._is_concluding = True
        self._finish(self._engine.gather(prepared.question, own, (), log), None, NO_REPLIES, log)

    def _search_as_written(self, asked: _Asked) -> None:
        """On another thread: search the words as they are written, which asks no model, no vector and nobody outside."""
        log = asked.log.beside()
        with abandonable(lambda: asked.log.is_cancelled):
            prepared = self._engine.prepare(asked.request, principal=asked.principal, log=log, is_live=False, as_written=True)
            self._as_written = (self._engine.search_base(prepared.question), log)

    async def _answer_here(self, asked: _Asked) -> asyncio.Future[None]:
        """Search where that is still to be done, and take what was found to the answer: here where that is soon done, else on a thread."""
        log, prepared, plain = asked.log, self._prepared, self._as_written
        heard, asked_outside = NO_REPLIES, None
        if prepared is not None and (prepared.round is not None or self._watch is not None):
            gathering = ScatterGather(
                self._engine, prepared, log=log, executor=self._executor, watch=self._watch, no_deadline=not asked.has_deadline
            )
            own, heard = await gathering.run()
            question, asked_outside = prepared.question, prepared.round
        elif plain is not None:
            own, log = plain
            question = own.question
        elif prepared is not None:
            own, question = None, prepared.question
        else:
            return _done()
        if own is None and question.plan.searched and asked.request.on_timeout == OnTimeout.REFUSE:
            raise SearchTimedOutError(asked.request.latency_deadline_ms)
        searched = self._engine.gather(question, own, heard.replies, log)
        finish = partial(self._finish, searched, asked_outside, heard, log)
        if not (self._engine.is_cpu_only(searched.question) and _is_little(heard.replies)):
            return asyncio.ensure_future(self._executor.run(finish))
        finish()
        return _done()

    def _answer_unsearched(self, asked: _Asked) -> None:
        """Answer without evidence: nobody came to an end in time. Whoever is still at it writes nothing down."""
        asked.log.cancel()
        if self._as_written is not None:
            self._as_written[1].cancel()
        if asked.request.on_timeout == OnTimeout.REFUSE:
            raise SearchTimedOutError(asked.request.latency_deadline_ms)
        plan = None if self._prepared is None else self._prepared.question.plan
        log = asked.log.beside()
        answered = self._engine.unsearched(asked.request, principal=asked.principal, plan=plan, log=log)
        self._question, self._stages = answered.question, log.latencies_ms
        self._answer = answered.response

    def _finish(self, searched: Searched, prepared_round: PreparedRound | None, heard: RoundReplies, log: StageLog) -> None:
        """Answer, write down what policies said, then the receipt, then what sources said: in this order.

        Decisions come first, because they may let the answer fail; the answer stands before its receipt is on disk, so that a slow
        disk does not hold it up; the cache comes last, because nobody waits for it.
        """
        answered = _conclude_while_wanted(self._engine, searched, log)
        self._question, self._stages = answered.question, log.latencies_ms
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
            stages=self._stages,
            notes=response.decisions,
        )
        self._engine.sink.record(trace)


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
        self._is_given_up = False
        """Whether the thread that searches the base is waited for no longer."""

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
        return EarlyStop(self._engine.federation.settings, limit=prepared.question.limit, known=prepared.round.known)

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
        searching = asyncio.ensure_future(self._executor.run(self._search_while_wanted))
        left_ms = self._log.left_until_ms(Stages(self._log.deadline_ms).ends_ms("rerank"))  # as long as nothing else is to be had
        try:
            await asyncio.wait({searching}, timeout=None if self._no_deadline else left_ms / _MS_PER_S)
        finally:
            if not searching.done():
                self._is_given_up = True
                searching.add_done_callback(discard_exception)
        return searching.result() if searching.done() else None

    def _search_while_wanted(self) -> OwnSearch:
        """On a thread: search the base as long as it is waited for."""
        with abandonable(lambda: self._is_given_up or self._log.is_cancelled):
            return self._engine.search_base(self._question)

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
            report = coverage_of(told)[source]
            self._watch(SourceFinished(source_id=source, report=report if self._question.is_owners else coarse(report)))
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
        answered = await self._executor.run(partial(_conclude_while_wanted, self._engine, quiet, self._provisional_log))
        if self._watch is not None:
            sources = sorted({*question.plan.searched, *(reply.source_id for reply in question.inputs.replies)})
            self._watch(ProvisionalFragments(fragments=answered.response.fragments, sources=tuple(sources)))


def _conclude_while_wanted(engine: Engine, searched: Searched, log: StageLog) -> Answered:
    with abandonable(lambda: log.is_cancelled):
        return engine.conclude(searched, log)


async def _wait(working: asyncio.Future[None], max_ms: float | None) -> None:
    """Wait for a thread, no longer than that, and raise what it raised; a thread that is not waited for any more ends by itself."""
    if not working.done():
        try:
            await asyncio.wait({working}, timeout=None if max_ms is None else max_ms / _MS_PER_S)
        finally:
            if not working.done():
                working.add_done_callback(discard_exception)
    if working.done():
        working.result()


def _done() -> asyncio.Future[None]:
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    done.set_result(None)
    return done


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
