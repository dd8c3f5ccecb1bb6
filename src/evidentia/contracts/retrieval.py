"""What sources outside the base are asked and what they propose, as it comes in and as it is kept; and what rewriters return.

Between `Candidate` and `ExternalCandidate` stands `sources.intake`: nothing that a source says is believed before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

import msgspec

from evidentia.contracts.access import AccessRule, Principal
from evidentia.contracts.evidence import CoverageReport, SubQuery, TimeWindow
from evidentia.contracts.ids import ChunkId, DocumentId, SemanticVersion, SessionId, Sha256, SourceId
from evidentia.contracts.vocabulary import AuthorityTier, CacheTier, ContentType, SourceType


class SourceAsk(msgspec.Struct, frozen=True, kw_only=True):
    """One question to one source, on behalf of a caller."""

    query: SubQuery
    principal: Principal
    limit: int
    budget_ms: int
    """How long the caller waits; what comes later can only serve the next one."""
    as_of: datetime
    agent_name: str = ""
    session: SessionId | None = None
    time_window: TimeWindow | None = None


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A fragment that a source proposes; only its content is needed."""

    content: str
    own_id: str = ""
    """What the source calls it; the hash of its content where it has no name."""
    score: float | None = None
    """Higher is better, from 0 to 1; the order counts, not the distance. Without scores the order of the reply holds."""
    origin: str = ""
    """Where it can be found: an address, a path, a statement. Without one it is not attributed."""
    title: str = ""
    updated_at: datetime | None = None
    media_type: str = "text/plain"
    content_type: ContentType = ContentType.DOCUMENTATION
    confidence: float | None = None
    """The source's own probability that it is relevant."""
    access: AccessRule | None = None
    """Who may see it; None: whoever may ask the source."""
    metadata: Mapping[str, str] = msgspec.field(default_factory=dict)


class ExternalCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """A fragment from outside the base, checked and cleaned, in the form in which receipts keep it."""

    chunk_id: ChunkId
    document_id: DocumentId
    source_id: SourceId
    content: str
    content_hash: Sha256
    received_hash: Sha256
    """The hash of the content as it was received, before it was cleaned."""
    received_length: int
    rank: int
    """Its place in the source's order, from 1."""
    query: str
    """What the source was asked."""
    origin: str
    retrieved_at: datetime
    updated_at: datetime | None = None
    title: str = ""
    media_type: str = "text/plain"
    content_type: ContentType = ContentType.DOCUMENTATION
    authority_tier: AuthorityTier
    access: AccessRule
    confidence_millionths: int | None = None
    metadata: Mapping[str, str] = msgspec.field(default_factory=dict)
    flags: tuple[str, ...] = ()


class SourceReply(msgspec.Struct, frozen=True, kw_only=True):
    """What one source did with one part of a question; with the receipt it can be ranked again without asking anybody."""

    source_id: SourceId
    part: int = 0
    """Which of the parts that sources were asked, from 0."""
    part_weight_milli: int = 1_000
    report: CoverageReport
    candidates: tuple[ExternalCandidate, ...] = ()
    source_type: SourceType = SourceType.API
    version: SemanticVersion = SemanticVersion("1.0.0")
    weight_milli: int = 1_000
    freshness_tau_s: int | None = None
    tier: CacheTier | None = None
    """Where the candidates were kept; None when the source itself was asked."""
    is_reused: bool = False
    """Whether the candidates were found for another, similar question, so that their order means nothing."""
    asked_ms: float = 0.0
    """When it was asked, in milliseconds since the request began."""


class StoredResponse(NamedTuple):
    """What one source said to one question, as the cache stores it. Moments are microseconds since 1970."""

    key: bytes
    """Names the question, its terms and the tier."""
    source_id: SourceId
    tier: CacheTier
    generation: int
    """The source's generation when it was asked."""
    first_us: int
    last_us: int
    """The source gave its candidates between these two."""
    expires_us: int | None
    payload: bytes
    group: bytes | None = None
    """The group of questions on the same terms that it may be compared with; None for none."""
    vector: bytes | None = None
    """The question's vector: little-endian 32-bit integers."""


class Rewriting(msgspec.Struct, frozen=True, kw_only=True):
    """What a rewriter made of a question; `problem` says why it is the question itself, and is empty when all went well."""

    query: str
    problem: str = ""


class SourceTrial(msgspec.Struct, frozen=True, kw_only=True):
    """What a source did when it was asked for a trial: nothing of it was kept or ranked."""

    source_id: SourceId
    report: CoverageReport
    candidates: tuple[ExternalCandidate, ...]


class WarmReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked ahead of time, and how many answers of sources are kept now."""

    questions: int
    kept: int
    coverage: Mapping[str, Mapping[SourceId, CoverageReport]]
    """Per question, what every source outside the base did."""
