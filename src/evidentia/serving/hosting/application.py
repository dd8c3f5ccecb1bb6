"""The application: every door's routes over one plane, and the plane's life."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import importlib.util
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Mount, Route

from evidentia.contracts.errors import MissingExtraError
from evidentia.serving.dashboard.live import LiveStreams
from evidentia.serving.dashboard.routes import dashboard_routes
from evidentia.serving.hosting.door_metrics import CallMetrics, MetricsMiddleware, metrics_route
from evidentia.serving.hosting.process_role import ALONE, LocalWriter, ProcessRole, RemoteWriter, Writers
from evidentia.serving.hosting.readiness import LIVE, READY, Readiness, health_routes
from evidentia.serving.hosting.request_log import RequestLogMiddleware
from evidentia.serving.hosting.reverse_proxy import ReverseProxy, WriterApplication
from evidentia.serving.hosting.web_server import RequestLimits
from evidentia.serving.identity.admission import make_admission
from evidentia.serving.identity.host_check import HostCheck, TrustedProxies, proxy_networks
from evidentia.serving.identity.sessions import Links, SessionStore
from evidentia.serving.jsonrpc.rpc_routes import rpc_routes
from evidentia.serving.operations.api_errors import ApiError
from evidentia.serving.operations.open_runs import IDLE_NS, MAX_OPEN, OpenRuns
from evidentia.serving.operations.served_base import ServedBase
from evidentia.serving.operations.server_context import ServerContext
from evidentia.serving.rest.http_exchange import refused
from evidentia.serving.rest.rest_routes import refuse_route, rest_routes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

    from evidentia.serving.mcp.http_endpoint import McpEndpoint
    from evidentia.wiring.governance_runtime import GovernanceRuntime


SWEEP_S: Final = 30


def make_app(
    control: GovernanceRuntime,
    *,
    max_open: int = MAX_OPEN,
    idle_ns: int = IDLE_NS,
    sweep_s: float = SWEEP_S,
    readiness: Readiness | None = None,
    hosts: Iterable[str] = (),
    role: ProcessRole = ALONE,
) -> Starlette:
    """Return the application over the base that a control governs; whoever made the control closes it after it has shut down.

    `hosts` are names of this server beside this machine's own and those in the settings. In its `state` are the `plane`, the `links`
    into the dashboard, and as `inner` the application for other processes, None unless those have this one write.
    """
    served_base = ServedBase.open(control.directory, control=control)
    settings = served_base.settings.server
    readiness = readiness or Readiness()
    names = (*hosts, *settings.hosts)
    alone = ServerContext(
        parts=control,
        served_base=served_base,
        runs=OpenRuns(clock=control.clock, max_open=max_open, idle_ns=idle_ns, share_percent=settings.share_percent),
        admission=make_admission(control, settings, workers=role.workers),
    )
    writer = role.writer_for(alone, timeout_s=settings.request_s)
    context = dataclasses.replace(alone, writer=writer)
    doors = Doors(context, readiness, hosts=names, writer=writer, passed_to=role.writers if role.is_reader else None)
    app = Starlette(
        routes=doors.routes,
        exception_handlers={HTTPException: refuse_route},
        lifespan=lambda _: _living(context, doors, readiness, role=role, sweep_s=sweep_s),
    )
    app.router.redirect_slashes = False
    app.add_middleware(RequestLimits, request_s=settings.request_s)
    app.add_middleware(_HostCheckButHealth, hosts=names)
    app.add_middleware(MetricsMiddleware, clock=control.clock)
    is_logged = served_base.settings.telemetry.logs
    app.add_middleware(RequestLogMiddleware, clock=control.clock, entropy=control.entropy, is_on=is_logged)
    app.add_middleware(_TrailingSlashes)
    if settings.proxies:
        app.add_middleware(TrustedProxies, networks=proxy_networks(settings.proxies))
    app.state.context = context
    app.state.readiness = readiness
    app.state.links = doors.links
    app.state.inner = WriterApplication(app, writer) if isinstance(writer, LocalWriter) else None
    return app


class _TrailingSlashes:
    """Lets every path be written with a slash at its end."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if scope["type"] == "http" and len(path) > 1 and path.endswith("/"):
            scope = {**scope, "path": path[:-1]}
        await self._app(scope, receive, send)


