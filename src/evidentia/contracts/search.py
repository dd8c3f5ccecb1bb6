"""What the engine asks of a base's own index, and what it gets back.

Scores are integers at 2^-16. A scope says what the caller may see: it shapes masks and statistics. A narrowing says
what the request wants of that: it shapes the result and never the statistics.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from evidentia.contracts.access import Principal
from evidentia.contracts.documents import StoredChunk
from evidentia.contracts.evidence import TermScore
from evidentia.contracts.ids import ChunkId, DocumentId, EvidenceState, Sha256, SourceId
from evidentia.contracts.predicates import Predicate
from evidentia.contracts.provenance import CommitRecord, InclusionProof, IngestEvent


class AccessScope(msgspec.Struct, frozen=True, kw_only=True):
    """Everything access is decided on; equal fingerprints see the same."""

    principal: Principal
    acl_scope: tuple[str, ...] | None = None
    rules: tuple[Predicate, ...] = ()
    fingerprint: Sha256


class LexicalQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Terms to score with how often each was asked for, and phrases that must occur."""

    terms: Mapping[str, int]
    phrases: tuple[tuple[str, ...], ...] = ()


class LexicalHit(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A chunk that matched; `place` is where this snapshot keeps it and means nothing elsewhere."""

    chunk_id: ChunkId
    document_id: DocumentId
    source_id: SourceId
    score: int
    place: int


class LexicalHits(msgspec.Struct, frozen=True, kw_only=True):
    """The best chunks in order (score, then chunk id) and what the whole match looks like."""

    hits: tuple[LexicalHit, ...]
    matching: int
    matching_by_source: Mapping[SourceId, int]
    facets: Mapping[str, Mapping[str, int]] = msgspec.field(default_factory=dict)


class ChunkStanding(msgspec.Struct, frozen=True, kw_only=True):
    """How one chunk stands towards a query, whether or not it was answered."""

    is_narrowed_out: bool
    has_phrases: bool
    score: int
    terms: tuple[TermScore, ...]
    rank: int | None
    """Position among all matches, from 1; None when it does not match."""


class StoredFragment(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A chunk with the event that entered it and the proof that the log holds that event."""

    chunk: StoredChunk
    event: IngestEvent
    inclusion: InclusionProof


class SnapshotVersion(msgspec.Struct, frozen=True, kw_only=True):
    """The version a snapshot shows."""

    commit: CommitRecord
    commit_hash: Sha256
    access_state: EvidenceState
    """The version whose access rules apply besides its own: an old version does not reopen what was closed since."""
