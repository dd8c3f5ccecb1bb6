"""How much a request may send, and how long it may take: whoever exceeds either is answered, then cut off."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from evidentia.serving.identity.refusing import refusal_response
from evidentia.serving.operations.api_errors import TOO_LARGE, ApiError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BYTES: Final = 64 << 20
"""Of any body at any door; most operations take far less, and say so themselves."""
TOO_SLOW: Final = 408
TIMED_OUT: Final = 504
_DRAINED_S: Final = 2
_DRAINED_BYTES: Final = 8 << 20
_MAX_LENGTH_LENGTH: Final = 18
_LEAVING: Final = {"connection": "close"}


class Limits:
    """An ASGI application that bounds what goes to the one behind it, and how long that may take to begin its answer.

    Once an answer has begun it may last, as streams do; but each part of it has to be taken within the same time.
    """

    def __init__(self, app: ASGIApp, *, request_s: float, max_bytes: int = MAX_BYTES) -> None:
        self._app = app
        self._request_s = request_s
        self._most_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if _length_in(scope) > self._most_bytes:
            await _throw_away(scope, receive)
            await refusal_response(_too_large(self._most_bytes))(scope, receive, send)
            return
        await _Exchange(scope, receive, send, request_s=self._request_s, max_bytes=self._most_bytes).run(self._app)


class _Exchange:
    """One request and its answer."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, *, request_s: float, max_bytes: int) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._request_s = request_s
        self._most_bytes = max_bytes
        self._received = 0
        self._is_whole = False
        self._is_begun = False
        self._is_over = False
        self._time = asyncio.timeout(request_s)

    async def run(self, app: ASGIApp) -> None:
        try:
            async with self._time:
                try:
                    await app(self._scope, self._take, self._give)
                finally:
                    self._is_over = True
        except TimeoutError:
            if not self._time.expired():
                raise
            if self._is_begun:
                return  # the server closes a connection whose answer has no end
            await self._refuse(_given_up() if self._is_whole else _too_slow(self._request_s))
        except _TooMuchError:
            if not self._is_begun:
                await self._refuse(_too_large(self._most_bytes))

    async def _take(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._received += len(message.get("body", b""))
            self._is_whole = not message.get("more_body", False)
            if self._received > self._most_bytes:
                raise _TooMuchError
        return message

    async def _give(self, message: Message) -> None:
        self._is_begun = True
        self._retime(asyncio.get_running_loop().time() + self._request_s)
        await self._send(message)
        self._retime(None)  # between two parts nobody waits for the client, so nothing is to be timed

    def _retime(self, until: float | None) -> None:
        if not self._is_over and not self._time.expired():
            self._time.reschedule(until)

    async def _refuse(self, refusal: ApiError) -> None:
        await refusal_response(refusal)(self._scope, self._receive, self._send)


class _TooMuchError(Exception):
    """A body without an announced length has become too long."""


def _length_in(scope: Scope) -> int:
    """Return the length that a request announces; 0 where it does not, and more than anything where it is absurd."""
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value) if value.isdigit() and len(value) <= _MAX_LENGTH_LENGTH else 1 << 62
    return 0


async def _throw_away(scope: Scope, receive: Receive) -> None:
    """Take some of what comes, for a client that reads the answer only once it has sent; not from one that waits to be asked."""
    if any(name == b"expect" for name, _ in scope["headers"]):
        return
    left = _DRAINED_BYTES
    try:
        async with asyncio.timeout(_DRAINED_S):
            while left > 0:
                message = await receive()
                if message["type"] != "http.request" or not message.get("more_body", False):
                    return
                left -= len(message.get("body", b""))
    except TimeoutError:
        return


def _too_large(max_bytes: int) -> ApiError:
    message = f"the body is larger than {max_bytes} bytes"
    return ApiError(TOO_LARGE, "body_too_large", message, hint="send less at a time", headers=_LEAVING)


def _too_slow(request_s: float) -> ApiError:
    message = f"the body was not here after {request_s:g} s"
    return ApiError(TOO_SLOW, "request_too_slow", message, hint="send it faster, or raise server.request_s", headers=_LEAVING)


def _given_up() -> ApiError:
    hint = "it may have been done all the same, so look before you ask again; server.request_s says how long a request may take"
    return ApiError(TIMED_OUT, "request_timed_out", "the request took too long and was given up", hint=hint, headers=_LEAVING)
