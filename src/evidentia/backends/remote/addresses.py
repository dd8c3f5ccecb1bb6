"""Addresses of another Evidentia, as somebody wrote them."""

from __future__ import annotations

from urllib.parse import urlsplit

from evidentia.contracts.errors import InvalidFieldError


def checked_parts(address: str, *, field: str, unfit: str, telling: str) -> tuple[str, str]:
    """Return scheme and host; an address that carries a secret is refused, since addresses are shown and logged.

    `unfit` and `telling` say what to do about an address that is none, and about one that carries a secret.
    """
    try:
        parts = urlsplit(address)
        is_plain = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_plain = False
    if not is_plain or not address.isascii() or not address.isprintable() or " " in address:
        raise InvalidFieldError(field, unfit)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise InvalidFieldError(field, telling)
    return parts.scheme, parts.hostname or ""
