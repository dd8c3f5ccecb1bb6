"""Workbooks and OpenDocument spreadsheets for the tests of tables, and short ways to read them."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING, Any

import openpyxl

from evidentia.ingest.readers.limits import ReadLimits
from evidentia.ingest.readers.registry import read_document

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evidentia.contracts.tables import CellValue, ExtractedTable

_SPACES = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"'
    ' xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
)
_MANIFEST = (
    '<?xml version="1.0"?><manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"><manifest:file-entry'
    ' manifest:full-path="/" manifest:media-type="application/vnd.oasis.opendocument.spreadsheet"/></manifest:manifest>'
)


def workbook(cells: Mapping[str, object] | Sequence[Sequence[object]], *, change: Callable[[Any], None] | None = None) -> bytes:
    """Return a workbook of one sheet with these cells, by their places or as rows from the first."""
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Data"
    if isinstance(cells, dict):
        for place, value in cells.items():
            sheet[place] = value
    else:
        for row in cells:
            sheet.append(list(row))
    if change is not None:
        change(sheet)
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def open_document(sheets: str) -> bytes:
    """Return an .ods file whose spreadsheet element holds `sheets`."""
    content = (
        f'<?xml version="1.0"?><office:document-content {_SPACES}><office:body><office:spreadsheet>{sheets}'
        "</office:spreadsheet></office:body></office:document-content>"
    )
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", content)
        archive.writestr("META-INF/manifest.xml", _MANIFEST)
    return stream.getvalue()


def tables(content: bytes | str, name: str = "book.xlsx") -> tuple[ExtractedTable, ...]:
    """Return the tables of a file."""
    encoded = content.encode() if isinstance(content, str) else content
    return read_document(encoded, name=name, limits=ReadLimits()).tables


def table(content: bytes | str, name: str = "book.xlsx") -> ExtractedTable:
    """Return the one table of a file."""
    (found,) = tables(content, name)
    return found


def names(found: ExtractedTable) -> list[str]:
    """Return the names of the columns."""
    return [column.name for column in found.columns]


def kinds(found: ExtractedTable) -> list[str]:
    """Return the kinds of the columns."""
    return [column.kind.value for column in found.columns]


def rows(found: ExtractedTable) -> dict[int, tuple[CellValue, ...]]:
    """Return the values of each row by its number in the sheet."""
    return dict(zip(found.content.rows, zip(*found.content.columns, strict=True), strict=True))
