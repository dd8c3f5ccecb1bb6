"""Statements over groups, or over all rows at once, with a second one that names the rows that took part, each with its group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evidentia.contracts.tables import SOURCE_COLUMN
from evidentia.query.tables import phrases as p
from evidentia.query.tables.frames import Built, Frame, column_list, names_of
from evidentia.query.tables.resolving import Listed, Term
from evidentia.query.tables.scopes import CannotBuildError
from evidentia.query.tables.sql_text import Expression, all_of, column_text, join_text, quote, source_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.query.tables.drafts import Draft
    from evidentia.query.tables.resolving import Reading
    from evidentia.query.tables.schema import Column

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
