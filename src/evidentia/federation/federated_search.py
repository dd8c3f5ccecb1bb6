"""The sources outside the base: which of them can be asked now, what was kept of what they said, and what they say in time.

What comes in is plain data about a question (`SourceQuestion`), what goes out is plain data about sources (`SourceReply`). Nothing here
knows how a base searches itself or how an answer is made.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from evidentia.contracts.evidence import CoverageReport, EvidenceRequest
from evidentia.contracts.ids import SourceId
from evidentia.contracts.predicates import And, Matcher, matcher_of
from evidentia.contracts.retrieval import ExternalCandidate, SourceAsk, SourceReply, SourceTrial
from evidentia.contracts.vocabulary import BreakerState, CacheTier, ConnectionKind, CoverageState, QueryCapability
from evidentia.federation.cache_keys import CacheKey
from evidentia.federation.fanout import FanOut
from evidentia.federation.source_calls import SourceCall, age_s, newest_of
from evidentia.federation.source_plan import PlannedCall, SourceFacts, SourcePlan, left_out, weight_milli
from evidentia.foundation.rate_limit import Rate, RateLimiter
from evidentia.policy.access import is_allowed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from evidentia.contracts.access import AccessRule
    from evidentia.contracts.ports import BlockingExecutor, BlockingRetriever, Clock, Retriever, SourceDirectory
    from evidentia.contracts.search import AccessScope, DenseQuery
    from evidentia.contracts.settings import FanoutSettings, SourceSettings
    from evidentia.contracts.sources import SourceDescriptor
    from evidentia.federation.candidate_cache import CacheHit, CandidateCache, RequestCache
    from evidentia.federation.source_health import HealthBook

PRIOR = 0.5
"""How likely what comes from outside is to be relevant where its source does not say."""
NOT_ATTACHED = "nothing is attached in this process that could ask it"
RATE_USED_UP = "its rate limit is used up"
ASKED_ALREADY = "another part of the question asks the same"
_MILLI = 1_000
_MILLION = 1_000_000
_NO_ANSWER = (CoverageState.TIMED_OUT, CoverageState.FAILED, CoverageState.BREAKER_OPEN, CoverageState.SKIPPED)


class SourceQuestion(NamedTuple):
    """A checked request as far as sources are concerned: who asks, whom the plan names, and how many candidates are wanted of each."""

    request: EvidenceRequest
    scope: AccessScope
    plan: SourcePlan
    descriptors: Mapping[SourceId, SourceDescriptor]
    whole: str
    """The question as a whole, as a source is asked it."""
    vector: DenseQuery | None
    """Of the question as a whole, where vectors take part; questions that are alike are found by it."""
    wanted: int


class PreparedCall(NamedTuple):
    """A call that is about to be made, and the key under which its answer is cached."""

    call: SourceCall
    key: CacheKey


class PreparedRound(NamedTuple):
    """One question's way to the sources outside: what is known of them already, and the calls that are left to make."""

    question: SourceQuestion
    cache: RequestCache
    known: tuple[SourceReply, ...]
    calls: tuple[PreparedCall, ...]
    repeats: tuple[tuple[PreparedCall, int], ...]
    """Calls that are not made, because a source is asked the same for another part, with that part: its reply serves both."""
    prefetch: bool

    @property
    def sources(self) -> list[SourceId]:
        """Return the sources of which there will be a reply, each as often as there will be one."""
        calls = (*self.calls, *(repeat for repeat, _ in self.repeats))
        return [*(reply.source_id for reply in self.known), *(each.call.descriptor.source_id for each in calls)]


class CacheableReply(NamedTuple):
    """What a source said during a round, and when: worth keeping for the next one who asks."""

    key: CacheKey
    candidates: tuple[ExternalCandidate, ...]
    retrieved_at: datetime


class RoundReplies(NamedTuple):
    """What every source of a round did, those that were left out included, and which of it is to be cached."""

    replies: tuple[SourceReply, ...] = ()
    cacheable: tuple[CacheableReply, ...] = ()


