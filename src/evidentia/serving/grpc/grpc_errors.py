"""A refusal as gRPC says it: a status code, the message, and the whole fault as JSON in the trailing metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn

import grpc
import msgspec

from evidentia.serving.operations.api_errors import (
    BAD_GATEWAY,
    CHANGED,
    CONFLICT,
    FORBIDDEN,
    INTERNAL,
    MALFORMED,
    NOT_FOUND,
    TOO_LARGE,
    TOO_MANY,
    UNAUTHORIZED,
    UNAVAILABLE,
    UNPROCESSABLE,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evidentia.serving.operations.api_errors import ApiError

    Context = grpc.aio.ServicerContext[Any, Any]  # Any: the messages of whichever method

FAULT: Final = "evidentia-fault-bin"
"""Where the fault stands: JSON of `Fault`, the same as in the body of a refusal over HTTP."""
RETRY_AFTER: Final = "retry-after"
CODES: Final[Mapping[int, grpc.StatusCode]] = {
    MALFORMED: grpc.StatusCode.INVALID_ARGUMENT,
    UNAUTHORIZED: grpc.StatusCode.UNAUTHENTICATED,
    FORBIDDEN: grpc.StatusCode.PERMISSION_DENIED,
    NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    CONFLICT: grpc.StatusCode.FAILED_PRECONDITION,
    CHANGED: grpc.StatusCode.ABORTED,
    TOO_LARGE: grpc.StatusCode.RESOURCE_EXHAUSTED,
    UNPROCESSABLE: grpc.StatusCode.INVALID_ARGUMENT,
    TOO_MANY: grpc.StatusCode.RESOURCE_EXHAUSTED,
    INTERNAL: grpc.StatusCode.INTERNAL,
    BAD_GATEWAY: grpc.StatusCode.UNAVAILABLE,
    UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
}
"""By the status that the same refusal has over HTTP."""


async def refuse(context: Context, refusal: ApiError) -> NoReturn:
    """End a call with a refusal."""
    trailing: list[tuple[str, str | bytes]] = [(FAULT, msgspec.json.encode(refusal.fault))]
    if RETRY_AFTER in refusal.headers:
        trailing.append((RETRY_AFTER, refusal.headers[RETRY_AFTER]))
    code = CODES.get(refusal.status, grpc.StatusCode.UNKNOWN)
    await context.abort(code, refusal.fault.message, tuple(trailing))
