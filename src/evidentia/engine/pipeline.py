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
from evidentia.contracts.errors import BaseStateError
from evidentia.contracts.evidence import CoverageReport, EvidenceResponse
from evidentia.contracts.ids import CorpusVersion, EvidenceState, RequestId
from evidentia.contracts.receipts import EngineConfig, Receipt, RecordedInputs
from evidentia.contracts.vocabulary import CoverageState
from evidentia.engine.assemble import Assembler, count_remembered
from evidentia.engine.budget import fit_budget
from evidentia.engine.checking import check_request
from evidentia.engine.legs import search_legs, search_vectors
from evidentia.engine.ordering import fuse, rerank, weigh
from evidentia.engine.plan import plan_sources
from evidentia.engine.results import config_hash, request_hash, result_hash
from evidentia.engine.selection import ClaimReader, choose, read_pool, resolve
from evidentia.engine.trail import LATER, Trail
from evidentia.engine.understanding import NO_VECTORS, Understander
from evidentia.policy.access import access_scope
from evidentia.text.tokens import Tokeniser

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evidentia.contracts.access import Principal
    from evidentia.contracts.evidence import Conflict, EvidenceFragment, EvidenceRequest, TermScore
    from evidentia.contracts.ids import ChunkId, SourceId
    from evidentia.contracts.ports import Clock, Entropy, EvidenceIndex, ReceiptLog
    from evidentia.engine.budget import Fitted
    from evidentia.engine.legs import Found
    from evidentia.engine.ordering import Ranked
    from evidentia.engine.outside import Models
    from evidentia.engine.question import Question
    from evidentia.engine.selection import Pooled

ENGINE = "evidentia-engine/2"
"""Changes when the same request on the same state with the same settings may give another answer."""
ESTIMATE = "chars4"
"""How tokens are counted where no budget depends on it; the fragment says so."""
_REQUEST_ID_BYTES = 8


class Run(NamedTuple):
    """A question with what the steps made of it, for those who ask why."""

    question: Question
    found: Found
    ranked: list[Ranked]
    chosen: list[Pooled]
    response: EvidenceResponse


