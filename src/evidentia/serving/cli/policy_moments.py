"""Moments as they are typed: a date, a time, or a span that ends now."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from evidentia.contracts.errors import InvalidFieldError
from evidentia.serving.cli.durations import MAX_SHOWN, seconds_of

if TYPE_CHECKING:
    from evidentia.contracts.ports import Clock


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
