"""One process, one port: every door, its health and what it counts."""

from __future__ import annotations

import importlib.util
import socket
import sys
import threading
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families

from evidentia.contracts.control import Role
from evidentia.serving.hosting import readiness
from evidentia.wiring.embedded import EmbeddedComponents
from serving.hosting_planes import client_of, hosted_alone, issue, make_base

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from serving.hosting_planes import Hosted

FORWARDED = {"x-forwarded-for": "192.0.2.7"}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return make_base(tmp_path)


@pytest.fixture
def host(base: Path) -> Iterator[Hosted]:
    with hosted_alone(base) as host:
        yield host


def counted(text: str, name: str, **labels: str) -> float:
    """Return the sum of the samples of a name that have these labels."""
    samples = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
    return sum(each.value for each in samples if each.name == name and labels.items() <= each.labels.items())


def test_every_door_answers_on_one_port(host: Hosted, base: Path) -> None:
    with client_of(host.url, issue(base)) as client:
        call = {"jsonrpc": "2.0", "id": 1, "method": "rpc.discover"}
        found = {
            "rest": client.get("/v1/policies").status_code,
            "rpc": client.post("/rpc", json=call).status_code,
            "mcp": client.post("/mcp", json={}, headers={"accept": "application/json, text/event-stream"}).status_code,
            "dashboard": client.get("/dashboard").status_code,
            "live": client.get("/live").status_code,
            "ready": client.get("/ready").status_code,
            "metrics": client.get("/metrics").status_code,
        }

    assert {"rest": 200, "rpc": 200, "mcp": 400, "dashboard": 303, "live": 200, "ready": 200, "metrics": 200} == found


