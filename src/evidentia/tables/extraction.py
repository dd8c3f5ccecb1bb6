"""From the cells of a sheet to its tables: regions, headers, kinds and totals in this order; refuses to run or follow a cell."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from evidentia.contracts.tables import CellValue, ColumnKind, ExtractedTable, TableColumn, TableContent
from evidentia.tables.column_types import AMBIGUOUS, ReadColumn, read_column, scaled_to_percent, without_rows
from evidentia.tables.grids import Box, Grid, fill_down, is_blank, is_blank_row, shown
from evidentia.tables.regions import Region, find_header, find_regions, repeats_header
from evidentia.tables.sql_names import column_sql_names
from evidentia.tables.units import PERCENT, split_unit

if TYPE_CHECKING:
    from collections.abc import Sequence


MAX_NOTES = 20
TOTALS_MATTER_FROM = 100
"""Fewer than one total in so many rows cannot change the kind of a column by much."""
_NUMERIC = frozenset([ColumnKind.INTEGER, ColumnKind.NUMBER])


def tables_of(grid: Grid, *, sheet: int = 1, sheet_name: str = "", most: int) -> list[ExtractedTable]:
    """Return the tables of a sheet in the order of their places, at most `most`; what was cut is noted on each."""
    if not most:
        return []
    regions, is_cut = find_regions(grid)
    notes = (*grid.notes, *(["the sheet falls into too many pieces; those at its end are left out"] if is_cut else ()))
    if len(regions) > most:
        notes = (*notes, f"{len(regions) - most} more tables of the sheet are left out")
    tables = [_table(grid, region, notes=notes) for region in regions[:most]]
    return [msgspec.structs.replace(table, sheet=sheet, sheet_name=sheet_name) for table in tables if table is not None]


def _table(grid: Grid, region: Region, *, notes: tuple[str, ...]) -> ExtractedTable | None:
    """Return one table.

    1. Find the header and fill merged cells below it.
    2. Take the rows that hold values.
    3. Set totals aside.
    4. Say what each column holds.
    """
    box = region.box
    header = find_header(grid, box)
    body = Box(box.top + header.row_count, box.left, box.bottom, box.right)
    fill_down(grid, box=body)
    places = _value_rows(grid, body, header_row=box.top + header.row_count - 1 if header.row_count else None)
    kept = [column for column in range(box.width) if header.names[column] or not _is_blank_column(grid, places, box.left + column)]
    if not places or not kept:
        return None
    cells = [[grid.rows[row][box.left + column] for row in places] for column in kept]
    columns = _read(cells, decimal=grid.decimal)
    totals = total_rows([column.values for column in columns], labelled_rows(cells))
    rows = tuple(grid.top + row for row in places)
    if totals:
        aside = frozenset(totals)
        columns = _without_totals(cells, columns, aside, decimal=grid.decimal)
        rows = tuple(row for place, row in enumerate(rows) if place not in aside)
    if not rows:
        return None
    described = _described(
        grid, columns, [header.names[column] for column in kept], [grid.left + box.left + column for column in kept], rows
    )
    return ExtractedTable(
        title=region.title,
        header_rows=tuple(grid.top + box.top + row for row in range(header.row_count)),
        columns=tuple(column for column, _, _ in described),
        content=TableContent(rows=rows, columns=tuple(tuple(column.values) for _, column, _ in described)),
        total_rows=tuple(grid.top + places[row] for row in totals),
        notes=_bounded([*notes, *_error_notes(grid, box), *(note for _, _, own in described for note in own)]),
    )


def _value_rows(grid: Grid, body: Box, *, header_row: int | None) -> list[int]:
    """Return the rows with values: neither empty nor the header once more."""
    is_whole = body.width == len(grid.rows[0])
    again = [] if header_row is None else [shown(cell).casefold() for cell in grid.cells(header_row, body)]
    first = next((name for name in again if name), "")
    place = again.index(first) if first else 0
    found = []
    for number in range(body.top, body.bottom):
        row = grid.rows[number] if is_whole else grid.cells(number, body)
        if is_blank_row(row):
            continue
        cell = row[place]
        if first and type(cell) is str and shown(cell).casefold() == first and repeats_header(row, again):
            continue
        found.append(number)
    return found


def _is_blank_column(grid: Grid, places: Sequence[int], column: int) -> bool:
    return all(is_blank(grid.rows[row][column]) for row in places)


def _without_totals(cells: list[list[object]], columns: list[ReadColumn], aside: frozenset[int], *, decimal: str) -> list[ReadColumn]:
    """Return the columns without the rows that add up, read again where those may have hidden what the others are."""
    if len(aside) * TOTALS_MATTER_FROM >= len(cells[0]) or any(one.notes and one.kind is not ColumnKind.TEXT for one in columns):
        return _read([[cell for place, cell in enumerate(column) if place not in aside] for column in cells], decimal=decimal)
    return [without_rows(column, aside) for column in columns]


def _read(cells: list[list[object]], *, decimal: str) -> list[ReadColumn]:
    """Return the columns; one that leaves its decimal sign open takes the one that all others agree on, else `decimal`."""
    columns = [read_column(column) for column in cells]
    proved = sorted({column.decimal for column in columns} - {"", AMBIGUOUS})
    sign = proved[0] if len(proved) == 1 else decimal
    if not sign:
        return columns
    return [read_column(cells[place], decimal=sign) if one.decimal == AMBIGUOUS else one for place, one in enumerate(columns)]


def _described(
    grid: Grid, columns: list[ReadColumn], names: list[str], positions: list[int], rows: tuple[int, ...]
) -> list[tuple[TableColumn, ReadColumn, list[str]]]:
    parts = [split_unit(name) for name in names]
    sql_names = column_sql_names(bare for bare, _ in parts)
    described = []
    for place, column in enumerate(columns):
        read = _with_format(grid, column, position=positions[place], rows=rows)
        number = positions[place]
        made = TableColumn(
            name=names[place] or f"column_{place + 1}",
            sql_name=sql_names[place],
            kind=read.kind,
            unit=(parts[place][1] or read.unit) if read.kind in _NUMERIC else "",
            position=number,
            distinct=read.distinct(),
            missing=read.missing,
            samples=read.samples(),
        )
        described.append((made, read, [f"column {_letters(number)}: {note}" for note in read.notes]))
    return described


def _with_format(grid: Grid, column: ReadColumn, *, position: int, rows: tuple[int, ...]) -> ReadColumn:
    """Return the column in the unit its number formats show, when they show one for every number."""
    marks = [mark for mark in grid.marks if mark.column == position]
    if not marks or column.kind not in _NUMERIC:
        return column
    units = dict.fromkeys(mark.unit for mark in marks)
    for unit in units:
        runs = [(mark.first, mark.last) for mark in marks if mark.unit == unit]
        numbers = [row for row, value in zip(rows, column.values, strict=True) if type(value) in (int, float)]
        if _all_within(numbers, runs):
            marked = msgspec.structs.replace(column, unit=unit)
            return scaled_to_percent(marked) if unit == PERCENT else marked
    return msgspec.structs.replace(column, notes=(*column.notes, "shows only some of its numbers in a unit, so they are kept as stored"))


def _all_within(rows: list[int], runs: list[tuple[int, int]]) -> bool:
    """Whether each row lies in one of the runs; both in order."""
    waiting = iter(runs)
    first, last = next(waiting)
    for row in rows:
        while row > last:
            run = next(waiting, None)
            if run is None:
                return False
            first, last = run
        if row < first:
            return False
    return True


def _error_notes(grid: Grid, box: Box) -> list[str]:
    top, left = grid.top + box.top, grid.left + box.left
    inside = sum(top <= row < top + box.height and left <= column < left + box.width for row, column in grid.errors)
    return [f"{inside} cells hold an error and count as missing"] if inside else []


def _bounded(notes: list[str]) -> tuple[str, ...]:
    if len(notes) <= MAX_NOTES:
        return tuple(notes)
    return (*notes[:MAX_NOTES], f"{len(notes) - MAX_NOTES} more notes are left out")


def _letters(column: int) -> str:
    """Return the letters a spreadsheet program shows for a column."""
    letters = ""
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


# --- totals ---
# Rows that add others up; refuses to set a row aside for its label alone unless it closes the table.

LABEL_WITHIN_COLUMNS = 3
MAX_LABEL_LENGTH = 80
TOLERANCE = 1e-6
_WORDS = (
    r"(?:grand|sub|over\s?all|running|net)?[\s-]*totals?|sub[\s-]?sum|sums?|summen?|gesamt(?:summe|ergebnis|betrag)?|zwischensumme|insgesamt"
    r"|endsumme|totale|totaal|somme|ensemble|suma|\u03c3|\u2211|合计|总计|小计|итого|всего"  # codespell:ignore
)
_EXACT = re.compile(rf"[\s=*-]*(?:{_WORDS})\s*(?:[(\[][^)\]]{{0,20}}[)\]])?\s*(?:(?:19|20)[0-9]{{2}})?[\s:.=*]*", re.IGNORECASE)
_SOMEWHERE = re.compile(rf"(?:^|[\s:(-])(?:{_WORDS})(?:$|[\s:).-])", re.IGNORECASE)


def labelled_rows(columns: Sequence[Sequence[object]]) -> dict[int, bool]:
    """Return the rows whose first text speaks of a total, each with whether it says nothing else."""
    found: dict[int, bool] = {}
    for place, column in enumerate(columns[:LABEL_WITHIN_COLUMNS]):
        texts = {cell for cell in column if type(cell) is str and len(cell) <= MAX_LABEL_LENGTH}
        labels = {text: bool(_EXACT.fullmatch(text)) for text in texts if _SOMEWHERE.search(text)}
        for row, cell in enumerate(column if labels else ()):
            if type(cell) is str and cell in labels and row not in found and all(_is_empty(before[row]) for before in columns[:place]):
                found[row] = labels[cell]
    return found


def total_rows(columns: Sequence[Sequence[CellValue]], labelled: dict[int, bool]) -> list[int]:
    """Return which rows add others up, in order.

    A row labelled as a total counts when a column of it adds up the rows since the last total, or all rows before it that
    are no totals; labelled so and nothing else, also when only totals follow it. A last row without any text counts when
    each of its numbers is the sum of its column.
    """
    row_count = len(columns[0]) if columns else 0
    if not labelled and not _may_be_bare(columns, row_count - 1):
        return []
    sums = [_Sums(column) for column in columns if any(_is_number(cell) for cell in column)]
    closing = row_count
    while closing - 1 in labelled:
        closing -= 1
    found: list[int] = []
    for row in sorted(labelled):
        if (labelled[row] and row >= max(closing, 1)) or any(one.is_sum(row) for one in sums):
            found.append(row)
            for one in sums:
                one.set_aside(row)
    last = row_count - 1
    if last not in found and _may_be_bare(columns, last) and all(one.is_sum(last) for one in sums if one.has_number(last)):
        found.append(last)
    return found


def _may_be_bare(columns: Sequence[Sequence[CellValue]], last: int) -> bool:
    """Whether the last row has numbers and empty cells, and nothing else."""
    if last <= 1:
        return False
    cells = [column[last] for column in columns]
    present = [cell for cell in cells if cell is not None]
    return 0 < len(present) < len(cells) and all(map(_is_number, present)) and any(present)


class _Sums:
    """Sums over the rows of one column, so that asking for each costs the same however long it is."""

    def __init__(self, column: Sequence[CellValue]) -> None:
        self._values = np.array([cell if _is_number(cell) else math.nan for cell in column], dtype=np.float64)
        self._sums = np.concatenate(([0.0], np.cumsum(np.nan_to_num(self._values))))
        self._counts = np.concatenate(([0], np.cumsum(~np.isnan(self._values))))
        self._since = 0
        self._aside_sum, self._aside_count = 0.0, 0

    def has_number(self, row: int) -> bool:
        """Whether the cell is a number."""
        return not math.isnan(self._values[row])

    def is_sum(self, row: int) -> bool:
        """Whether a cell is the sum of at least two cells above: those since the last total, or all that are no totals."""
        if not self.has_number(row):
            return False
        recent = self._sums[row] - self._sums[self._since], self._counts[row] - self._counts[self._since]
        everything = self._sums[row] - self._aside_sum, self._counts[row] - self._aside_count
        value = self._values[row]
        return any(count > 1 and abs(total - value) <= TOLERANCE * max(1.0, abs(total)) for total, count in (recent, everything))

    def set_aside(self, row: int) -> None:
        """Take a row for a total."""
        self._since = row + 1
        if self.has_number(row):
            self._aside_sum += float(self._values[row])
            self._aside_count += 1


def _is_number(cell: CellValue) -> bool:
    return type(cell) in (int, float)


def _is_empty(cell: object) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())
