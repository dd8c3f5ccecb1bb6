"""Identifiers as distinct types, so that a chunk id cannot be passed where a source id is meant.

How the composite ids are spelt is decided here and nowhere else.
"""

from __future__ import annotations

from typing import NamedTuple, NewType

SourceId = NewType("SourceId", str)
DocumentId = NewType("DocumentId", str)
ChunkId = NewType("ChunkId", str)
PrincipalId = NewType("PrincipalId", str)
TenantId = NewType("TenantId", str)
SessionId = NewType("SessionId", str)
RequestId = NewType("RequestId", str)
ReceiptId = NewType("ReceiptId", str)
AnnotationId = NewType("AnnotationId", str)
ToolId = NewType("ToolId", str)
SemanticVersion = NewType("SemanticVersion", str)
Sha256 = NewType("Sha256", str)
"""A SHA-256 digest as 64 lower-case hexadecimal digits."""
CorpusVersion = NewType("CorpusVersion", str)
EvidenceState = NewType("EvidenceState", str)

CHUNK_HASH_DIGITS = 16
MAX_POSITION_DIGITS = 12


def document_id_of(source_id: SourceId, own_id: str) -> DocumentId:
    """Return the document id: the source, a colon, and the document's own id within it."""
    return DocumentId(f"{source_id}:{own_id}")


def chunk_id_of(document_id: DocumentId, *, position: int, content_hash: Sha256) -> ChunkId:
    """Return the chunk id: document, position within it, and the first 16 digits of the content hash."""
    return ChunkId(f"{document_id}#{position}@{content_hash[:CHUNK_HASH_DIGITS]}")


class ChunkParts(NamedTuple):
    """What a chunk id says."""

    document_id: DocumentId
    position: int
    hash_prefix: str


def chunk_parts(chunk_id: ChunkId) -> ChunkParts | None:
    """Return what a chunk id says, or None when it is none; a position of absurd length is none, since nothing can hold it."""
    document_id, _, rest = chunk_id.rpartition("#")
    position, _, hash_prefix = rest.partition("@")
    is_position = position.isascii() and position.isdecimal() and len(position) <= MAX_POSITION_DIGITS
    if not document_id or not is_position or len(hash_prefix) != CHUNK_HASH_DIGITS:
        return None
    return ChunkParts(document_id=DocumentId(document_id), position=int(position), hash_prefix=hash_prefix)


def document_of(chunk_id: ChunkId) -> DocumentId:
    """Return the document a chunk id names; empty when it is no chunk id."""
    return DocumentId(chunk_id.rpartition("#")[0])
