"""HTTP over a Unix socket, from one process of a server to another; connections are kept and used again."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import h11

from evidentia.serving.operations.api_errors import UNAVAILABLE, ApiError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

CONNECT_S: Final = 5
MAX_RESTING: Final = 64
AWAY: Final = "writer_restarting"
_BLOCK: Final = 64 << 10
_HOST: Final = (b"host", b"localhost")


class InnerConnection:
    """One connection, which carries one exchange at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._state = h11.Connection(h11.CLIENT)

    async def send(self, event: h11.Request | h11.Data | h11.EndOfMessage) -> None:
        """Send a part of a request."""
        self._writer.write(self._state.send(event) or b"")
        await self._writer.drain()

    async def next_event(self) -> h11.Response | h11.Data | h11.EndOfMessage:
        """Return the next part of the answer; a connection that ends before it does is an error."""
        while True:
            event = self._state.next_event()
            if event is h11.NEED_DATA:
                self._state.receive_data(await self._reader.read(_BLOCK))
            elif isinstance(event, h11.Response | h11.Data | h11.EndOfMessage):
                return event
            elif not isinstance(event, h11.InformationalResponse):
                raise ConnectionResetError

    def rest(self) -> bool:
        """Get ready for the next exchange; False when there can be none."""
        if self._state.our_state is not h11.DONE or self._state.their_state is not h11.DONE:
            return False
        self._state.start_next_cycle()
        return True

    @property
    def is_usable(self) -> bool:
        """Tell whether the other side is still there, as far as is known."""
        return not self._reader.at_eof() and not self._writer.is_closing()

    def close(self) -> None:
        """Let go of it."""
        self._writer.close()


class InnerClient:
    """The connections to one process. Belongs to its event loop."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._resting: list[InnerConnection] = []

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[InnerConnection]:
        """Give a connection, which is kept when its exchange came to its end.

        Raises:
            Refusal: 503, there is nobody at the other end, or it went away before it had answered.
        """
        connection = await self._take()
        is_kept = False
        try:
            yield connection
            is_kept = connection.rest() and len(self._resting) < MAX_RESTING
        except (OSError, h11.ProtocolError) as error:
            raise writer_lost() from error
        finally:
            if is_kept:
                self._resting.append(connection)
            else:
                connection.close()

    async def ask(self, method: str, target: str, *, body: bytes = b"", timeout_s: float) -> bytes:
        """Return the body of an answer."""
        async with asyncio.timeout(timeout_s), self.connection() as connection:
            headers = [_HOST, (b"content-length", str(len(body)).encode())]
            await connection.send(h11.Request(method=method, target=target, headers=headers))
            if body:
                await connection.send(h11.Data(data=body))
            await connection.send(h11.EndOfMessage())
            content = bytearray()
            while not isinstance(event := await connection.next_event(), h11.EndOfMessage):
                content += event.data if isinstance(event, h11.Data) else b""
        return bytes(content)

    def close(self) -> None:
        """Let go of what rests."""
        resting, self._resting = self._resting, []
        for connection in resting:
            connection.close()

    async def _take(self) -> InnerConnection:
        while self._resting:
            connection = self._resting.pop()
            if connection.is_usable:
                return connection
            connection.close()
        try:
            async with asyncio.timeout(CONNECT_S):
                return InnerConnection(*await asyncio.open_unix_connection(str(self.path)))
        except (OSError, TimeoutError) as error:
            raise writer_away() from error


def writer_away() -> ApiError:
    """Return the refusal while the writing process is not there: nothing was done."""
    message = "the process that writes is starting again; nothing was done"
    return ApiError(UNAVAILABLE, AWAY, message, hint="ask again in a second", headers={"retry-after": "1"})


def writer_lost() -> ApiError:
    """Return the refusal when the writing process went away in the middle."""
    hint = "it may have been done all the same, so look before you ask again"
    message = "the process that writes went away before it had answered"
    return ApiError(UNAVAILABLE, "writer_lost", message, hint=hint, headers={"retry-after": "1"})
