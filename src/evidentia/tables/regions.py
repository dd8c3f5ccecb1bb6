"""Where the tables of a sheet are: cut at empty rows and columns, joined again where one table merely has a gap.

Refuses to call prose a table: a block needs two columns, or one column of short values.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from evidentia.tables.grids import Box, Grid, is_blank, is_blank_row, shown
from evidentia.tables.units import unit_alone

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


DEEPEST_CUT = 8
"""A block is cut by rows and columns in turn at most this often; no real sheet needs more than four."""
TITLE_WITHIN_ROWS = 3
"""A title stands at most this many rows above its table."""
MAX_TITLE_LENGTH = 300
MAX_LISTED_LENGTH = 60
MAX_USUAL_LENGTH = 30
FEWEST_LISTED = 3
LOOK_AT_ROWS = 50
MAX_BLOCKS = 200_000
LOOK_BACK = 16
"""A piece is joined with one of the last few pieces only, so that a sheet of many pieces takes no longer than its length."""
_NOTE_STARTS = ("*", "†", "‡", "source", "quelle", "note", "notes", "anmerkung", "hinweis", "footnote", "¹", "²", "(")


class Region(msgspec.Struct, frozen=True, kw_only=True):
    """The rectangle of one table, header and totals included, and what stands above it."""

    box: Box
    title: str = ""


def find_regions(grid: Grid) -> tuple[list[Region], bool]:
    """Return the tables of a sheet, from top to bottom and then from left to right, and whether some were left out.

    1. Cut the sheet at empty rows and columns.
    2. Join blocks that only a gap divides.
    3. Cut where a header of another width follows without a gap.
    4. Take titles from above and notes from below.
    """
    found = list(islice(_blocks(grid), MAX_BLOCKS + 1))
    joined = _joined(grid, sorted(found[:MAX_BLOCKS]))
    blocks = [part for block in joined for part in _shapes(grid, block)]
    regions: list[Region] = []
    titles: list[Box] = []
    for block in blocks:
        if _is_caption(grid, block):
            titles = [*titles[-LOOK_BACK:], block]
            continue
        box, inner = _without_captions(grid, block)
        if box is None or not _is_table(grid, box):
            continue
        above = [title for title in titles if _stands_above(title, block)]
        outer = " ".join(_first_text(grid, row, title) for title in above for row in range(title.top, title.bottom))
        titles = [title for title in titles if title not in above]
        regions.append(Region(box=box, title=f"{outer} {inner}".strip()[:MAX_TITLE_LENGTH]))
    return regions, len(found) > MAX_BLOCKS


def _blocks(grid: Grid) -> Iterator[Box]:
    waiting = [(box, 0) for box in [grid.whole] if grid.rows]
    while waiting:
        box, depth = waiting.pop()
        rows = _row_runs(grid, box)
        parts = [Box(top, box.left, bottom, box.right) for top, bottom in rows]
        if len(parts) == 1 or depth % 2:
            parts = [Box(part.top, left, part.bottom, right) for part in parts for left, right in _column_runs(grid, part)]
        if parts == [box] or (parts and depth >= DEEPEST_CUT):
            yield from parts
            continue
        waiting.extend((part, depth + 1) for part in reversed(parts))


def _row_runs(grid: Grid, box: Box) -> list[tuple[int, int]]:
    is_whole = box.left == 0 and box.right == len(grid.rows[0])
    if is_whole:
        return _runs([not is_blank_row(row) for row in grid.rows[box.top : box.bottom]], box.top)
    return _runs([not is_blank_row(row[box.left : box.right]) for row in grid.rows[box.top : box.bottom]], box.top)


def _column_runs(grid: Grid, box: Box) -> list[tuple[int, int]]:
    used = [False] * box.width
    for row in grid.rows[box.top : box.bottom]:
        if all(used):
            break
        for place, is_used in enumerate(used):
            if not is_used and not is_blank(row[box.left + place]):
                used[place] = True
    for number in range(box.top, min(box.bottom, box.top + MAX_HEADER_ROWS)):
        for left, right in grid.spans.get(number, ()):
            if right - left < box.width:
                for column in range(max(left, box.left), min(right, box.right)):
                    used[column - box.left] = True
    return _runs(used, box.left)


def _runs(used: Sequence[bool], offset: int) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    start = -1
    for place, is_used in enumerate(used):
        if is_used and start < 0:
            start = place
        elif not is_used and start >= 0:
            runs.append((start + offset, place + offset))
            start = -1
    if start >= 0:
        runs.append((start + offset, len(used) + offset))
    return runs


def _joined(grid: Grid, blocks: list[Box]) -> list[Box]:
    joined: list[Box] = []
    for block in blocks:
        other = next(
            (
                place
                for place in reversed(range(max(0, len(joined) - LOOK_BACK), len(joined)))
                if _belong_together(grid, joined[place], block)
            ),
            None,
        )
        if other is None:
            joined.append(block)
        else:
            old = joined[other]
            joined[other] = Box(
                min(old.top, block.top), min(old.left, block.left), max(old.bottom, block.bottom), max(old.right, block.right)
            )
    return joined


def _belong_together(grid: Grid, upper: Box, lower: Box) -> bool:
    """Whether a gap of one row or one column divides two pieces of one table."""
    if upper.left <= lower.left and lower.right <= upper.right and lower.top <= upper.bottom + 1:
        if lower.top < upper.bottom:
            return True
        if upper.width == 1 or _is_caption(grid, upper) or _is_caption(grid, lower):
            return False
        return not _starts_a_table(grid, lower) or (not grid.has_layout and _holds_words_only(grid, lower))
    is_beside = (upper.top, upper.bottom) == (lower.top, lower.bottom) and lower.left - upper.right == 1
    return is_beside and 1 in (upper.width, lower.width) and upper.height > 1


def _holds_words_only(grid: Grid, box: Box) -> bool:
    """Whether no row of a piece differs from one that names columns, so that nothing tells a header from a row."""
    return all(is_header_row(grid.cells(row, box)) for row in range(box.top, min(box.bottom, box.top + LOOK_AT_ROWS)))


def _starts_a_table(grid: Grid, box: Box) -> bool:
    """Whether the first row, or the one below a line of text, names columns."""
    row = box.top
    while row < box.bottom - 1 and _is_lone_text(grid.cells(row, box)):
        row += 1
    return is_header_row(grid.cells(row, box))


def _shapes(grid: Grid, box: Box) -> list[Box]:
    """Return the parts of a block whose first or last column begins or ends at a row that names columns."""
    cuts = [box.top]
    for edge in sorted({box.left, box.right - 1}):
        was_blank = is_blank(grid.rows[box.top][edge])
        for row in range(box.top + 1, box.bottom - 1):
            blank = is_blank(grid.rows[row][edge])
            if blank != was_blank and _names_instead_of_values(grid, box, row):
                cuts.append(row)
            was_blank = blank
    if len(cuts) == 1:
        return [box]
    ends = sorted(set(cuts))
    return [_trimmed(grid, Box(top, box.left, bottom, box.right)) for top, bottom in zip(ends, [*ends[1:], box.bottom], strict=True)]


def _names_instead_of_values(grid: Grid, box: Box, row: int) -> bool:
    """Whether a row could be a header and has a text where the row above has a number or a date."""
    cells, above = grid.cells(row, box), grid.cells(row - 1, box)
    is_instead = any(isinstance(cell, str) and not is_blank(cell) and is_value(old) for cell, old in zip(cells, above, strict=True))
    return is_instead and is_header_row(cells) and not is_header_row(above)


def _trimmed(grid: Grid, box: Box) -> Box:
    runs = _column_runs(grid, box)
    return Box(box.top, runs[0][0], box.bottom, runs[-1][1])


def _is_caption(grid: Grid, box: Box) -> bool:
    """Whether a block is a line or a few of text, none of them with a second cell."""
    if box.height > TITLE_WITHIN_ROWS:
        return False
    return all(_is_lone_text(grid.cells(row, box)) for row in range(box.top, box.bottom))


def _is_lone_text(cells: list[object]) -> bool:
    seen = [cell for cell in cells if not is_blank(cell)]
    return len(seen) == 1 and isinstance(seen[0], str)


def _stands_above(title: Box, block: Box) -> bool:
    return 0 <= block.top - title.bottom < TITLE_WITHIN_ROWS and title.left < block.right and title.right > block.left


def _without_captions(grid: Grid, box: Box) -> tuple[Box | None, str]:
    """Return the block without the lines of text at its head and foot, and the text of those at its head."""
    if box.width == 1:
        return box, ""
    top, bottom = box.top, box.bottom
    while top < bottom and _is_title_row(grid, top, box):
        top += 1
    while bottom > top and _is_note_row(grid, bottom - 1, box):
        bottom -= 1
    title = " ".join(_first_text(grid, row, box) for row in range(box.top, top))
    return (Box(top, box.left, bottom, box.right) if bottom > top else None), title


def _is_title_row(grid: Grid, row: int, box: Box) -> bool:
    """Whether a row at the head holds one text: in the first column, or merged over the whole width."""
    cells = grid.cells(row, box)
    if not _is_lone_text(cells):
        return False
    return not is_blank(cells[0])


def _is_note_row(grid: Grid, row: int, box: Box) -> bool:
    cells = grid.cells(row, box)
    if is_blank_row(cells):
        return True
    if not _is_lone_text(cells) or is_blank(cells[0]):
        return False
    text = shown(cells[0])
    return len(text) > MAX_LISTED_LENGTH or text.lower().startswith(_NOTE_STARTS)


def _first_text(grid: Grid, row: int, box: Box) -> str:
    return next((shown(cell) for cell in grid.cells(row, box) if not is_blank(cell)), "")


def _is_table(grid: Grid, box: Box) -> bool:
    if box.height < 2:  # noqa: PLR2004  # a header alone, or one record alone, is no table
        return False
    rows = range(box.top, min(box.bottom, box.top + LOOK_AT_ROWS))
    if box.width > 1:
        return any(sum(not is_blank(cell) for cell in grid.cells(row, box)) > 1 for row in rows) and not _is_prose(grid, box, rows)
    return _is_list([grid.rows[row][box.left] for row in rows])


def _is_prose(grid: Grid, box: Box, rows: range) -> bool:
    """Whether the first row and most others end like sentences: text whose commas were taken for dividing signs."""
    endings = [_ends_a_sentence(grid.cells(row, box)) for row in rows]
    return endings[0] and sum(endings) * 2 > len(endings)


def _ends_a_sentence(cells: list[object]) -> bool:
    seen = [cell for cell in cells if not is_blank(cell)]
    return bool(seen) and isinstance(seen[-1], str) and " " in seen[-1].strip() and seen[-1].rstrip().endswith((".", "!", "?"))


def _is_list(cells: list[object]) -> bool:
    """Whether one column is a list of values and not prose."""
    values = [cell for cell in cells if not is_blank(cell)]
    if len(values) <= FEWEST_LISTED:
        return False
    texts = [shown(cell) for cell in values if isinstance(cell, str)]
    if any(len(text) > MAX_LISTED_LENGTH or text.endswith((".", ":", "?", "!", ";")) for text in texts):
        return False
    return sum(map(len, texts)) <= MAX_USUAL_LENGTH * len(values)


# --- headers ---
# Which rows at the head of a table name its columns, and what the names are; refuses to take a row of values for names.

MAX_HEADER_ROWS = 6
HEADER_ROWS_LOOKED_AT = 200
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
    body = [grid.cells(row, box) for row in range(box.top + 1, min(box.bottom, box.top + HEADER_ROWS_LOOKED_AT))]
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
