"""What a condition asks of which column, for every column that it may mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.contracts.tables import SOURCE_COLUMN, CellValue
from evidentia.tables import phrases as p
from evidentia.tables.phrases import Days, is_year, year_days

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evidentia.tables.drafts import Condition
    from evidentia.tables.joins import Edge
    from evidentia.tables.schema import Column, Schema, Table


_ELSEWHERE: Final = 1
_OTHER_COLUMN: Final = 4
_WRONG_WAY: Final = 3
_DIRECTIONS: Final = {"from": ("from", "origin", "source", "depart", "departur"), "to": ("to", "destin", "target", "arriv")}


class Filter(NamedTuple):
    """An expression over one column with `{}` where the column stands, and its parameters; or a comparison of a number of rows."""

    table: Table
    column: Column | None
    template: str
    parameters: tuple[CellValue, ...]
    is_negated: bool
    alternative: int
    is_equality: bool = False


def read_filters(condition: Condition, schema: Schema) -> list[tuple[Filter, int]]:
    """Return the filters that a condition may be, each with what it costs."""
    if condition.values:
        return _value_filters(condition)
    if condition.operator == p.TRUTH:
        named = [name for name in (condition.noun.names if condition.noun else ()) if name.column is not None]
        found_truths = [(truth_filter(name.column), name.cost) for name in named if name.column is not None]
        return [(found._replace(is_negated=condition.is_negated), cost) for found, cost in found_truths if found is not None]
    if condition.operator == p.START:
        return [
            (_filter(condition, column, "{} LIKE ?", (f"{condition.text}%",)), cost)
            for column, cost in _named_columns(condition)
            if not column.is_numeric
        ]
    if condition.days:
        return _day_filters(condition, condition.days, schema)
    found = _number_filters(condition)
    if condition.noun is None and all(is_year(number) for number in condition.numbers):
        found += _year_filters(condition, schema)
    return found


def truth_filter(column: Column) -> Filter | None:
    """Return the filter that a column of yes and no is when it is merely named."""
    if not column.truth:
        return None
    marks = ", ".join("?" for _ in column.truth)
    return Filter(column.table, column, f"{{}} IN ({marks})", column.truth, is_negated=False, alternative=0)


def _filter(condition: Condition, column: Column, template: str, parameters: tuple[CellValue, ...], *, is_equality: bool = False) -> Filter:
    return Filter(
        column.table,
        column,
        template,
        parameters,
        is_negated=condition.is_negated,
        alternative=condition.alternative,
        is_equality=is_equality,
    )


def _named_columns(condition: Condition) -> list[tuple[Column, int]]:
    """Return the columns that the noun names; of a table, the one that its rows are called by."""
    if condition.noun is None:
        return []
    named = []
    for name in condition.noun.names:
        column = name.column or name.table.label
        if column is not None:
            named.append((column, name.cost + (name.column is None)))
    return named


def _value_filters(condition: Condition) -> list[tuple[Filter, int]]:
    stored: dict[tuple[int, int], list[str]] = {}
    found: dict[tuple[int, int], tuple[Column, int]] = {}
    for number, values in enumerate(condition.values):
        for value in values:
            place = value.column.sort_key
            if number and place not in stored:
                continue
            stored.setdefault(place, []).extend(value.stored)
            column, cost = found.get(place, (value.column, 0))
            found[place] = (column, cost + value.cost)
        held = {value.column.sort_key for value in values}
        stored = {place: each for place, each in stored.items() if place in held}
    filters = []
    for place, each in stored.items():
        column, cost = found[place]
        parameters = tuple(dict.fromkeys(each))
        template = f"{{}} IN ({', '.join('?' for _ in parameters)})"
        cost += _noun_cost(condition, column) + _direction_cost(condition, column)
        filters.append((_filter(condition, column, template, parameters, is_equality=True), cost))
    return filters


def _noun_cost(condition: Condition, column: Column) -> int:
    """Return how badly a value's column fits the noun before it."""
    if condition.noun is None:
        return 0
    names = condition.noun.names
    if any(name.column is column for name in names):
        return 0
    if any(name.column is None and name.table is column.table for name in names):
        return 0 if column is column.table.label else _ELSEWHERE
    return _ELSEWHERE if any(name.column is None for name in names) else _OTHER_COLUMN


def _direction_cost(condition: Condition, column: Column) -> int:
    if not condition.preposition:
        return 0
    terms = {term for own in column.terms for term in own}
    fits = any(terms & set(words) for way, words in _DIRECTIONS.items() if way == condition.preposition)
    opposes = any(terms & set(words) for way, words in _DIRECTIONS.items() if way != condition.preposition)
    return 0 if fits else _WRONG_WAY * 2 if opposes else _WRONG_WAY


def _number_filters(condition: Condition) -> list[tuple[Filter, int]]:
    filters: list[tuple[Filter, int]] = []
    for name in condition.noun.names if condition.noun else ():
        if name.column is None:
            if condition.is_count and name.table.weight is None:
                template = f"COUNT {condition.operator} ?"
                counted = Filter(name.table, None, template, condition.numbers, condition.is_negated, condition.alternative)
                filters.append((counted, name.cost))
            continue
        column = name.column
        if column.is_temporal and all(is_year(number) for number in condition.numbers):
            filters.append((_years(condition, column), name.cost))
        elif column.is_numeric and _unit_fits(condition, column) and (condition.operator == p.EQUAL or not column.is_key_like):
            template = "{} BETWEEN ? AND ?" if condition.operator == p.BETWEEN else f"{{}} {condition.operator} ?"
            filters.append((_filter(condition, column, template, condition.numbers, is_equality=condition.operator == p.EQUAL), name.cost))
        elif condition.operator == p.EQUAL and (text := str(condition.numbers[0])) in column.distinct:
            filters.append((_filter(condition, column, "{} = ?", (text,), is_equality=True), name.cost))
    return filters


