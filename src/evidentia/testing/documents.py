"""Small documents for tests, made the way ingest makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.contracts.access import AccessRule
from evidentia.contracts.canonical import sha256_hex
from evidentia.contracts.documents import DocumentMetadata, PreparedDocument, ReadDocument
from evidentia.contracts.ids import SemanticVersion, SourceId, ToolId, document_id_of
from evidentia.contracts.layout import ExtractedImage, ExtractedText
from evidentia.contracts.tables import ColumnKind, ExtractedTable, TableColumn, TableContent
from evidentia.ingest.preparation import prepare
from evidentia.testing.determinism import START

if TYPE_CHECKING:
    from collections.abc import Sequence


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


# --- layout samples ---
# A document with pages, images and a table, made the way ingest makes them.

TABLE = ExtractedTable(
    sheet_name="Prices",
    header_rows=(1,),
    columns=(
        TableColumn(name="Product", sql_name="product", kind=ColumnKind.TEXT, position=1, distinct=2, samples=("rope", "Öl")),
        TableColumn(name="Price", sql_name="price", kind=ColumnKind.NUMBER, unit="EUR", position=2, distinct=2, missing=1),
    ),
    content=TableContent(rows=(2, 3, 5), columns=(("rope", "Öl", None), (12.5, 7, None))),
    total_rows=(4,),
)


def illustrated_document(own_id: str, *, picture: bytes = b"\x89PNG", access: AccessRule | None = None) -> PreparedDocument:
    """Return a document of two pages with two pictures, one of them shown twice, and a table."""
    text = "The harbour. See the plan below.\n\nAnd the tide table."
    images = (
        ExtractedImage(content=picture, media_type="image/png", name="diagram", alt="plan of the harbour", start=13, end=32),
        ExtractedImage(content=b"GIF89a", media_type="image/gif", start=34, end=53),
        ExtractedImage(content=picture, media_type="image/png", start=34, end=53),
    )
    return make_document(own_id, text, spans=[(0, 34), (34, len(text))], access=access, pages=(0, 12), images=images, tables=(TABLE,))
