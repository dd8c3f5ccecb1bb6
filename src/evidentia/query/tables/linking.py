"""A question as pieces: operators, names of tables and columns, values of cells, numbers, days, and words that nothing explains.

At each place the longest reading wins. Nothing is decided yet where a piece has several readings: which is meant shows in the whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.query.english import FUNCTION_WORDS
from evidentia.query.tables.amounts import Days, read_amount, read_days
from evidentia.query.tables.names import MAX_NAME_LENGTH, Name, Names
from evidentia.query.tables.phrases import ADJECTIVES, BEFORE_PERIOD, GLUE, MAX_OPERATOR_LENGTH, OPENING, OPERATORS, RATE, RECENCY, UNITS
from evidentia.query.tables.values import MAX_VALUE_LENGTH, Value, Values, plain
from evidentia.query.words import Word, words_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.query.tables.schema import Schema

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
