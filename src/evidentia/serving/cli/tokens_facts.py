"""What is typed about the holder of a token, checked word by word: clearance, groups, attributes and limits."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.control import NAME_PATTERN, Role, TokenFacts, TokenLimits
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.vocabulary import Classification

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_NAME_LENGTH = 200
_TYPED = {"groups": "group", "limits.requests_per_minute": "rate", "limits.requests_per_day": "quota"}
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
    *, clearance: str | None, groups: Sequence[str], attributes: Sequence[str], is_delegate: bool, rate: int | None, quota: int | None
) -> TokenFacts:
    """Return what was typed as facts; what was not typed stays as it is for every token."""
    given = TokenFacts(
        clearance=_clearance(clearance),
        groups=tuple(sorted(set(groups))),
        attributes=_attributes(attributes),
        is_delegate=is_delegate,
        limits=TokenLimits(requests_per_minute=rate, requests_per_day=quota),
    )
    try:
        return msgspec.convert(msgspec.to_builtins(given), TokenFacts)
    except msgspec.ValidationError as error:
        problem, _, where = str(error).partition(" - at `$.")
        field = where.removesuffix("`").partition("[")[0]
        raise InvalidFieldError(_TYPED.get(field, field), problem[:1].lower() + problem[1:]) from error


def _clearance(word: str | None) -> Classification:
    if word is None:
        return TokenFacts().clearance
    if word not in Classification.words():
        raise InvalidFieldError("clearance", f"'{word}' is none of {', '.join(Classification.words())}")
    return Classification(word)


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
