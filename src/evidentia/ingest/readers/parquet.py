"""Parquet files: one table with the kinds its schema states, and its rows as text for search; refuses nested values beyond their JSON.

Needs pyarrow, which comes with the extra `tables`; a row is its number in the file from 1.
"""

from __future__ import annotations

import importlib.metadata
import math
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from evidentia.contracts.errors import DocumentUnreadableError, MissingExtraError
from evidentia.contracts.ids import SemanticVersion, ToolId
from evidentia.contracts.layout import ExtractedText
from evidentia.contracts.ports import DocumentReader
from evidentia.contracts.tables import CellValue, ColumnKind, ExtractedTable, TableColumn, TableContent
from evidentia.ingest.readers.limits import ReadLimits
from evidentia.ingest.reasons import SkipReason
from evidentia.tables.column_types import ReadColumn
from evidentia.tables.grids import MAX_CELLS, MAX_COLUMNS, cut_notes, shown
from evidentia.tables.sql_names import column_sql_names
from evidentia.tables.units import split_unit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TOOL_ID = ToolId("pyarrow")
MEDIA_TYPE = "application/vnd.apache.parquet"
MAX_SHOWN_CHARS = 2_000_000
"""Characters of rows that become text for search; all rows are in the table."""
MAX_INTEGER = 2**63
_BATCH = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetReader(DocumentReader):
    """Reads .parquet files."""

    limits: ReadLimits = field(default_factory=ReadLimits)

    def read(self, content: bytes, *, name: str) -> ExtractedText:  # noqa: ARG002  # the port's signature
        """Return the rows as lines of cells joined by ` | `, and the table."""
        file = _opened(content)
        self._check_size(file, packed=len(content))
        names = [str(one) for one in file.schema_arrow.names[:MAX_COLUMNS]]
        rows_wanted = min(file.metadata.num_rows, MAX_CELLS // max(1, len(names)))
        columns = _columns(file, len(names), rows=rows_wanted)
        notes = cut_notes(rows=file.metadata.num_rows - rows_wanted, columns=len(file.schema_arrow.names) - len(names))
        text, shown_rows = _text(names, [column.values for column in columns], most=min(MAX_SHOWN_CHARS, self.limits.max_text_chars))
        if shown_rows < rows_wanted:
            notes = (*notes, f"the text for search holds the first {shown_rows} of {rows_wanted} rows")
        return ExtractedText(
            text=text,
            media_type=MEDIA_TYPE,
            method="parquet_rows",
            tool_id=TOOL_ID,
            tool_version=SemanticVersion(importlib.metadata.version("pyarrow")),
            tables=(_table(names, columns, notes=notes),) if rows_wanted else (),
        )

    def _check_size(self, file: Any, *, packed: int) -> None:  # noqa: ANN401  # pyarrow has no types
        metadata = file.metadata
        unpacked = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
        if unpacked > self.limits.max_unpacked_bytes:
            problem = f"would unfold to {unpacked} bytes, more than the {self.limits.max_unpacked_bytes} allowed; it is not unpacked"
            raise DocumentUnreadableError(SkipReason.ARCHIVE_BOMB, problem)
        if metadata.num_rows > packed * self.limits.max_ratio * 8:
            problem = f"claims {metadata.num_rows} rows in {packed} bytes; it is not unpacked"
            raise DocumentUnreadableError(SkipReason.ARCHIVE_BOMB, problem)


def _opened(content: bytes) -> Any:  # noqa: ANN401  # pyarrow has no types
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        missing = MissingExtraError("tables", needed_for="a Parquet file")
        raise DocumentUnreadableError(SkipReason.UNSUPPORTED_TYPE, f"is not read: {missing}") from error
    return pq.ParquetFile(pa.BufferReader(content))


def _columns(file: Any, width: int, *, rows: int) -> list[ReadColumn]:  # noqa: ANN401  # pyarrow has no types
    schema = file.schema_arrow
    gathered: list[list[CellValue]] = [[] for _ in range(width)]
    left = rows
    for batch in file.iter_batches(batch_size=_BATCH, use_threads=False):
        taken = batch.slice(0, left)
        for place in range(width):
            gathered[place].extend(_values(taken.column(place), schema.field(place).type))
        left -= taken.num_rows
        if left <= 0:
            break
    return [_column(values, *_kind(schema.field(place).type)) for place, values in enumerate(gathered)]


def _column(values: list[CellValue], kind: ColumnKind, unit: str) -> ReadColumn:
    """Return a column; integers too long for a database become numbers, and what is no number is missing."""
    if kind is ColumnKind.INTEGER and any(type(value) is int and abs(value) >= MAX_INTEGER for value in values):
        kind, values = ColumnKind.NUMBER, [float(value) if type(value) is int else value for value in values]
    return ReadColumn(kind=kind, values=values, unit=unit, missing=values.count(None))


def _kind(arrow: Any) -> tuple[ColumnKind, str]:  # noqa: ANN401  # pyarrow has no types
    import pyarrow.types as kinds

    if kinds.is_dictionary(arrow):
        return _kind(arrow.value_type)
    checks = (
        (kinds.is_boolean, ColumnKind.BOOLEAN, ""),
        (kinds.is_integer, ColumnKind.INTEGER, ""),
        (kinds.is_floating, ColumnKind.NUMBER, ""),
        (kinds.is_decimal, ColumnKind.NUMBER, ""),
        (kinds.is_duration, ColumnKind.NUMBER, "s"),
        (kinds.is_date, ColumnKind.DATE, ""),
        (kinds.is_timestamp, ColumnKind.DATETIME, ""),
        (kinds.is_time, ColumnKind.TIME, ""),
    )
    return next(((kind, unit) for check, kind, unit in checks if check(arrow)), (ColumnKind.TEXT, ""))


def _values(array: Any, arrow: Any) -> Iterator[CellValue]:  # noqa: ANN401  # pyarrow has no types
    import pyarrow as pa
    import pyarrow.types as kinds

    if kinds.is_timestamp(arrow):
        array = array.cast(pa.timestamp("us", tz=arrow.tz), safe=False)
    elif kinds.is_duration(arrow):
        array = array.cast(pa.duration("us"), safe=False)
    elif kinds.is_time64(arrow):
        array = array.cast(pa.time64("us"), safe=False)
    elif kinds.is_decimal(arrow):
        array = array.cast(pa.float64(), safe=False)
    return map(_value, array.to_pylist())


def _value(value: object) -> CellValue:
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, timedelta):
        return value.total_seconds()
    return _written(value).replace("\0", "\ufffd")


