"""The table engine: tables with their cells become a database in memory, and one guarded statement runs over it.

Databases that were made are kept for the next question about the same tables; nothing of them is ever written to disk.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from typing import TYPE_CHECKING, Final, Protocol

from evidentia.contracts.errors import StatementRefusedError
from evidentia.contracts.ports import TableEngine
from evidentia.contracts.tables import SOURCE_COLUMN, CellValue, ColumnKind, OpenTable, TableColumn, TableLimits, TableRows
from evidentia.foundation.lru import LruCache

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

    from evidentia.contracts.ids import DocumentId


MAX_KEPT: Final = 8
_AFFINITIES: Final = {ColumnKind.INTEGER: "INTEGER", ColumnKind.NUMBER: "NUMERIC", ColumnKind.BOOLEAN: "INTEGER"}
"""What a column prefers to hold; everything else, dates too, is text."""


class SqliteTables(TableEngine):
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


# --- sandbox ---
# A SQLite connection that can only read the tables it was given, for a while, and no more than it may.
#
# The guard has read the statement before. These walls hold also where SQLite understands it otherwise: an authorizer that knows nothing
# but reading, limits on everything that can grow, and a count of the machine's steps.

_STEPS_BETWEEN_LOOKS: Final = 10_000
_NS_PER_MS: Final = 1_000_000
_LIMITS: Final = {
    sqlite3.SQLITE_LIMIT_LENGTH: 10_000_000,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 2_000,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 20,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 250_000,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 32,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1_000,
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 1_000,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_OPERATORS: Final = frozenset({"glob", "like"})
"""What SQLite calls functions although a statement writes them as operators."""


class Guard(Protocol):
    """Reads a statement before it runs."""

    def __call__(self, statement: str, *, tables: Collection[str], as_of: datetime | None) -> CheckedStatement:
        """Return the statement to run, or raise StatementRefusedError."""
        ...


class CheckedStatement(Protocol):
    """A statement that may run."""

    @property
    def statement(self) -> str:
        """Return its text."""
        ...

    @property
    def own(self) -> Collection[str]:
        """Return the names that it gives to queries of its own, in lower case."""
        ...


class WalledConnection:
    """Runs guarded statements on one connection. Not thread safe; the caller holds a lock."""

    def __init__(self, connection: sqlite3.Connection, *, tables: Collection[str], guard: Guard, functions: Collection[str]) -> None:
        self._connection = connection
        self._guard = guard
        self._functions = frozenset(functions) | _OPERATORS
        self._tables = {name.lower() for name in tables}
        self._own: Collection[str] = ()
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        for limit, most in _LIMITS.items():
            connection.setlimit(limit, most)
        connection.set_authorizer(self._authorise)

    def run(self, statement: str, parameters: Sequence[CellValue], *, limits: TableLimits, as_of: datetime | None = None) -> TableRows:
        """Return the rows up to the limits and the count of all, or raise StatementRefusedError."""
        checked = self._guard(statement, tables=self._tables, as_of=as_of)
        watch = _Watch(limits)
        self._own = checked.own
        self._connection.set_progress_handler(watch.look, _STEPS_BETWEEN_LOOKS)
        try:
            return self._fetched(checked.statement, parameters, limits=limits, watch=watch)
        except sqlite3.Error as error:
            raise StatementRefusedError(watch.problem or _told(error)) from error
        except (OverflowError, UnicodeEncodeError) as error:
            raise StatementRefusedError("a parameter is a number or a text that the database cannot hold") from error
        finally:
            self._connection.set_progress_handler(None, 0)

    def close(self) -> None:
        """Give the connection back."""
        self._connection.set_authorizer(None)
        self._connection.close()

    def _fetched(self, statement: str, parameters: Sequence[CellValue], *, limits: TableLimits, watch: _Watch) -> TableRows:
        cursor = self._connection.execute(statement, tuple(parameters))
        columns = tuple(each[0] for each in cursor.description or ())
        rows: list[tuple[CellValue, ...]] = []
        total = size = 0
        is_exact = True
        try:
            for row in cursor:
                total += 1
                size += sum(len(str(value)) for value in row) if len(rows) < limits.rows else 0
                if len(rows) < limits.rows and size <= limits.bytes:
                    rows.append(tuple(_plain(value) for value in row))
        except sqlite3.OperationalError:
            if not rows or not watch.problem:
                raise
            is_exact = False  # what there is to show was found; only the counting was cut short
        finally:
            cursor.close()
        return TableRows(columns=columns, rows=tuple(rows), total=total, is_total_exact=is_exact)

    def _authorise(self, action: int, first: str | None, second: str | None, database: str | None, _inside: str | None) -> int:
        """Let SQLite read the tables that were given and call functions that are known; everything else is denied."""
        if action in {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE}:
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_READ:
            name = (first or "").lower()
            is_counted = not second and name in self._own  # rows of a query of its own are counted, none of its columns is read
            is_given = name in self._tables and database in {"main", None}
            return sqlite3.SQLITE_OK if is_given or is_counted else sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_FUNCTION:
            return sqlite3.SQLITE_OK if (second or "").lower() in self._functions else sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_DENY


class _Watch:
    """Counts what a statement has cost and says when it is enough."""

    def __init__(self, limits: TableLimits) -> None:
        self._steps = limits.steps
        self._until = time.monotonic_ns() + limits.time_ms * _NS_PER_MS
        self._limits = limits
        self.problem = ""

    def look(self) -> int:
        """Return 1 to stop the statement."""
        self._steps -= _STEPS_BETWEEN_LOOKS
        if self._steps < 0:
            self.problem = f"it takes more than {self._limits.steps} steps; ask for less"
        elif time.monotonic_ns() > self._until:
            self.problem = f"it takes longer than {self._limits.time_ms} ms; ask for less"
        return 1 if self.problem else 0


def _told(error: sqlite3.Error) -> str:
    """Return what SQLite says, short and on one line; it may quote names of the statement."""
    return f"the database says: {' '.join(str(error).split())[:200]}"


def _plain(value: object) -> CellValue:
    return value.hex() if isinstance(value, bytes) else value  # type: ignore[return-value]  # SQLite knows no other types
