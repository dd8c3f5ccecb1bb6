"""What happens to a request, from door to answer: thirteen steps, one call each, in this order.

1. check the request          2. scope access            3. understand the query    4. look in the cache
5. choose sources             6. search under the deadline                          7. fuse
8. rerank and weigh           9. resolve conflicts      10. diversify               11. fit the token budget
12. govern                   13. seal provenance, write the receipt, answer

Steps whose time has not come say so in `decisions`. The flow is a written function, not a graph that users assemble.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from evidentia.contracts.access import normalised
from evidentia.contracts.errors import BaseStateError, PolicyViolationError
from evidentia.contracts.evidence import CoverageReport, EvidenceResponse
from evidentia.contracts.ids import CorpusVersion, EvidenceState, RequestId
from evidentia.contracts.receipts import EngineConfig, Receipt, RecordedInputs
from evidentia.contracts.runs import RunId
from evidentia.contracts.vocabulary import CoverageState, GovernanceMode
from evidentia.engine.answer_governance import Governed, about_documents, facts_of, govern
from evidentia.engine.assemble import Assembler, count_remembered
from evidentia.engine.external_candidates import admit, coverage_of, fuse_outsiders
from evidentia.engine.legs import NOTHING_FOUND, search_legs, search_vectors
from evidentia.engine.ordering import fuse, rerank, weigh
from evidentia.engine.request_checks import check_request
from evidentia.engine.result_hashes import config_hash, request_hash, result_hash
from evidentia.engine.retrieval_task import TOO_SLOW, Attempt, Gathering
from evidentia.engine.selection import ClaimReader, choose, fit_budget, read_pool, resolve
from evidentia.engine.stage_log import Trail
from evidentia.engine.understanding import NO_VECTORS, Understander
from evidentia.federation.deadline import Stages
from evidentia.federation.source_calls import GIVEN_UP
from evidentia.federation.source_plan import plan_sources
from evidentia.foundation.offload import INLINE
from evidentia.policy.access import access_scope
from evidentia.policy.evaluator import PolicySet
from evidentia.ranking.fusion import order as fusion_order
from evidentia.text.tokens import Tokeniser

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from evidentia.contracts.access import Principal
    from evidentia.contracts.evidence import Conflict, EvidenceFragment, EvidenceRequest, StreamEvent, TermScore
    from evidentia.contracts.ids import ReceiptId, SourceId
    from evidentia.contracts.ports import BlockingExecutor, Clock, Entropy, EvidenceIndex, Offloader, ReceiptLog, SearchableSnapshot
    from evidentia.contracts.retrieval import SourceReply
    from evidentia.contracts.search import AccessScope
    from evidentia.engine.answer_governance import Governing
    from evidentia.engine.external_candidates import Admitted
    from evidentia.engine.federation import Federation, Round
    from evidentia.engine.legs import Found
    from evidentia.engine.ordering import Ranked
    from evidentia.engine.question import Models, Question
    from evidentia.engine.selection import Fitted, Pooled
    from evidentia.federation.source_plan import SourcePlan

ENGINE = "evidentia-engine/5"
"""Changes when the same request on the same state with the same settings may give another answer."""
ESTIMATE = "chars4"
"""How tokens are counted where no budget depends on it; the fragment says so."""
MANY_CHUNKS = 20_000
"""From so many on, scanning vectors takes longer than having it done by somebody else."""
NO_SOURCES = RecordedInputs()
"""Stands for a request that is answered from the base alone."""
RECEIPT_IS_LATE = "receipt: it was not on disk when the time was up, so the answer goes without one"
_REQUEST_ID_BYTES = 8
_TROUBLED = (CoverageState.TIMED_OUT, CoverageState.FAILED, CoverageState.BREAKER_OPEN, CoverageState.STALE)


class Run(NamedTuple):
    """A question with what the steps made of it, for those who ask why."""

    question: Question
    found: Found
    ranked: list[Ranked]
    chosen: list[Pooled]
    governed: Governed
    response: EvidenceResponse


class Searched(NamedTuple):
    """What the base's own search left: the question as it was searched, what was found, and what has to be said about it."""

    question: Question
    found: Found
    degraded: tuple[str, ...] = ()


