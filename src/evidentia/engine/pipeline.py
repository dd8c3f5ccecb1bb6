"""What happens to a request, from door to answer: thirteen steps, one call each, in this order.

    1. check the request
    2. scope access, and pin the policies in scope
    3. understand the query
    4. choose sources
    5. look in the cache
    6. search, the base and the sources side by side, under the deadline
    7. fuse
    8. rerank, and weigh with what else speaks for a fragment
    9. resolve conflicts
    10. diversify
    11. fit the token budget
    12. govern
    13. seal provenance, hash, answer

`prepare` makes the first five calls, `search` is the sixth, `conclude` makes the others; `answer` makes these three. Between them is
plain data (`Prepared`, `Searched`, `Answered`), so that a replay, a provisional answer and a question why enter where they need to.
Sources are chosen before the cache is looked in: an answer is kept under its source and the part of the question that it was asked,
which only the choice names. The flow is a written function, not a graph that users assemble. Where the steps of a live request run,
and how long they are waited for, is `retrieval_task`'s affair; no step knows.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from evidentia.contracts.access import Principal, normalised
from evidentia.contracts.errors import BaseStateError, InvalidFieldError, PolicyViolationError
from evidentia.contracts.evidence import Conflict, CoverageReport, EvidenceFragment, EvidenceRequest, EvidenceResponse, TermScore
from evidentia.contracts.ids import CorpusVersion, EvidenceState, ReceiptId, RequestId, Sha256, SourceId
from evidentia.contracts.ports import SupportsOpening
from evidentia.contracts.provenance import CUSTODY_FORMAT, CommitRecord
from evidentia.contracts.receipts import EngineConfig, Receipt, RecordedInputs
from evidentia.contracts.runs import RunId
from evidentia.contracts.search import LexicalQuery
from evidentia.contracts.vocabulary import CoverageState, GovernanceMode
from evidentia.engine.answer_governance import ALL_FLAGS, NO_POLICIES, Governed, Governing, about_documents, facts_of, govern
from evidentia.engine.assemble import Assembler
from evidentia.engine.external_candidates import NONE_ADMITTED, Admitted, admit, coverage_of, fuse_external, scored_by_words
from evidentia.engine.legs import NO_CANDIDATES, CandidateSet, search_legs, search_vectors
from evidentia.engine.model_calls import InlineModelCalls, ModelMissingError
from evidentia.engine.ordering import RankedCandidate, fuse, rerank, weigh
from evidentia.engine.question import Part, Question
from evidentia.engine.request_checks import check_request
from evidentia.engine.result_hashes import config_hash, request_hash, result_hash, sealed
from evidentia.engine.selection import (
    POOL_BEYOND_LIMIT,
    ClaimReader,
    ContextCost,
    Fitted,
    Pool,
    Pooled,
    choose,
    fit_budget,
    read_pool,
    resolve,
)
from evidentia.engine.stage_log import StageLog
from evidentia.engine.understanding import NO_VECTORS, Understander
from evidentia.federation.deadline import Stages
from evidentia.federation.federated_search import Federation, PreparedRound, SourceQuestion
from evidentia.federation.source_calls import GIVEN_UP
from evidentia.federation.source_plan import SourcePlan, plan_sources
from evidentia.foundation.offload import INLINE
from evidentia.policy.access import access_scope
from evidentia.policy.evaluator import PolicySet
from evidentia.query.understanding import WHOLE_WEIGHT
from evidentia.ranking.fusion import order as fusion_order
from evidentia.ranking.signals import data_age_s
from evidentia.text.counting import count_tokens
from evidentia.text.tokens import Tokeniser

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from evidentia.contracts.ports import (
        Clock,
        Entropy,
        EvidenceIndex,
        Merger,
        Offloader,
        ReceiptLog,
        Reranker,
        SearchableSnapshot,
        TraceSink,
    )
    from evidentia.contracts.retrieval import SourceReply
    from evidentia.contracts.search import AccessScope
    from evidentia.engine.question import Models

ESTIMATE = "chars4"
"""How tokens are counted where no budget depends on it; the fragment says so."""
MANY_CHUNKS = 20_000
"""From so many on, scanning vectors takes longer than having it done by somebody else."""
TOO_SLOW = "the search took longer than its share of the deadline"
UNSEARCHED = "search: the base could not be searched to the end within the deadline, so there is no evidence and no receipt"
EVERY_SOURCE = SourcePlan(searched=(SourceId("*"),), skipped={}, narrowing=None)
"""Stands for the sources of the base where it is not known which of them the caller may see."""
_REQUEST_ID_BYTES = 8
_TROUBLED = (CoverageState.TIMED_OUT, CoverageState.FAILED, CoverageState.BREAKER_OPEN, CoverageState.STALE)


class Scoped(NamedTuple):
    """A checked request with what its caller may see, of which version, and the policies that speak of its answer."""

    request: EvidenceRequest
    scope: AccessScope
    snapshot: SearchableSnapshot
    policies: PolicySet


class Prepared(NamedTuple):
    """A question that can be searched, and the round of calls to sources outside; None where it concerns none of them."""

    question: Question
    round: PreparedRound | None


class OwnSearch(NamedTuple):
    """What the base's own search left: the question as it was searched, what was found, and what has to be said about it."""

    question: Question
    found: CandidateSet
    degraded: tuple[str, ...] = ()


