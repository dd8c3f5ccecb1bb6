"""Sources that are registered over the network: none makes the server speak to its own network, now or later."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from evidentia.contracts.control import Role
from evidentia.foundation.ssrf_guard import is_public_address
from evidentia.serving.operations.document_endpoints import source_of
from serving.rest_planes import Served, serving
from serving.served_bases import PLAIN, A, B, asked, cleared, made

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2

NAMES = count(1)
SOURCES = "/v1/sources"
ALLOWED = PLAIN + '[server]\nsource_hosts = ["Allowed.Example", "127.0.0.1"]\n'
PUBLIC = "1.1.1.1"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(made(tmp_path_factory.mktemp("served"))) as served:
        yield served


@pytest.fixture(scope="module")
def lenient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Return a plane whose settings allow two hosts."""
    with serving(made(tmp_path_factory.mktemp("lenient"), settings=ALLOWED)) as served:
        yield served


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return what names lead to; others lead where they do."""
    known: dict[str, str] = {}
    real = socket.getaddrinfo

    def looked_up(host: Any, port: Any, *rest: Any, **more: Any) -> Any:
        text = host.decode() if isinstance(host, bytes) else host
        if text in known:
            kind = socket.AF_INET6 if ":" in known[text] else socket.AF_INET
            return [(kind, socket.SOCK_STREAM, 6, "", (known[text], int(port or 0)))]
        return real(host, port, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", looked_up)
    return known


def added(plane: Served, address: str, **connection: Any) -> httpx2.Response:
    descriptor = {"source_id": f"s{next(NAMES)}", "connection": {"kind": "remote", "address": address, **connection}}
    return plane.admin.post(SOURCES, json=descriptor)


INSIDE = [
    "http://127.0.0.1:8321", "https://127.0.0.1", "http://127.1", "http://localhost", "http://LOCALHOST.", "http://2130706433", "http://0x7f000001",
    "http://0x7f.1", "http://0177.0.0.1", "http://0", "http://0.0.0.0", "http://10.0.0.1", "http://172.16.0.1", "http://192.168.1.1",
    "http://169.254.169.254/latest/meta-data", "http://0xa9fea9fe", "http://2852039166", "http://100.64.0.1", "http://224.0.0.1",
    "http://255.255.255.255", "http://[::1]", "http://[::]", "http://[::ffff:127.0.0.1]", "http://[::ffff:a9fe:a9fe]", "http://[fe80::1]",
    "http://[fc00::1]", "http://[fd00:ec2::254]", "http://[64:ff9b::7f00:1]", "http://[2002:7f00:1::]",
]  # fmt: skip


@pytest.mark.parametrize("address", INSIDE)
def test_an_address_of_the_servers_own_network_is_refused(shared: Served, address: str) -> None:
    reply = added(shared, address)

    assert 422 == reply.status_code, reply.text
    assert "connection.address" in reply.json()["error"]["message"]


ODD = [
    "", "x", "http://", "ftp://1.1.1.1", "file:///etc/passwd", "gopher://1.1.1.1", "unix:///var/run/docker.sock", "http://1.1.1.1@127.0.0.1",
    "http://user:key@1.1.1.1", "http://127.0.0.1\\@1.1.1.1", "http://1.1.1.1\\.evil", "http://[::1", "http://1.1.1.1:99999", "http://1.1.1.1:0",
    "http://1.1.1.1 ", "http://1.1.1.1\r\nx: y", "http://nowhere.invalid", "http://xn--\ud7ff.invalid", "http://" + "a" * 300 + ".invalid",
    "http://1.1.1.1/?q=x", "http://1.1.1.1/#x",
]  # fmt: skip


@pytest.mark.parametrize("address", ODD)
def test_what_is_no_plain_address_is_refused(shared: Served, address: str) -> None:
    reply = added(shared, address)

    assert 422 == reply.status_code, reply.text
    assert "connection.address" in reply.json()["error"]["message"]


@pytest.mark.parametrize("inside", ["127.0.0.1", "169.254.169.254", "10.1.2.3", "::1", "::ffff:10.0.0.1", "fe80::1"])
def test_a_name_that_leads_inside_is_refused(shared: Served, names: dict[str, str], inside: str) -> None:
    names["rebound.example"] = inside

    assert 422 == added(shared, "https://rebound.example:8443/x").status_code


@pytest.mark.parametrize("kind", ["mcp", "base", "own"])
def test_what_runs_a_command_or_reads_a_directory_is_added_at_the_machine(shared: Served, kind: str) -> None:
    descriptor = {"source_id": "x", "connection": {"kind": kind, "address": "/bin/sh", "tool": "x"}}
    reply = shared.admin.post(SOURCES, json=descriptor)

    assert 422 == reply.status_code
    assert "connection.kind" in reply.json()["error"]["message"]


@pytest.mark.parametrize("variable", ["PATH", "EVIDENTIA_SECRET_KEY", "AWS_SECRET_ACCESS_KEY", "evidentia_source_x"])
def test_no_secret_of_the_server_is_sent_to_a_source(shared: Served, variable: str) -> None:
    reply = added(shared, f"https://{PUBLIC}", key_variable=variable)

    assert 422 == reply.status_code
    assert "connection.key_variable" in reply.json()["error"]["message"]
    assert 201 == added(shared, f"https://{PUBLIC}", key_variable="EVIDENTIA_SOURCE_KEY").status_code


def test_a_public_address_is_registered_and_bound_to_such(shared: Served, lenient: Served) -> None:
    for plane, address, options in (
        (shared, f"https://{PUBLIC}:8443/x", {"reach": "public"}),
        (lenient, f"https://{PUBLIC}", {"reach": "public"}),
        (lenient, "http://127.0.0.1:9", {}),
        (lenient, "http://allowed.example", {}),
    ):
        for sent in ({}, {"reach": "anywhere"}, {"reach": "public"}):
            reply = added(plane, address, options=sent)
            assert (201, options) == (reply.status_code, reply.json()["connection"]["options"])


# --- when it is asked ---


@contextmanager
def listening(reply: bytes = b"") -> Iterator[tuple[int, list[bytes]]]:
    """Run something on this machine that keeps what it is told, and says one thing to everybody."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.settimeout(2)
                    heard.append(connection.recv(65_536))
                    connection.sendall(reply)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1], heard
        server.shutdown(socket.SHUT_RDWR)
    thread.join()


