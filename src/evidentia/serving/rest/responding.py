"""What goes back over HTTP: JSON with headers that keep it to whoever asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from starlette.responses import Response

from evidentia.contracts.control import FaultReply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evidentia.serving.operations.api_errors import ApiError

HEADERS: Final = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
encode = msgspec.json.Encoder().encode


def json_response(status: int, content: bytes, headers: Mapping[str, str]) -> Response:
    """Return a reply of JSON."""
    return Response(content, status, headers={**HEADERS, **headers}, media_type="application/json")


def refused(refusal: ApiError) -> Response:
    """Return the reply of a refusal."""
    return json_response(refusal.status, encode(FaultReply(error=refusal.fault)), refusal.headers)