class Engine:
    """Answers requests over one base, and over the sources that its federation can ask. Thread safe."""

    def __init__(
        self,
        index: EvidenceIndex,
        *,
        receipts: ReceiptLog,
        config: EngineConfig,
        models: Models,
        clock: Clock,
        entropy: Entropy,
        federation: Federation | None = None,
        governing: Governing | None = None,
        offloader: Offloader = INLINE,
    ) -> None:
        self._index = index
        self._receipts = receipts
        self._config = config
        self._config_hash = config_hash(config)
        self._models = models
        self._clock = clock
        self._entropy = entropy
        self._federation = federation
        self._governing = governing
        self._offloader = offloader
        self._claims = ClaimReader()
        self._tokeniser = Tokeniser(config.text.language)
        self._understander = Understander(config, models=models, tokeniser=self._tokeniser, offloader=offloader)

    async def retrieve(
        self,
        request: EvidenceRequest,
        *,
        principal: Principal,
        workers: BlockingExecutor,
        watch: Callable[[StreamEvent], None] | None = None,
        is_ahead: bool = False,
        is_patient: bool = False,
    ) -> EvidenceResponse:
        """Answer a request from the base and from the sources it may ask, in time; `watch` is told what happens meanwhile.

        What takes longer than its share of the deadline takes no part in the answer, and the answer says so. A request that is made
        ahead of time asks every source anew, and what they say is kept until it changes. A patient one waits for the base itself.
        """
        trail = Trail(self._clock, deadline_ms=request.latency_deadline_ms)
        checked = self._checked(request, principal=principal, trail=trail)
        begin = partial(self._begun, checked, trail=trail, is_ahead=is_ahead)
        attempt = Attempt(self, begin=begin, trail=trail, workers=workers, is_watched=watch is not None, is_patient=is_patient)
        goes_on = await attempt.begins(ends_ms=Stages(checked.latency_deadline_ms).fan_out_ends_ms)
        question, asking = await attempt.begun()
        if not goes_on:
            if asking is None and watch is None:
                question, found = self._given_up(question, trail)
            else:
                gathering = Gathering(
                    self, question, asking, trail=trail, workers=workers, federation=self._federation, watch=watch, is_patient=is_patient
                )
                question, found = await gathering.run()
            attempt.go_on(question, found, asking)
        response = await attempt.answer()
        if self._federation is not None:
            self._federation.tell(question, response, started_at=trail.started_at)
        return response

    def _begun(self, checked: EvidenceRequest, *, trail: Trail, is_ahead: bool) -> tuple[Question, Round | None]:
        question = self._understood(checked, trail=trail)
        return question, None if self._federation is None else self._federation.prepare(question, is_ahead=is_ahead)

    def _given_up(self, question: Question, trail: Trail) -> tuple[Question, Found]:
        question = question._replace(inputs=msgspec.structs.replace(question.inputs, own_missing=TOO_SLOW))
        self.mark_search(self.missed(question), trail)
        return question, NOTHING_FOUND

    def waits_for_nothing(self, question: Question) -> bool:
        """Tell whether what is left to do for a question needs neither the disk nor a model: it has only to be worked out."""
        request = question.request
        return not (
            question.plan.searched
            or request.receipt
            or request.token_budget is not None
            or question.policies.policies
            or self._config.reranker
            or self._config.merger
            or (self._federation is not None and not self._federation.keeps_soon)
        )

    def conclude_into(self, answers: list[EvidenceResponse], question: Question, found: Found, asking: Round | None, trail: Trail) -> None:
        """Add the answer without its receipt, then the answer with it; what sources said is kept after the answer stands."""
        run = self.conclude(question, found, trail)
        self._write_decisions(run)
        missing = (RECEIPT_IS_LATE,) if question.request.receipt else ()
        answers.append(msgspec.structs.replace(run.response, degraded=(*run.response.degraded, *missing)))
        answers.append(self._with_receipt(run, trail))
        if self._federation is not None and asking is not None:
            self._federation.write_down(asking)

    def answer(
        self,
        request: EvidenceRequest,
        *,
        principal: Principal,
        access_state: EvidenceState | None = None,
        recorded: RecordedInputs | None = None,
    ) -> EvidenceResponse:
        """Answer a request from the base alone, or from what was `recorded` of others: models and sources are taken from there.

        A request for an old version is answered under the access of that version and of `access_state`, the newest by default.
        """
        trail = Trail(self._clock, deadline_ms=request.latency_deadline_ms)
        recorded = recorded if recorded is not None else NO_SOURCES
        question = self.understand(request, principal=principal, trail=trail, access_state=access_state, recorded=recorded)
        return self.pursue(question, trail).response

    def pursue(self, question: Question, trail: Trail) -> Run:
        """Take an understood question to its answer, asking nobody: sources outside have said what they said."""
        self.mark_sources(question, question.inputs.replies, calls=0, trail=trail)
        searched = self.missed(question) if question.inputs.own_missing else self.search(question)
        self.mark_search(searched, trail)
        run = self.conclude(searched.question, searched.found, trail)
        return run._replace(response=self._with_receipt(run, trail))

    def conclude(self, question: Question, found: Found, trail: Trail) -> Run:
        """Take what was found to its answer, without a receipt, and keep what each step left."""
        admitted = admit(question, tokeniser=self._tokeniser)
        question, ranked = self._order(question, found, admitted, trail)
        pool, conflicts = self._resolve(question, ranked, trail)
        chosen = choose(question, pool)
        trail.mark("diversify", f"{len(chosen)} of {len(pool)} read", remaining=len(chosen))
        fitted = self._fit(question, found, chosen, trail)
        governed = self._govern(question, fitted, trail)
        response = self._seal(question, found, admitted, fitted, governed, conflicts=conflicts, trail=trail)
        return Run(question=question, found=found, ranked=ranked, chosen=chosen, governed=governed, response=response)

    def understand(
        self,
        request: EvidenceRequest,
        *,
        principal: Principal,
        trail: Trail,
        access_state: EvidenceState | None = None,
        recorded: RecordedInputs | None = None,
    ) -> Question:
        """Do what comes before searching: check, scope, understand, plan. Whoever brings what was `recorded` plans no calls."""
        checked = self._checked(request, principal=principal, trail=trail)
        return self._understood(checked, trail=trail, access_state=access_state, recorded=recorded)

    def _checked(self, request: EvidenceRequest, *, principal: Principal, trail: Trail) -> EvidenceRequest:
        """Return the request as it can be answered, with the one who asks."""
        checked = check_request(request, search=self._config.search, now=self._clock.now())
        trail.mark("check", "the request can be answered")
        return msgspec.structs.replace(checked, principal=normalised(checked.principal or principal))

    def _understood(
        self,
        checked: EvidenceRequest,
        *,
        trail: Trail,
        access_state: EvidenceState | None = None,
        recorded: RecordedInputs | None = None,
    ) -> Question:
        if checked.principal is None:
            raise AssertionError  # a checked request has one
        scope = access_scope(checked.principal, acl_scope=checked.source_policy.acl_scope, rules=self._config.access.rules)
        trail.mark("scope", f"access fingerprint {scope.fingerprint[:16]}")
        snapshot = self._index.at(
            search=self._config.search,
            corpus_version=checked.corpus_version,
            evidence_state=checked.evidence_state,
            access_state=access_state,
        )
        plan = self._plan(checked, scope=scope, snapshot=snapshot, is_live=recorded is None, trail=trail)
        recorded = None if recorded is NO_SOURCES else recorded
        question = self._understander.question(checked, scope=scope, snapshot=snapshot, plan=plan, trail=trail, recorded=recorded)
        return self._under_policies(question, recorded)

    def _under_policies(self, question: Question, recorded: RecordedInputs | None) -> Question:
        """Pin the policies in scope for whoever asks: those in force, or those of a recorded answer."""
        if recorded is not None:
            return question._replace(policies=PolicySet.of(recorded.policies))
        if self._governing is None or question.request.governance is GovernanceMode.OFF:
            return question
        principal = question.scope.principal
        in_scope = about_documents(self._governing.policies(str(principal.tenant)).for_run(facts_of(question.request, principal)))
        inputs = msgspec.structs.replace(question.inputs, policies=in_scope.policies)
        return question._replace(policies=in_scope, inputs=inputs)

    def _plan(
        self, request: EvidenceRequest, *, scope: AccessScope, snapshot: SearchableSnapshot, is_live: bool, trail: Trail
    ) -> SourcePlan:
        visible = snapshot.sources(scope)
        if self._federation is None or not is_live:
            return plan_sources(request, visible)
        return plan_sources(
            request,
            visible,
            outside=self._federation.facts(snapshot.descriptors()),
            scope=scope,
            settings=self._config.sources,
            remaining_ms=max(0, int(request.latency_deadline_ms - trail.elapsed_ms())),
            is_pinned=request.corpus_version is not None or request.evidence_state is not None,
        )

    def mark_sources(self, question: Question, known: Sequence[SourceReply], *, calls: int, trail: Trail) -> None:
        """Close the steps that come before searching: what was kept, and who is asked."""
        kept = sum(1 for reply in known if reply.tier is not None)
        trail.mark("cache", f"{kept} answers of sources were kept" if kept else "nothing that was kept takes part")
        plan = question.plan
        trail.mark("sources", f"{len(plan.searched)} searched, {len(plan.skipped)} left out, {calls} asked outside the base")

    def mark_search(self, searched: Searched, trail: Trail) -> None:
        """Close the search."""
        for reason in searched.degraded:
            trail.degrade(reason)
        for reason in _troubles(searched.question):
            trail.degrade(reason)
        trail.mark("search", _searched_note(searched), remaining=len(searched.found.hits))

    @property
    def clock(self) -> Clock:
        """Return the clock by which it works."""
        return self._clock

    def warm(self) -> None:
        """Open what the first request would have to open."""
        self._index.at(search=self._config.search)
        self._models.encoder()

    def missed(self, question: Question) -> Searched:
        """Return what there is where the base could not be searched in time."""
        return Searched(question, NOTHING_FOUND)

    def confidences(self, question: Question, found: Found) -> list[float]:
        """Return how likely the best of the base's own candidates are to be relevant, by the order of the legs alone."""
        fused = fuse(question, found, settings=self._config.ranking, merger=self._models.merger)
        best = fusion_order(fused, [hit.chunk_id for hit in found.hits])[: question.request.limit]
        assembler, legs = self.assembler(question, found), found.parts[0].legs
        return [assembler.confidence(legs[index]) for index in best]

    def coverage(self, question: Question, found: Found, *, elapsed_ms: float) -> Mapping[SourceId, CoverageReport]:
        """Return what every source did for a question."""
        return _coverage(question, found, elapsed_ms=elapsed_ms)

    def search(self, question: Question) -> Searched:
        """Search the base; who sees no vector is answered as in a base without any, so that those of others leave no trace."""
        if not question.snapshot.sources(question.scope):
            nothing = msgspec.structs.replace(NOTHING_FOUND.counts, facets={field: {} for field in question.request.facets})
            degraded = (NO_VECTORS,) if question.uses_vectors else ()
            return Searched(question.without_vectors(), NOTHING_FOUND._replace(counts=nothing), degraded)
        depth = max(self._config.ranking.candidates, question.request.limit)
        found = self._search_legs(question, depth=depth)
        if found.dense is None or found.dense.embedded:
            return Searched(question, found)
        question = question.without_vectors()
        return Searched(question, self._search_legs(question, depth=depth), (NO_VECTORS,))

    def _search_legs(self, question: Question, *, depth: int) -> Found:
        """Search by words and by vectors, beside each other where there is enough of both to do."""
        near = partial(search_vectors, question, depth=depth)
        is_worth_it = question.uses_vectors and question.uses_words and question.snapshot.lexicon(question.scope).chunks >= MANY_CHUNKS
        return search_legs(question, self._offloader.submit(near) if is_worth_it else near, depth=depth)

    def _order(self, question: Question, found: Found, admitted: Admitted, trail: Trail) -> tuple[Question, list[Ranked]]:
        """Fuse, rerank and weigh; what the reranker said becomes part of the question's recorded inputs."""
        settings = self._config.ranking
        own = fuse(question, found, settings=settings, merger=self._models.merger)
        fused = fuse_outsiders(own, [hit.chunk_id for hit in found.hits], admitted, kappa=settings.rrf_kappa)
        trail.mark("fuse", _fused_note(question, admitted), remaining=len(fused))
        # A receipt without a reranker is not read by one that the settings name since.
        reranker = self._models.reranker if self._config.reranker else _no_reranker
        reranking = rerank(question, found, admitted, fused, settings=settings, reranker=reranker)
        if reranking.given is not None:
            question = question._replace(inputs=msgspec.structs.replace(question.inputs, reranked=reranking.given))
        ranked = weigh(question, found, admitted, fused, reranking, settings=settings)
        note = "no reranker took part" if reranking.given is None else f"{len(reranking.given)} read by the reranker"
        trail.mark("rerank", note, remaining=len(ranked))
        return question, ranked

    def _resolve(self, question: Question, ranked: list[Ranked], trail: Trail) -> tuple[list[Pooled], tuple[Conflict, ...]]:
        pool, conflicts = resolve(read_pool(question, ranked), reader=self._claims)
        trail.mark("conflicts", f"{len(conflicts)} found among {len(pool)}", remaining=len(pool))
        return pool, conflicts

    def _fit(self, question: Question, found: Found, chosen: Sequence[Pooled], trail: Trail) -> Fitted:
        request = question.request
        fragments = self._assemble(question, found, chosen)
        fitted = fit_budget(fragments, token_budget=request.token_budget, count=partial(count_remembered, tokenizer=request.tokenizer))
        note = f"{fitted.tokens_used} tokens" if request.token_budget is None else f"{fitted.tokens_used} of {request.token_budget} tokens"
        trail.mark("budget", note if fitted.is_exact else f"{note}, not proved to be the best choice", remaining=len(fitted.fragments))
        return fitted

    def assembler(self, question: Question, found: Found) -> Assembler:
        """Return what puts the fragments of an answer together."""
        return Assembler(
            question,
            attainable=found.counts.attainable,
            score_bits=found.dense.score_bits if found.dense else 0,
            now=self._clock.now(),
            tokenizer=ESTIMATE if question.request.token_budget is None else question.request.tokenizer,
            weighting=self._config.search.weighting,
        )

    def _assemble(self, question: Question, found: Found, chosen: Sequence[Pooled]) -> list[EvidenceFragment]:
        assembler = self.assembler(question, found)
        proofs = iter(question.snapshot.proofs([each.stored for each in chosen if each.stored is not None]))
        return [
            assembler.assemble(
                each, rank=rank, proof=None if each.stored is None else next(proofs), explanation=self._explain(question, each)
            )
            for rank, each in enumerate(chosen, start=1)
        ]

    def _explain(self, question: Question, pooled: Pooled) -> tuple[TermScore, ...]:
        if not question.request.explain or pooled.stored is None:
            return ()
        standing = question.snapshot.standing(
            question.words, scope=question.scope, narrowing=question.narrowing, chunk_id=pooled.ranked.hit.chunk_id, ranked=False
        )
        return standing.terms if standing else ()

    def _govern(self, question: Question, fitted: Fitted, trail: Trail) -> Governed:
        request = question.request
        if not question.policies.policies:
            trail.mark("govern", "no policy is in scope", remaining=len(fitted.fragments))
            return Governed(fitted.fragments)
        governed = govern(fitted.fragments, question.policies, mode=request.governance, as_of=request.as_of or trail.started_at)
        for reason in governed.degraded:
            trail.degrade(reason)
        note = f"{len(question.policies.policies)} policies, {len(governed.remarks)} remarks, {len(governed.withheld)} withheld"
        trail.mark("govern", note, remaining=len(governed.fragments))
        return governed

    def _write_decisions(self, run: Run) -> None:
        """Write down what policies said; where they are enforced and stop something, the answer fails with that decision."""
        question, governed = run.question, run.governed
        if not governed.calls or self._governing is None:
            return
        stop = governed.stop if question.request.governance is GovernanceMode.ENFORCE else None
        facts = msgspec.structs.replace(facts_of(question.request, question.scope.principal), run_id=RunId(run.response.request_id))
        decisions = self._governing.log().write(facts, question.policies.policies, governed.calls, is_enforced=governed.is_enforced)
        if stop is not None:
            decision = next(each for each in decisions if each.action.stops and each.is_enforced and each.reason == stop.decisive.reason)
            raise PolicyViolationError(decision.reason, decision)

    def _seal(
        self,
        question: Question,
        found: Found,
        admitted: Admitted,
        fitted: Fitted,
        governed: Governed,
        *,
        conflicts: tuple[Conflict, ...],
        trail: Trail,
    ) -> EvidenceResponse:
        request, version = question.request, question.snapshot.version
        coverage = _coverage(question, found, elapsed_ms=trail.latencies_ms.get("search", 0.0))
        withheld = (*fitted.withheld, *admitted.withheld, *governed.withheld)
        policies = question.policies.digest if question.policies.policies else ""
        asked = request_hash(request)
        answered = result_hash(
            request=asked,
            evidence_state=version.commit.evidence_state,
            config=self._config_hash,
            fragments=governed.fragments,
            coverage=coverage,
            withheld=withheld,
            policies=policies,
            conflicts=conflicts,
            facets=found.counts.facets,
            truncation_applied=fitted.is_truncated,
        )
        trail.mark("seal", "custody and proofs attached", remaining=len(governed.fragments))
        return EvidenceResponse(
            request_id=RequestId(self._entropy.take(_REQUEST_ID_BYTES).hex()),
            fragments=governed.fragments,
            total_candidates=found.counts.matching + len(admitted.outsiders),
            latency_ms=trail.elapsed_ms(),
            source_coverage=coverage,
            truncation_applied=fitted.is_truncated,
            cache_hit_ratio=_cached_share(governed.fragments, coverage),
            corpus_version=CorpusVersion(version.commit.corpus_version),
            evidence_state=EvidenceState(version.commit.evidence_state),
            config_hash=self._config_hash,
            result_hash=answered,
            receipt_id=None,
            request_hash=asked,
            as_of=request.as_of or self._clock.now(),
            commit=version.commit,
            commit_hash=version.commit_hash,
            decisions=tuple(trail.decisions),
            understanding=question.steps,
            facets=found.counts.facets,
            conflicts=conflicts,
            withheld=withheld,
            policies=policies,
            governance=governed.remarks,
            degraded=tuple(trail.degraded),
            is_approximate=found.dense is not None and found.dense.is_approximate,
            stage_latencies_ms=trail.latencies_ms,
            tokens_used=sum(fragment.token_count for fragment in governed.fragments),
        )

    def _with_receipt(self, run: Run, trail: Trail) -> EvidenceResponse:
        """Return the answer with its receipt, if it is to have one, and with the time that all of it took."""
        receipt_id, problems = self._write_receipt(run.question, run.response) if run.question.request.receipt else (None, ())
        elapsed_ms = trail.elapsed_ms()
        late = trail.late_note(elapsed_ms)
        degraded = (*run.response.degraded, *problems, *late)
        return msgspec.structs.replace(run.response, receipt_id=receipt_id, latency_ms=elapsed_ms, degraded=degraded)

    def _write_receipt(self, question: Question, response: EvidenceResponse) -> tuple[ReceiptId | None, tuple[str, ...]]:
        receipt = Receipt(
            request=question.request,
            principal_fingerprint=question.scope.fingerprint,
            corpus_version=response.corpus_version,
            evidence_state=response.evidence_state,
            access_state=question.snapshot.version.access_state,
            config=self._config,
            config_hash=response.config_hash,
            decisions=response.decisions,
            fragments=tuple(fragment.chunk_id for fragment in response.fragments),
            inputs=question.inputs,
            result_hash=response.result_hash,
            answered_at=self._clock.now(),
        )
        try:
            return self._receipts.append(receipt), ()
        except BaseStateError as error:
            return None, (f"receipt: {error}",)


