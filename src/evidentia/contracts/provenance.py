"""Custody as messages: where a fragment came from, what was done to it, and proofs anyone can recompute."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec

from evidentia.contracts.ids import DocumentId, PrincipalId, SemanticVersion, Sha256, SourceId, ToolId
from evidentia.contracts.vocabulary import AuthorityTier, EventKind, FusionMethod, SourceType

CUSTODY_FORMAT: Final = 2
"""The rules by which answers, receipts, exports and heads of today are checked."""


class OriginDescriptor(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where a document came from; the first record of every chain.

    `content_hash` and `content_length` describe the original bytes as they were received, before extraction.
    """

    source_id: SourceId
    source_type: SourceType
    document_id: DocumentId
    document_version: str
    extraction_method: str
    extraction_timestamp: datetime
    content_hash: Sha256
    content_length: int
    media_type: str


class TransformationRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One step between the original bytes and the fragment, with the hashes of what went in and came out."""

    step: str
    tool_id: ToolId
    tool_version: SemanticVersion
    timestamp: datetime
    input_hash: Sha256
    output_hash: Sha256
    parameters: Mapping[str, int | str] = msgspec.field(default_factory=dict)


class ToolStamp(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Which tool did something, and when."""

    tool_id: ToolId
    tool_version: SemanticVersion
    timestamp: datetime