class Searched(NamedTuple):
    """A question with what sources said of it among its inputs, and the base's own candidates."""

    question: Question
    found: CandidateSet


class Fused(NamedTuple):
    """The question as it was fused, what may be used of what came from outside, and one score per candidate, the base's own first."""

    question: Question
    admitted: Admitted
    scores: list[int]


class Ranked(NamedTuple):
    """The candidates best first, and the question with what a reranker said of them among its inputs."""

    question: Question
    candidates: list[RankedCandidate]


class Answered(NamedTuple):
    """A question with what the steps made of it, and its answer, which has no receipt yet."""

    question: Question
    found: CandidateSet
    ranked: list[RankedCandidate]
    chosen: list[Pooled]
    governed: Governed
    response: EvidenceResponse


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
        federation: Callable[[], Federation] | None = None,
        sink: TraceSink | None = None,
        governing: Governing | None = None,
        offloader: Offloader = INLINE,
        calls: InlineModelCalls | None = None,
    ) -> None:
        self._index = index
        self._receipts = receipts
        self._config = config
        self._config_hash = config_hash(config)
        self._models = models
        self.clock = clock
        self._entropy = entropy
        self._federation = federation
        self.sink = sink
        self._governing = governing
        self._offloader = offloader
        self._claims = ClaimReader()
        self._tokeniser = Tokeniser(config.text.language)
        self._calls = calls or InlineModelCalls()
        self._appending = threading.Lock()
        self._understander = Understander(config, models=models, tokeniser=self._tokeniser, calls=self._calls)
        self._opened: SearchableSnapshot | None = None
        """The newest version that a request was answered from; one that is not searched in time names it."""

    @property
    def federation(self) -> Federation:
        """Return what asks sources outside the base; it is made for the first request that concerns any."""
        if self._federation is None:
            raise AssertionError  # only an engine that has one plans calls
        return self._federation()

    def warm(self) -> None:
        """Open what the first request would have to open; a wrong setting of the encoder shows here."""
        self._opened = self._index.at(search=self._config.search)
        self._models.encoder()
        count_tokens("keys")  # the first count loads tables, for longer than a step of a request may take

    def open_models(self) -> None:
        """Load what models load before they can be asked; one that cannot is heard when it is asked."""
        models: list[object] = [self._models.rewriter(), self._models.reranker()]
        if self._index.at(search=self._config.search).vectors is not None:
            models.append(self._models.encoder())
        for model in models:
            if isinstance(model, SupportsOpening):
                with suppress(Exception):
                    model.open()

    # --- the flow ---

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
        log = StageLog(self.clock, deadline_ms=request.latency_deadline_ms)
        prepared = self.prepare(request, principal=principal, log=log, access_state=access_state, recorded=recorded, is_live=False)
        searched = self.search(prepared, log)
        return self.write_receipt(self.conclude(searched, log), log)

    def prepare(
        self,
        request: EvidenceRequest,
        *,
        principal: Principal,
        log: StageLog,
        access_state: EvidenceState | None = None,
        recorded: RecordedInputs | None = None,
        is_live: bool = True,
        prefetch: bool = False,
        as_written: bool = False,
    ) -> Prepared:
        """Do what comes before searching, steps 1 to 5. One that is not live plans no calls of sources outside the base.

        What is searched `as_written` goes without understanding and models, for a request that has no time for them.
        """
        checked = self._check_request(request, principal=principal, log=log)
        scoped = self._scope_access(checked, access_state=access_state, recorded=recorded, log=log)
        understood = self._understand_query(scoped, recorded=recorded, as_written=as_written, log=log)
        planned = self._choose_sources(understood, is_live=is_live, log=log)
        return self._look_in_cache(planned, is_live=is_live, prefetch=prefetch, log=log)

    def search(self, prepared: Prepared, log: StageLog) -> Searched:
        """Search the base, step 6, and ask nobody: sources outside have said what they said."""
        question = prepared.question
        own = None if question.inputs.own_missing else self.search_base(question)
        return self.gather(question, own, question.inputs.replies, log)

    def conclude(self, searched: Searched, log: StageLog) -> Answered:
        """Take what was found to its answer, steps 7 to 13, and keep what each step left. Nothing is written."""
        fused = self._fuse(searched, log)
        searched = searched._replace(question=fused.question)
        ranked = self._rerank(searched, fused, log)
        pool, conflicts = self._resolve_conflicts(ranked, log)
        chosen = self._diversify(ranked.question, pool, conflicts, log)
        fitted = self._fit_token_budget(ranked.question, searched.found, chosen, log)
        governed = self._govern(ranked.question, fitted, log)
        response = self._seal_provenance(ranked.question, searched.found, fused.admitted, fitted, governed, conflicts=conflicts, log=log)
        return Answered(ranked.question, searched.found, ranked.candidates, chosen, governed, response)

    # --- what a live request needs beside the flow ---

    def search_base(self, question: Question) -> OwnSearch:
        """Search the base; who sees no vector is answered as in a base without any, so that those of others leave no trace."""
        if not question.snapshot.sources(question.scope):
            nothing = msgspec.structs.replace(NO_CANDIDATES.counts, facets={field: {} for field in question.request.facets})
            degraded = (NO_VECTORS,) if question.uses_vectors else ()
            return OwnSearch(question.without_vectors(), NO_CANDIDATES._replace(counts=nothing), degraded)
        depth = max(self._config.ranking.candidates, question.limit)
        found = self._search_legs(question, depth=depth)
        if found.dense is None or found.dense.embedded:
            return OwnSearch(question, found)
        question = question.without_vectors()
        return OwnSearch(question, self._search_legs(question, depth=depth), (NO_VECTORS,))

    def gather(self, question: Question, own: OwnSearch | None, replies: Sequence[SourceReply], log: StageLog) -> Searched:
        """Put what the base holds and what sources said together; without `own` the base was not searched in time."""
        missing = "" if own is not None else question.inputs.own_missing or TOO_SLOW
        asked = question if own is None else own.question
        if replies or missing:
            asked = asked._replace(inputs=msgspec.structs.replace(asked.inputs, replies=tuple(replies), own_missing=missing))
        searched = Searched(asked, NO_CANDIDATES if own is None else own.found)
        for reason in (*(own.degraded if own else ()), *_troubles(asked)):
            log.degrade(reason)
        log.mark("search", _searched_note(searched), remaining=len(searched.found.hits))
        return searched

    def unsearched(self, request: EvidenceRequest, *, principal: Principal, plan: SourcePlan | None, log: StageLog) -> Answered:
        """Return the answer to a request that was not searched to the end in time, from what is at hand: it waits for nothing.

        Where there is no plan yet, all sources of the base are reported in one, since those that the caller may see would have to be
        looked up. It has no receipt: a replay would find more.
        """
        checked = check_request(request, search=self._config.search, now=self.clock.now())
        asking = normalised(checked.principal or principal)
        if self._opened is None:
            raise AssertionError  # a base is opened before its first request, however long that takes
        question = Question(
            request=msgspec.structs.replace(checked, principal=asking, receipt=False),
            scope=access_scope(asking, acl_scope=checked.source_policy.acl_scope, rules=self._config.access.rules),
            snapshot=self._opened,
            parts=(Part(text=checked.query.text, words=LexicalQuery(terms={}), vector=None, weight=WHOLE_WEIGHT),),
            steps=(),
            features=None,
            uses_words=True,
            inputs=RecordedInputs(own_missing=TOO_SLOW),
            policies=NO_POLICIES,
            plan=plan or EVERY_SOURCE,
        )
        log.degrade(UNSEARCHED)
        fitted, governed = Fitted(fragments=()), Governed(())
        response = self._sealed(question, NO_CANDIDATES, NONE_ADMITTED, fitted, governed, conflicts=(), log=log)
        return Answered(question, NO_CANDIDATES, [], [], governed, response)

    def confidences(self, own: OwnSearch) -> list[float]:
        """Return how likely the best of the base's own candidates are to be relevant, by the order of the legs alone."""
        question, found, _ = own
        merge = partial(self._merge, wait_ms=float(Stages(question.request.latency_deadline_ms).share_ms("fuse")))
        try:
            fused = fuse(question, found, settings=self._config.ranking, merge=merge)
        except ModelMissingError:
            fused = fuse(_unmerged(question), found, settings=self._config.ranking, merge=merge)
        best = fusion_order(fused, [hit.chunk_id for hit in found.hits])[: question.limit]
        assembler = self.assembler(question, found)
        return [assembler.confidence(found.hits[index].chunk_id) for index in best]

    def coverage(self, searched: Searched, *, elapsed_ms: float) -> Mapping[SourceId, CoverageReport]:
        """Return what every source did for a question."""
        return _coverage(searched.question, searched.found, elapsed_ms=elapsed_ms)

    def is_cpu_only(self, question: Question) -> bool:
        """Tell whether what is left to do for a searched question needs neither the disk nor a model: it has only to be worked out."""
        request = question.request
        return not (
            question.plan.searched
            or request.receipt
            or request.token_budget is not None
            or question.policies.policies
            or self._config.reranker
            or self._config.merger
            or (question.plan.calls and not self.federation.writes_behind)
        )

    def write_decisions(self, answered: Answered) -> None:
        """Write down what policies said; where they are enforced and stop something, the answer fails with that decision."""
        question, governed = answered.question, answered.governed
        if not governed.calls or self._governing is None:
            return
        stop = governed.stop if question.request.governance is GovernanceMode.ENFORCE else None
        facts = msgspec.structs.replace(facts_of(question.request, question.scope.principal), run_id=RunId(answered.response.request_id))
        decisions = self._governing.log().write(facts, question.policies.policies, governed.calls, is_enforced=governed.is_enforced)
        if stop is not None:
            stopping = [each for each in decisions if each.action.stops and each.is_enforced]
            decision = next(each for each in stopping if each.reason == stop.decisive.reason)
            raise PolicyViolationError(decision.reason, decision, [decision, *(each for each in stopping if each is not decision)])

    def write_receipt(self, answered: Answered, log: StageLog) -> EvidenceResponse:
        """Return the answer with its receipt, if it is to have one, and with the time that all of it took."""
        response = sealed(answered.response)
        receipt_id, problems = self._append_receipt(answered.question, response, log) if answered.question.request.receipt else (None, ())
        elapsed_ms = log.elapsed_ms()
        response = msgspec.structs.replace(response, receipt_id=receipt_id, latency_ms=elapsed_ms)
        remarks = (*problems, *log.late_note(elapsed_ms))
        return sealed(msgspec.structs.replace(response, degraded=(*response.degraded, *remarks))) if remarks else response

    def assembler(self, question: Question, found: CandidateSet) -> Assembler:
        """Return what puts the fragments of an answer together."""
        return Assembler(
            question,
            found,
            now=self.clock.now(),
            tokenizer=ESTIMATE if question.request.token_budget is None else question.request.tokenizer,
            weighting=self._config.search.weighting,
            calibration=self._config.calibration,
        )

    def context_cost(self, question: Question) -> ContextCost:
        """Return what counts the tokens of fragments, with what policies may still say of them."""
        request = question.request
        flags = ALL_FLAGS if question.policies.policies else ()
        return ContextCost(request.tokenizer, request.as_of or self.clock.now(), flags, tells_doubt=question.rules.confidence > 1)

    # --- the steps ---

    def _check_request(self, request: EvidenceRequest, *, principal: Principal, log: StageLog) -> EvidenceRequest:
        """Return the request as it can be answered, with the one who asks."""
        checked = check_request(request, search=self._config.search, now=self.clock.now())
        log.mark("check", "the request can be answered")
        return msgspec.structs.replace(checked, principal=normalised(checked.principal or principal))

    def _scope_access(
        self, checked: EvidenceRequest, *, access_state: EvidenceState | None, recorded: RecordedInputs | None, log: StageLog
    ) -> Scoped:
        if checked.principal is None:
            raise AssertionError  # a checked request has one
        scope = access_scope(checked.principal, acl_scope=checked.source_policy.acl_scope, rules=self._config.access.rules)
        snapshot = self._index.at(
            search=self._config.search,
            corpus_version=checked.corpus_version,
            evidence_state=checked.evidence_state,
            access_state=access_state,
            is_public=recorded is None and not checked.principal.is_owner,
        )
        if recorded is None and checked.corpus_version is None and checked.evidence_state is None:
            self._opened = snapshot
        policies = self._policies(checked, checked.principal, recorded)
        log.mark("scope", f"access fingerprint {scope.fingerprint[:16]}")
        return Scoped(checked, scope, snapshot, policies)

    def _policies(self, request: EvidenceRequest, principal: Principal, recorded: RecordedInputs | None) -> PolicySet:
        """Return the policies in scope for whoever asks: those in force, or those of a recorded answer."""
        if recorded is not None:
            return PolicySet.of(recorded.policies)
        if self._governing is None or request.governance is GovernanceMode.OFF:
            return NO_POLICIES
        in_force = self._governing.policies(str(principal.tenant))
        return about_documents(in_force.for_run(facts_of(request, principal))) if in_force.policies else NO_POLICIES

    def _understand_query(self, scoped: Scoped, *, recorded: RecordedInputs | None, as_written: bool, log: StageLog) -> Question:
        request, scope, snapshot, policies = scoped
        return self._understander.question(
            request, scope=scope, snapshot=snapshot, policies=policies, log=log, recorded=recorded, as_written=as_written
        )

    def _choose_sources(self, question: Question, *, is_live: bool, log: StageLog) -> Question:
        request, snapshot = question.request, question.snapshot
        visible = snapshot.sources(question.scope)
        if not self._asks_outside(snapshot, is_live=is_live):
            return question._replace(plan=plan_sources(request, visible))
        plan = plan_sources(
            request,
            visible,
            asked=question.asked,
            outside=self.federation.facts(snapshot.descriptors()),
            scope=question.scope,
            settings=self._config.sources,
            remaining_ms=max(0, int(log.left_ms())),
            is_pinned=request.corpus_version is not None or request.evidence_state is not None,
        )
        return question._replace(plan=plan)

    def _asks_outside(self, snapshot: SearchableSnapshot, *, is_live: bool) -> bool:
        """Tell whether there is a source outside the base that could be asked."""
        return self._federation is not None and is_live and not all(each.is_own for each in snapshot.descriptors().values())

    def _look_in_cache(self, question: Question, *, is_live: bool, prefetch: bool, log: StageLog) -> Prepared:
        """Look for what was kept of the sources that are to be asked; the others are left to be called."""
        plan, asked = question.plan, None
        if (plan.calls or plan.skipped) and self._asks_outside(question.snapshot, is_live=is_live):
            outward = SourceQuestion(
                request=question.request,
                scope=question.scope,
                plan=plan,
                descriptors=question.snapshot.descriptors(),
                whole=question.parts[0].asked,
                vector=question.parts[0].vector,
                wanted=question.limit + POOL_BEYOND_LIMIT,
            )
            asked = self.federation.prepare(outward, prefetch=prefetch)
        known = question.inputs.replies if asked is None else asked.known
        kept = sum(1 for reply in known if reply.tier is not None)
        log.mark("cache", f"{kept} answers of sources were kept" if kept else "nothing that was kept takes part")
        calls = 0 if asked is None else len(asked.calls)
        counts = f"{len(plan.searched)} searched, {len(plan.skipped)} left out, {calls} asked outside the base"
        log.mark("sources", "; ".join((counts, *plan.notes)))
        return Prepared(question, asked)

    def _search_legs(self, question: Question, *, depth: int) -> CandidateSet:
        """Search by words and by vectors, beside each other where there is enough of both to do."""
        near = partial(search_vectors, question, depth=depth)
        is_worth_it = question.uses_vectors and question.uses_words and question.snapshot.lexicon(question.scope).chunks >= MANY_CHUNKS
        return search_legs(question, self._offloader.submit(near) if is_worth_it else near, depth=depth)

    def _fuse(self, searched: Searched, log: StageLog) -> Fused:
        """Admit what came from outside, and give every candidate one score."""
        question, found = searched
        settings = self._config.ranking
        admitted = admit(question, tokeniser=self._tokeniser) if question.inputs.replies else NONE_ADMITTED
        merge = partial(self._merge, wait_ms=log.left_until_ms(Stages(log.deadline_ms).ends_ms("fuse")))
        try:
            fused = fuse(question, found, settings=settings, merge=merge)
        except ModelMissingError as error:
            log.degrade(f"merge: {error}, so the legs were merged by 'linear'")
            question = _unmerged(question)
            fused = fuse(question, found, settings=settings, merge=merge)
        if admitted.externals:
            admitted = scored_by_words(question, found, admitted, tokeniser=self._tokeniser, search=self._config.search)
            fused = fuse_external(fused, found, admitted, kappa=settings.rrf_kappa)
        log.mark("fuse", _fused_note(question, admitted), remaining=len(fused))
        return Fused(question, admitted, fused)

    def _merge(self, rows: Sequence[Sequence[int]], *, wait_ms: float) -> Sequence[int]:
        """Have the merging model score candidates, or raise ModelMissingError."""
        merger = self._models.merger()
        if merger is None:
            raise InvalidFieldError("fusion", "'learned' needs a model; name one in ranking.merging_model, or use 'linear' or 'rrf'")
        return self._calls.begin("merging model", partial(_merged, merger, rows), wait_ms=wait_ms)()

    def _read(self, text: str, passages: Sequence[str], *, log: StageLog, reranker: Reranker) -> tuple[int, ...]:
        """Have the reranker read passages; nothing where it is late or fails, which a replay is told as well."""
        stages = Stages(log.deadline_ms)
        left_ms = log.left_until_ms(stages.ends_ms("rerank"))
        budget_ms = max(1, min(stages.share_ms("rerank"), int(left_ms)))
        wait_ms = min(left_ms, 1.5 * budget_ms)  # it may have begun with a passage just before its time was over
        try:
            return self._calls.begin("reranker", partial(_reranked, reranker, text, passages, budget_ms=budget_ms), wait_ms=wait_ms)()
        except ModelMissingError as error:
            log.degrade(f"rerank: {error}, so the order is that of the search")
            return ()

    def _rerank(self, searched: Searched, fused: Fused, log: StageLog) -> Ranked:
        """Rerank and weigh; what the reranker said becomes part of the question's recorded inputs."""
        question, found = searched
        settings = self._config.ranking
        # A receipt without a reranker is not read by one that the settings name since.
        is_asked = self._config.reranker and question.inputs.reranked is None and question.request.rerank and fused.scores
        reranker = self._models.reranker() if is_asked else None
        read = None if reranker is None else partial(self._read, log=log, reranker=reranker)
        reranking = rerank(question, found, fused.admitted, fused.scores, settings=settings, read=read)
        if reranking.given is not None:
            question = question._replace(inputs=msgspec.structs.replace(question.inputs, reranked=reranking.given))
        ranked = weigh(question, found, fused.admitted, fused.scores, reranking, settings=settings)
        note = "no reranker took part" if reranking.given is None else f"{len(reranking.given)} read by the reranker"
        log.mark("rerank", note, remaining=len(ranked))
        return Ranked(question, ranked)

    def _resolve_conflicts(self, ranked: Ranked, log: StageLog) -> tuple[Pool, tuple[Conflict, ...]]:
        pool, conflicts = resolve(read_pool(ranked.question, ranked.candidates), reader=self._claims)
        log.mark("conflicts", f"{len(conflicts)} found among {len(pool.members)}", remaining=len(pool.members))
        return pool, conflicts

    def _diversify(self, question: Question, pool: Pool, conflicts: Sequence[Conflict], log: StageLog) -> list[Pooled]:
        chosen = choose(question, pool, conflicts)
        log.mark("diversify", f"{len(chosen)} of {len(pool.members)} read", remaining=len(chosen))
        return chosen

    def _fit_token_budget(self, question: Question, found: CandidateSet, chosen: Sequence[Pooled], log: StageLog) -> Fitted:
        request = question.request
        ids = [each.ranked.hit.chunk_id for each in chosen]
        cost = self.context_cost(question)
        fitted = fit_budget(self._assembled(question, found, chosen), ids=ids, token_budget=request.token_budget, cost=cost)
        log.mark("budget", _budget_note(question, fitted), remaining=len(fitted.fragments))
        if chosen and not fitted.fragments:
            log.degrade(f"budget: {request.token_budget} tokens do not hold the first sentence of the best fragment and its tag; give more")
        return fitted

    def _assembled(self, question: Question, found: CandidateSet, chosen: Sequence[Pooled]) -> Iterator[EvidenceFragment]:
        """Yield the fragments one after the other: those that a budget does not reach are not made."""
        assembler = self.assembler(question, found)
        proofs = iter(question.snapshot.proofs([each.stored for each in chosen if each.stored is not None]))
        for rank, each in enumerate(chosen, start=1):
            proof = None if each.stored is None else next(proofs)
            yield assembler.assemble(each, rank=rank, proof=proof, explanation=_term_scores(question, each))

    def _govern(self, question: Question, fitted: Fitted, log: StageLog) -> Governed:
        request = question.request
        if not question.policies.policies:
            log.mark("govern", "no policy is in scope", remaining=len(fitted.fragments))
            return Governed(fitted.fragments)
        governed = govern(fitted.fragments, question.policies, mode=request.governance, as_of=request.as_of or log.started_at)
        for reason in governed.degraded:
            log.degrade(reason)
        note = f"{len(question.policies.policies)} policies, {len(governed.remarks)} remarks, {len(governed.withheld)} withheld"
        log.mark("govern", note, remaining=len(governed.fragments))
        return governed

    def _seal_provenance(
        self,
        question: Question,
        found: CandidateSet,
        admitted: Admitted,
        fitted: Fitted,
        governed: Governed,
        *,
        conflicts: tuple[Conflict, ...],
        log: StageLog,
    ) -> EvidenceResponse:
        response = self._sealed(question, found, admitted, fitted, governed, conflicts=conflicts, log=log)
        log.mark("seal", "custody and proofs attached", remaining=len(governed.fragments))
        return msgspec.structs.replace(response, decisions=tuple(log.decisions), stage_latencies_ms=dict(log.latencies_ms))

    def _sealed(
        self,
        question: Question,
        found: CandidateSet,
        admitted: Admitted,
        fitted: Fitted,
        governed: Governed,
        *,
        conflicts: tuple[Conflict, ...],
        log: StageLog,
    ) -> EvidenceResponse:
        request = question.request
        commit, commit_hash = _shown_commit(question)
        coverage = _coverage(question, found, elapsed_ms=log.latencies_ms.get("search", 0.0))
        withheld = (*fitted.withheld, *admitted.withheld, *governed.withheld)
        policies = question.policies.digest if question.policies.policies else ""
        asked = request_hash(request)
        answered = result_hash(
            request=asked,
            evidence_state=commit.evidence_state,
            config=self._config_hash,
            fragments=governed.fragments,
            coverage=coverage,
            withheld=withheld,
            policies=policies,
            conflicts=conflicts,
            facets=found.counts.facets,
            truncation_applied=fitted.is_truncated,
        )
        return EvidenceResponse(
            request_id=RequestId(self._entropy.take(_REQUEST_ID_BYTES).hex()),
            fragments=governed.fragments,
            total_candidates=found.counts.matching + len(admitted.externals),
            latency_ms=log.elapsed_ms(),
            source_coverage=coverage,
            truncation_applied=fitted.is_truncated,
            cache_hit_ratio=_cached_share(governed.fragments, coverage),
            corpus_version=CorpusVersion(commit.corpus_version),
            evidence_state=EvidenceState(commit.evidence_state),
            config_hash=self._config_hash,
            result_hash=answered,
            receipt_id=None,
            request_hash=asked,
            as_of=request.as_of or self.clock.now(),
            commit=commit,
            commit_hash=commit_hash,
            decisions=tuple(log.decisions),
            understanding=question.steps,
            facets=found.counts.facets,
            conflicts=conflicts,
            withheld=withheld,
            policies=policies,
            governance=governed.remarks,
            degraded=tuple(log.degraded),
            is_approximate=found.dense is not None and found.dense.is_approximate,
            stage_latencies_ms=dict(log.latencies_ms),
            tokens_used=_tokens_used(question, governed.fragments),
            custody_format=CUSTODY_FORMAT,
        )

    def _append_receipt(self, question: Question, response: EvidenceResponse, log: StageLog) -> tuple[ReceiptId | None, tuple[str, ...]]:
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
            answered_at=self.clock.now(),
            custody_format=CUSTODY_FORMAT,
            response_hash=response.response_hash,
        )
        # One thread of the engine may wait for the disk; whoever comes meanwhile has it done elsewhere, so that a slow disk takes no more.
        is_here = self._appending.acquire(blocking=False)
        try:
            if is_here:
                return self._receipts.append(receipt), ()
            wait_ms = log.left_until_ms(log.deadline_ms)
            return self._calls.begin("receipt log", partial(self._receipts.append, receipt), wait_ms=wait_ms, breaks=False)(), ()
        except (BaseStateError, ModelMissingError) as error:
            return None, (f"receipt: {error}",)
        finally:
            if is_here:
                self._appending.release()


