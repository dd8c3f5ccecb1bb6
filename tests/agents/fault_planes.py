"""Worlds whose control plane is out of reach: behind a wire that can be cut, or stopped and begun again."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

import uvicorn
from fault_judges import CITED, TEXT, Governed, judged_body, put
from fault_judges import RULE as JUDGE_RULE
from fault_play import END, START, Played, Step, World, told

from evidentia.agents import Context
from evidentia.agents.governors import FailoverGovernor
from evidentia.contracts.control import Role
from evidentia.contracts.policies import PolicyBody, Posture
from evidentia.serving.hosting.application import make_app
from evidentia.wiring.governance_runtime import GovernanceRuntime, remote_governor
from evidentia.wiring.system import SystemClock, SystemEntropy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from evidentia.governance.log_scan import KeptLogs

RULE: Final = "control_plane"
DOCUMENTS: Final = ("first", "second", "third")
DOWN_UNSEEN: Final = "plane down from the start"
DOWN_SEEN: Final = "plane seen before, down at the start"
DIES: Final = "plane dies mid-run"
DIES_LAST: Final = "plane dies before the end"
IS_BACK: Final = "plane dies and is back"
RESTARTS: Final = "plane is started again mid-run"
FAULTS: Final = (DOWN_UNSEEN, DOWN_SEEN, DIES, DIES_LAST, IS_BACK, RESTARTS)
_TICK_S: Final = 0.005
_SERVED = itertools.count(1)


class ServerContext:
    """A plane over a base that can be stopped and begun again at the same address."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._door = _bound()
        self.port: int = self._door.getsockname()[1]
        self._stack = ExitStack()
        self.control: GovernanceRuntime

    def begin(self) -> None:
        """Open the base, listen, and wait until the plane answers."""
        stack = self._stack = ExitStack()
        self.control = stack.enter_context(GovernanceRuntime(self._directory))
        self._door.listen()
        config = uvicorn.Config(make_app(self.control), log_config=None, access_log=False, lifespan="on", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [self._door]}, daemon=True)
        thread.start()
        stack.callback(_stop, server, thread)
        while not server.started:
            time.sleep(_TICK_S)
            assert thread.is_alive()

    def stop(self) -> None:
        """Stop answering, and close the base; connections are refused, and nobody else gets the port."""
        self._stack.close()
        _hang_up(self._door)
        self._door = _bound(self.port)

    def tenant(self, body: PolicyBody) -> tuple[str, str]:
        """Return a new tenant who has one policy, and the token of its agent."""
        name = f"tenant-{next(_SERVED)}"
        put(self.control, body, tenant=name)
        return name, self.control.tokens.issue(name="an agent", roles=(Role.AGENT,), tenant=name, by="test").token

    def __enter__(self) -> Self:
        """Begin."""
        self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop for good."""
        self.stop()
        self._door.close()


class Wire:
    """A way to a port of this machine that can be cut and mended; while it is cut, connections are refused."""

    def __init__(self, port: int) -> None:
        self._to = ("127.0.0.1", port)
        self._door = _bound()
        self.port: int = self._door.getsockname()[1]
        self._is_cut = True
        self._open: list[socket.socket] = []

    @property
    def url(self) -> str:
        """Return the address of this end."""
        return f"http://127.0.0.1:{self.port}"

    def mend(self) -> None:
        """Carry what comes from now on."""
        if self._is_cut:
            self._is_cut = False
            self._door.listen()
            threading.Thread(target=self._accept, args=(self._door,), daemon=True).start()

    def cut(self) -> None:
        """Break every connection, and take no other; nobody else gets the port."""
        if not self._is_cut:
            self._is_cut = True
            broken, self._open = [self._door, *self._open], []
            for each in broken:
                _hang_up(each)
            self._door = _bound(self.port)

    def _accept(self, listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                near, _ = listening.accept()
                self._join(near)

    def _join(self, near: socket.socket) -> None:
        try:
            far = socket.create_connection(self._to)
        except OSError:
            _hang_up(near)
            return
        self._open += [near, far]
        for one, other in ((near, far), (far, near)):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=_carry, args=(one, other), daemon=True).start()

    def __enter__(self) -> Self:
        """Begin to carry."""
        self.mend()
        return self

    def __exit__(self, *_: object) -> None:
        """Cut it for good."""
        self.cut()
        self._door.close()


@contextmanager
def plane_world(plane: ServerContext, fault: str, posture: Posture) -> Iterator[World]:
    """Give an agent of a plane that cannot be reached from some step on; without a fault it can."""
    body = guard(posture)
    tenant, token = plane.tenant(body)
    with Wire(plane.port) as wire, closing(remote_governor(wire.url, token=token)) as remote:
        # A plane that is back is asked at once; how long it is left alone otherwise is not what is looked at here.
        base = Governed(FailoverGovernor(remote, clock=SystemClock(), entropy=SystemEntropy(), retry_ns=0))
        if fault == DOWN_SEEN:
            with Context("earlier", base=base, tenant=tenant) as earlier:
                document(earlier)
        if fault in {DOWN_UNSEEN, DOWN_SEEN}:
            wire.cut()

        def logs(ctx: Context) -> KeptLogs:
            """Have the plane told of everything, by this run or by the next, and return its logs."""
            wire.mend()
            ctx.flush()
            with Context("later", base=base, tenant=tenant):
                return plane.control.log

        # A plane that was never seen has told no policies, so the posture is that of a policy given with the run.
        given: dict[str, Any] = {"policies": [body]} if fault == DOWN_UNSEEN else {}
        yield World(
            base=base,
            steps=_steps(plane, wire, fault),
            struck={"": "", DOWN_UNSEEN: START, DOWN_SEEN: START, DIES_LAST: END}.get(fault, "second"),
            what=RULE,
            logs=logs,
            fields={"tenant": tenant, **given},
            prefix=f"{tenant}~",
        )


@contextmanager
def judged_plane_world(plane: ServerContext, posture: Posture) -> Iterator[World]:
    """Give an agent whose plane dies and takes its judge along; what is told is what was decided without them."""
    body = judged_body(posture, phase="mid_execution")
    tenant, token = plane.tenant(body)
    with Wire(plane.port) as wire, closing(remote_governor(wire.url, token=token)) as remote:
        steps = (
            Step("answer", lambda ctx: ctx.record_llm_call("model", response=TEXT)),
            Step("cut", lambda _: wire.cut()),
            Step("ground", lambda ctx: ctx.record_grounding(grounding_scores=[0.9], citations=[CITED])),
        )
        base = Governed(FailoverGovernor(remote, clock=SystemClock(), entropy=SystemEntropy()))
        yield World(base=base, steps=steps, struck="ground", what=JUDGE_RULE, logs=_own_log, fields={"tenant": tenant})


def _own_log(ctx: Context) -> KeptLogs:
    log: KeptLogs = ctx._recorded._run._local._log  # type: ignore[union-attr]  # a run that goes on here has a log in memory
    return log


def _steps(plane: ServerContext, wire: Wire, fault: str) -> Sequence[Step]:
    """Return three documents, and what happens between them."""
    documents = [Step(name, partial(document, source=name)) for name in DOCUMENTS]
    cut, mend = Step("cut", lambda _: wire.cut()), Step("mend", lambda _: wire.mend())
    stop, begin = Step("stop", lambda _: plane.stop()), Step("begin", lambda _: plane.begin())
    first, second, third = documents
    happens = {
        DIES: (first, cut, second, third),
        DIES_LAST: (*documents, cut),
        IS_BACK: (first, cut, second, mend, third),
        RESTARTS: (first, stop, second, begin, third),
    }
    return happens.get(fault, documents)


def check_acknowledged(world: World, played: Played) -> None:
    """Check that the plane's log holds every document whose call came back, once."""
    logged = [each.inputs["source"] for each in told(world, played) if each.kind == "retrieval"]
    acknowledged = [] if START in played.errors else [name for name in DOCUMENTS if name not in played.errors]

    assert sorted(set(logged)) == sorted(logged)
    assert set(acknowledged) <= set(logged)


def guard(posture: Posture) -> PolicyBody:
    """Return a policy with a posture for a plane out of reach."""
    return PolicyBody(name="Guard", category="retrieval", rules={"blocked_sources": ["bad"]}, posture={RULE: posture})


def document(ctx: Context, source: str = "a.pdf") -> None:
    """Record a document that is good."""
    ctx.record_retrieval_result(relevance_score=0.9, source=source, age_days=1)


def _carry(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while content := one.recv(65_536):
            other.sendall(content)
    _hang_up(one)
    _hang_up(other)


def _bound(port: int = 0) -> socket.socket:
    """Return a socket that holds a port and does not listen."""
    # Named as TCP, so that an event loop sends each answer at once; unnamed, every answer would wait for an acknowledgement.
    door = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    door.bind(("127.0.0.1", port))
    return door


def _hang_up(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()


def _stop(server: uvicorn.Server, thread: threading.Thread) -> None:
    server.should_exit = True
    thread.join()