def test_without_the_package_the_path_of_mcp_names_the_extra(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    with hosted_alone(base) as host, client_of(host.url) as client:
        reply = client.post("/mcp", json={})

    assert importlib.util.find_spec("mcp") is None
    assert (501, "missing_extra") == (reply.status_code, reply.json()["error"]["code"])
    assert "evidentia[mcp]" in reply.text


def test_a_host_that_stops_is_not_ready_but_lives(host: Hosted) -> None:
    host.host.app.state.readiness.stop()
    with client_of(host.url) as client:
        ready, live = client.get("/ready"), client.get("/live")

    assert (503, "stopping", "1") == (ready.status_code, ready.json()["error"]["code"], ready.headers["retry-after"])
    assert 200 == live.status_code


def test_a_host_is_ready_once_what_requests_need_is_loaded(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    may_go, is_mended, warm, tried = threading.Event(), threading.Event(), EmbeddedComponents.warm, []

    def slow(parts: EmbeddedComponents) -> None:
        assert may_go.wait(60)
        tried.append(parts)
        if not is_mended.is_set():
            raise OSError
        warm(parts)

    monkeypatch.setattr(EmbeddedComponents, "warm", slow)
    monkeypatch.setattr(readiness, "WARMING_S", 0.05)
    with hosted_alone(base) as host, client_of(host.url) as client:
        loading, live = client.get("/ready"), client.get("/live")
        may_go.set()
        monkeypatch.setattr(readiness, "WARMING_S", 60)
        broken, failures = client.get("/ready"), len(tried)
        is_mended.set()
        codes = [client.get("/ready").status_code for _ in range(2)]

    assert (503, "warming") == (loading.status_code, loading.json()["error"]["code"])
    assert 200 == live.status_code
    assert (503, "base_unreadable") == (broken.status_code, broken.json()["error"]["code"])
    assert [200, 200] == codes
    assert 1 == len(tried) - failures


def test_a_name_that_is_not_the_servers_is_refused_but_for_health(host: Hosted) -> None:
    with client_of(host.url) as client:
        codes = [
            client.get(path, headers={"host": "attacker.example"}).status_code for path in ("/v1/health", "/metrics", "/live", "/ready")
        ]

    assert [421, 421, 200, 200] == codes


def test_a_name_in_the_settings_is_the_servers(tmp_path: Path) -> None:
    with hosted_alone(make_base(tmp_path, 'hosts = ["evidence.example"]')) as host, client_of(host.url) as client:
        assert 200 == client.get("/v1/health", headers={"host": "evidence.example"}).status_code


# --- metrics ---


def test_requests_are_counted_by_door_operation_and_status(host: Hosted, base: Path) -> None:
    with client_of(host.url, issue(base)) as client:
        before = client.get("/metrics").text
        for path in ("/v1/policies", "/v1/policies/", "/v1/policies/nothing"):
            client.get(path)
        after = client.get("/metrics").text

    def more(name: str, **labels: str) -> float:
        return counted(after, name, **labels) - counted(before, name, **labels)

    assert 2 == more("evidentia_door_requests_total", door="rest", operation="list_policies", status="200")
    assert 1 == more("evidentia_door_requests_total", door="rest", operation="show_policy", status="404")
    assert 3 == more("evidentia_door_duration_seconds_count", door="rest")
    assert 0 == more("evidentia_door_in_flight", door="rest")


def test_calls_over_json_rpc_are_counted_one_by_one(host: Hosted, base: Path) -> None:
    calls = [
        {"jsonrpc": "2.0", "id": place, "method": name} for place, name in enumerate(["list_policies", "list_policies", "list_tokens"])
    ]
    with client_of(host.url, issue(base, Role.READER)) as client:
        before = client.get("/metrics").text
        assert 200 == client.post("/rpc", json=calls).status_code
        client.post("/rpc", content=b"{}", headers={"content-type": "text/plain"})
        after = client.get("/metrics").text

    def more(**labels: str) -> float:
        name = "evidentia_door_requests_total"
        return counted(after, name, door="rpc", **labels) - counted(before, name, door="rpc", **labels)

    assert 2 == more(operation="list_policies", status="200")
    assert 1 == more(operation="", status="415")
    assert 3 == more()
    assert 0 == counted(after, "evidentia_door_in_flight", door="rpc")


def test_what_is_sent_makes_no_new_series(host: Hosted) -> None:
    with client_of(host.url) as client:
        client.get("/zz-first")
        before = client.get("/metrics").text
        for number in range(20):
            client.get(f"/zz-{number}")
            client.get(f"/v1/zz-{number}", headers={"authorization": f"Bearer zz-{number}"})
        after = client.get("/metrics").text

    assert "zz-" not in after
    assert len(before.splitlines()) + 25 >= len(after.splitlines())


def test_a_token_that_asks_too_much_is_counted(tmp_path: Path) -> None:
    base = make_base(tmp_path, "requests_per_minute = 1")
    with hosted_alone(base) as host, client_of(host.url, issue(base)) as client:
        before = counted(client.get("/metrics").text, "evidentia_door_rate_limited_total", door="rest")
        codes = [client.get("/v1/policies").status_code for _ in range(5)]
        after = counted(client.get("/metrics").text, "evidentia_door_rate_limited_total", door="rest")

    assert codes.count(429) == after - before > 0


def test_metrics_are_for_this_machine_and_for_who_watches(host: Hosted, base: Path) -> None:
    codes = {}
    for role in (Role.ADMIN, Role.AUDITOR, Role.AGENT, Role.READER):
        with client_of(host.url, issue(base, role)) as client:
            codes[role] = client.get("/metrics", headers=FORWARDED).status_code
    with client_of(host.url) as client:
        nobody = client.get("/metrics", headers=FORWARDED).status_code
    with client_of(host.url, issue(base, tenant="acme")) as client:
        other_tenant = client.get("/metrics", headers=FORWARDED).status_code

    assert {Role.ADMIN: 200, Role.AUDITOR: 200, Role.AGENT: 403, Role.READER: 403} == codes
    assert (401, 403) == (nobody, other_tenant)


# --- gRPC ---


def test_grpc_answers_on_a_port_of_its_own_and_is_counted(base: Path) -> None:
    grpc = pytest.importorskip("grpc", reason="the extra `grpc` is not installed")
    from evidentia.protobuf.methods import METHODS

    (method,) = (each for each in METHODS if each.name == "ListPolicies")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    metadata = (("authorization", f"Bearer {issue(base)}"),)
    with hosted_alone(base, grpc_port=port) as host, grpc.insecure_channel(f"127.0.0.1:{port}") as channel, client_of(host.url) as client:
        before = client.get("/metrics").text
        ask = channel.unary_unary(
            f"/{method.full_service}/{method.name}",
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )
        answer = ask(method.request(), metadata=metadata, timeout=60)
        after = client.get("/metrics").text

    labels = {"door": "grpc", "operation": "list_policies", "status": "200"}
    assert isinstance(answer, method.response)
    assert 1 == counted(after, "evidentia_door_requests_total", **labels) - counted(before, "evidentia_door_requests_total", **labels)
