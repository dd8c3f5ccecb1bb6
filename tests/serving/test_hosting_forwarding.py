"""A process that reads and one that writes for it: what goes through either is the same, at once."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evidentia.contracts.control import TokenId
from evidentia.serving.hosting.process_role import ProcessRole, Writers
from evidentia.serving.hosting.reverse_proxy import inner_socket, is_own
from evidentia.serving.identity.sessions import hash_of
from evidentia.wiring.governance_runtime import open_tokens
from serving.hosting_planes import client_of, hosted, issue, make_base, writer_and_reader
from serving.mcp_doors import INITIALIZE, over_http
from serving.rest_planes import GOOD, SEED_BODY, STALE

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2

    from serving.hosting_planes import Hosted

MCP = {"accept": "application/json, text/event-stream"}
PATIENT_MS = 60_000


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return make_base(tmp_path, "requests_per_minute = 0")


@pytest.fixture
def pair(base: Path, tmp_path: Path) -> Iterator[tuple[Hosted, Hosted]]:
    with writer_and_reader(base, tmp_path) as pair:
        yield pair


def sent(text: str, name: str) -> dict[str, Any]:
    return {"documents": [{"id": name, "text": text}], "embed": False}


def begun(client: httpx2.Client) -> str:
    reply = client.post("/v1/runs", json={"facts": {"agent_name": "rag-agent"}})
    assert 201 == reply.status_code, reply.text
    return str(reply.json()["run_id"])


def calls(*calls: dict[str, Any], first: int = 1) -> dict[str, Any]:
    return {"calls": [{"seq": first + place, "call": call} for place, call in enumerate(calls)]}


# --- operations ---


def test_documents_sent_through_a_reader_are_found_through_both_at_once(pair: tuple[Hosted, Hosted], base: Path) -> None:
    writer, reader = pair
    token = issue(base)
    with client_of(writer.url, token) as direct, client_of(reader.url, token) as through:
        for number in range(5):
            report = through.post("/v1/documents", json=sent(f"Signing keys of ward {number} expire.", f"ward-{number}"))
            question = {"query": f"keys of ward {number}", "latency_deadline_ms": PATIENT_MS}
            answers = [client.post("/v1/evidence", json=question).json() for client in (through, direct)]

            assert 200 == report.status_code, report.text
            assert [f"ward-{number}"] * 2 == [re.findall(r"ward-\d", str(each["fragments"][0]))[0] for each in answers]


def test_a_receipt_of_one_process_is_read_in_the_other(pair: tuple[Hosted, Hosted], base: Path) -> None:
    writer, reader = pair
    token = issue(base)
    with client_of(writer.url, token) as direct, client_of(reader.url, token) as through:
        through.post("/v1/documents", json=sent("Signing keys expire.", "keys"))
        question = {"query": "keys", "latency_deadline_ms": PATIENT_MS}
        receipts = [client.post("/v1/evidence", json=question).json()["receipt_id"] for client in (through, direct)]
        found = [client.get(f"/v1/receipts/{receipt}").status_code for client, receipt in zip((direct, through), receipts, strict=True)]

    assert [200, 200] == found


def test_policies_and_runs_through_a_reader_are_seen_by_both_at_once(pair: tuple[Hosted, Hosted], base: Path) -> None:
    writer, reader = pair
    token = issue(base)
    with client_of(writer.url, token) as direct, client_of(reader.url, token) as through:
        created = through.post("/v1/policies", json=SEED_BODY)
        run = begun(through)
        decided = through.post(f"/v1/runs/{run}/calls", json=calls(GOOD, STALE))
        seen = [client.get(f"/v1/runs/{run}/decisions").json()["decisions"] for client in (through, direct)]
        ended = direct.post(f"/v1/runs/{run}/end", json={"status": "success"})
        shown = through.get(f"/v1/runs/{run}").json()

    assert 201 == created.status_code
    assert 2 == decided.json()["stopped_at"]
    assert seen[0] == seen[1]
    assert any("400 days" in each["reason"] for each in seen[0])
    assert "blocked" == ended.json()["status"] == shown["status"]


def test_a_run_that_was_begun_is_seen_by_both_at_once(pair: tuple[Hosted, Hosted], base: Path) -> None:
    token = issue(base)
    with client_of(pair[0].url, token) as direct, client_of(pair[1].url, token) as through:
        for begin, look in ((through, through), (direct, through), (through, direct)):
            assert "running" == look.get(f"/v1/runs/{begun(begin)}").json().get("status")


def test_a_refusal_comes_through_as_it_was_given(pair: tuple[Hosted, Hosted], base: Path) -> None:
    writer, reader = pair
    token = issue(base)
    bad = {**SEED_BODY, "rules": {"min_relevance_skore": 1}}
    with client_of(writer.url, token) as direct, client_of(reader.url, token) as through:
        stored = through.post("/v1/policies", json=SEED_BODY)
        place = f"/v1/policies/{stored.json()['policy']['policy_id']}"
        for method, path, options in (
            ("POST", "/v1/policies", {"json": bad}),
            ("POST", "/v1/policies", {"json": SEED_BODY}),
            ("PUT", place, {"json": SEED_BODY, "headers": {"if-match": '"7"'}}),
            ("DELETE", "/v1/policies/nothing", {}),
            ("POST", "/v1/runs/nothing/end", {"json": {}}),
        ):
            one, other = (client.request(method, path, **options) for client in (through, direct))

            assert one.status_code == other.status_code >= 400
            assert one.json() == other.json()

    assert stored.headers["etag"]


def test_without_the_writer_a_reader_reads_and_says_when_to_come_back(base: Path, tmp_path: Path) -> None:
    away = Writers([tmp_path / "nobody.sock"])
    with hosted((base, ProcessRole(2, away))) as (reader,), client_of(reader.url, issue(base)) as client:
        written = client.post("/v1/runs", json={"facts": {"agent_name": "rag-agent"}})
        passed = client.post("/mcp", json=INITIALIZE, headers=MCP)
        ready, live, read = (client.get(path).status_code for path in ("/ready", "/live", "/v1/policies"))

    assert [(503, "writer_restarting", "1")] * 2 == [
        (reply.status_code, reply.json()["error"]["code"], reply.headers["retry-after"]) for reply in (written, passed)
    ]
    assert (503, 200, 200) == (ready, live, read)


# --- runs, when the writer is replaced ---


def test_a_run_goes_on_in_the_writer_that_has_it(base: Path, tmp_path: Path) -> None:
    old, new = tmp_path / "old.sock", tmp_path / "new.sock"
    knowing = [Writers([old]), Writers([new]), Writers([old])]
    places = [(base, ProcessRole(2, knowing[0], old)), (base, ProcessRole(2, knowing[1], new)), (base, ProcessRole(2, knowing[2]))]
    token = issue(base)
    with hosted(*places) as hosts:
        clients = [client_of(host.url, token) for host in hosts]
        before = begun(clients[0])

        async def replace() -> None:
            for each in knowing:
                each.replace([new, old])

        hosts[0].loop.do(replace())
        after = [begun(client) for client in clients]
        kept = [client.post(f"/v1/runs/{before}/calls", json=calls(GOOD, first=place)) for place, client in enumerate(clients, start=1)]
        unknown = [client.post("/v1/runs/default~nothing/calls", json=calls(GOOD)).status_code for client in clients]
        counts = [host.host.app.state.context.runs.count for host in hosts]
        for client in clients:
            client.close()

    assert [200] * 3 == [reply.status_code for reply in kept], kept[0].text
    assert [404] * 3 == unknown
    assert [1, 3, 0] == counts
    assert 3 == len(set(after))


# --- sessions ---


def test_an_mcp_client_works_through_a_reader(pair: tuple[Hosted, Hosted], base: Path) -> None:
    _, reader = pair

    async def speak() -> list[str]:
        async with over_http(f"{reader.url}/mcp", token=issue(base)) as client:
            return [tool.name for tool in (await client.list_tools()).tools]

    assert "retrieve" in asyncio.run(speak())


def test_a_stream_begins_before_it_ends_and_ends_with_its_client(pair: tuple[Hosted, Hosted], base: Path) -> None:
    _, reader = pair
    with client_of(reader.url, issue(base), headers=MCP) as client:
        session = {"mcp-session-id": client.post("/mcp", json=INITIALIZE).headers["mcp-session-id"]}
        with client.stream("GET", "/mcp", headers={**session, "accept": "text/event-stream"}) as stream:
            begun_as = stream.status_code, stream.headers["content-type"].partition(";")[0]
        closed = client.delete("/mcp", headers=session)

    assert (200, "text/event-stream") == begun_as
    assert 200 == closed.status_code


def test_a_link_into_the_dashboard_works_through_a_reader(pair: tuple[Hosted, Hosted], base: Path) -> None:
    writer, reader = pair
    with open_tokens(base) as (tokens, _):
        issue(base)
        token_id = TokenId(tokens.tokens()[0].token_id)

    async def expect() -> None:
        writer.host.app.state.links.expect(hash_of("a-code"), token_id=token_id)

    writer.loop.do(expect())
    with client_of(reader.url) as client, client_of(reader.url) as late:
        page = client.get("/dashboard/enter", params={"code": "a-code"})
        entered = client.post("/dashboard/enter", data={"code": "a-code"}, headers={"origin": reader.url})
        home = client.get("/dashboard")
        late.post("/dashboard/enter", data={"code": "a-code"}, headers={"origin": reader.url})
        outside = late.get("/dashboard")

    assert 200 == page.status_code
    assert 303 == entered.status_code, entered.text
    assert 200 == home.status_code
    assert 303 == outside.status_code


# --- the socket between them ---


def test_the_socket_is_its_users_alone(tmp_path: Path) -> None:
    path = tmp_path / "w.sock"
    path.write_text("left behind")
    with inner_socket(path), socket.socket(socket.AF_UNIX) as own:
        own.connect(str(path))

        assert 0o600 == path.stat().st_mode & 0o777


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
def test_somebody_else_is_not_let_in() -> None:
    with tempfile.TemporaryDirectory() as folder, inner_socket(Path(folder) / "w.sock") as listening:
        path = Path(folder) / "w.sock"
        program = f"import os, socket; os.setuid(65534); s = socket.socket(socket.AF_UNIX); s.connect({str(path)!r}); s.recv(1)"
        for place in (path, path.parent):  # as if somebody had opened what is closed
            place.chmod(0o777)
        listening.settimeout(60)
        with subprocess.Popen([sys.executable, "-c", program]) as other:
            accepted, _ = listening.accept()
            with accepted:
                is_let_in = is_own(accepted)
            other.wait(60)
    mine, theirs = socket.socketpair()
    with mine, theirs:
        assert is_own(mine)

    assert not is_let_in