class Engine:
    """Answers requests over one base. Thread safe."""

    def __init__(
        self, index: EvidenceIndex, *, receipts: ReceiptLog, config: EngineConfig, models: Models, clock: Clock, entropy: Entropy
    ) -> None:
        self._index = index
        self._receipts = receipts
        self._config = config
        self._config_hash = config_hash(config)
        self._models = models
        self._clock = clock
        self._entropy = entropy
        self._claims = ClaimReader()
        self._understander = Understander(config, models=models, tokeniser=Tokeniser(config.text.language))

    def answer(
        self,
        request: EvidenceRequest,
        *,
        principal: Principal,
        access_state: EvidenceState | None = None,
        recorded: RecordedInputs | None = None,
    ) -> EvidenceResponse:
        """Answer a request as its principal, else as `principal`.

        A request for an old version is answered under the access of that version and of `access_state`, the newest by default.
        What models said when it was `recorded` is taken from there.
        """
        trail = Trail(self._clock, deadline_ms=request.latency_deadline_ms)
        question = self.understand(request, principal=principal, trail=trail, access_state=access_state, recorded=recorded)
        return self.pursue(question, trail).response

    def pursue(self, question: Question, trail: Trail) -> Run:
        """Take an understood question to its answer, and keep what each step left."""
        trail.mark("cache", LATER)
        trail.mark("sources", f"{len(question.plan.searched)} searched, {len(question.plan.skipped)} left out")
        question, found = self._search(question, trail)
        question, ranked = self._order(question, found, trail)
        pool, conflicts = self._resolve(question, ranked, trail)
        chosen = choose(question, pool)
        trail.mark("diversify", f"{len(chosen)} of {len(pool)} read", remaining=len(chosen))
        fitted = self._fit(question, found, chosen, trail)
        trail.mark("govern", LATER, remaining=len(fitted.fragments))
        response = self._seal(question, found, fitted, conflicts, trail)
        return Run(question=question, found=found, ranked=ranked, chosen=chosen, response=response)

    def understand(
        self,
        request: EvidenceRequest,
        *,
        principal: Principal,
        trail: Trail,
        access_state: EvidenceState | None = None,
        recorded: RecordedInputs | None = None,
    ) -> Question:
        """Do what comes before searching: check, scope, understand, plan."""
        checked = check_request(request, search=self._config.search, now=self._clock.now())
        caller = normalised(checked.principal or principal)
        checked = msgspec.structs.replace(checked, principal=caller)
        trail.mark("check", "the request can be answered")
        scope = access_scope(caller, acl_scope=checked.source_policy.acl_scope, rules=self._config.access.rules)
        trail.mark("scope", f"access fingerprint {scope.fingerprint[:16]}")
        snapshot = self._index.at(
            search=self._config.search,
            corpus_version=checked.corpus_version,
            evidence_state=checked.evidence_state,
            access_state=access_state,
        )
        plan = plan_sources(checked, snapshot.sources(scope))
        return self._understander.question(checked, scope=scope, snapshot=snapshot, plan=plan, trail=trail, recorded=recorded)

    def _search(self, question: Question, trail: Trail) -> tuple[Question, Found]:
        """Search; who sees no vector is answered as in a base without any, so that those of others leave no trace."""
        depth = max(self._config.ranking.candidates, question.request.limit)
        nearest = search_vectors(question, depth=depth)
        if nearest[0] is not None and not nearest[0].embedded:
            trail.degrade(NO_VECTORS)
            question, nearest = question.without_vectors(), [None] * len(nearest)
        found = search_legs(question, nearest, depth=depth)
        trail.mark("search", _searched_note(found), remaining=len(found.hits))
        return question, found

    def _order(self, question: Question, found: Found, trail: Trail) -> tuple[Question, list[Ranked]]:
        """Fuse, rerank and weigh; what the reranker said becomes part of the question's recorded inputs."""
        settings = self._config.ranking
        fused = fuse(question, found, settings=settings, merger=self._models.merger)
        trail.mark("fuse", _fused_note(question), remaining=len(found.hits))
        # A receipt without a reranker is not read by one that the settings name since.
        reranker = self._models.reranker if self._config.reranker else _no_reranker
        reranking = rerank(question, found, fused, settings=settings, reranker=reranker)
        if reranking.given is not None:
            question = question._replace(inputs=msgspec.structs.replace(question.inputs, reranked=reranking.given))
        ranked = weigh(question, found, fused, reranking, settings=settings)
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
        return [
            assembler.assemble(each, rank=rank, explanation=self._explain(question, each.ranked.hit.chunk_id))
            for rank, each in enumerate(chosen, start=1)
        ]

    def _explain(self, question: Question, chunk_id: ChunkId) -> tuple[TermScore, ...]:
        if not question.request.explain:
            return ()
        standing = question.snapshot.standing(
            question.words, scope=question.scope, narrowing=question.narrowing, chunk_id=chunk_id, ranked=False
        )
        return standing.terms if standing else ()

    def _seal(self, question: Question, found: Found, fitted: Fitted, conflicts: tuple[Conflict, ...], trail: Trail) -> EvidenceResponse:
        request, version = question.request, question.snapshot.version
        coverage = _coverage(question, found, elapsed_ms=trail.latencies_ms["search"])
        asked = request_hash(request)
        answered = result_hash(
            request=asked,
            evidence_state=version.commit.evidence_state,
            config=self._config_hash,
            fragments=fitted.fragments,
            coverage=coverage,
            withheld=fitted.withheld,
            conflicts=conflicts,
            facets=found.counts.facets,
            truncation_applied=fitted.is_truncated,
        )
        trail.mark("seal", "custody and proofs attached", remaining=len(fitted.fragments))
        trail.check_deadline()
        response = EvidenceResponse(
            request_id=RequestId(self._entropy.take(_REQUEST_ID_BYTES).hex()),
            fragments=fitted.fragments,
            total_candidates=found.counts.matching,
            latency_ms=trail.elapsed_ms(),
            source_coverage=coverage,
            truncation_applied=fitted.is_truncated,
            cache_hit_ratio=0.0,
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
            withheld=fitted.withheld,
            degraded=tuple(trail.degraded),
            is_approximate=found.dense is not None and found.dense.is_approximate,
            stage_latencies_ms=trail.latencies_ms,
            tokens_used=fitted.tokens_used,
        )
        return self._with_receipt(question, response) if request.receipt else response

    def _with_receipt(self, question: Question, response: EvidenceResponse) -> EvidenceResponse:
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
            return msgspec.structs.replace(response, receipt_id=self._receipts.append(receipt))
        except BaseStateError as error:
            return msgspec.structs.replace(response, degraded=(*response.degraded, f"receipt: {error}"))


def _no_reranker() -> None:
    """Stand in for the reranker where a configuration names none."""


def _searched_note(found: Found) -> str:
    near = f", {len(found.dense.hits)} near of {found.dense.embedded} embedded" if found.dense else ""
    return f"{found.counts.matching} fragments match{near}; {len(found.hits)} are candidates"


def _fused_note(question: Question) -> str:
    if question.uses_words and question.uses_vectors:
        return f"words and vectors, {question.request.fusion.value}"
    return "words alone" if question.uses_words else "vectors alone"


def _coverage(question: Question, found: Found, *, elapsed_ms: float) -> Mapping[SourceId, CoverageReport]:
    searched = {
        source: CoverageReport(
            state=CoverageState.SEARCHED,
            candidates=found.counts.matching_by_source.get(source, 0),
            embedded_share=_embedded_share(found, source),
            elapsed_ms=elapsed_ms,
        )
        for source in question.plan.searched
    }
    return dict(sorted({**question.plan.skipped, **searched}.items()))


def _embedded_share(found: Found, source: SourceId) -> float | None:
    if found.dense is None:
        return None
    embedded, chunks = found.dense.embedded_by_source.get(source, (0, 0))
    return embedded / chunks if chunks else 1.0
