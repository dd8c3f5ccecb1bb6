"""A governor behind HTTP in front of a real plane, beside the same governor in this process, and planes that are gone or lie."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evidentia.backends.remote.remote_governor import RemoteGovernor
from evidentia.contracts.control import Role
from evidentia.contracts.errors import InvalidFieldError, PolicyInvalidError, ServiceReplyError, ServiceUnavailableError
from evidentia.contracts.policies import PolicyBody, PolicyScope
from evidentia.contracts.runs import (
    BatchClosed,
    GroundingEntry,
    LlmCall,
    RetrievedDocument,
    RunEnded,
    RunFacts,
    RunId,
    RunStarted,
    RunStatus,
)
from evidentia.serving.cli.serve_loop import bound_socket
from evidentia.serving.hosting.application import make_app
from evidentia.wiring.embedded import create
from evidentia.wiring.governance_runtime import GovernanceRuntime
from web_servers import running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from evidentia.contracts.decisions import Verdict
    from evidentia.contracts.runs import AnyCall

GUARD = PolicyBody(
    name="guard",
    category="retrieval",
    rules={"min_chunks": 2, "max_chunks": 4, "blocked_sources": ["bad"], "action_on_chunk_violation": "block"},
    scope=PolicyScope(agents=("rag-*",)),
)
CITED = PolicyBody(name="cited", category="grounding", rules={"min_grounding_score": 0.6, "action_on_violation": "block"})
GOOD = RetrievedDocument(relevance_score=0.9, source="a", collection="kb", age_days=3)
STALE = RetrievedDocument(relevance_score=0.9, source="a", collection="kb", age_days=400)


class ServerContext:
    """A plane on a socket of its own."""

    def __init__(self, url: str, control: GovernanceRuntime) -> None:
        self.url = url
        self.control = control

    def governor(self, *roles: Role) -> RemoteGovernor:
        issued = self.control.tokens.issue(name="agent", roles=roles or (Role.AGENT,), tenant="default", by="test")
        return RemoteGovernor(self.url, token=issued.token)


@contextmanager
def serving(directory: Path, *, port: int = 0) -> Iterator[ServerContext]:
    with GovernanceRuntime(directory) as control, bound_socket("127.0.0.1", port) as listening:
        config = uvicorn.Config(make_app(control), log_config=None, access_log=False, lifespan="on", timeout_graceful_shutdown=2)
        server = uvicorn.Server(config)
        with running(server, listening) as url:
            yield ServerContext(url, control)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerContext]:
    base = tmp_path_factory.mktemp("plane") / "base"
    create(base)
    with serving(base) as served:
        for body in (GUARD, CITED):
            served.control.policies.put(body, tenant="default", by="test")
        yield served


@pytest.fixture(scope="module")
def governor(plane: ServerContext) -> Iterator[RemoteGovernor]:
    remote = plane.governor()
    yield remote
    remote.close()


def facts(**fields: Any) -> RunFacts:
    return RunFacts(**{"run_id": RunId(""), "agent_name": "rag-agent", **fields})


def test_a_block_comes_back_with_its_record(governor: RemoteGovernor) -> None:
    run = governor.start(facts())

    assert ["cited", "guard"] == sorted(policy.body.name for policy in run.policies.policies)
    run.record(GOOD)
    (verdict,) = run.record(STALE)
    decision = run.decision_of(verdict)
    assert verdict.stops
    assert decision is not None
    assert "Source age (400 days) exceeds max (90 days)" == decision.reason
    assert decision in run.decisions()


def test_the_end_is_decided_by_the_plane(governor: RemoteGovernor) -> None:
    run = governor.start(facts())
    run.record(GOOD)
    run.record(GOOD)

    verdicts = run.finish(RunEnded(), text="an answer")

    assert ["Citations (0) below minimum (1)"] == [each.decisive.reason for each in verdicts if each.stops]
    assert list(verdicts) == list(run.finish(RunEnded()))


calls = st.one_of(
    st.builds(
        RetrievedDocument,
        relevance_score=st.sampled_from([0.2, 0.7, 0.95, 1.5]),
        source=st.sampled_from(["a", "b", "bad", ""]),
        collection=st.just("kb"),
        age_days=st.sampled_from([None, 0, 90, 91.5, 400]),
        batch=st.sampled_from([None, "x"]),
    ),
    st.builds(
        GroundingEntry, grounding_scores=st.lists(st.sampled_from([0.1, 0.6, 0.9]), max_size=3).map(tuple), citations=st.just(("c",))
    ),
    st.builds(BatchClosed, batch=st.sampled_from([None, "x"])),
    st.builds(LlmCall, model=st.just("m")),
)


@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(trace=st.lists(calls, max_size=8), is_enforced=st.booleans())
def test_the_plane_decides_as_the_same_governor_in_this_process_does(
    plane: ServerContext, governor: RemoteGovernor, *, trace: list[AnyCall], is_enforced: bool
) -> None:
    def decided(run: Any) -> list[list[Verdict]]:
        return [*([*run.record(call)] for call in trace), [*run.finish(RunEnded(status=RunStatus.SUCCESS))]]

    there, here = governor.start(facts(), is_enforced=is_enforced), plane.control.start(facts(), is_enforced=is_enforced)

    assert decided(here) == decided(there)


def test_policies_in_force_are_read_in_pages(governor: RemoteGovernor) -> None:
    assert ["cited", "guard"] == [each.policy.body.name for each in governor.live(tenant="default")]


def test_what_is_wrong_is_raised_as_it_would_be_here(governor: RemoteGovernor) -> None:
    run = governor.start(facts())

    with pytest.raises(PolicyInvalidError, match="min_chunk"):
        governor.start(facts(), policies=[PolicyBody(name="x", category="retrieval", rules={"min_chunk": 1})])
    with pytest.raises(InvalidFieldError, match="relevance_score"):
        run.record(RetrievedDocument(relevance_score=float("nan")))
    with pytest.raises(InvalidFieldError, match="age_days"):
        run.record(RetrievedDocument(age_days=-1))
    with pytest.raises(InvalidFieldError, match="agent_name"):
        governor.start(facts(agent_name=""))
    with pytest.raises(InvalidFieldError, match="RunStarted"):
        run.record(RunStarted(facts=facts()))
    assert [] == [each.reason for each in run.decisions() if each.kind == "retrieval"]


def test_a_token_that_does_not_open_is_told_and_not_repeated(plane: ServerContext) -> None:
    for governor in (RemoteGovernor(plane.url, token="evt_wrong_token"), plane.governor(Role.READER)):  # noqa: S106
        with pytest.raises(ServiceReplyError) as caught:
            governor.start(facts())
        governor.close()
        assert "evt_" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "token"),
    [
        ("ftp://x", ""),
        ("http://", ""),
        ("http://example.org", "t"),
        ("https://u:p@x", ""),
        ("https://x?q=1", ""),
        ("https://x", "a b"),
        ("x", ""),
    ],
)
def test_an_address_or_token_that_cannot_be_right_is_refused(url: str, token: str) -> None:
    with pytest.raises(InvalidFieldError):
        RemoteGovernor(url, token=token)


# --- planes that are gone, slow or lie ---


def test_a_plane_that_went_away_is_unavailable_and_one_that_forgot_the_run_too(tmp_path: Path) -> None:
    create(tmp_path / "base")
    with serving(tmp_path / "base") as first:
        governor = first.governor()
        run = governor.start(facts())
        run.record(GOOD)
        port = int(first.url.rpartition(":")[2])
    with pytest.raises(ServiceUnavailableError):
        run.record(GOOD)
    with pytest.raises(ServiceUnavailableError):
        governor.start(facts())
    with serving(tmp_path / "base", port=port):
        with pytest.raises(ServiceUnavailableError, match="any more"):
            run.record(GOOD)
        assert governor.start(facts()).facts.run_id
    governor.close()


class Handler(BaseHTTPRequestHandler):
    """Answers as the test says."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.server.asked += 1  # type: ignore[attr-defined]
        self.server.script(self, self.server.asked)  # type: ignore[attr-defined]

    def reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def answering(script: Callable[[Handler, int], None]) -> Iterator[RemoteGovernor]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.script, server.asked = script, 0  # type: ignore[attr-defined]
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.01), daemon=True)
    thread.start()
    governor = RemoteGovernor(f"http://127.0.0.1:{server.server_address[1]}", token="t", read_s=2)  # noqa: S106
    try:
        yield governor
    finally:
        governor.close()
        server.shutdown()
        server.server_close()
        thread.join()


