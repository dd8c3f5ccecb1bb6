"""One process that serves: its sockets, its doors and its end, however it is told of that."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, Self

from evidentia.contracts.errors import MissingExtraError
from evidentia.serving.hosting.application import make_app
from evidentia.serving.hosting.door_metrics import CallMetrics
from evidentia.serving.hosting.process_role import ALONE, ProcessRole
from evidentia.serving.hosting.readiness import Readiness
from evidentia.serving.hosting.reverse_proxy import SameUserConnection, inner_socket
from evidentia.serving.hosting.tls import TlsFiles, load_pair, server_context, tls_files
from evidentia.serving.hosting.web_server import GRACE_S, TIMEOUTS, ConnectionPool, ConnectionTimeouts, WebServer, bounded, web_config

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import AsyncIterator, Sequence

    from evidentia.contracts.settings import ServerSettings, Settings
    from evidentia.serving.hosting.worker_messages import Hosting
    from evidentia.serving.operations.server_context import ServerContext
    from evidentia.wiring.governance_runtime import GovernanceRuntime


SPARE_FILES: Final = 512
"""Open files beside connections: those of the base, of sources, of other processes."""
RETIRED_S: Final = 3_600
"""How long a retired process waits for the runs that are open in it."""
SWITCH_S: Final = 0.000_5
"""After so long a thread that computes lets another have its turn: with the usual 5 ms, one long request makes each step of the others
wait as long. On two busy processors, one run each: beside three long ones of three kinds, the 99th percentile of short ones was 205, 761
and 384 ms before, and 171, 289 and 189 ms with this."""
_LOOK_S: Final = 0.2


class Host:
    """Serves the base of a control. `open` is entered once; what ends it is up to whoever does."""

    def __init__(
        self,
        control: GovernanceRuntime,
        hosting: Hosting,
        *,
        settings: Settings,
        role: ProcessRole = ALONE,
        timeouts: ConnectionTimeouts = TIMEOUTS,
    ) -> None:
        sys.setswitchinterval(SWITCH_S)
        self._hosting = hosting
        self._role = role
        self._timeouts = timeouts
        self._server = settings.server
        self._files = files_of(hosting, settings)
        self._context: ssl.SSLContext | None = server_context(self._files)
        self._readiness = Readiness()
        self.app = make_app(control, readiness=self._readiness, hosts=(hosting.host, *hosting.hosts), role=role)
        self._web: WebServer | None = None
        self._beside = SideDoors((), grace_s=GRACE_S)

    @contextlib.asynccontextmanager
    async def open(self, listening: Sequence[socket.socket]) -> AsyncIterator[None]:
        """Answer meanwhile; in the end everything that is under way is finished, and the base closed."""
        most = connections_of(self._server, workers=self._role.workers)
        raise_file_limit(2 * most + SPARE_FILES)
        doors = side_doors(self.app.state.context, self._hosting, files=self._files, max_connections=most)
        self._beside = SideDoors(doors, grace_s=GRACE_S)
        async with self.app.router.lifespan_context(self.app), self._beside, self._inner():
            config = web_config(
                self.app,
                connection=bounded(self._readiness, pool=pool_of(self._server, workers=self._role.workers), timeouts=self._timeouts),
                context=self._context,
            )
            self._web = WebServer(config, self._readiness, drain_s=self._hosting.drain_s)
            serving = asyncio.create_task(self._web.serve(sockets=list(listening)))
            try:
                await _begun(self._web, serving)
                yield
            finally:
                if not serving.done():
                    await self.drain()
                await serving

    async def drain(self) -> None:
        """Take no more connections, and return once the last request is answered or its time is up."""
        if self._web is None:
            return
        self._web.should_exit = True
        await asyncio.gather(self._web.is_over.wait(), self._beside.close())

    async def last_run_ended(self) -> None:
        """Return once no run is open in this process, or it has been waited for long enough."""
        for _ in range(round(RETIRED_S / _LOOK_S)):
            if not self.app.state.context.runs.count:
                return
            await asyncio.sleep(_LOOK_S)

    def hurry(self) -> None:
        """Wait for nothing any more."""
        if self._web is not None:
            self._web.force_exit = True

    def renew_certificate(self) -> None:
        """Show the certificate that is in the files now, on connections to come."""
        if self._context is not None:
            load_pair(self._context, self._files)

    @contextlib.asynccontextmanager
    async def _inner(self) -> AsyncIterator[None]:
        """Answer the other processes, where this one writes for them."""
        if self._role.own is None:
            yield
            return
        config = web_config(self.app.state.inner, connection=SameUserConnection)
        web = WebServer(config, Readiness())
        with inner_socket(self._role.own) as listening:
            serving = asyncio.create_task(web.serve(sockets=[listening]))
            try:
                await _begun(web, serving)
                yield
            finally:
                web.should_exit = True
                await serving


def connections_of(server: ServerSettings, *, workers: int = 1) -> int:
    """Return how many connections one of so many processes takes."""
    return -(-server.most_connections // workers)


def pool_of(server: ServerSettings, *, workers: int = 1) -> ConnectionPool:
    """Return the places for connections in one of so many processes."""
    return ConnectionPool(connections_of(server, workers=workers), percent=server.address_percent)


def raise_file_limit(wanted: int) -> None:
    """Have as many files open as connections may need, as far as this process may decide that."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    reachable = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < reachable:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (reachable, hard))


