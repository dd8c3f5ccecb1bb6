"""Where each condition of a reading holds: of the rows that are shown, or of rows of other tables that must exist beside them."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from evidentia.query.tables.filters import Filter, truth_filter
from evidentia.query.tables.sql_text import Expression, any_of, filter_text, within

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.query.tables.joins import Edge, JoinGraph
    from evidentia.query.tables.resolving import Listed, Reading
    from evidentia.query.tables.schema import Column, Table


class CannotBuildError(Exception):
    """A reading makes no statement; the argument says why."""


@dataclass
class Node:
    """A table in a scope: of the statement itself, or nested below another node."""

    table: Table
    edges: tuple[Edge, ...] = ()
    is_negated: bool = False
    parent: Node | None = None
    filters: list[Filter] = field(default_factory=list)
    children: list[Node] = field(default_factory=list)

    def conditions(self) -> list[Expression]:
        """Return what must hold of its rows."""
        own = [filter_text(each) for each in self.filters]
        return own + [within(child.edges, child.conditions(), is_negated=child.is_negated) for child in self.children]

    def count_edges(self) -> int:
        """Return how many joins it takes, with those below it."""
        return len(self.edges) + sum(child.count_edges() for child in self.children)


class Scopes:
    """The nodes of one reading over the tables of its FROM."""

    def __init__(self, tables: Sequence[Table], graph: JoinGraph) -> None:
        self._graph = graph
        self.roots = [Node(table) for table in tables]
        self._nodes = list(self.roots)
        self.loose: list[Expression] = []
        self.loose_edges = 0

    def count_edges(self) -> int:
        """Return how many joins the conditions take."""
        return sum(node.count_edges() for node in self.roots) + self.loose_edges

    def conditions(self) -> list[Expression]:
        """Return all conditions of the statement."""
        return [expression for node in self.roots for expression in node.conditions()] + self.loose

    def add_contexts(self, reading: Reading) -> None:
        """Add the tables that are merely named, or the column that stands for their rows; any other must be used, or say yes or no."""
        used = used_columns(reading)
        negated = [found.table for found in reading.filters if found.is_negated]
        for context in reading.contexts:
            if context.is_entity or context.columns[0] is context.table.thing:
                if context.table not in negated:
                    self._node(context.table)
            elif context.columns[0] not in used:
                truth = truth_filter(context.columns[0])
                if truth is None:
                    raise CannotBuildError(f"it is not clear what is asked of '{context.columns[0].name}'")
                self._node(context.table).filters.append(truth)

    def add_absent(self, tables: Sequence[Listed]) -> None:
        """Add the tables of which no row may exist."""
        for each in tables:
            self._below(each.table, is_negated=True)

    def add_filters(self, filters: Sequence[Filter]) -> None:
        """Add conditions; alternatives are joined by OR, and two equalities of one column hold of two rows."""
        by_alternative: dict[int, list[Filter]] = {}
        for each in filters:
            by_alternative.setdefault(each.alternative, []).append(each)
        for alternative, members in by_alternative.items():
            if alternative:
                self.loose.append(any_of([self._loose(member) for member in members]))
                continue
            for member in members:
                self._add(member)

    def _add(self, found: Filter) -> None:
        is_root = any(node.table is found.table for node in self.roots)
        if found.is_negated and not is_root:
            self._below(found.table, is_negated=True).filters.append(found._replace(is_negated=False))
            return
        node = self._node(found.table)
        if found.is_equality and any(each.column is found.column and each.is_equality for each in node.filters):
            if is_root:
                raise CannotBuildError(f"no row can have two values of '{found.column.name if found.column else ''}'")
            node = self._again(node)
        node.filters.append(found)

    def _node(self, table: Table) -> Node:
        known = [node for node in self._nodes if node.table is table and not node.is_negated]
        return known[-1] if known else self._below(table, is_negated=False)

    def _again(self, node: Node) -> Node:
        """Add the way to a node a second time: other rows of the same tables may meet the next condition."""
        if node.parent is None:
            return node
        above = self._again(node.parent)
        added = Node(node.table, edges=node.edges, parent=above)
        above.children.append(added)
        self._nodes.append(added)
        return added

    def _below(self, table: Table, *, is_negated: bool) -> Node:
        """Add a node below the nearest one, the latest of equally near ones."""
        ways = []
        for number, node in enumerate(self._nodes):
            way = None if node.table is table or node.is_negated else self._graph.way(node.table.place, table.place)
            if way is not None:
                ways.append((len(way), -number, way))
        if not ways:
            raise CannotBuildError(f"nothing ties '{table.sql_name}' to the other tables")
        _, number, way = min(ways)
        added = Node(table, edges=self._edges(way), is_negated=is_negated, parent=self._nodes[-number])
        self._nodes[-number].children.append(added)
        self._nodes.append(added)
        return added

    def _edges(self, way: Sequence[int]) -> tuple[Edge, ...]:
        return tuple(self._graph.between(one, other) for one, other in pairwise(way))

    def _loose(self, found: Filter) -> Expression:
        if any(node.table is found.table for node in self.roots):
            return filter_text(found)
        ways = [
            (len(way), number, way)
            for number, node in enumerate(self.roots)
            if (way := self._graph.way(node.table.place, found.table.place))
        ]
        if not ways:
            raise CannotBuildError(f"nothing ties '{found.table.sql_name}' to the other tables")
        edges = self._edges(min(ways)[2])
        self.loose_edges += len(edges)
        return within(edges, [filter_text(found._replace(is_negated=False))], is_negated=found.is_negated)


def used_columns(reading: Reading) -> list[Column]:
    """Return the columns that a reading shows, measures, groups, filters or orders by."""
    used = [column for listed in (*reading.outputs, *reading.groups) for column in listed.columns]
    used += [term.column for term in (*reading.terms, reading.best, *reading.order) if term is not None and term.column is not None]
    return used + [found.column for found in reading.filters if found.column is not None]
