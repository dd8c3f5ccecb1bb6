"""Step 13, first half: a stored chunk becomes a fragment of an answer, with its whole account."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from evidentia.contracts.canonical import sha256_hex
from evidentia.contracts.evidence import EvidenceFragment
from evidentia.contracts.provenance import RetrievalContext, TrustMetadata
from evidentia.provenance.chain import stored_chain
from evidentia.text.counting import basis_of, count_tokens

if TYPE_CHECKING:
    from datetime import datetime

    from evidentia.contracts.documents import DocumentMetadata
    from evidentia.contracts.evidence import EvidenceRequest, TermScore
    from evidentia.contracts.search import LexicalHit, StoredFragment

SCORE_ONE = 1 << 16
_COUNTED_TEXTS = 4096
PRIOR_CONFIDENCE = 0.5
"""What is said before confidence has been fitted to judged data; `metadata["confidence_basis"]` says that too."""


class Assembler:
    """Puts the fragments of one answer together; what they share is worked out once."""

    def __init__(self, request: EvidenceRequest, *, retriever: str, now: datetime, tokenizer: str) -> None:
        self._query_hash = sha256_hex(request.query.text.encode())
        self._retriever = retriever
        self._now = now
        self._as_of = request.as_of or now
        self._tokenizer = tokenizer
        self._shared = {"confidence_basis": "prior", "token_count_basis": basis_of(tokenizer)}

    def assemble(self, hit: LexicalHit, stored: StoredFragment, *, rank: int, explanation: tuple[TermScore, ...]) -> EvidenceFragment:
        """Return the fragment at one rank of the answer."""
        chunk = stored.chunk
        score = hit.score / SCORE_ONE
        extracted_at = chunk.custody.origin.extraction_timestamp
        context = RetrievalContext(
            query_hash=self._query_hash,
            retriever_type=self._retriever,
            retrieval_timestamp=self._now,
            rank_position=rank,
            relevance_score=score,
            fusion_method=None,
            final_rank=rank,
        )
        trust = TrustMetadata(
            authority_tier=chunk.metadata.authority_tier,
            confidence=PRIOR_CONFIDENCE,
            staleness_s=max(0, int((self._as_of - extracted_at).total_seconds())),
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
            score=hit.score,
            extraction_timestamp=extracted_at,
            confidence=PRIOR_CONFIDENCE,
            authority_tier=chunk.metadata.authority_tier,
            relevance_score=score,
            provenance_chain=stored_chain(chunk),
            retrieval_context=context,
            trust_metadata=trust,
            metadata=_described(chunk.metadata) | self._shared,
            event=stored.event,
            inclusion=stored.inclusion,
            is_live=chunk.is_live,
            explanation=explanation,
            token_count=count_remembered(chunk.content, self._tokenizer),
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
