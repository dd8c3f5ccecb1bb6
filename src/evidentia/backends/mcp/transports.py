"""The ways to an MCP server: a command that is started, or an address that is called."""

from __future__ import annotations

import os
import shlex
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from evidentia.contracts.errors import InvalidFieldError, MissingExtraError, ServiceReplyError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx2
    from mcp.client import Transport

    from evidentia.contracts.sources import SourceConnection

MAX_REPLY_BYTES: Final = 1 << 24
_CONNECT_S: Final = 30
_STREAM_S: Final = 300
_LOCAL_HOSTS: Final = ("localhost", "127.0.0.1", "::1")


def is_web_address(address: str) -> bool:
    """Tell whether a server is called at an address; otherwise its address is a command."""
    return address.lower().startswith(("http://", "https://"))


def server_name(address: str) -> str:
    """Return what a server is called in an origin: its host, or the name of its program, without arguments."""
    if is_web_address(address):
        return urlsplit(address).netloc.rpartition("@")[2]
    return os.path.basename(_words(address)[0])  # noqa: PTH119  # a name out of a command, not a path


@asynccontextmanager
async def transport_to(connection: SourceConnection) -> AsyncIterator[Transport]:
    """Yield the way to a server; it is not open yet."""
    try:
        import mcp.client  # noqa: F401  # the one place where its absence is told
    except ImportError as error:
        raise MissingExtraError("mcp", needed_for="an MCP server") from error
    if is_web_address(connection.address):
        from mcp.client.streamable_http import streamable_http_client

        async with _web_client(connection) as client:
            yield streamable_http_client(connection.address, http_client=client, max_sse_event_size=MAX_REPLY_BYTES)
        return
    from mcp.client.stdio import StdioServerParameters, stdio_client

    command, *arguments = _words(connection.address)
    # What a server writes to its standard error is for its own people; a terminal is not to act on it.
    with open(os.devnull, "w", encoding="utf-8") as nowhere:  # noqa: ASYNC230, PTH123  # a device, which never blocks
        yield stdio_client(StdioServerParameters(command=command, args=arguments, env=_key(connection)), errlog=nowhere)


def _web_client(connection: SourceConnection) -> httpx2.AsyncClient:
    import httpx2

    key = "".join(_key(connection).values())
    parts = urlsplit(connection.address)
    if key and parts.scheme != "https" and parts.hostname not in _LOCAL_HOSTS:
        raise InvalidFieldError("connection.address", "a key is not sent in the clear; write the address with https")
    headers = {"authorization": f"Bearer {key}"} if key else {}
    timeout = httpx2.Timeout(_CONNECT_S, read=_STREAM_S)
    verify = httpx2.create_ssl_context(trust_env=False)
    return httpx2.AsyncClient(
        headers=headers, verify=verify, timeout=timeout, trust_env=False, follow_redirects=False, event_hooks={"response": [_bound]}
    )


async def _bound(response: httpx2.Response) -> None:
    """Let a reply that is no stream of events be read up to a size only."""
    if not response.headers.get("content-type", "").startswith("text/event-stream"):
        response.stream = _bounded(response.stream)


def _bounded(stream: object) -> httpx2.AsyncByteStream:
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        """A stream that ends with an error when it is longer than a reply may be."""

        async def __aiter__(self) -> AsyncIterator[bytes]:
            read = 0
            async for part in stream:  # type: ignore[attr-defined]  # an asynchronous client has asynchronous streams
                read += len(part)
                if read > MAX_REPLY_BYTES:
                    raise ServiceReplyError(f"the MCP server replies with more than {MAX_REPLY_BYTES} bytes")
                yield part

        async def aclose(self) -> None:
            await stream.aclose()  # type: ignore[attr-defined]  # likewise

    return Bounded()


def _key(connection: SourceConnection) -> dict[str, str]:
    """Return the variable that holds the key, with its value; a command finds it in its environment, and nothing else of ours."""
    variable = connection.key_variable
    if not variable:
        return {}
    key = os.environ.get(variable, "")
    if not key or not key.isascii() or not key.isprintable():
        raise InvalidFieldError("connection.key_variable", f"the environment variable '{variable}' is not set, or holds no key")
    return {variable: key}


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    if not words:
        raise InvalidFieldError("connection.address", "it is no command; write it as in a shell, with quotes where a word holds a space")
    return words
