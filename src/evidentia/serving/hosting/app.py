"""The application: every door's routes over one plane, and the plane's life."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from typing import TYPE_CHECKING, Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from evidentia.serving.hosting.doors import Doors
from evidentia.serving.hosting.forwarding import OwnWriter
from evidentia.serving.hosting.health import LIVE, READY
from evidentia.serving.hosting.inner import Inner
from evidentia.serving.hosting.limits import Limits
from evidentia.serving.hosting.metrics import Measured
from evidentia.serving.hosting.process_role import ALONE
from evidentia.serving.hosting.readiness import Readiness
from evidentia.serving.identity.gate import make_admission
from evidentia.serving.identity.hosts import HostCheck
from evidentia.serving.operations.open_runs import IDLE_NS, MAX_OPEN, OpenRuns
from evidentia.serving.operations.served_base import ServedBase
from evidentia.serving.operations.server_context import ServerContext
from evidentia.serving.rest.routes import refuse_route

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from starlette.types import ASGIApp, Receive, Scope, Send

    from evidentia.serving.hosting.process_role import ProcessRole
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
        runs=OpenRuns(clock=control.clock, max_open=max_open, idle_ns=idle_ns),
        admission=make_admission(control, settings, workers=role.workers),
    )
    writer = role.writer_for(alone, timeout_s=settings.request_s)
    context = dataclasses.replace(alone, writer=writer)
    doors = Doors(context, readiness, hosts=names, writer=writer, passed_to=role.writers if role.is_reader else None)
    app = Starlette(
        routes=doors.routes,
        exception_handlers={HTTPException: refuse_route},
        lifespan=lambda _: _living(context, doors, role=role, sweep_s=sweep_s),
    )
    app.router.redirect_slashes = False
    app.add_middleware(Limits, request_s=settings.request_s)
    app.add_middleware(_HostCheckButHealth, hosts=names)
    app.add_middleware(Measured, clock=control.clock)
    app.add_middleware(_Trimmed)
    app.state.context = context
    app.state.readiness = readiness
    app.state.links = doors.links
    app.state.inner = Inner(app, writer) if isinstance(writer, OwnWriter) else None
    return app


class _Trimmed:
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
async def _living(context: ServerContext, doors: Doors, *, role: ProcessRole, sweep_s: float) -> AsyncIterator[None]:
    """Close runs of which nobody speaks while the plane is up; in the end all of them, and the base."""

    async def sweep() -> None:
        while True:
            await asyncio.sleep(sweep_s)
            await run_in_threadpool(context.runs.close_idle)

    sweeping = asyncio.create_task(sweep())
    try:
        async with doors.open():
            yield
    finally:
        sweeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await sweeping
        if role.writers is not None:
            role.writers.close()
        await run_in_threadpool(context.runs.close_all)
        await run_in_threadpool(context.admission.close)
        await context.served_base.close()
