"""A receipt answered again, and the question why a chunk is or is not in its answer.

Both recompute from the recorded request, state and settings; what they show is cut to what the asker may see today.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.errors import BaseDamagedError, NotFoundError
from evidentia.contracts.evidence import EvidenceFragment, EvidenceRequest, EvidenceResponse, SignalScores
from evidentia.contracts.ids import ChunkId, ReceiptId, document_of
from evidentia.contracts.predicates import Compare, Or
from evidentia.contracts.receipts import EngineConfig, Receipt, ReplayReport, WhyReport
from evidentia.contracts.search import AccessScope, ChunkStanding, LexicalQuery
from evidentia.engine.pipeline import Answered, Engine, Prepared
from evidentia.engine.result_hashes import sealed
from evidentia.engine.selection import CONFLICT_LOST, CONFLICT_WON, OVER_BUDGET, smallest_budget
from evidentia.engine.stage_log import StageLog
from evidentia.policy.access import access_scope, is_allowed, may_ask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from evidentia.contracts.access import Principal
    from evidentia.contracts.ports import Clock, EvidenceIndex, ReceiptLog
    from evidentia.contracts.retrieval import ExternalCandidate
    from evidentia.engine.ordering import RankedCandidate
    from evidentia.engine.pipeline import Engine
    from evidentia.engine.question import Question


_OTHERS_FLAGS = (CONFLICT_LOST, CONFLICT_WON)
"""Flags that speak of other fragments."""
NO_SCORES = SignalScores(relevance=0, authority=0, freshness=0, utility=0, fused=0)
OTHERS_NUMBERS = "its rank and scores speak of all that the caller of that request could see, which is more than the asker may"


@dataclass(frozen=True, slots=True, eq=False)
class Replayer:
    """Asks receipts. `engine_for` gives an engine with the settings of a receipt."""

    index: EvidenceIndex
    _: KW_ONLY
    receipts: ReceiptLog
    engine_for: Callable[[EngineConfig], Engine]
    config: EngineConfig
    clock: Clock

    def replay(self, receipt_id: ReceiptId, *, asker: Principal) -> ReplayReport:
        """Answer a receipt's request again on its own evidence state and compare."""
        receipt = self.receipts.read(receipt_id)
        response = self.engine_for(receipt.config).answer(
            _repeated(receipt), principal=_caller(receipt), access_state=receipt.access_state, recorded=receipt.inputs
        )
        shown = tuple(fragment for fragment in response.fragments if self._may_see(asker, fragment.chunk_id, receipt=receipt))
        withheld = tuple(each for each in response.withheld if self._may_see(asker, each.chunk_id, receipt=receipt))
        governance = tuple(each for each in response.governance if self._may_see(asker, each.chunk_id, receipt=receipt))
        kept = msgspec.structs.replace(response, fragments=shown, withheld=withheld, governance=governance)
        cut = self._without_hidden_conflicts(kept, asker, receipt)
        return ReplayReport(
            receipt_id=receipt_id,
            is_same=response.result_hash == receipt.result_hash,
            recorded_hash=receipt.result_hash,
            result_hash=response.result_hash,
            hidden=len(response.fragments) - len(shown),
            # Sealed anew: the hash of the whole answer would confirm a guess at what was cut from it.
            response=sealed(cut if _knows_all(asker, receipt) else _without_counts(cut)),
        )

    def why(self, receipt_id: ReceiptId, chunk_id: ChunkId, *, asker: Principal) -> WhyReport:
        """Say at which stage a chunk left, or its rank, and the smallest change that would have let it in."""
        receipt = self.receipts.read(receipt_id)
        engine = self.engine_for(receipt.config)
        request = _repeated(receipt)
        log = StageLog(self.clock, deadline_ms=request.latency_deadline_ms)
        # First, because after `gc` every chunk must get the same error.
        prepared = engine.prepare(
            request, principal=_caller(receipt), log=log, access_state=receipt.access_state, recorded=receipt.inputs, is_live=False
        )
        if not self._may_see(asker, chunk_id, receipt=receipt):
            raise NotFoundError("chunk", chunk_id)
        answered = engine.conclude(engine.search(prepared, log), log)
        report = explain(engine, answered, receipt_id=receipt_id, chunk_id=chunk_id, clock=self.clock)
        return report if _knows_all(asker, receipt) else _without_numbers(report)

    def _without_hidden_conflicts(self, response: EvidenceResponse, asker: Principal, receipt: Receipt) -> EvidenceResponse:
        """Return an answer that names only conflicts all of whose sides the asker may see today."""
        conflicts = tuple(
            conflict
            for conflict in response.conflicts
            if all(self._may_see(asker, side, receipt=receipt) for side in (conflict.winner, *conflict.losers))
        )
        if len(conflicts) == len(response.conflicts):
            return response
        told = {side for conflict in conflicts for side in (conflict.winner, *conflict.losers)}
        fragments = tuple(each if each.chunk_id in told else _without_conflict(each) for each in response.fragments)
        return msgspec.structs.replace(response, conflicts=conflicts, fragments=fragments)

    def _may_see(self, asker: Principal, chunk_id: ChunkId, *, receipt: Receipt) -> bool:
        """Tell whether the asker may see a chunk: by today's rule where it lives, else also by the rule of then.

        A text that is gone was under the rule of its own time; that its document is open today says nothing about it.
        """
        scope = access_scope(asker, acl_scope=None, rules=self.config.access.rules)
        said = _said(receipt, chunk_id)
        if said is not None:
            return self._may_know(said, scope, asker=asker, receipt=receipt)
        document_id = document_of(chunk_id)
        if self.index.visibility(document_id, scope=scope) is not True:  # what is hidden takes the way of what is not there
            return False
        newest = self.index.at(search=self.config.search)
        if newest.standing(LexicalQuery(terms={}), scope=scope, narrowing=None, chunk_id=chunk_id) is not None:
            return True
        return self.index.visibility(document_id, scope=scope, evidence_state=receipt.evidence_state) is True

    def _may_know(self, said: ExternalCandidate, scope: AccessScope, *, asker: Principal, receipt: Receipt) -> bool:
        """Tell whether the asker may see what a source outside said then: by the rule it came with, and as one who may ask it today.

        A source that is no longer registered can be asked by nobody; what it said stays with whoever was told, and with the owner.
        """
        if not is_allowed(said.access, scope):
            return False
        descriptor = self.index.at(search=self.config.search).descriptors().get(said.source_id)
        return _knows_all(asker, receipt) if descriptor is None else may_ask(descriptor.access_policy, scope)


