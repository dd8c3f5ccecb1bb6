"""What a document of a framework says of the evidence it holds: plain values that a chain can pass on and a file can keep."""

from __future__ import annotations

from evidentia.contracts.evidence import SCORE_ONE, EvidenceFragment, EvidenceResponse

FOR_PROMPTS = ("source", "source_id", "authority_tier", "title", "updated_at")
"""What a language model is shown of an account, where a framework shows it any."""


def score_of(fragment: EvidenceFragment) -> float:
    """Return the composite score from 0 to 1. An answer may stand in another order, since it also weighs variety."""
    return fragment.score / SCORE_ONE


def account_of(fragment: EvidenceFragment, response: EvidenceResponse) -> dict[str, object]:
    """Return the account of one fragment of an answer.

    What a document says of itself stands beside what is known of it, and never in its place.
    """
    return dict(sorted(fragment.metadata.items())) | {
        "source": fragment.metadata.get("origin", fragment.document_id),
        "source_id": fragment.source_id,
        "document_id": fragment.document_id,
        "chunk_id": fragment.chunk_id,
        "score": score_of(fragment),
        "confidence": fragment.confidence,
        "authority_tier": fragment.authority_tier.value,
        "content_hash": fragment.content_hash,
        "provenance": [entry.hash for entry in fragment.provenance_chain],
        "flags": list(fragment.flags),
        "is_truncated": fragment.is_truncated,
        "receipt_id": response.receipt_id,
        "result_hash": response.result_hash,
        "degraded": list(response.degraded),
    }
