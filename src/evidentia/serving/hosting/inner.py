"""The door between the processes of one server: a Unix socket that nobody but its user can find, and nobody else's is let in."""

from __future__ import annotations

import os
import socket
import struct
from typing import TYPE_CHECKING, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from evidentia.serving.hosting.connections import BoundedConnection
from evidentia.serving.hosting.forwarding import FORWARD, PING
from evidentia.serving.hosting.metrics import PASSED
from evidentia.serving.hosting.reverse_proxy import FACTS, Passed
from evidentia.serving.hosting.wire import answered, answered_no, read_forwarded
from evidentia.serving.operations.api_errors import ApiError

if TYPE_CHECKING:
    import asyncio
    from pathlib import Path

    from starlette.types import ASGIApp, Receive, Scope, Send

    from evidentia.serving.hosting.forwarding import OwnWriter

MAX_CONNECTIONS: Final = 100_000
_WAITING: Final = 1_024
_CREDENTIALS: Final = struct.Struct("3i")
_PEER: Final = getattr(socket, "SO_PEERCRED", None)
"""Where the system tells who is at the other end; where it does not, the folder's mode keeps others out alone."""


class Inner:
    """An ASGI application for the other processes: it does what they forward, and answers what they pass on."""

    def __init__(self, app: ASGIApp, writer: OwnWriter) -> None:
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
            endpoint, operation = read_forwarded(raw)
            return answered(await self._writer.do(endpoint, operation))
        except ApiError as refusal:
            return answered_no(refusal)


class InnerConnection(BoundedConnection):
    """A connection from a process of the same user; any other is dropped."""

    most_connections = MAX_CONNECTIONS

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
    passed = msgspec.json.decode(facts[0], type=Passed)
    headers = [(name, value) for name, value in scope["headers"] if name != FACTS]
    return {**scope, PASSED: True, "client": passed.client, "scheme": passed.scheme, "path": passed.path, "headers": headers}
