"""What the cells of a column are: a kind by clear majority, values of that kind, and what does not fit kept as text.

Refuses to lose a cell: one that is not of the column's kind stays in its row, as text, and a note counts it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from itertools import islice

import msgspec

from evidentia.contracts.tables import CellValue, ColumnKind
from evidentia.tables.grids import shown
from evidentia.tables.units import known_unit
from evidentia.text.english import MONTHS

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


# --- moments ---
# Dates, times and durations written as text, as ISO 8601; refuses to guess which number is the day and which the month.

MAX_MOMENT_LENGTH = 40
LAST_MONTH = 12
NOON = 12
_TIME = r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,](?P<part>[0-9]{1,9}))?)?\s?(?P<half>[AaPp]\.?[Mm]\.?)?"
_ZONE = r"\s?(?P<zone>Z|UTC|[+-][0-9]{2}:?[0-9]{2})?"
_TAIL = rf"(?:(?:,?\s{{1,2}}|T){_TIME}{_ZONE})?"
_YEAR_FIRST = re.compile(rf"(?P<year>[0-9]{{4}})(?P<mark>[-/.])(?P<month>[0-9]{{1,2}})(?P=mark)(?P<day>[0-9]{{1,2}}){_TAIL}")
_YEAR_LAST = re.compile(rf"(?P<one>[0-9]{{1,2}})(?P<mark>[-/.])(?P<two>[0-9]{{1,2}})(?P=mark)(?P<year>[0-9]{{4}}){_TAIL}")
_DAY_NAMED = re.compile(rf"(?P<day>[0-9]{{1,2}})\.?[\s-](?P<name>[^\W\d_]{{3,9}})\.?,?[\s-](?P<year>[0-9]{{4}}){_TAIL}")
_MONTH_NAMED = re.compile(rf"(?P<name>[^\W\d_]{{3,9}})\.?\s(?P<day>[0-9]{{1,2}}),?\s(?P<year>[0-9]{{4}}){_TAIL}")
_DIGIT = re.compile("[0-9]")
_CLOCK = re.compile(_TIME)
_DURATION = re.compile(r"(-)?P(?:([0-9]{1,6})D)?T?(?:([0-9]{1,9})H)?(?:([0-9]{1,9})M)?(?:([0-9]{1,9}(?:\.[0-9]{1,9})?)S)?")
_GERMAN = "januar februar märz april mai juni juli august september oktober november dezember"  # codespell:ignore
_MONTHS = MONTHS | {name: number for number, name in enumerate(_GERMAN.split(), start=1)}
_MONTHS |= {name[:3]: number for name, number in _MONTHS.items()} | {"sept": 9, "mrz": 3}


class MomentReading(msgspec.Struct, frozen=True, kw_only=True):
    """What the texts of a column are as moments; a text that is none is in none of the three."""

    dates: Mapping[str, str] = {}
    datetimes: Mapping[str, str] = {}
    times: Mapping[str, str] = {}
    note: str = ""


def read_moments(texts: Mapping[str, int]) -> MomentReading:
    """Return the dates, moments and times of day among `texts`; an order of day and month must follow from the texts themselves."""
    dates: dict[str, str] = {}
    datetimes: dict[str, str] = {}
    times: dict[str, str] = {}
    undecided: dict[str, re.Match[str]] = {}
    for text in texts:
        stripped = text.strip()
        if len(stripped) > MAX_MOMENT_LENGTH or not _DIGIT.search(stripped):
            continue
        if clock := _CLOCK.fullmatch(stripped):
            _put(times, text, _clock(clock))
        elif match := _YEAR_LAST.fullmatch(stripped):
            undecided[text] = match
        else:
            _put_moment(dates, datetimes, text, _named_or_ordered(stripped))
    is_day_first, note = _order(undecided)
    if is_day_first is not None:
        for text, match in undecided.items():
            day, month = (match["one"], match["two"]) if is_day_first else (match["two"], match["one"])
            _put_moment(dates, datetimes, text, _moment(match, year=match["year"], month=int(month), day=day))
    return MomentReading(dates=dates, datetimes=datetimes, times=times, note=note)


def duration_seconds(text: str) -> int | float | None:
    """Return the seconds of a duration in the manner of ISO 8601, such as `PT30H00M00S`, or None."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or not any(match.groups()[1:]):
        return None
    sign, days, hours, minutes, seconds = match.groups()
    total = ((int(days or 0) * 24 + int(hours or 0)) * 60 + int(minutes or 0)) * 60 + float(seconds or 0)
    whole: int | float = int(total) if total.is_integer() else total
    return -whole if sign else whole


