"""A control plane on a real socket in front of a real base, and clients with a token of each role."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import uvicorn

from evidentia.contracts.control import NO_FACTS, Role
from evidentia.contracts.policies import DEFAULT_TENANT
from evidentia.serving.cli.serve_loop import bound_socket
from evidentia.serving.hosting.application import make_app
from evidentia.serving.identity.pools import Pools
from evidentia.wiring.governance_runtime import GovernanceRuntime
from web_servers import running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from evidentia.contracts.control import TokenFacts

SEED_BODY: dict[str, Any] = {
    "name": "RAG Quality Guard",
    "category": "retrieval",
    "rules": {
        "min_relevance_score": 0.75,
        "max_source_age_days": 90,
        "min_chunks": 1,
        "max_chunks": 8,
        "allowed_collections": ["knowledge_base"],
        "action_on_low_relevance": "warn",
        "action_on_stale_source": "block",
    },
    "scope": {"agents": ["rag-agent"]},
    "enabled": True,
}
GOOD: dict[str, Any] = {
    "kind": "retrieval",
    "relevance_score": 0.92,
    "source": "manual.pdf",
    "collection": "knowledge_base",
    "age_days": 14,
}
STALE: dict[str, Any] = {**GOOD, "age_days": 400}
STALE_REASON = "Source age (400 days) exceeds max (90 days)"


class Served:
    """A plane that runs, and those of one tenant who speak to it."""

    def __init__(
        self, url: str, control: GovernanceRuntime, stack: ExitStack, *, tenant: str = DEFAULT_TENANT, pools: Pools | None = None
    ) -> None:
        self.url = url
        self.pools = pools or Pools()
        """What callers share."""
        self.control = control
        self.tenant = tenant
        self._stack = stack
        self._clients: dict[Role, httpx2.Client] = {}

    def within(self, tenant: str) -> Served:
        return Served(self.url, self.control, self._stack, tenant=tenant, pools=self.pools)

    def token(self, *roles: Role, name: str = "", facts: TokenFacts = NO_FACTS, expires_at: datetime | None = None) -> str:
        named = name or f"a {roles[0]}"
        issued = self.control.tokens.issue(name=named, roles=roles, tenant=self.tenant, by="test", facts=facts, expires_at=expires_at)
        return issued.token

    def holding(self, token: str) -> httpx2.Client:
        """Return a client that shows a token."""
        headers = {"authorization": f"Bearer {token}"}
        return self._stack.enter_context(httpx2.Client(base_url=self.url, headers=headers, timeout=30, trust_env=False))

    def client(self, role: Role) -> httpx2.Client:
        if role not in self._clients:
            self._clients[role] = self.holding(self.token(role))
        return self._clients[role]

    @property
    def admin(self) -> httpx2.Client:
        return self.client(Role.ADMIN)

    @property
    def agent(self) -> httpx2.Client:
        return self.client(Role.AGENT)

    @property
    def reader(self) -> httpx2.Client:
        return self.client(Role.READER)

    @property
    def auditor(self) -> httpx2.Client:
        return self.client(Role.AUDITOR)

    @property
    def nobody(self) -> httpx2.Client:
        return self._stack.enter_context(httpx2.Client(base_url=self.url, timeout=30, trust_env=False))


@contextmanager
def serving(directory: Path, *, is_durable: bool = False, clock: Any = None, **options: Any) -> Iterator[Served]:
    """Run a plane over the base in a directory."""
    with ExitStack() as stack:
        control = stack.enter_context(GovernanceRuntime(directory, is_durable=is_durable, clock=clock))
        app = make_app(control, **options)
        listening = stack.enter_context(bound_socket("127.0.0.1", 0))
        config = uvicorn.Config(app, log_config=None, access_log=False, proxy_headers=False, lifespan="on", timeout_graceful_shutdown=5)
        server = uvicorn.Server(config)
        with running(server, listening) as url:
            yield Served(url, control, stack, pools=app.state.context.admission.pools)


def started(plane: Served, **facts: Any) -> str:
    """Begin a run and return its id."""
    reply = plane.agent.post("/v1/runs", json={"facts": {"agent_name": "rag-agent", **facts}})
    assert 201 == reply.status_code, reply.text
    return str(reply.json()["run_id"])


def recorded(plane: Served, run_id: str, seq: int, call: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Record one call and return what was decided."""
    reply = plane.agent.post(f"/v1/runs/{run_id}/calls", json={"calls": [{"seq": seq, "call": call, **more}]})
    assert 200 == reply.status_code, reply.text
    return dict(reply.json())
