"""A forward proxy on a thread of the test: it opens tunnels, passes plain requests on, and leads every name to this machine."""

from __future__ import annotations

import asyncio
import base64
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

LOCAL = "127.0.0.1"


class ForwardProxy:
    """What was asked of it, and where it is."""

    def __init__(self, *, password: str = "") -> None:
        self.asked: list[str] = []
        """The first line of every request, which is all that a proxy reads of what is encrypted."""
        self.url = ""
        self._wanted = base64.b64encode(password.encode()).decode() if password else ""

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            line = head.partition("\r\n")[0]
            self.asked.append(line)
            method, target, _ = line.split(" ")
            if f"Basic {self._wanted}" not in head and self._wanted:
                writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")
            else:
                await self._pass_on(method, target, head, reader, writer)
        writer.close()

    async def _pass_on(self, method: str, target: str, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = int(target.rpartition(":")[2]) if method == "CONNECT" else urlsplit(target).port or 80
        there, onward = await asyncio.open_connection(LOCAL, port)
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            onward.write(head.replace(target, urlsplit(target).path, 1).encode())
        await asyncio.gather(_copy(reader, onward), _copy(there, writer))


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
    loop = asyncio.new_event_loop()
    ready = threading.Event()
    tasks: set[asyncio.Task[None]] = set()

    async def run() -> None:
        server = await asyncio.start_server(proxy.connected, LOCAL, 0)
        proxy.url = f"http://{LOCAL}:{server.sockets[0].getsockname()[1]}"
        ready.set()
        async with server:
            await asyncio.Event().wait()

    def work() -> None:
        running = loop.create_task(run())
        tasks.add(running)
        with suppress(asyncio.CancelledError):
            loop.run_until_complete(running)
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.close()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert ready.wait(30)
    try:
        yield proxy
    finally:
        loop.call_soon_threadsafe(next(iter(tasks)).cancel)
        thread.join(30)