def _written(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (date, datetime, time)):
        return value.isoformat()
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    return msgspec.json.encode(value, enc_hook=str).decode()


def _text(names: list[str], columns: Sequence[Sequence[CellValue]], *, most: int) -> tuple[str, int]:
    """Return the rows as lines up to a number of characters, and how many rows that is."""
    lines = [" | ".join(shown(name) for name in names)]
    left = most - len(lines[0])
    for row in zip(*columns, strict=True):
        line = " | ".join(shown(value) for value in row).rstrip(" |")
        left -= len(line) + 1
        if left < 0:
            break
        lines.append(line)
    return "\n".join(lines) + "\n", len(lines) - 1


def _table(names: list[str], columns: list[ReadColumn], *, notes: tuple[str, ...]) -> ExtractedTable:
    parts = [split_unit(name) for name in names]
    sql_names = column_sql_names(bare for bare, _ in parts)
    is_number = [column.kind in {ColumnKind.INTEGER, ColumnKind.NUMBER} for column in columns]
    described = tuple(
        TableColumn(
            name=names[place] or f"column_{place + 1}",
            sql_name=sql_names[place],
            kind=column.kind,
            unit=(column.unit or parts[place][1]) if is_number[place] else "",
            position=place + 1,
            distinct=column.distinct(),
            missing=column.missing,
            samples=column.samples(),
        )
        for place, column in enumerate(columns)
    )
    rows = tuple(range(1, len(columns[0].values) + 1)) if columns else ()
    return ExtractedTable(
        columns=described, content=TableContent(rows=rows, columns=tuple(tuple(one.values) for one in columns)), notes=notes
    )