def _shown_commit(question: Question) -> tuple[CommitRecord, Sha256]:
    """Return the commit record that goes with an answer: the owner's own, and for everybody else the one whose hashes are keyed.

    A receipt of a time when hashes were not keyed yet is answered with those that it names.
    """
    version, request = question.snapshot.version, question.request
    is_owner = request.principal is not None and request.principal.is_owner
    if is_owner or request.evidence_state == version.commit.evidence_state:
        return version.commit, version.commit_hash
    return version.public_commit, version.public_hash


def _budget_note(question: Question, fitted: Fitted) -> str:
    budget = question.request.token_budget
    if budget is None:
        return "no token budget"
    if fitted.is_truncated:
        return f"{len(fitted.fragments)} of the first fragments fit {budget} tokens"
    return f"all {len(fitted.fragments)} fit {budget} tokens"


def _tokens_used(question: Question, fragments: Sequence[EvidenceFragment]) -> int:
    request = question.request
    if request.token_budget is None or request.as_of is None:
        return sum(fragment.token_count for fragment in fragments)
    cost = ContextCost(request.tokenizer, request.as_of, tells_doubt=question.rules.confidence > 1)
    return cost.before(fragments) + cost.tokens(fragments)


def _term_scores(question: Question, pooled: Pooled) -> tuple[TermScore, ...]:
    """Return what each word of the question contributes, where the request wants it explained."""
    if not question.request.explain or pooled.stored is None:
        return ()
    standing = question.snapshot.standing(
        question.words, scope=question.scope, narrowing=question.narrowing, chunk_id=pooled.ranked.hit.chunk_id, ranked=False
    )
    return standing.terms if standing else ()


