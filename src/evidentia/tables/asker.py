"""A question about tables: which tables, which statement, which rows, and where each row stands in its sheet.

The tables are those that the caller may see; what a planner writes passes the guard of the table engine, whoever the planner is.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.errors import StatementRefusedError
from evidentia.contracts.tables import SOURCE_COLUMN, PlanDeclined, TableAnswer, TableLimits
from evidentia.tables.table_choice import TableIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

    from evidentia.contracts.ids import DocumentId
    from evidentia.contracts.ports import TableEngine, TablePlanner
    from evidentia.contracts.tables import CellValue, OpenTable, TableCard, TablePlan, TableRows

MAX_TABLES: Final = 6
"""How many tables a planner is shown."""
MAX_SHOWN: Final = 10
MAX_CELLS: Final = 5_000_000
MAX_SUPPORT: Final = 1_000
"""How many rows behind a sum or a count are named."""
_NO_FIT: Final = "no table has anything to do with the question"
_NO_PLACE: Final = "its rows do not say where they come from"
_CODE: Final = re.compile(r"F([1-9][0-9]{0,3})S([1-9][0-9]{0,5})R([1-9][0-9]{0,8})")


class TableAsker:
    """Answers questions from tables. Thread safe when its parts are."""

    def __init__(
        self, *, planners: Sequence[TablePlanner], engine: TableEngine, open_table: Callable[[TableCard], OpenTable], budget_ms: int = 2_000
    ) -> None:
        self._planners = tuple(planners)
        self._engine = engine
        self._open = open_table
        self._budget_ms = budget_ms
        self._indexed: tuple[Sequence[TableCard], TableIndex] | None = None
        """The cards that were asked last, and their words: the next question mostly meets the very same ones."""

    def ask(self, question: str, cards: Sequence[TableCard], *, as_of: datetime, limit: int) -> TableAnswer:
        """Return the rows that answer the question, or why there are none.

        1. rank the tables  2. open the best  3. plan, over all of them, then over fewer  4. run  5. name the rows behind each row
        """
        if not cards:
            return TableAnswer(question=question, has_tables=False)
        ranked = self._ranked(question, cards)
        answer = TableAnswer(question=question, tables=tuple(ranked[:MAX_SHOWN]))
        if not ranked:
            return msgspec.structs.replace(answer, tables=tuple(cards[:MAX_SHOWN]), declined=_NO_FIT)
        opened = self._opened(ranked)
        tables, plan = self._planned(question, opened)
        if isinstance(plan, PlanDeclined):
            return msgspec.structs.replace(answer, declined=plan.reason)
        try:
            return self._answered(answer, plan, tables, as_of=as_of, limit=limit)
        except StatementRefusedError as error:
            return msgspec.structs.replace(answer, plan=plan, declined=error.problem)

    def _ranked(self, question: str, cards: Sequence[TableCard]) -> list[TableCard]:
        indexed = self._indexed
        if indexed is None or indexed[0] is not cards:
            indexed = self._indexed = (cards, TableIndex(cards))
        by_id = {card.table_id: card for card in cards}
        return [by_id[each.table_id] for each in indexed[1].rank(question) if each.score > 0]

    def _opened(self, ranked: Sequence[TableCard]) -> list[OpenTable]:
        """Return the best tables with their cells, as many as fit, each under a name of its own."""
        opened: list[OpenTable] = []
        names: set[str] = set()
        cells = 0
        for card in ranked[:MAX_TABLES]:
            cells += card.row_count * len(card.columns)
            if opened and cells > MAX_CELLS:
                break
            table = self._open(card)
            name = _free_name(table.card.sql_name, names)
            names.add(name)
            opened.append(msgspec.structs.replace(table, card=msgspec.structs.replace(table.card, sql_name=name)))
        return opened

    def _planned(self, question: str, opened: Sequence[OpenTable]) -> tuple[Sequence[OpenTable], TablePlan | PlanDeclined]:
        """Return the first plan that a planner makes: over all tables, those of the best one's document, or the best one alone."""
        declined: PlanDeclined | None = None
        for planner in self._planners:
            for tables in _narrowed(opened):
                plan = planner.plan(question, tables, budget_ms=self._budget_ms)
                if not isinstance(plan, PlanDeclined):
                    return tables, plan
                declined = declined or plan
        return opened, declined or PlanDeclined(reason="there is no planner")

    def _answered(self, answer: TableAnswer, plan: TablePlan, tables: Sequence[OpenTable], *, as_of: datetime, limit: int) -> TableAnswer:
        limits = TableLimits(rows=limit, time_ms=self._budget_ms)
        found = self._engine.run(plan.statement, plan.parameters, tables=tables, limits=limits, as_of=as_of)
        places = [place for place, name in enumerate(found.columns) if name == SOURCE_COLUMN]
        told = _sources(found, places) if places else self._supported(plan, tables, found, as_of=as_of)
        files, sources = _numbered(tables, told)
        return msgspec.structs.replace(
            answer,
            plan=plan,
            columns=tuple(name for place, name in enumerate(found.columns) if place not in places),
            rows=tuple(tuple(value for place, value in enumerate(row) if place not in places) for row in found.rows),
            sources=sources,
            files=files,
            total=found.total,
            omitted=found.total - len(found.rows),
        )

    def _supported(self, plan: TablePlan, tables: Sequence[OpenTable], found: TableRows, *, as_of: datetime) -> tuple[tuple[str, ...], ...]:
        """Return the rows behind each sum or count."""
        if not plan.support:
            return tuple(() for _ in found.rows)
        limits = TableLimits(rows=MAX_SUPPORT, time_ms=self._budget_ms)
        behind = self._engine.run(plan.support, plan.parameters, tables=tables, limits=limits, as_of=as_of)
        return _shared_out(found, behind)


