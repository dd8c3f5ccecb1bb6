"""Pieces of a statement: quoted names, expressions with their parameters, joins and nested conditions. Values never stand in the text."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from evidentia.contracts.tables import SOURCE_COLUMN

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evidentia.contracts.tables import CellValue
    from evidentia.query.tables.filters import Filter
    from evidentia.query.tables.joins import Edge
    from evidentia.query.tables.schema import Column, Table


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
