"""A tool of an MCP server as a source: a command that is started, or an address that is called over streamable HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evidentia.backends.mcp.own_loop import OwnLoop
from evidentia.backends.mcp.replies import arguments_of, proposals_of
from evidentia.backends.mcp.session import Session
from evidentia.backends.mcp.transports import server_name
from evidentia.contracts.errors import InvalidFieldError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from evidentia.contracts.retrieval import SourceAsk
    from evidentia.contracts.sources import SourceConnection

LINGER_MS: Final = 5_000
"""How long after its caller left an answer may still come: whoever asks next finds it kept."""


class McpTool:
    """Implements `Retriever` and `SupportsDataVersion`. One session is kept open per process until `aclose`.

    `connection.address` is a command or an address, `connection.tool` the tool. The environment variable that `key_variable` names is
    handed to the command, or sent as a bearer key. Options: `query_argument` and `limit_argument` name the tool's arguments,
    `argument.NAME` sets another one, `resources` lists resources whose changes matter, and `protocol` may be `legacy`.
    """

    def __init__(self, connection: SourceConnection, *, linger_ms: int = LINGER_MS) -> None:
        if not connection.tool:
            raise InvalidFieldError("connection.tool", "name the tool that is asked")
        self._connection = connection
        self._linger_ms = linger_ms
        self._origin = f"mcp:{server_name(connection.address)}/{connection.tool}"
        self._loop = OwnLoop(name=f"evidentia-mcp-{connection.tool}")
        self._session = Session(connection)

    def data_version(self) -> str:
        """Return a word that is another one after every change that the server tells of; empty as long as none can be heard of."""
        return self._session.version

    async def retrieve(self, ask: SourceAsk) -> AsyncGenerator[object]:
        """Yield what the tool proposes.

        Raises:
            ServiceError: It gave no answer, or its answer is an error.
        """

        def arguments(schema: Mapping[str, object]) -> dict[str, object]:
            return arguments_of(schema, ask, tool=self._connection.tool, options=self._connection.options)

        reply = await self._loop.run(self._session.call(arguments, timeout_ms=ask.budget_ms + self._linger_ms))
        for proposed in proposals_of(reply.structured, reply.blocks, origin=self._origin):
            yield proposed

    async def aclose(self) -> None:
        """Close the session and stop the server that was started for it; whoever asks afterwards opens another."""
        if self._loop.is_running:
            await self._loop.run(self._session.aclose())
            await self._loop.aclose()
