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
from evidentia.contracts.receipts import EngineConfig, Receipt, ReplayReport, WhyReport
from evidentia.contracts.search import AccessScope, LexicalQuery
from evidentia.engine.explanation import explain
from evidentia.engine.result_hashes import sealed
from evidentia.engine.selection import CONFLICT_LOST, CONFLICT_WON
from evidentia.engine.stage_log import StageLog
from evidentia.policy.access import access_scope, is_allowed, may_ask

if TYPE_CHECKING:
    from collections.abc import Callable

    from evidentia.contracts.access import Principal
    from evidentia.contracts.ports import Clock, EvidenceIndex, ReceiptLog
    from evidentia.contracts.retrieval import ExternalCandidate
    from evidentia.engine.pipeline import Engine

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
        cut = self._without_hidden_conflicts(msgspec.structs.replace(response, fragments=shown, withheld=withheld), asker, receipt)
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
        if self.index.visibility(document_id, scope=scope) is False:
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
