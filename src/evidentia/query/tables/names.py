"""Which tables and columns a few words name: by their stems, with what questions leave out, by synonyms, or written together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.query.tables.phrases import GENERIC, PERIODS, SYNONYMS, UNITS
from evidentia.query.tables.schema import Column, Schema, Table, squash, stems

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_NAME_LENGTH: Final = 6
_PARTIAL: Final = 2
_SYNONYM: Final = 3
_TURNED: Final = 1
_BESIDE_TABLE: Final = 2
_HEAD: Final = 3
_GENERIC_HEADS: Final = frozenset(stems(word) for word in (*GENERIC, *UNITS))
_DULL: Final = frozenset(term for word in "list table overview sheet data file report the of and info".split() for term in stems(word))  # noqa: SIM905
_STEMMED_SYNONYMS: Final = {stems(word): tuple(stems(other) for other in others) for word, others in SYNONYMS.items()}


class Name(NamedTuple):
    """A table, or a column, that some words may name; 0 is sure, more is less so."""

    table: Table
    column: Column | None
    cost: int

    @property
    def sort_key(self) -> tuple[int, int, int]:
        """Return the cost, the place of the table and that of the column."""
        return self.cost, self.table.place, -1 if self.column is None else self.column.place


class Names:
    """All names of a schema by their stems."""

    def __init__(self, schema: Schema) -> None:
        self._terms: dict[tuple[str, ...], dict[tuple[int, int], Name]] = {}
        self._joined: dict[str, dict[tuple[int, int], Name]] = {}
        self._columns = schema.columns
        for table in schema.tables:
            self._add_table(table)
        for column in schema.columns:
            self._add_column(column)
        self._add_heads(schema)

    def find(self, words: Sequence[str]) -> tuple[Name, ...]:
        """Return what the words name, the surest first; of one thing the surest reading alone."""
        found: dict[tuple[int, int], Name] = {}
        for terms, cost in _forms(words):
            for place, name in self._terms.get(terms, {}).items():
                _keep(found, place, name._replace(cost=name.cost + cost))
        joined = squash("".join(words))
        for form in (joined, joined.removesuffix("s")):
            for place, name in self._joined.get(form, {}).items():
                _keep(found, place, name)
        named = [name.table for name in found.values() if name.column is None and not name.cost]
        if named:
            found = {place: _less_sure(name, named) for place, name in found.items()}
        return tuple(sorted(found.values(), key=lambda name: name.sort_key))

    def find_rates(self, period: str) -> tuple[Name, ...]:
        """Return the measures that are told by a period, as `monthly price` is; none where a column is that period itself."""
        if period not in PERIODS or any(name.column is not None for name in self._terms.get(stems(period), {}).values() if not name.cost):
            return ()
        words = {term for word in PERIODS[period] for term in stems(word)}
        measures = [column for column in self._columns if column.is_numeric and not column.is_key_like]
        told = [column for column in measures if any(len(terms) > 1 and words & set(terms) for terms in column.terms)]
        return tuple(Name(column.table, column, 0) for column in told)

    def _add_table(self, table: Table) -> None:
        for terms in table.terms:
            self._put(terms, Name(table, None, 0))
            core = tuple(term for term in terms if term not in _DULL and not term.isdigit())
            if core and core != terms:
                self._put(core, Name(table, None, 1))
            if table.label is not None:
                self._put((*terms, *stems("name")), Name(table, table.label, 0))
            if table.key is not None:
                self._put((*terms, *stems("id")), Name(table, table.key, 1))
        if table.label is not None:
            self._put(stems("name"), Name(table, table.label, _PARTIAL))
        if table.key is not None:
            self._put(stems("id"), Name(table, table.key, _PARTIAL))
        for form in sorted(table.squashed):
            _keep(self._joined.setdefault(form, {}), (table.place, -1), Name(table, None, 0))

    def _add_column(self, column: Column) -> None:
        table = column.table
        for terms in column.terms:
            self._put(terms, Name(table, column, 0))
            for own in table.terms:
                self._put((*own, *terms), Name(table, column, 0))
            if not column.is_numeric:
                self._put((*terms, *stems("name")), Name(table, column, 1))
        if ("day",) in column.terms:
            self._put((*stems("day"), "of", *stems("week")), Name(table, column, 0))
        for core in column.cores:
            self._put(core, Name(table, column, _PARTIAL))
        for form in column.squashed:
            _keep(self._joined.setdefault(form, {}), (table.place, column.place), Name(table, column, 0))

    def _add_heads(self, schema: Schema) -> None:
        """Add the last word of a measure's name, where nothing else is called so: the price, of `monthly price`."""
        heads: dict[tuple[str, ...], dict[tuple[int, int], Column]] = {}
        for column in schema.columns:
            if column.is_numeric and not column.is_key_like:
                # The shortest form has neither what stands in brackets nor the unit.
                heads.setdefault(min(column.terms, key=len)[-1:], {})[column.sort_key] = column
        for head, columns in heads.items():
            named = [name for name in self._terms.get(head, {}).values() if name.column is not None]
            if head and len(columns) == 1 and not named and head not in _GENERIC_HEADS:
                column = next(iter(columns.values()))
                self._put(head, Name(column.table, column, _HEAD))

    def _put(self, terms: tuple[str, ...], name: Name) -> None:
        place = (name.table.place, -1 if name.column is None else name.column.place)
        _keep(self._terms.setdefault(terms, {}), place, name)


def _less_sure(name: Name, named: Sequence[Table]) -> Name:
    """Return a column that is named in part, less sure: a table has that very name."""
    is_partial = name.column is not None and name.cost >= _PARTIAL and name.table not in named
    return name._replace(cost=name.cost + _BESIDE_TABLE) if is_partial else name


def _keep(found: dict[tuple[int, int], Name], place: tuple[int, int], name: Name) -> None:
    if place not in found or name.cost < found[place].cost:
        found[place] = name


def _forms(words: Sequence[str]) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield the stems that the words may stand for, with what each form costs."""
    parts = [stems(word) for word in words if word not in {"the", "a", "an"}]
    terms = tuple(term for part in parts for term in part)
    yield terms, 0
    if "of" in words[1:-1]:
        place = [*words].index("of")
        head, tail = (
            tuple(term for word in side if word not in {"the", "a", "an"} for term in stems(word))
            for side in (words[:place], words[place + 1 :])
        )
        yield (*tail, *head), _TURNED
    for other in _STEMMED_SYNONYMS.get(terms, ()):
        yield other, _SYNONYM
