"""Laws of plans: only given names, values only as parameters, one SELECT that runs, the same every time; whatever tables hold."""

from __future__ import annotations

import re
import sqlite3
from typing import TYPE_CHECKING, Final

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from table_samples import COMPANY, INTEGER, SHOP, TEXT, run, support, table

from evidentia.contracts.tables import OpenTable, PlanDeclined, TablePlan
from evidentia.tables.planner import SchemaPlanner
from soak import cases

if TYPE_CHECKING:
    from collections.abc import Sequence

HOSTILE: Final = (
    'x"; DROP TABLE products; --',
    "x' OR '1'='1",
    'price") UNION SELECT sqlite_version() --',
    "{}",
    "?",
    "__src",
    '"',
    "a\x00b",
    "[INSTRUCTION] select everything",
)
QUESTIONS: Final = (
    "Which {thing} are in the {group} {value}?",
    "How many {thing} are in the {group} {value}?",
    "What is the average {number} per {group}?",
    "What is the {number} of {value}?",
    "Which {thing} have a {number} over 5?",
    'Which {thing} are in the {group} "{value}"?',
    "List the {thing} ordered by {number}",
    "What is the highest {number}?",
)
_NAME: Final = re.compile(r'"((?:[^"]|"")*)"')
_KEYWORDS: Final = frozenset(
    "SELECT FROM WHERE AND OR NOT IN AS GROUP BY ORDER HAVING LIMIT DESC ASC COUNT DISTINCT SUM AVG MAX MIN IS NULL JOIN ON BETWEEN LIKE "  # noqa: SIM905
    "CAST REAL NULLIF UNION ALL".split()
)
_ALIASES: Final = re.compile(r"ratio|__src|(?:count|total|average|maximum|minimum)_.*", re.DOTALL)
words = st.sampled_from(["sum", "group", "Desk", "order", "count", "average price", "x"]) | st.text(max_size=12) | st.sampled_from(HOSTILE)


def plan(question: str, tables: Sequence[OpenTable]) -> TablePlan | PlanDeclined:
    return SchemaPlanner().plan(question, tables, budget_ms=1_000)


def check(found: TablePlan | PlanDeclined, tables: Sequence[OpenTable]) -> None:
    """Check that a plan is one SELECT over given names with a question mark for each value, and that it runs."""
    if isinstance(found, PlanDeclined):
        assert found.reason
        return
    given_names = {name.casefold() for each in tables for name in (each.card.sql_name, *(column.sql_name for column in each.card.columns))}
    tables_and_columns = {f"{each.card.sql_name}_{column.sql_name}".casefold() for each in tables for column in each.card.columns}
    for text in (found.statement, found.support):
        bare = _NAME.sub(" ", text)
        quoted = [name.replace('""', '"') for name in _NAME.findall(text)]
        assert all(name.casefold() in given_names | tables_and_columns or _ALIASES.fullmatch(name) for name in quoted)
        assert not set(re.findall(r"[A-Za-z_]+", bare)) - _KEYWORDS
        assert not re.search(r";|--|/\*", bare)
        assert set(re.findall(r"'[^']*'", bare)) <= {"' '"}
        if text:
            assert len(found.parameters) == bare.count("?")
    assert set(found.tables) <= {each.card.table_id for each in tables}
    run(found, tables)


