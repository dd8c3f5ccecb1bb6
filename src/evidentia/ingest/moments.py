"""Dates as documents write them; refuses to guess at anything but ISO 8601 and whole seconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime

LATEST_SECOND = 253_402_214_400
"""The end of the year 9999, less a day for time zones."""


def parse_moment(text: str) -> datetime | None:
    """Return the moment in UTC, or None when `text` is no ISO 8601 date or time; without a zone it is taken as UTC."""
    try:
        moment = datetime.fromisoformat(text.strip())
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def moment_of_second(second: int) -> datetime | None:
    """Return the moment `second` seconds after 1970 began, or None outside the years a datetime holds."""
    if not 0 <= second <= LATEST_SECOND:
        return None
    return datetime.fromtimestamp(second, tz=UTC)
