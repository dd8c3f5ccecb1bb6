"""Another Evidentia on a real socket in front of a real base, and servers that fail, lie, trickle and never end."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

import evidentia
from evidentia.backends.remote.remote_retriever import RemoteEvidentia
from evidentia.contracts.access import Principal
from evidentia.contracts.errors import EvidentiaError, InvalidFieldError, ServiceReplyError, ServiceUnavailableError
from evidentia.contracts.evidence import EvidenceRequest, EvidenceResponse, SubQuery
from evidentia.contracts.ids import PrincipalId
from evidentia.contracts.retrieval import Candidate, SourceAsk
from evidentia.contracts.vocabulary import Classification
from evidentia.provenance.custody_exchange import BROKEN_CUSTODY, FAULT_KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KEY = "k3y-that-nobody-may-see"
KEY_VARIABLE = "EVIDENTIA_TEST_REMOTE_KEY"
CALLER = Principal(principal_id=PrincipalId("ann"), clearance=Classification.INTERNAL, is_owner=True)
ASK = SourceAsk(
    query=SubQuery(text="how tall is the crane?"), principal=CALLER, limit=5, budget_ms=30_000, as_of=datetime(2026, 3, 1, tzinfo=UTC)
)


class Handler(BaseHTTPRequestHandler):
    """Lets the server's script answer."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))  # type: ignore[attr-defined]
        try:
            self.server.script(self, body)  # type: ignore[attr-defined]
        except OSError:
            self.close_connection = True

    def reply(self, body: bytes, *, status: int = 200, headers: dict[str, str] | None = None, length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body) if length is None else length))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Served:
    """A server on a socket of its own, what it was asked, and an event that lets a hanging answer go on."""

    def __init__(self, script: Callable[[Handler, bytes], None]) -> None:
        self.released = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.asked: list[tuple[str, dict[str, str], bytes]] = []
        self._server.asked = self.asked  # type: ignore[attr-defined]
        self._server.script = script  # type: ignore[attr-defined]
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"

    def run(self) -> None:
        self._server.serve_forever(poll_interval=0.01)

    def stop(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def serving(script: Callable[[Handler, bytes], None]) -> Iterator[Served]:
    served = Served(script)
    thread = threading.Thread(target=served.run, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        served.stop()
        thread.join()


def ask_remote(address: str, *, ask: SourceAsk = ASK, **options: Any) -> list[Candidate]:
    """Ask a remote source once and close it."""

    async def scene() -> list[Candidate]:
        remote = RemoteEvidentia(address, **options)
        try:
            return [each async for each in remote.retrieve(ask)]
        finally:
            await remote.aclose()

    return asyncio.run(scene())


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[evidentia.Base]:
    folder = tmp_path_factory.mktemp("remote")
    (folder / "crane.md").write_text("# Crane\n\nThe harbour crane is 40 m tall.\n")
    (folder / "ship.md").write_text("# Ship\n\nThe ship is as tall as the crane.\n")
    with evidentia.connect(folder / "base", init=True) as opened:
        opened.ingest([folder / "crane.md", folder / "ship.md"], embed=False)
        yield opened


def answering(
    base: evidentia.Base, change: Callable[[EvidenceResponse], EvidenceResponse] | None = None
) -> Callable[[Handler, bytes], None]:
    """Return the script of a server that answers from a base, as the REST door does."""

    def script(handler: Handler, body: bytes) -> None:
        response: EvidenceResponse = base.retrieve(msgspec.json.decode(body, type=EvidenceRequest))
        handler.reply(msgspec.json.encode(response if change is None else change(response)))

    return script


def test_fragments_come_over_the_wire_with_their_custody(base: evidentia.Base) -> None:
    with serving(answering(base)) as served:
        proposed = ask_remote(served.address)

    assert ["40 m" in proposed[0].content, 2] == [True, len(proposed)]
    assert all(each.origin.startswith("evidentia:") and each.metadata["upstream_receipt"] for each in proposed)
    assert [1.0, 0.5] == [each.score for each in proposed]


def test_what_is_asked_is_a_request_of_the_contract(base: evidentia.Base) -> None:
    with serving(answering(base)) as served:
        ask_remote(f"{served.address}/")

    path, headers, body = served.asked[0]
    request = msgspec.json.decode(body, type=EvidenceRequest)
    assert ("/v1/evidence", "application/json", "identity") == (path, headers["content-type"], headers["accept-encoding"])
    assert (ASK.query.text, 5, 27_000, 0) == (
        request.query.text,
        request.limit,
        request.latency_deadline_ms,
        request.source_policy.most_sources,
    )
    assert "authorization" not in headers


def test_nobody_is_the_owner_of_another_base(base: evidentia.Base) -> None:
    with serving(answering(base)) as served:
        ask_remote(served.address)

    principal = msgspec.json.decode(served.asked[0][2], type=EvidenceRequest).principal
    assert msgspec.structs.replace(CALLER, is_owner=False) == principal


def test_connections_stay_open_between_questions(base: evidentia.Base) -> None:
    peers: list[object] = []
    answer = answering(base)

    def script(handler: Handler, body: bytes) -> None:
        peers.append(handler.client_address)
        answer(handler, body)

    async def scene(address: str) -> None:
        remote = RemoteEvidentia(address)
        for _ in range(3):
            assert 2 == len([each async for each in remote.retrieve(ASK)])
        await remote.aclose()

    with serving(script) as served:
        asyncio.run(scene(served.address))

    assert 1 == len(set(peers))


def test_another_event_loop_gets_connections_of_its_own(base: evidentia.Base) -> None:
    async def scene(remote: RemoteEvidentia) -> int:
        try:
            return len([each async for each in remote.retrieve(ASK)])
        finally:
            await remote.aclose()

    with serving(answering(base)) as served:
        remote = RemoteEvidentia(served.address)

        assert [2, 2] == [asyncio.run(scene(remote)) for _ in range(2)]


# --- custody ---


def test_a_fragment_that_was_changed_on_the_way_is_a_fault(base: evidentia.Base) -> None:
    def tamper(response: EvidenceResponse) -> EvidenceResponse:
        first, *others = response.fragments
        return msgspec.structs.replace(response, fragments=(msgspec.structs.replace(first, content="The crane is 4 m tall."), *others))

    with serving(answering(base, tamper)) as served:
        broken, whole = ask_remote(served.address)

    assert ("", {FAULT_KEY: BROKEN_CUSTODY}) == (broken.content, broken.metadata)
    assert "ship" in whole.content


# --- the key ---


def test_the_key_comes_from_the_environment(base: evidentia.Base, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    with serving(answering(base)) as served:
        ask_remote(served.address, key_variable=KEY_VARIABLE)

    assert f"Bearer {KEY}" == served.asked[0][1]["authorization"]


@pytest.mark.parametrize("key", ["", "two words", "li\nne"])
def test_a_key_that_is_none_is_not_sent(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, key)

    with pytest.raises(InvalidFieldError, match=KEY_VARIABLE):
        ask_remote("http://127.0.0.1:1", key_variable=KEY_VARIABLE)


def test_a_key_is_not_sent_in_the_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)

    with pytest.raises(InvalidFieldError, match="https"):
        ask_remote("http://evidence.example", key_variable=KEY_VARIABLE)


@pytest.mark.parametrize(
    "address", ["", "evidence.example", "ftp://x", "http://user:pass@x", "http://x?key=1", "http://x/#a", "http://x y", "http://[x"]
)
def test_an_address_that_is_none_or_holds_a_secret_is_refused(address: str) -> None:
    with pytest.raises(InvalidFieldError, match="address"):
        RemoteEvidentia(address)


# --- servers that fail ---


@pytest.mark.parametrize(
    ("script", "error"),
    [
        (lambda handler, _: handler.reply(b"", status=500), ServiceUnavailableError),
        (lambda handler, _: handler.reply(b"", status=429), ServiceUnavailableError),
        (lambda handler, _: handler.reply(b"secret", status=401), ServiceReplyError),
        (lambda handler, _: handler.reply(b"", status=302, headers={"location": "http://127.0.0.1:9/"}), ServiceReplyError),
        (lambda handler, _: handler.reply(b"", status=204), ServiceReplyError),
        (lambda handler, _: handler.reply(b"secret garbage"), ServiceReplyError),
        (lambda handler, _: handler.reply(b"{}"), ServiceReplyError),
        (lambda handler, _: handler.reply(b"[" * 100_000), ServiceReplyError),
        (lambda handler, _: handler.reply(b'"\xff"'), ServiceReplyError),
        (lambda handler, _: handler.reply(b"x", headers={"content-encoding": "gzip"}), ServiceReplyError),
        (lambda handler, _: handler.hang_up(), ServiceUnavailableError),
        (lambda handler, _: (handler.reply(b"half", length=100), handler.hang_up()), ServiceUnavailableError),
    ],
)
def test_a_server_that_fails_is_an_error_that_repeats_nothing(
    script: Callable[[Handler, bytes], None], error: type[EvidentiaError]
) -> None:
    with serving(script) as served, pytest.raises(error) as failed:
        ask_remote(served.address)

    assert "127.0.0.1" in str(failed.value)
    assert "secret" not in str(failed.value)
    assert failed.value.__cause__ is None


def test_a_server_that_is_not_there_is_unavailable() -> None:
    with serving(lambda _handler, _body: None) as served:
        address = served.address

    with pytest.raises(ServiceUnavailableError, match="cannot be spoken to"):
        ask_remote(address)


def test_a_reply_without_end_is_not_read_to_the_end() -> None:
    sent = 0

    def endless(handler: Handler, _: bytes) -> None:
        nonlocal sent
        handler.send_response(200)
        handler.send_header("transfer-encoding", "chunked")
        handler.end_headers()
        while True:
            handler.wfile.write(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
            sent += 0x10000

    with serving(endless) as served, pytest.raises(ServiceReplyError, match="more than 1000000 bytes"):
        ask_remote(served.address, max_reply_bytes=1_000_000)

    assert sent < 100_000_000


@pytest.mark.parametrize("before", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf"])
def test_a_slow_server_is_given_up(before: bytes) -> None:
    served: Served

    def hang(handler: Handler, _: bytes) -> None:
        handler.wfile.write(before)
        handler.wfile.flush()
        served.released.wait()
        handler.close_connection = True

    with serving(hang) as served, pytest.raises(ServiceUnavailableError, match="within 60 ms"):
        ask_remote(served.address, ask=msgspec.structs.replace(ASK, budget_ms=50), linger_ms=10)