class Federation:
    """Asks sources for one base. Thread safe; `ask` belongs to the event loop that calls it."""

    def __init__(
        self,
        directory: SourceDirectory,
        *,
        cache: CandidateCache,
        health: HealthBook,
        clock: Clock,
        settings: SourceSettings,
        fanout: FanoutSettings,
        workers: BlockingExecutor | None = None,
    ) -> None:
        self._directory = directory
        self.cache = cache
        self.health = health
        self._workers = workers
        self._clock = clock
        self._settings = settings
        self._once = msgspec.structs.replace(fanout, background_ms=0)
        self._rates = RateLimiter[SourceId](clock)  # it counts the calls of this process alone
        self._fanout = FanOut(clock=clock, settings=fanout, limits=settings, record=health.record, on_late=self._keep_late)

    @property
    def writes_behind(self) -> bool:
        """Tell whether what sources said is written behind the answer's back, which takes somebody who writes."""
        return self._workers is not None

    @property
    def settings(self) -> SourceSettings:
        """Return what limits the sources."""
        return self._settings

    def breaker(self, source_id: SourceId) -> BreakerState:
        """Return whether a source is being asked at present."""
        return self._fanout.breaker(source_id)

    def facts(self, descriptors: Mapping[SourceId, SourceDescriptor]) -> list[SourceFacts]:
        """Return what a plan has to know of every source outside the base."""
        return [self._facts(descriptor) for descriptor in descriptors.values() if not descriptor.is_own]

    def prepare(self, question: SourceQuestion, *, prefetch: bool = False) -> PreparedRound | None:
        """Look in the cache, and return what is left to ask; None when a question concerns no source outside the base.

        A question that is asked ahead of time uses nothing that was kept.
        """
        not_planned = _not_planned(question)
        if not question.plan.calls and not not_planned:
            return None
        with self.cache.batch_reads():
            return self._prepare(question, not_planned, prefetch=prefetch)

    def _prepare(
        self, question: SourceQuestion, not_planned: Sequence[tuple[SourceDescriptor, CoverageReport]], *, prefetch: bool
    ) -> PreparedRound:
        cache = self.cache.for_request()
        known = [self._not_asked(question, descriptor, report, cache) for descriptor, report in not_planned]
        calls: list[PreparedCall] = []
        repeats: list[tuple[PreparedCall, int]] = []
        parts: dict[tuple[SourceId, str, tuple[QueryCapability, ...]], int] = {}
        access = CandidateAccess(question.scope)
        prepared = [self._prepared(question, planned, access) for planned in question.plan.calls]
        if len(prepared) > 1 and not prefetch:
            cache.look_up([each.key for each in prepared])
        for each in prepared:
            query = each.call.ask.query
            same = (each.call.descriptor.source_id, query.text, query.required_capabilities)
            if same in parts:
                repeats.append((each, parts[same]))
                continue
            found = (None if prefetch else self._cached_reply(each, cache.get(each.key))) or self._refused(each)
            if found is None:
                parts[same] = each.call.part
                calls.append(each)
            else:
                known.append(found)
        return PreparedRound(question, cache, tuple(known), tuple(calls), tuple(repeats), prefetch)

    async def ask(
        self,
        prepared: PreparedRound,
        *,
        started_ns: int,
        early_stop: EarlyStop | None = None,
        on_finished: Callable[[SourceReply], None] | None = None,
    ) -> RoundReplies:
        """Return what every source outside did with a question; never raises for any of them. Whoever cancels this cancels the calls."""
        settled: dict[tuple[SourceId, int], SourceReply] = {}
        cacheable: list[CacheableReply] = []
        by_part = {(each.call.descriptor.source_id, each.call.part): each for each in prepared.calls}

        def settle(reply: SourceReply) -> SourceReply:
            key = (reply.source_id, reply.part)
            if key not in settled:
                if reply.report.state is CoverageState.SEARCHED:
                    cacheable.append(self._heard(by_part[key], reply))
                    settled[key] = reply
                else:
                    is_enough = early_stop is not None and bool(early_stop.reason)
                    settled[key] = self._settled(prepared.cache, by_part[key], reply, is_enough=is_enough)
            return settled[key]

        def finished(reply: SourceReply) -> None:
            if on_finished is not None:
                on_finished(settle(reply))

        if on_finished is not None:
            for reply in prepared.known:
                on_finished(reply)
        calls = [each.call for each in prepared.calls]
        answered = await self._fanout.run(calls, started_ns=started_ns, enough=early_stop, on_finished=finished if on_finished else None)
        replies = [*prepared.known, *map(settle, answered)]
        repeated = [_repeated(repeat.call, settled[repeat.call.descriptor.source_id, part]) for repeat, part in prepared.repeats]
        if on_finished is not None:
            for reply in repeated:
                on_finished(reply)
        return RoundReplies(tuple(sorted([*replies, *repeated], key=attrgetter("source_id", "part"))), tuple(cacheable))

    async def try_one(self, descriptor: SourceDescriptor, ask: SourceAsk, *, scope: AccessScope) -> SourceTrial:
        """Ask one source by itself, whatever its breaker says; nothing of it is kept."""
        retriever = self._directory.retriever(descriptor)
        if retriever is None:
            return SourceTrial(source_id=descriptor.source_id, report=left_out(NOT_ATTACHED), candidates=())
        admits = CandidateAccess(scope).admits
        call = SourceCall(descriptor=descriptor, retriever=retriever, ask=ask, wait_ms=ask.budget_ms, admits=admits)
        trial = FanOut(clock=self._clock, settings=self._once, limits=self._settings, record=self.health.record, on_late=_ignore)
        try:
            (reply,) = await trial.run([call], started_ns=self._clock.elapsed_ns())
        finally:
            await trial.close()
        return SourceTrial(source_id=descriptor.source_id, report=reply.report, candidates=reply.candidates)

    def keep(self, prepared: PreparedRound, heard: RoundReplies) -> None:
        """Cache what sources said for the next one who asks, and write down what was measured when that is due."""
        if heard.cacheable:
            prepared.cache.put_all(heard.cacheable, precomputed=prepared.prefetch, is_soon=self.writes_behind)
        self.health.flush(only_when_due=True)

    def changed(self, source_id: SourceId | None = None) -> int:
        """Drop what was kept of a source whose data has changed, or of all of them."""
        return self.cache.invalidate(source_id)

    async def close(self) -> None:
        """Stop what still goes on in the background, and write down what was measured."""
        await self._fanout.close()
        if self._workers is None:
            self._write_all()
        else:
            await self._workers.run(self._write_all)

    def _write_all(self) -> None:
        self.cache.close()
        self.health.flush()

    def _facts(self, descriptor: SourceDescriptor) -> SourceFacts:
        source = descriptor.source_id
        outlook = self.health.outlook(source)
        return SourceFacts(
            descriptor=descriptor,
            is_attached=self._directory.retriever(descriptor) is not None,
            breaker=self._fanout.breaker(source),
            has_rate=descriptor.max_qps is None or not self._rates.wait_ns(source, _rate_of(descriptor.max_qps)),
            p99_ms=outlook.p99_ms,
            age_s=outlook.age_s,
        )

    def _prepared(self, question: SourceQuestion, planned: PlannedCall, access: CandidateAccess) -> PreparedCall:
        descriptor = question.descriptors[planned.source_id]
        retriever = self._directory.retriever(descriptor)
        if retriever is None:
            raise AssertionError  # only what is attached is planned
        part = question.plan.parts[planned.part]
        ask = self._source_ask(question, part_number=planned.part, wait_ms=planned.wait_ms)
        key = self._cache_key(question, descriptor, ask, retriever)
        call = SourceCall(
            descriptor=descriptor,
            retriever=retriever,
            ask=ask,
            wait_ms=planned.wait_ms,
            part=planned.part,
            part_weight_milli=weight_milli(part),
            admits=access.admits,
            token=key,
        )
        return PreparedCall(call, key)

    def _source_ask(self, question: SourceQuestion, *, part_number: int, wait_ms: int) -> SourceAsk:
        request = question.request
        if request.principal is None or request.as_of is None:
            raise AssertionError  # checking has filled both in
        return SourceAsk(
            query=question.plan.parts[part_number],
            principal=request.principal,
            limit=min(self._settings.most_candidates, question.wanted),
            budget_ms=wait_ms,
            as_of=request.as_of,
            agent_name=request.agent_name or "",
            session=request.session_context,
            time_window=request.time_window,
        )

    def _cache_key(
        self, question: SourceQuestion, descriptor: SourceDescriptor, ask: SourceAsk, retriever: Retriever | BlockingRetriever | None
    ) -> CacheKey:
        vector = question.vector if ask.query.text == question.whole else None
        return CacheKey(
            descriptor=descriptor,
            data_version=_data_version(descriptor, retriever),
            ask=ask,
            fingerprint=question.scope.fingerprint,
            vector=vector.vector if vector else None,
            vector_space=f"{vector.identity.name} {vector.identity.model}" if vector else "",
            max_staleness_ms=question.request.max_staleness_ms,
            generation=self.cache.generation(descriptor.source_id),
        )

    def _refused(self, prepared: PreparedCall) -> SourceReply | None:
        """Return why a source is not asked at the last moment: others may have used up its rate since the plan was made."""
        descriptor = prepared.call.descriptor
        if descriptor.max_qps is None or not self._rates.take(descriptor.source_id, _rate_of(descriptor.max_qps)):
            return None
        return _reply(descriptor, left_out(RATE_USED_UP), part=prepared.call.part, part_weight_milli=prepared.call.part_weight_milli)

    def _cached_reply(self, prepared: PreparedCall, hit: CacheHit | None) -> SourceReply | None:
        if hit is None:
            return None
        state = CoverageState.STALE if hit.is_stale else CoverageState.CACHED
        why = "found for a similar question, " if hit.is_reused else ""
        report = CoverageReport(
            state=state,
            reason=f"{why}kept for {hit.age_ms / _MILLI:.0f} s",
            candidates=len(hit.candidates),
            data_age_s=age_s(prepared.call.ask, hit.candidates),
            tier=hit.tier,
        )
        call = prepared.call
        reply = _reply(call.descriptor, report, part=call.part, part_weight_milli=call.part_weight_milli)
        return msgspec.structs.replace(reply, candidates=hit.candidates, tier=hit.tier, is_reused=hit.is_reused)

    def _not_asked(
        self, question: SourceQuestion, descriptor: SourceDescriptor, report: CoverageReport, cache: RequestCache
    ) -> SourceReply:
        """Return the account of a source that was left out; where only its breaker kept it out, a stale answer stands in."""
        reply = _reply(descriptor, report)
        if report.state is not CoverageState.BREAKER_OPEN or not question.plan.parts:
            return reply
        ask = self._source_ask(question, part_number=0, wait_ms=1)
        retriever = self._directory.retriever(descriptor)
        if retriever is None:
            return reply
        call = SourceCall(descriptor=descriptor, retriever=retriever, ask=ask, wait_ms=1)
        return self._stale_reply(PreparedCall(call, self._cache_key(question, descriptor, ask, retriever)), reply, cache)

    def _heard(self, prepared: PreparedCall, reply: SourceReply) -> CacheableReply:
        """Return what a source said with the moment at which it did, and take note of how new it is."""
        now = self._clock.now()
        self.health.saw(reply.source_id, newest_of(reply.candidates), now)
        return CacheableReply(prepared.key, reply.candidates, now)

    def _settled(self, cache: RequestCache, prepared: PreparedCall, reply: SourceReply, *, is_enough: bool) -> SourceReply:
        """Return what became of a source that gave no whole answer; where it gave none at all, what was kept of it before."""
        if reply.candidates or reply.report.state not in _NO_ANSWER:
            return reply
        if is_enough and reply.report.state is CoverageState.SKIPPED:
            return reply  # it was given up because nothing more is needed
        return self._stale_reply(prepared, reply, cache)

    def _stale_reply(self, prepared: PreparedCall, reply: SourceReply, cache: RequestCache) -> SourceReply:
        """Return what was kept of a source that gives no answer, past its time if need be (stale-if-error); else its own reply."""
        found = self._cached_reply(prepared, cache.get_stale(prepared.key))
        if found is None:
            return reply
        reason = f"{reply.report.reason}; what was said before stands in, {found.report.reason}"
        report = msgspec.structs.replace(
            found.report, state=CoverageState.STALE, reason=reason, elapsed_ms=reply.report.elapsed_ms, faults=reply.report.faults
        )
        return msgspec.structs.replace(found, report=report, asked_ms=reply.asked_ms)

    def _keep_late(self, call: SourceCall, reply: SourceReply) -> None:
        """Keep an answer that came after its caller had left."""
        if not isinstance(call.token, CacheKey) or reply.report.state is not CoverageState.SEARCHED:
            return
        self.cache.put(call.token, reply.candidates, retrieved_at=self._clock.now(), is_soon=self.writes_behind)


