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
            each.facts.clearance,
            _facts(each),
            f"{each.created_at:%Y-%m-%d %H:%M}",
            _expiry(each),
            _state(each, now),
            each.name,
        )
        for each in tokens
    ]
    put_table(("id", "tenant", "roles", "clearance", "facts", "made", "expires", "state", "name"), rows)


def _facts(token: TokenInfo) -> str:
    """Return what else is true of a token's holder, in a few words."""
    facts, limits = token.facts, token.facts.limits
    told = [
        *(f"group {group}" for group in facts.groups),
        *(f"{name}={value}" for name, value in sorted(facts.attributes.items())),
        *(["delegate"] if facts.is_delegate else []),
        *([f"{limits.requests_per_minute}/min"] if limits.requests_per_minute else []),
        *([f"{limits.requests_per_day}/day"] if limits.requests_per_day else []),
    ]
    return ", ".join(told) or NEVER


def _expiry(token: TokenInfo) -> str:
    return NEVER if token.expires_at is None else f"{token.expires_at:%Y-%m-%d %H:%M}"


def _state(token: TokenInfo, now: datetime) -> str:
    if token.revoked_at is not None:
        return "revoked"
    return "expired" if token.expires_at is not None and token.expires_at <= now else "valid"
