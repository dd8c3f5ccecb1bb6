"""MCP over streamable HTTP: an ASGI application to be mounted, with a life of its own that whoever mounts it has to enter."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.routing import Route

from evidentia.serving.identity.admission import Admission
from evidentia.serving.identity.pools import MAX_MCP_SESSIONS
from evidentia.serving.mcp.request_guard import MAX_BYTES, McpGuard
from evidentia.serving.mcp.server import McpServer, make_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from starlette.types import Receive, Scope, Send

    from evidentia.contracts.access import Principal
    from evidentia.serving.operations.served_base import ServedBase
    from evidentia.wiring.governance_runtime import TokenStore

PATH: Final = "/mcp"
IDLE_S: Final = 1_800


class McpEndpoint:
    """An ASGI application for `Route("/mcp", endpoint=...)`. It answers only while `running` is entered, which can be done once."""

    def __init__(
        self,
        server: McpServer,
        *,
        tokens: TokenStore,
        admission: Admission | None = None,
        alone: Principal | None = None,
        hosts: Iterable[str] = (),
        max_bytes: int = MAX_BYTES,
        idle_s: float = IDLE_S,
    ) -> None:
        self._server = server
        self._manager = StreamableHTTPSessionManager(
            server, session_idle_timeout=idle_s, max_request_body_size=max_bytes, max_sessions=MAX_MCP_SESSIONS
        )
        self._guard = McpGuard(
            self._manager.handle_request,
            tokens=tokens,
            admission=admission or Admission(tokens),
            alone=alone,
            hosts=hosts,
            live=lambda: self._manager._server_instances,  # noqa: SLF001 - the package has no other way to ask which sessions are left
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._guard(scope, receive, send)

    def close_streams(self) -> None:
        """End what never ends by itself; whoever stops serving calls this before it waits for requests under way."""
        self._server.close_streams()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep sessions and watch the base meanwhile."""
        async with self._manager.run():
            yield


def mcp_endpoint(
    served_base: ServedBase,
    *,
    tokens: TokenStore,
    admission: Admission | None = None,
    alone: Principal | None = None,
    hosts: Iterable[str] = (),
) -> McpEndpoint:
    """Return the endpoint over a base; `alone` is who asks from this machine as long as there are no tokens, nobody by default."""
    keep_quiet()
    return McpEndpoint(make_server(served_base), tokens=tokens, admission=admission, alone=alone, hosts=hosts)


def mcp_app(endpoint: McpEndpoint, *, path: str = PATH) -> Starlette:
    """Return an application with nothing but the endpoint in it."""
    return Starlette(routes=[Route(path, endpoint=endpoint)], lifespan=lambda _: endpoint.running())


def keep_quiet() -> None:
    """Keep the package's own log away from this process's: its lines quote what clients send."""
    package = logging.getLogger("mcp")
    package.propagate = False
    if not package.handlers:
        package.addHandler(logging.NullHandler())