def test_a_name_that_leads_inside_later_is_not_followed(shared: Served, names: dict[str, str]) -> None:
    with listening() as (port, heard):
        names["rebound.example"] = PUBLIC
        source = added(shared, f"http://rebound.example:{port}").json()["source_id"]
        names["rebound.example"] = "127.0.0.1"
        trial = shared.admin.post(f"{SOURCES}/{source}/test", json={"query": "secret question"})
        asked(shared.reader, "secret question")
        shared.admin.delete(f"{SOURCES}/{source}")

    assert 502 == trial.status_code or "leads into" in trial.text, trial.text
    assert [] == heard


def test_a_redirect_is_not_followed(lenient: Served) -> None:
    with listening() as (inside, heard):
        redirect = f"HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:{inside}/\r\ncontent-length: 0\r\n\r\n".encode()
        with listening(redirect) as (port, told):
            source = added(lenient, f"http://127.0.0.1:{port}").json()["source_id"]
            lenient.admin.post(f"{SOURCES}/{source}/test", json={"query": "secret question"})
            lenient.admin.delete(f"{SOURCES}/{source}")

    assert [b"POST"] == [each[:4] for each in told]
    assert [] == heard


def test_public_addresses_are_the_only_public_ones() -> None:
    assert all(map(is_public_address, ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111"]))
    others = ["", "x", "1.1.1", "1.1.1.1.1", "198.18.0.1", "192.0.2.1", "240.0.0.1", "2001:db8::1", "fec0::1", "ff02::1"]
    assert not any(map(is_public_address, others))


# --- who may know of them ---


def test_where_a_source_is_told_to_the_operator_alone(shared: Served) -> None:
    source = added(shared, f"https://{PUBLIC}:7777/internal-name", key_variable="EVIDENTIA_SOURCE_X").json()["source_id"]
    told = {role: shared.client(role).get(SOURCES).text for role in Role}
    shared.admin.delete(f"{SOURCES}/{source}")

    assert all(source in text for text in told.values())
    assert {Role.ADMIN, Role.AUDITOR} == {role for role, text in told.items() if "internal-name" in text or "EVIDENTIA_SOURCE_X" in text}


def test_sources_of_other_tenants_are_not_listed(shared: Served) -> None:
    for path in (SOURCES, f"{SOURCES}/freshness"):
        for role in Role:
            text = shared.within(A).client(role).get(path).text
            assert source_of("shelf", tenant=A) in text
            assert B not in text


def test_sources_are_the_operators_affair(shared: Served) -> None:
    admin = shared.within(A).admin
    replies = [
        admin.post(SOURCES, json={"source_id": "x", "connection": {"kind": "memory"}}),
        admin.delete(f"{SOURCES}/x"),
        admin.post(f"{SOURCES}/x/test", json={"query": "x"}),
        admin.post(f"{SOURCES}/x/changed"),
    ]

    assert [(403, "wrong_tenant")] * 4 == [(each.status_code, each.json()["error"]["code"]) for each in replies]


def test_a_source_that_is_not_there_is_told_so(shared: Served) -> None:
    replies = [
        shared.admin.delete(f"{SOURCES}/nothing"),
        shared.admin.post(f"{SOURCES}/nothing/test", json={"query": "x"}),
        shared.admin.post(f"{SOURCES}/nothing/changed"),
    ]

    assert [404] * 3 == [each.status_code for each in replies]


def test_notes_are_a_source_that_can_be_tried_and_forgotten(shared: Served) -> None:
    assert 201 == shared.admin.post(SOURCES, json={"source_id": "memory", "connection": {"kind": "memory"}}).status_code
    trial = shared.admin.post(f"{SOURCES}/memory/test", json={"query": "anything"})
    changed = shared.admin.post(f"{SOURCES}/memory/changed")

    assert (200, 200) == (trial.status_code, changed.status_code), trial.text
    assert 200 == shared.admin.delete(f"{SOURCES}/memory").status_code
    assert "memory" not in [each["descriptor"]["source_id"] for each in cleared(shared, "internal").get(SOURCES).json()["sources"]]
