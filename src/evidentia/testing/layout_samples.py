"""A document with pages, images and a table, made the way ingest makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.contracts.layout import ExtractedImage
from evidentia.contracts.tables import ColumnKind, ExtractedTable, TableColumn, TableContent
from evidentia.testing.documents import make_document

if TYPE_CHECKING:
    from evidentia.contracts.access import AccessRule
    from evidentia.contracts.documents import PreparedDocument

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
