"""Answers and traces for tests of telemetry, made by hand: nothing is searched for them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING

from evidentia.contracts.access import AccessRule, Principal
from evidentia.contracts.evidence import (
    SCORE_ONE,
    CoverageReport,
    DecomposedQuery,
    EvidenceFragment,
    EvidenceRequest,
    EvidenceResponse,
    SignalScores,
    SubQuery,
    Task,
    Turn,
)
from evidentia.contracts.ids import (
    CorpusVersion,
    DocumentId,
    EvidenceState,
    PrincipalId,
    ReceiptId,
    RequestId,
    Sha256,
    SourceId,
    chunk_id_of,
    document_id_of,
)
from evidentia.contracts.provenance import CommitRecord
from evidentia.contracts.retrieval import ExternalCandidate, SourceReply
from evidentia.contracts.telemetry import RequestTrace, TraceSpan
from evidentia.contracts.vocabulary import AuthorityTier, CacheTier, CoverageState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evidentia.contracts.evidence import Decision

STARTED = datetime(2026, 3, 1, 12, 0, 0, 250_000, tzinfo=UTC)
FINGERPRINT = Sha256("f" * 64)
STAGES = {
    "check": 0.25,
    "scope": 0.5,
    "understand": 12.0,
    "cache": 0.25,
    "sources": 0.5,
    "search": 200.0,
    "fuse": 3.0,
    "rerank": 0.5,
    "conflicts": 8.0,
    "diversify": 1.0,
    "budget": 0.5,
    "govern": 0.0,
    "seal": 2.0,
}


def hash_of(text: str) -> Sha256:
    return Sha256(sha256(text.encode()).hexdigest())


def fragment(content: str, *, own_id: str = "page.md", source: str = "handbook", score: int = SCORE_ONE // 2) -> EvidenceFragment:
    document = document_id_of(SourceId(source), own_id)
    return EvidenceFragment(
        content=content,
        source_id=SourceId(source),
        document_id=document,
        chunk_id=chunk_id_of(document, position=0, content_hash=hash_of(content)),
        content_hash=hash_of(content),
        position=0,
        start=0,
        end=len(content),
        score=score,
        scores=SignalScores(relevance=1, authority=1, freshness=1, utility=1, fused=1),
        extraction_timestamp=STARTED,
        confidence=0.5,
        authority_tier=AuthorityTier.CURATED,
        relevance_score=0.5,
        provenance_chain=(),
        metadata={"title": content, "path": own_id},
    )


def request(query: str = "how are keys rotated") -> EvidenceRequest:
    return EvidenceRequest(
        limit=10,
        query=DecomposedQuery(text=query, subqueries=(SubQuery(text=query),)),
        principal=Principal(principal_id=PrincipalId(query), attributes={"said": query}),
        turns=(Turn(role="user", text=query),),
        task=Task(type="coding", text=query),
        latency_deadline_ms=250,
    )


def response(
    fragments: Sequence[EvidenceFragment] = (),
    *,
    coverage: Mapping[SourceId, CoverageReport] | None = None,
    degraded: tuple[str, ...] = (),
    decisions: tuple[Decision, ...] = (),
    stages: Mapping[str, float] = STAGES,
) -> EvidenceResponse:
    zero = Sha256("0" * 64)
    return EvidenceResponse(
        request_id=RequestId("0123456789abcdef"),
        fragments=tuple(fragments),
        total_candidates=40,
        latency_ms=sum(stages.values()),
        source_coverage=coverage or {},
        truncation_applied=False,
        cache_hit_ratio=0.25,
        corpus_version=CorpusVersion("c"),
        evidence_state=EvidenceState("e"),
        config_hash=zero,
        result_hash=Sha256("a" * 64),
        receipt_id=ReceiptId("r-0123456789ab-7"),
        request_hash=zero,
        as_of=STARTED,
        commit=CommitRecord(
            sequence=1,
            parent="",
            base_id="b",
            committed_at=STARTED,
            corpus_version="c",
            evidence_state="e",
            log_size=1,
            log_root=zero,
            oldest_readable=1,
            segments_hash=zero,
            sources_hash=zero,
            roots_hash=zero,
        ),
        commit_hash=zero,
        decisions=decisions,
        facets={"title": {each.content: 1 for each in fragments}},
        degraded=degraded,
        stage_latencies_ms=stages,
        tokens_used=321,
    )


def reply(
    source: str,
    state: CoverageState = CoverageState.SEARCHED,
    *,
    reason: str = "",
    part: int = 0,
    asked_ms: float = 13.5,
    elapsed_ms: float = 80.0,
    tier: CacheTier | None = None,
    faults: Mapping[str, int] | None = None,
    contents: Sequence[str] = (),
) -> SourceReply:
    report = CoverageReport(state=state, reason=reason, candidates=len(contents), elapsed_ms=elapsed_ms, tier=tier, faults=faults or {})
    candidates = tuple(_candidate(source, content, rank) for rank, content in enumerate(contents, start=1))
    return SourceReply(source_id=SourceId(source), part=part, report=report, tier=tier, asked_ms=asked_ms, candidates=candidates)


def _candidate(source: str, content: str, rank: int) -> ExternalCandidate:
    document = DocumentId(f"{source}:{content}")
    return ExternalCandidate(
        chunk_id=chunk_id_of(document, position=0, content_hash=hash_of(content)),
        document_id=document,
        source_id=SourceId(source),
        content=content,
        content_hash=hash_of(content),
        received_hash=hash_of(content),
        received_length=len(content),
        rank=rank,
        query=content,
        origin=f"https://example.org/{content}",
        title=content,
        retrieved_at=STARTED,
        authority_tier=AuthorityTier.DERIVED,
        access=AccessRule(),
        metadata={"note": content},
    )


def trace(
    request_id: str = "0123456789abcdef",
    *,
    after_s: int = 0,
    receipt_id: str | None = "r-0123456789ab-7",
    latency_ms: float = 228.5,
    deadline_ms: int = 250,
    degraded: tuple[str, ...] = (),
    spans: tuple[TraceSpan, ...] | None = None,
) -> RequestTrace:
    return RequestTrace(
        request_id=RequestId(request_id),
        receipt_id=ReceiptId(receipt_id) if receipt_id else None,
        started_at=STARTED + timedelta(seconds=after_s),
        latency_ms=latency_ms,
        deadline_ms=deadline_ms,
        principal_fingerprint=FINGERPRINT,
        tenant="default",
        agent_name="planner",
        fragments=2,
        candidates=40,
        tokens_used=321,
        cache_hit_ratio=0.25,
        degraded=degraded,
        result_hash=Sha256("a" * 64),
        spans=spans if spans is not None else (*stage_spans(), *source_spans()),
    )


def stage_spans() -> list[TraceSpan]:
    """Return a span for each of the stages; the last names two fragments."""
    documents: dict[str, str | int | float | bool] = {
        "document.0.id": "1111111111111111",
        "document.0.score": 0.75,
        "document.1.id": "2222222222222222",
        "document.1.score": 0.5,
    }
    spans, start_ms = [], 0.0
    for name, duration_ms in STAGES.items():
        attributes = documents if name == "seal" else {}
        note = "3 terms, 0 phrases" if name == "understand" else ""
        spans.append(TraceSpan(name=name, kind="stage", start_ms=start_ms, duration_ms=duration_ms, note=note, attributes=attributes))
        start_ms += duration_ms
    return spans


def source_spans() -> list[TraceSpan]:
    """Return a span for a source that was searched, one that is late, one that failed, one that was kept, and one that was denied."""
    return [
        _source("handbook", CoverageState.SEARCHED, 13.5, 40.0, candidates=12, faults=1),
        _source("slack", CoverageState.TIMED_OUT, 13.5, 200.0, note="not finished within 200 ms; nothing had come"),
        _source("tickets", CoverageState.CACHED, 13.5, 1.0, note="kept for 30 s", candidates=4, tier="session"),
        _source("vault", CoverageState.DENIED, 13.5, 0.0, note="you may not ask it"),
        _source("wiki", CoverageState.FAILED, 13.5, 5.0, note="ConnectionError"),
    ]


def _source(
    name: str,
    state: CoverageState,
    start_ms: float,
    duration_ms: float,
    *,
    note: str = "",
    candidates: int = 0,
    faults: int = 0,
    tier: str = "",
) -> TraceSpan:
    attributes: dict[str, str | int | float | bool] = {"candidates": candidates, "faults": faults, "part": 0}
    if tier:
        attributes["tier"] = tier
    return TraceSpan(name=name, kind="source", start_ms=start_ms, duration_ms=duration_ms, note=note, state=state, attributes=attributes)
