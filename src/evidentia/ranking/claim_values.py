"""Values of claims: where one stands in a sentence, and when two of them are the same. Converts only what converts exactly.

Values are compared within a *dimension*: durations up to weeks, months and years, bytes, percentages, money of one currency, dates,
times of day, versions, plain numbers, flags, words. 90 days and 3 months are not comparable, nor is a number without a unit to one that
has it.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final, NamedTuple

_MILLISECONDS: Final = {
    **dict.fromkeys(("ms", "msec", "millis", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1_000),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
    **dict.fromkeys(("w", "week", "weeks"), 604_800_000),
}
_MONTHS: Final = {"month": 1, "months": 1, "year": 12, "years": 12}
_BYTES: Final = {
    name: level for level, letter in enumerate("kmgtp", start=1) for name in (f"{letter}b", f"{letter}ib", letter, f"{letter}i")
}
_BYTE_WORDS: Final = {"byte": 0, "bytes": 0, "kilobytes": 1, "megabytes": 2, "gigabytes": 3, "terabytes": 4}
_PERCENT: Final = ("%", "percent")
_CURRENCIES: Final = {"$": "usd", "\u20ac": "eur", "\u00a3": "gbp", "\u00a5": "jpy"}
_CURRENCY_CODES: Final = ("usd", "eur", "gbp", "chf", "jpy", "dollars", "euros", "euro", "pounds")
_CURRENCY_WORDS: Final = {"dollars": "usd", "euros": "eur", "euro": "eur", "pounds": "gbp"}
_MONTH_NAMES: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_FLAGS: Final = {
    **dict.fromkeys(("true", "yes", "on", "enabled"), "true"),
    **dict.fromkeys(("false", "no", "off", "disabled"), "false"),
}
_NO_VALUES: Final = frozenset(
    "none null nil n/a na tbd tba unknown varies various todo see below above default auto changeme example optional required string "  # noqa: SIM905 - a list of words reads as words
    "integer number boolean float here - -- ... pending other mixed multiple".split()
)
_MAX_DIGITS: Final = 18
_THOUSAND: Final = (1024, 1000)
_TOP_LEVEL: Final = 6
_WORD_VALUE: Final = re.compile(r"[\w.@/+:~-]+(?: [\w.@/+-]+){0,2}")
_RANGE: Final = re.compile(r"[\d.]+[\w%]*[/~:+-]+[\d.]+[\w%]*")
_ALTERNATIVE: Final = re.compile(r"\b(?:or|and|to|per|see|if|the|is|are)\b", re.IGNORECASE)

_NAMED_MONTH: Final = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_SPACED_UNITS: Final = (
    r"ms|msecs?|millis|milliseconds?|s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?|days?|weeks?|months?|years?|[kmgtp]i?b|bytes?"
    r"|(?:kilo|mega|giga|tera)bytes|%|percent|usd|eur|gbp|chf|jpy|dollars|euros?|pounds"
)
_VALUE: Final = re.compile(
    rf"""(?<![\w.,:/\#@+\\\u2013-])(?:
      (?P<iso>\d{{4}}-\d\d-\d\d)
    | (?P<clock>\d{{1,2}}:\d\d)
    | (?P<day>\d{{1,2}})(?:st|[nr]d|th)?\ (?:of\ )?(?P<month>{_NAMED_MONTH})\.?,?\ (?P<year>\d{{4}})
    | (?P<us_month>{_NAMED_MONTH})\.?\ (?P<us_day>\d{{1,2}})(?:st|[nr]d|th)?,?\ (?P<us_year>\d{{4}})
    | (?P<currency>[$€£¥]\ ?|(?:usd|eur|gbp|chf|jpy)\ )?(?:v(?=\d+\.))?(?P<number>\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d+(?:\.\d+)*)
      (?:(?P<unit>[smhdwkgt]|[kmgtp]i)|[\ -]?(?P<spaced>{_SPACED_UNITS}))?
    )(?![\w/%]|[.,:\u2013-]\d|-\w)""",
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_DIGIT: Final = re.compile("[0-9]")
_JOINED: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,:/#@+\\\u2013-")
"""What a number is no value behind, as the pattern says too."""
_SHORT_LEADS: Final = frozenset(("$", "\u20ac", "\u00a3", "\u00a5", "v", "V"))
_NUMBERED: Final = frozenset(("severity", "sev", "priority", "tier", "level", "class", "grade", "zone"))
_LEAD_WORDS: Final = frozenset((*_MONTH_NAMES, *_CURRENCIES, "usd", "eur", "gbp", "chf", "jpy"))


class Value(NamedTuple):
    """A value in one spelling; two of the same dimension are the same if and only if their texts are."""

    dimension: str
    text: str


def find_value(text: str) -> re.Match[str] | None:
    """Return where the only value of a sentence stands; None when there is none or more than one, as in lists and ranges."""
    found = _find_next(text, 0)
    if found is None or _find_next(text, found.end()) is not None:
        return None
    return found


def _find_next(text: str, start: int) -> re.Match[str] | None:
    """Try the pattern only where a number begins: searching with it is slow."""
    digit = _DIGIT.search(text, start)
    while digit is not None:
        place = digit.start()
        before = text[place - 1] if place else ""
        if before == " ":
            found = _match_after_space(text, start, place)
        elif before in _SHORT_LEADS:
            found = _VALUE.match(text, max(start, place - 1)) or _VALUE.match(text, place)
        else:
            found = None if before in _JOINED else _VALUE.match(text, place)
        if found is not None:
            return found
        following = text.find(" ", place)
        digit = _DIGIT.search(text, following) if following >= 0 else None
    return None


def _match_after_space(text: str, start: int, digit: int) -> re.Match[str] | None:
    """Match a value at its first digit, or with the currency or month before it; None when it numbers a name."""
    word = text.rfind(" ", 0, digit - 1) + 1
    last = text[word : digit - 1].lower()
    if last in _NUMBERED:
        return None
    with_lead = _VALUE.match(text, max(start, word)) if last[:3] in _LEAD_WORDS else None
    return with_lead or _VALUE.match(text, digit)


def is_unit(word: str) -> bool:
    """Say whether a word at the end of a name gives the unit of its value, as in `timeout_ms`."""
    return len(word) > 1 and word in _UNIT_NAMES


def read_value(text: str, *, unit: str = "") -> Value | None:
    """Return a short text as a value, a bare number with the unit its name gave; None when it says nothing definite."""
    bare = " ".join(text.split()).lower()
    found = _VALUE.fullmatch(text.strip())
    if found is not None:
        return _read_quantity(found, unit=unit)
    if bare in _FLAGS:
        return Value("flag", _FLAGS[bare])
    is_unclear = _RANGE.fullmatch(bare) is not None or (" " in bare and _DIGIT.search(bare) is not None)
    if is_unclear or bare in _NO_VALUES or _WORD_VALUE.fullmatch(bare) is None or _ALTERNATIVE.search(bare):
        return None
    return Value("word", bare)


def _read_quantity(found: re.Match[str], *, unit: str) -> Value | None:
    parts = found.groupdict()
    if parts["iso"]:
        return Value("date", parts["iso"])
    if parts["clock"]:
        return Value("clock", parts["clock"].rjust(5, "0"))
    if parts["number"] is None:
        return _read_date(parts["day"] or parts["us_day"], parts["month"] or parts["us_month"], parts["year"] or parts["us_year"])
    digits = parts["number"].replace(",", "")
    if len(digits) > _MAX_DIGITS:
        return None
    currency = (parts["currency"] or "").strip().lower()
    if digits.count(".") > 1 or found[0][:1] in "vV":
        return Value("version", digits)
    spelt = parts["unit"] or parts["spaced"] or ""
    # Glued capitals are sizes (512M), glued small letters times (30m).
    name = f"{spelt}b" if parts["unit"] and spelt in {"K", "M", "G", "T"} else spelt
    return _measure(Decimal(digits), (name or unit).lower(), currency=_CURRENCIES.get(currency, currency))


def _measure(number: Decimal, unit: str, *, currency: str) -> Value | None:
    if currency:
        return None if unit else Value(f"money {currency}", _spell(number))
    if unit in _MILLISECONDS:
        return Value("duration", _spell(number * _MILLISECONDS[unit]))
    if unit in _MONTHS:
        return Value("months", _spell(number * _MONTHS[unit]))
    if unit in _BYTE_WORDS or unit in _BYTES:
        return Value("bytes", _spell_bytes(number, _BYTE_WORDS.get(unit, _BYTES.get(unit, 0))))
    if unit in _CURRENCY_CODES:
        return Value(f"money {_CURRENCY_WORDS.get(unit, unit)}", _spell(number))
    return Value("percent" if unit in _PERCENT else "number", _spell(number))


def _spell(number: Decimal) -> str:
    return f"{number.normalize():f}"


def _spell_bytes(number: Decimal, level: int) -> str:
    """Return the size in its largest whole unit, reading 1000 and 1024 alike: nobody can tell which one a document means."""
    while number % 1 and level:
        number, level = number * 1024, level - 1
    while number and level < _TOP_LEVEL and any(number % thousand == 0 for thousand in _THOUSAND):
        number /= 1024 if number % 1024 == 0 else 1000
        level += 1
    return f"{_spell(number)} {level}"


def _read_date(day: str, month: str, year: str) -> Value:
    number = _MONTH_NAMES.index(month[:3].lower()) + 1
    return Value("date", f"{year}-{number:02}-{int(day):02}")


_UNIT_NAMES: Final = frozenset([*_MILLISECONDS, *_MONTHS, *_BYTES, *_BYTE_WORDS, *_PERCENT, *_CURRENCY_CODES]) - {"min", "k", "m", "g"}
