"""The guard of statements: what reads the given tables passes, everything else is named and refused."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.contracts.errors import StatementRefusedError
from evidentia.sources.sql_guard import DEEPEST, MAX_STATEMENT_LENGTH, check_statement
from hostile_statements import HOSTILE, varied

TABLES: Final = ("prices", "stock")
WORDS: Final = (
    "SELECT",
    "*",
    "FROM",
    "prices",
    "secrets",
    "UNION",
    "(",
    ")",
    ",",
    ";",
    "--",
    "'",
    '"',
    "WHERE",
    "1",
    "=",
    "AS",
    "WITH",
    "x",
)
NOON: Final = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM prices",
        "SELECT product, price FROM prices WHERE price > ? ORDER BY price DESC LIMIT 5",
        "SELECT p.product, sum(s.pieces) FROM prices AS p LEFT JOIN stock s ON s.product = p.product GROUP BY 1 HAVING sum(s.pieces) > 3",
        "WITH cheap AS (SELECT * FROM prices WHERE price < 5) SELECT count(*) FROM cheap",
        "WITH cheap (name, cost) AS (SELECT product, price FROM prices), dear AS (SELECT 1) SELECT name FROM cheap",
        "SELECT product FROM prices UNION SELECT product FROM stock EXCEPT SELECT product FROM prices WHERE price IS NULL",
        "SELECT row_number() OVER (PARTITION BY product ORDER BY price) FROM prices",
        "SELECT CASE WHEN price BETWEEN 1 AND 2 THEN 'low' ELSE upper(product) END FROM prices",
        "SELECT strftime('%Y', product) FROM prices WHERE product LIKE '%tea%' ESCAPE '\\'",
        "SELECT 'now; DROP TABLE prices --' FROM prices",
        'SELECT "price" FROM "prices" WHERE "product" = \'load_extension(1)\'',
        "SELECT product FROM prices;",
        "SELECT DISTINCT product FROM prices WHERE product IN (SELECT product FROM stock WHERE NOT (pieces = 0))",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT i, product FROM n, prices",
    ],
)
def test_a_read_of_the_given_tables_passes(statement: str) -> None:
    assert set(check_statement(statement, tables=TABLES).tables) <= set(TABLES)


@pytest.mark.parametrize("statement", HOSTILE)
def test_what_is_no_read_of_them_is_refused_in_any_dress(statement: str) -> None:
    for dressed in varied(statement):
        with pytest.raises(StatementRefusedError):
            check_statement(dressed, tables=TABLES)


def test_there_are_enough_hostile_statements() -> None:
    assert 200 <= len(set(HOSTILE))
    assert 1_100 <= len({dressed for statement in HOSTILE for dressed in varied(statement)})


def test_the_tables_that_are_read_are_named_once_and_in_order() -> None:
    checked = check_statement("SELECT * FROM STOCK, prices AS p, Prices", tables=TABLES)

    assert ("prices", "stock") == checked.tables


@pytest.mark.parametrize(
    ("asked", "timed"),
    [
        ("SELECT date('now', '-1 day') FROM prices", "SELECT date('2026-03-01 12:30:00', '-1 day') FROM prices"),
        ("SELECT julianday( 'NOW' ) FROM prices", "SELECT julianday( '2026-03-01 12:30:00' ) FROM prices"),
        ("SELECT strftime('%Y', 'now') FROM prices", "SELECT strftime('%Y', '2026-03-01 12:30:00') FROM prices"),
        ("SELECT CURRENT_DATE FROM prices", "SELECT '2026-03-01' FROM prices"),
        ("SELECT product FROM prices WHERE product = 'now'", "SELECT product FROM prices WHERE product = 'now'"),
    ],
)
def test_the_present_moment_is_the_one_of_the_request(asked: str, timed: str) -> None:
    assert timed == check_statement(asked, tables=TABLES, as_of=NOON).statement


def test_without_a_moment_the_present_one_is_refused() -> None:
    with pytest.raises(StatementRefusedError, match="present moment"):
        check_statement("SELECT date('now') FROM prices", tables=TABLES)


def test_what_is_too_long_too_deep_or_too_much_is_refused() -> None:
    opened, closed = "(" * (DEEPEST + 1), ")" * (DEEPEST + 1)
    deep = f"SELECT product FROM prices WHERE {opened}1{closed}"
    many = f"SELECT product FROM prices WHERE price IN ({', '.join('1' for _ in range(3_000))})"
    long = f"SELECT product FROM prices{' ' * MAX_STATEMENT_LENGTH}"
    for statement in (long, deep, many):
        with pytest.raises(StatementRefusedError):
            check_statement(statement, tables=TABLES)


@given(st.text(max_size=200))
def test_any_text_is_refused_or_reads_a_given_table(text: str) -> None:
    """Whatever comes, the guard answers with its own error and nothing else."""
    try:
        checked = check_statement(text, tables=TABLES)
    except StatementRefusedError:
        return
    assert checked.tables


@given(st.lists(st.sampled_from(WORDS), max_size=25))
def test_no_mix_of_words_reads_another_table(words: list[str]) -> None:
    try:
        checked = check_statement(" ".join(words), tables=TABLES)
    except StatementRefusedError:
        return
    assert set(checked.tables) <= set(TABLES)
