"""Which of its readings each part of a draft has: all combinations are weighed, those with fewer joins and surer names first."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from evidentia.tables import phrases as p
from evidentia.tables.filters import Filter, read_filters
from evidentia.tables.schema import Column, Schema, Table, stems

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evidentia.tables.drafts import Draft, Measure
    from evidentia.tables.entity_linking import Name, Piece

MAX_READINGS: Final = 20_000
_MAX_EACH: Final = 8
_GUESS: Final = 2


class Term(NamedTuple):
    """A column, a function of one, or the number of a table's rows."""

    function: str
    table: Table
    column: Column | None
    is_distinct: bool = False


class Listed(NamedTuple):
    """What is shown or grouped by: columns of one table; `key` tells rows apart that are called the same."""

    table: Table
    columns: tuple[Column, ...]
    key: Column | None
    is_entity: bool
    measure: Column | None = None
    """Of a table, a column of numbers that the same words may name."""


class Reading(NamedTuple):
    """A draft with one reading for each of its parts."""

    outputs: tuple[Listed, ...]
    terms: tuple[Term, ...]
    groups: tuple[Listed, ...]
    contexts: tuple[Listed, ...]
    absent: tuple[Listed, ...]
    filters: tuple[Filter, ...]
    best: Term | None
    order: tuple[Term | None, ...]
    cost: int


class TooManyReadingsError(Exception):
    """The words may mean too many things."""


def readings(draft: Draft, schema: Schema) -> Iterator[Reading]:
    """Yield every reading of a draft, in no order of merit; nothing where a part has none."""
    parts: list[list[tuple[Any, int]]] = [
        *(_listed(piece) for piece in draft.outputs),
        *(_terms(measure, schema) for measure in draft.measures),
        *(_listed(piece) for piece in draft.groups),
        *(_contexts(piece) for piece in draft.contexts),
        *(_tables(piece) for piece in draft.absent),
        *(read_filters(condition, schema) for condition in draft.conditions),
        *([_terms(draft.best[1], schema)] if draft.best else ()),
        *(_terms(measure, schema) if measure else [(None, 0)] for _, measure in draft.order),
    ]
    parts = [sorted(part, key=lambda choice: choice[1])[:_MAX_EACH] for part in parts]
    count = 1
    for part in parts:
        count *= len(part)
    if count > MAX_READINGS:
        raise TooManyReadingsError
    sizes = [len(each) for each in (draft.outputs, draft.measures, draft.groups, draft.contexts, draft.absent, draft.conditions)] + [
        1 if draft.best else 0,
        len(draft.order),
    ]
    for combination in product(*parts):
        chosen = [choice for choice, _ in combination]
        yield _reading(chosen, sizes, cost=sum(cost for _, cost in combination))


def _reading(chosen: Sequence[Any], sizes: Sequence[int], *, cost: int) -> Reading:
    cut: list[tuple[Any, ...]] = []
    start = 0
    for size in sizes:
        cut.append(tuple(chosen[start : start + size]))
        start += size
    outputs, terms, groups, contexts, absent, filters, best, order = cut
    return Reading(outputs, terms, groups, contexts, absent, filters, best[0] if best else None, order, cost)


def listed_of(table: Table, column: Column | None) -> Listed:
    """Return what to show of a table, or a column of it."""
    if column is not None:
        return Listed(table, (column,), None, is_entity=False)
    named = table.label or table.key
    columns = (named,) if named is not None else table.columns
    key = None if table.key in columns or table.is_satellite else table.key
    return Listed(table, columns, key, is_entity=True)


def _listed(piece: Piece) -> list[tuple[Listed, int]]:
    """Return what is meant; of a table and a column of it that are called the same, rather the column."""
    own: dict[int, Name] = {}
    for name in piece.names:
        if name.column is not None:
            own.setdefault(name.table.place, name)
    listed = []
    for name in piece.names:
        meant = listed_of(name.table, name.column)
        rival = own.get(name.table.place) if name.column is None else None
        if rival is not None and rival.column is not None and rival.column.is_numeric and not rival.column.is_key_like:
            meant = meant._replace(measure=rival.column)
        listed.append((meant, name.cost + (rival is not None and rival.cost <= name.cost)))
    return listed


def _contexts(piece: Piece) -> list[tuple[Listed, int]]:
    return _listed(piece)


def _tables(piece: Piece) -> list[tuple[Listed, int]]:
    return [(listed_of(name.table, None), name.cost) for name in piece.names if name.column is None]


def _terms(measure: Measure, schema: Schema) -> list[tuple[Term, int]]:
    if measure.noun is None:
        return [(Term("", column.table, column), cost) for column, cost in _adjective_columns(measure.adjective, schema)]
    found: list[tuple[Term, int]] = []
    for name in measure.noun.names:
        if name.column is None:
            found.extend(_counts(measure, name.table, name.cost))
        else:
            found.extend(_column_terms(measure, name.column, name.cost))
    return found


def _counts(measure: Measure, table: Table, cost: int) -> Iterator[tuple[Term, int]]:
    """Yield the number of rows; where rows say how many things they stand for, the sum of those."""
    if measure.function not in {p.COUNT, p.SUM, ""}:
        return
    if table.weight is not None:
        yield Term(p.SUM, table, table.weight), cost
    elif measure.function != p.SUM:
        yield Term(p.COUNT, table, None), cost + (measure.function == "")


def _column_terms(measure: Measure, column: Column, cost: int) -> Iterator[tuple[Term, int]]:
    function = measure.function
    if function == p.COUNT:
        if column.is_numeric and not column.is_key_like and not measure.is_distinct:
            yield Term(p.SUM, column.table, column), cost + 1
        else:
            yield Term(p.COUNT, column.table, column, is_distinct=True), cost + _GUESS
    elif function == "":
        if (column.is_numeric and not column.is_key_like) or column.is_temporal:
            yield Term("", column.table, column), cost
        else:
            yield Term("", column.table, column), cost + _GUESS
    elif (column.is_numeric and not column.is_key_like) or (function in {p.MAX, p.MIN} and column.is_temporal):
        yield Term(function, column.table, column), cost


def _adjective_columns(adjective: str, schema: Schema) -> list[tuple[Column, int]]:
    if adjective in p.ADJECTIVES:
        wanted = [stems(word) for word in p.ADJECTIVES[adjective][1]]
        named = [
            (column, wanted.index(terms))
            for column in schema.columns
            if column.is_numeric
            for terms in wanted
            if terms in column.terms or terms in column.cores or any(own[-1:] == terms for own in column.terms)
        ]
        if named:
            return named
    if adjective in p.RECENCY:
        return [(column, 1) for column in schema.columns if column.is_temporal]
    return []