def _unmerged(question: Question) -> Question:
    """Return a question whose legs are merged without the model, in a replay too."""
    return question._replace(inputs=msgspec.structs.replace(question.inputs, left_out=(*question.inputs.left_out, "merge")))


def _merged(merger: Merger, rows: Sequence[Sequence[int]]) -> Sequence[int]:
    """Return the model's scores; a reply of another form raises here, where it is heard."""
    return [score for score, _ in zip(map(int, merger.merge(rows)), rows, strict=True)]


def _reranked(reranker: Reranker, text: str, passages: Sequence[str], *, budget_ms: int) -> tuple[int, ...]:
    return tuple(map(int, reranker.rerank(text, passages, budget_ms=budget_ms)))[: len(passages)]


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
        yield f"search: the base's own evidence is missing ({question.inputs.own_missing})"
    for source, report in _told(question).items():
        if report.state in _TROUBLED or report.reason.startswith(GIVEN_UP):
            yield f"sources: '{source}' is {report.state.value} ({report.reason})"


def _cached_share(fragments: Sequence[EvidenceFragment], coverage: Mapping[SourceId, CoverageReport]) -> float:
    """Return how much of an answer was kept from before."""
    kept_sources = {source for source, report in coverage.items() if report.tier is not None}
    kept = sum(1 for fragment in fragments if fragment.source_id in kept_sources)
    return kept / len(fragments) if fragments else 0.0


