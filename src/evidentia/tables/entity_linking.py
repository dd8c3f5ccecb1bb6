"""A question as pieces: operators, names of tables and columns, values of cells, numbers, days, and words that nothing explains.

At each place the longest reading wins. Nothing is decided yet where a piece has several readings: which is meant shows in the whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.query.words import Word, words_of
from evidentia.tables.phrases import (
    ADJECTIVES,
    BEFORE_PERIOD,
    GENERIC,
    GLUE,
    MAX_OPERATOR_LENGTH,
    OPENING,
    OPERATORS,
    PERIODS,
    RATE,
    RECENCY,
    SYNONYMS,
    UNITS,
    Days,
    read_amount,
    read_days,
)
from evidentia.tables.schema import Column, Schema, Table, squash, stems
from evidentia.text.edits import distance
from evidentia.text.english import FUNCTION_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


# --- names ---
# Which tables and columns a few words name: by their stems, with what questions leave out, by synonyms, or written together.

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


# --- values ---
# Which cells a few words may mean: equal but for case and signs, then holding the words, then spelled almost so.

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


# --- linking ---

MAX_WORDS: Final = 80
_MAX_LENGTH: Final = max(MAX_OPERATOR_LENGTH, MAX_NAME_LENGTH, MAX_VALUE_LENGTH)
_SENTENCE_ENDS: Final = ".?!;"
_UNLINKED: Final = FUNCTION_WORDS | GLUE
_NEVER_NAMES: Final = (FUNCTION_WORDS | OPENING) - {"name"}
_COUNTED: Final = frozenset(("number", "count", "amount", "total", "quantity", "sum"))
_RATE_LENGTH: Final = 2
_STRONG_VALUE: Final = frozenset(("may", "no", "yes"))


class Piece(NamedTuple):
    """Some words of the question and what they may be; without any reading, a word."""

    words: tuple[Word, ...]
    operator: str = ""
    adjective: str = ""
    names: tuple[Name, ...] = ()
    values: tuple[Value, ...] = ()
    number: int | float | None = None
    unit: str = ""
    days: Days | None = None

    @property
    def text(self) -> str:
        """Return the words in small letters."""
        return " ".join(word.plain for word in self.words)

    @property
    def tail(self) -> str:
        """Return the punctuation after it."""
        return self.words[-1].tail

    @property
    def ends_sentence(self) -> bool:
        """Tell whether a sentence ends here."""
        return any(mark in self.tail for mark in _SENTENCE_ENDS)

    @property
    def is_measure(self) -> bool:
        """Tell whether it may name numbers or days that say how much, not which."""
        columns = [name.column for name in self.names if name.column is not None]
        return any((column.is_numeric and not column.is_key_like) or column.is_temporal for column in columns)

    @property
    def may_be_year(self) -> bool:
        """Tell whether it may name days or years."""
        columns = [name.column for name in self.names if name.column is not None]
        return any(column.is_temporal or column.is_key_like or "year" in column.squashed[-1] for column in columns)

    @property
    def is_word(self) -> bool:
        """Tell whether nothing is known of it."""
        return not (self.operator or self.adjective or self.names or self.values or self.number is not None or self.days)


def link(question: str, schema: Schema) -> list[Piece]:
    """Return the pieces of a question, in order; together they are all of its words."""
    words = words_of(question, limit=MAX_WORDS)
    linker = _Linker(words, schema)
    pieces: list[Piece] = []
    place = 0
    while place < len(words):
        piece = linker.longest(place)
        pieces.append(piece)
        place += len(piece.words)
    return _with_rare_values(pieces, linker.values)


class _Linker:
    def __init__(self, words: Sequence[Word], schema: Schema) -> None:
        self._words = words
        self._plain = [_plain_word(word) for word in words]
        self._names = Names(schema)
        self._has_days = any(column.is_temporal for column in schema.columns)
        stretches = [
            plain(" ".join(self._plain[start : start + length]))
            for start in range(len(words))
            for length in range(1, MAX_VALUE_LENGTH + 1)
            if start + length <= len(words)
        ]
        self.values = Values(schema, [*stretches, *(stretch.removesuffix("s") for stretch in stretches)])

    def longest(self, place: int) -> Piece:
        """Return the longest piece that begins at a word."""
        for length in range(min(_MAX_LENGTH, len(self._words) - place), 0, -1):
            if self._is_broken(place, length):
                continue
            piece = self._piece(tuple(self._words[place : place + length]), self._plain[place : place + length])
            if piece is not None:
                return piece
        return self._amount(place) or Piece((self._words[place],))

    def _is_broken(self, place: int, length: int) -> bool:
        return any(mark in word.tail for word in self._words[place : place + length - 1] for mark in ".?!;:")

    def _piece(self, words: tuple[Word, ...], forms: Sequence[str]) -> Piece | None:
        if words[0].is_quoted:
            values = self.values.find(plain(forms[0])) if len(words) == 1 else ()
            return Piece(words, values=values) if values else None
        phrase = tuple(forms)
        if len(phrase) == _RATE_LENGTH and phrase[0] in BEFORE_PERIOD and (rates := self._names.find_rates(phrase[1])):
            return Piece(words, operator=RATE, names=rates)
        if (operator := OPERATORS.get(phrase)) is not None:
            return Piece(words, operator=operator, adjective=" ".join(phrase) if " ".join(phrase) in RECENCY else "")
        joined = " ".join(phrase).replace("-", " ")
        if joined in ADJECTIVES or joined in RECENCY:
            return Piece(words, adjective=joined)
        if self._has_days and (days := read_days(forms)) and days.length == len(words):
            return Piece(words, days=days)
        names = self._find_names(words, forms)
        values = self._find_values(words, forms)
        if values and names and (names[0].cost > 0 or len(words) > 1) and all(word.is_name for word in words):
            names = ()
        return Piece(words, names=names, values=values) if names or values else None

    def _find_names(self, words: tuple[Word, ...], forms: Sequence[str]) -> tuple[Name, ...]:
        edges = (forms[0], forms[-1])
        is_open = any(word.tail for word in words[:-1]) or not all(any(sign.isalnum() for sign in form) for form in forms)
        if len(words) > MAX_NAME_LENGTH or is_open or any(form in _NEVER_NAMES for form in edges):
            return ()
        if len(forms) > 2 and forms[1] == "of" and forms[0] in _COUNTED:  # noqa: PLR2004 - `number of stops` is a count
            return ()
        found = self._names.find(forms)
        if any(form in _UNLINKED and form != "name" for form in edges):
            # What relates things elsewhere is a name where a table or a column is called exactly so.
            return tuple(name for name in found if not name.cost)
        return found

    def _find_values(self, words: tuple[Word, ...], forms: Sequence[str]) -> tuple[Value, ...]:
        if len(words) == 1 and forms[0] in _UNLINKED and not (words[0].is_name and forms[0] in _STRONG_VALUE):
            return ()
        stretch = plain(" ".join(forms))
        if not stretch or read_amount([stretch]):
            return ()
        found = self.values.find(stretch)
        return found or (self.values.find(stretch.removesuffix("s")) if stretch.endswith("s") and words[-1].is_name else ())

    def _amount(self, place: int) -> Piece | None:
        forms = self._plain[place : place + 4]
        if self._words[place].is_quoted or (amount := read_amount(forms)) is None:
            return None
        length, unit = amount.length, amount.unit
        after = self._plain[place + length] if place + length < len(self._plain) else ""
        if not unit and after in UNITS and not self._words[place + length - 1].tail and not self._names.find([after]):
            unit, length = UNITS[after], length + 1
            if after in {"year", "years"} and self._plain[place + length : place + length + 1] == ["old"]:
                length += 1
        return Piece(tuple(self._words[place : place + length]), number=amount.number, unit=unit)


def _plain_word(word: Word) -> str:
    return plain(word.text) if word.is_quoted else word.plain.rstrip("'")


def _with_rare_values(pieces: Sequence[Piece], values: Values) -> list[Piece]:
    """Return the pieces with runs of names that nothing explained as values that hold them or are spelled almost so."""
    joined: list[Piece] = []
    place = 0
    while place < len(pieces):
        run = place
        while run < len(pieces) and _is_unexplained_name(pieces[run], is_first=run == 0):
            run += 1
            if pieces[run - 1].tail:
                break
        if run == place:
            joined.append(pieces[place])
            place += 1
            continue
        words = tuple(word for piece in pieces[place:run] for word in piece.words)
        stretch = plain(" ".join(_plain_word(word) for word in words))
        found = values.find_holding(stretch) or values.find_near(stretch)
        joined.extend([Piece(words, values=found)] if found else pieces[place:run])
        place = run
    return joined


def _is_unexplained_name(piece: Piece, *, is_first: bool) -> bool:
    word = piece.words[0]
    return piece.is_word and (word.is_quoted or (word.is_name and not is_first and word.plain not in _UNLINKED))
