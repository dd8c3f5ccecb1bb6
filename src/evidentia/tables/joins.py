"""Where each condition of a reading holds: of the rows that are shown, or of rows of other tables that must exist beside them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from heapq import heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.tables.filters import Expression, Filter, any_of, filter_text, truth_filter, within
from evidentia.tables.phrases import GENERIC, NO_LINK
from evidentia.tables.schema import Column, Schema, Table, squash, stems

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evidentia.tables.readings import Listed, Reading


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


# --- joins ---
# How tables hang together: columns that share a name or name a table, and whose values are found there; the shortest way between two.
#
# Refuses to choose between two ways that are equally short.

MAX_STEPS: Final = 4
_STEP: Final = 2
_CROSSING: Final = 1


class AmbiguousWayError(Exception):
    """Two tables hang together in several ways, and the question does not say which is meant."""


class Edge(NamedTuple):
    """Two columns that hold the same things."""

    left: Column
    right: Column

    def turned(self) -> Edge:
        """Return the edge the other way round."""
        return Edge(self.right, self.left)


class JoinGraph:
    """The edges between the tables of a schema."""

    def __init__(self, schema: Schema) -> None:
        self._tables = schema.tables
        self.edges: dict[tuple[int, int], tuple[Edge, ...]] = {}
        for one in schema.tables:
            for other in schema.tables:
                if one.place < other.place and (found := _edges(one, other)):
                    self.edges[one.place, other.place] = found
                    self.edges[other.place, one.place] = tuple(edge.turned() for edge in found)
        self.way = cache(self._way)

    def between(self, one: int, other: int) -> Edge:
        """Return the one edge between two neighbours."""
        edges = self.edges[one, other]
        if len(edges) > 1:
            raise AmbiguousWayError
        return edges[0]

    def _way(self, start: int, goal: int) -> tuple[int, ...] | None:
        """Return the tables from one to another, both included; None where there is no way, AmbiguousWayError where there are two."""
        best: dict[int, int] = {start: 0}
        ways: dict[int, int] = {start: 1}
        before: dict[int, int] = {}
        heap = [(0, start)]
        while heap:
            cost, here = heappop(heap)
            if cost > best[here] or here == goal:
                continue
            for there in range(len(self._tables)):
                if (here, there) not in self.edges:
                    continue
                crossing = 0 if here == start else self._crossing(here, start, goal)
                reached = cost + _STEP + crossing
                if reached < best.get(there, 1 << 30):
                    best[there], ways[there], before[there] = reached, ways[here], here
                    heappush(heap, (reached, there))
                elif reached == best[there] and before[there] != here:
                    ways[there] += ways[here]
        if goal not in best or best[goal] > MAX_STEPS * (_STEP + 1):
            return None
        if ways[goal] > 1:
            raise AmbiguousWayError
        path = [goal]
        while path[-1] != start:
            path.append(before[path[-1]])
        return tuple(path[::-1])

    def _crossing(self, here: int, start: int, goal: int) -> int:
        """Return what it costs to pass a table: nothing for one that is named after both ends, little for one that ties others."""
        table = self._tables[here]
        held = {term for terms in table.terms for term in terms}
        ends = [any(set(terms) <= held for terms in self._tables[end].terms) for end in (start, goal)]
        if table.is_bridge:
            return 0 if all(ends) else _CROSSING
        return 2 * _CROSSING


def _edges(one: Table, other: Table) -> tuple[Edge, ...]:
    """Return the columns that tie two tables, the surest kind alone."""
    kinds: tuple[list[Edge], list[Edge], list[Edge]] = ([], [], [])
    for left, right in _pairs(one, other):
        kind = _kind(left, right)
        if kind is not None:
            kinds[kind].append(Edge(left, right))
    same = next((found for found in kinds if found), [])
    keyed = [edge for edge in same if edge.left.is_key_like and edge.right.is_key_like]
    return tuple(keyed or same)


def _pairs(one: Table, other: Table) -> Iterator[tuple[Column, Column]]:
    """Yield the columns that may tie two tables: of one name, or one that names the other's table; most pairs are neither."""
    naming = [{column.place for column in table.columns if _names_table(column, beside)} for table, beside in ((one, other), (other, one))]
    for left in one.columns:
        for right in other.columns:
            is_same = not set(left.squashed).isdisjoint(right.squashed)
            if is_same or left.place in naming[0] or right.place in naming[1]:
                yield left, right


def _names_table(column: Column, table: Table) -> bool:
    if any(set(terms) <= set(own) for terms in table.terms for own in (*column.terms, *column.cores)):
        return True
    return any(name.removesuffix("id") in table.squashed for name in column.squashed)


def _kind(left: Column, right: Column) -> int | None:
    """Return how sure it is that two columns hold the same things: 0 by name, 1 by the name of the table, 2 by a part of it; or None."""
    if left.is_numeric != right.is_numeric and (left.distinct and right.distinct):
        return None
    if set(left.squashed) & set(right.squashed) and _may_tie(left) and _is_held(left, right):
        return 0
    if _refers(left, right) or _refers(right, left):
        return 1
    if _mentions(left, right) or _mentions(right, left):
        return 2
    return None


def _may_tie(column: Column) -> bool:
    return column.squashed[-1] not in NO_LINK and (squash(column.name) != "id" or column.table.is_bridge)


def _is_held(left: Column, right: Column) -> bool:
    """Tell whether one side identifies rows and holds what the other names; sides without values are judged by name."""
    if not left.distinct or not right.distinct:
        return left.is_key_like
    for one, other in ((left, right), (right, left)):
        if one.is_unique and _shared(other, one) * 2 >= len(other.distinct):
            return True
    return left.is_key_like and right.is_key_like and _shared(left, right) > 0


def _shared(inner: Column, outer: Column) -> int:
    return len(inner.distinct & outer.distinct)


def _refers(one: Column, other: Column) -> bool:
    """Tell whether a column is named after another table (`restaurant_id`) and the other is what identifies its rows (`id`)."""
    table = other.table
    if other is not table.key and other is not table.label:
        return False
    core = [*one.cores, *one.terms]
    is_named = any(terms in core for terms in table.terms) or any(name.removesuffix("id") in table.squashed for name in one.squashed)
    is_plain = one.squashed[-1] in {"id", "name"} or one is one.table.label
    if is_plain or not is_named or one.table is table:
        return False
    if not one.distinct or not other.distinct:
        return other is table.key
    return other.is_unique and _shared(one, other) * 2 >= len(one.distinct)


def _mentions(one: Column, other: Column) -> bool:
    """Tell whether a column's name holds another table's (`from_airport`) and all its values identify rows there."""
    table = other.table
    if not other.is_unique or not one.distinct or (one.is_numeric and not other.is_key_like):
        return False
    is_named = any(set(terms) <= set(own) for terms in table.terms for own in one.terms)
    generic = {term for word in GENERIC for term in stems(word)}
    has_identity = any(set(terms) <= set(own) | generic for terms in table.terms for own in other.terms) or other is table.key
    return is_named and has_identity and _shared(one, other) == len(one.distinct)