def _order(undecided: Mapping[str, re.Match[str]]) -> tuple[bool | None, str]:
    """Return whether the day comes first, or None when the texts do not say."""
    if not undecided:
        return None, ""
    is_day_first = any(int(match["one"]) > LAST_MONTH or match["mark"] == "." for match in undecided.values())
    is_month_first = any(int(match["two"]) > LAST_MONTH for match in undecided.values())
    if is_day_first == is_month_first:
        why = "both orders of day and month" if is_day_first else "nothing that tells the day from the month"
        return None, f"has dates with {why}, which are kept as text"
    return is_day_first, ""


def _named_or_ordered(text: str) -> tuple[str, str] | None:
    if match := _YEAR_FIRST.fullmatch(text):
        return _moment(match, year=match["year"], month=int(match["month"]), day=match["day"])
    match = _DAY_NAMED.fullmatch(text) or _MONTH_NAMED.fullmatch(text)
    month = _MONTHS.get(match["name"].casefold()) if match else None
    return _moment(match, year=match["year"], month=month, day=match["day"]) if match and month else None


def _moment(match: re.Match[str], *, year: str, month: int, day: str) -> tuple[str, str] | None:
    """Return the date and the time with its zone, both in ISO 8601, the second empty where there is none."""
    try:
        day_text = date(int(year), month, int(day)).isoformat()
    except ValueError:
        return None
    if match["hour"] is None:
        return day_text, ""
    clock = _clock(match)
    return (day_text, clock + _zone(match["zone"])) if clock else None


def _clock(match: re.Match[str]) -> str:
    hour, half = int(match["hour"]), (match["half"] or "").lower().replace(".", "")
    if half:
        if not 1 <= hour <= NOON:
            return ""
        hour = hour % NOON + (NOON if half == "pm" else 0)
    part = (match["part"] or "")[:6].ljust(6, "0")
    try:
        return time(hour, int(match["minute"]), int(match["second"] or 0), int(part)).isoformat()
    except ValueError:
        return ""


def _zone(zone: str | None) -> str:
    if zone is None:
        return ""
    return "+00:00" if zone in {"Z", "UTC"} else f"{zone[:3]}:{zone[-2:]}"


def _put(values: dict[str, str], text: str, value: str) -> None:
    if value:
        values[text] = value


def _put_moment(dates: dict[str, str], datetimes: dict[str, str], text: str, moment: tuple[str, str] | None) -> None:
    if moment is None:
        return
    if moment[1]:
        datetimes[text] = f"{moment[0]}T{moment[1]}"
    else:
        dates[text] = moment[0]


# --- numbers ---
# Numbers written as text: grouping, decimal signs, currencies, percent signs and units, decided for a column as a whole.
#
# Refuses to read an id as a number: leading zeros and more digits than a number keeps exactly make the column text.

MAX_NUMBER_LENGTH = 40
MAX_DIGITS = 15
"""A float keeps this many decimal digits exactly."""
AMBIGUOUS = "?"
_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?")
_SIGNS = "+\u2212-"
_SPACES = "\\s\u00a0\u202f'\u2019"
_NUMBER = re.compile(
    rf"(?P<open>\()?(?P<sign>[{_SIGNS}])?\s?(?P<before>[^\W\d_]{{1,3}}\$?|[€$£¥₹₽₩₺₴])?\s?(?P<inner>[{_SIGNS}])?"
    rf"(?P<digits>[0-9](?:[0-9.,{_SPACES}]*[0-9])?|[.,][0-9]+)(?P<power>[eE][+-]?[0-9]{{1,3}})?"
    rf"\s?(?P<after>[^0-9\s()+-][^0-9()]{{0,12}}?)?\s?(?P<close>\))?(?P<trailing>-)?"
)
_GROUPING = re.compile(rf"[{_SPACES}]")
_LEADING_ZERO = re.compile(r"0[0-9]+")
_LAST_GROUP = 3


class NumberReading(msgspec.Struct, frozen=True, kw_only=True):
    """What the texts of a column are as numbers; a text that is none is not in `values`."""

    values: Mapping[str, int | float] = {}
    unit: str = ""
    decimal: str = ""
    """The decimal sign the texts prove, `?` when they hold one that could be either, empty when they hold none."""
    note: str = ""


