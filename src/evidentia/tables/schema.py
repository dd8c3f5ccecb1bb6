"""Tables as a planner sees them: the stems of their names, what identifies a row, what a row is called, and what cells are like.

Nothing here is read from a question. Cells are looked at up to a bound; a column beyond it is judged by its card.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Final

from evidentia.contracts.tables import CellValue, ColumnKind, OpenTable, TableColumn
from evidentia.tables.phrases import ENTITY, GENERIC
from evidentia.text.tokens import Tokeniser

if TYPE_CHECKING:
    from collections.abc import Sequence


MAX_TABLES: Final = 64
MAX_CELLS: Final = 200_000
"""Of one column; beyond them a value counts as not there."""
NUMERIC: Final = (ColumnKind.INTEGER, ColumnKind.NUMBER)
TEMPORAL: Final = (ColumnKind.DATE, ColumnKind.DATETIME)
_SUFFIXES: Final = ("name", "id", "code", "title", "number")
_TRUE: Final = frozenset(("true", "yes", "y", "t", "1"))
_FALSE: Final = frozenset(("false", "no", "n", "f", "0"))
_KEYS: Final = frozenset(("id", "code", "key", "number", "no", "nr"))
_BRACKETS: Final = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
_TOKENISER: Final = Tokeniser()


def stems(text: str) -> tuple[str, ...]:
    """Return the stems of a name, one for each part of it."""
    return tuple(_TOKENISER.phrase_terms(text))


def squash(text: str) -> str:
    """Return a name without case, spaces and signs."""
    return "".join(character for character in text.casefold() if character.isalnum())


_GENERIC_STEMS: Final = frozenset(term for word in GENERIC for term in stems(word))


def _without_unit(column: TableColumn) -> list[tuple[str, ...]]:
    """Return the stems of a column's name without what stands in brackets and without its unit."""
    bare = stems(_BRACKETS.sub(" ", column.name))
    unit = {*stems(column.unit), column.unit.casefold(), "in"} if column.unit else set()
    left = tuple(term for term in bare if term not in unit)
    return [terms for terms in (bare, left) if terms]


class Column:
    """One column of one table, with what its names mean."""

    def __init__(self, table: Table, place: int, column: TableColumn, cells: Sequence[CellValue]) -> None:
        self.table = table
        self.place = place
        self.sql_name = column.sql_name
        self.name = column.name
        self.kind = column.kind
        self.unit = column.unit
        self.cells = cells[:MAX_CELLS]
        self.terms = tuple(dict.fromkeys((stems(column.name), stems(column.sql_name), *_without_unit(column))))
        self.squashed = tuple(dict.fromkeys((squash(column.name), squash(column.sql_name))))

    @property
    def sort_key(self) -> tuple[int, int]:
        """Return the place of the table and of the column."""
        return self.table.place, self.place

    @property
    def is_numeric(self) -> bool:
        """Tell whether its cells are numbers."""
        return self.kind in NUMERIC

    @property
    def is_temporal(self) -> bool:
        """Tell whether its cells are days or moments."""
        return self.kind in TEMPORAL

    @cached_property
    def cores(self) -> tuple[tuple[str, ...], ...]:
        """Return the stems that say more than that there is a name, a number or a date; none for a column that says only that."""
        found = []
        for terms in self.terms:
            core = tuple(term for term in terms if term not in _GENERIC_STEMS)
            if core and core != terms:
                found.append(core)
        own = self.table.squashed
        if any(name.endswith(suffix) and name.removesuffix(suffix) in own for name in self.squashed for suffix in _SUFFIXES):
            found.append(self.table.terms[0])
        return tuple(dict.fromkeys(found))

    @cached_property
    def distinct(self) -> frozenset[CellValue]:
        """Return its values without repetition and without None."""
        return frozenset(cell for cell in self.cells if cell is not None)

    @cached_property
    def is_unique(self) -> bool:
        """Tell whether no two rows share a value and none is empty."""
        return len(self.distinct) == len(self.cells)

    @property
    def is_key_like(self) -> bool:
        """Tell whether its name is that of an identifier."""
        return any(terms[-1:] in {(key,) for key in _KEYS} for terms in self.terms) or self.squashed[-1].endswith(("id", "code"))

    @cached_property
    def truth(self) -> tuple[CellValue, ...] | None:
        """Return the values that mean yes, where all values mean yes or no."""
        words = {value: str(value).casefold() for value in self.distinct}
        if not words or not set(words.values()) <= _TRUE | _FALSE:
            return None
        if self.kind != ColumnKind.BOOLEAN and len(words) != 2:  # noqa: PLR2004 - yes and no
            return None
        return tuple(sorted((value for value, word in words.items() if word in _TRUE), key=repr))


