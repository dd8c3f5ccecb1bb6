"""Statements over rows: each with its sources, in the order asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.contracts.tables import SOURCE_COLUMN
from evidentia.query.tables import phrases as p
from evidentia.query.tables.frames import Built, Frame, column_list, names_of
from evidentia.query.tables.scopes import CannotBuildError
from evidentia.query.tables.sql_text import Expression, column_text, quote, source_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.query.tables.drafts import Draft
    from evidentia.query.tables.resolving import Listed, Reading, Term
    from evidentia.query.tables.schema import Column


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
