"""A read document becomes one that can be stored: chunks identified, hashed and chained, pages, images and tables laid out.

Nothing here depends on time, place or order except the timestamps inside custody records, so the same text under
the same document id always gives the same chunk ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from evidentia.contracts.canonical import sha256_hex
from evidentia.contracts.documents import PreparedChunk, PreparedDocument
from evidentia.contracts.ids import SemanticVersion, Sha256, ToolId, chunk_id_of
from evidentia.contracts.provenance import DocumentCustody, OriginDescriptor, ToolStamp, TransformationRecord
from evidentia.contracts.vocabulary import SourceType
from evidentia.ingest.layouts import lay_out
from evidentia.provenance.chain import DocumentChain, chunk_record
from evidentia.text.prompt_injection import hostile_flags

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evidentia.contracts.ingestion import ReadDocument

CHUNKER = ToolId("evidentia.ingest.chunking")


def prepare(document: ReadDocument) -> PreparedDocument:
    """Return the document with its chunks identified, its custody sealed and its layout named by its metadata."""
    text = document.extracted.text
    encoded = text.encode()
    text_hash = sha256_hex(encoded)
    custody = _custody(document, text_hash=text_hash)
    layout, attachments = lay_out(document)
    remarks = _remarks(document)
    return PreparedDocument(
        source_id=document.source_id,
        document_id=document.document_id,
        text=text,
        text_hash=text_hash,
        custody=custody,
        metadata=structs.replace(document.metadata, layout=layout, remarks=remarks) if layout or remarks else document.metadata,
        access=document.access,
        chunks=tuple(_chunks(document, custody=custody, encoded=encoded, text_hash=text_hash)),
        fingerprint=document.fingerprint,
        root=document.root,
        attachments=attachments,
    )


def _remarks(document: ReadDocument) -> dict[str, tuple[int, ...]]:
    """Return what readers of each chunk should be warned of, by name; most documents have nothing of the kind."""
    found: dict[str, list[int]] = {}
    for position, (start, end) in enumerate(document.spans):
        for flag in hostile_flags(document.extracted.text[start:end]):
            found.setdefault(flag, []).append(position)
    return {flag: tuple(found[flag]) for flag in sorted(found)}


def _custody(document: ReadDocument, *, text_hash: Sha256) -> DocumentCustody:
    extracted = document.extracted
    origin = OriginDescriptor(
        source_id=document.source_id,
        source_type=SourceType.INVERTED_INDEX,
        document_id=document.document_id,
        document_version=document.document_version,
        extraction_method=extracted.method,
        extraction_timestamp=document.read_at,
        content_hash=document.original_hash,
        content_length=document.original_length,
        media_type=extracted.media_type,
    )
    extraction = TransformationRecord(
        step="extract",
        tool_id=extracted.tool_id,
        tool_version=extracted.tool_version,
        timestamp=document.read_at,
        input_hash=document.original_hash,
        output_hash=text_hash,
    )
    cut_by = ToolStamp(tool_id=CHUNKER, tool_version=SemanticVersion(document.chunker_version), timestamp=document.read_at)
    return DocumentCustody(origin=origin, transformations=(extraction,), cut_by=cut_by)


def _chunks(document: ReadDocument, *, custody: DocumentCustody, encoded: bytes, text_hash: Sha256) -> Iterator[PreparedChunk]:
    chain = DocumentChain(custody)
    text = document.extracted.text
    whole = (0, len(text))
    byte_end = previous_end = 0
    for position, (start, end) in enumerate(document.spans):
        if (start, end) == whole:
            content, content_hash, byte_start, byte_end = encoded, text_hash, 0, len(encoded)
        else:
            content = text[start:end].encode()
            content_hash = sha256_hex(content)
            byte_start = byte_end + len(text[previous_end:start].encode())
            byte_end = byte_start + len(content)
        previous_end = end
        record = chunk_record(custody, position=position, start=start, end=end, text_hash=text_hash, content_hash=content_hash)
        yield PreparedChunk(
            chunk_id=chunk_id_of(document.document_id, position=position, content_hash=content_hash),
            position=position,
            start=start,
            end=end,
            byte_start=byte_start,
            byte_end=byte_end,
            content_hash=content_hash,
            custody_head=chain.head(content, record),
        )
