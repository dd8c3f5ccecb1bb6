"""Numbers with their units, in one spelling: 1.5 million, 1,500,000 and 1500000 are the same. Digits inside a name are no number."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.grounding.lexicon import CURRENCY_SIGNS, MAGNITUDES, NUMBER_WORDS, UNITS

if TYPE_CHECKING:
    from collections.abc import Sequence

_NUMBER: Final = re.compile(r"[0-9]{1,18}(?:[.,][0-9]{1,18}){0,8}")
_LETTER: Final = re.compile(r"[^\W\d_]")
_HALF: Final = "5"


class Quantity(NamedTuple):
    """A number as it counts, and its unit where one stands beside it."""

    number: str
    unit: str


def quantities_in(piece: str) -> tuple[Quantity, ...]:
    """Return the numbers of a piece of text without white space: `5mg` and `10-20%` have some, `IL-6` has none."""
    spelt = NUMBER_WORDS.get(piece.lower())
    if spelt is not None:
        return (Quantity(spelt, ""),)
    first = _LETTER.search(piece)
    end = first.start() if first else len(piece)
    return tuple(_quantity(piece, found) for found in _NUMBER.finditer(piece) if found.start() < end)


def unit_of(piece: str) -> str:
    """Return the unit that a piece of text is behind a number; empty when it is none."""
    return UNITS.get(piece.lower(), "")


def join(words: Sequence[tuple[tuple[Quantity, ...], str]]) -> list[Quantity]:
    """Return the numbers of a text, given those of each word and the unit it is: a number takes the unit behind it."""
    found: list[Quantity] = []
    for place, (own, _) in enumerate(words):
        if own:
            following = words[place + 1][1] if place + 1 < len(words) else ""
            found += own[:-1]
            found.append(_counted(own[-1], following))
    return found


def rounded(number: str) -> str:
    """Return a decimal as the whole number that a claim may give in its place."""
    whole, point, part = number.partition(".")
    if not point or not whole.isascii() or not whole.isdigit():
        return number
    return str(int(whole) + (part[:1] >= _HALF))


def _quantity(piece: str, found: re.Match[str]) -> Quantity:
    number = found[0].replace(",", "")
    number = (number.lstrip("0") or "0") if "." not in number else number
    sign = CURRENCY_SIGNS.get(piece[found.start() - 1 : found.start()], "") if found.start() else ""
    return Quantity(number, sign or unit_of(piece[found.end() :]))


def _counted(quantity: Quantity, following: str) -> Quantity:
    """Return a number in digits, with the magnitude and the unit that it is written with."""
    number, unit = quantity
    magnitude = next((name for name in (unit, following) if name in MAGNITUDES), "")
    if not magnitude:
        return Quantity(number, unit or following)
    zeros = MAGNITUDES[magnitude]
    whole, _, part = number.partition(".")
    if len(part) > zeros or "." in part:
        return Quantity(number, unit or following)
    return Quantity((whole + part.ljust(zeros, "0")).lstrip("0") or "0", "" if unit == magnitude else unit)
