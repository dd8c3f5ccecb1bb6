"""What is asked of a served base and what comes back, where the messages of the rooms are not enough: bodies, pages and lists."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Final

import msgspec

from evidentia.contracts.access import AccessRule
from evidentia.contracts.documents import DEFAULT_SOURCE, StoredChunk, VersionSummary
from evidentia.contracts.evidence import DecomposedQuery, EvidenceRequest, EvidenceResponse
from evidentia.contracts.ids import CorpusVersion, DocumentId, EvidenceState, ReceiptId, Sha256
from evidentia.contracts.layout import DocumentLayout
from evidentia.contracts.provenance import FragmentExport
from evidentia.contracts.sources import FreshnessReport, Note, SourceStatus
from evidentia.contracts.tables import TableCard
from evidentia.contracts.telemetry import RequestTrace
from evidentia.contracts.vocabulary import AuthorityTier, Classification

MAX_INGESTED: Final = 10_000
"""Documents and files in one request."""
MAX_NAMED: Final = 10_000
"""Ids in one request."""

Text = Annotated[str, msgspec.Meta(min_length=1)]
FilePath = Annotated[str, msgspec.Meta(min_length=1, max_length=1_000)]
SourceName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
"""What a source may be called that documents are sent to."""


class EvidenceAsk(EvidenceRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request as it is sent: the question may be a plain text."""

    query: str | DecomposedQuery  # type: ignore[assignment]  # wider than what it becomes


class SentDocument(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A text with a name of its own within its source; the same name again is the next version."""

    id: Annotated[str, msgspec.Meta(min_length=1, max_length=1_000)]
    text: str = ""
    title: str = ""
    metadata: Mapping[str, str | tuple[str, ...]] = msgspec.field(default_factory=dict)


class SentFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file by its path within its source, without `..` or a root; JSON carries its bytes as base64."""

    path: FilePath
    content: bytes


class IngestRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Material to take in, with the trust and access it starts with; it belongs to the tenant of whoever sends it."""

    documents: Annotated[tuple[SentDocument, ...], msgspec.Meta(max_length=MAX_INGESTED)] = ()
    files: Annotated[tuple[SentFile, ...], msgspec.Meta(max_length=MAX_INGESTED)] = ()
    source: SourceName = DEFAULT_SOURCE
    authority: AuthorityTier = AuthorityTier.CURATED
    classification: Classification = Classification.INTERNAL
    acl: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    embed: bool = True
    """Whether every chunk that lacks a vector gets one before the answer; without it, words find it at once and vectors come later."""


class DocumentIds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which documents are meant."""

    document_ids: Annotated[tuple[DocumentId, ...], msgspec.Meta(min_length=1, max_length=MAX_NAMED)]


class AccessRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Another access rule for documents, within the tenant of whoever sends it."""

    document_ids: Annotated[tuple[DocumentId, ...], msgspec.Meta(min_length=1, max_length=MAX_NAMED)]
    classification: Classification = Classification.INTERNAL
    acl: tuple[str, ...] = ()


class DocumentEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A live document, who may see it, and into how many chunks it was cut."""

    document_id: DocumentId
    access: AccessRule
    chunks: int


def encode_cursor(place: Sequence[object]) -> str:
    """Return a place in an order as one word, which the next page begins after."""
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).rstrip(b"=").decode()


class DocumentPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some of the live documents that the asker may see, by id."""

    documents: tuple[DocumentEntry, ...]
    next_cursor: str | None = None


class ChunkList(msgspec.Struct, frozen=True, kw_only=True):
    """The chunks of a document in order of position."""

    chunks: tuple[StoredChunk, ...]


class VerifyRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Exactly one of these: an answer, an exported fragment, or the id of a document or chunk."""

    response: EvidenceResponse | None = None
    export: FragmentExport | None = None
    target: Annotated[str, msgspec.Meta(min_length=1, max_length=2_000)] | None = None


class ReceiptView(msgspec.Struct, frozen=True, kw_only=True):
    """What a receipt says of an answer: what was asked, on which versions, and what came out; models' inputs stay inside."""

    receipt_id: ReceiptId
    answered_at: datetime
    query: str
    principal_id: str
    agent_name: str | None
    corpus_version: CorpusVersion
    evidence_state: EvidenceState
    config_hash: Sha256
    result_hash: Sha256
    fragments: tuple[str, ...]


class SourceList(msgspec.Struct, frozen=True, kw_only=True):
    """The sources that the asker may know of, by id."""

    sources: tuple[SourceStatus, ...]


class FreshnessList(msgspec.Struct, frozen=True, kw_only=True):
    """How old every source's data is beside what it promises."""

    sources: tuple[FreshnessReport, ...]


class TrialRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question for one source alone."""

    query: Text
    limit: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 10


class Count(msgspec.Struct, frozen=True, kw_only=True):
    """How many there were."""

    count: int


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """That it is done, and to what."""

    subject: str


class NoteRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an agent writes down for itself."""

    text: Text
    title: str = ""
    agent: str = ""
    session: str = ""
    authority: AuthorityTier = AuthorityTier.EPHEMERAL
    ttl_s: Annotated[int, msgspec.Meta(ge=1)] | None = None


class NoteIds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which notes are meant."""

    note_ids: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=MAX_NAMED)]


class NoteList(msgspec.Struct, frozen=True, kw_only=True):
    """The asker's notes that have not expired, by id."""

    notes: tuple[Note, ...]


class TableList(msgspec.Struct, frozen=True, kw_only=True):
    """The tables of every live document that the asker may see, by document."""

    tables: tuple[TableCard, ...]


class TableQuestion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question that rows of tables may answer."""

    question: Text
    limit: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 200


class LayoutView(msgspec.Struct, frozen=True, kw_only=True):
    """The pages, images and tables of a document; None where it has none of them."""

    layout: DocumentLayout | None


class ImageView(msgspec.Struct, frozen=True, kw_only=True):
    """An image as it stands in its document; JSON carries its bytes as base64."""

    media_type: str
    content: bytes


class TraceList(msgspec.Struct, frozen=True, kw_only=True):
    """The newest requests with what took how long, newest first."""

    traces: tuple[RequestTrace, ...]


class GcRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many versions stay readable; None leaves it to the settings."""

    keep_versions: Annotated[int, msgspec.Meta(ge=1)] | None = None


class WarmRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Questions to ask ahead of time; none takes those of the settings."""

    questions: Annotated[tuple[str, ...], msgspec.Meta(max_length=1_000)] = ()


class FlushRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose kept answers are forgotten; None is every source's."""

    source_id: str | None = None


class VersionList(msgspec.Struct, frozen=True, kw_only=True):
    """The newest versions of a base, newest first."""

    versions: tuple[VersionSummary, ...]
