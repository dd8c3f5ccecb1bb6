"""Tables in text: which sign divides the cells, and the records with their numbers; refuses to change the text itself.

The row of a record is its number in the file from 1, as a spreadsheet program shows it: a quoted line break is part of its
record, and an empty line is an empty record.
"""

from __future__ import annotations

import contextlib
import csv
import io
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Literal

import msgspec

from evidentia.ingest.readers.file_types import ending_of
from evidentia.ingest.reasons import NoteReason
from evidentia.tables.extraction import tables_of
from evidentia.tables.grids import MAX_TABLES, Grid, grid_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evidentia.contracts.tables import ExtractedTable

NOTE_CODE = NoteReason.TABLES_LEFT_OUT.value
LOOK_AT_CHARS = 64 * 1024
LOOK_AT_RECORDS = 200
_SIGNS = (",", ";", "\t", "|")
_BY_ENDING = {".tsv": "\t", ".tab": "\t", ".psv": "|"}
_ANNOUNCED = "sep="


class _Dialect(msgspec.Struct, frozen=True, kw_only=True):
    sign: str
    has_spaces: bool = False
    """Whether a space follows each sign and belongs to it."""


def delimited_tables(text: str, *, name: str) -> tuple[tuple[ExtractedTable, ...], tuple[str, ...]]:
    """Return the tables of a text with divided cells, and notes about the file."""
    dialect = _dialect(text, name=name)
    try:
        grid = _grid(text, dialect)
    except csv.Error:
        return (), (f"{NOTE_CODE}: has a cell too long for a table; only its text is read",)
    decimal = "," if dialect.sign == ";" else ""
    tables = tables_of(msgspec.structs.replace(grid, decimal=decimal, has_layout=False), most=MAX_TABLES)
    return tuple(tables), ()


def _grid(text: str, dialect: _Dialect) -> Grid:
    """Return the records; when a quote is never closed, which makes the rest of the file one cell, quotes are read as text."""
    if text.count('"') % 2 == 0:
        return grid_of(_records(text, dialect))
    with contextlib.suppress(csv.Error):
        grid = grid_of(_records(text, dialect))
        if not any(isinstance(cell, str) and "\n" in cell for row in grid.rows[-1:] for cell in row):
            return grid
    grid = grid_of(_records(text, dialect, quoting=csv.QUOTE_NONE))
    return msgspec.structs.replace(grid, notes=(*grid.notes, "a quote is never closed, so quotes are read as text"))


def _records(text: str, dialect: _Dialect, *, quoting: Literal[0, 3] = csv.QUOTE_MINIMAL) -> Iterator[list[str]]:
    stream = io.StringIO(text, newline="")
    records = csv.reader(stream, delimiter=dialect.sign, skipinitialspace=dialect.has_spaces, quoting=quoting)
    for number, record in enumerate(records):
        is_announcement = number == 0 and _announced(text) is not None
        yield [] if is_announcement else record


def _dialect(text: str, *, name: str) -> _Dialect:
    """Return how the cells are divided: as the file says, as its name says, or as most records agree."""
    announced = _announced(text)
    sample = text[:LOOK_AT_CHARS]
    if len(text) > LOOK_AT_CHARS:
        sample = sample[: sample.rfind("\n") + 1] or sample
    usual = _BY_ENDING.get(ending_of(name), "")
    if announced is not None:
        sign = announced
    elif usual and usual in sample:
        sign = usual
    else:
        sign = max(_SIGNS, key=lambda one: (*_agreement(sample, one), -_SIGNS.index(one)))
    return _Dialect(sign=sign, has_spaces=f"{sign} " in sample and sample.count(f"{sign} ") == sample.count(sign))


def _announced(text: str) -> str | None:
    """Return the sign that the first line names, as in `sep=;`."""
    line = text[:20].partition("\n")[0].strip("\r\"' ")
    is_announcement = line.lower().startswith(_ANNOUNCED) and len(line) == len(_ANNOUNCED) + 1
    return line[-1] if is_announcement and line[-1] in _SIGNS else None


def _agreement(sample: str, sign: str) -> tuple[int, int]:
    """Return how well a sign divides the sample: the share of records with the usual count of cells, and that count."""
    try:
        records = csv.reader(io.StringIO(sample, newline=""), delimiter=sign)
        counts = Counter(len(record) for record in islice(records, LOOK_AT_RECORDS) if record)
    except csv.Error:
        return 0, 0
    many = {count: times for count, times in counts.items() if count > 1}
    if not many:
        return 0, 0
    usual, times = max(many.items(), key=lambda one: (one[1], one[0]))
    return times * 10 // counts.total(), usual
