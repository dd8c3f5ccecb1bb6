"""A receipt answered again, and the question why a chunk is or is not in its answer.

Both recompute from the recorded request, state and settings; what they show is cut to what the asker may see today.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.errors import BaseDamagedError, NotFoundError
from evidentia.contracts.ids import document_of
from evidentia.contracts.predicates import Compare, Or
from evidentia.contracts.receipts import ReplayReport, WhyReport
from evidentia.contracts.search import LexicalQuery
from evidentia.engine.budget import OVER_BUDGET, smallest_budget
from evidentia.engine.trail import Trail
from evidentia.policy.access import access_scope
from evidentia.text.counting import count_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from evidentia.contracts.access import Principal
    from evidentia.contracts.evidence import EvidenceRequest, EvidenceResponse
    from evidentia.contracts.ids import ChunkId, ReceiptId
    from evidentia.contracts.ports import Clock, EvidenceIndex, ReceiptLog
    from evidentia.contracts.receipts import EngineConfig, Receipt
    from evidentia.contracts.search import ChunkStanding
    from evidentia.engine.pipeline import Engine, Question

ANSWERED = "answered"
OTHERS_NUMBERS = "its rank and scores speak of all that the caller of that request could see, which is more than the asker may"
MOST_RESULTS = 10_000
"""The largest `limit` that a request may ask for."""


class Replayer:
    """Asks receipts. `engine_for` gives an engine with the settings of a receipt."""

    def __init__(
        self,
        index: EvidenceIndex,
        *,
        receipts: ReceiptLog,
        engine_for: Callable[[EngineConfig], Engine],
        config: EngineConfig,
        clock: Clock,
    ) -> None:
        self._index = index
        self._receipts = receipts
        self._engine_for = engine_for
        self._config = config
        self._clock = clock

    def replay(self, receipt_id: ReceiptId, *, asker: Principal) -> ReplayReport:
        """Answer a receipt's request again on its own evidence state and compare."""
        receipt = self._receipts.read(receipt_id)
        response = self._engine_for(receipt.config).answer(
            _repeated(receipt), principal=_caller(receipt), access_state=receipt.access_state
        )
        shown = tuple(fragment for fragment in response.fragments if self._may_see(asker, fragment.chunk_id, receipt=receipt))
        withheld = tuple(each for each in response.withheld if self._may_see(asker, each.chunk_id, receipt=receipt))
        cut = msgspec.structs.replace(response, fragments=shown, withheld=withheld)
        return ReplayReport(
            receipt_id=receipt_id,
            is_same=response.result_hash == receipt.result_hash,
            recorded_hash=receipt.result_hash,
            result_hash=response.result_hash,
            hidden=len(response.fragments) - len(shown),
            response=cut if _knows_all(asker, receipt) else _without_counts(cut),
        )

    def why(self, receipt_id: ReceiptId, chunk_id: ChunkId, *, asker: Principal) -> WhyReport:
        """Say at which stage a chunk left, or its rank, and the smallest change that would have let it in."""
        receipt = self._receipts.read(receipt_id)
        engine = self._engine_for(receipt.config)
        request = _repeated(receipt)
        trail = Trail(self._clock, deadline_ms=request.latency_deadline_ms)
        # First, because after `gc` every chunk must get the same error.
        question = engine.understand(request, principal=_caller(receipt), trail=trail, access_state=receipt.access_state)
        if not self._may_see(asker, chunk_id, receipt=receipt):
            raise NotFoundError("chunk", chunk_id)
        standing = question.snapshot.standing(question.query, scope=question.scope, narrowing=question.narrowing, chunk_id=chunk_id)
        if standing is None:
            return _unseen(receipt_id, chunk_id)
        answer = engine.answer(request, principal=_caller(receipt), access_state=receipt.access_state)
        ranks = {fragment.chunk_id: rank for rank, fragment in enumerate(answer.fragments, start=1)}
        rank = ranks.get(chunk_id)
        is_withheld = any(each.chunk_id == chunk_id for each in answer.withheld)
        stage, reason = _departure(standing, request=request, rank=rank, is_withheld=is_withheld)
        report = WhyReport(
            receipt_id=receipt_id,
            chunk_id=chunk_id,
            stage=stage,
            rank=rank or standing.rank,
            score=standing.score,
            terms=standing.terms,
            reason=reason,
            smallest_change="" if rank else " and ".join(_needed_changes(question, chunk_id, standing)),
        )
        return report if _knows_all(asker, receipt) else _without_numbers(report)

    def _may_see(self, asker: Principal, chunk_id: ChunkId, *, receipt: Receipt) -> bool:
        """Tell whether the asker may see a chunk: by today's rule where it lives, else also by the rule of then.

        A text that is gone was under the rule of its own time; that its document is open today says nothing about it.
        """
        scope = access_scope(asker, acl_scope=None, rules=self._config.access.rules)
        document_id = document_of(chunk_id)
        if self._index.visibility(document_id, scope=scope) is False:
            return False
        newest = self._index.at(search=self._config.search)
        if newest.standing(LexicalQuery(terms={}), scope=scope, narrowing=None, chunk_id=chunk_id) is not None:
            return True
        return self._index.visibility(document_id, scope=scope, evidence_state=receipt.evidence_state) is True


