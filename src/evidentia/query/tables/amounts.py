"""Numbers, units and days as questions write them. Refuses what it cannot read whole: a half-read number is a wrong one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.query.tables.phrases import MONTHS, MULTIPLIERS, NUMBER_WORDS, UNITS

if TYPE_CHECKING:
    from collections.abc import Sequence

_NUMBER: Final = re.compile(r"([$€£]?)(-?\d{1,3}(?:,\d{3})+(?:\.\d+)?|-?\d+(?:\.\d+)?)(%|k|m)?", re.ASCII)
_DAY: Final = re.compile(r"(\d{4})-(\d{2})(?:-(\d{2}))?", re.ASCII)
_ORDINAL: Final = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?", re.ASCII)
_MAX_NUMBER_LENGTH: Final = 18
_FIRST_YEAR, _LAST_YEAR = 1900, 2100
_DECEMBER: Final = 12
_LENGTHS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class Amount(NamedTuple):
    """A number with its unit, and how many words it took."""

    number: int | float
    unit: str
    length: int


class Days(NamedTuple):
    """A stretch of days: the first, and the first that no longer belongs to it, in ISO 8601; and how many words it took."""

    first: str
    end: str
    length: int


def read_amount(words: Sequence[str]) -> Amount | None:
    """Return the number that the words begin with."""
    if not words:
        return None
    found = _NUMBER.fullmatch(words[0])
    if found is None:
        number: int | float | None = NUMBER_WORDS.get(words[0])
        if number is None:
            return None
        return Amount(number, "", 1)
    sign, digits, suffix = found.groups()
    if len(digits) > _MAX_NUMBER_LENGTH:
        return None
    bare = digits.replace(",", "")
    number = float(bare) if "." in bare else int(bare)
    unit = UNITS.get(sign, "")
    if suffix == "%":
        unit = "%"
    elif suffix:
        number *= MULTIPLIERS[suffix]
    length = 1
    if length < len(words) and words[length] in MULTIPLIERS and len(words[length]) > 1:
        number *= MULTIPLIERS[words[length]]
        length += 1
    return Amount(number, unit, length)


def is_year(number: object) -> bool:
    """Tell whether a number may be a year."""
    return isinstance(number, int) and _FIRST_YEAR <= number <= _LAST_YEAR


def read_days(words: Sequence[str]) -> Days | None:
    """Return the days that the words begin with: an ISO day or month, `March 2021`, `5 March 2021`, `March 5, 2021`, a year."""
    if not words:
        return None
    if found := _DAY.fullmatch(words[0]):
        year, month, day = int(found[1]), int(found[2]), int(found[3] or 0)
        return _days(year, month, day, length=1)
    first, second, third = (*words[:3], "", "")[:3]
    if first in MONTHS and _year(second):
        return _days(_year(second), MONTHS[first], 0, length=2)
    if first in MONTHS and _ORDINAL.fullmatch(second) and _year(third):
        return _days(_year(third), MONTHS[first], _ordinal(second), length=3)
    if second in MONTHS and _ORDINAL.fullmatch(first) and _year(third):
        return _days(_year(third), MONTHS[second], _ordinal(first), length=3)
    return None


def year_days(year: int) -> Days:
    """Return the days of a year."""
    return Days(f"{year:04}-01-01", f"{year + 1:04}-01-01", 1)


def _days(year: int, month: int, day: int, *, length: int) -> Days | None:
    if not 1 <= month <= _DECEMBER or day > _LENGTHS[month - 1]:
        return None
    if day:
        # The day after, without a calendar: what is later than `2021-03-05` and all its hours sorts below the next text.
        return Days(f"{year:04}-{month:02}-{day:02}", f"{year:04}-{month:02}-{day:02}T99", length)
    after = (year + 1, 1) if month == _DECEMBER else (year, month + 1)
    return Days(f"{year:04}-{month:02}-01", f"{after[0]:04}-{after[1]:02}-01", length)


def _year(word: str) -> int:
    return int(word) if word.isascii() and word.isdigit() and is_year(int(word[:9])) else 0


def _ordinal(word: str) -> int:
    found = _ORDINAL.fullmatch(word)
    return int(found[1]) if found else 0
