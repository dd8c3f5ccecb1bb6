"""A forward proxy on a thread of the test: it opens tunnels, passes plain requests on, and leads every name to this machine."""

from __future__ import annotations

import asyncio
import base64
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from serving.hosting_planes import Loop

if TYPE_CHECKING:
    from collections.abc import Iterator

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
LOCAL = "127.0.0.1"


class ForwardProxy:
    """What was asked of it, and where it is."""

    def __init__(self, *, password: str = "") -> None:
        self.asked: list[str] = []
        """The first line of every request, which is all that a proxy reads of what is encrypted."""
        self.url = ""
        self._wanted = base64.b64encode(password.encode()).decode() if password else ""

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer), suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            line = head.partition("\r\n")[0]
            self.asked.append(line)
            method, target, _ = line.split(" ")
            if f"Basic {self._wanted}" not in head and self._wanted:
                writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")
            else:
                await self._pass_on(method, target, head, reader, writer)

    async def _pass_on(self, method: str, target: str, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = int(target.rpartition(":")[2]) if method == "CONNECT" else urlsplit(target).port or 80
        there, onward = await asyncio.open_connection(LOCAL, port)
        try:
            await self._tunnel(method, target, head, (reader, writer), (there, onward))
        finally:
            onward.close()

    @staticmethod
    async def _tunnel(method: str, target: str, head: str, here: Streams, there: Streams) -> None:
        (reader, writer), (far, onward) = here, there
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            onward.write(head.replace(target, urlsplit(target).path, 1).encode())
        await asyncio.gather(_copy(reader, onward), _copy(far, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while part := await reader.read(1 << 16):
            writer.write(part)
            await writer.drain()
        writer.write_eof()


@contextmanager
def forward_proxy(*, password: str = "") -> Iterator[ForwardProxy]:
    """Give a proxy that answers meanwhile; with a password it wants `name:password`."""
    proxy = ForwardProxy(password=password)
    loop = Loop()
    server: asyncio.Server = loop.do(asyncio.start_server(proxy.connected, LOCAL, 0))
    proxy.url = f"http://{LOCAL}:{server.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        server.close()
        loop.close()