def _said(receipt: Receipt, chunk_id: ChunkId) -> ExternalCandidate | None:
    """Return what a source outside said, if a chunk is that."""
    candidates = (each for reply in receipt.inputs.replies for each in reply.candidates)
    return next((each for each in candidates if each.chunk_id == chunk_id), None)


def _repeated(receipt: Receipt) -> EvidenceRequest:
    """Return the recorded request, pinned to the recorded state, without another receipt."""
    return msgspec.structs.replace(receipt.request, evidence_state=receipt.evidence_state, receipt=False)


def _caller(receipt: Receipt) -> Principal:
    if receipt.request.principal is None:
        raise BaseDamagedError("receipt", "it does not name its caller")
    return receipt.request.principal


def _knows_all(asker: Principal, receipt: Receipt) -> bool:
    """Tell whether an asker may see whatever the first caller could: the same one, or the owner of that tenant."""
    caller = receipt.request.principal
    if caller is None or asker == caller:
        return asker == caller
    return asker.is_owner and asker.tenant == caller.tenant and asker.clearance.rank >= caller.clearance.rank


def _without_counts(response: EvidenceResponse) -> EvidenceResponse:
    """Return an answer without the numbers that speak of everything its first caller could see, scores included."""
    return msgspec.structs.replace(
        response,
        fragments=tuple(
            msgspec.structs.replace(
                fragment,
                score=0,
                scores=NO_SCORES,
                relevance_score=0.0,
                confidence=0.0,
                trust_metadata=None,
                retrieval_context=None,
                explanation=(),
                flags=tuple(flag for flag in fragment.flags if flag not in _OTHERS_FLAGS),
            )
            for fragment in response.fragments
        ),
        total_candidates=len(response.fragments) + len(response.withheld),
        source_coverage={
            source: msgspec.structs.replace(response.source_coverage[source], candidates=0, embedded_share=None)
            for source in sorted({fragment.source_id for fragment in response.fragments})
        },
        decisions=(),
        understanding=(),
        facets={},
        conflicts=(),
        degraded=(),
        tokens_used=sum(fragment.token_count for fragment in response.fragments),
        truncation_applied=bool(response.withheld),
    )


