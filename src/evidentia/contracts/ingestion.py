"""What a caller decides about material when it comes in."""

from __future__ import annotations

from datetime import datetime

import msgspec

from evidentia.contracts.access import AccessRule
from evidentia.contracts.documents import DocumentMetadata
from evidentia.contracts.extraction import ExtractedText
from evidentia.contracts.ids import DocumentId, Sha256, SourceId
from evidentia.contracts.vocabulary import AuthorityTier

DEFAULT_SOURCE = SourceId("documents")


class IngestOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The source material belongs to, and the trust and access it starts with."""

    source: SourceId = DEFAULT_SOURCE
    authority: AuthorityTier = AuthorityTier.CURATED
    access: AccessRule = AccessRule()
    tags: tuple[str, ...] = ()
    prune: bool = False
    """Remove documents of this source whose file is gone from the roots given."""


class ReadDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document that was read and cut but not yet identified and chained.

    `spans` are character offsets of the chunks into `extracted.text`, in order, without overlap.
    """

    source_id: SourceId
    document_id: DocumentId
    document_version: str
    original_hash: Sha256
    original_length: int
    extracted: ExtractedText
    spans: tuple[tuple[int, int], ...]
    chunker_version: str
    metadata: DocumentMetadata
    access: AccessRule
    fingerprint: Sha256
    read_at: datetime
    root: str = ""
