"""A sheet as rows of cells with their true places; refuses to hold more of a sheet than it has room for, and says what it cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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
