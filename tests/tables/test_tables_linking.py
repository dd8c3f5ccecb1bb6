"""What words of questions are linked to: names of tables and columns, values of cells, numbers, days, and ways between tables."""

from __future__ import annotations

import pytest
from table_samples import BIKES, COMPANY, DATE, INTEGER, RENTALS, SHOP, STAFF, TEXT, table

from evidentia.tables.entity_linking import Names, Piece, link, plain
from evidentia.tables.joins import AmbiguousWayError, JoinGraph
from evidentia.tables.phrases import Amount, Days, read_amount, read_days
from evidentia.tables.schema import Schema

BOTH = Schema([*COMPANY, *SHOP])


def named(words: str) -> list[str]:
    found = Names(BOTH).find(words.split())
    return [
        f"{name.table.sql_name}.{name.column.sql_name}" if name.column else name.table.sql_name
        for name in found
        if name.cost == found[0].cost
    ]


def pieces(question: str) -> dict[str, Piece]:
    return {piece.text: piece for piece in link(question, BOTH)}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("salaries", ["employees.salary"]),
        ("hire date", ["employees.hire_date"]),
        ("hired", ["employees.hire_date"]),
        ("date of hire", ["employees.hire_date"]),
        ("staff", ["employees"]),
        ("department", ["departments"]),
        ("department name", ["departments.department_name"]),
        ("employee name", ["employees.name"]),
        ("costs", ["products.price"]),
        ("stock", ["inventory", "inventory.quantity"]),
        ("warehouses", ["inventory.warehouse"]),
        ("margin", []),
    ],
)
def test_names_are_found_by_stems_parts_and_synonyms(words: str, expected: list[str]) -> None:
    assert expected == named(words)


@pytest.mark.parametrize(
    ("word", "expected"),
    [("price", ["monthly_price__eur_"]), ("eur", []), ("km", []), ("deposit", ["deposit__eur_"]), ("monthly", [])],
)
def test_the_last_word_of_a_measure_names_it_and_its_unit_does_not(word: str, expected: list[str]) -> None:
    found = Names(Schema([BIKES])).find([word])

    assert expected == [name.column.sql_name for name in found if name.column is not None]


def test_the_last_word_of_two_measures_names_neither() -> None:
    assert () == Names(Schema([RENTALS])).find(["price"])


def test_values_are_found_whatever_their_case() -> None:
    found = pieces("the budget of ENGINEERING")["engineering"].values

    assert [("departments", ("Engineering",))] == [(value.column.table.sql_name, value.stored) for value in found]


def test_a_part_of_a_value_is_enough_for_a_name() -> None:
    found = pieces("the salary of Lovelace")["lovelace"].values

    assert [("Ada Lovelace",)] == [value.stored for value in found]


def test_a_near_spelling_is_linked_when_only_one_value_is_near() -> None:
    found = pieces("the salary of Barbara Liskow")["barbara liskow"].values

    assert [("Barbara Liskov",)] == [value.stored for value in found]
    assert pieces("the salary of Barbra Xiskow")["barbra"].is_word


def test_the_longest_reading_wins() -> None:
    found = pieces("the price of the desk lamp")

    assert found["desk lamp"].values
    assert "desk" not in found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("100", Amount(100, "", 1)),
        ("1,250.50", Amount(1250.5, "", 1)),
        ("$40", Amount(40, "usd", 1)),
        ("12%", Amount(12, "%", 1)),
        ("3k", Amount(3000, "", 1)),
        ("2 million", Amount(2_000_000, "", 2)),
        ("three", Amount(3, "", 1)),
        ("1,25", None),
        ("12abc", None),
        ("9" * 40, None),
        ("", None),
    ],
)
def test_amounts_are_read_whole_or_not_at_all(text: str, expected: Amount | None) -> None:
    assert expected == read_amount(text.split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2021-03-05", Days("2021-03-05", "2021-03-05T99", 1)),
        ("2021-12", Days("2021-12-01", "2022-01-01", 1)),
        ("march 2021", Days("2021-03-01", "2021-04-01", 2)),
        ("5th march 2021", Days("2021-03-05", "2021-03-05T99", 3)),
        ("march 5 2021", Days("2021-03-05", "2021-03-05T99", 3)),
        ("2021-13-01", None),
        ("2021-02-30", None),
        ("march", None),
    ],
)
def test_days_are_read_as_a_stretch(text: str, expected: Days | None) -> None:
    assert expected == read_days(text.split())


def test_tables_are_tied_by_a_shared_key() -> None:
    graph = JoinGraph(Schema(COMPANY))
    edge = graph.between(0, 1)

    assert ("department_id", "department_id") == (edge.left.sql_name, edge.right.sql_name)
    assert (0, 1) == graph.way(0, 1)


def test_tables_that_share_nothing_are_not_tied() -> None:
    graph = JoinGraph(BOTH)

    assert graph.way(0, 2) is None


def test_two_ways_between_tables_are_refused() -> None:
    airports = table("Airports", [("Airport code", TEXT), ("City", TEXT)], [("LAX", "Los Angeles"), ("JFK", "New York")])
    flights = table("Flights", [("From airport", TEXT), ("To airport", TEXT)], [("LAX", "JFK"), ("JFK", "LAX")])
    graph = JoinGraph(Schema([airports, flights]))

    with pytest.raises(AmbiguousWayError):
        graph.between(0, 1)


def test_of_tables_with_one_name_the_first_stays() -> None:
    other = table("employees", [("Name", TEXT)], [("Nobody",)])

    assert [STAFF.card.table_id] == [each.card.table_id for each in Schema([STAFF, other]).tables]


def test_a_table_knows_its_key_and_what_its_rows_are_called() -> None:
    staff = Schema([STAFF]).tables[0]

    assert staff.key is not None
    assert staff.label is not None
    assert ("employee_id", "name") == (staff.key.sql_name, staff.label.sql_name)


def test_days_are_days_only_where_a_column_holds_days() -> None:
    months = Schema([table("Visits", [("Month", TEXT), ("Year", INTEGER), ("Visitors", INTEGER)], [("March", 2021, 5)])])
    days = Schema([table("Visits", [("Visit date", DATE)], [("2021-03-01",)])])

    assert [False] == [bool(piece.days) for piece in link("March 2021", months)[:1]]
    assert [True] == [bool(piece.days) for piece in link("March 2021", days)]


def test_plain_text_has_one_spelling() -> None:
    assert "joe's pizza san francisco" == plain("  Joe\N{RIGHT SINGLE QUOTATION MARK}s  Pizza, (San Francisco)")
