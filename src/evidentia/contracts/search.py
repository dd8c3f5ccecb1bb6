"""What the engine asks of a base's own index, and what it gets back.

Scores of words are integers at 2^-16, scores of vectors at the scale their hits name. A scope says what the caller may
see: it shapes masks and statistics. A narrowing says what the request wants of that: it shapes the result and never the
statistics.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec

from evidentia.contracts.access import Principal
from evidentia.contracts.evidence import TermScore
from evidentia.contracts.ids import ChunkId, DocumentId, EvidenceState, Sha256, SourceId
from evidentia.contracts.predicates import Predicate
from evidentia.contracts.provenance import CommitRecord
from evidentia.contracts.vectors import VectorIdentity
from evidentia.contracts.vocabulary import AuthorityTier, ContentType


class AccessScope(msgspec.Struct, frozen=True, kw_only=True):
    """Everything access is decided on; equal fingerprints see the same."""

    principal: Principal
    acl_scope: tuple[str, ...] | None = None
    rules: tuple[Predicate, ...] = ()
    fingerprint: Sha256


class LexicalQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Terms to score with how often each was asked for, phrases that must occur, phrases that raise, and terms that were added.

    An added term counts its weight in 256ths; a term that was asked for is not among them.
    """

    terms: Mapping[str, int]
    phrases: tuple[tuple[str, ...], ...] = ()
    preferred: tuple[tuple[str, ...], ...] = ()
    """What holds one of these scores more; nothing is left out for want of them."""
    weights: Mapping[str, int] = msgspec.field(default_factory=dict)
    """What each occurrence of a term in the question counts, in 256ths, where that is less than 256."""
    expansions: Mapping[str, int] = msgspec.field(default_factory=dict)


class DenseQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The vector of a question: little-endian 32-bit integers at the identity's scale."""

    identity: VectorIdentity
    vector: bytes


class SearchHit(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A chunk that was found; `place` is where this snapshot keeps it and means nothing elsewhere."""

    chunk_id: ChunkId
    document_id: DocumentId
    source_id: SourceId
    score: int
    place: int


class LexicalHits(msgspec.Struct, frozen=True, kw_only=True):
    """The best chunks in order (score, then chunk id) and what the whole match looks like."""

    hits: tuple[SearchHit, ...]
    matching: int
    matching_by_source: Mapping[SourceId, int]
    attainable: int = 0
    """More than this no chunk could score, however well it matched."""
    facets: Mapping[str, Mapping[str, int]] = msgspec.field(default_factory=dict)


class DenseHits(msgspec.Struct, frozen=True, kw_only=True):
    """The nearest chunks in order (score, then chunk id), and how much of what the caller may see has a vector."""

    hits: tuple[SearchHit, ...]
    score_bits: int
    embedded: int
    visible: int
    embedded_by_source: Mapping[SourceId, tuple[int, int]]
    """Per source that the caller may see: chunks with a vector, and chunks."""
    is_approximate: bool = False


class LegScores(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What each leg says of one chunk, whether or not it was the one to find it; None: it has no vector, or none was asked for."""

    lexical: int
    dense: int | None


class ContentFeatures(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a chunk's text is made of, each from 0 to 255."""

    code: int = 0
    commands: int = 0
    configuration: int = 0
    specificity: int = 0


class ChunkSignals(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What ranks a chunk besides its match."""

    authority_tier: AuthorityTier
    content_type: ContentType
    updated_at: datetime | None
    features: ContentFeatures
    is_annotated: bool = False


class Definition(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A short form that the caller's own corpus explains, and in how many chunks it does."""

    short: str
    long: str
    chunks: int


class ChunkStanding(msgspec.Struct, frozen=True, kw_only=True):
    """How one chunk stands towards a query, whether or not it was answered."""

    is_narrowed_out: bool
    has_phrases: bool
    score: int
    terms: tuple[TermScore, ...]
    rank: int | None
    """Position among all matches, from 1; None when it does not match."""


class SnapshotVersion(msgspec.Struct, frozen=True, kw_only=True):
    """The version a snapshot shows."""

    commit: CommitRecord
    commit_hash: Sha256
    public_commit: CommitRecord
    """The record as everybody but the owner sees it."""
    public_hash: Sha256
    access_state: EvidenceState
    """The version whose access rules apply besides its own: an old version does not reopen what was closed since."""
