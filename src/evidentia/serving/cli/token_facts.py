"""What is typed about the holder of a token, checked word by word: clearance, groups, attributes and limits."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

import msgspec

from evidentia.contracts.control import NAME_PATTERN, Role, TokenFacts, TokenInfo, TokenLimits
from evidentia.contracts.decoding import convert
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.shapes import shape_fault
from evidentia.contracts.vocabulary import Classification, GovernanceMode, Vocabulary
from evidentia.serving.cli.durations import NEVER
from evidentia.serving.cli.output import put_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime


Word = TypeVar("Word", bound=Vocabulary)

MAX_NAME_LENGTH = 200
_TYPED = {"groups": "group", "agents": "agent", "limits.requests_per_minute": "rate", "limits.requests_per_day": "quota"}
"""What a field of the facts is called on the command line."""


def roles_from(words: Sequence[str]) -> tuple[Role, ...]:
    """Return the roles that words name."""
    for word in words:
        if word not in Role.words():
            raise InvalidFieldError("role", f"'{word}' is none of {', '.join(Role.words())}")
    return tuple(Role(word) for word in words)


def checked_name(name: str) -> str:
    """Return a name that a token can have."""
    if not name.strip() or len(name) > MAX_NAME_LENGTH:
        raise InvalidFieldError("name", f"write between 1 and {MAX_NAME_LENGTH} characters")
    return name


def checked_tenant(tenant: str) -> str:
    """Return a name that a tenant can have."""
    if not re.fullmatch(NAME_PATTERN, tenant):
        raise InvalidFieldError("tenant", "use at most 128 letters, digits and . _ : -, beginning with a letter or digit")
    return tenant


def facts_from(
    *,
    clearance: str | None,
    groups: Sequence[str],
    attributes: Sequence[str],
    is_delegate: bool,
    rate: int | None,
    quota: int | None,
    floor: str | None = None,
    agents: Sequence[str] = (),
) -> TokenFacts:
    """Return what was typed as facts; what was not typed stays as it is for every token."""
    given = TokenFacts(
        clearance=_word(Classification, clearance, field="clearance", default=TokenFacts().clearance),
        groups=tuple(sorted(set(groups))),
        attributes=_attributes(attributes),
        is_delegate=is_delegate,
        limits=TokenLimits(requests_per_minute=rate, requests_per_day=quota),
        floor=_word(GovernanceMode, floor, field="floor", default=TokenFacts().floor),
        agents=tuple(dict.fromkeys(agents)),
    )
    try:
        return convert(msgspec.to_builtins(given), TokenFacts)
    except msgspec.ValidationError as error:
        place, problem = shape_fault(error, TokenFacts)
        field = place.partition("[")[0]
        raise InvalidFieldError(_TYPED.get(field, field), problem) from error


def _word(words: type[Word], typed: str | None, *, field: str, default: Word) -> Word:
    if typed is None:
        return default
    if typed not in words.words():
        raise InvalidFieldError(field, f"'{typed}' is none of {', '.join(words.words())}")
    return words(typed)


def _attributes(typed: Sequence[str]) -> dict[str, str]:
    read: dict[str, str] = {}
    for pair in typed:
        name, sign, value = pair.partition("=")
        if not sign or not name or not value:
            raise InvalidFieldError("attribute", f"'{pair}' is not of the form NAME=VALUE")
        if name in read:
            raise InvalidFieldError("attribute", f"'{name}' is given a second time")
        read[name] = value
    return dict(sorted(read.items()))


# Tokens as text: who holds them, as what, and whether they still hold.


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
        *([f"floor {facts.floor}"] if facts.floor.rank else []),
        *(f"agent {agent}" for agent in facts.agents),
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
