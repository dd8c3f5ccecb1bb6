"""Which cells a few words may mean: equal but for case and signs, then holding the words, then spelled almost so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.text.edits import distance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.query.tables.schema import Column, Schema

MAX_VALUE_LENGTH: Final = 8
MAX_VALUES: Final = 20
MAX_COMPARED: Final = 20_000
_LONG: Final = 9
_SHORT: Final = 5
_CHANGED: Final = str.maketrans(
    {
        "\N{RIGHT SINGLE QUOTATION MARK}": "'",
        "\N{MODIFIER LETTER APOSTROPHE}": "'",
        "`": "'",
        ",": " ",
        '"': " ",
        "“": " ",
        "”": " ",
        "(": " ",
        ")": " ",
        "?": " ",
        ";": " ",
    }
)


class Value(NamedTuple):
    """A column and those of its values, as they are stored, that some words may mean."""

    column: Column
    stored: tuple[str, ...]
    cost: int

    @property
    def sort_key(self) -> tuple[int, int, int]:
        """Return the cost, then the places of table and column."""
        return self.cost, *self.column.sort_key


def plain(text: str) -> str:
    """Return a text without case, with one spelling of apostrophes and spaces."""
    return " ".join(text.casefold().translate(_CHANGED).split()).strip(" .'!")


class Values:
    """The cells that stretches of one question may mean, found in one pass over the columns of text."""

    def __init__(self, schema: Schema, stretches: Sequence[str]) -> None:
        self._columns = [column for column in schema.columns if not column.is_numeric]
        wanted = set(stretches)
        self._found: dict[str, list[Value]] = {}
        for column in self._columns:
            matches: dict[str, list[str]] = {}
            for cell in column.distinct:
                if isinstance(cell, str) and (form := plain(cell)) in wanted:
                    matches.setdefault(form, []).append(cell)
            for form, stored in matches.items():
                self._found.setdefault(form, []).append(Value(column, tuple(sorted(stored)), 0))

    def find(self, stretch: str) -> tuple[Value, ...]:
        """Return the cells that equal the stretch."""
        return tuple(sorted(self._found.get(stretch, ()), key=lambda value: value.sort_key))

    def find_holding(self, stretch: str) -> tuple[Value, ...]:
        """Return the cells in which the stretch stands as whole words; none where they are too many."""
        found = []
        for column in self._columns:
            stored = sorted(cell for cell in column.distinct if isinstance(cell, str) and f" {stretch} " in f" {plain(cell)} ")
            if 0 < len(stored) <= MAX_VALUES:
                found.append(Value(column, tuple(stored), 1))
        return tuple(found)

    def find_near(self, stretch: str) -> tuple[Value, ...]:
        """Return the one value within an edit (two, for long ones) of the stretch; none where there are several or it is short."""
        if len(stretch) < _SHORT:
            return ()
        allowed = 2 if len(stretch) >= _LONG else 1
        near: dict[str, list[Value]] = {}
        for column in self._columns:
            for cell in sorted(cell for cell in column.distinct if isinstance(cell, str))[:MAX_COMPARED]:
                form = plain(cell)
                if abs(len(form) - len(stretch)) <= allowed and form[:1] == stretch[:1] and distance(form, stretch) <= allowed:
                    near.setdefault(form, []).append(Value(column, (cell,), 2))
        return tuple(next(iter(near.values()))) if len(near) == 1 else ()