class _HostCheckButHealth:
    """Holds the rule about hosts, but not for questions about health, which machines ask by address and which tell nothing."""

    def __init__(self, app: ASGIApp, *, hosts: Iterable[str]) -> None:
        self._app = app
        self._checked = HostCheck(app, hosts=hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_open = scope["type"] == "http" and scope["path"] in {LIVE, READY}
        await (self._app if is_open else self._checked)(scope, receive, send)


@contextlib.asynccontextmanager
async def _living(context: ServerContext, doors: Doors, readiness: Readiness, *, role: ProcessRole, sweep_s: float) -> AsyncIterator[None]:
    """Close runs of which nobody speaks while the plane is up; in the end all of them, and the base."""

    async def sweep() -> None:
        while True:
            await asyncio.sleep(sweep_s)
            await run_in_threadpool(context.runs.close_idle)

    sweeping = asyncio.create_task(sweep())
    readiness.begin_warming(context.served_base.warm)
    try:
        async with doors.open():
            yield
    finally:
        sweeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await sweeping
        if role.writers is not None:
            role.writers.close()
        await readiness.end_warming()
        await run_in_threadpool(context.runs.close_all)
        await run_in_threadpool(context.admission.close)
        await context.served_base.close()


# --- every interface in one list of routes, and what has to live as long as they are open ---

MCP: Final = "/mcp"
DASHBOARD: Final = "/dashboard"
NOT_IMPLEMENTED: Final = 501
_METHODS: Final = ["GET", "POST", "PUT", "PATCH", "DELETE"]


class Doors:
    """The routes of all doors over one plane; they answer while `open` is entered.

    Sessions of MCP and of the dashboard live in one process; `passed_to` are those that have them in the place of this one.
    """

    def __init__(
        self,
        context: ServerContext,
        readiness: Readiness,
        *,
        hosts: Iterable[str] = (),
        writer: RemoteWriter | LocalWriter | None = None,
        passed_to: Writers | None = None,
    ) -> None:
        self.links = Links(context.admission, notes=context.parts.policies, clock=context.parts.clock, entropy=context.parts.entropy)
        """The codes with which somebody may come in to the dashboard of this process."""
        self._context = context
        self._readiness = readiness
        self._mcp: McpEndpoint | None = None
        self.routes: list[BaseRoute] = [
            *health_routes(context, readiness, writer=writer),
            metrics_route(context),
            *rest_routes(context),
            *rpc_routes(dataclasses.replace(context, watch=CallMetrics("rpc", clock=context.parts.clock))),
            *(self._own(hosts) if passed_to is None else _passed(passed_to)),
        ]

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Keep what lives behind the doors."""
        async with nullcontext() if self._mcp is None else self._mcp.running():
            yield

    def _own(self, hosts: Iterable[str]) -> list[BaseRoute]:
        """Return the doors that have sessions, where what they need is installed."""
        routes: list[BaseRoute] = [*self._dashboard()]
        if importlib.util.find_spec("mcp") is None:
            return [*routes, _missing(MCP, "mcp")]
        from evidentia.serving.mcp.http_endpoint import mcp_endpoint

        context = self._context
        self._mcp = mcp_endpoint(context.served_base, tokens=context.parts.tokens, admission=context.admission, hosts=hosts)
        self._readiness.before_waiting(self._mcp.close_streams)
        return [*routes, Route(MCP, endpoint=self._mcp)]

    def _dashboard(self) -> list[Route]:
        context = self._context
        sessions = SessionStore(
            context.admission,
            notes=context.parts.policies,
            clock=context.parts.clock,
            entropy=context.parts.entropy,
            session_s=context.served_base.settings.server.session_s,
        )
        live = LiveStreams()
        self._readiness.before_waiting(live.close)
        return dashboard_routes(context, sessions=sessions, links=self.links, live=live)


def _passed(writers: Writers) -> list[BaseRoute]:
    """Return the doors that another process answers."""
    passing = ReverseProxy(writers)
    return [Route(MCP, endpoint=passing), Route(DASHBOARD, endpoint=passing), Mount(DASHBOARD, app=passing)]


def _missing(path: str, extra: str) -> Route:
    """Return a route that names what has to be installed for there to be anything."""

    async def answer(_: Request) -> Response:
        error = MissingExtraError(extra, needed_for=f"`{path}`")
        return refused(ApiError(NOT_IMPLEMENTED, error.code, str(error), hint=error.hint))

    return Route(path, answer, methods=_METHODS)
