"""One open session with an MCP server: opened by the first question, kept for the next, opened again when it breaks.

The parts of the MCP package have to be entered and left in one task, so a task of its own keeps the session and everybody else only
calls. All of this runs on one event loop.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import time
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from evidentia.contracts.errors import EvidentiaError, InvalidFieldError, MissingExtraError, ServiceReplyError, ServiceUnavailableError
from evidentia.foundation.client_tls import tls_fault
from evidentia.foundation.outbound_http import DIRECT, Address, check_outbound, sdk_client, silent_refusal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    import httpx2
    from mcp import types
    from mcp.client import Client, IncomingMessage, Transport
    from mcp.client.subscriptions import Subscription

    from evidentia.contracts.settings import OutboundSettings
    from evidentia.contracts.sources import SourceConnection


PROTOCOL_OPTION: Final = "protocol"
"""`legacy` for servers that do not answer what they do not know; `auto` otherwise."""
RESOURCES_OPTION: Final = "resources"
"""Addresses of resources, separated by spaces, whose changes mean that the tool's answers may have changed."""

_OPEN_S: Final = 30
_MAX_PAGES: Final = 100


class ToolReply(NamedTuple):
    """What a tool returned."""

    structured: object
    blocks: Sequence[object]


class Session:
    """Asks one tool. Not thread safe, except for `version`."""

    def __init__(self, connection: SourceConnection, *, outbound: OutboundSettings = DIRECT) -> None:
        self._connection = connection
        self._outbound = outbound
        self._keeper: _Keeper | None = None

    @property
    def version(self) -> str:
        """Return a word that is another one after every change that the server tells of; empty as long as none can be heard of."""
        keeper = self._keeper
        return "" if keeper is None else keeper.version

    async def call(self, arguments: Callable[[Mapping[str, object]], dict[str, object]], *, timeout_ms: int) -> ToolReply:
        """Return what the tool says to arguments made from its input schema; a session that broke since the last call is opened anew.

        Raises:
            ServiceError: There was no answer, or the answer is an error.
        """
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                is_reused = self._keeper is not None and not self._keeper.is_over
                try:
                    return await self._call(arguments)
                except ServiceUnavailableError:
                    if not is_reused:
                        raise
                return await self._call(arguments)
        except TimeoutError:
            raise ServiceUnavailableError(f"the tool '{self._connection.tool}' gave no answer within {timeout_ms} ms") from None

    async def aclose(self) -> None:
        """Close the session."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            await keeper.aclose()

    async def _call(self, arguments: Callable[[Mapping[str, object]], dict[str, object]]) -> ToolReply:
        if self._keeper is None or self._keeper.is_over:
            self._keeper = _Keeper(self._connection, self._outbound)
        keeper = self._keeper
        client, schema = await asyncio.shield(keeper.opened)
        given = arguments(schema)
        try:
            result = await client.call_tool(self._connection.tool, given)
        except Exception as error:  # noqa: BLE001  # whatever the package raises, here is where it becomes one of our errors
            raise keeper.failure(error) from None
        if result.is_error:
            raise ServiceReplyError(f"the tool '{self._connection.tool}' reports an error")
        return ToolReply(structured=result.structured_content, blocks=tuple(result.content))


class _Keeper:
    """The task that opens a session, holds it open and closes it."""

    def __init__(self, connection: SourceConnection, outbound: OutboundSettings) -> None:
        self._connection = connection
        self._outbound = outbound
        self._changes = 0
        self._is_listening = False
        self._closing = asyncio.Event()
        # Unlike any other of this machine: what was missed while nobody listened cannot be known.
        self._name = f"{os.getpid()}-{time.monotonic_ns()}"
        self.is_over = False
        self.opened: asyncio.Future[tuple[Client, Mapping[str, object]]] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._keep())

    @property
    def version(self) -> str:
        return f"{self._name}.{self._changes}" if self._is_listening and not self.is_over else ""

    async def aclose(self) -> None:
        self._closing.set()
        await asyncio.wait([self._task])

    def failure(self, error: Exception) -> EvidentiaError:
        """Return what a failed call means, and give the session up unless the server merely refused; messages may quote anything."""
        from mcp import MCPError
        from mcp.types import CONNECTION_CLOSED

        if isinstance(error, EvidentiaError):
            return error
        if isinstance(error, MCPError) and error.error.code != CONNECTION_CLOSED:
            return ServiceReplyError(f"the MCP server refuses the tool '{self._connection.tool}' (code {error.error.code})")
        self.is_over = True
        self._closing.set()
        fault = tls_fault(error, host=server_name(self._connection.address))
        if fault is not None:
            return fault
        return ServiceUnavailableError(f"the session with the MCP server broke ({type(error).__name__})")

    async def _keep(self) -> None:
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(_OPEN_S):
                    opened = await self._open(stack)
                self.opened.set_result(opened)
                await self._closing.wait()
        except Exception as error:  # noqa: BLE001  # a server may fail in any way, and groups of errors come out of the package
            if not self.opened.done():
                self.opened.set_exception(await self._refused(error) or _opening_error(error, host=server_name(self._connection.address)))
        finally:
            self.is_over = True
            if not self.opened.done():
                self.opened.cancel()
            elif not self.opened.cancelled():
                self.opened.exception()  # looked at, even if everybody who waited has left

    async def _refused(self, error: Exception) -> EvidentiaError | None:
        """Return that the server wants a client certificate, where it ended the connection without a word."""
        address, parts = self._connection.address, urlsplit(self._connection.address)
        if not is_web_address(address):
            return None
        way = check_outbound(self._outbound, host=parts.hostname or "")
        return await silent_refusal(Address(address, parts.scheme, parts.hostname or ""), address, way, error=error)

    async def _open(self, stack: AsyncExitStack) -> tuple[Client, Mapping[str, object]]:
        transport = await stack.enter_async_context(transport_to(self._connection, outbound=self._outbound))
        from mcp.client import Client

        mode = self._connection.options.get(PROTOCOL_OPTION, "auto")
        client = await stack.enter_async_context(Client(transport, mode=mode, message_handler=self._hear, cache=None))
        schema = await self._schema(client)
        await self._listen(client, stack)
        return client, schema

    async def _schema(self, client: Client) -> Mapping[str, object]:
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            page = await client.list_tools(cursor=cursor)
            for tool in page.tools:
                if tool.name == self._connection.tool:
                    return tool.input_schema
            cursor = page.next_cursor
            if not cursor:
                break
        raise InvalidFieldError("connection.tool", f"the MCP server has no tool '{self._connection.tool}'")

    async def _listen(self, client: Client, stack: AsyncExitStack) -> None:
        """Ask to be told of changes, in the way of the protocol's version; a server that tells of none is asked no more."""
        from mcp import MCPError
        from mcp.types.version import MODERN_PROTOCOL_VERSIONS

        wanted = self._connection.options.get(RESOURCES_OPTION, "").split()
        try:
            if client.protocol_version in MODERN_PROTOCOL_VERSIONS:
                listening = client.listen(tools_list_changed=True, resources_list_changed=True, resource_subscriptions=wanted)
                await self._follow(await stack.enter_async_context(listening), stack)
                return
            self._is_listening = _tells_of_changes(client.server_capabilities)
            for uri in wanted:
                await client.session.subscribe_resource(uri)
                self._is_listening = True
        except (MCPError, RuntimeError):
            self._is_listening = False

    async def _follow(self, subscription: Subscription, stack: AsyncExitStack) -> None:
        self._is_listening = bool(subscription.honored.model_dump(exclude_none=True))
        following = asyncio.create_task(self._count(subscription))
        stack.push_async_callback(_stopped, following)

    async def _count(self, subscription: Subscription) -> None:
        try:
            async for _ in subscription:
                self._changes += 1
        except RuntimeError:  # the stream was lost
            pass
        finally:
            self._is_listening = False

    async def _hear(self, message: IncomingMessage) -> None:
        from mcp import types

        changes = (
            types.ResourceListChangedNotification,
            types.ResourceUpdatedNotification,
            types.ToolListChangedNotification,
        )
        if isinstance(message, changes):
            self._changes += 1
            self._is_listening = True  # some tell without having said that they would


