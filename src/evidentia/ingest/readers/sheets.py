"""Spreadsheets: each sheet's name as a heading, each row as one line; refuses formulas, macros and sheets of absurd extent."""

from __future__ import annotations

import importlib.metadata
import io
import re
from dataclasses import dataclass, field
from datetime import date, datetime, time
from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.errors import DocumentUnreadableError
from evidentia.contracts.ids import SemanticVersion, ToolId
from evidentia.contracts.layout import ExtractedText
from evidentia.contracts.ports import DocumentReader
from evidentia.ingest.readers.file_types import Family, ending_of
from evidentia.ingest.readers.limits import ReadLimits, TextGatherer
from evidentia.ingest.readers.office_archives import open_checked, xml_parts
from evidentia.ingest.reasons import SkipReason
from evidentia.tables.extraction import tables_of
from evidentia.tables.grids import MAX_CELLS as MAX_TABLE_CELLS
from evidentia.tables.grids import MAX_TABLES, Grid, GridGatherer, SheetMarks, column_number, merged, ods_marks, xlsx_marks

if TYPE_CHECKING:
    import zipfile
    from collections.abc import Iterable, Iterator, Sequence

    from python_calamine import CalamineSheet

    from evidentia.contracts.tables import ExtractedTable

TOOL_ID = ToolId("python-calamine")
MAX_CELLS = 20_000_000
"""Cells between the first and the last used one; the parser makes room for all of them, used or not."""
_CELL = re.compile(rb"""\br\s*=\s*["']([A-Za-z]{1,3})([0-9]{1,7})["']""")
_ODS_MARK = re.compile(rb"<table:table(?:-row|-cell)?(?=[\s/>])[^<>]*>")
_ODS_ROWS = re.compile(rb"""number-rows-repeated\s*=\s*["']([0-9]{1,9})""")
_ODS_COLUMNS = re.compile(rb"""number-columns-repeated\s*=\s*["']([0-9]{1,9})""")
_MEDIA_TYPES = {".ods": "application/vnd.oasis.opendocument.spreadsheet"}
_XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_PIECE = 1024 * 1024
_OVERLAP = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetsReader(DocumentReader):
    """Reads .xlsx and .ods files."""

    limits: ReadLimits = field(default_factory=ReadLimits)

    def read(self, content: bytes, *, name: str) -> ExtractedText:
        """Return the sheets in order, rows as cells joined by ` | `, and the tables on them."""
        import python_calamine

        with open_checked(content, family=Family.SHEETS, name=name, limits=self.limits) as archive:
            _check_extent(archive)
            marks = _marks(archive)
        gatherer = TextGatherer(self.limits)
        tables: list[ExtractedTable] = []
        room = MAX_TABLE_CELLS
        try:
            workbook = python_calamine.CalamineWorkbook.from_filelike(io.BytesIO(content))
            for number, sheet_name in enumerate(workbook.sheet_names, start=1):
                sheet = workbook.get_sheet_by_name(sheet_name)
                kept = GridGatherer(room)
                for line in _lines(sheet_name, kept.passing(sheet.iter_rows())):
                    gatherer.add(f"{line}\n")
                grid = _grid(sheet, kept, marks[number - 1] if number <= len(marks) else SheetMarks())
                room -= len(grid.rows) * grid.whole.right
                tables.extend(tables_of(grid, sheet=number, sheet_name=sheet_name, most=MAX_TABLES - len(tables)))
        except python_calamine.PasswordError as error:
            raise DocumentUnreadableError(SkipReason.ENCRYPTED, "is encrypted; save it without a password and ingest it again") from error
        return ExtractedText(
            text=gatherer.joined(),
            media_type=_MEDIA_TYPES.get(ending_of(name), _XLSX),
            method="sheet_rows",
            tool_id=TOOL_ID,
            tool_version=SemanticVersion(importlib.metadata.version("python-calamine")),
            structure="markdown",
            tables=tuple(tables),
        )


def _grid(sheet: CalamineSheet, kept: GridGatherer, marks: SheetMarks) -> Grid:
    """Return the cells of a sheet in their places; the last row that was given is the last row of the sheet."""
    if sheet.start is None or sheet.end is None:
        return Grid(rows=[])
    grid = msgspec.structs.replace(
        kept.grid(),
        top=sheet.end[0] + 2 - kept.given,
        left=sheet.start[1] + 1,
        marks=marks.sorted_units(),
        errors=tuple(marks.errors),
    )
    return merged(grid, [*(sheet.merged_cell_ranges or ()), *marks.merges])


def _marks(archive: zipfile.ZipFile) -> list[SheetMarks]:
    if "content.xml" in archive.NameToInfo:
        return ods_marks(archive.read("content.xml"))
    return xlsx_marks(archive)


def _lines(sheet: str, rows: Iterable[Sequence[object]]) -> Iterator[str]:
    heading = f"# {' '.join(sheet.split())}\n"
    for row in rows:
        line = " | ".join(_cell(value) for value in row).rstrip(" |")
        if line.strip(" |"):
            yield f"{heading}\n{line}" if heading else line
            heading = ""
    if not heading:
        yield ""


def _cell(value: object) -> str:
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, (date, datetime, time)):
        return value.isoformat()
    return str(value)


def _check_extent(archive: zipfile.ZipFile) -> None:
    """Refuse a sheet whose used cells lie so far apart that the space between them would not fit in memory."""
    for entry in xml_parts(archive):
        if entry.filename.startswith("xl/worksheets/"):
            rows, columns = _xlsx_extent(archive, entry)
        elif entry.filename == "content.xml":
            rows, columns = _ods_extent(archive.read(entry))
        else:
            continue
        if rows * columns > MAX_CELLS:
            problem = f"has a sheet of {rows} rows by {columns} columns, which would not fit in memory; it is not unpacked"
            raise DocumentUnreadableError(SkipReason.ARCHIVE_BOMB, problem)


def _xlsx_extent(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> tuple[int, int]:
    rows = columns = 1
    with archive.open(entry) as part:
        tail = b""
        while piece := part.read(_PIECE):
            if found := _CELL.findall(tail + piece):
                letters, numbers = zip(*found, strict=True)
                rows = max(rows, *map(int, numbers))
                columns = max(columns, *map(column_number, set(letters)))
            tail = piece[-_OVERLAP:]
    return rows, columns


def _ods_extent(content: bytes) -> tuple[int, int]:
    """Return the extent of the used cells; an empty cell, however often it is repeated, takes no room by itself."""
    row = row_repeats = column = 0
    rows = columns = 1
    for match in _ODS_MARK.finditer(content):
        tag = match.group()
        if tag.startswith(b"<table:table-row"):
            row, column = row + row_repeats, 0
            row_repeats = _repeats(_ODS_ROWS, tag)
        elif tag.startswith(b"<table:table-cell"):
            column += _repeats(_ODS_COLUMNS, tag)
            if not tag.endswith(b"/>") or b"value" in tag:
                rows, columns = max(rows, row + row_repeats), max(columns, column)
        else:
            row = row_repeats = 0
    return rows, columns


def _repeats(attribute: re.Pattern[bytes], tag: bytes) -> int:
    match = attribute.search(tag)
    return int(match.group(1)) if match else 1
