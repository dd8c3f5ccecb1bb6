"""Rows of the database as messages and back; the only module that knows the column order."""

from __future__ import annotations

from typing import Final

import msgspec

from evidentia.contracts.access import AccessRule
from evidentia.contracts.canonical import encode_struct
from evidentia.contracts.documents import CommitSummary, DocumentMetadata, PreparedChunk, StoredChunk
from evidentia.contracts.ids import CorpusVersion, DocumentId, EvidenceState, Sha256, SourceId, chunk_id_of
from evidentia.contracts.provenance import CommitRecord, DocumentCustody, IngestEvent
from evidentia.contracts.sources import SourceDescriptor

decode_access: Final = msgspec.json.Decoder(AccessRule).decode
decode_metadata: Final = msgspec.json.Decoder(DocumentMetadata).decode
decode_custody: Final = msgspec.json.Decoder(DocumentCustody).decode
decode_event: Final = msgspec.json.Decoder(IngestEvent).decode
decode_commit: Final = msgspec.json.Decoder(CommitRecord).decode
decode_descriptor: Final = msgspec.json.Decoder(SourceDescriptor).decode

encode: Final = encode_struct

CHUNK_COLUMNS: Final = "position, start, stop, byte_start, byte_stop, content_hash, custody_head, chunks.event_index"
ChunkRow = tuple[int, int, int, int, int, bytes, bytes, int]


def chunk_from_row(row: ChunkRow, document_id: DocumentId) -> PreparedChunk:
    """Return a chunk from its row in the order of `CHUNK_COLUMNS`."""
    position, start, stop, byte_start, byte_stop, content_hash, custody_head, _ = row
    digest = Sha256(content_hash.hex())
    return PreparedChunk(
        chunk_id=chunk_id_of(document_id, position=position, content_hash=digest),
        position=position,
        start=start,
        end=stop,
        byte_start=byte_start,
        byte_end=byte_stop,
        content_hash=digest,
        custody_head=Sha256(custody_head.hex()),
    )


def stored_chunk(
    row: ChunkRow, *, document_id: DocumentId, source_id: SourceId, content: bytes, text_hash: bytes,
    custody: bytes, metadata: bytes, rule: bytes, is_live: bool,
) -> StoredChunk:  # fmt: skip
    """Return a chunk as read back, from its row in the order of `CHUNK_COLUMNS` and what its document holds."""
    position, start, stop, _, _, content_hash, custody_head, event_index = row
    digest = Sha256(content_hash.hex())
    return StoredChunk(
        chunk_id=chunk_id_of(document_id, position=position, content_hash=digest),
        document_id=document_id,
        source_id=source_id,
        position=position,
        start=start,
        end=stop,
        content=content.decode(),
        content_hash=digest,
        text_hash=Sha256(text_hash.hex()),
        custody_head=Sha256(custody_head.hex()),
        event_index=event_index,
        metadata=decode_metadata(metadata),
        access=decode_access(rule),
        custody=decode_custody(custody),
        is_live=is_live,
    )


def summary_of(record: CommitRecord, **counts: int) -> CommitSummary:
    """Return what a caller is told of a commit."""
    return CommitSummary(
        sequence=record.sequence,
        corpus_version=CorpusVersion(record.corpus_version),
        evidence_state=EvidenceState(record.evidence_state),
        log_size=record.log_size,
        log_root=record.log_root,
        committed_at=record.committed_at,
        **counts,
    )
