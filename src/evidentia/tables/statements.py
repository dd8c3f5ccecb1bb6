"""From a reading to one statement: rows with their sources, or groups with a second statement that names the rows that took part."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.contracts.tables import SOURCE_COLUMN, CellValue
from evidentia.tables import phrases as p
from evidentia.tables.filters import Expression, all_of, column_text, join_text, quote, source_text
from evidentia.tables.joins import CannotBuildError, Edge, JoinGraph, Scopes
from evidentia.tables.readings import Listed, Reading, Term, listed_of
from evidentia.tables.schema import Column, Table, stems

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.tables.drafts import Draft


_PEOPLE: Final = frozenset(stems(word) for word in p.PEOPLE)


def build(draft: Draft, reading: Reading, graph: JoinGraph) -> Built:
    """Return the statement of a reading; CannotBuildError or AmbiguousWayError where there is none."""
    reading = _settle(reading)
    if draft.is_person:
        reading = _with_people(reading)
    having = [found for found in reading.filters if found.column is None]
    is_grouped = _is_grouped(draft, reading) or bool(having)
    if not (reading.outputs or reading.terms or reading.groups):
        raise CannotBuildError("the question does not say what to show")
    if any(_means_measure(listed, reading) for listed in reading.outputs):
        raise CannotBuildError("a column is called like its table, and is meant where something else of the table is named")
    if reading.best is not None and draft.order and draft.limit is None:
        raise CannotBuildError("both the end of an order and the whole order are asked for")
    frame = make_frame(reading, graph)
    if is_grouped:
        return group_statement(draft, reading, frame)
    return row_statement(draft, reading, frame)


def _with_people(reading: Reading) -> Reading:
    """Return the reading of a question that asks who: rows of a table of people, named or meant by the conditions."""
    tables = [each.table for each in reading.outputs if each.is_entity or each.table.label in each.columns]
    if any(_holds_people(table) for table in tables) or any(not _is_measured(each) for each in reading.outputs):
        return reading
    meant = [reading.best.table] if reading.best is not None else [found.table for found in reading.filters]
    people = [table for table in dict.fromkeys(meant) if _holds_people(table)]
    if len(people) != 1 or reading.terms or reading.groups:
        raise CannotBuildError("no table of people fits the question")
    return reading._replace(outputs=(listed_of(people[0], None), *reading.outputs))


def _means_measure(listed: Listed, reading: Reading) -> bool:
    """Tell whether a table is shown although its words also name a measure of it, and a value or another column says of which rows."""
    if listed.measure is None:
        return False
    others = [*(each.table for each in reading.contexts), *(each.table for each in reading.filters)]
    return listed.table in [*others, *(each.table for each in reading.outputs if each is not listed)]


def _is_measured(listed: Listed) -> bool:
    return not listed.is_entity and (listed.columns[0].is_numeric or listed.columns[0].is_temporal)


def _holds_people(table: Table) -> bool:
    return any(len(terms) == 1 and terms in _PEOPLE for terms in table.terms)


def _settle(reading: Reading) -> Reading:
    """Return the reading with `the highest number of citations` as a column where each row has one such number."""
    best = reading.best
    if best is not None and best.function == p.SUM and best.column is not None and not reading.terms and not reading.groups:
        own = [listed for listed in reading.outputs if listed.table is best.table]
        names = {best.table.label, best.table.key}
        if len(own) == len(reading.outputs) and any(listed.is_entity or set(listed.columns) & names for listed in own):
            order = tuple(term._replace(function="") if term == best else term for term in reading.order)
            return reading._replace(best=best._replace(function=""), order=order)
    return reading


def _is_grouped(draft: Draft, reading: Reading) -> bool:
    if reading.terms or reading.groups or draft.is_distinct:
        return True
    return any(term is not None and term.function for term in (reading.best, *reading.order))


# --- statement groups ---
# Statements over groups, or over all rows at once, with a second one that names the rows that took part, each with its group.

_NAMES: Final = {p.COUNT: "count", p.SUM: "total", p.AVG: "average", p.MAX: "maximum", p.MIN: "minimum"}
_MAX_SUMMED: Final = 2


def group_statement(draft: Draft, reading: Reading, frame: Frame) -> Built:
    """Return a statement over groups, or over all rows at once, with the statement of the rows that took part."""
    listed = list(dict.fromkeys([*reading.groups, *reading.outputs]))
    shown = list(dict.fromkeys(column for each in listed for column in each.columns))
    keys = list(dict.fromkeys([*shown, *(each.key for each in listed if each.key is not None)]))
    counted = [Term(p.COUNT, found.table, None) for found in reading.filters if found.column is None]
    terms = list(dict.fromkeys([*reading.terms, *([reading.best] if reading.best else []), *counted]))
    _check_sums(terms, listed)
    if reading.best is not None and not reading.best.function:
        raise CannotBuildError("a row that is highest or lowest is asked for together with groups")
    grouping = f" GROUP BY {', '.join(column_text(column) for column in keys)}" if keys else ""
    body = frame.body
    having = _having(reading, frame)
    order, limit = _group_order(draft, reading, terms, keys, frame)
    if reading.best is not None and (draft.limit or 1) == 1 and not reading.groups:
        measured = _term_text(reading.best, frame)
        end = "DESC" if draft.best and draft.best[0] == p.HIGH else "ASC"
        inner = f"(SELECT {measured}{body.text}{grouping} ORDER BY 1 {end} LIMIT 1)"
        having.append(Expression(f"{measured} = {inner}", body.parameters))
    condition = all_of(having)
    selected = [*column_list(shown), *(f"{_term_text(term, frame)} AS {quote(_term_name(term))}" for term in terms)]
    text = f"SELECT {', '.join(selected)}{body.text}{grouping}{condition.text.replace(' WHERE ', ' HAVING ', 1)}"
    text += f" ORDER BY {', '.join(order)}{limit}" if order else ""
    names = (*names_of(shown), *(_term_name(term) for term in terms))
    taken = [*frame.where, *(Expression("? IS NOT NULL") for _ in condition.parameters)]
    took_part = dict.fromkeys([*(term.table for term in terms), *(each.table for each in listed)])
    source = f"{source_text(took_part)} AS {quote(SOURCE_COLUMN)}"
    support = f"SELECT {', '.join([source, *column_list(shown)])} FROM {join_text(frame.root, frame.edges)}{all_of(taken).text}"  # noqa: S608 - quoted names
    return Built(text, (*body.parameters, *condition.parameters), support, tuple(frame.tables), frame.effort, names)


def _check_sums(terms: Sequence[Term], listed: Sequence[Listed]) -> None:
    """Refuse sums over rows that a join would repeat: several measured tables, or groups in several directions."""
    summed = {term.table.place for term in terms if term.function in {p.SUM, p.AVG}}
    measured = {term.table.place for term in terms}
    if summed and (len(measured) > 1 or len(measured | {each.table.place for each in listed}) > _MAX_SUMMED):
        raise CannotBuildError("a sum over several tables would count rows twice")


def _having(reading: Reading, frame: Frame) -> list[Expression]:
    conditions = []
    for found in reading.filters:
        if found.column is None:
            if found.is_negated or found.alternative:
                raise CannotBuildError("a number of rows is negated")
            counted = _term_text(Term(p.COUNT, found.table, None), frame)
            conditions.append(Expression(found.template.replace("COUNT", counted, 1), found.parameters))
    if conditions and not (reading.outputs or reading.groups):
        raise CannotBuildError("a number of rows is compared and nothing is shown")
    return conditions


def _group_order(draft: Draft, reading: Reading, terms: Sequence[Term], keys: Sequence[Column], frame: Frame) -> tuple[list[str], str]:
    order: list[str] = []
    for (direction, _), term in zip(draft.order, reading.order, strict=True):
        way = "DESC" if direction == p.DOWN else "ASC"
        order.append(f"{_order_text(term, terms, keys, frame)} {way}")
    limit = ""
    if reading.best is not None and not order:
        order = [f"{_term_text(reading.best, frame)} {'DESC' if draft.best and draft.best[0] == p.HIGH else 'ASC'}"]
    if draft.limit is not None and (draft.limit > 1 or reading.best is None):
        if not order:
            raise CannotBuildError("the question asks for the first rows and not by which order")
        limit = f" LIMIT {draft.limit}"
    return [*order, *(column_text(key) for key in keys)], limit


def _order_text(term: Term | None, terms: Sequence[Term], keys: Sequence[Column], frame: Frame) -> str:
    """Return what groups are ordered by: a measure that is shown, or a column that they are grouped by."""
    if term is None:
        return _term_text(terms[0], frame) if terms and not keys else column_text(keys[0])
    if term.column in keys and not term.function and term.column is not None:
        return column_text(term.column)
    same = [each for each in terms if each.column is term.column and each.table is term.table and term.function in {"", each.function}]
    if same:
        return _term_text(same[0], frame)
    if term.function:
        return _term_text(term, frame)
    raise CannotBuildError("the order is by something that the groups do not have")


def _term_text(term: Term, frame: Frame) -> str:
    if term.function == p.COUNT:
        if term.column is not None:
            return f"COUNT(DISTINCT {column_text(term.column)})"
        own = f"{quote(term.table.sql_name)}.{quote(SOURCE_COLUMN)}"
        return "COUNT(*)" if len(frame.tables) == 1 else f"COUNT(DISTINCT {own})"
    if term.column is None:
        raise CannotBuildError("a function has no column")
    return f"{term.function.upper()}({column_text(term.column)})"


def _term_name(term: Term) -> str:
    name = _NAMES[term.function]
    return f"{name}_{term.table.sql_name if term.column is None else term.column.sql_name}"


# --- statement rows ---
# Statements over rows: each with its sources, in the order asked for.


def row_statement(draft: Draft, reading: Reading, frame: Frame) -> Built:
    """Return a statement over rows: each with what names it and its sources, in the order asked for, ties by source."""
    shown = _shown([column for listed in reading.outputs for column in listed.columns], reading, frame)
    order = _row_order(draft, reading)
    if reading.best is not None and reading.best.column is not None:
        shown = list(dict.fromkeys([*shown, reading.best.column]))
    sources = source_text(dict.fromkeys(column.table for column in shown))
    limit = ""
    if reading.best is not None:
        if reading.best.column is None or not (reading.best.column.is_numeric or reading.best.column.is_temporal):
            raise CannotBuildError("what is to be highest or lowest is no number")
        measured = column_text(reading.best.column)
        frame.where.append(Expression(f"{measured} IS NOT NULL"))
        direction = draft.best[0] if draft.best else p.HIGH
        if (draft.limit or 1) == 1:
            inner = frame.body
            end = "MAX" if direction == p.HIGH else "MIN"
            frame.where.append(Expression(f"{measured} = (SELECT {end}({measured}){inner.text})", inner.parameters))
        elif not all(_is_one_row_each(listed, reading.best) for listed in reading.outputs):
            raise CannotBuildError("several rows are called the same; it is not clear which measure of them is meant")
        else:
            order = order or [f"{measured} {'DESC' if direction == p.HIGH else 'ASC'}"]
            limit = f" LIMIT {draft.limit}"
    elif draft.limit is not None:
        if not order:
            raise CannotBuildError("the question asks for the first rows and not by which order")
        limit = f" LIMIT {draft.limit}"
    body = frame.body
    ordered = f" ORDER BY {', '.join([*order, quote(SOURCE_COLUMN)])}" if order else ""
    columns = column_list(shown)
    text = f"SELECT {', '.join(columns)}, {sources} AS {quote(SOURCE_COLUMN)}{body.text}{ordered}{limit}"
    return Built(text, body.parameters, "", tuple(frame.tables), frame.effort, names_of(shown))


def _shown(asked: Sequence[Column], reading: Reading, frame: Frame) -> list[Column]:
    """Return what was asked for, and what tells whose row it is: columns that name the thing, and those compared by equality.

    They stand before measures; beside other columns, what names the thing is first and what was compared last.
    """
    compared = [each.column for each in reading.filters if each.is_equality and not each.is_negated and each.column is not None]
    named = [each.table.thing for each in reading.contexts if each.is_entity or each.columns[0] is each.table.thing]
    present = [column for column in (*named, *compared) if column is not None and column.table in frame.tables]
    names = [column for column in present if column is column.table.thing and column not in asked]
    if all(column.is_numeric or column.is_temporal for column in asked):
        return list(dict.fromkeys((*names, *(column for column in present if column not in asked), *asked)))
    is_named = any(column is column.table.thing for column in asked)
    return list(dict.fromkeys((*asked, *present) if is_named else (*names, *asked, *present)))


def _is_one_row_each(listed: Listed, best: Term) -> bool:
    """Tell whether each row that is measured is another thing of those that are shown."""
    named = listed.is_entity or listed.columns[0] is listed.table.label or listed.columns[0].is_unique
    return listed.table is best.table and named


def _row_order(draft: Draft, reading: Reading) -> list[str]:
    order = []
    for (direction, _), term in zip(draft.order, reading.order, strict=True):
        if term is None:
            column = (reading.best.column if reading.best else None) or reading.outputs[0].columns[0]
        elif term.function or term.column is None:
            raise CannotBuildError("the order is by something that the rows do not have")
        else:
            column = term.column
        order.append(f"{column_text(column)} {'DESC' if direction == p.DOWN else 'ASC'}")
    return order


# --- frames ---
# What statements of all forms share: the tables of FROM, the ways between them, and the conditions.


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
