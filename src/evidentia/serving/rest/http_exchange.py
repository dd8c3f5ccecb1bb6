"""An answer that comes in parts: one JSON object a line, or server-sent events for who asks for those.

What goes wrong before the first part is an ordinary refusal; afterwards it is the last part, named `error`.
"""

from __future__ import annotations

import asyncio
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Final

import msgspec
from starlette.responses import Response, StreamingResponse

from evidentia.contracts.control import FaultReply
from evidentia.serving.operations.api_errors import WRONG_TYPE, ApiError, too_large
from evidentia.serving.operations.execution import perform_stream, unless_left

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
    from contextlib import AbstractContextManager

    from starlette.requests import Request

    from evidentia.serving.identity.pools import Holding
    from evidentia.serving.operations.endpoint import Endpoint, OperationRequest
    from evidentia.serving.operations.server_context import ServerContext


LINES: Final = "application/x-ndjson"
EVENTS: Final = "text/event-stream"
_NO_PLACE: Final = nullcontext()


async def streamed(
    context: ServerContext,
    endpoint: Endpoint,
    read: Callable[[], OperationRequest],
    request: Request,
    *,
    place: AbstractContextManager[object] = _NO_PLACE,
    left: asyncio.Future[None] | None = None,
) -> Response:
    """Return the reply that sends each part as it comes; `place` is held until the last one.

    Who has `left` before the first part ends it, and later the server sees to that.
    """
    is_events = EVENTS in request.headers.get("accept", "")
    parts = _held(place, perform_stream(context, endpoint, read))
    first = await (anext(parts, None) if left is None else unless_left(anext(parts, None), left))
    shown = _event if is_events else _line

    async def content() -> AsyncGenerator[bytes, None]:
        try:
            if first is not None:
                yield shown(encode(first))
            async for part in parts:
                yield shown(encode(part))
        except ApiError as refusal:
            yield shown(encode({"event": "error", **_plain(refusal)}))
        finally:
            await parts.aclose()

    return StreamingResponse(content(), media_type=EVENTS if is_events else LINES, headers=HEADERS)


async def _held(place: AbstractContextManager[object], parts: AsyncGenerator[object, None]) -> AsyncGenerator[object, None]:
    with place:
        try:
            async for part in parts:
                yield part
        finally:
            await parts.aclose()


def _line(content: bytes) -> bytes:
    return content + b"\n"


def _event(content: bytes) -> bytes:
    return b"data: " + content + b"\n\n"


def _plain(refusal: ApiError) -> dict[str, object]:
    return {"error": FaultReply(error=refusal.fault).error}


# --- receiving ---
# The body of an HTTP request, bounded while it is read.

MAX_THROWN_AWAY: Final = 8
"""How many times the most a body may have is thrown away before the connection is closed."""
PATIENCE_S: Final = 2
_JSON: Final = "application/json"


async def read_body(request: Request, *, max_bytes: int, body: Holding) -> bytes:
    """Return the body of a request; more than is allowed is refused before it is read whole. `body` counts what is held of it."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if kind != _JSON or encoding != "identity":
        message = "the body is not plain application/json"
        raise ApiError(WRONG_TYPE, "unsupported_media_type", message, hint=f"send JSON with 'content-type: {_JSON}', uncompressed")
    parts = bytearray()
    stream = request.stream()
    async for part in stream:
        body.grow(len(part))
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


# --- responding ---
# What goes back over HTTP: JSON with headers that keep it to whoever asked.

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