def _without_conflict(fragment: EvidenceFragment) -> EvidenceFragment:
    """Return a fragment as if it agreed with all others."""
    trust = fragment.trust_metadata
    return msgspec.structs.replace(
        fragment,
        flags=tuple(flag for flag in fragment.flags if flag not in _OTHERS_FLAGS),
        trust_metadata=None if trust is None else msgspec.structs.replace(trust, conflict_flag=False),
    )


def _without_numbers(report: WhyReport) -> WhyReport:
    return msgspec.structs.replace(
        report, rank=None, score=0, scores=None, confidence=None, terms=(), reason=OTHERS_NUMBERS, smallest_change=""
    )


# --- explanation ---
# Why a chunk is, or is not, in an answer: the stage at which it left, its scores, and what would have let it in. The smallest change is
# not guessed: the question is pursued again with it, and it is named only when the chunk is then in.

ANSWERED = "answered"
MAX_RESULTS = 10_000
"""The largest `limit` that a request may ask for."""
LARGEST_BUDGET = 2**32 - 1
_TRIED_ONE_BY_ONE = 32
_OUTSIDE = ChunkStanding(is_narrowed_out=False, has_phrases=True, score=0, terms=(), rank=None)
"""How what a source outside said stands towards the words of a query: they are the source's affair."""
_WITHOUT_PLUS = "the query without the plus sign before the quotation marks"
_OTHER_WORDS = "a query with one of its words"


def explain(engine: Engine, answered: Answered, *, receipt_id: ReceiptId, chunk_id: ChunkId, clock: Clock) -> WhyReport:
    """Say why a chunk that the asker may see is, or is not, in the answer of a answered."""
    question = answered.question
    standing = question.snapshot.standing(question.words, scope=question.scope, narrowing=question.narrowing, chunk_id=chunk_id)
    is_outside = any(each.chunk_id == chunk_id for reply in question.inputs.replies for each in reply.candidates)
    if standing is None and is_outside:
        standing = _OUTSIDE
    if standing is None:
        return _unseen(receipt_id, chunk_id)
    rank = _rank_in(answered, chunk_id)
    place, ranked = _place_among(answered.ranked, chunk_id)
    stage, reason = (
        _kept_back(answered, chunk_id) if is_outside and place is None else _departure(answered, chunk_id, standing, rank=rank, place=place)
    )
    changes = [] if rank or (is_outside and place is None) else list(_Changes(engine, clock).needed(question, chunk_id, standing))
    return WhyReport(
        receipt_id=receipt_id,
        chunk_id=chunk_id,
        stage=stage,
        rank=rank or place or standing.rank,
        score=ranked.score if ranked else 0,
        scores=ranked.scores if ranked else None,
        confidence=engine.assembler(question, answered.found).believed(ranked) if ranked else None,
        terms=standing.terms,
        reason=reason,
        smallest_change=" and ".join(changes),
    )