def _no_reranker() -> None:
    """Stand in for the reranker where a configuration names none."""


def _searched_note(searched: Searched) -> str:
    if searched.question.inputs.own_missing:
        return f"the base took no part: {searched.question.inputs.own_missing}"
    found = searched.found
    near = f", {len(found.dense.hits)} near of {found.dense.embedded} embedded" if found.dense else ""
    return f"{found.counts.matching} fragments match{near}; {len(found.hits)} are candidates"


def _fused_note(question: Question, admitted: Admitted) -> str:
    outside = f", and {len(admitted.rankings)} orders from outside by rrf" if admitted.rankings else ""
    if question.uses_words and question.uses_vectors:
        return f"words and vectors, {question.request.fusion.value}{outside}"
    return f"words alone{outside}" if question.uses_words else f"vectors alone{outside}"


def _troubles(question: Question) -> Iterator[str]:
    """Yield what the sources that were asked did not deliver."""
    if question.inputs.own_missing:
        yield f"sources: the base's own evidence is missing ({question.inputs.own_missing})"
    for source, report in coverage_of(question.inputs.replies).items():
        if report.state in _TROUBLED or report.reason.startswith(GIVEN_UP):
            yield f"sources: '{source}' is {report.state.value} ({report.reason})"


def _cached_share(fragments: Sequence[EvidenceFragment], coverage: Mapping[SourceId, CoverageReport]) -> float:
    """Return how much of an answer was kept from before."""
    kept_sources = {source for source, report in coverage.items() if report.tier is not None}
    kept = sum(1 for fragment in fragments if fragment.source_id in kept_sources)
    return kept / len(fragments) if fragments else 0.0


def _coverage(question: Question, found: Found, *, elapsed_ms: float) -> Mapping[SourceId, CoverageReport]:
    missing = question.inputs.own_missing
    own = {
        source: CoverageReport(state=CoverageState.TIMED_OUT, reason=missing, searched_share=0.0, elapsed_ms=elapsed_ms)
        if missing
        else CoverageReport(
            state=CoverageState.SEARCHED,
            candidates=found.counts.matching_by_source.get(source, 0),
            embedded_share=_embedded_share(found, source),
            elapsed_ms=elapsed_ms,
        )
        for source in question.plan.searched
    }
    return dict(sorted({**question.plan.skipped, **own, **coverage_of(question.inputs.replies)}.items()))


def _embedded_share(found: Found, source: SourceId) -> float | None:
    if found.dense is None:
        return None
    embedded, chunks = found.dense.embedded_by_source.get(source, (0, 0))
    return embedded / chunks if chunks else 1.0
