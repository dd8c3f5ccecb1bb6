"""Step 13, first half: a stored chunk becomes a fragment of an answer, with its whole account."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from evidentia.contracts.canonical import sha256_hex
from evidentia.contracts.evidence import SCORE_ONE, EvidenceFragment
from evidentia.contracts.provenance import RetrievalContext, TrustMetadata
from evidentia.engine.selection import CONFLICT_LOST
from evidentia.provenance.chain import stored_chain
from evidentia.ranking.confidence import confidence, shipped_model
from evidentia.text.counting import basis_of, count_tokens

if TYPE_CHECKING:
    from datetime import datetime

    from evidentia.contracts.documents import DocumentMetadata
    from evidentia.contracts.evidence import SignalScores, TermScore
    from evidentia.engine.question import Question
    from evidentia.engine.selection import Pooled

LEG_ONE = 1 << 16
"""What the words' own scores count in."""
_COUNTED_TEXTS = 4096
_MILLION = 1_000_000


class Assembler:
    """Puts the fragments of one answer together; what they share is worked out once."""

    def __init__(self, question: Question, *, attainable: int, score_bits: int, now: datetime, tokenizer: str, weighting: str) -> None:
        request = question.request
        vector = question.parts[0].vector
        self._query_hash = sha256_hex(request.query.text.encode())
        self._retriever = "+".join(
            name for name, takes_part in ((weighting, question.uses_words), ("dense", question.uses_vectors)) if takes_part
        )
        self._fusion = request.fusion if question.uses_words and question.uses_vectors else None
        self._encoder = None if vector is None else f"{vector.identity.name} {vector.identity.model[:16]}"
        self._uses_words = question.uses_words
        self._attainable = max(1, attainable)
        self._score_bits = score_bits
        self._now = now
        self._as_of = request.as_of or now
        self._tokenizer = tokenizer
        self._model = shipped_model()
        self._shared = {"confidence_basis": self._model.basis, "token_count_basis": basis_of(tokenizer)}

    def confidence(self, scores: SignalScores) -> float:
        """Return the calibrated probability that a fragment with these scores is relevant."""
        words = min(LEG_ONE, max(0, scores.lexical) * LEG_ONE // self._attainable) if self._uses_words else None
        cosine = None if scores.dense is None else min(LEG_ONE, max(0, scores.dense) * LEG_ONE >> self._score_bits)
        return confidence(self._model, words=words, cosine=cosine) / _MILLION

    def assemble(self, pooled: Pooled, *, rank: int, explanation: tuple[TermScore, ...]) -> EvidenceFragment:
        """Return the fragment at one rank of the answer."""
        ranked, stored = pooled
        chunk = stored.chunk
        relevance = ranked.scores.relevance / SCORE_ONE
        believed = self.confidence(ranked.scores)
        extracted_at = chunk.custody.origin.extraction_timestamp
        context = RetrievalContext(
            query_hash=self._query_hash,
            retriever_type=self._retriever,
            retrieval_timestamp=self._now,
            rank_position=rank,
            relevance_score=relevance,
            fusion_method=self._fusion,
            final_rank=rank,
            encoder=self._encoder,
        )
        trust = TrustMetadata(
            authority_tier=chunk.metadata.authority_tier,
            confidence=believed,
            staleness_s=max(0, int((self._as_of - extracted_at).total_seconds())),
            conflict_flag=CONFLICT_LOST in ranked.flags,
        )
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
            scores=ranked.scores,
            extraction_timestamp=extracted_at,
            confidence=believed,
            authority_tier=chunk.metadata.authority_tier,
            relevance_score=relevance,
            provenance_chain=stored_chain(chunk),
            retrieval_context=context,
            trust_metadata=trust,
            metadata=_described(chunk.metadata) | self._shared,
            event=stored.event,
            inclusion=stored.inclusion,
            is_live=chunk.is_live,
            explanation=explanation,
            token_count=count_remembered(chunk.content, self._tokenizer),
            flags=ranked.flags,
        )


@lru_cache(maxsize=_COUNTED_TEXTS)
def count_remembered(text: str, tokenizer: str) -> int:
    """Return the number of tokens; texts that come back again and again are counted once."""
    return count_tokens(text, tokenizer)


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
    if metadata.extra:
        described |= {f"extra.{name}": value for name, value in metadata.extra.items()}
    return described
