"""What the cells of a column are: a kind by clear majority, values of that kind, and what does not fit kept as text.

Refuses to lose a cell: one that is not of the column's kind stays in its row, as text, and a note counts it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from itertools import islice

import msgspec

from evidentia.contracts.tables import CellValue, ColumnKind
from evidentia.ingest.tables.grids import shown
from evidentia.ingest.tables.moments import MomentReading, duration_seconds, read_moments
from evidentia.ingest.tables.numbers import NumberReading, read_numbers

MAJORITY_PERCENT = 90
"""This share of the cells that are not missing decides the kind of a column."""
MAX_SAMPLES = 5
MAX_SAMPLE_LENGTH = 80
EXACT_BELOW = 2**53
"""Floats count all integers up to here."""
_MISSING = frozenset(["-", "–", "—", "--", "n/a", "na", "null", "none", "nan", "nil", "k.a.", "k. a.", ".", "..", "...", "?"])  # noqa: RUF001
_ERRORS = frozenset(["#n/a", "#div/0!", "#ref!", "#value!", "#name?", "#null!", "#num!", "#spill!", "#calc!", "#getting_data", "err:502"])
_TRUTHS = (("true", "false"), ("yes", "no"), ("wahr", "falsch"), ("ja", "nein"), ("oui", "non"), ("vrai", "faux"))
_NUMBERS = (int, float)


class ReadColumn(msgspec.Struct, frozen=True, kw_only=True):
    """The cells of a column as values."""

    kind: ColumnKind
    values: list[CellValue]
    unit: str = ""
    decimal: str = ""
    """The decimal sign the cells prove, `?` when they leave it open, empty when they need none."""
    missing: int = 0
    notes: tuple[str, ...] = ()

    def distinct(self) -> int:
        """Return how many different values there are."""
        return len(set(self.values)) - (self.missing > 0)

    def samples(self) -> tuple[str, ...]:
        """Return the first few different values as text."""
        seen = islice(dict.fromkeys(value for value in islice(self.values, 1_000) if value is not None), MAX_SAMPLES)
        return tuple(shown(value)[:MAX_SAMPLE_LENGTH] for value in seen)


class _Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """One kind the column could have: what each text means, and which native types belong to it."""

    kind: ColumnKind
    texts: Mapping[str, CellValue]
    natives: tuple[type, ...]
    unit: str = ""


def read_column(cells: Sequence[object], *, decimal: str = "") -> ReadColumn:
    """Return the values of a column; `decimal` is the decimal sign to take where its texts leave it open."""
    types = Counter(map(type, cells))
    texts = Counter(cell for cell in cells if type(cell) is str) if types[str] else Counter[str]()
    blanks = {text for text in texts if not text.strip()}
    errors = {text for text in texts if text.strip().lower() in _ERRORS}
    absent = errors | {text for text in texts if text.strip().lower() in _MISSING}
    meaningful = {text: count for text, count in texts.items() if text not in blanks and text not in absent}
    numbers = read_numbers(meaningful, decimal=decimal) if meaningful else NumberReading()
    moments = MomentReading() if len(numbers.values) == len(meaningful) else read_moments(meaningful)
    chosen = _chosen(_candidates(meaningful, types, numbers, moments), types, meaningful)
    notes = [f"{sum(texts[text] for text in errors)} cells hold an error and count as missing"] if errors else []
    notes.extend(note for note in (numbers.note, moments.note) if note)
    if chosen is None:
        none_of = dict.fromkeys([*blanks, *errors])
        values = [_as_text(cell, none_of) for cell in cells]
        return _finished(ColumnKind.TEXT, values, unit="", decimal="", notes=notes)
    meaning: dict[str, CellValue] = {text: text.replace("\0", "\ufffd") for text in meaningful}
    meaning |= chosen.texts
    meaning |= dict.fromkeys([*blanks, *absent])
    values = _values(cells, frozenset(types) - {str}, chosen, meaning)
    return _finished(chosen.kind, values, unit=chosen.unit, decimal=numbers.decimal, notes=notes)


def without_rows(column: ReadColumn, rows: frozenset[int]) -> ReadColumn:
    """Return a column without some of its rows, its kind as it was."""
    values = [value for place, value in enumerate(column.values) if place not in rows]
    return _finished(column.kind, values, unit=column.unit, decimal=column.decimal, notes=list(column.notes))


def scaled_to_percent(column: ReadColumn) -> ReadColumn:
    """Return a column of shares as percent points: 0.12 that a sheet shows as 12 % becomes 12."""
    values: list[CellValue] = [round(value * 100, 10) if type(value) in _NUMBERS else value for value in column.values]  # type: ignore[operator, arg-type]  # numbers, by the check
    return _finished(ColumnKind.NUMBER, values, unit=column.unit, decimal=column.decimal, notes=list(column.notes))


def _candidates(
    meaningful: Mapping[str, int], types: Mapping[type, int], numbers: NumberReading, moments: MomentReading
) -> list[_Candidate]:
    has_time = bool(moments.datetimes) or types[datetime] > 0
    days = {text: f"{day}T00:00:00" for text, day in moments.dates.items()} if has_time else moments.dates
    durations = {text: seconds for text in meaningful if "P" in text[:2] and (seconds := duration_seconds(text)) is not None}
    # A length of time below a day comes from an .ods file as a time of day, the longer ones beside it as durations.
    lengths: tuple[type, ...] = (timedelta, time) if durations or types[timedelta] else (timedelta,)
    return [
        _Candidate(kind=ColumnKind.BOOLEAN, texts=_truths(meaningful), natives=(bool,)),
        _Candidate(kind=ColumnKind.NUMBER, texts=numbers.values, natives=_NUMBERS, unit=numbers.unit),
        _Candidate(
            kind=ColumnKind.DATETIME if has_time else ColumnKind.DATE, texts={**days, **moments.datetimes}, natives=(date, datetime)
        ),
        _Candidate(kind=ColumnKind.TIME, texts=moments.times, natives=(time,)),
        _Candidate(kind=ColumnKind.NUMBER, texts=durations, natives=lengths, unit="s"),
    ]


def _chosen(candidates: Sequence[_Candidate], types: Mapping[type, int], meaningful: Mapping[str, int]) -> _Candidate | None:
    """Return the candidate that a clear majority of the cells that are not missing belongs to."""
    present = sum(count for kind, count in types.items() if kind not in {str, type(None)}) + sum(meaningful.values())
    for candidate in candidates:
        fitting = sum(types[kind] for kind in candidate.natives) + sum(meaningful[text] for text in candidate.texts)
        if fitting and fitting * 100 >= MAJORITY_PERCENT * present:
            return candidate
    return None


def _truths(meaningful: Mapping[str, int]) -> dict[str, CellValue]:
    """Return the meaning of words like yes and no, when the column holds no other words."""
    words = {text: text.strip().lower() for text in meaningful}
    for pair in _TRUTHS:
        if words and all(word in pair for word in words.values()):
            return {text: word == pair[0] for text, word in words.items()}
    return {}


def _values(cells: Sequence[object], natives: frozenset[type], chosen: _Candidate, meaning: Mapping[str, CellValue]) -> list[CellValue]:
    """Return the values; columns of one type, which long ones mostly are, are not asked cell by cell what they are."""
    is_plain = natives <= set(chosen.natives) and (natives <= {bool} or natives <= set(_NUMBERS))
    if is_plain and all(math.isfinite(cell) for cell in cells if type(cell) is float):
        return [meaning[cell] if type(cell) is str else cell for cell in cells]  # type: ignore[misc]  # of the types just looked at
    if natives == {date} and chosen.kind is ColumnKind.DATE:
        return [meaning[cell] if type(cell) is str else cell.isoformat() for cell in cells]  # type: ignore[attr-defined]  # likewise
    return [meaning[cell] if type(cell) is str else _native(cell, chosen) for cell in cells]


def _native(cell: object, chosen: _Candidate) -> CellValue:
    if cell is None or (type(cell) is float and not math.isfinite(cell)):
        return None
    if type(cell) not in chosen.natives:
        return shown(cell)
    if isinstance(cell, _NUMBERS):
        return cell
    if timedelta in chosen.natives and isinstance(cell, (timedelta, time)):
        return _seconds(cell)
    if chosen.kind is ColumnKind.DATETIME and type(cell) is date:
        return f"{cell.isoformat()}T00:00:00"
    return cell.isoformat() if isinstance(cell, (date, time)) else shown(cell)


def _seconds(cell: timedelta | time) -> int | float:
    if isinstance(cell, time):
        cell = timedelta(hours=cell.hour, minutes=cell.minute, seconds=cell.second, microseconds=cell.microsecond)
    seconds = cell.total_seconds()
    return int(seconds) if seconds.is_integer() else seconds


def _as_text(cell: object, none_of: Mapping[str, None]) -> CellValue:
    if type(cell) is str:
        return None if cell in none_of else cell.replace("\0", "\ufffd")
    return shown(cell) or None


def _finished(kind: ColumnKind, values: list[CellValue], *, unit: str, decimal: str, notes: list[str]) -> ReadColumn:
    missing = values.count(None)
    if kind is ColumnKind.NUMBER and all(map(_is_whole, values)):
        kind = ColumnKind.INTEGER
        values = [int(value) if type(value) is float else value for value in values]
    if kind is not ColumnKind.TEXT:
        leftovers = _leftovers(kind, values)
        if leftovers:
            notes.append(f"{leftovers} of {len(values) - missing} cells are not of the kind {kind.value} and are kept as text")
    return ReadColumn(kind=kind, values=values, unit=unit, decimal=decimal, missing=missing, notes=tuple(notes))


def _is_whole(value: CellValue) -> bool:
    return type(value) is not float or (value.is_integer() and -EXACT_BELOW < value < EXACT_BELOW)


def _leftovers(kind: ColumnKind, values: list[CellValue]) -> int:
    types = Counter(map(type, values))
    if kind in {ColumnKind.INTEGER, ColumnKind.NUMBER, ColumnKind.BOOLEAN}:
        return types[str]
    return sum(type(value) is str and not _looks_iso(value) for value in values)


def _looks_iso(value: object) -> bool:
    text = str(value)
    return text[4:5] == "-" or text[2:3] == ":"