class _Changes:
    """Tries changes of a question, one after the other."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock

    def needed(self, question: Question, chunk_id: ChunkId, standing: ChunkStanding) -> Iterator[str]:
        """Yield every change without which a chunk stays out; together they let it in."""
        if standing.is_narrowed_out and question.narrowing is not None:
            yield "a filter, window or source_policy that admits it"
            admitting = Or((question.narrowing, Compare("document_id", "=", document_of(chunk_id))))
            question = question._replace(plan=msgspec.structs.replace(question.plan, narrowing=admitting))
        if not standing.has_phrases:
            yield _WITHOUT_PLUS if question.rules.prefers_quotations else "the query without the quotation marks"
            question = _without_phrases(question)
        budget = question.request.token_budget
        question = _asking(question, token_budget=None)
        limit = self._smallest_limit(question, chunk_id)
        if limit is None:
            yield _OTHER_WORDS if not standing.terms else f"a query that ranks it among the first {MAX_RESULTS}"
            return
        if limit > question.limit:
            yield f"limit={limit}"
        if budget is not None:
            needed = self._smallest_budget(_asking(question, limit=limit), chunk_id, budget=budget)
            if needed > budget:
                yield f"token_budget={needed}"

    def _smallest_limit(self, question: Question, chunk_id: ChunkId) -> int | None:
        """Return the smallest limit that lets a chunk in: exactly for the next few, then by halving what is left."""
        first = question.limit
        for limit in range(first, min(first + _TRIED_ONE_BY_ONE, MAX_RESULTS + 1)):
            if self._is_in(_asking(question, limit=limit), chunk_id):
                return limit
        low, high = min(first + _TRIED_ONE_BY_ONE, MAX_RESULTS) - 1, MAX_RESULTS
        if not self._is_in(_asking(question, limit=high), chunk_id):
            return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._is_in(_asking(question, limit=middle), chunk_id) else (middle, high)
        return high

    def _smallest_budget(self, question: Question, chunk_id: ChunkId, *, budget: int) -> int:
        if self._is_in(_asking(question, token_budget=budget), chunk_id):
            return budget
        everything = self._answer(_asking(question, token_budget=LARGEST_BUDGET)).response.fragments
        index = [each.chunk_id for each in everything].index(chunk_id)
        return smallest_budget(everything, index, cost=self._engine.context_cost(question))

    def _is_in(self, question: Question, chunk_id: ChunkId) -> bool:
        return any(fragment.chunk_id == chunk_id for fragment in self._answer(question).response.fragments)

    def _answer(self, question: Question) -> Answered:
        """Search and answer a question that was changed; nothing is written."""
        log = StageLog(self._clock, deadline_ms=question.request.latency_deadline_ms)
        return self._engine.conclude(self._engine.search(Prepared(question, None), log), log)


def _asking(question: Question, **changes: int | None) -> Question:
    return question._replace(request=msgspec.structs.replace(question.request, **changes))


def _without_phrases(question: Question) -> Question:
    return question._replace(
        parts=tuple(part._replace(words=_unbound(part.words, prefers=question.rules.prefers_quotations)) for part in question.parts)
    )


def _unbound(words: LexicalQuery, *, prefers: bool) -> LexicalQuery:
    """Return the words of a question without its required phrases; those are preferred then, where quotations prefer."""
    freed = [phrase for phrase in words.phrases if len(phrase) > 1] if prefers else []
    return msgspec.structs.replace(words, phrases=(), preferred=tuple(dict.fromkeys((*words.preferred, *freed))))


def _rank_in(answered: Answered, chunk_id: ChunkId) -> int | None:
    ranks = (rank for rank, fragment in enumerate(answered.response.fragments, start=1) if fragment.chunk_id == chunk_id)
    return next(ranks, None)


def _place_among(ranked: list[RankedCandidate], chunk_id: ChunkId) -> tuple[int | None, RankedCandidate | None]:
    for place, each in enumerate(ranked, start=1):
        if each.hit.chunk_id == chunk_id:
            return place, each
    return None, None


def _departure(answered: Answered, chunk_id: ChunkId, standing: ChunkStanding, *, rank: int | None, place: int | None) -> tuple[str, str]:
    """Return the stage at which a chunk left, and the reason."""
    if rank is not None:
        return ANSWERED, f"it is number {rank} of the answer"
    if standing.is_narrowed_out:
        return "sources", "the filter, the time window or source_policy leaves it out"
    if not standing.has_phrases:
        return "search", "a phrase that the query requires does not occur in it"
    if place is None:
        return "search", _not_found_reason(answered, standing)
    if any(each.chunk_id == chunk_id for each in answered.response.withheld):
        return "budget", OVER_BUDGET
    return _overtaken(answered, place)


def _kept_back(answered: Answered, chunk_id: ChunkId) -> tuple[str, str]:
    """Return why what a source outside said did not become a candidate."""
    for each in answered.response.withheld:
        if each.chunk_id == chunk_id:
            return "sources", each.reason
    return "sources", "the filter or the time window leaves it out, or its own rule keeps it from the caller"


def _overtaken(answered: Answered, place: int) -> tuple[str, str]:
    limit = answered.question.limit
    if place <= limit:
        return "diversify", f"it is number {place} by score, and too like fragments above it"
    return "rerank", f"it is number {place} by score, and the limit is {limit}"


def _not_found_reason(answered: Answered, standing: ChunkStanding) -> str:
    if not standing.terms:
        near = ", nor is its vector among the nearest" if answered.question.uses_vectors else ""
        return f"none of the query's words occurs in it{near}"
    near = ", and its vector is not among the nearest" if answered.question.uses_vectors else ""
    return f"it is number {standing.rank} of the matches by words, too far down to be a candidate{near}"


def _unseen(receipt_id: ReceiptId, chunk_id: ChunkId) -> WhyReport:
    return WhyReport(
        receipt_id=receipt_id,
        chunk_id=chunk_id,
        stage="scope",
        rank=None,
        score=0,
        scores=None,
        confidence=None,
        terms=(),
        reason="the caller of that request could not see it, or it was not in that version",
        smallest_change="a caller who may see it, or a version that holds it",
    )
