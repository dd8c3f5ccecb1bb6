"""The door over HTTP: a control plane on a real socket in front of a real base, whose judge is scripted."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
import uvicorn
from scenario_agents import play_async, play_sync
from scripted_judge import ScriptedJudge

from evidentia.agents.governors import TOKEN_VARIABLE
from evidentia.base.sync_base import connect
from evidentia.contracts.control import Role
from evidentia.contracts.policies import DEFAULT_TENANT
from evidentia.governance.governor import LocalGovernor
from evidentia.serving.cli.serve_loop import bound_socket
from evidentia.serving.hosting.application import make_app
from evidentia.wiring.governance_runtime import GovernanceRuntime
from served_doors import WithGrpc
from web_servers import running

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from scenario_cases import Case
    from scenario_doors import Played

Fields = dict[str, Any]  # JSON: a policy's body


class JudgedControl(GovernanceRuntime):
    """The parts of a base, with a judge that says what it is told."""

    def __init__(self, directory: Path, *, judge: ScriptedJudge) -> None:
        super().__init__(directory)
        self.judge = judge

    def governor_of(self, tenant: str) -> LocalGovernor:
        """Return what starts the runs of the one tenant there is."""
        assert tenant == DEFAULT_TENANT
        return LocalGovernor(self.policies, self.log, clock=self.clock, entropy=self.entropy, judge=self.judge, texts=self.judge)


class ServedPlane:
    """A plane that runs, whose token an agent finds in its environment, and an administrator who keeps its policies."""

    def __init__(self, url: str, control: JudgedControl, admin: httpx2.Client, *, grpc_address: str = "") -> None:
        self.url = url
        self.grpc_address = grpc_address
        self.judge = control.judge
        self.admin = admin

    def put(self, bodies: Sequence[Fields]) -> None:
        """Put bodies in force, by their names."""
        if bodies:
            reply = self.admin.post("/v1/policies/push", json={"policies": bodies})
            assert reply.is_success, reply.text

    def remove_all(self) -> None:
        """Take every policy out of force."""
        for each in self.admin.get("/v1/policies", params={"limit": 500}).json()["policies"]:
            self.admin.delete(f"/v1/policies/{each['policy']['policy_id']}").raise_for_status()

    def play(self, case: Case, *, url: str = "") -> Played:
        """Return what comes of a case whose policies are kept by the plane; `url` is another address of it."""
        self.remove_all()
        return play_sync(case, base=url or self.url, judge=self.judge, keeper=self)

    def play_with_given(self, case: Case, *, url: str = "") -> Played:
        """Return what comes of a case whose policies come with the run, unless they ask a judge; `url` as with `play`."""
        self.remove_all()
        return play_sync(case, base=url or self.url, judge=self.judge, keeper=self if _asks_judge(case) else None)

    def play_async_with_given(self, case: Case) -> Played:
        """Return the same from within an event loop."""
        self.remove_all()
        return play_async(case, base=self.url, judge=self.judge, keeper=self if _asks_judge(case) else None)


@contextmanager
def served_plane(directory: Path) -> Iterator[ServedPlane]:
    """Run a plane over a new base in a directory."""
    connect(directory, init=True).close()
    with ExitStack() as stack:
        control = stack.enter_context(JudgedControl(directory, judge=ScriptedJudge()))
        listening = stack.enter_context(bound_socket("127.0.0.1", 0))
        app = make_app(control)
        config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="on", timeout_graceful_shutdown=5)
        ports: list[int] = []
        server = WithGrpc(config, app.state.context, ports)
        with running(server, listening, is_up=lambda: bool(ports)) as url:
            headers = {"authorization": f"Bearer {_token(control, Role.ADMIN)}"}
            admin = stack.enter_context(httpx2.Client(base_url=url, headers=headers, timeout=30, trust_env=False))
            with pytest.MonkeyPatch.context() as environment:
                environment.setenv(TOKEN_VARIABLE, _token(control, Role.AGENT))
                yield ServedPlane(url, control, admin, grpc_address=f"127.0.0.1:{ports[0]}")


def _asks_judge(case: Case) -> bool:
    """Tell whether only a stored policy can ask for what the case wants."""
    return any(
        body.get("rules", {}).get("llm_grounding_check") or body.get("rules", {}).get("llm_grounding_criteria") for body in case.policies
    )


def _token(control: GovernanceRuntime, role: Role) -> str:
    return control.tokens.issue(name=f"an {role}", roles=(role,), tenant=DEFAULT_TENANT, by="test").token
