"""What happens to a request, from door to answer: thirteen steps, one call each, in this order.

1. check the request          2. scope access            3. understand the query    4. look in the cache
5. choose sources             6. search under the deadline                          7. fuse
8. rerank                     9. resolve conflicts      10. diversify               11. fit the token budget
12. govern                   13. seal provenance, write the receipt, answer

Steps whose time has not come say so in `decisions`. The flow is a written function, not a graph that users assemble.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from evidentia.contracts.access import normalised
from evidentia.contracts.errors import BaseStateError
from evidentia.contracts.evidence import CoverageReport, EvidenceResponse
from evidentia.contracts.ids import CorpusVersion, EvidenceState, RequestId
from evidentia.contracts.receipts import EngineConfig, Receipt
from evidentia.contracts.vocabulary import CoverageState, RetrievalMode
from evidentia.engine.assemble import Assembler
from evidentia.engine.budget import fit_budget
from evidentia.engine.checking import check_request
from evidentia.engine.plan import plan_sources
from evidentia.engine.results import config_hash, request_hash, result_hash
from evidentia.engine.trail import LATER, Trail
from evidentia.policy.access import access_scope
from evidentia.query.lexical import lexical_query
from evidentia.text.tokens import Tokeniser

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evidentia.contracts.access import Principal
    from evidentia.contracts.evidence import EvidenceFragment, EvidenceRequest, TermScore
    from evidentia.contracts.ids import ChunkId, SourceId
    from evidentia.contracts.ports import Clock, Entropy, EvidenceIndex, EvidenceSnapshot, ReceiptLog
    from evidentia.contracts.predicates import Predicate
    from evidentia.contracts.search import AccessScope, LexicalHits, LexicalQuery
    from evidentia.engine.budget import Fitted
    from evidentia.engine.plan import SourcePlan

ENGINE = "evidentia-engine/1"
"""Changes when the same request on the same state with the same settings may give another answer."""
NO_VECTORS = "dense: this base holds no vectors, so only words were searched"
ESTIMATE = "chars4"
"""How tokens are counted where no budget depends on it; the fragment says so."""
_REQUEST_ID_BYTES = 8


class Question(NamedTuple):
    """A checked request with what follows from it alone: who may see what, and what the words ask."""

    request: EvidenceRequest
    scope: AccessScope
    query: LexicalQuery
    snapshot: EvidenceSnapshot
    plan: SourcePlan

    @property
    def narrowing(self) -> Predicate | None:
        """Return what the request wants of what the caller may see."""
        return self.plan.narrowing


class Engine:
    """Answers requests over one base. Thread safe."""

    def __init__(self, index: EvidenceIndex, *, receipts: ReceiptLog, config: EngineConfig, clock: Clock, entropy: Entropy) -> None:
        self._index = index
        self._receipts = receipts
        self._config = config
        self._config_hash = config_hash(config)
        self._clock = clock
        self._entropy = entropy
        self._tokeniser = Tokeniser(config.text.language)

    def answer(self, request: EvidenceRequest, *, principal: Principal, access_state: EvidenceState | None = None) -> EvidenceResponse:
        """Answer a request as its principal, else as `principal`.

        A request for an old version is answered under the access of that version and of `access_state`, the newest by default.
        """
        trail = Trail(self._clock, deadline_ms=request.latency_deadline_ms)
        question = self.understand(request, principal=principal, trail=trail, access_state=access_state)
        trail.mark("cache", LATER)
        trail.mark("sources", f"{len(question.plan.searched)} searched, {len(question.plan.skipped)} left out")
        hits = self._search(question, trail)
        for stage in ("fuse", "rerank", "conflicts", "diversify"):
            trail.mark(stage, LATER, remaining=len(hits.hits))
        fragments = self._assemble(question, hits)
        fitted = self._fit(question.request, fragments, trail)
        trail.mark("govern", LATER, remaining=len(fitted.fragments))
        return self._seal(question, hits, fitted, trail)

    def understand(
        self, request: EvidenceRequest, *, principal: Principal, trail: Trail, access_state: EvidenceState | None = None
    ) -> Question:
        """Do what comes before searching: check, scope, understand, plan."""
        checked = check_request(request, search=self._config.search, now=self._clock.now())
        caller = normalised(checked.principal or principal)
        checked = msgspec.structs.replace(checked, principal=caller)
        trail.mark("check", "the request can be answered")
        scope = access_scope(caller, acl_scope=checked.source_policy.acl_scope, rules=self._config.access.rules)
        trail.mark("scope", f"access fingerprint {scope.fingerprint[:16]}")
        query = lexical_query(checked.query.text, self._tokeniser)
        trail.mark("understand", f"{len(query.terms)} terms, {len(query.phrases)} phrases")
        snapshot = self._index.at(
            search=self._config.search,
            corpus_version=checked.corpus_version,
            evidence_state=checked.evidence_state,
            access_state=access_state,
        )
        plan = plan_sources(checked, snapshot.sources(scope))
        return Question(request=checked, scope=scope, query=query, snapshot=snapshot, plan=plan)

    def _search(self, question: Question, trail: Trail) -> LexicalHits:
        request = question.request
        if request.mode is not RetrievalMode.LEXICAL:
            trail.degrade(NO_VECTORS)
        hits = question.snapshot.search(
            question.query, scope=question.scope, narrowing=question.narrowing, facets=request.facets, limit=request.limit
        )
        trail.mark("search", f"{hits.matching} fragments match, {len(hits.hits)} kept", remaining=len(hits.hits))
        return hits

    def _assemble(self, question: Question, hits: LexicalHits) -> list[EvidenceFragment]:
        request = question.request
        tokenizer = ESTIMATE if request.token_budget is None else request.tokenizer
        assembler = Assembler(request, retriever=self._config.search.weighting, now=self._clock.now(), tokenizer=tokenizer)
        stored = question.snapshot.fragments(hits.hits)
        return [
            assembler.assemble(hit, fragment, rank=rank, explanation=self._explain(question, hit.chunk_id))
            for rank, (hit, fragment) in enumerate(zip(hits.hits, stored, strict=True), start=1)
        ]

    def _explain(self, question: Question, chunk_id: ChunkId) -> tuple[TermScore, ...]:
        if not question.request.explain:
            return ()
        standing = question.snapshot.standing(
            question.query, scope=question.scope, narrowing=question.narrowing, chunk_id=chunk_id, ranked=False
        )
        return standing.terms if standing else ()

    def _fit(self, request: EvidenceRequest, fragments: list[EvidenceFragment], trail: Trail) -> Fitted:
        fitted = fit_budget(fragments, token_budget=request.token_budget)
        note = f"{fitted.tokens_used} tokens" if request.token_budget is None else f"{fitted.tokens_used} of {request.token_budget} tokens"
        trail.mark("budget", note, remaining=len(fitted.fragments))
        return fitted

    def _seal(self, question: Question, hits: LexicalHits, fitted: Fitted, trail: Trail) -> EvidenceResponse:
        request, version = question.request, question.snapshot.version
        coverage = _coverage(question.plan, hits, elapsed_ms=trail.latencies_ms["search"])
        asked = request_hash(request)
        is_truncated = bool(fitted.withheld)
        answered = result_hash(
            request=asked,
            evidence_state=version.commit.evidence_state,
            config=self._config_hash,
            fragments=fitted.fragments,
            coverage=coverage,
            withheld=fitted.withheld,
            conflicts=(),
            facets=hits.facets,
            truncation_applied=is_truncated,
        )
        trail.mark("seal", "custody and proofs attached", remaining=len(fitted.fragments))
        trail.check_deadline()
        response = EvidenceResponse(
            request_id=RequestId(self._entropy.take(_REQUEST_ID_BYTES).hex()),
            fragments=fitted.fragments,
            total_candidates=hits.matching,
            latency_ms=trail.elapsed_ms(),
            source_coverage=coverage,
            truncation_applied=is_truncated,
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
            facets=hits.facets,
            withheld=fitted.withheld,
            degraded=tuple(trail.degraded),
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
            result_hash=response.result_hash,
            answered_at=self._clock.now(),
        )
        try:
            return msgspec.structs.replace(response, receipt_id=self._receipts.append(receipt))
        except BaseStateError as error:
            return msgspec.structs.replace(response, degraded=(*response.degraded, f"receipt: {error}"))


def _coverage(plan: SourcePlan, hits: LexicalHits, *, elapsed_ms: float) -> Mapping[SourceId, CoverageReport]:
    searched = {
        source: CoverageReport(state=CoverageState.SEARCHED, candidates=hits.matching_by_source.get(source, 0), elapsed_ms=elapsed_ms)
        for source in plan.searched
    }
    return dict(sorted({**plan.skipped, **searched}.items()))
