"""Small documents for tests, made the way ingest makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.contracts.access import AccessRule
from evidentia.contracts.canonical import sha256_hex
from evidentia.contracts.documents import DocumentMetadata, ReadDocument
from evidentia.contracts.ids import SemanticVersion, SourceId, ToolId, document_id_of
from evidentia.contracts.layout import ExtractedText
from evidentia.ingest.preparation import prepare
from evidentia.testing.determinism import START

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.contracts.documents import PreparedDocument
    from evidentia.contracts.layout import ExtractedImage
    from evidentia.contracts.tables import ExtractedTable


def make_document(
    own_id: str,
    text: str,
    *,
    source: str = "test",
    access: AccessRule | None = None,
    metadata: DocumentMetadata | None = None,
    spans: Sequence[tuple[int, int]] | None = None,
    root: str = "",
    pages: tuple[int, ...] = (),
    images: tuple[ExtractedImage, ...] = (),
    tables: tuple[ExtractedTable, ...] = (),
) -> PreparedDocument:
    """Return a prepared document; without spans the whole text is one chunk, without pages, images and tables it has no layout."""
    source_id = SourceId(source)
    original = text.encode()
    facts = metadata or DocumentMetadata(source_id=source_id)
    rule = access or AccessRule()
    layout = (pages, images, tables)
    fingerprint = sha256_hex(repr((text, facts, rule, spans, *(layout if any(layout) else ()))).encode())
    return prepare(
        ReadDocument(
            source_id=source_id,
            document_id=document_id_of(source_id, own_id),
            document_version="1",
            original_hash=sha256_hex(original),
            original_length=len(original),
            extracted=ExtractedText(
                text=text,
                media_type="text/plain",
                method="full_text",
                tool_id=ToolId("evidentia.testing"),
                tool_version=SemanticVersion("1.0.0"),
                pages=pages,
                images=images,
                tables=tables,
            ),
            spans=tuple(spans) if spans is not None else ((0, len(text)),),
            chunker_version="1.0.0",
            metadata=facts,
            access=rule,
            fingerprint=fingerprint,
            read_at=START,
            root=root,
        )
    )