class EarlyStop:
    """Decides for one request, each time a source has finished, whether the others are still waited for.

    Enough is when every fragment of the answer is likely enough to be relevant, or when the last source added next to nothing.
    Both depend on who answers first, so a request has to ask for it, and the answer says when it happened.
    """

    def __init__(self, settings: SourceSettings, *, limit: int, known: Sequence[SourceReply] = ()) -> None:
        self._settings = settings
        self._limit = limit
        self._known = known
        self._sum_before: int | None = None
        self._answered = 0
        self.own: Sequence[float] = ()
        """How likely the best of the base's own are to be relevant; empty while it is being searched."""
        self.reason = ""
        """Why no more was waited for; empty while it is."""

    def __call__(self, replies: Sequence[SourceReply]) -> str:
        """Return why no more is waited for; empty to go on."""
        self.reason = self._decide(replies)
        return self.reason

    def _decide(self, replies: Sequence[SourceReply]) -> str:
        best = self._best(replies)
        if len(best) == self._limit and best[-1] >= self._settings.stop_confidence_milli * _MILLI:
            return (
                f"early stop: {self._limit} fragments are at least {self._settings.stop_confidence_milli / _MILLI:g} likely to be relevant"
            )
        answered = sum(1 for reply in replies if reply.report.state is CoverageState.SEARCHED)
        if not best or answered == self._answered:
            return ""  # a source that failed has added nothing, and says nothing of the others
        self._answered = answered
        before, self._sum_before = self._sum_before, sum(best)
        if before is not None and self._sum_before - before < self._settings.stop_gain_milli * _MILLI:
            return f"early stop: the last source added less than {self._settings.stop_gain_milli / _MILLI:g}"
        return ""

    def _best(self, replies: Sequence[SourceReply]) -> list[int]:
        """Return the probabilities of the best fragments so far, in millionths, highest first."""
        own = [round(each * _MILLION) for each in self.own]
        told = [
            round(PRIOR * _MILLION) if each.confidence_millionths is None else each.confidence_millionths
            for reply in (*self._known, *replies)
            for each in reply.candidates
        ]
        return sorted([*own, *told], reverse=True)[: self._limit]


