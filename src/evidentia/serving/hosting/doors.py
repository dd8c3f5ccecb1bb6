"""Every door of a plane in one list of routes, and what has to live as long as they are open."""

from __future__ import annotations

import dataclasses
import importlib.util
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Final

from starlette.routing import Mount, Route

from evidentia.contracts.errors import MissingExtraError
from evidentia.serving.dashboard.live import LiveStreams
from evidentia.serving.dashboard.routes import dashboard_routes
from evidentia.serving.hosting.health import health_routes
from evidentia.serving.hosting.metrics import MeasuredCalls, metrics_route
from evidentia.serving.hosting.reverse_proxy import ReverseProxy
from evidentia.serving.identity.links import Links
from evidentia.serving.identity.sessions import SessionStore
from evidentia.serving.jsonrpc.routes import rpc_routes
from evidentia.serving.operations.api_errors import ApiError
from evidentia.serving.rest.responding import refused
from evidentia.serving.rest.routes import rest_routes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from evidentia.serving.hosting.forwarding import Forwarder, OwnWriter, Writers
    from evidentia.serving.hosting.readiness import Readiness
    from evidentia.serving.mcp.endpoint import McpEndpoint
    from evidentia.serving.operations.server_context import ServerContext

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
        writer: Forwarder | OwnWriter | None = None,
        passed_to: Writers | None = None,
    ) -> None:
        self.links = Links(context.admission, notes=context.parts.policies, clock=context.parts.clock, entropy=context.parts.entropy)
        """The codes with which somebody may come in to the dashboard of this process."""
        self._context = context
        self._standing = readiness
        self._mcp: McpEndpoint | None = None
        self.routes: list[BaseRoute] = [
            *health_routes(context, readiness, writer=writer),
            metrics_route(context),
            *rest_routes(context),
            *rpc_routes(dataclasses.replace(context, watch=MeasuredCalls("rpc", clock=context.parts.clock))),
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
        from evidentia.serving.mcp.endpoint import mcp_endpoint

        context = self._context
        self._mcp = mcp_endpoint(context.served_base, tokens=context.parts.tokens, admission=context.admission, hosts=hosts)
        self._standing.before_waiting(self._mcp.close_streams)
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
        self._standing.before_waiting(live.close)
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
