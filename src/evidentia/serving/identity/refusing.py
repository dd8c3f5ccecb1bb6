"""A refusal as an HTTP response, for what stands in front of every door."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from starlette.responses import Response

from evidentia.contracts.control import FaultReply

if TYPE_CHECKING:
    from evidentia.serving.operations.api_errors import ApiError


def refusal_response(refusal: ApiError) -> Response:
    """Return the response that tells a refusal; nobody keeps it."""
    body = msgspec.json.encode(FaultReply(error=refusal.fault))
    headers = {"cache-control": "no-store", "x-content-type-options": "nosniff", **refusal.headers}
    return Response(body, status_code=refusal.status, media_type="application/json", headers=headers)