def _unit_fits(condition: Condition, column: Column) -> bool:
    """Tell whether the unit of the question is that of the column; years, days and the like say nothing about a plain number."""
    return not condition.unit or not column.unit or p.UNITS.get(column.unit.casefold(), column.unit.casefold()) == condition.unit


def _year_filters(condition: Condition, schema: Schema) -> list[tuple[Filter, int]]:
    """Return the filters of a year that no noun goes with: on columns of days, and on numbers that are called years."""
    filters: list[tuple[Filter, int]] = []
    template = "{} BETWEEN ? AND ?" if condition.operator == p.BETWEEN else f"{{}} {condition.operator} ?"
    for column in schema.columns:
        if column.is_temporal:
            filters.append((_years(condition, column), 0))
        elif column.squashed[-1] == "year" and column.is_numeric:
            filters.append((_filter(condition, column, template, condition.numbers, is_equality=condition.operator == p.EQUAL), 0))
    return filters


def _years(condition: Condition, column: Column) -> Filter:
    days = year_days(int(condition.numbers[0]))
    if condition.operator == p.BETWEEN:
        days = days._replace(end=year_days(int(condition.numbers[1])).end)
    return _days(condition, column, days)


def _day_filters(condition: Condition, days: Days, schema: Schema) -> list[tuple[Filter, int]]:
    named = [(column, cost) for column, cost in _named_columns(condition) if column.is_temporal]
    if not named:
        named = [(column, 0) for column in schema.columns if column.is_temporal]
    return [(_days(condition, column, days), cost) for column, cost in named]


def _days(condition: Condition, column: Column, days: Days) -> Filter:
    forms: dict[str, tuple[str, tuple[CellValue, ...]]] = {
        p.OVER: ("{} >= ?", (days.end,)),
        p.UNDER: ("{} < ?", (days.first,)),
        p.LEAST: ("{} >= ?", (days.first,)),
        p.MOST: ("{} < ?", (days.end,)),
    }
    template, parameters = forms.get(condition.operator, ("({} >= ? AND {} < ?)", (days.first, days.end)))
    return _filter(condition, column, template, parameters, is_equality=condition.operator == p.EQUAL)


# --- sql text ---
# Pieces of a statement: quoted names, expressions with their parameters, joins and nested conditions. Values never stand in the text.


class Expression(NamedTuple):
    """Text with a question mark for each of its parameters."""

    text: str
    parameters: tuple[CellValue, ...] = ()


def quote(name: str) -> str:
    """Return a name as an identifier, whatever it holds."""
    return '"' + name.replace('"', '""') + '"'


def column_text(column: Column) -> str:
    """Return a column with its table."""
    return f"{quote(column.table.sql_name)}.{quote(column.sql_name)}"


def source_text(tables: Iterable[Table]) -> str:
    """Return the sources of the rows of some tables, with a space between."""
    return " || ' ' || ".join(f"{quote(table.sql_name)}.{quote(SOURCE_COLUMN)}" for table in tables)


def join_text(root: Table, edges: Sequence[Edge]) -> str:
    """Return a table and those that are joined to it, each by its edge."""
    joined = [f"JOIN {quote(edge.right.table.sql_name)} ON {column_text(edge.left)} = {column_text(edge.right)}" for edge in edges]
    return " ".join([quote(root.sql_name), *joined])


def filter_text(found: Filter) -> Expression:
    """Return the expression of a filter over its column."""
    if found.column is None:
        raise ValueError
    text = found.template.replace("{}", column_text(found.column))
    return Expression(f"NOT ({text})" if found.is_negated else text, found.parameters)


def all_of(expressions: Sequence[Expression]) -> Expression:
    """Return the conditions joined, with WHERE before them; nothing for none."""
    if not expressions:
        return Expression("")
    text = " AND ".join(expression.text for expression in expressions)
    return Expression(f" WHERE {text}", tuple(value for expression in expressions for value in expression.parameters))


def any_of(expressions: Sequence[Expression]) -> Expression:
    """Return the alternatives in brackets."""
    text = " OR ".join(expression.text for expression in expressions)
    return Expression(f"({text})", tuple(value for expression in expressions for value in expression.parameters))


def within(edges: Sequence[Edge], conditions: Sequence[Expression], *, is_negated: bool = False) -> Expression:
    """Return the condition that a row's first column is among those that the way over the edges leads to."""
    first, rest = edges[0], edges[1:]
    held = [*conditions]
    if is_negated:
        held.append(Expression(f"{column_text(first.right)} IS NOT NULL"))
    where = all_of(held)
    inner = f"SELECT {column_text(first.right)} FROM {join_text(first.right.table, rest)}{where.text}"  # noqa: S608 - quoted names
    return Expression(f"{column_text(first.left)} {'NOT IN' if is_negated else 'IN'} ({inner})", where.parameters)