def _tells_of_changes(capabilities: types.ServerCapabilities) -> bool:
    tools, resources = capabilities.tools, capabilities.resources
    return bool((tools and tools.list_changed) or (resources and resources.list_changed))


def _opening_error(error: Exception, *, host: str) -> EvidentiaError:
    """Return why a session could not be opened; a group of errors is searched for one of ours, or for a TLS fault."""
    fault = tls_fault(error, host=host)
    if fault is not None:
        return fault
    if isinstance(error, ExceptionGroup):
        own = error.subgroup(EvidentiaError)
        while own is not None and isinstance(own.exceptions[0], ExceptionGroup):
            own = own.exceptions[0]
        error = error if own is None else own.exceptions[0]
    if isinstance(error, EvidentiaError):
        return error
    return ServiceUnavailableError(f"no session with the MCP server could be opened ({type(error).__name__})")


async def _stopped(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


# --- transports: a command that is started, or an address that is called ---

MAX_REPLY_BYTES: Final = 1 << 24
_CONNECT_S: Final = 30
_STREAM_S: Final = 300


def is_web_address(address: str) -> bool:
    """Tell whether a server is called at an address; otherwise its address is a command."""
    return address.lower().startswith(("http://", "https://"))


def server_name(address: str) -> str:
    """Return what a server is called in an origin: its host, or the name of its program, without arguments."""
    if is_web_address(address):
        return urlsplit(address).netloc.rpartition("@")[2]
    return os.path.basename(_words(address)[0])  # noqa: PTH119  # a name out of a command, not a path


@asynccontextmanager
async def transport_to(connection: SourceConnection, *, outbound: OutboundSettings = DIRECT) -> AsyncIterator[Transport]:
    """Yield the way to a server; it is not open yet."""
    try:
        import mcp.client  # noqa: F401  # the one place where its absence is told
    except ImportError as error:
        raise MissingExtraError("mcp", needed_for="an MCP server") from error
    if is_web_address(connection.address):
        from mcp.client.streamable_http import streamable_http_client

        async with _web_client(connection, outbound) as client:
            yield streamable_http_client(connection.address, http_client=client, max_sse_event_size=MAX_REPLY_BYTES)
        return
    from mcp.client.stdio import StdioServerParameters, stdio_client

    command, *arguments = _words(connection.address)
    # What a server writes to its standard error is for its own people; a terminal is not to act on it.
    with open(os.devnull, "w", encoding="utf-8") as nowhere:  # noqa: ASYNC230, PTH123  # a device, which never blocks
        yield stdio_client(StdioServerParameters(command=command, args=arguments, env=_key(connection)), errlog=nowhere)


def _web_client(connection: SourceConnection, outbound: OutboundSettings) -> httpx2.AsyncClient:
    return sdk_client(
        connection.address,
        field="connection.address",
        key="".join(_key(connection).values()),
        connect_s=_CONNECT_S,
        read_s=_STREAM_S,
        max_bytes=MAX_REPLY_BYTES,
        outbound=outbound,
    )


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
