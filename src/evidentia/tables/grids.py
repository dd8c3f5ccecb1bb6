"""A sheet as rows of cells with their true places; refuses to hold more of a sheet than it has room for, and says what it cut."""

from __future__ import annotations

import functools
import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING

import msgspec

from evidentia.tables.units import PERCENT, known_unit, unit_of_format

if TYPE_CHECKING:
    import zipfile


MAX_CELLS = 4_000_000
"""Cells of one file that become tables, empty ones between them included."""
MAX_COLUMNS = 1_000
MAX_TABLES = 200
"""Tables of one file."""
MAX_FILLED = 1_000_000
"""Rows that the merged ranges of one sheet may cover, counted for each range."""
MAX_MERGES = 50_000


class Box(msgspec.Struct, frozen=True, order=True):
    """A rectangle of a grid, in indices of the grid: from `top` to before `bottom`, from `left` to before `right`."""

    top: int
    left: int
    bottom: int
    right: int

    @property
    def width(self) -> int:
        """Return the number of columns."""
        return self.right - self.left

    @property
    def height(self) -> int:
        """Return the number of rows."""
        return self.bottom - self.top


class CellMark(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of one column of the sheet, rows and column from 1, whose cells are all shown in one unit."""

    unit: str
    column: int
    first: int
    last: int


class Grid(msgspec.Struct, frozen=True, kw_only=True):
    """The cells of a sheet: every row has the same width, an empty cell is an empty string."""

    rows: list[list[object]]
    top: int = 1
    """The row of the sheet that the first row is, from 1."""
    left: int = 1
    merges: tuple[Box, ...] = ()
    marks: tuple[CellMark, ...] = ()
    spans: Mapping[int, Sequence[tuple[int, int]]] = {}
    """For each row of the grid, the merged ranges of more than one column: from a column to before another."""
    errors: tuple[tuple[int, int], ...] = ()
    """Rows and columns of the sheet, from 1, of cells whose formula failed; their value is empty."""
    decimal: str = ""
    """The decimal sign the file itself suggests; empty when it suggests none."""
    has_layout: bool = True
    """False for text, where an empty line rarely means that another table begins."""
    notes: tuple[str, ...] = ()

    @property
    def whole(self) -> Box:
        """Return the rectangle of all cells."""
        return Box(0, 0, len(self.rows), len(self.rows[0]) if self.rows else 0)

    def cells(self, row: int, box: Box) -> list[object]:
        """Return the cells of one row within a box."""
        return self.rows[row][box.left : box.right]


class GridGatherer:
    """Collects rows for a grid as they pass, until there is no more room."""

    def __init__(self, room: int) -> None:
        self.given = 0
        """How many rows have passed."""
        self._room = room
        self._kept: list[list[object]] = []
        self._width = self._cut_columns = 0

    def passing(self, rows: Iterable[Sequence[object]]) -> Iterator[Sequence[object]]:
        """Yield the rows as they are, keeping those there is room for."""
        is_open = True
        for row in rows:
            self.given += 1
            width = min(max(self._width, len(row)), MAX_COLUMNS)
            is_open = is_open and (len(self._kept) + 1) * width <= self._room
            if is_open:
                self._width, self._cut_columns = width, max(self._cut_columns, len(row) - MAX_COLUMNS)
                cells = row[:MAX_COLUMNS]
                self._kept.append(cells if isinstance(cells, list) else list(cells))
            yield row

    def grid(self) -> Grid:
        """Return the rows that were kept, all of one width; what was cut is noted."""
        for cells in self._kept:
            if len(cells) < self._width:
                cells.extend([""] * (self._width - len(cells)))
        return Grid(rows=self._kept, notes=cut_notes(rows=self.given - len(self._kept), columns=self._cut_columns))


def grid_of(rows: Iterable[Sequence[object]], *, room: int = MAX_CELLS) -> Grid:
    """Return the rows as a grid of one width; what does not fit into `room` cells is cut and noted."""
    gatherer = GridGatherer(room)
    for _ in gatherer.passing(rows):
        pass
    return gatherer.grid()


def merged(grid: Grid, ranges: Iterable[tuple[tuple[int, int], tuple[int, int]]]) -> Grid:
    """Return the grid with merged ranges, given as the first and the last cell of each, both from 0 in the sheet."""
    whole = grid.whole
    boxes: list[Box] = []
    spans: dict[int, list[tuple[int, int]]] = {}
    notes = grid.notes
    room = MAX_FILLED
    for (first_row, first_column), (last_row, last_column) in ranges:
        top, left = first_row - grid.top + 1, first_column - grid.left + 1
        bottom, right = min(last_row - grid.top + 2, whole.bottom), min(last_column - grid.left + 2, whole.right)
        if top < 0 or left < 0 or top >= bottom or left >= right:
            continue
        room -= bottom - top
        if room < 0 or len(boxes) >= MAX_MERGES:
            notes = (*notes, "some merged ranges are left out: the sheet has too many")
            break
        boxes.append(Box(top, left, bottom, right))
        if right - left > 1:
            for row in range(top, bottom):
                spans.setdefault(row, []).append((left, right))
    return msgspec.structs.replace(grid, merges=tuple(boxes), spans=spans, notes=notes)


def cut_notes(*, rows: int, columns: int) -> tuple[str, ...]:
    """Return what was left out of a sheet, in words."""
    notes = []
    if columns > 0:
        notes.append(f"{columns} columns beyond the first {MAX_COLUMNS} are left out")
    if rows > 0:
        notes.append(f"{rows} rows at the end of the sheet are left out: a file gives at most {MAX_CELLS} cells")
    return tuple(notes)


def is_blank(cell: object) -> bool:
    """Whether nothing can be seen in the cell."""
    return cell is None or (isinstance(cell, str) and not cell.strip())


def is_blank_row(cells: Sequence[object]) -> bool:
    """Whether nothing can be seen in any of the cells."""
    first = cells[0] if cells else None
    if isinstance(first, str) and first and not first.isspace():
        return False
    return cells.count("") == len(cells) or all(map(is_blank, cells))


def shown(cell: object) -> str:
    """Return a cell as one line of text, as the text of a sheet has it."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, (date, datetime, time)):
        return cell.isoformat()
    if isinstance(cell, timedelta):
        return f"{cell.total_seconds():g} s"
    return "" if cell is None else " ".join(str(cell).split())


def fill_down(grid: Grid, *, box: Box) -> None:
    """Write the value of each merged range of `box` into the rows below its first, in its first column only.

    A merged range means one value for all its rows; across columns it only makes room, so nothing is written there.
    """
    for merge in grid.merges:
        first = max(merge.top, box.top)
        last = min(merge.bottom, box.bottom)
        if merge.top < box.top or not box.left <= merge.left < box.right or last - first < 2:  # noqa: PLR2004  # one row is nothing to fill
            continue
        value = grid.rows[first][merge.left]
        for row in grid.rows[first + 1 : last]:
            if row[merge.left] == "":
                row[merge.left] = value


# --- formats ---
# What the XML of a sheet says besides its values: units shown by number formats, failed formulas, merged cells of .ods files.
#
# Read with patterns and never parsed as XML, so no entity is ever expanded; a mark that is written unusually is missed, not misread.

MAX_RUNS = 100_000
"""Stretches of equal units and failed formulas of one sheet; beyond, the rest has none."""
LARGEST_SIDE_PART = 32 * 1024 * 1024
"""Styles and the like; a larger part is not looked at."""
Range = tuple[tuple[int, int], tuple[int, int]]
_PIECE = 1024 * 1024
_SHEET = re.compile(rb"""<(?:\w{1,20}:)?sheet\s[^<>]{0,2000}?\br:id\s?=\s?["']([^"']{1,200})["']""")
_RELATION = re.compile(rb"<Relationship\s[^<>]{0,4000}>")
_ATTRIBUTE = re.compile(rb"""([\w:-]{1,64})\s?=\s?(?:"([^"]*)"|'([^']*)')""")
_FORMAT = re.compile(rb"<numFmt\s[^<>]{0,4000}>")
_STYLE = re.compile(rb"<xf\s[^<>]{0,4000}>")
_BUILT_IN = {9: PERCENT, 10: PERCENT}
_ODS_MARK = re.compile(rb"<table:(table|table-row|table-cell|covered-table-cell)(?=[\s/>])([^<>]{0,4000})>")
_ODS_NEEDED = (b"columns-spanned", b"rows-spanned", b"office:currency", b'"percentage"')


class SheetMarks(msgspec.Struct, kw_only=True):
    """Marks of one sheet; rows and columns of units and errors from 1, those of merged ranges from 0."""

    units: list[CellMark] = []
    errors: list[tuple[int, int]] = []
    merges: list[Range] = []
    last_places: dict[tuple[int, str], int] = {}
    """Where the last stretch of a column and a unit stands among `units`."""

    def add_unit(self, unit: str, *, column: int, first: int, last: int) -> None:
        """Add a stretch of cells, as part of the last one where they touch."""
        place = self.last_places.get((column, unit))
        if place is not None and self.units[place].first <= first <= self.units[place].last + 1:
            first, last = self.units[place].first, max(last, self.units[place].last)
            self.units[place] = CellMark(unit=unit, column=column, first=first, last=last)
            return
        self.last_places[column, unit] = len(self.units)
        self.units.append(CellMark(unit=unit, column=column, first=first, last=last))

    def sorted_units(self) -> tuple[CellMark, ...]:
        """Return the stretches in order of column, unit and row."""
        return tuple(sorted(self.units, key=lambda mark: (mark.column, mark.unit, mark.first)))

    @property
    def is_full(self) -> bool:
        """Whether no more marks are taken."""
        return len(self.units) + len(self.errors) + len(self.merges) >= MAX_RUNS


def xlsx_marks(archive: zipfile.ZipFile) -> list[SheetMarks]:
    """Return the marks of each sheet of a workbook, in its order; fewer where the order cannot be told."""
    styles = _unit_styles(_side_part(archive, "xl/styles.xml"))
    targets = _relations(_side_part(archive, "xl/_rels/workbook.xml.rels"))
    paths = [targets.get(identity, "") for identity in _SHEET.findall(_side_part(archive, "xl/workbook.xml"))]
    return [_xlsx_sheet(archive, path, styles) if path in archive.NameToInfo else SheetMarks() for path in paths]


def ods_marks(content: bytes) -> list[SheetMarks]:
    """Return the marks of each sheet of an OpenDocument spreadsheet, in its order; none at all when it has no marks."""
    sheets: list[SheetMarks] = []
    if not any(needed in content for needed in _ODS_NEEDED):
        return sheets
    row = row_repeats = column = 0
    for match in _ODS_MARK.finditer(content):
        kind, tag = match.groups()
        if kind == b"table":
            sheets.append(SheetMarks())
            row = row_repeats = 0
        elif kind == b"table-row":
            row, column = row + row_repeats, 0
            row_repeats = _number(tag, b"table:number-rows-repeated")
        elif sheets:
            repeats = _number(tag, b"table:number-columns-repeated")
            if b"spanned" in tag or b"currency" in tag or b"percentage" in tag:
                _mark_ods_cell(sheets[-1], tag, row=row, rows=row_repeats, column=column, columns=repeats)
            column += repeats
    return sheets


def _mark_ods_cell(sheet: SheetMarks, tag: bytes, *, row: int, rows: int, column: int, columns: int) -> None:
    if sheet.is_full:
        return
    down, across = _number(tag, b"table:number-rows-spanned"), _number(tag, b"table:number-columns-spanned")
    if down * across > 1:
        sheet.merges.append(((row, column), (row + down - 1, column + across - 1)))
    attributes = _attributes(tag)
    currency = attributes.get("office:currency", "")
    unit = PERCENT if attributes.get("office:value-type") == "percentage" else known_unit(currency)
    for place in range(min(columns, 100) if unit else 0):
        sheet.add_unit(unit, column=column + place + 1, first=row + 1, last=row + rows)


def _xlsx_sheet(archive: zipfile.ZipFile, path: str, styles: dict[bytes, str]) -> SheetMarks:
    marks = SheetMarks()
    wanted = b"|".join(sorted(styles)) or b"none"
    pattern = re.compile(rb'<c r="([A-Z]{1,3})([0-9]{1,7})" (?:s="(' + wanted + rb')"[ />]|(?:s="[0-9]+" )?(t="e"))')
    for piece in _pieces(archive, path):
        if marks.is_full or not (styles or b't="e"' in piece):
            continue
        for letters, number, style, error in pattern.findall(piece):
            row, column = int(number), column_number(letters)
            if error:
                marks.errors.append((row, column))
            else:
                marks.add_unit(styles[style], column=column, first=row, last=row)
    return marks


def _pieces(archive: zipfile.ZipFile, path: str) -> Iterator[bytes]:
    """Yield the part in pieces that each end before a cell begins."""
    with archive.open(path) as part:
        tail = b""
        while piece := part.read(_PIECE):
            known, piece = len(tail), tail + piece
            end = piece.rfind(b"<c ", max(0, known - len(b"<c ")))
            end = len(piece) - len(b"<c ") if end < 0 else end
            tail = piece[end:]
            yield piece[:end]
        yield tail


def _unit_styles(styles: bytes) -> dict[bytes, str]:
    """Return the styles of cells whose number format shows a unit, by the number that cells name them with."""
    codes: dict[int, str] = dict(_BUILT_IN)
    for tag in _FORMAT.findall(styles):
        attributes = _attributes(tag)
        if attributes.get("numFmtId", "").isdecimal():
            codes[int(attributes["numFmtId"])] = unit_of_format(html.unescape(attributes.get("formatCode", "")))
    start = max(styles.find(b"<cellXfs"), 0)
    end = max(styles.find(b"</cellXfs>", start), start)
    found: dict[bytes, str] = {}
    for number, tag in enumerate(_STYLE.findall(styles, start, end)):
        identity = _attributes(tag).get("numFmtId", "")
        unit = codes.get(int(identity), "") if identity.isdecimal() else ""
        if unit:
            found[str(number).encode()] = unit
    return found


def _relations(content: bytes) -> dict[bytes, str]:
    found: dict[bytes, str] = {}
    for tag in _RELATION.findall(content):
        attributes = _attributes(tag)
        target = attributes.get("Target", "")
        found[attributes.get("Id", "").encode()] = target.lstrip("/") if target.startswith("/") else f"xl/{target}"
    return found


def _side_part(archive: zipfile.ZipFile, path: str) -> bytes:
    entry = archive.NameToInfo.get(path)
    return archive.read(entry) if entry is not None and entry.file_size <= LARGEST_SIDE_PART else b""


def _attributes(tag: bytes) -> dict[str, str]:
    return {name.decode("utf-8", "replace"): (one or two).decode("utf-8", "replace") for name, one, two in _ATTRIBUTE.findall(tag)}


def _number(tag: bytes, attribute: bytes) -> int:
    place = tag.find(attribute + b"=")
    if place < 0:
        return 1
    digits = tag[place + len(attribute) + 2 :][:9].split(b'"', 1)[0].split(b"'", 1)[0]
    return max(1, int(digits)) if digits.isdigit() else 1


@functools.lru_cache(maxsize=20_000)
def column_number(letters: bytes) -> int:
    """Return the number of a column, from 1, that its letters stand for."""
    number = 0
    for letter in letters.upper():
        number = number * 26 + letter - ord("A") + 1
    return number
