"""Numbers written as text: grouping, decimal signs, currencies, percent signs and units, decided for a column as a whole.

Refuses to read an id as a number: leading zeros and more digits than a number keeps exactly make the column text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

import msgspec

from evidentia.ingest.tables.units import known_unit

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