def _coverage(question: Question, found: CandidateSet, *, elapsed_ms: float) -> Mapping[SourceId, CoverageReport]:
    missing = question.inputs.own_missing
    ages = _data_ages_s(question, found)
    own = {
        source: CoverageReport(state=CoverageState.TIMED_OUT, reason=missing, searched_share=0.0, elapsed_ms=elapsed_ms)
        if missing
        else CoverageReport(
            state=CoverageState.SEARCHED,
            candidates=found.counts.matching_by_source.get(source, 0),
            embedded_share=_embedded_share(found, source),
            data_age_s=ages.get(source),
            elapsed_ms=elapsed_ms,
        )
        for source in question.plan.searched
    }
    return dict(sorted({**question.plan.skipped, **own, **_told(question)}.items()))


def _data_ages_s(question: Question, found: CandidateSet) -> Mapping[SourceId, int]:
    """Return how old the newest of the candidates of each source is, as far as they have dates; what is dated later is new."""
    newest: dict[SourceId, datetime] = {}
    for hit, about in zip(found.hits, question.snapshot.signals(found.hits), strict=True):
        if about.updated_at is not None and (hit.source_id not in newest or newest[hit.source_id] < about.updated_at):
            newest[hit.source_id] = about.updated_at
    as_of = question.request.as_of
    return {} if as_of is None else {source: data_age_s(moment, at=as_of) for source, moment in newest.items()}


def _told(question: Question) -> Mapping[SourceId, CoverageReport]:
    """Return the accounts of the sources outside; nearly always there are none."""
    return coverage_of(question.inputs.replies) if question.inputs.replies else {}


def _embedded_share(found: CandidateSet, source: SourceId) -> float | None:
    if found.dense is None:
        return None
    embedded, chunks = found.dense.embedded_by_source.get(source, (0, 0))
    return embedded / chunks if chunks else 1.0
