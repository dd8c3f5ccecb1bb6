"""What a client may cost: connections, heads, bodies and time. Whoever goes beyond is cut off, and others notice nothing."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2
import pytest

from evidentia.serving.hosting.web_server import ConnectionTimeouts
from serving.hosting_certificates import Authority
from serving.hosting_planes import UNLIMITED, client_of, hosted_alone, issue, make_base, served
from serving.rest_planes import SEED_BODY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from serving.hosting_planes import Hosted

PATIENCE_S = 60
GB = 1 << 30
MB = 1 << 20


def connect(host: Hosted | str) -> socket.socket:
    port = int((host if isinstance(host, str) else host.url).rpartition(":")[2])
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)


def elsewhere(host: Hosted) -> socket.socket:
    """Connect from another address than the other clients do."""
    return socket.create_connection(("127.0.0.1", host.port), timeout=PATIENCE_S, source_address=("127.0.0.2", 0))


def everything(connected: socket.socket) -> bytes:
    """Return what comes until the other side closes; being cut off is an end too."""
    received = b""
    try:
        while part := connected.recv(65_536):
            received += part
    except ConnectionResetError:
        pass
    return received


def asking(connected: socket.socket, token: str) -> None:
    """Begin a request whose body never ends, and return once the server waits for it."""
    connected.sendall(head("/v1/policies", f"authorization: Bearer {token}", "content-length: 100", "expect: 100-continue"))
    assert connected.recv(100).startswith(b"HTTP/1.1 100 ")


def head(path: str, *lines: str) -> bytes:
    return "\r\n".join([f"POST {path} HTTP/1.1", "host: localhost", "content-type: application/json", *lines, "", ""]).encode()


# --- time ---


def test_a_body_that_drips_is_given_up(tmp_path: Path) -> None:
    base = make_base(tmp_path, "request_s = 1")
    with hosted_alone(base) as host, connect(host) as dripping:
        dripping.sendall(head("/v1/policies", f"authorization: Bearer {issue(base)}", "content-length: 100"))
        dripping.sendall(b"{")
        answer = everything(dripping)

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"request_too_slow" in answer
    assert b"connection: close" in answer


def test_a_head_that_never_ends_is_cut_off_while_others_are_answered(tmp_path: Path) -> None:
    with (
        hosted_alone(make_base(tmp_path), timeouts=ConnectionTimeouts(head_s=0.5)) as host,
        connect(host) as silent,
        connect(host) as slow,
        client_of(host.url) as client,
    ):
        slow.sendall(b"GET /live HTTP/1.1\r\nhost:")
        codes = [client.get("/live").status_code for _ in range(5)]
        ends = [everything(silent), everything(slow)]

    assert [200] * 5 == codes
    assert [b"", b""] == ends


def test_a_second_head_on_the_same_connection_is_timed_too(tmp_path: Path) -> None:
    with hosted_alone(make_base(tmp_path), timeouts=ConnectionTimeouts(head_s=0.5)) as host, connect(host) as slow:
        slow.sendall(b"GET /live HTTP/1.1\r\nhost: localhost\r\n\r\n")
        first = slow.recv(65_536)
        slow.sendall(b"GET /live HTT")
        rest = everything(slow)

    assert first.startswith(b"HTTP/1.1 200 ")
    assert b"HTTP/1.1" not in rest


def test_a_request_on_its_way_while_a_server_stops_is_answered_and_told_that_the_connection_ends(tmp_path: Path) -> None:
    ask = b"GET /live HTTP/1.1\r\nhost: localhost\r\n\r\n"
    with hosted_alone(make_base(tmp_path), timeouts=ConnectionTimeouts(linger_s=PATIENCE_S)) as host, connect(host) as resting:
        resting.sendall(ask)
        first = b""
        while not first.endswith(b"}"):
            first += resting.recv(65_536)
        is_stopping = threading.Event()
        host.host.app.state.readiness.before_waiting(is_stopping.set)
        draining = asyncio.run_coroutine_threadsafe(host.host.drain(), host.loop.loop)
        assert is_stopping.wait(PATIENCE_S)
        resting.sendall(ask)
        second = everything(resting)
        draining.result(PATIENCE_S)

    assert first.startswith(b"HTTP/1.1 200 ")
    assert b"connection: close" not in first
    assert second.startswith(b"HTTP/1.1 200 ")
    assert b"connection: close" in second


# --- how much ---


def test_a_head_that_is_too_long_is_refused(tmp_path: Path) -> None:
    with hosted_alone(make_base(tmp_path)) as host, connect(host) as connected:
        connected.sendall(b"GET /live HTTP/1.1\r\nhost: localhost\r\nx: " + b"x" * 100_000)
        answer = everything(connected)

    assert answer.startswith(b"HTTP/1.1 400 ")


def test_a_body_that_announces_too_much_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    base = make_base(tmp_path)
    with hosted_alone(base) as host, connect(host) as connected:
        lines = (f"authorization: Bearer {issue(base)}", f"content-length: {GB}", "expect: 100-continue")
        connected.sendall(head("/v1/policies", *lines))
        answer = everything(connected)

    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"100 Continue" not in answer


def test_a_client_that_sends_on_after_its_answer_is_cut_off(tmp_path: Path) -> None:
    with hosted_alone(make_base(tmp_path)) as host, connect(host) as connected:
        connected.sendall(head("/v1/policies", "content-length: 1000000"))
        answer = everything(connected)

    assert answer.startswith(b"HTTP/1.1 401 ")


def test_one_connection_too_many_is_told_to_come_back_but_may_ask_whether_the_server_lives(tmp_path: Path) -> None:
    base = make_base(tmp_path, "most_connections = 2", "address_percent = 100")
    with hosted_alone(base) as host, connect(host) as one, connect(host) as two, client_of(host.url) as client:
        for each in (one, two):
            asking(each, issue(base))
        refused, live = client.get("/v1/health"), client.get("/live")

    assert (503, "too_many_connections") == (refused.status_code, refused.json()["error"]["code"])
    assert "1" == refused.headers["retry-after"]
    assert 200 == live.status_code


def test_an_address_with_its_share_is_told_to_come_back_and_another_is_answered(tmp_path: Path) -> None:
    base = make_base(tmp_path, "most_connections = 4", "address_percent = 25")
    with hosted_alone(base) as host, connect(host) as busy, client_of(host.url) as client, elsewhere(host) as other:
        asking(busy, issue(base))
        refused = client.get("/v1/health")
        other.sendall(b"GET /v1/health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        answer = everything(other)

    assert (429, "too_many_connections") == (refused.status_code, refused.json()["error"]["code"])
    assert "1" == refused.headers["retry-after"]
    assert answer.startswith(b"HTTP/1.1 200 ")


def test_silent_connections_make_room_for_those_that_ask(tmp_path: Path) -> None:
    """The oldest silent one goes first, then the oldest that rests; one that is being answered stays."""
    base = make_base(tmp_path, "most_connections = 4", "address_percent = 100")
    with (
        hosted_alone(base) as host,
        connect(host) as busy,
        connect(host) as resting,
        connect(host) as first,
        connect(host) as second,
        client_of(host.url) as one,
        client_of(host.url) as two,
        client_of(host.url) as three,
    ):
        asking(busy, issue(base))
        resting.sendall(b"GET /live HTTP/1.1\r\nhost: localhost\r\n\r\n")
        answered = b""
        while not answered.endswith(b"}"):
            answered += resting.recv(65_536)
        codes, closed = [], []
        for client, goes in ((one, first), (two, second), (three, resting)):
            codes.append(client.get("/v1/health").status_code)
            closed.append(everything(goes))
        busy.sendall(b"x" * 100)
        answer = busy.recv(65_536)

    assert [200] * 3 == codes
    assert [b""] * 3 == closed
    assert answer.startswith(b"HTTP/1.1 400 ")


def test_many_silent_connections_of_one_address_leave_the_server_to_others(tmp_path: Path) -> None:
    with hosted_alone(make_base(tmp_path, "most_connections = 20")) as host, client_of(host.url) as client:
        silent = [elsewhere(host) for _ in range(60)]
        codes = [client.get("/v1/health").status_code for _ in range(5)]
        for each in silent:
            each.close()

    assert [200] * 5 == codes


def test_silent_handshakes_are_counted_and_cut_short(tmp_path: Path) -> None:
    """They take places like any connection, and make room for those who get on with theirs."""
    base = make_base(tmp_path, "most_connections = 4", "address_percent = 50")
    authority = Authority(tmp_path)
    pair = authority.pair("server")
    with hosted_alone(base, certificate=str(pair.certificate), private_key=str(pair.key)) as host:
        silent = [elsewhere(host) for _ in range(8)]
        ended = [everything(each) for each in silent[:6]]
        with client_of(host.url, verify=ssl.create_default_context(cafile=str(authority.file))) as client:
            codes = [client.get("/v1/health").status_code for _ in range(3)]
        for each in silent:
            each.close()

    assert [b""] * 6 == ended
    assert [200] * 3 == codes


# --- one process, a gigabyte ---


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def gigabyte() -> Iterator[bytes]:
    block = b" " * MB
    for _ in range(GB // MB):
        yield block


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize(("path", "most_mb"), [("/v1/policies", 16), ("/rpc", 200), ("/mcp", 48)])
def test_a_gigabyte_is_refused_while_others_are_answered_and_memory_stays_flat(tmp_path: Path, path: str, most_mb: int) -> None:
    base = make_base(tmp_path, UNLIMITED)
    token = issue(base)
    with served(base, has_mcp=path == "/mcp") as server, client_of(server.url, token) as client, client_of(server.url, token) as sender:
        assert 201 == client.post("/v1/policies", json=SEED_BODY).status_code
        # What is loaded on first use is there before memory is measured: a page of the list, and a refusal.
        assert 200 == client.get("/v1/policies").status_code
        kinds = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        assert client.post(path, content=b" " * (2 * MB), headers=kinds).status_code in {200, 400, 413}
        before = resident(server.process.pid)
        answers: list[int] = []

        def send() -> None:
            try:
                answers.append(sender.post(path, content=gigabyte(), headers=kinds).status_code)
            except httpx2.TransportError:
                answers.append(0)  # it was cut off before it had read the answer

        sending = threading.Thread(target=send)
        sending.start()
        others, most = [], before
        while sending.is_alive():
            others.append(client.get("/v1/policies").status_code)
            most = max(most, resident(server.process.pid))
        sending.join()
        last = client.get("/v1/policies").status_code

    assert answers[0] in {0, 413}
    assert {200} == {*others, last}
    # A body may have 1 MB, 64 MB and 4 MB at these doors; it is there twice or thrice while its parts are joined.
    assert most - before < most_mb * MB