class CandidateAccess:
    """Whether a caller may see what comes from outside, by the rule it came with and by the settings' own."""

    def __init__(self, scope: AccessScope) -> None:
        self._scope = scope
        self._rules: Matcher | None = matcher_of(And(scope.rules)) if scope.rules else None
        self._decided: tuple[AccessRule | None, bool] = (None, False)
        """The rule that was judged last, and how: most candidates of a reply come with one and the same."""

    def admits(self, candidate: ExternalCandidate) -> bool:
        """Tell whether the caller may see a candidate."""
        # Read as one tuple: bulkheads take replies in on several threads, and a rule must not meet another one's verdict.
        rule, is_admitted = self._decided
        if rule is not candidate.access:
            is_admitted = is_allowed(candidate.access, self._scope)
            self._decided = (candidate.access, is_admitted)
        return is_admitted and (self._rules is None or self._rules(filter_record(candidate)))


def filter_record(candidate: ExternalCandidate) -> Mapping[str, object]:
    """Return the fields of a candidate that filters and access rules may name."""
    return {
        "source_id": candidate.source_id,
        "document_id": candidate.document_id,
        "title": candidate.title,
        "path": candidate.origin,
        "content_type": candidate.content_type,
        "updated_at": candidate.updated_at,
        "classification": candidate.access.classification,
        "authority_tier": candidate.authority_tier,
        "tenant": candidate.access.tenant,
        "media_type": candidate.media_type,
        "extra": candidate.metadata,
    }


