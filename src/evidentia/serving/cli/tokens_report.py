"""Tokens as text: who holds them, as what, and whether they still hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.serving.cli.durations import NEVER
from evidentia.serving.cli.output import put_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from evidentia.contracts.control import TokenInfo


def put_tokens(tokens: Sequence[TokenInfo], *, now: datetime) -> None:
    """Print a table of tokens in the order they have."""
    rows = [
        (
            each.token_id,
            each.tenant,
            ", ".join(each.roles),
            f"{each.created_at:%Y-%m-%d %H:%M}",
            _expiry(each),
            _state(each, now),
            each.name,
        )
        for each in tokens
    ]
    put_table(("id", "tenant", "roles", "made", "expires", "state", "name"), rows)


def _expiry(token: TokenInfo) -> str:
    return NEVER if token.expires_at is None else f"{token.expires_at:%Y-%m-%d %H:%M}"


def _state(token: TokenInfo, now: datetime) -> str:
    if token.revoked_at is not None:
        return "revoked"
    return "expired" if token.expires_at is not None and token.expires_at <= now else "valid"
