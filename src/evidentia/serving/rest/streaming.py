"""An answer that comes in parts: one JSON object a line, or server-sent events for who asks for those.

What goes wrong before the first part is an ordinary refusal; afterwards it is the last part, named `error`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.responses import StreamingResponse

from evidentia.contracts.control import FaultReply
from evidentia.serving.operations.api_errors import ApiError
from evidentia.serving.operations.performing import perform_stream
from evidentia.serving.rest.responding import HEADERS, encode

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from evidentia.serving.operations.endpoint import Endpoint, OperationRequest
    from evidentia.serving.operations.server_context import ServerContext

LINES: Final = "application/x-ndjson"
EVENTS: Final = "text/event-stream"


async def streamed(context: ServerContext, endpoint: Endpoint, ask: Callable[[], OperationRequest], request: Request) -> Response:
    """Return the reply that sends each part as it comes."""
    is_events = EVENTS in request.headers.get("accept", "")
    parts = perform_stream(context, endpoint, ask)
    first = await anext(parts, None)
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


def _line(content: bytes) -> bytes:
    return content + b"\n"


def _event(content: bytes) -> bytes:
    return b"data: " + content + b"\n\n"


def _plain(refusal: ApiError) -> dict[str, object]:
    return {"error": FaultReply(error=refusal.fault).error}
