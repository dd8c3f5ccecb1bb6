"""Step 13, first half: a stored chunk becomes a fragment of an answer, with its whole account."""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import TYPE_CHECKING

from evidentia.contracts.canonical import sha256_hex
from evidentia.contracts.evidence import SCORE_ONE, EvidenceFragment, SignalScores, TermScore
from evidentia.contracts.provenance import InclusionProof, IngestEvent, RetrievalContext, TrustMetadata
from evidentia.contracts.search import LegScores
from evidentia.contracts.vocabulary import AuthorityTier, DeprecationStatus, FusionMethod
from evidentia.engine.fragment_layouts import NO_LAYOUT, layout_of
from evidentia.engine.selection import CONFLICT_LOST, CONFLICT_WON, Pooled, count_remembered, external_of
from evidentia.federation.federated_search import PRIOR
from evidentia.provenance.custody_chain import embedded_chain, outside_chain, stored_chain
from evidentia.ranking.confidence import CandidateFeatures, confidence, shipped_models
from evidentia.text.counting import basis_of
from evidentia.text.prompt_injection import hostile_flags

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from evidentia.contracts.documents import DocumentMetadata, StoredChunk
    from evidentia.contracts.ids import ChunkId
    from evidentia.contracts.provenance import ProvenanceEntry
    from evidentia.contracts.receipts import ConfidenceCalibration
    from evidentia.contracts.retrieval import ExternalCandidate
    from evidentia.engine.legs import CandidateSet
    from evidentia.engine.ordering import RankedCandidate
    from evidentia.engine.question import Question

LEG_ONE = 1 << 16
"""What the words' own scores count in."""
PRIOR_BASIS = "prior: the source does not say"
SOURCE_BASIS = "the source's own word"
_MILLION = 1_000_000


