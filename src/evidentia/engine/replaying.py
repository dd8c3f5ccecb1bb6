"""A receipt answered again, and the question why a chunk is or is not in its answer.

Both recompute from the recorded request, state and settings; what they show is cut to what the asker may see today.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.errors import NotFoundError
from evidentia.contracts.ids import document_of
from evidentia.contracts.receipts import ReplayReport, WhyReport
from evidentia.engine.budget import OVER_BUDGET
from evidentia.engine.trail import Trail
from evidentia.policy.access import access_scope

if TYPE_CHECKING:
    from collections.abc import Callable

    from evidentia.contracts.access import Principal
    from evidentia.contracts.evidence import EvidenceRequest, WithheldFragment
    from evidentia.contracts.ids import ChunkId, ReceiptId
    from evidentia.contracts.ports import Clock, EvidenceIndex, ReceiptLog
    from evidentia.contracts.receipts import EngineConfig, Receipt
    from evidentia.contracts.search import ChunkStanding
    from evidentia.engine.pipeline import Engine

ANSWERED = "answered"


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
        response = self._engine_for(receipt.config).answer(_repeated(receipt))
        shown = tuple(fragment for fragment in response.fragments if self._may_see(asker, fragment.chunk_id, receipt=receipt))
        withheld = tuple(each for each in response.withheld if self._may_see(asker, each.chunk_id, receipt=receipt))
        return ReplayReport(
            receipt_id=receipt_id,
            is_same=response.result_hash == receipt.result_hash,
            recorded_hash=receipt.result_hash,
            result_hash=response.result_hash,
            hidden=len(response.fragments) - len(shown),
            response=msgspec.structs.replace(response, fragments=shown, withheld=withheld),
        )

    def why(self, receipt_id: ReceiptId, chunk_id: ChunkId, *, asker: Principal) -> WhyReport:
        """Say at which stage a chunk left, or its rank, and the smallest change that would have let it in."""
        receipt = self._receipts.read(receipt_id)
        if not self._may_see(asker, chunk_id, receipt=receipt):
            raise NotFoundError("chunk", chunk_id)
        engine = self._engine_for(receipt.config)
        request = _repeated(receipt)
        trail = Trail(self._clock, deadline_ms=request.latency_deadline_ms)
        question = engine.understand(request, principal=None, trail=trail)
        standing = question.snapshot.standing(question.query, scope=question.scope, narrowing=question.narrowing, chunk_id=chunk_id)
        if standing is None:
            return _unseen(receipt_id, chunk_id)
        answer = engine.answer(request)
        ranks = {fragment.chunk_id: rank for rank, fragment in enumerate(answer.fragments, start=1)}
        return _explained(receipt_id, chunk_id, standing, request=request, rank=ranks.get(chunk_id), withheld=answer.withheld)

    def _may_see(self, asker: Principal, chunk_id: ChunkId, *, receipt: Receipt) -> bool:
        """Tell whether the asker may see a chunk: by today's rule where the document lives, else by the rule of then."""
        scope = access_scope(asker, acl_scope=None, rules=self._config.access.rules)
        document_id = document_of(chunk_id)
        today = self._index.visibility(document_id, scope=scope)
        if today is not None:
            return today
        return self._index.visibility(document_id, scope=scope, evidence_state=receipt.evidence_state) is True


def _repeated(receipt: Receipt) -> EvidenceRequest:
    """Return the recorded request, pinned to the recorded state, without another receipt."""
    return msgspec.structs.replace(receipt.request, evidence_state=receipt.evidence_state, receipt=False)


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


def _explained(
    receipt_id: ReceiptId,
    chunk_id: ChunkId,
    standing: ChunkStanding,
    *,
    request: EvidenceRequest,
    rank: int | None,
    withheld: tuple[WithheldFragment, ...],
) -> WhyReport:
    stage, reason, change = _departure(
        standing, request=request, rank=rank, is_withheld=any(each.chunk_id == chunk_id for each in withheld)
    )
    return WhyReport(
        receipt_id=receipt_id,
        chunk_id=chunk_id,
        stage=stage,
        rank=rank or standing.rank,
        score=standing.score,
        terms=standing.terms,
        reason=reason,
        smallest_change=change,
    )


def _departure(standing: ChunkStanding, *, request: EvidenceRequest, rank: int | None, is_withheld: bool) -> tuple[str, str, str]:
    """Return the stage at which a chunk left, the reason, and the smallest change that would have let it in."""
    if rank is not None:
        return ANSWERED, f"it is number {rank} of the answer", ""
    if standing.is_narrowed_out:
        return "sources", "the filter, the time window or source_policy leaves it out", "a filter, window or source_policy that admits it"
    if not standing.terms:
        return "search", "none of the query's words occurs in it", "a query with one of its words"
    if not standing.has_phrases:
        return "search", "a quoted phrase does not occur in it", "the query without the quotation marks"
    if is_withheld:
        return "budget", OVER_BUDGET, "a larger token_budget"
    return "search", f"it is number {standing.rank} of the matches, and the limit is {request.limit}", f"limit={standing.rank}"
