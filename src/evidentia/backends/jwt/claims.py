"""What a verified token claims, as a token of the base: who, where, as what, until when. What is not as agreed is not believed."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from evidentia.contracts.control import NAME_PATTERN, SIGNED_PREFIX, Role, TokenFacts, TokenId, TokenInfo
from evidentia.contracts.vocabulary import Classification

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evidentia.contracts.settings import JwtSettings

MAX_NAME_LENGTH: Final = 190
MAX_WORDS: Final = 1_000
MAX_WORD_LENGTH: Final = 200
_LATEST: Final = 253_402_300_799
"""The last second of the year 9999."""
_ID_DIGITS: Final = 24


class ClaimError(ValueError):
    """A claim is missing, or not as agreed; the message names it and never quotes it."""


def token_of(claims: Mapping[str, Any], settings: JwtSettings, *, now: datetime) -> TokenInfo:  # Any: whatever the provider signed
    """Return the token that claims stand for, or raise ClaimError.

    Its id is that of its holder and not of the paper: a new token of the same holder has the same limits.
    """
    _check_address(claims, settings)
    issued_at, expires_at = _check_time(claims, settings, now=now)
    name = _text(claims, settings.principal_claim)
    if len(name) > MAX_NAME_LENGTH or not name.isprintable() or not name.strip():
        raise ClaimError(settings.principal_claim)
    tenant = _text(claims, settings.tenant_claim)
    if not re.fullmatch(NAME_PATTERN, tenant):
        raise ClaimError(settings.tenant_claim)
    words = _words(claims, settings.roles_claim)
    return TokenInfo(
        token_id=_holder_id(settings.issuer, tenant, name),
        name=f"{SIGNED_PREFIX}{name}",
        roles=tuple(role for role in Role if role.value in words),
        tenant=tenant,
        created_at=now if issued_at is None else datetime.fromtimestamp(issued_at, UTC),
        created_by=settings.issuer,
        expires_at=datetime.fromtimestamp(expires_at, UTC),
        facts=TokenFacts(clearance=_clearance(claims, settings.clearance_claim), groups=_words(claims, settings.groups_claim)),
    )


def _check_address(claims: Mapping[str, Any], settings: JwtSettings) -> None:
    if claims.get("iss") != settings.issuer:
        raise ClaimError("iss")
    audience = claims.get("aud")
    if settings.audience not in (audience if isinstance(audience, list) else [audience]):
        raise ClaimError("aud")


def _check_time(claims: Mapping[str, Any], settings: JwtSettings, *, now: datetime) -> tuple[int | None, int]:
    """Return when a token was issued and when it expires, in seconds."""
    present, leeway = int(now.timestamp()), settings.leeway_s
    expires_at = _moment(claims, "exp")
    if expires_at is None or present >= expires_at + leeway:
        raise ClaimError("exp")
    not_before = _moment(claims, "nbf")
    if not_before is not None and present + leeway < not_before:
        raise ClaimError("nbf")
    issued_at = _moment(claims, "iat")
    if issued_at is not None and present + leeway < issued_at:
        raise ClaimError("iat")
    return issued_at, expires_at


def _moment(claims: Mapping[str, Any], name: str) -> int | None:
    """Return a NumericDate (RFC 7519, 2) in whole seconds; None when it is not claimed."""
    value = claims.get(name)
    if name not in claims:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LATEST:
        raise ClaimError(name)
    return int(value)


def _text(claims: Mapping[str, Any], name: str) -> str:
    value = claims.get(name)
    if not isinstance(value, str) or not value:
        raise ClaimError(name)
    return value


def _words(claims: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return a list of words; one word may stand without a list, and no claim is no word."""
    value = claims.get(name, [])
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or len(words) > MAX_WORDS:
        raise ClaimError(name)
    if not all(isinstance(word, str) and 0 < len(word) <= MAX_WORD_LENGTH for word in words):
        raise ClaimError(name)
    return tuple(sorted(set(words)))


def _clearance(claims: Mapping[str, Any], name: str) -> Classification:
    value = claims.get(name, Classification.PUBLIC.value)
    if not isinstance(value, str) or value not in Classification.words():
        raise ClaimError(name)
    return Classification(value)


def _holder_id(*parts: str) -> TokenId:
    hashed = hashlib.sha256()
    for part in parts:
        encoded = part.encode(errors="surrogatepass")
        hashed.update(len(encoded).to_bytes(8) + encoded)
    return TokenId(f"{SIGNED_PREFIX}{hashed.hexdigest()[:_ID_DIGITS]}")
