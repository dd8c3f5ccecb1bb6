"""Which rows at the head of a table name its columns, and what the names are; refuses to take a row of values for names."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import TYPE_CHECKING

import msgspec

from evidentia.ingest.tables.grids import is_blank, shown
from evidentia.ingest.tables.units import unit_alone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.ingest.tables.grids import Box, Grid

MAX_HEADER_ROWS = 6
LOOK_AT_ROWS = 200
MAX_NAME_LENGTH = 200
FIRST_YEAR, LAST_YEAR = 1900, 2100
_VALUE = re.compile("[\\s(+\u2212€$£¥-]*[0-9][0-9.,:'\u2019/\\s\u00a0\u202f-]*(?:[%€$£¥)]|[A-Za-z]{0,3})")
MAX_VALUE_LENGTH = 40
_YEAR = re.compile(r"(?:19|20)[0-9]{2}")
_PLURAL = 2


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """How many rows of a table are its header, and the name of each column; empty where the header has none."""

    row_count: int
    names: tuple[str, ...]


def find_header(grid: Grid, box: Box) -> Header:
    """Return the header of a table; it may be empty, and its names are then empty too."""
    first = grid.cells(box.top, box)
    body = [grid.cells(row, box) for row in range(box.top + 1, min(box.bottom, box.top + LOOK_AT_ROWS))]
    row_count = _row_count(grid, box) if body else 0
    if not row_count or not _names_what_is_below(first, body[row_count - 1 :], row_count=row_count):
        return Header(row_count=0, names=("",) * box.width)
    return Header(row_count=row_count, names=_names(grid, box, row_count))


def is_header_row(cells: Sequence[object]) -> bool:
    """Whether all cells of a row could be names: different texts that are no values, or years, and more than one."""
    seen = [cell for cell in cells if not is_blank(cell)]
    if len(seen) < min(_PLURAL, len(cells)) or not all(map(_could_name, seen)) or not any(isinstance(cell, str) for cell in seen):
        return False
    names = [shown(cell).casefold() for cell in seen]
    return len(set(names)) == len(names) or len(set(names)) * 3 >= len(names) > _PLURAL


def is_value(cell: object) -> bool:
    """Whether a cell is a number, a date, a time or an amount, as such or written out."""
    if not isinstance(cell, str):
        return True
    text = cell.strip()
    return len(text) <= MAX_VALUE_LENGTH and bool(_VALUE.fullmatch(text))


def repeats_header(cells: Sequence[object], header: Sequence[str]) -> bool:
    """Whether a row says the header again, as the head of a printed page does."""
    return [shown(cell).casefold() for cell in cells] == list(header)


def _could_name(cell: object) -> bool:
    if isinstance(cell, bool):
        return False
    if isinstance(cell, (date, datetime)):
        return True
    if isinstance(cell, (int, float)):
        return FIRST_YEAR <= cell <= LAST_YEAR and float(cell).is_integer()
    if not isinstance(cell, str):
        return False
    return len(cell) <= MAX_NAME_LENGTH and (not is_value(cell) or _is_year(cell))


def _is_year(cell: object) -> bool:
    if isinstance(cell, str):
        return bool(_YEAR.fullmatch(cell.strip()))
    return isinstance(cell, (int, float)) and FIRST_YEAR <= cell <= LAST_YEAR


def _row_count(grid: Grid, box: Box) -> int:
    """Return how many rows from the top are names: one, or more where a row groups those below it or gives their units."""
    count = 0
    while count < min(MAX_HEADER_ROWS, box.height - 1):
        cells = grid.cells(box.top + count, box)
        is_names = is_header_row(cells) or _is_group_row(grid, box, count)
        if count and _is_unit_row(cells):
            return count + 1
        if not is_names:
            return count
        if count and not _is_grouped_by(grid, box, count - 1, cells):
            return count
        count += 1
    return count


def _is_group_row(grid: Grid, box: Box, place: int) -> bool:
    """Whether a row holds names of groups only: merged over several columns, but not over all."""
    spans = _spans(grid, box, place)
    return bool(spans) and all(isinstance(cell, str) or is_blank(cell) for cell in grid.cells(box.top + place, box))


def _spans(grid: Grid, box: Box, place: int) -> list[tuple[int, int]]:
    """Return the merged ranges of a row of the box that span more than one column, as places within the box."""
    spans = grid.spans.get(box.top + place, ())
    return sorted((left - box.left, right - box.left) for left, right in spans if left >= box.left and right <= box.right)


def _is_grouped_by(grid: Grid, box: Box, place: int, cells: Sequence[object]) -> bool:
    """Whether the row at `place` groups the names in `cells`: it spans several, or leaves out columns that they name."""
    if _spans(grid, box, place):
        return True
    upper = grid.cells(box.top + place, box)
    left_out = [number for number, cell in enumerate(upper) if is_blank(cell) and not is_blank(cells[number])]
    has_values_below = any(
        not is_header_row(grid.cells(row, box)) for row in range(box.top + place + 2, min(box.bottom, box.top + place + 4))
    )
    return len(left_out) * 3 >= len(upper) and has_values_below


def _is_unit_row(cells: Sequence[object]) -> bool:
    seen = [cell for cell in cells if not is_blank(cell)]
    return bool(seen) and all(isinstance(cell, str) and unit_alone(cell) for cell in seen)


def _names_what_is_below(first: Sequence[object], body: Sequence[Sequence[object]], *, row_count: int) -> bool:
    """Whether a row of possible names differs from the rows below as names differ from values."""
    if row_count > 1:
        return True
    has_contrast = False
    for place, name in enumerate(first):
        column = [cells[place] for cells in body if not is_blank(cells[place])]
        if is_blank(name) or not column:
            continue
        if is_value(name) and sum(_is_alike(name, cell) for cell in column) * 2 > len(column):
            return False
        has_contrast |= not is_value(name) and sum(map(is_value, column)) * 2 > len(column)
    if has_contrast or any(map(is_value, first)):
        return has_contrast or not _has_values_only(first)
    if any(isinstance(cell, str) and cell.strip().endswith(":") for cell in first):
        return False
    return not any(_comes_again(name, [cells[place] for cells in body]) for place, name in enumerate(first))


def _has_values_only(cells: Sequence[object]) -> bool:
    return all(is_value(cell) for cell in cells if not is_blank(cell))


def _is_alike(name: object, cell: object) -> bool:
    """Whether a year or a date in the place of a name is a value like those below it."""
    return (_is_year(name) and _is_year(cell)) or (isinstance(name, date) and isinstance(cell, date))


def _comes_again(name: object, column: Sequence[object]) -> bool:
    return not is_blank(name) and name in column


def _names(grid: Grid, box: Box, row_count: int) -> tuple[str, ...]:
    levels = [_level(grid, box, place, is_last=place == row_count - 1) for place in range(row_count)]
    names = []
    for column in range(box.width):
        parts: list[str] = []
        for level in levels:
            if level[column] and level[column] not in parts[-1:]:
                parts.append(level[column])
        names.append(_join(parts)[:MAX_NAME_LENGTH])
    return tuple(names)


def _level(grid: Grid, box: Box, place: int, *, is_last: bool) -> list[str]:
    """Return one row of the header with the names of groups written into each column they span."""
    row = box.top + place
    names = [shown(cell) for cell in grid.cells(row, box)]
    spans = _spans(grid, box, place)
    for start, end in spans:
        names[start:end] = [names[start]] * (end - start)
    if not spans and not is_last:
        below = grid.cells(row + 1, box)
        for column in range(1, box.width):
            if not names[column] and not is_blank(below[column]):
                names[column] = names[column - 1]
    return names


def _join(parts: list[str]) -> str:
    """Join the levels of a name with ` / `, and a unit that has a row of its own with a space."""
    if len(parts) > 1 and unit_alone(parts[-1]):
        last = parts[-1] if parts[-1][0] in "([" else f"({parts[-1]})"
        return f"{' / '.join(parts[:-1])} {last}"
    return " / ".join(parts)
