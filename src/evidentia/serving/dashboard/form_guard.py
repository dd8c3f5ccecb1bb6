"""What stands between a form and what it does: it comes from a page of ours, in this session, and it is not too long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from starlette.requests import Request

from evidentia.serving.operations.api_errors import FORBIDDEN, TOO_LARGE, ApiError

if TYPE_CHECKING:
    from starlette.datastructures import FormData
    from starlette.types import Message

    from evidentia.serving.identity.sessions import Session

CSRF_FIELD: Final = "csrf"
CSRF_HEADER: Final = "x-csrf-token"
MAX_FIELDS: Final = 200
_OURS: Final = ("same-origin",)
_MAX_BYTES: Final = "evidentia.most_bytes"


def require_own_origin(request: Request) -> None:
    """Refuse a form that another site sent, or that does not say which site did."""
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    is_ours = site in _OURS if site is not None else origin is not None
    if origin is not None:
        is_ours = is_ours and urlsplit(origin).netloc.lower() == request.headers.get("host", "").lower()
    if not is_ours:
        raise ApiError(FORBIDDEN, "foreign_form", "the form does not come from this dashboard", hint="open the page here and send it again")


async def require_csrf(request: Request, session: Session) -> None:
    """Refuse a form that does not carry this session's token, in a field or in a header."""
    given = request.headers.get(CSRF_HEADER)
    if given is None:
        field = (await form_of(request)).get(CSRF_FIELD)
        given = field if isinstance(field, str) else ""
    if not session.accepts(given):
        message = "the form belongs to another session, or to one that has ended"
        raise ApiError(FORBIDDEN, "foreign_form", message, hint="load the page again and send it once more")


def bounded(request: Request, *, max_bytes: int) -> Request:
    """Return the same request; reading more of its body than allowed is refused."""
    receive = request.receive
    taken = 0

    async def counted() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > max_bytes:
            message_text = f"the form is larger than {max_bytes} bytes"
            hint = "send less at once, or use the command line"
            raise ApiError(TOO_LARGE, "body_too_large", message_text, hint=hint, headers={"connection": "close"})
        return message

    request.scope[_MAX_BYTES] = max_bytes
    return Request(request.scope, counted)


async def form_of(request: Request) -> FormData:
    """Return the fields of a form, and at most one file; it is read once."""
    return await request.form(max_files=1, max_fields=MAX_FIELDS, max_part_size=int(request.scope[_MAX_BYTES]))
