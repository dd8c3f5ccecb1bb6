"""The body of an HTTP request, bounded while it is read."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from evidentia.serving.operations.api_errors import WRONG_TYPE, ApiError, too_large

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request

MAX_THROWN_AWAY: Final = 8
"""How many times the most a body may have is thrown away before the connection is closed."""
PATIENCE_S: Final = 2
_JSON: Final = "application/json"


async def read_body(request: Request, *, max_bytes: int) -> bytes:
    """Return the body of a request; more than is allowed is refused before it is read whole."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if kind != _JSON or encoding != "identity":
        message = "the body is not plain application/json"
        raise ApiError(WRONG_TYPE, "unsupported_media_type", message, hint=f"send JSON with 'content-type: {_JSON}', uncompressed")
    parts = bytearray()
    stream = request.stream()
    async for part in stream:
        parts += part
        if len(parts) > max_bytes:
            await _let_finish(stream, max_bytes=max_bytes)
            raise too_large("body is", max_bytes=max_bytes, headers={"connection": "close"})
    return bytes(parts)


async def _let_finish(stream: AsyncIterator[bytes], *, max_bytes: int) -> None:
    """Throw away some more of what comes: a client that is still sending when the connection closes never reads the answer."""
    left = MAX_THROWN_AWAY * max_bytes
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE_S):
            async for part in stream:
                left -= len(part)
                if left < 0:
                    return