class Table:
    """One table with its columns."""

    def __init__(self, place: int, opened: OpenTable) -> None:
        card = opened.card
        self.place = place
        self.card = card
        self.sql_name = card.sql_name
        self.row_count = len(opened.content.rows)
        names = [name for name in (card.title, card.sheet_name, card.sql_name) if name] or [card.file_name]
        self.terms = tuple(dict.fromkeys(terms for name in names if (terms := stems(name))))
        self.squashed = frozenset(form for name in names for form in (squash(name), squash(name).removesuffix("s")))
        self.columns = tuple(
            Column(self, number, column, opened.content.columns[number] if number < len(opened.content.columns) else ())
            for number, column in enumerate(card.columns)
        )

    @cached_property
    def key(self) -> Column | None:
        """Return the column that identifies a row by name and by its values, if there is one."""
        keys = [column for column in self.columns if column.is_key_like and column.is_unique]
        own = [column for column in keys if any(core in self.terms for core in column.cores) or column.squashed[-1] == "id"]
        found = own or [column for column in keys if column.place == 0]
        return found[0] if found else None

    @cached_property
    def label(self) -> Column | None:
        """Return the column that says what a row is called, if there is one."""
        for word in ENTITY:
            wanted = {stems(word), *((*terms, *stems(word)) for terms in self.terms)}
            joined = {name + word for name in self.squashed} | {word}
            for column in self.columns:
                if wanted & set(column.terms) or joined & set(column.squashed):
                    return column
        named = [column for column in self.columns if set(column.terms) & set(self.terms) and not column.is_numeric]
        return named[0] if named else None

    @cached_property
    def thing(self) -> Column | None:
        """Return the column that stands for the rows: what they are called, else a first column of text in which no two are the same."""
        first = self.columns[0] if self.columns else None
        is_name = first is not None and first.kind == ColumnKind.TEXT and not first.is_key_like and first.is_unique
        return self.label or (first if is_name else None)

    @cached_property
    def is_bridge(self) -> bool:
        """Tell whether it does nothing but tie others together: two or three columns, all identifiers."""
        return 1 < len(self.columns) <= 3 and all(column.is_key_like for column in self.columns)  # noqa: PLR2004

    @cached_property
    def is_satellite(self) -> bool:
        """Tell whether it gives rows of another table a name and nothing else: its own rows are no things of their own."""
        others = [column for column in self.columns if column is not self.label]
        return self.label is not None and len(others) > 1 and all(column.is_key_like for column in others)

    @cached_property
    def weight(self) -> Column | None:
        """Return the column that says how many things a row stands for, if there is one."""
        return next((column for column in self.columns if column.squashed[-1] in {"count"} and column.is_numeric), None)


class Schema:
    """The tables of one question; of tables with one name the first stays, since a statement could not tell them apart."""

    def __init__(self, tables: Sequence[OpenTable]) -> None:
        first: dict[str, OpenTable] = {}
        for opened in tables[:MAX_TABLES]:
            first.setdefault(opened.card.sql_name.casefold(), opened)
        self.tables = tuple(Table(place, opened) for place, opened in enumerate(first.values()))

    @property
    def columns(self) -> list[Column]:
        """Return the columns of all tables."""
        return [column for table in self.tables for column in table.columns]
