"""The table engine: tables with their cells become a database in memory, and one guarded statement runs over it.

Databases that were made are kept for the next question about the same tables; nothing of them is ever written to disk.
"""

from __future__ import annotations

import sqlite3
import threading
from typing import TYPE_CHECKING, Final

from evidentia.backends.sqlite.sandbox import WalledConnection
from evidentia.contracts.errors import StatementRefusedError
from evidentia.contracts.tables import SOURCE_COLUMN, ColumnKind
from evidentia.foundation.lru import LruCache

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

    from evidentia.backends.sqlite.sandbox import Guard
    from evidentia.contracts.ids import DocumentId
    from evidentia.contracts.tables import CellValue, OpenTable, TableColumn, TableLimits, TableRows

MAX_KEPT: Final = 8
_AFFINITIES: Final = {ColumnKind.INTEGER: "INTEGER", ColumnKind.NUMBER: "NUMERIC", ColumnKind.BOOLEAN: "INTEGER"}
"""What a column prefers to hold; everything else, dates too, is text."""


class SqliteTables:
    """Runs statements over tables in memory. Thread safe."""

    def __init__(self, *, guard: Guard, functions: Collection[str]) -> None:
        self._guard = guard
        self._functions = functions
        self._lock = threading.Lock()
        self._kept: LruCache[tuple[object, ...], tuple[WalledConnection, threading.Lock]] = LruCache(MAX_KEPT)

    def run(
        self,
        statement: str,
        parameters: Sequence[CellValue],
        *,
        tables: Sequence[OpenTable],
        limits: TableLimits,
        as_of: datetime | None = None,
    ) -> TableRows:
        """Return the rows, or raise StatementRefusedError; each table also has the column `__src`."""
        connection, lock = self._connection(tables)
        with lock:
            return connection.run(statement, parameters, limits=limits, as_of=as_of)

    def close(self) -> None:
        """Give back every database."""
        with self._lock:
            kept = self._kept.items()
            self._kept.clear()
        for _, (connection, lock) in kept:
            with lock:
                connection.close()

    def _connection(self, tables: Sequence[OpenTable]) -> tuple[WalledConnection, threading.Lock]:
        key = tuple(map(_identity, tables))
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                found = (self._walled(tables), threading.Lock())
                self._kept.put(key, found)  # the one that is dropped for it is closed with its last user
            return found

    def _walled(self, tables: Sequence[OpenTable]) -> WalledConnection:
        names = [each.card.sql_name.lower() for each in tables]
        if len(set(names)) != len(names):
            raise StatementRefusedError("two tables have one name")
        database = sqlite3.connect(":memory:", check_same_thread=False)
        files = _file_numbers(tables)
        for table in tables:
            _fill(database, table, file=files[table.card.document_id])
        database.commit()
        return WalledConnection(database, tables=names, guard=self._guard, functions=self._functions)


def open_database(path: Path, *, tables: Collection[str], guard: Guard, functions: Collection[str]) -> WalledConnection:
    """Return a walled connection to a database file, opened for reading; whoever asks for it closes it."""
    database = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False)
    return WalledConnection(database, tables=tables, guard=guard, functions=functions)


def _identity(table: OpenTable) -> tuple[object, ...]:
    """Return all that a database is made from; the hash of the cells says nothing of what the columns are called."""
    card = table.card
    columns = tuple((column.sql_name, column.kind) for column in card.columns)
    return (card.sql_name, card.document_id, card.sheet, columns, card.content)


def _file_numbers(tables: Sequence[OpenTable]) -> dict[DocumentId, int]:
    """Return the number of each document, from 1 in the order of the tables."""
    return {document_id: place for place, document_id in enumerate(dict.fromkeys(each.card.document_id for each in tables), start=1)}


def _fill(database: sqlite3.Connection, table: OpenTable, *, file: int) -> None:
    card = table.card
    columns = [_declared(column) for column in card.columns] + [f"{quoted(SOURCE_COLUMN)} TEXT"]
    database.execute(f"CREATE TABLE {quoted(card.sql_name)} ({', '.join(columns)})")
    marks = ", ".join("?" * len(columns))
    statement = f"INSERT INTO {quoted(card.sql_name)} VALUES ({marks})"  # noqa: S608 - a quoted name and question marks
    database.executemany(statement, _rows(table, file=file))


def _rows(table: OpenTable, *, file: int) -> Iterator[tuple[CellValue, ...]]:
    prefix = f"F{file}S{table.card.sheet}R"
    cells = zip(*table.content.columns, strict=True) if table.content.columns else (() for _ in table.content.rows)
    return ((*row, f"{prefix}{number}") for row, number in zip(cells, table.content.rows, strict=True))


def _declared(column: TableColumn) -> str:
    return f"{quoted(column.sql_name)} {_AFFINITIES.get(column.kind, 'TEXT')}"


def quoted(name: str) -> str:
    """Return a name as SQL can hold it, whatever it is made of."""
    return '"' + name.replace('"', '""') + '"'
