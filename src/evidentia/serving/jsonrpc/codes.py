"""The numbers of JSON-RPC errors: those of the specification, and one for every other way in which the plane says no.

What an error is about stands in its `data`, which is the `Fault` that REST sends: a stable code, a hint, and every field that is wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.control import Fault
from evidentia.serving.operations import api_errors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evidentia.serving.operations.api_errors import ApiError

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
UNAUTHORIZED: Final = -32001
FORBIDDEN: Final = -32003
NOT_FOUND: Final = -32004
CONFLICT: Final = -32009
CHANGED: Final = -32012
TOO_LARGE: Final = -32013
WRONG_TYPE: Final = -32015
TOO_MANY: Final = -32029
BAD_GATEWAY: Final = -32052
UNAVAILABLE: Final = -32053

MEANINGS: Final[Mapping[int, str]] = {
    PARSE_ERROR: "Parse error",
    INVALID_REQUEST: "Invalid Request",
    METHOD_NOT_FOUND: "Method not found",
    INVALID_PARAMS: "Invalid params",
    INTERNAL_ERROR: "Internal error",
    UNAUTHORIZED: "Unauthorized",
    FORBIDDEN: "Forbidden",
    NOT_FOUND: "Not found",
    CONFLICT: "Conflict",
    CHANGED: "Another version is in force",
    TOO_LARGE: "Too large",
    WRONG_TYPE: "Not JSON by its header",
    TOO_MANY: "Too many requests",
    BAD_GATEWAY: "Something the base depends on gave no answer",
    UNAVAILABLE: "The base cannot be used now",
}
"""What each number means; errors of the protocol itself carry it as their `message`."""

CODE_OF: Final[Mapping[int, int]] = {
    api_errors.MALFORMED: INVALID_PARAMS,
    api_errors.UNAUTHORIZED: UNAUTHORIZED,
    api_errors.FORBIDDEN: FORBIDDEN,
    api_errors.NOT_FOUND: NOT_FOUND,
    api_errors.CONFLICT: CONFLICT,
    api_errors.CHANGED: CHANGED,
    api_errors.TOO_LARGE: TOO_LARGE,
    api_errors.WRONG_TYPE: WRONG_TYPE,
    api_errors.UNPROCESSABLE: INVALID_PARAMS,
    api_errors.TOO_MANY: TOO_MANY,
    api_errors.INTERNAL: INTERNAL_ERROR,
    api_errors.BAD_GATEWAY: BAD_GATEWAY,
    api_errors.UNAVAILABLE: UNAVAILABLE,
}
"""From the HTTP status of a refusal."""


class RpcFailure(Exception):  # noqa: N818 - it carries an error of the protocol, and is none of the program
    """A call that is answered with an error."""

    def __init__(self, code: int, fault: Fault, *, message: str = "", retry_after_s: int | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.fault = fault
        self.message = message or MEANINGS[code]
        self.retry_after_s = retry_after_s

    def content(self) -> dict[str, object]:
        """Return the member `error` of the response; its data say when to come back, where REST has a header for it."""
        waiting = {} if self.retry_after_s is None else {"retry_after_s": self.retry_after_s}
        return {"code": self.code, "message": self.message, "data": {**msgspec.to_builtins(self.fault), **waiting}}


def failure(code: int, reason: str, message: str, *, hint: str) -> RpcFailure:
    """Return the failure for something that is wrong with a call itself."""
    return RpcFailure(code, Fault(code=reason, message=message, hint=hint))


def failure_of(refusal: ApiError) -> RpcFailure:
    """Return the failure that says what a refusal says."""
    code = CODE_OF.get(refusal.status, INTERNAL_ERROR)
    waiting = refusal.headers.get("retry-after")
    return RpcFailure(code, refusal.fault, message=refusal.fault.message, retry_after_s=None if waiting is None else int(waiting))
