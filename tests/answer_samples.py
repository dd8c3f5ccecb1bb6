"""Fragments and answers with known confidence and signals."""

from __future__ import annotations

import msgspec

from engine.trace_samples import fragment, response
from evidentia import EvidenceResponse
from evidentia.contracts.evidence import SCORE_ONE, EvidenceFragment, RankingWeights, SignalScores
from evidentia.ranking.signals import composites, weights_of

USUAL = RankingWeights()


def fragment_of(
    confidence: float,
    relevance: float = 0.5,
    authority: float = 0.5,
    freshness: float = 0.5,
    utility: float = 0.5,
    *,
    flags: tuple[str, ...] = (),
    reranked: float | None = None,
    weights: RankingWeights = USUAL,
) -> EvidenceFragment:
    """Return a fragment whose score follows from its signals under weights."""
    first, second, third, fourth = (round(signal * SCORE_ONE) for signal in (relevance, authority, freshness, utility))
    (score,) = composites([(first, second, third, fourth)], weights_of(weights))
    scores = SignalScores(
        relevance=first,
        authority=second,
        freshness=third,
        utility=fourth,
        fused=first,
        reranked=None if reranked is None else round(reranked * SCORE_ONE),
        lexical=123_456,
        dense=987_654_321,
    )
    made = fragment("Keys are rotated by hand.", own_id="keys.md", score=score)
    return msgspec.structs.replace(made, scores=scores, confidence=confidence, relevance_score=score / SCORE_ONE, flags=flags)


def answer_of(*confidences: float) -> EvidenceResponse:
    """Return an answer with a fragment for each confidence."""
    return EvidenceResponse.of(response([fragment_of(confidence) for confidence in confidences]))