def _ignore(_call: SourceCall, _reply: SourceReply) -> None:
    """Let go of what comes after a trial."""


def _not_planned(question: SourceQuestion) -> list[tuple[SourceDescriptor, CoverageReport]]:
    """Return the sources outside that were not planned, with the reason; the base's own stay in the plan."""
    known = ((question.descriptors.get(source), report) for source, report in question.plan.skipped.items())
    return [
        (descriptor, report)
        for descriptor, report in known
        if descriptor is not None and not descriptor.is_own and report.state is not CoverageState.DENIED
    ]


def _reply(descriptor: SourceDescriptor, report: CoverageReport, *, part: int = 0, part_weight_milli: int = _MILLI) -> SourceReply:
    return SourceReply(
        source_id=descriptor.source_id,
        part=part,
        part_weight_milli=part_weight_milli,
        report=report,
        source_type=descriptor.source_type,
        version=descriptor.version,
        weight_milli=descriptor.weight_milli,
        freshness_tau_s=descriptor.freshness_tau_s,
    )


def _repeated(call: SourceCall, reply: SourceReply) -> SourceReply:
    """Return the reply to a part that asks a source what another part of the question asks it: what the request was told already."""
    repeated = msgspec.structs.replace(reply, part=call.part, part_weight_milli=call.part_weight_milli)
    if reply.report.state is not CoverageState.SEARCHED:
        return repeated
    report = msgspec.structs.replace(reply.report, state=CoverageState.CACHED, reason=ASKED_ALREADY, tier=CacheTier.REQUEST, faults={})
    return msgspec.structs.replace(repeated, report=report, tier=CacheTier.REQUEST)


def _rate_of(max_qps: int) -> Rate:
    """Return so many calls a second, of which one second's worth may come at once."""
    return Rate(max_qps, burst=max_qps)


def _data_version(descriptor: SourceDescriptor, retriever: Retriever | BlockingRetriever | None) -> str:
    """Return what a source of ours says of its data's version; a stranger's code is not called outside its bulkhead."""
    if descriptor.connection.kind is ConnectionKind.PYTHON:
        return ""
    version = getattr(retriever, "data_version", None)
    return "" if version is None else str(version())