class _Parts(msgspec.Struct, frozen=True):
    body: str
    power: str
    is_negative: bool
    unit: str


def read_numbers(texts: Mapping[str, int], *, decimal: str) -> NumberReading:
    """Return the numbers among `texts`, each with how often it stands there; `decimal` decides where the texts leave it open."""
    if any(text[:1] == "0" and _LEADING_ZERO.fullmatch(text.strip()) for text in texts):
        return NumberReading(note="has leading zeros, so it is read as text")
    parts = {text: found for text in texts if (found := _parts(text)) is not None}
    units = sorted({found.unit for found in parts.values() if found.unit})
    if len(units) > 1:
        return NumberReading(note=f"mixes the units {', '.join(units[:5])}, so it is read as text")
    evidence = _evidence(parts, texts)
    sign = evidence if evidence in {".", ","} else decimal or "."
    values = {text: value for text, found in parts.items() if (value := _value(found, sign)) is not None}
    note = ""
    if evidence == AMBIGUOUS and not decimal:
        note = "has numbers like 1,234 or 1.234 and nothing that tells the decimal sign; a point is taken for it"
    return NumberReading(values=values, unit=units[0] if units else "", decimal=evidence, note=note)


def _parts(text: str) -> _Parts | None:
    """Return sign, digits, power and unit of a text that may be a number."""
    stripped = text.strip()
    if _PLAIN.fullmatch(stripped):
        is_negative = stripped.startswith("-")
        return _Parts(stripped[1:] if is_negative else stripped, "", is_negative, "")
    match = _NUMBER.fullmatch(stripped) if len(stripped) <= MAX_NUMBER_LENGTH else None
    if match is None or bool(match["open"]) != bool(match["close"]):
        return None
    written = [part for part in (match["before"], match["after"]) if part]
    units = [known_unit(part) for part in written]
    signs = [part for part in (match["sign"], match["inner"], match["open"], match["trailing"]) if part]
    if len(units) > 1 or not all(units) or len(signs) > 1 or (signs == ["+"] and not units):
        return None
    return _Parts(_GROUPING.sub("_", match["digits"]), match["power"] or "", bool(signs) and signs != ["+"], units[0] if units else "")


def _evidence(parts: Mapping[str, _Parts], texts: Mapping[str, int]) -> str:
    counts = Counter[str]()
    for text, found in parts.items():
        if "." in found.body or "," in found.body:
            counts[_decimal_of(found.body)] += texts[text]
    points, commas = counts["."], counts[","]
    if points or commas:
        return "." if points >= commas else ","
    return AMBIGUOUS if counts[AMBIGUOUS] else ""


def _decimal_of(body: str) -> str:
    """Return which sign must be the decimal one of a number that has a point or a comma."""
    last = max(body.rfind("."), body.rfind(","))
    sign, other = body[last], "," if body[last] == "." else "."
    if other in body:
        return sign
    if body.count(sign) > 1:
        return other
    before, after = body[:last], body[last + 1 :]
    if len(after) != _LAST_GROUP or not 1 <= len(before) <= _LAST_GROUP or before.startswith("0") or "_" in before:
        return sign
    return AMBIGUOUS


def _value(parts: _Parts, decimal: str) -> int | float | None:
    whole, _, fraction = parts.body.partition(decimal)
    groups = re.split("[.,_]", whole)
    if (fraction and not fraction.isdigit()) or not _are_groups(groups, has_fraction=bool(fraction)):
        return None
    digits = "".join(groups)
    if len(digits) + len(fraction) > MAX_DIGITS or (len(digits) > 1 and digits.startswith("0")):
        return None
    if fraction or parts.power:
        number: int | float = float(f"{digits or '0'}.{fraction or '0'}{parts.power}")
        if number == float("inf"):
            return None
    else:
        number = int(digits)
    return -number if parts.is_negative else number


def _are_groups(groups: list[str], *, has_fraction: bool) -> bool:
    """Whether digits are grouped as people do: by threes, or by twos before the last three."""
    if len(groups) == 1:
        return groups[0].isdigit() or (not groups[0] and has_fraction)
    first, *middle, last = groups
    return 1 <= len(first) <= _LAST_GROUP and len(last) == _LAST_GROUP and all(len(group) in {2, _LAST_GROUP} for group in middle)