@settings(max_examples=cases(50, of=150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(question=st.text(max_size=120))
def test_any_text_is_planned_or_declined(question: str) -> None:
    check(plan(question, SHOP), SHOP)


VOCABULARY: Final = (
    "which what how many number of the products product price category average total per each highest lowest top 3 more than 100 "
    "between and or not Lighting Seating Hamburg warehouse quantity is are in with have ordered by descending ratio to discontinued "
    "cheapest EUR 5 first different both start with L 2021 without excluding inventory weight at least"
)
vocabulary = st.sampled_from(VOCABULARY.split())


@settings(max_examples=cases(133, of=400), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(parts=st.lists(vocabulary, min_size=3, max_size=14))
@example(parts=["which", "products", "have", "more than", "3", "inventory"])
def test_any_order_of_its_words_is_planned_or_declined(parts: list[str]) -> None:
    check(plan(" ".join(parts), SHOP), SHOP)


@settings(max_examples=cases(50, of=150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    form=st.sampled_from(QUESTIONS),
    names=st.tuples(words, words, words, words),
    cells=st.lists(st.tuples(words, words, st.integers(-5, 50)), min_size=1, max_size=4),
)
def test_hostile_names_and_values_never_change_the_form_of_a_statement(
    form: str, names: tuple[str, str, str, str], cells: list[tuple[str, str, int]]
) -> None:
    sheet, thing, group, number = names
    made = table("T", [("a", TEXT), ("b", TEXT), ("c", INTEGER)], cells)
    columns = tuple(
        msgspec.structs.replace(column, name=name) for column, name in zip(made.card.columns, (thing, group, number), strict=True)
    )
    opened = msgspec.structs.replace(made, card=msgspec.structs.replace(made.card, columns=columns, sheet_name=sheet, title=sheet))
    question = form.format(thing=thing, group=group, number=number, value=cells[0][1])

    check(plan(question, [opened]), [opened])


@pytest.mark.parametrize("hostile", [name for name in HOSTILE if name != "__src"])
def test_a_hostile_name_in_statements_is_quoted(hostile: str) -> None:
    made = table("Prices", [("Product", TEXT), ("Price", INTEGER)], [("Lamp", 5), ("Desk", 9)])
    sql_names = (hostile.replace("\x00", "") or "x", "price")
    columns = tuple(msgspec.structs.replace(column, sql_name=name) for column, name in zip(made.card.columns, sql_names, strict=True))
    opened = msgspec.structs.replace(made, card=msgspec.structs.replace(made.card, columns=columns))
    found = plan("Which product has the highest price?", [opened])

    assert isinstance(found, TablePlan)
    check(found, [opened])
    assert [("Desk", 9, "F1S1R3")] == run(found, [opened])[1]


def test_a_value_that_looks_like_sql_stays_a_value() -> None:
    nasty = "Robert'); DROP TABLE students;--"
    opened = table("Students", [("Name", TEXT), ("Grade", INTEGER)], [(nasty, 3), ("Ada", 1)])
    found = plan(f'What is the grade of "{nasty}"?', [opened])

    assert isinstance(found, TablePlan)
    assert nasty in found.parameters
    assert [(nasty, 3, "F1S1R2")] == run(found, [opened])[1]


def test_equal_questions_give_equal_plans() -> None:
    question = "What is the average salary for each department?"

    assert plan(question, COMPANY) == plan(question, COMPANY)


def test_the_support_names_the_rows_that_took_part_and_no_others() -> None:
    found = plan("How many products are in the category Lighting?", SHOP)

    assert isinstance(found, TablePlan)
    assert ["F1S1R2", "F1S1R3"] == support(found, SHOP)


def test_joined_groups_name_the_rows_of_both_tables() -> None:
    found = plan("What is the total salary of employees in each department?", COMPANY)

    assert isinstance(found, TablePlan)
    assert "F1S1R2 F1S1R2" in support(found, COMPANY)


def test_a_statement_cannot_write() -> None:
    for question in ("Delete the products with a price over 5", "Insert a product", "Update the price of the Stool to 5"):
        assert isinstance(plan(question, SHOP), PlanDeclined)


def test_long_questions_and_many_tables_are_bounded() -> None:
    many = [table(f"Sheet{number}", [("Name", TEXT), ("Value", INTEGER)], [("a", 1)]) for number in range(100)]

    assert isinstance(plan("price " * 1_000, SHOP), PlanDeclined)
    assert PlanDeclined(reason="the question has more than 80 words", planner="evidentia-schema-planner/1") == plan(
        f"What is the price {'of the ' * 40}Stool", SHOP
    )
    assert isinstance(plan("What is the value of each name?", many), PlanDeclined)
    assert isinstance(plan("What is the price?", []), PlanDeclined)


def test_sqlite_agrees_that_parameters_are_complete() -> None:
    found = plan("Which products in the category Seating have a price between 50 and 100?", SHOP)

    assert isinstance(found, TablePlan)
    with pytest.raises(sqlite3.Error):
        run(msgspec.structs.replace(found, parameters=found.parameters[:-1]), SHOP)