REPLIES: list[tuple[int, bytes, type[Exception]]] = [
    (500, b"xyzzy", ServiceUnavailableError),
    (503, b"", ServiceUnavailableError),
    (429, b"{}", ServiceUnavailableError),
    (200, b"xyzzy", ServiceReplyError),
    (200, b"\xff", ServiceReplyError),
    (200, b'{"run_id": 3}', ServiceReplyError),
    (200, b"[" * 100_000, ServiceReplyError),
    (302, b"", ServiceReplyError),
    (403, b"xyzzy", ServiceReplyError),
]


@pytest.mark.parametrize(("status", "body", "kind"), REPLIES)
def test_an_answer_that_is_none_is_an_error_that_quotes_nothing(status: int, body: bytes, kind: type[Exception]) -> None:
    with answering(lambda handler, _: handler.reply(status, body)) as governor, pytest.raises(kind) as caught:
        governor.start(facts(run_id=RunId("r")))

    assert "xyzzy" not in str(caught.value)


def test_a_connection_that_breaks_is_tried_once_more() -> None:
    def script(handler: Handler, asked: int) -> None:
        if asked == 1:
            handler.connection.shutdown(socket.SHUT_RDWR)
            handler.close_connection = True
        else:
            handler.reply(201, b'{"run_id": "r", "is_enforced": true, "policies": []}')

    with answering(script) as governor:
        run = governor.start(facts(run_id=RunId("r")))

    assert "r" == run.facts.run_id


def test_a_run_without_an_id_is_not_begun_twice() -> None:
    def script(handler: Handler, _: int) -> None:
        handler.connection.shutdown(socket.SHUT_RDWR)
        handler.close_connection = True

    with answering(script) as governor, pytest.raises(ServiceUnavailableError):
        governor.start(facts())


def test_a_retry_of_a_recorded_call_is_recorded_once(plane: ServerContext, governor: RemoteGovernor) -> None:
    run = governor.start(facts(run_id=RunId(f"once-{datetime.now(UTC).timestamp()}")))
    run.record(GOOD)
    run._seq = 0  # as if the answer had been lost on its way
    run.record(GOOD)

    plane.control.log.flush()
    recorded = [each for each in plane.control.log.records(run_id=run.facts.run_id) if isinstance(each.entry.call, RetrievedDocument)]
    assert 1 == len(recorded)