def _narrowed(opened: Sequence[OpenTable]) -> Iterator[Sequence[OpenTable]]:
    yield opened
    siblings = [table for table in opened if table.card.document_id == opened[0].card.document_id]
    if len(siblings) < len(opened):
        yield siblings
    if len(siblings) > 1:
        yield siblings[:1]


def _free_name(name: str, taken: set[str]) -> str:
    free, number = name, 2
    while free in taken:
        free, number = f"{name}_{number}", number + 1
    return free


def _sources(found: TableRows, places: Sequence[int]) -> tuple[tuple[str, ...], ...]:
    """Return the codes that stand in the rows themselves."""
    return tuple(tuple(dict.fromkeys(code for place in places for code in str(row[place] or "").split())) for row in found.rows)


def _shared_out(found: TableRows, behind: TableRows) -> tuple[tuple[str, ...], ...]:
    """Return for each row the codes behind it: those with its values in the columns that both have; without such columns, all of them."""
    shared = [name for name in behind.columns if name != SOURCE_COLUMN and name in found.columns]
    told = [place for place, name in enumerate(behind.columns) if name not in shared]
    codes: dict[tuple[CellValue, ...], dict[str, None]] = {}
    for row in behind.rows:
        named = codes.setdefault(_values(behind, row, shared), {})
        named.update((code, None) for place in told for code in str(row[place] or "").split())
    return tuple(tuple(codes.get(_values(found, row, shared), ())) for row in found.rows)


def _values(rows: TableRows, row: Sequence[CellValue], names: Iterable[str]) -> tuple[CellValue, ...]:
    return tuple(row[rows.columns.index(name)] for name in names)


def _numbered(
    tables: Sequence[OpenTable], sources: Iterable[Sequence[str]]
) -> tuple[tuple[tuple[DocumentId, str], ...], tuple[tuple[str, ...], ...]]:
    """Return the files that the codes speak of, counted anew from 1 in the order in which they come up, and the codes with that count."""
    documents = list(dict.fromkeys(table.card.document_id for table in tables))
    names = {table.card.document_id: table.card.file_name for table in tables}
    numbers: dict[DocumentId, int] = {}

    def renumbered(code: str) -> str:
        found = _CODE.fullmatch(code)
        if found is None or int(found[1]) > len(documents):
            raise StatementRefusedError(_NO_PLACE)
        document, sheet, row = documents[int(found[1]) - 1], int(found[2]), int(found[3])
        if not any(_holds(table, document, sheet=sheet, row=row) for table in tables):
            raise StatementRefusedError(_NO_PLACE)
        return f"F{numbers.setdefault(document, len(numbers) + 1)}S{sheet}R{row}"

    counted = tuple(tuple(renumbered(code) for code in codes) for codes in sources)
    return tuple((document, names[document]) for document in numbers), counted


def _holds(table: OpenTable, document: DocumentId, *, sheet: int, row: int) -> bool:
    """Tell whether a table has a row: whoever planned may have written a code by hand."""
    if (table.card.document_id, table.card.sheet) != (document, sheet):
        return False
    place = bisect_left(table.content.rows, row)
    return place < len(table.content.rows) and table.content.rows[place] == row