def _repeated(receipt: Receipt) -> EvidenceRequest:
    """Return the recorded request, pinned to the recorded state, without another receipt."""
    return msgspec.structs.replace(receipt.request, evidence_state=receipt.evidence_state, receipt=False)


def _caller(receipt: Receipt) -> Principal:
    if receipt.request.principal is None:
        raise BaseDamagedError("receipt", "it does not name its caller")
    return receipt.request.principal


def _unseen(receipt_id: ReceiptId, chunk_id: ChunkId) -> WhyReport:
    return WhyReport(
        receipt_id=receipt_id,
        chunk_id=chunk_id,
        stage="scope",
        rank=None,
        score=0,
        terms=(),
        reason="the caller of that request could not see it, or it was not in that version",
        smallest_change="a caller who may see it, or a version that holds it",
    )


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
            msgspec.structs.replace(fragment, score=0, relevance_score=0.0, retrieval_context=None, explanation=())
            for fragment in response.fragments
        ),
        total_candidates=len(response.fragments) + len(response.withheld),
        source_coverage={
            source: msgspec.structs.replace(response.source_coverage[source], candidates=0)
            for source in sorted({fragment.source_id for fragment in response.fragments})
        },
        decisions=(),
        facets={},
        tokens_used=sum(fragment.token_count for fragment in response.fragments),
        truncation_applied=bool(response.withheld),
    )


def _without_numbers(report: WhyReport) -> WhyReport:
    return msgspec.structs.replace(report, rank=None, score=0, terms=(), reason=OTHERS_NUMBERS, smallest_change="")


def _departure(standing: ChunkStanding, *, request: EvidenceRequest, rank: int | None, is_withheld: bool) -> tuple[str, str]:
    """Return the stage at which a chunk left, and the reason."""
    if rank is not None:
        return ANSWERED, f"it is number {rank} of the answer"
    if standing.is_narrowed_out:
        return "sources", "the filter, the time window or source_policy leaves it out"
    if not standing.terms:
        return "search", "none of the query's words occurs in it"
    if not standing.has_phrases:
        return "search", "a quoted phrase does not occur in it"
    if is_withheld:
        return "budget", OVER_BUDGET
    return "search", f"it is number {standing.rank} of the matches, and the limit is {request.limit}"


def _needed_changes(question: Question, chunk_id: ChunkId, standing: ChunkStanding) -> Iterator[str]:
    """Yield every change without which a chunk stays out; together they let it in."""
    request, query, narrowing = question.request, question.query, question.narrowing
    if standing.is_narrowed_out and narrowing is not None:
        yield "a filter, window or source_policy that admits it"
        narrowing = Or((narrowing, Compare("document_id", "=", document_of(chunk_id))))
    if not standing.terms:
        yield "a query with one of its words"
        return
    if not standing.has_phrases:
        yield "the query without the quotation marks"
        query = msgspec.structs.replace(query, phrases=())
    changed = question.snapshot.standing(query, scope=question.scope, narrowing=narrowing, chunk_id=chunk_id)
    rank = changed.rank if changed and changed.rank else 1
    if rank > MOST_RESULTS:
        yield f"a query that ranks it among the first {MOST_RESULTS}"
        return
    if rank > request.limit:
        yield f"limit={rank}"
    if request.token_budget is not None:
        hits = question.snapshot.search(query, scope=question.scope, narrowing=narrowing, facets=(), limit=rank).hits
        counts = [count_tokens(stored.chunk.content, request.tokenizer) for stored in question.snapshot.fragments(hits)]
        needed = smallest_budget(counts, least=request.token_budget)
        if needed > request.token_budget:
            yield f"token_budget={needed}"
