"""Tables as evidence: what a table is, what was asked of it, and the rows that answer, each with the row it came from."""

from __future__ import annotations

from typing import NewType

import msgspec

from evidentia.contracts.ids import DocumentId, Sha256, SourceId
from evidentia.contracts.vocabulary import Vocabulary

TableId = NewType("TableId", str)
CellValue = str | int | float | bool | None
"""A cell: a date, a time or a moment is text in ISO 8601; a number never NaN or infinite."""
SOURCE_COLUMN = "__src"
"""The column that says which file, sheet and row a row came from; it never reaches a user."""


def table_id_of(document_id: DocumentId, *, sheet: int, table: int) -> TableId:
    """Return the id of a table: its document, the number of its sheet and its place on it, both from 1."""
    return TableId(f"{document_id}#S{sheet}T{table}")


class ColumnKind(Vocabulary):
    """What the cells of a column are."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    DATE = "date"
    DATETIME = "datetime"
    TIME = "time"


class TableColumn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A column: its name as people read it, the name a statement uses, and what its cells are like."""

    name: str
    sql_name: str
    """Lower case letters, digits and underscores, not a number first, unique within the table."""
    kind: ColumnKind
    unit: str = ""
    """A currency, a percent sign or a unit of measure, where all cells or the header agree on one."""
    position: int = 0
    """The column of the sheet, from 1."""
    distinct: int = 0
    missing: int = 0
    samples: tuple[str, ...] = ()
    """The first few different values, as text."""


class TableCard(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of a table without its cells: enough to choose it and to plan a question."""

    table_id: TableId
    document_id: DocumentId
    source_id: SourceId
    file_name: str
    sheet: int = 1
    """From 1; a file without sheets has one."""
    sheet_name: str = ""
    title: str = ""
    """What stands above the table, where something does."""
    sql_name: str
    """The name a statement uses; unique among the tables of a document."""
    header_rows: tuple[int, ...] = ()
    """The rows of the sheet that hold the names of the columns, from 1."""
    first_row: int = 0
    last_row: int = 0
    row_count: int = 0
    total_rows: tuple[int, ...] = ()
    """Rows of the sheet that add others up; they are not among the rows."""
    columns: tuple[TableColumn, ...] = ()
    content: Sha256
    """The hash of the encoded `TableContent`."""
    notes: tuple[str, ...] = ()


class TableContent(msgspec.Struct, frozen=True, kw_only=True):
    """The cells of a table, column by column, and the row of the sheet that each row came from."""

    rows: tuple[int, ...]
    """Rows of the sheet, from 1, in order."""
    columns: tuple[tuple[CellValue, ...], ...]


class ExtractedTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table as a reader found it; the document it belongs to is not known yet."""

    sheet: int = 1
    sheet_name: str = ""
    title: str = ""
    header_rows: tuple[int, ...] = ()
    columns: tuple[TableColumn, ...]
    content: TableContent
    total_rows: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()


class OpenTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table with its cells at hand."""

    card: TableCard
    content: TableContent


class TablePlan(msgspec.Struct, frozen=True, kw_only=True):
    """A question as a statement over tables, and how each part of the question was read."""

    statement: str
    """One SELECT over the `sql_name`s of the tables, in the dialect of SQLite, with `?` for each parameter."""
    parameters: tuple[CellValue, ...] = ()
    tables: tuple[TableId, ...] = ()
    support: str = ""
    """A statement with the same parameters that returns the `__src` of every row that took part; for sums, counts and the like."""
    reading: tuple[str, ...] = ()
    confidence: float = 1.0
    """From 0 to 1: how sure the planner is of its reading."""
    planner: str = ""


class PlanDeclined(msgspec.Struct, frozen=True, kw_only=True):
    """Why a planner would rather not answer than guess."""

    reason: str
    reading: tuple[str, ...] = ()
    planner: str = ""


class TableLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much one statement may cost and return."""

    rows: int = 200
    bytes: int = 1_000_000
    time_ms: int = 2_000
    steps: int = 200_000_000
    """Instructions of the database's machine."""


class TableRows(msgspec.Struct, frozen=True, kw_only=True):
    """What a statement returned; `total` counts all rows, also those beyond the limit."""

    columns: tuple[str, ...]
    rows: tuple[tuple[CellValue, ...], ...]
    total: int
    is_total_exact: bool = True
    """False where counting was cut short."""


class TableAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a question about tables: rows with the rows of the sheets they came from, or why there are none."""

    question: str
    tables: tuple[TableCard, ...] = ()
    """Those that were thought to hold the answer, best first."""
    plan: TablePlan | None = None
    declined: str = ""
    """Why no statement was run, or why it failed."""
    columns: tuple[str, ...] = ()
    """Without `__src`."""
    rows: tuple[tuple[CellValue, ...], ...] = ()
    sources: tuple[tuple[str, ...], ...] = ()
    """For each row, the codes (F<file>S<sheet>R<row>) of the rows it came from; F counts `files` from 1."""
    files: tuple[tuple[DocumentId, str], ...] = ()
    """The document and the file name that each F stands for."""
    total: int = 0
    omitted: int = 0
    has_tables: bool = True
    """False when the caller can see no spreadsheet at all."""
