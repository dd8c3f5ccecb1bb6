"""A dashboard on a real socket, and browsers without scripts that are signed in to it."""

from __future__ import annotations

import asyncio
import re
from contextlib import ExitStack, closing, contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx2
import uvicorn
from starlette.applications import Starlette

from evidentia.contracts.control import NO_FACTS, Role
from evidentia.contracts.policies import DEFAULT_TENANT
from evidentia.serving.cli.serve_loop import bound_socket
from evidentia.serving.dashboard.live import LiveStreams
from evidentia.serving.dashboard.routes import dashboard_routes
from evidentia.serving.identity.admission import Admission, Limiter
from evidentia.serving.identity.sessions import Links, SessionStore
from evidentia.serving.operations.open_runs import OpenRuns
from evidentia.serving.operations.served_base import ServedBase
from evidentia.serving.operations.server_context import ServerContext
from evidentia.serving.rest.rest_routes import rest_routes
from evidentia.wiring.embedded import create
from evidentia.wiring.governance_runtime import GovernanceRuntime
from evidentia.wiring.system import SystemClock
from web_servers import running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from evidentia.contracts.control import TokenFacts

PATIENT = {"deadline_ms": "20000"}
"""For pages that search: the first question also opens the index."""
_CSRF = re.compile(r'name="csrf" value="([^"]+)"')


class Browser:
    """Somebody with a cookie jar who sends what a browser sends with forms."""

    def __init__(self, client: httpx2.Client) -> None:
        self.client = client
        self.csrf = ""

    def get(self, path: str, **options: Any) -> httpx2.Response:
        reply = self.client.get(path, **options)
        found = _CSRF.search(reply.text)
        self.csrf = found[1] if found else self.csrf
        return reply

    def post(
        self,
        path: str,
        data: dict[str, Any] | None = None,
        *,
        csrf: str | None = None,
        headers: dict[str, str] | None = None,
        **options: Any,
    ) -> httpx2.Response:
        fields = {"csrf": self.csrf if csrf is None else csrf, **(data or {})}
        return self.client.post(path, data=fields, headers={**self.own_origin, **(headers or {})}, **options)

    @property
    def own_origin(self) -> dict[str, str]:
        base = str(self.client.base_url).rstrip("/")
        return {"origin": base, "sec-fetch-site": "same-origin"}

    def sign_in(self, token: str, *, back: str = "/dashboard") -> httpx2.Response:
        reply = self.client.post("/dashboard/sign-in", data={"key": token, "next": back}, headers=self.own_origin)
        if reply.status_code == 303:
            self.get(reply.headers["location"])
        return reply


class Door:
    """A dashboard that runs."""

    def __init__(
        self, url: str, control: GovernanceRuntime, stack: ExitStack, *, sessions: SessionStore, links: Links, live: LiveStreams
    ) -> None:
        self.url = url
        self.control = control
        self.sessions = sessions
        self.links = links
        self.live = live
        self._stack = stack

    def token(self, *roles: Role, name: str = "", tenant: str = DEFAULT_TENANT, facts: TokenFacts = NO_FACTS) -> str:
        return self.control.tokens.issue(name=name or f"a {roles[0]}", roles=roles, tenant=tenant, by="test", facts=facts).token

    def browser(self) -> Browser:
        return Browser(self._stack.enter_context(httpx2.Client(base_url=self.url, timeout=30, trust_env=False)))

    def signed_in(self, *roles: Role, **facts: Any) -> Browser:
        browser = self.browser()
        reply = browser.sign_in(self.token(*roles, **facts))
        assert reply.status_code == 303, reply.text
        return browser

    def api(self, token: str) -> httpx2.Client:
        headers = {"authorization": f"Bearer {token}"}
        return self._stack.enter_context(httpx2.Client(base_url=self.url, headers=headers, timeout=30, trust_env=False))


class ShiftedClock(SystemClock):
    """The real clock, with a shift that a test may change."""

    def __init__(self) -> None:
        self.shift_s = 0

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self.shift_s)

    def elapsed_ns(self) -> int:
        return super().elapsed_ns() + self.shift_s * 1_000_000_000


@contextmanager
def serving_dashboard(
    directory: Path, *, clock: Any = None, port: int = 0, requests_per_minute: int = 0, **live_options: Any
) -> Iterator[Door]:
    """Run a dashboard, and the API beside it, over the base in a directory."""
    with ExitStack() as stack:
        control = stack.enter_context(GovernanceRuntime(directory, clock=clock))
        limiter = Limiter(clock=control.clock, requests_per_minute=requests_per_minute)
        admission = Admission(control.tokens, limiter=limiter)
        served_base = ServedBase.open(control.directory, control=control)
        plane = ServerContext(parts=control, served_base=served_base, runs=OpenRuns(clock=control.clock), admission=admission)
        session_s = served_base.settings.server.session_s
        sessions = SessionStore(admission, notes=control.policies, clock=control.clock, entropy=control.entropy, session_s=session_s)
        links = Links(admission, notes=control.policies, clock=control.clock, entropy=control.entropy)
        live = LiveStreams(**live_options)
        app = Starlette(routes=[*rest_routes(plane), *dashboard_routes(plane, sessions=sessions, links=links, live=live)])
        app.router.redirect_slashes = False
        listening = stack.enter_context(bound_socket("127.0.0.1", port))
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=5))
        try:
            with running(server, listening) as url, closing(live):
                yield Door(url, control, stack, sessions=sessions, links=links, live=live)
        finally:
            asyncio.run(plane.served_base.close())


def filled(directory: Path, documents: list[dict[str, Any]], **options: Any) -> Path:
    """Make a base that holds documents, sent over the API."""
    create(directory)
    with serving_dashboard(directory) as door:
        reply = door.api(door.token(Role.ADMIN)).post("/v1/documents", json={"documents": documents, "embed": False, **options})
        assert reply.status_code == 200, reply.text
    return directory