class DocumentCustody(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The part of custody that all chunks of a document share; what cut it completes each chunk's chain."""

    origin: OriginDescriptor
    transformations: tuple[TransformationRecord, ...]
    cut_by: ToolStamp


class RetrievalContext(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How a fragment was found during one request."""

    query_hash: Sha256
    retriever_type: str
    retrieval_timestamp: datetime
    rank_position: int
    """Its rank before fusion: the best that it had in a leg."""
    relevance_score: float
    """The composite score, which ranks it."""
    fusion_method: FusionMethod | None
    final_rank: int
    encoder: str | None = None
    """The identity of the vectors that took part."""
    relevance_signal: float | None = None
    """The part of the composite score that comes from its match alone: the fused score, or the reranked one."""
    leg_ranks: Mapping[str, int] | None = None
    """Its rank in each leg that proposed it, by the leg's name; answers of earlier versions have none."""

    @property
    def method(self) -> str:
        """Return how it was found, in one word: the legs, and how they were fused where there are several."""
        fused = f"_{self.fusion_method.value}" if self.fusion_method and "+" in self.retriever_type else ""
        return self.retriever_type + fused


class TrustMetadata(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is known about how far a fragment can be trusted."""

    authority_tier: AuthorityTier
    confidence: float | None = None
    verified_by: tuple[PrincipalId, ...] = ()
    last_verification: datetime | None = None
    staleness_s: int | None = None
    conflict_flag: bool = False


class ProvenanceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The whole account of one fragment."""

    origin: OriginDescriptor
    transformations: tuple[TransformationRecord, ...]
    retrieval_context: RetrievalContext | None = None
    trust_metadata: TrustMetadata | None = None


class OriginEntry(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="origin"):
    """The first link of a chain with its hash h0."""

    record: OriginDescriptor
    hash: Sha256


class TransformationEntry(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="transformation"):
    """A later link of a chain with its hash."""

    record: TransformationRecord
    hash: Sha256


ProvenanceEntry = OriginEntry | TransformationEntry


class IngestEvent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One entry of the event log; its canonical bytes are the leaf.

    A chunk that comes in has an event of its own (`added`, or `changed` when the document was there before) that
    names it and its custody head. An event about a document whose text stays (`removed`, `access_changed`,
    `changed` metadata) leaves both empty. `root` numbers the directory it came from in the base's own list.
    `salt` keeps a leaf hash from confirming a guess at its content.
    """

    index: int
    kind: EventKind
    source_id: SourceId
    document_id: DocumentId
    chunk_id: str
    custody_head: str
    fingerprint: str
    access_hash: str
    root: int
    recorded_at: datetime
    salt: str


class InclusionProof(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """RFC 6962 audit path from one leaf to the root of a tree of `tree_size` leaves."""

    leaf_index: int
    tree_size: int
    hashes: tuple[Sha256, ...]
    root: Sha256


class ConsistencyProof(msgspec.Struct, frozen=True, kw_only=True):
    """RFC 6962 proof that the tree of `first_size` leaves is a prefix of the tree of `second_size`."""

    first_size: int
    second_size: int
    hashes: tuple[Sha256, ...]
    first_root: Sha256
    second_root: Sha256


class CommitRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One version of a base; each names its parent, so that the newest vouches for all before it.

    `oldest_readable` is the first version that gc left; `segments_hash`, `sources_hash` and `roots_hash` cover the
    files that are searched, the registered sources and the directories documents came from. `vectors` covers the
    vectors of the live chunks and the space they live in, `vector_files_hash` the files that hold them; a base that was
    never embedded has neither, and its records do not mention them. `keys_hash` covers the keys that sign its heads; records
    that were written before it had any do not mention it. `contexts` names the form in which chunks are indexed with their context and
    covers which documents are not; where none is, records do not mention it.
    """

    sequence: int
    parent: str
    base_id: str
    committed_at: datetime
    corpus_version: str
    evidence_state: str
    log_size: int
    log_root: Sha256
    oldest_readable: int
    segments_hash: Sha256
    sources_hash: Sha256
    roots_hash: Sha256
    vectors: str = ""
    vector_files_hash: str = ""
    keys_hash: str = ""
    contexts: str = ""


class SigningKey(msgspec.Struct, frozen=True, kw_only=True):
    """A public key of a base, in force from one commit on; the key before it vouches for it, and the first for itself.

    `signature` is empty where the key before it was not at hand, as in a base that was restored without it.
    """

    base_id: str
    sequence: int
    public_key: str
    """An Ed25519 key as 64 hexadecimal digits."""
    previous: str
    signature: str


class BaseHead(msgspec.Struct, frozen=True, kw_only=True):
    """What a base says of itself in public at one commit; `evidence_state` and `commit_hash` are those of the public record."""

    custody_format: int
    base_id: str
    sequence: int
    committed_at: datetime
    evidence_state: str
    log_size: int
    log_root: Sha256
    commit_hash: Sha256
    public_key: str


class SignedHead(msgspec.Struct, frozen=True, kw_only=True):
    """A head with the signature of its key, and all keys of the base, oldest first."""

    head: BaseHead
    signature: str
    keys: tuple[SigningKey, ...]


class FragmentExport(msgspec.Struct, frozen=True, kw_only=True):
    """A fragment with everything a stranger needs to check it offline; the commit record is the public one."""

    format: str
    chunk_id: str
    document_id: DocumentId
    source_id: SourceId
    position: int
    start: int
    end: int
    content: str
    provenance_chain: tuple[ProvenanceEntry, ...]
    event: IngestEvent
    inclusion: InclusionProof
    commit: CommitRecord
    commit_hash: Sha256
    is_live: bool
    head: SignedHead | None = None
    """The signed head of that commit; exports of older releases, and of bases that have no key yet, have none."""
    export_hash: str = ""
    """The hash of everything else in this export."""


class BrokenLink(msgspec.Struct, frozen=True, kw_only=True):
    """The place where custody stops holding: which check, where, and what was found."""

    check: str
    where: str
    problem: str


class VerifyReport(msgspec.Struct, frozen=True, kw_only=True):
    """What verification looked at and everything it found broken, first link first."""

    ok: bool
    target: str
    fragments: int = 0
    documents: int = 0
    events: int = 0
    commits: int = 0
    broken: tuple[BrokenLink, ...] = ()
    custody_format: int = CUSTODY_FORMAT
    """The rules that were applied; those of an older format cover less."""
    signed_by: str = ""
    """The public key that signed what was checked; empty where nothing is signed."""

    @property
    def first_broken(self) -> BrokenLink | None:
        """Return the first broken link, or None when everything holds."""
        return self.broken[0] if self.broken else None
