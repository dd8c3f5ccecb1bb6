"""The cookies of the dashboard: the key of a session, and a message for the next page. Scripts can read neither."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from evidentia.contracts.decoding import decode_json

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from evidentia.serving.identity.sessions import Session


SESSION: Final = "evidentia_session"
FLASH: Final = "evidentia_flash"
SECURE_PREFIX: Final = "__Secure-"
"""Not `__Host-`, which is only for cookies of all paths."""
PATH: Final = "/dashboard"
FLASH_S: Final = 60
MAX_KEY_LENGTH: Final = 512
MAX_FLASH_CHARS: Final = 300


class Flash(NamedTuple):
    """A message that is shown once, on the next page."""

    kind: str
    """`done` or `problem`."""
    text: str


def key_in(request: Request) -> str:
    """Return the key of the session that a browser shows; empty without one."""
    key = request.cookies.get(_name(request, SESSION), "")
    return key if len(key) <= MAX_KEY_LENGTH else ""


def keep_key(response: Response, request: Request, key: str, *, max_age_s: int) -> None:
    """Have the browser keep the key of a session."""
    _keep(response, request, SESSION, key, max_age_s=max_age_s)


def drop_key(response: Response, request: Request) -> None:
    """Have the browser forget the key of its session, and what was left to say."""
    for name in (SESSION, FLASH):
        response.delete_cookie(_name(request, name), path=PATH, secure=_is_secure(request), httponly=True, samesite="strict")


def keep_flash(response: Response, request: Request, session: Session, flash: Flash) -> None:
    """Leave a message for the next page of this session."""
    content = msgspec.json.encode((flash.kind, flash.text[:MAX_FLASH_CHARS]))
    value = f"{base64.urlsafe_b64encode(content).decode()}.{_seal(session, content)}"
    _keep(response, request, FLASH, value, max_age_s=FLASH_S)


def flash_in(request: Request, session: Session) -> Flash | None:
    """Return the message that this session left; None for what somebody else made up."""
    text, _, seal = request.cookies.get(_name(request, FLASH), "").partition(".")
    try:
        content = base64.urlsafe_b64decode(text.encode())
        if not content or not hmac.compare_digest(_seal(session, content), seal):
            return None
        kind, said = decode_json(content, tuple[str, str])
    except (binascii.Error, ValueError, TypeError):
        return None
    return Flash(kind, said)


def drop_flash(response: Response, request: Request) -> None:
    """Have the browser forget a message that was shown."""
    response.delete_cookie(_name(request, FLASH), path=PATH, secure=_is_secure(request), httponly=True, samesite="strict")


def _seal(session: Session, content: bytes) -> str:
    """Return what shows that this session wrote a content."""
    return hmac.new(session.csrf.encode(), content, hashlib.sha256).hexdigest()


def _keep(response: Response, request: Request, name: str, value: str, *, max_age_s: int) -> None:
    response.set_cookie(
        _name(request, name), value, max_age=max_age_s, path=PATH, secure=_is_secure(request), httponly=True, samesite="strict"
    )


def _name(request: Request, name: str) -> str:
    """Return what a cookie is called: over an encrypted connection, so that nobody without one can have set it."""
    return f"{SECURE_PREFIX}{name}" if _is_secure(request) else name


def _is_secure(request: Request) -> bool:
    return request.url.scheme == "https"


# The headers of everything the dashboard sends: nothing from elsewhere, nothing inline, nothing framed, nothing kept.

CSP: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "font-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
HEADERS: Final = {
    "cache-control": "no-store",
    "content-security-policy": CSP,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    # Not `no-referrer`: browsers would then send `Origin: null` with our own forms.
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
