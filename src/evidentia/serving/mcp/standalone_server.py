"""The event loops under `evidentia mcp`: a connection over stdin and stdout, or a socket, until it is told to stop."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import asynccontextmanager, closing, suppress
from typing import TYPE_CHECKING, Final

import uvicorn
from mcp.server.stdio import stdio_server

from evidentia.serving.hosting.request_log import RequestLogMiddleware, begin_logging
from evidentia.serving.hosting.web_server import ConnectionPool, bounded
from evidentia.serving.identity.admission import LooseParts, make_admission
from evidentia.serving.mcp.http_endpoint import McpEndpoint, keep_quiet, mcp_app, mcp_endpoint
from evidentia.serving.mcp.server import make_server
from evidentia.serving.operations.served_base import ServedBase
from evidentia.wiring.governance_runtime import open_tokens
from evidentia.wiring.system import SystemEntropy

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path
    from types import FrameType

    from evidentia.contracts.access import Principal
    from evidentia.contracts.protocol import Profile
    from evidentia.serving.identity.callers import Grants

GRACE_S: Final = 2
"""How long requests under way may take once the server is told to stop."""

_SIGNALLED: Final = 128
"""What shells add to the number of a signal."""


def serve_stdio(directory: Path, *, principal: Principal, profile: Profile | None = None) -> None:
    """Serve one client over stdin and stdout until it closes them."""
    keep_quiet()
    asyncio.run(_serve_stdio(directory, principal, profile))


def serve_http(
    directory: Path,
    listening: socket.socket,
    *,
    alone: Principal,
    grants: Grants,
    hosts: Sequence[str],
    profile: Profile | None = None,
) -> None:
    """Serve over HTTP until SIGTERM or SIGINT."""
    before = {number: signal.signal(number, _already_stopped) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        asyncio.run(_serve_http(directory, listening, alone=alone, grants=grants, hosts=hosts, profile=profile))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def _serve_stdio(directory: Path, principal: Principal, profile: Profile | None) -> None:
    async with _open(directory, profile) as served_base:
        _leave_when_told(served_base)
        server = make_server(served_base, principal=principal)
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())


async def _serve_http(
    directory: Path, listening: socket.socket, *, alone: Principal, grants: Grants, hosts: Sequence[str], profile: Profile | None
) -> None:
    with open_tokens(directory) as (tokens, clock):
        async with _open(directory, profile) as served_base:
            admission = make_admission(LooseParts(directory, tokens, clock), served_base.settings.server, grants=grants)
            endpoint = mcp_endpoint(served_base, tokens=tokens, admission=admission, alone=alone, hosts=hosts)
            telemetry, server = served_base.settings.telemetry, served_base.settings.server
            begin_logging(telemetry)
            app = mcp_app(endpoint)
            app.add_middleware(RequestLogMiddleware, clock=clock, entropy=SystemEntropy(), is_on=telemetry.logs)
            pool = ConnectionPool(server.most_connections, percent=server.address_percent)
            config = uvicorn.Config(
                app,
                http=bounded(None, pool=pool),
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=GRACE_S,
                lifespan="on",
            )
            with closing(admission):
                await _Web(config, endpoint).serve(sockets=[listening])


class _Web(uvicorn.Server):
    """A web server that ends streams before it waits for requests under way."""

    def __init__(self, config: uvicorn.Config, endpoint: McpEndpoint) -> None:
        super().__init__(config)
        self._endpoint = endpoint

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, end streams, and let the rest finish."""
        self._endpoint.close_streams()
        await super().shutdown(sockets)


@asynccontextmanager
async def _open(directory: Path, profile: Profile | None) -> AsyncIterator[ServedBase]:
    served_base = await asyncio.to_thread(ServedBase.open, directory, profile=profile)
    try:
        yield served_base
    finally:
        await served_base.close()


def _leave_when_told(served_base: ServedBase) -> None:
    """Have signals end the process once the base is closed: the thread that reads stdin cannot be called back, and would be waited for."""
    leaving: list[asyncio.Task[None]] = []

    async def leave(number: int) -> None:
        try:
            await served_base.close()
        finally:
            os._exit(_SIGNALLED + number)

    def told(number: int) -> None:
        if not leaving:
            leaving.append(asyncio.create_task(leave(number)))

    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(number, told, number)


def _already_stopped(number: int, frame: FrameType | None) -> None:
    del number, frame
