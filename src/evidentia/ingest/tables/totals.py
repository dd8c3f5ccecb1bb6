"""Rows that add others up; refuses to set a row aside for its label alone unless it closes the table."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.contracts.tables import CellValue

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