class Assembler:
    """Puts the fragments of one answer together; what they share is worked out once."""

    def __init__(
        self,
        question: Question,
        found: CandidateSet,
        *,
        now: datetime,
        tokenizer: str,
        weighting: str,
        calibration: ConfidenceCalibration | None = None,
    ) -> None:
        request = question.request
        self._snapshot = question.snapshot
        self._vector = vector = question.parts[0].vector
        self._query = request.query.text
        self._query_hash = sha256_hex(self._query.encode())
        self._legs = [name for name, takes_part in ((weighting, question.uses_words), ("dense", question.uses_vectors)) if takes_part]
        self._retriever = "+".join(self._legs)
        self._ranks = _best_ranks(self._legs, found)
        self._fusion = request.fusion if question.uses_words and question.uses_vectors else None
        self._encoder = None if vector is None else f"{vector.identity.name} {vector.identity.model[:16]}"
        self._uses_words = question.uses_words
        self._found = found
        self._terms = len(question.words.terms)
        self._generation = question.rules.confidence
        self._calibration = calibration
        self._now = now
        self._as_of = request.as_of or now
        self._tokenizer = tokenizer
        self._shared = {"confidence_basis": self._basis(), "token_count_basis": basis_of(tokenizer)}

    def confidence(self, chunk_id: ChunkId) -> float:
        """Return the calibrated probability that a candidate of the base is relevant."""
        index = self._place_of[chunk_id]
        if self._generation > 1:
            return self._features.confidence(shipped_models().second, index, self._calibration) / _MILLION
        scores = self._found.parts[0].legs[index]
        attainable = max(1, self._found.counts.attainable)
        words = min(LEG_ONE, max(0, scores.lexical) * LEG_ONE // attainable) if self._uses_words else None
        cosine = None if scores.dense is None else min(LEG_ONE, max(0, scores.dense) * LEG_ONE >> self._score_bits)
        return confidence(shipped_models().first, words=words, cosine=cosine) / _MILLION

    def believed(self, ranked: RankedCandidate) -> float:
        """Return the probability that a candidate is relevant; what comes from outside has its source's word, or none better than even."""
        if ranked.external is None:
            return self.confidence(ranked.hit.chunk_id)
        told = ranked.external.candidate.confidence_millionths
        return PRIOR if told is None else told / _MILLION

    def assemble(
        self, pooled: Pooled, *, rank: int, proof: tuple[IngestEvent, InclusionProof] | None, explanation: tuple[TermScore, ...]
    ) -> EvidenceFragment:
        """Return the fragment at one rank of the answer; what was read from the base comes with the proof of its event."""
        ranked, chunk = pooled
        if chunk is None or proof is None:
            return self._from_outside(ranked, rank=rank)
        event, inclusion = proof
        scores = ranked.scores
        composite = ranked.score / SCORE_ONE
        leg_ranks = self._leg_ranks(chunk.chunk_id)
        believed = self.confidence(chunk.chunk_id)
        extracted_at = chunk.custody.origin.extraction_timestamp
        context = RetrievalContext(
            query_hash=self._query_hash,
            retriever_type=self._retriever,
            retrieval_timestamp=self._now,
            rank_position=min(leg_ranks.values(), default=rank),
            relevance_score=composite,
            fusion_method=self._fusion,
            final_rank=rank,
            encoder=self._encoder,
            relevance_signal=scores.relevance / SCORE_ONE,
            leg_ranks=leg_ranks,
        )
        pages, images = NO_LAYOUT if chunk.metadata.layout is None else layout_of(chunk, self._snapshot)
        trust = self._trust(ranked, chunk.metadata.authority_tier, believed, extracted_at)
        return EvidenceFragment(
            content=chunk.content,
            source_id=chunk.source_id,
            document_id=chunk.document_id,
            chunk_id=chunk.chunk_id,
            content_hash=chunk.content_hash,
            position=chunk.position,
            start=chunk.start,
            end=chunk.end,
            score=ranked.score,
            scores=scores,
            extraction_timestamp=extracted_at,
            confidence=believed,
            authority_tier=chunk.metadata.authority_tier,
            relevance_score=composite,
            provenance_chain=self._chain(chunk, scores),
            retrieval_context=context,
            trust_metadata=trust,
            metadata=_described(chunk.metadata) | self._shared,
            event=event,
            inclusion=inclusion,
            is_live=chunk.is_live,
            explanation=explanation,
            token_count=count_remembered(chunk.content, self._tokenizer),
            flags=(*ranked.flags, *_remarked(chunk)) if chunk.metadata.remarks else ranked.flags,
            pages=pages,
            images=images,
        )

    @cached_property
    def _place_of(self) -> dict[ChunkId, int]:
        return {hit.chunk_id: place for place, hit in enumerate(self._found.hits)}

    @cached_property
    def _features(self) -> CandidateFeatures:
        """Return the features of all candidates by the question as a whole; words that take no part say nothing."""
        legs = self._found.parts[0].legs
        return CandidateFeatures(
            legs if self._uses_words else [LegScores(lexical=0, dense=leg.dense) for leg in legs],
            [hit.document_id for hit in self._found.hits],
            attainable=self._found.counts.attainable,
            score_bits=self._score_bits,
            terms=self._terms,
        )

    @property
    def _score_bits(self) -> int:
        return self._found.dense.score_bits if self._found.dense else 0

    def _basis(self) -> str:
        models = shipped_models()
        if self._generation == 1:
            return models.first.basis
        return models.second.basis if self._calibration is None else self._calibration.basis

    def _from_outside(self, ranked: RankedCandidate, *, rank: int) -> EvidenceFragment:
        """Return what a source outside the base said, with the custody of its way here; the event log knows nothing of it."""
        external = external_of(ranked)
        candidate, reply = external.candidate, external.reply
        scores = ranked.scores
        composite = ranked.score / SCORE_ONE
        believed = self.believed(ranked)
        context = RetrievalContext(
            query_hash=self._query_hash if candidate.query == self._query else sha256_hex(candidate.query.encode()),
            retriever_type=reply.source_type.value,
            retrieval_timestamp=candidate.retrieved_at,
            rank_position=candidate.rank,
            relevance_score=composite,
            fusion_method=FusionMethod.RRF,
            final_rank=rank,
            relevance_signal=scores.relevance / SCORE_ONE,
            leg_ranks={reply.source_type.value: candidate.rank},
        )
        basis = PRIOR_BASIS if candidate.confidence_millionths is None else SOURCE_BASIS
        return EvidenceFragment(
            content=candidate.content,
            source_id=candidate.source_id,
            document_id=candidate.document_id,
            chunk_id=candidate.chunk_id,
            content_hash=candidate.content_hash,
            position=0,
            start=0,
            end=len(candidate.content),
            score=ranked.score,
            scores=scores,
            extraction_timestamp=candidate.retrieved_at,
            confidence=believed,
            authority_tier=candidate.authority_tier,
            relevance_score=composite,
            provenance_chain=outside_chain(candidate, source_type=reply.source_type, version=reply.version),
            retrieval_context=context,
            trust_metadata=self._trust(ranked, candidate.authority_tier, believed, candidate.retrieved_at),
            metadata=_described_outside(candidate) | self._shared | {"confidence_basis": basis},
            token_count=count_remembered(candidate.content, self._tokenizer),
            flags=(*ranked.flags, *hostile_flags(candidate.content)),
        )

    def _chain(self, chunk: StoredChunk, scores: SignalScores) -> tuple[ProvenanceEntry, ...]:
        """Return the custody of a chunk; its embedding is part of it where its vector was compared."""
        chain = stored_chain(chunk)
        if self._vector is None or scores.dense is None:
            return chain
        return embedded_chain(chain, self._vector.identity, at=self._snapshot.version.commit.committed_at)

    def _leg_ranks(self, chunk_id: ChunkId) -> dict[str, int]:
        """Return the rank that a chunk had in each leg before they were fused: the best over the parts of the question."""
        return {leg: ranks[chunk_id] for leg, ranks in self._ranks.items() if chunk_id in ranks}

    def _trust(self, ranked: RankedCandidate, tier: AuthorityTier, believed: float, extracted_at: datetime) -> TrustMetadata:
        return TrustMetadata(
            authority_tier=tier,
            confidence=believed,
            staleness_s=max(0, int((self._as_of - extracted_at).total_seconds())),
            conflict_flag=CONFLICT_LOST in ranked.flags or CONFLICT_WON in ranked.flags,
        )


def _best_ranks(legs: Sequence[str], found: CandidateSet) -> dict[str, dict[ChunkId, int]]:
    """Return the best rank of each chunk in each leg, over the parts of the question."""
    best: dict[str, dict[ChunkId, int]] = {leg: {} for leg in legs}
    for part in found.parts:
        for leg, ranking in zip(legs, part.rankings[-len(legs) :], strict=False):  # searched by vectors alone, words rank nothing
            ranks = dict(zip(ranking, itertools.count(1), strict=False))
            best[leg] = {**ranks, **{chunk_id: min(rank, ranks.get(chunk_id, rank)) for chunk_id, rank in best[leg].items()}}
    return best


def _remarked(chunk: StoredChunk) -> list[str]:
    """Return what was noticed about this chunk when its document came in."""
    return [remark for remark, positions in sorted(chunk.metadata.remarks.items()) if chunk.position in positions]


def _described_outside(candidate: ExternalCandidate) -> dict[str, str]:
    """Return what people want to see of what a source said; what it calls its own fields stays apart from ours."""
    described = {"content_type": candidate.content_type.value, "media_type": candidate.media_type}
    if candidate.title:
        described["title"] = candidate.title
    if candidate.origin:
        described["origin"] = candidate.origin
    if candidate.updated_at is not None:
        described["updated_at"] = candidate.updated_at.isoformat()
    return described | {f"extra.{name}": value for name, value in candidate.metadata.items()}


def _described(metadata: DocumentMetadata) -> dict[str, str]:
    """Return what people want to see of a document, without what it does not say."""
    described = {"content_type": metadata.content_type.value, "language": metadata.language, "media_type": metadata.media_type}
    if metadata.title:
        described["title"] = metadata.title
    if metadata.path:
        described["path"] = metadata.path
    if metadata.tags:
        described["tags"] = ", ".join(metadata.tags)
    if metadata.version:
        described["version"] = metadata.version
    if metadata.updated_at is not None:
        described["updated_at"] = metadata.updated_at.isoformat()
    if metadata.author is not None:
        described["author"] = metadata.author
    if metadata.deprecation_status is not DeprecationStatus.ACTIVE:
        described["deprecation_status"] = metadata.deprecation_status.value
    if metadata.extra:
        described |= {f"extra.{name}": value for name, value in metadata.extra.items()}
    return described
