"""The table part of a tool's result: the files behind the codes, the rows with their codes, and the counts."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from evidentia.contracts.tables import SOURCE_COLUMN
from evidentia.text.marks import FILE_TABLE, TABLE_END

if TYPE_CHECKING:
    from collections.abc import Mapping

_BAR: Final = re.compile(r"(?<!\\)\|")
_CODE: Final = re.compile(r"F(\d{1,6})S(\d{1,6})R(\d{1,9})")
_FILE_CODE: Final = re.compile(r"F\d{1,6}")
_RULE: Final = re.compile(r"[\s|:-]*+")
_COUNTS: Final = re.compile(r"^total=(\d{1,12}) displayed=(\d{1,12}) omitted=(\d{1,12})[ \t]*+$", re.MULTILINE)
_TOLD: Final = re.compile(r"^\[EXTRA_INSTRUCTION\][^\n]*?(\d{1,12}) in total, (\d{1,12}) displayed, (\d{1,12}) omitted", re.MULTILINE)
_FILE_COLUMNS: Final = 3


class SourceCode(NamedTuple):
    """A row of a sheet of a file, as its code names it; all from 1."""

    file: int
    sheet: int
    row: int


class TableRow(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A row of a result: the codes of the rows it came from, and its cells."""

    codes: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()

    @cached_property
    def places(self) -> tuple[SourceCode, ...]:
        """Return what the codes name."""
        return tuple(code for text in self.codes if (code := read_code(text)) is not None)


class TableText(NamedTuple):
    """What the table part of a result says."""

    files: Mapping[str, tuple[str, str]] = {}
    columns: tuple[str, ...] = ()
    rows: tuple[TableRow, ...] = ()
    total: int | None = None
    displayed: int | None = None
    omitted: int | None = None


def read_code(text: str) -> SourceCode | None:
    """Return what a code such as `F1S2R34` names; None for anything else."""
    found = _CODE.fullmatch(text)
    return SourceCode(int(found[1]), int(found[2]), int(found[3])) if found else None


def read_table(text: str, begin: int) -> TableText:
    """Return the table of a result whose rows begin after the line at `begin`."""
    end = text.rfind(TABLE_END)
    end = end if end > begin else len(text)
    lines = [line for line in text[begin:end].split("\n")[1:] if line.lstrip().startswith("|")]
    columns = _cells(lines[0]) if lines else ()
    counts = _COUNTS.search(text, end) or _TOLD.search(text, 0, begin)
    total, displayed, omitted = (int(count) for count in counts.groups()) if counts else (None, None, None)
    place = columns.index(SOURCE_COLUMN) if SOURCE_COLUMN in columns else None
    rows = tuple(_row(_cells(line), place) for line in lines[1:] if not _RULE.fullmatch(line))
    return TableText(_files(text[:begin]), _without(columns, place), rows, total, displayed, omitted)


def _files(head: str) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for line in head.partition(FILE_TABLE)[2].split("\n"):
        cells = _cells(line)
        if len(cells) >= _FILE_COLUMNS and _FILE_CODE.fullmatch(cells[0]):
            found[cells[0]] = (cells[1], cells[2])
    return found


def _row(cells: tuple[str, ...], place: int | None) -> TableRow:
    codes = cells[place].split() if place is not None and place < len(cells) else []
    return TableRow(codes=tuple(code for code in codes if not code.startswith("+")), cells=_without(cells, place))


def _without(cells: tuple[str, ...], place: int | None) -> tuple[str, ...]:
    return cells if place is None else cells[:place] + cells[place + 1 :]


def _cells(line: str) -> tuple[str, ...]:
    bare = line.strip()
    if not bare.startswith("|"):
        return ()
    cells = _BAR.split(bare[1:])
    if cells and not cells[-1].strip():
        cells.pop()
    return tuple(cell.strip().replace("\\|", "|") for cell in cells)
