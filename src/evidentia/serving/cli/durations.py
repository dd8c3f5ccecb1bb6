"""Spans of time as they are typed and shown: `90s`, `15m`, `24h`, `7d`, or a plain number of seconds."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from evidentia.contracts.errors import InvalidFieldError

if TYPE_CHECKING:
    from evidentia.contracts.ports import Clock


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


# Moments as they are typed: a date, a time, or a span that ends now.


def moment_of(text: str, clock: Clock, *, field: str) -> datetime:
    """Return the moment that is meant; without a zone it is UTC."""
    with suppress(ValueError):
        typed = datetime.fromisoformat(text.strip())
        return typed if typed.tzinfo else typed.replace(tzinfo=UTC)
    try:
        return clock.now() - timedelta(seconds=seconds_of(text, field=field))
    except InvalidFieldError as error:
        shown = text[:MAX_SHOWN]
        raise InvalidFieldError(field, f"'{shown}' is neither a date such as 2026-03-01 nor a span such as 24h or 7d") from error


def since_us(text: str | None, clock: Clock) -> int | None:
    """Return a beginning in microseconds since 1970; None when none was typed."""
    return None if text is None else round(moment_of(text, clock, field="since").timestamp() * 1_000_000)
