"""From a reading to one statement: rows with their sources, or groups with a second statement that names the rows that took part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evidentia.query.tables import phrases as p
from evidentia.query.tables.frames import Built, make_frame
from evidentia.query.tables.resolving import Listed, listed_of
from evidentia.query.tables.schema import stems
from evidentia.query.tables.scopes import CannotBuildError
from evidentia.query.tables.statement_groups import group_statement
from evidentia.query.tables.statement_rows import row_statement

if TYPE_CHECKING:
    from evidentia.query.tables.drafts import Draft
    from evidentia.query.tables.joins import JoinGraph
    from evidentia.query.tables.resolving import Reading
    from evidentia.query.tables.schema import Table

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