def files_of(hosting: Hosting, settings: Settings) -> TlsFiles:
    """Return where certificate and key are."""
    given = TlsFiles(hosting.certificate, hosting.private_key, hosting.client_certificates)
    return tls_files(settings.server, directory=Path(hosting.base), given=given)


async def _begun(web: WebServer, serving: asyncio.Task[None]) -> None:
    """Return once a server listens, or raise what kept it from that."""
    waiting = asyncio.create_task(web.is_begun.wait())
    await asyncio.wait((waiting, serving), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if serving.done():
        serving.result()


# Servers on a port of their own beside the one for HTTP (gRPC): started once the base is open, stopped before it closes.


class SideDoor(Protocol):
    """A server of its own over the same plane."""

    async def start(self, address: str) -> int:
        """Listen at `host:port` and return the port."""
        ...

    async def stop(self, *, grace_s: float) -> None:
        """Stop listening, and let requests under way finish within this time."""
        ...


def side_doors(context: ServerContext, hosting: Hosting, *, files: TlsFiles, max_connections: int = 1_000) -> list[tuple[SideDoor, str]]:
    """Return the doors that are asked for, each with the address where it is to listen."""
    if hosting.grpc_port is None:
        return []
    context = dataclasses.replace(context, watch=CallMetrics("grpc", clock=context.parts.clock))
    host = f"[{hosting.host}]" if ":" in hosting.host else hosting.host
    door = _grpc_door(context, is_shared=hosting.is_supervised, files=files, max_connections=max_connections)
    return [(door, f"{host}:{hosting.grpc_port}")]


class SideDoors:
    """Several of them, open while this is entered or until it is closed; one that cannot be opened closes those that were."""

    def __init__(self, doors: Sequence[tuple[SideDoor, str]], *, grace_s: float) -> None:
        self._doors = doors
        self._grace_s = grace_s
        self._opened: list[SideDoor] = []

    async def __aenter__(self) -> Self:
        """Open them."""
        try:
            for door, address in self._doors:
                await door.start(address)
                self._opened.append(door)
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close them."""
        await self.close()

    async def close(self) -> None:
        """Let what is under way finish, and close them; twice is once."""
        opened, self._opened = self._opened, []
        for door in reversed(opened):
            await door.stop(grace_s=self._grace_s)


def _grpc_door(context: ServerContext, *, is_shared: bool, files: TlsFiles, max_connections: int) -> SideDoor:
    try:
        from evidentia.serving.grpc.grpc_server import GrpcDoor, credentials_of
    except ImportError as error:
        raise MissingExtraError("grpc", needed_for="`--grpc-port`") from error
    if not files.is_on:
        return GrpcDoor(context, is_shared=is_shared, max_connections=max_connections)
    authorities = Path(files.client_certificates).read_bytes() if files.client_certificates else None
    credentials = credentials_of(
        certificate=Path(files.certificate).read_bytes(), private_key=Path(files.private_key).read_bytes(), authorities=authorities
    )
    return GrpcDoor(context, credentials=credentials, is_shared=is_shared, max_connections=max_connections)
