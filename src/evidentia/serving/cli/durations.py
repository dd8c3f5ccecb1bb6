"""Spans of time as they are typed and shown: `90s`, `15m`, `24h`, `7d`, or a plain number of seconds."""

from __future__ import annotations

import re

from evidentia.contracts.errors import InvalidFieldError

UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
MAX_DURATION_S = 100 * 366 * UNITS["d"]
"""A century; longer spans are typing mistakes, and no date could be counted from them."""
NEVER = "-"
MAX_SHOWN = 40
_TYPED = re.compile(r"(?P<number>[0-9]{1,12})(?P<unit>[smhd]?)")
_AGES = ((120, 1, "s"), (7_200, 60, "min"), (172_800, 3_600, "h"))
"""Up to which age in seconds, which unit is counted; beyond, days are."""


def seconds_of(text: str, *, field: str) -> int:
    """Return a span in seconds, or name what cannot be read."""
    found = _TYPED.fullmatch(text.strip().lower())
    if found is None:
        raise InvalidFieldError(field, f"'{text[:MAX_SHOWN]}' is not a span of time such as 90s, 15m, 24h or 7d")
    seconds = int(found["number"]) * UNITS[found["unit"] or "s"]
    if seconds > MAX_DURATION_S:
        raise InvalidFieldError(field, f"'{text[:MAX_SHOWN]}' is longer than 100 years")
    return seconds


def span_of(seconds: int | None) -> str:
    """Return a span in the largest unit that divides it, exactly as it could be typed."""
    if seconds is None:
        return NEVER
    unit = next((unit for unit in ("d", "h", "m") if seconds and not seconds % UNITS[unit]), "s")
    return f"{seconds // UNITS[unit]}{unit}"


def age_in_words(seconds: int | None) -> str:
    """Return an age in one unit, rounded down."""
    if seconds is None:
        return "unknown"
    size, name = next(((size, name) for bound, size, name in _AGES if seconds < bound), (UNITS["d"], "d"))
    return f"{seconds // size} {name}"
