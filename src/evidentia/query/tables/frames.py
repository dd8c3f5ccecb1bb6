"""What statements of all forms share: the tables of FROM, the ways between them, and the conditions."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from evidentia.query.tables.scopes import CannotBuildError, Scopes
from evidentia.query.tables.sql_text import Expression, all_of, column_text, join_text, quote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.contracts.tables import CellValue
    from evidentia.query.tables.joins import Edge, JoinGraph
    from evidentia.query.tables.resolving import Reading
    from evidentia.query.tables.schema import Column, Table


class Built(NamedTuple):
    """A statement with what it took."""

    statement: str
    parameters: tuple[CellValue, ...]
    support: str
    tables: tuple[Table, ...]
    effort: int
    """What its joins and its conditions on other tables cost; the more, the less likely it is what was meant."""
    names: tuple[str, ...]
    """Of the columns, without that of the sources."""


@dataclass
class Frame:
    """What all forms of statement share."""

    root: Table
    tables: list[Table]
    edges: list[Edge]
    where: list[Expression]
    effort: int

    @property
    def body(self) -> Expression:
        """Return FROM and WHERE."""
        where = all_of(self.where)
        return Expression(f" FROM {join_text(self.root, self.edges)}{where.text}", where.parameters)


def make_frame(reading: Reading, graph: JoinGraph) -> Frame:
    """Return the tables of FROM, joined by the shortest ways, and the conditions."""
    terms = [term for term in (*reading.terms, reading.best, *reading.order) if term is not None]
    wanted = [*(listed.table for listed in (*reading.groups, *reading.outputs)), *(term.table for term in terms)]
    wanted += [found.table for found in reading.filters if found.column is None]
    wanted = list(dict.fromkeys(wanted))
    tables, edges = [wanted[0]], []
    for table in wanted[1:]:
        if table in tables:
            continue
        ways = [(len(way), place, way) for place, known in enumerate(tables) if (way := graph.way(known.place, table.place))]
        if not ways:
            raise CannotBuildError(f"nothing ties '{table.sql_name}' to '{tables[0].sql_name}'")
        way = min(ways)[2]
        for one, other in pairwise(way):
            edge = graph.between(one, other)
            if edge.right.table not in tables:
                tables.append(edge.right.table)
                edges.append(edge)
    scopes = Scopes(tables, graph)
    scopes.add_contexts(reading)
    scopes.add_absent(reading.absent)
    scopes.add_filters([found for found in reading.filters if found.column is not None])
    outside = sum(found.table not in tables for found in reading.filters) + 4 * sum(not table.row_count for table in tables)
    return Frame(wanted[0], tables, edges, scopes.conditions(), effort=4 * (len(edges) + scopes.count_edges()) + outside)


def names_of(columns: Sequence[Column]) -> tuple[str, ...]:
    """Return the names that columns have in an answer: with that of their table where two would be called the same."""
    names = [column.sql_name.casefold() for column in columns]
    return tuple(
        f"{column.table.sql_name}_{column.sql_name}" if names.count(name) > 1 else column.sql_name
        for column, name in zip(columns, names, strict=True)
    )


def column_list(columns: Sequence[Column]) -> list[str]:
    """Return columns as they stand after SELECT."""
    return [f"{column_text(column)} AS {quote(name)}" for column, name in zip(columns, names_of(columns), strict=True)]
