"""The contract of the engine: a typed request in, ranked and attributed fragments out.

Ranges that can be checked field by field are on the types; what spans fields is checked by the engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

import msgspec

from evidentia.contracts.access import Principal
from evidentia.contracts.annotations import Annotation
from evidentia.contracts.ids import ChunkId, CorpusVersion, DocumentId, EvidenceState, ReceiptId, RequestId, SessionId, Sha256, SourceId
from evidentia.contracts.predicates import Predicate
from evidentia.contracts.provenance import CommitRecord, InclusionProof, IngestEvent, ProvenanceEntry, RetrievalContext, TrustMetadata
from evidentia.contracts.sources import SourcePolicy
from evidentia.contracts.vocabulary import AuthorityTier, CoverageState, FusionMethod, GovernanceMode, QueryCapability, RetrievalMode

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
"""A number from 0 to 1."""


class SubQuery(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a decomposed question."""

    text: str
    required_capabilities: tuple[QueryCapability, ...] = ()
    weight: Share = 1.0


class DecomposedQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A question as asked, with the parts a caller already split it into (none: the engine decides)."""

    text: str
    subqueries: tuple[SubQuery, ...] = ()


class RankingWeights(msgspec.Struct, frozen=True, kw_only=True):
    """How the composite score is weighted; the four sum to 1."""

    relevance: Share = 0.45
    authority: Share = 0.25
    freshness: Share = 0.15
    utility: Share = 0.15


class TimeWindow(msgspec.Struct, frozen=True, kw_only=True):
    """A span of time that evidence has to fall into; an open end is None."""

    start: datetime | None = None
    end: datetime | None = None


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier utterance of the conversation."""

    role: str
    text: str


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What the evidence is for."""

    type: str
    text: str = ""


class EvidenceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A question with its limits: who asks, what may answer, how much, and by when."""

    query: DecomposedQuery
    source_policy: SourcePolicy = SourcePolicy()
    token_budget: Annotated[int, msgspec.Meta(ge=1, le=2**32 - 1)] | None = None
    latency_deadline_ms: Annotated[int, msgspec.Meta(ge=1, le=2**32 - 1)] = 500
    ranking_weights: RankingWeights = RankingWeights()
    diversity_constraint: Share = 0.7
    provenance_required: bool = True
    session_context: SessionId | None = None
    as_of: datetime | None = None
    corpus_version: CorpusVersion | None = None
    evidence_state: EvidenceState | None = None
    principal: Principal | None = None
    agent_name: str | None = None
    turns: tuple[Turn, ...] = ()
    task: Task | None = None
    time_window: TimeWindow | None = None
    filter: Predicate | str | None = None
    facets: tuple[str, ...] = ()
    mode: RetrievalMode = RetrievalMode.HYBRID
    fusion: FusionMethod = FusionMethod.LINEAR
    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 10
    cost_budget_micros: Annotated[int, msgspec.Meta(ge=0)] | None = None
    max_staleness_ms: Annotated[int, msgspec.Meta(ge=0)] | None = None
    governance: GovernanceMode = GovernanceMode.ANNOTATE
    explain: bool = False
    tokenizer: str = "o200k_base"
    receipt: bool = True
    """Whether a receipt is written; not part of what is hashed."""


class CoverageReport(msgspec.Struct, frozen=True, kw_only=True):
    """What one source did for one request; empty-handed is not the same as not asked."""

    state: CoverageState
    reason: str = ""
    candidates: int = 0
    searched_share: Share = 1.0
    data_age_s: int | None = None
    elapsed_ms: float = 0.0


class WithheldFragment(msgspec.Struct, frozen=True, kw_only=True):
    """A fragment the caller may know of but did not get, with the reason."""

    chunk_id: ChunkId
    reason: str


class Conflict(msgspec.Struct, frozen=True, kw_only=True):
    """Fragments that disagree, and the one the rule prefers."""

    subject: str
    winner: ChunkId
    losers: tuple[ChunkId, ...]
    decided_by: str


class TermScore(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one query term gave to one chunk, and why; `documents` and `containing` count what the caller may see."""

    term: str
    score: int
    frequency: int
    containing: int
    documents: int
    length: int
    idf: int


class Decision(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one stage did, in one line; a stage that passes everything through says so."""

    stage: str
    note: str
    remaining: int


class EvidenceFragment(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A stretch of evidence with its custody and its standing in this answer."""

    content: str
    source_id: SourceId
    document_id: DocumentId
    chunk_id: ChunkId
    content_hash: Sha256
    position: int
    start: int
    end: int
    score: int
    """The score that decided the order, at 2^-16; `relevance_score` is the same as a number for people."""
    extraction_timestamp: datetime
    confidence: Share
    authority_tier: AuthorityTier
    relevance_score: float
    provenance_chain: tuple[ProvenanceEntry, ...]
    retrieval_context: RetrievalContext | None = None
    trust_metadata: TrustMetadata | None = None
    annotations: tuple[Annotation, ...] = ()
    metadata: Mapping[str, str] = msgspec.field(default_factory=dict)
    event: IngestEvent
    inclusion: InclusionProof
    is_live: bool = True
    explanation: tuple[TermScore, ...] = ()
    token_count: int = 0
    is_truncated: bool = False
    flags: tuple[str, ...] = ()


class EvidenceResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The answer: fragments in order, an honest account of every source, and what makes it repeatable."""

    request_id: RequestId
    fragments: tuple[EvidenceFragment, ...]
    total_candidates: int
    latency_ms: float
    source_coverage: Mapping[SourceId, CoverageReport]
    truncation_applied: bool
    cache_hit_ratio: Share
    corpus_version: CorpusVersion
    evidence_state: EvidenceState
    config_hash: Sha256
    result_hash: Sha256
    receipt_id: ReceiptId | None
    request_hash: Sha256
    as_of: datetime
    commit: CommitRecord
    commit_hash: Sha256
    decisions: tuple[Decision, ...] = ()
    facets: Mapping[str, Mapping[str, int]] = msgspec.field(default_factory=dict)
    conflicts: tuple[Conflict, ...] = ()
    withheld: tuple[WithheldFragment, ...] = ()
    degraded: tuple[str, ...] = ()
    stage_latencies_ms: Mapping[str, float] = msgspec.field(default_factory=dict)
    tokens_used: int = 0
