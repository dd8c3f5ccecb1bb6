"""The reverse proxy between the processes of one server: requests are passed on as they are, in both directions, part by part.

Both ends are here: what passes a request on, and what takes it over a Unix socket that only the server's own user can open.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import h11
import msgspec
from starlette.requests import Request
from starlette.responses import Response

from evidentia.contracts.decoding import decode_json
from evidentia.serving.hosting.process_role import FORWARD, PING, decode_operation, encode_refusal, encode_reply, writer_lost
from evidentia.serving.hosting.request_log import PASSED
from evidentia.serving.hosting.web_server import BoundedConnection, ConnectionPool
from evidentia.serving.identity.host_check import refusal_response
from evidentia.serving.operations.api_errors import ApiError
from evidentia.serving.operations.request_facts import answering

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.types import ASGIApp, Receive, Scope, Send

    from evidentia.serving.hosting.process_role import LocalWriter, UnixSocketConnection, Writers


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

    async def run(self, connection: UnixSocketConnection) -> None:
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

    async def _send_on(self, connection: UnixSocketConnection) -> None:
        """Pass the request on; return only when the client has gone away."""
        await connection.send(_head(self._scope))
        is_sent = False
        while (message := await self._receive())["type"] == "http.request":
            if body := message.get("body", b""):
                await connection.send(h11.Data(data=body))
            if not is_sent and not message.get("more_body", False):
                await connection.send(h11.EndOfMessage())
                is_sent = True

    async def _answer(self, connection: UnixSocketConnection) -> None:
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


# --- the end that answers ---

MAX_CONNECTIONS: Final = 100_000
_WAITING: Final = 1_024
_CREDENTIALS: Final = struct.Struct("3i")
_PEER: Final = getattr(socket, "SO_PEERCRED", None)
"""Where the system tells who is at the other end; where it does not, the folder's mode keeps others out alone."""


class WriterApplication:
    """An ASGI application for the other processes: it does what they forward, and answers what they pass on."""

    def __init__(self, app: ASGIApp, writer: LocalWriter) -> None:
        self._app = app
        self._writer = writer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["path"] == FORWARD:
            content = await self._done(await Request(scope, receive).body())
            await Response(content, media_type="application/json")(scope, receive, send)
        elif scope["path"] == PING:
            await Response(status_code=204)(scope, receive, send)
        else:
            await self._app(_restored(scope), receive, send)

    async def _done(self, raw: bytes) -> bytes:
        try:
            endpoint, operation, facts = decode_operation(raw)
            with answering(facts):
                return encode_reply(await self._writer.do(endpoint, operation))
        except ApiError as refusal:
            return encode_refusal(refusal)


class SameUserConnection(BoundedConnection):
    """A connection from a process of the same user; any other is dropped."""

    pool = ConnectionPool(MAX_CONNECTIONS)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as the parent has it
        """Begin, or drop it."""
        super().connection_made(transport)
        if not is_own(transport.get_extra_info("socket")):
            transport.abort()


def is_own(peer: socket.socket) -> bool:
    """Tell whether the process at the other end belongs to the user of this one."""
    if _PEER is None:
        return True
    _, uid, _ = _CREDENTIALS.unpack(peer.getsockopt(socket.SOL_SOCKET, _PEER, _CREDENTIALS.size))
    return bool(uid == os.getuid())


def inner_socket(path: Path) -> socket.socket:
    """Return a socket that listens at a path, in the place of one that a process left behind."""
    path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.bind(str(path))
        path.chmod(0o600)
        listening.listen(_WAITING)
    except OSError:
        listening.close()
        raise
    return listening


def _restored(scope: Scope) -> Scope:
    """Return a request as it was when it came to the process that passed it on."""
    facts = [value for name, value in scope["headers"] if name == FACTS]
    passed = decode_json(facts[0], Passed)
    headers = [(name, value) for name, value in scope["headers"] if name != FACTS]
    return {**scope, PASSED: True, "client": passed.client, "scheme": passed.scheme, "path": passed.path, "headers": headers}
