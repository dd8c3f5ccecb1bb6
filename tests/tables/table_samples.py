"""Small tables for planners: prices, stock, staff with days and money, departments, orders; and a way to run a plan over them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from evidentia.contracts.ids import DocumentId, Sha256, SourceId
from evidentia.contracts.tables import (
    CellValue,
    ColumnKind,
    OpenTable,
    TableCard,
    TableColumn,
    TableContent,
    TableId,
    TablePlan,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

TEXT, INTEGER, NUMBER, DATE, BOOLEAN = ColumnKind.TEXT, ColumnKind.INTEGER, ColumnKind.NUMBER, ColumnKind.DATE, ColumnKind.BOOLEAN
Shape = tuple[str, str, ColumnKind, str]


def table(
    name: str, columns: Sequence[tuple[str, ColumnKind] | tuple[str, ColumnKind, str]], rows: Sequence[Sequence[CellValue]]
) -> OpenTable:
    """Return a table whose first data row is row 2 of its sheet."""
    shapes = [
        TableColumn(
            name=column[0],
            sql_name="".join(sign if sign.isalnum() else "_" for sign in column[0].lower()),
            kind=column[1],
            unit=column[2] if len(column) > 2 else "",
            position=place,
        )
        for place, column in enumerate(columns, start=1)
    ]
    card = TableCard(
        table_id=TableId(f"doc#{name}"),
        document_id=DocumentId("doc"),
        source_id=SourceId("files"),
        file_name="company.xlsx",
        sheet_name=name,
        sql_name=name.lower().replace(" ", "_"),
        row_count=len(rows),
        columns=tuple(shapes),
        content=Sha256("0" * 64),
    )
    cells = tuple(tuple(row[place] for row in rows) for place in range(len(columns)))
    return OpenTable(card=card, content=TableContent(rows=tuple(range(2, len(rows) + 2)), columns=cells))


PRODUCTS = table(
    "Products",
    [("Product", TEXT), ("Category", TEXT), ("Price", NUMBER, "EUR"), ("Weight", NUMBER, "kg"), ("Discontinued", BOOLEAN)],
    [
        ("Desk lamp", "Lighting", 49.9, 1.2, False),
        ("Floor lamp", "Lighting", 89.0, 4.5, False),
        ("Office chair", "Seating", 199.0, 12.0, False),
        ("Stool", "Seating", 59.0, 3.1, True),
        ("Standing desk", "Desks", 549.0, 38.0, False),
        ("Desk mat", "Desks", 19.5, 0.4, True),
    ],
)
STOCK = table(
    "Inventory",
    [("Product", TEXT), ("Warehouse", TEXT), ("Quantity", INTEGER, "pcs")],
    [
        ("Desk lamp", "Hamburg", 120),
        ("Desk lamp", "Munich", 30),
        ("Floor lamp", "Hamburg", 15),
        ("Office chair", "Munich", 42),
        ("Standing desk", "Hamburg", 7),
        ("Stool", "Berlin", 0),
    ],
)
STAFF = table(
    "Employees",
    [
        ("Employee ID", INTEGER),
        ("Name", TEXT),
        ("Department ID", INTEGER),
        ("City", TEXT),
        ("Salary", NUMBER, "EUR"),
        ("Hire date", DATE),
        ("Age", INTEGER),
    ],
    [
        (1, "Ada Lovelace", 10, "London", 82000, "2019-04-01", 36),
        (2, "Alan Turing", 10, "Manchester", 91000, "2020-09-15", 41),
        (3, "Grace Hopper", 20, "New York", 99000, "2018-01-10", 58),
        (4, "Edsger Dijkstra", 20, "Eindhoven", 76000, "2021-03-05", 50),
        (5, "Barbara Liskov", 30, "New York", 99000, "2021-11-30", 47),
        (6, "Donald Knuth", 30, "London", 64000, "2022-02-14", 33),
    ],
)
DEPARTMENTS = table(
    "Departments",
    [("Department ID", INTEGER), ("Department name", TEXT), ("Budget", NUMBER, "EUR")],
    [(10, "Research", 500000), (20, "Engineering", 800000), (30, "Marketing", 300000)],
)
SALES = table(
    "Sales 2023",
    [
        ("Region", TEXT),
        ("Quarter", TEXT),
        ("Revenue (EUR)", NUMBER, "EUR"),
        ("Growth", NUMBER, "%"),
        ("Closed on", DATE),
        ("Sales rep", TEXT),
    ],
    [
        ("North", "Q1", 1000.0, 5.0, "2023-03-31", "Ann"),
        ("North", "Q2", 1200.0, 20.0, "2023-06-30", "Bob"),
        ("South", "Q1", 800.0, -2.0, "2023-03-31", "Ann"),
        ("South", "Q2", 900.0, 12.5, "2023-06-30", "Cid"),
        ("West", "Q1", None, None, "2023-03-31", "Cid"),
    ],
)
TARGETS = table("Targets", [("Region", TEXT), ("Target", NUMBER, "EUR")], [("North", 2000.0), ("South", 2000.0), ("West", 500.0)])
TRADE = (SALES, TARGETS)
CONTRACTS = table(
    "Contracts",
    [("Contract No", TEXT), ("Supplier", TEXT), ("Start date", DATE), ("End date", DATE), ("Value", NUMBER, "USD"), ("Status", TEXT)],
    [
        ("C-001", "Acme Corp", "2020-01-01", "2022-12-31", 50000.0, "expired"),
        ("C-002", "Globex", "2021-06-01", "2024-05-31", 75000.0, "active"),
        ("C-003", "Initech", "2022-03-15", "2025-03-14", 20000.0, "active"),
    ],
)
BIKES = table(
    "Prices",
    [
        ("Bike", TEXT),
        ("Kind", TEXT),
        ("Monthly price (EUR)", INTEGER, "EUR"),
        ("Deposit (EUR)", INTEGER, "EUR"),
        ("Range (km)", INTEGER, "km"),
    ],
    [
        ("City Classic", "city", 24, 80, None),
        ("Tour Electric", "electric", 68, 300, 90),
        ("Cargo Long", "cargo", 75, 350, None),
        ("Cargo Electric", "electric", 110, 500, 60),
    ],
)
RENTALS = table(
    "Rentals",
    [("Model", TEXT), ("Type", TEXT), ("Monthly price", NUMBER, "EUR"), ("Yearly price", NUMBER, "EUR")],
    [("Fold", "City bike", 19.0, 190.0), ("Long", "Cargo bike", 75.0, 750.0), ("Mini", "Cargo bike", 65.0, 650.0)],
)
TEAS = table("Prices", [("Product", TEXT), ("Price", NUMBER), ("Stock", INTEGER)], [("Tea", 4.5, 10), ("Coffee", 7.0, 3)])
COMPANY = (STAFF, DEPARTMENTS)
SHOP = (PRODUCTS, STOCK)


def run(plan: TablePlan, tables: Sequence[OpenTable]) -> tuple[list[str], list[tuple[CellValue, ...]]]:
    """Return the names of the columns and the rows of a plan; its support is run too."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for opened in tables:
            _create(connection, opened)
        if plan.support:
            assert connection.execute(plan.support, plan.parameters).description[0][0] == "__src"
        found = connection.execute(plan.statement, plan.parameters)
        return [description[0] for description in found.description], found.fetchall()


def support(plan: TablePlan, tables: Sequence[OpenTable]) -> list[str]:
    """Return the sources of the rows that took part."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for opened in tables:
            _create(connection, opened)
        return [row[0] for row in connection.execute(plan.support, plan.parameters)]


def _create(connection: sqlite3.Connection, opened: OpenTable) -> None:
    names = [_quote(name) for name in (*(column.sql_name for column in opened.card.columns), "__src")]
    connection.execute(f"CREATE TABLE {_quote(opened.card.sql_name)} ({', '.join(names)})")
    records = zip(*opened.content.columns, (f"F1S1R{row}" for row in opened.content.rows), strict=True)
    marks = ", ".join("?" for _ in names)
    connection.executemany(f"INSERT INTO {_quote(opened.card.sql_name)} VALUES ({marks})", records)


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
