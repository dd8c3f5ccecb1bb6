"""Requests that another process answers: passed on as they are, in both directions, part by part."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import h11
import msgspec

from evidentia.serving.hosting.inner_client import writer_lost
from evidentia.serving.identity.refusing import refusal_response
from evidentia.serving.operations.api_errors import ApiError

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from evidentia.serving.hosting.forwarding import Writers
    from evidentia.serving.hosting.inner_client import InnerConnection

FACTS: Final = b"evidentia-passed"
"""The header in which one process tells another who is connected, and how. It is taken from no connection but the inner one."""
_NOT_SENT: Final = frozenset((b"connection", b"keep-alive", b"te", b"trailer", b"upgrade", b"expect", b"proxy-connection", FACTS))
_NOT_ANSWERED: Final = frozenset((b"connection", b"keep-alive", b"transfer-encoding", b"date"))


class Passed(msgspec.Struct, frozen=True, kw_only=True):
    """What a connection to another process would not show."""

    client: tuple[str, int] | None
    scheme: str
    path: str


class ReverseProxy:
    """An ASGI application that has the writing process answer."""

    def __init__(self, writers: Writers) -> None:
        self._writers = writers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, and its answer back."""
        exchange = _Exchange(scope, receive, send)
        try:
            async with self._writers.present.connection() as connection:
                await exchange.run(connection)
        except ApiError as refusal:
            if exchange.is_begun:
                raise ConnectionAbortedError from refusal  # the answer has no end, and the client has to see that
            await refusal_response(refusal)(scope, receive, send)


class _Exchange:
    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self.is_begun = False

    async def run(self, connection: InnerConnection) -> None:
        """Send and answer at once: an answer may begin before the request has ended."""
        sending = asyncio.create_task(self._send_on(connection))
        answering = asyncio.create_task(self._answer(connection))
        try:
            await asyncio.wait((sending, answering), return_when=asyncio.FIRST_COMPLETED)
            if not answering.done() and sending.exception() is None:
                return  # the client went away; leaving the connection unfinished tells the other process
            await answering
        finally:
            for task in (sending, answering):
                task.cancel()
                with suppress(asyncio.CancelledError, OSError, h11.ProtocolError):
                    await task

    async def _send_on(self, connection: InnerConnection) -> None:
        """Pass the request on; return only when the client has gone away."""
        await connection.send(_head(self._scope))
        is_sent = False
        while (message := await self._receive())["type"] == "http.request":
            if body := message.get("body", b""):
                await connection.send(h11.Data(data=body))
            if not is_sent and not message.get("more_body", False):
                await connection.send(h11.EndOfMessage())
                is_sent = True

    async def _answer(self, connection: InnerConnection) -> None:
        response = await connection.next_event()
        if not isinstance(response, h11.Response):
            raise writer_lost()
        headers = [(name, value) for name, value in response.headers if name not in _NOT_ANSWERED]
        self.is_begun = True
        await self._send({"type": "http.response.start", "status": response.status_code, "headers": headers})
        while isinstance(event := await connection.next_event(), h11.Data):
            await self._send({"type": "http.response.body", "body": bytes(event.data), "more_body": True})
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})


def _head(scope: Scope) -> h11.Request:
    """Return the head of a request as the other process gets it."""
    passed = Passed(client=scope.get("client"), scheme=scope["scheme"], path=scope["path"])
    target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
    headers = [(name, value) for name, value in scope["headers"] if name not in _NOT_SENT]
    return h11.Request(method=scope["method"], target=target, headers=[*headers, (FACTS, msgspec.json.encode(passed))])
