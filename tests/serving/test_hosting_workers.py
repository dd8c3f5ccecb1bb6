"""Several processes over one base: they answer together, die alone, and stop and renew without losing a request."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families

from evidentia.contracts.policies import DEFAULT_TENANT
from evidentia.wiring.governance_runtime import GovernanceRuntime
from serving.hosting_load import loaded
from serving.hosting_planes import UNLIMITED, client_of, issue, make_base, served
from serving.rest_planes import GOOD, SEED_BODY
from soak import IS_SOAKED

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx2

    from serving.hosting_load import Load
    from serving.hosting_planes import Server

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked at in /proc")
PATIENCE_S = 120


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return make_base(tmp_path, UNLIMITED)


def until(is_true: Callable[[], bool]) -> None:
    ends = time.monotonic() + PATIENCE_S
    while not is_true():
        assert time.monotonic() < ends
        time.sleep(0.02)


def pages(client: httpx2.Client, path: str, key: str) -> list[dict[str, object]]:
    """Return everything in a list that comes in pages."""
    found, cursor = [], None
    while True:
        reply = client.get(path, params={"limit": 500, **({"cursor": cursor} if cursor else {})})
        assert 200 == reply.status_code, reply.text
        found += reply.json()[key]
        cursor = reply.json().get("next_cursor")
        if not cursor:
            return found


def lost(client: httpx2.Client, load: Load) -> list[str]:
    """Return what was acknowledged and is not there."""
    documents = " ".join(str(each) for each in pages(client, "/v1/documents", "documents"))
    runs = [run for run in load.runs if not client.get(f"/v1/runs/{run}/decisions").json().get("decisions")]
    return [name for name in load.documents if f"{name}'" not in documents and f'{name}"' not in documents] + runs


def prepared(base: Path) -> str:
    """Return a token of a base that has a policy."""
    with GovernanceRuntime(base) as control:
        control.policies.push([SEED_BODY], tenant=DEFAULT_TENANT, by="test")
    return issue(base)


def killed_under_load(base: Path, token: str, *, workers: int, rounds: int, writing: int, reading: int) -> tuple[Load, list[str]]:
    """Kill a reader and the writer again and again; return what the clients did, and what is lost after the next start."""
    with served(base, "--workers", str(workers)) as server, loaded(server.url, token, writing=writing, reading=reading) as load:

        def is_whole() -> bool:
            return workers == len(server.workers) and 1 == len(server.writers)

        for _ in range(rounds):
            for is_writer in (False, True):
                until(is_whole)
                load.wait_for(writes=writing, reads=reading)
                os.kill((server.writers if is_writer else server.readers)[0], signal.SIGKILL)
                load.wait_for(writes=writing, reads=reading)
        until(is_whole)
        server.process.kill()
    return load, lost_after_start(base, token, load)


def lost_after_start(base: Path, token: str, load: Load) -> list[str]:
    with served(base) as server, client_of(server.url, token) as client:
        assert client.get("/v1/decisions/verify").json()["ok"]
        return lost(client, load)


def test_killed_processes_lose_nothing_that_was_acknowledged(base: Path) -> None:
    load, missing = killed_under_load(base, prepared(base), workers=2, rounds=1, writing=4, reading=8)

    assert [] == missing
    assert {"ConnectError", "ReadError", "RemoteProtocolError", "WriteError", "_RefusedError"} >= {
        each.partition(":")[0] for each in load.failures
    }
    assert all(" 503 " in each or "/calls 404 " in each or "/end 404 " in each for each in load.failures if each.startswith("_Refused"))


@pytest.mark.slow
@pytest.mark.skipif(not IS_SOAKED, reason="two kills are tried above; set EVIDENTIA_SOAK=full for twelve")
def test_processes_killed_again_and_again_lose_nothing_that_was_acknowledged(base: Path) -> None:
    _, missing = killed_under_load(base, prepared(base), workers=3, rounds=6, writing=4, reading=8)

    assert [] == missing


def test_many_clients_read_what_others_have_just_written_and_a_reload_meanwhile_refuses_nothing(base: Path) -> None:
    token = prepared(base)
    with served(base, "--workers", "2") as server:
        before = server.workers
        with loaded(server.url, token, writing=4, reading=4, name="early") as first:
            first.wait_for(writes=12, reads=40)
        with client_of(server.url, token) as client:
            missing = lost(client, first)
            families = {each.name: each for each in text_string_to_metric_families(client.get("/metrics").text)}
        # Each connection goes to whichever process takes it, so that what one wrote is read through all of them.
        for number in range(8):
            with client_of(server.url, token) as one, client_of(server.url, token) as other:
                name = f"seen-{number}"
                one.post("/v1/documents", json={"documents": [{"id": name, "text": "Seen."}], "embed": False})
                assert name in str(pages(other, "/v1/documents", "documents"))
        with client_of(server.url, token) as client, loaded(server.url, token, writing=4, reading=4) as load:
            run = client.post("/v1/runs", json={"facts": {"agent_name": "rag-agent"}}).json()["run_id"]
            load.wait_for(writes=4, reads=10)
            server.process.send_signal(signal.SIGHUP)
            until(lambda: len([pid for pid in server.workers if pid not in before]) == 2)
            load.wait_for(writes=8, reads=40)
            recorded = client.post(f"/v1/runs/{run}/calls", json={"calls": [{"seq": 1, "call": GOOD}]})
            ended = client.post(f"/v1/runs/{run}/end", json={"status": "success"})
            until(lambda: not set(before) & set(server.workers))
            load.wait_for(writes=4, reads=10)
        with client_of(server.url, token) as client:
            missing += lost(client, load)
        code = server.stop()

    assert 2 == len(before)
    assert [] == first.failures == load.failures
    assert [] == missing
    written = [sample for sample in families["evidentia_door_requests"].samples if sample.labels["operation"] == "ingest"]
    assert len(first.documents) <= sum(sample.value for sample in written if sample.labels["status"] == "200")
    assert [200, 200] == [recorded.status_code, ended.status_code]
    assert 0 == code


@pytest.mark.slow
def test_settings_are_read_again_by_a_reload_and_clients_at_rest_do_not_keep_a_server_from_stopping(base: Path) -> None:
    """Wrong settings are not taken, the folder between the processes is for their user alone, and the end leaves nothing behind."""
    token = issue(base)
    settings = base / "evidentia.toml"
    with served(base, "--workers", "2") as server:
        first = server.workers
        settings.write_text("[server]\nno_such_setting = 1\n")
        server.process.send_signal(signal.SIGHUP)
        until(lambda: "the old ones go on" in server.said)
        after_wrong = server.workers
        settings.write_text('[server]\nhosts = ["evidence.example"]\n')
        server.process.send_signal(signal.SIGHUP)
        until(lambda: len(server.workers) == 2 and not set(first) & set(server.workers))
        (place,) = set(sockets_of(server.workers))
        folder = Path(place).parent
        modes = [folder.stat().st_mode & 0o777, Path(place).stat().st_mode & 0o777]
        port = int(server.url.rpartition(":")[2])
        with (
            socket.create_connection(("127.0.0.1", port)) as half,
            socket.create_connection(("127.0.0.1", port)),
            client_of(server.url, token, headers={"host": "evidence.example"}) as client,
        ):
            half.sendall(b"GET /live HT")
            reply = client.get("/v1/policies")
            stopping = threading.Thread(target=server.stop)
            stopping.start()
            stopping.join(PATIENCE_S)

    assert first == after_wrong
    assert "no_such_setting" in server.said
    assert 200 == reply.status_code
    assert [0o700, 0o600] == modes
    assert 0 == server.process.returncode
    assert not folder.exists()


@pytest.mark.parametrize("words", [(), ("--workers", "2")])
def test_a_server_that_stops_says_first_that_it_is_not_ready_and_finishes_what_is_under_way(base: Path, words: tuple[str, ...]) -> None:
    token = issue(base)
    body = b'{"facts": {"agent_name": "rag-agent"}}'
    with (
        served(base, "--drain", "1.5", *words) as server,
        socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])), timeout=60) as slow,
    ):
        with client_of(server.url, token) as client:
            before = client.get("/ready").status_code
            head = f"POST /v1/runs HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n"
            slow.sendall(f"{head}content-length: {len(body)}\r\nexpect: 100-continue\r\n\r\n".encode())
            asked_for_more = slow.recv(1_000)
            server.process.send_signal(signal.SIGTERM)
            until(lambda: client.get("/ready").status_code == 503)
            still = [client.get("/live").status_code, client.get("/v1/policies").status_code]
        until(lambda: not listens(server))
        slow.sendall(body)
        answer = b""
        while part := slow.recv(10_000):
            answer += part
        code = server.process.wait(PATIENCE_S)

    assert 200 == before
    assert [200, 200] == still
    assert asked_for_more.startswith(b"HTTP/1.1 100 ")
    assert answer.startswith(b"HTTP/1.1 201 ")
    assert b"connection: close" in answer.lower()
    assert 0 == code


def listens(server: Server) -> bool:
    try:
        socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])), timeout=60).close()
    except ConnectionError:
        return False
    return True


@pytest.mark.slow
def test_nothing_is_left_when_the_process_that_started_the_others_is_killed(base: Path) -> None:
    with served(base, "--workers", "2") as server:
        workers = server.workers
        folders = {place.parent for place in map(Path, sockets_of(workers))}
        server.process.kill()
        until(lambda: not any(Path(f"/proc/{pid}/cmdline").exists() for pid in workers))

    assert folders
    assert not any(folder.exists() for folder in folders)


def sockets_of(pids: list[int]) -> list[str]:
    inodes = {os.readlink(link).removeprefix("socket:[").removesuffix("]") for pid in pids for link in Path(f"/proc/{pid}/fd").iterdir()}  # noqa: PTH115 - a link to no path
    rows = (line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:])
    return [row[7] for row in rows if len(row) > 7 and row[6] in inodes and "writer-" in row[7]]
