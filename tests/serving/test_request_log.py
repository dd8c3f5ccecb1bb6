"""The log of a server: a line for every request at every door, in every process, with its id and nothing of what was sent."""

from __future__ import annotations

import io
import json
import logging
import re
import socket
from typing import TYPE_CHECKING, Any

import grpc
import msgspec
import pytest

import evidentia
from evidentia.contracts.control import Role
from evidentia.contracts.settings import TelemetrySettings
from evidentia.protobuf.methods import METHODS
from evidentia.serving.hosting.request_log import begin_logging
from evidentia.serving.operations.request_facts import RequestFacts, answering, id_given
from serving.hosting_planes import client_of, issue, make_base, served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HIDDEN_WORDS = "zanzibar turquoise"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
LOGS = ("[telemetry]", "logs = true")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def lines_in(said: str, message: str = "request answered") -> list[dict[str, Any]]:
    """Return the lines that tell of requests; every line that begins like JSON has to be JSON."""
    read = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    return [each for each in read if each["message"] == message and each["logger"] == "evidentia.access"]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def rpc(client: Any, method: str, **params: object) -> Any:
    return client.post("/rpc", json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


def call_tool(client: Any) -> None:
    """Open a session of MCP and ask its tool `retrieve`."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    headers = {"accept": "application/json, text/event-stream"}
    opened = client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}, headers=headers)
    headers["mcp-session-id"] = opened.headers["mcp-session-id"]
    client.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=headers)
    params = {"name": "retrieve", "arguments": {"query": HIDDEN_WORDS}}
    client.post("/mcp", json={"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}, headers=headers)


def called(port: int, token: str) -> tuple[str, str]:
    """Return the status of a call over gRPC, and the id that its client is told."""
    method = next(each for each in METHODS if each.name == "ShowHead")
    metadata = (("authorization", f"Bearer {token}"), ("x-request-id", "mine-3"))
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        ask: Any = channel.unary_unary(method.path, method.request.SerializeToString, method.response.FromString)
        try:
            _, call = ask.with_call(method.request(), metadata=metadata, timeout=30)
        except grpc.RpcError as error:
            call = error
        return call.code().name, dict(call.trailing_metadata())["x-request-id"]


def test_every_door_logs_each_request_with_its_id_and_nothing_that_was_sent(tmp_path: Path) -> None:
    base = make_base(tmp_path, *LOGS)
    admin, reader, agent, port = issue(base), issue(base, Role.READER), issue(base, Role.AGENT), free_port()
    with served(base, "--grpc-port", str(port), has_mcp=True) as server:
        with client_of(server.url, reader) as client:
            query = {"query": {"text": HIDDEN_WORDS}}
            answered = client.post("/v1/evidence", json=query, headers={"x-request-id": "mine-1"})
            refused = client.get("/v1/tokens", headers={"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"})
            odd = client.get("/v1/base/head", headers={"x-request-id": f"{HIDDEN_WORDS} \x01"})
            rpc(client, "show_head")
            rpc(client, "list_tokens")
            client.get("/live")
        with client_of(server.url, agent) as client:
            call_tool(client)
        with client_of(server.url) as client:
            client.get(f"/dashboard?q={HIDDEN_WORDS}")
            unknown = client.get("/v1/base/head", headers={"authorization": "Bearer nothing-of-the-kind"})
        with evidentia.connect(f"grpc://127.0.0.1:{port}", token=admin) as remote:
            remote.head()
        told = [called(port, token) for token in (admin, "nobody")]
        server.stop()
        said = server.said
    lines = lines_in(said)
    by_door = {
        door: [(each["operation"], each["status"]) for each in lines if each["door"] == door] for door in ("rest", "rpc", "mcp", "grpc")
    }
    ids = {each["token_id"] for each in lines if each["token_id"]}

    assert [("retrieve", 200), ("list_tokens", 403), ("show_head", 200), ("show_head", 401)] == by_door["rest"]
    assert [("show_head", 200), ("list_tokens", 403)] == by_door["rpc"]
    assert [("", 200), ("", 202), ("retrieve", 200)] == sorted(by_door["mcp"])  # the end of a stream may be told after the next request
    assert ("show_head", "OK") in by_door["grpc"]
    assert any(each["door"] == "dashboard" for each in lines)
    assert ("mine-1", TRACE) == (answered.headers["x-request-id"], refused.headers["x-request-id"])
    assert re.fullmatch("[0-9a-f]{24}", odd.headers["x-request-id"])
    assert [("OK", "mine-3"), ("UNAUTHENTICATED", "mine-3")] == told
    assert ("show_head", "UNAUTHENTICATED") in by_door["grpc"]
    assert {"mine-1", TRACE, unknown.headers["x-request-id"]} <= {each["request_id"] for each in lines}
    assert 3 == len(ids)
    assert all(TIME.fullmatch(each["time"]) and each["duration_ms"] > 0 and each["process"] for each in lines)
    assert {"info", "warning"} == {each["level"] for each in lines}
    assert "/live" not in said
    for hidden in (*HIDDEN_WORDS.split(), admin, reader, agent, "nothing-of-the-kind"):
        assert hidden not in said.replace(f"shown once: {admin}", "")


def test_an_answer_is_logged_under_the_id_of_its_request(tmp_path: Path) -> None:
    base = make_base(tmp_path, *LOGS)
    with served(base) as server, client_of(server.url, issue(base)) as client:
        client.post("/v1/evidence", json={"query": {"text": HIDDEN_WORDS}}, headers={"x-request-id": "mine-2"})
        server.stop()
        told = [json.loads(line) for line in server.said.splitlines() if '"evidentia.requests"' in line]

    assert [("mine-2", "request answered")] == [(each["request_id"], each["message"]) for each in told]
    assert {"latency_ms", "fragments", "receipt_id"} <= told[0]["answer"].keys()


@pytest.mark.slow
def test_every_worker_process_logs_and_a_request_that_is_passed_on_is_one_line(tmp_path: Path) -> None:
    base = make_base(tmp_path, *LOGS)
    token = issue(base)
    with served(base, "--workers", "2") as server:
        for number in range(40):
            with client_of(server.url, token) as client:
                client.get("/v1/base/head", headers={"x-request-id": f"read-{number}"})
                client.get("/dashboard/sign-in", headers={"x-request-id": f"page-{number}"})
        server.stop()
        lines = lines_in(server.said)
    ids = sorted(each["request_id"] for each in lines)

    assert sorted([f"read-{number}" for number in range(40)] + [f"page-{number}" for number in range(40)]) == ids
    assert 2 == len({each["process"] for each in lines})


def test_without_the_setting_nothing_is_logged_and_an_id_is_given_all_the_same(tmp_path: Path) -> None:
    base = make_base(tmp_path)
    with served(base) as server, client_of(server.url, issue(base)) as client:
        reply = client.get("/v1/nothing")
        server.stop()
        said = server.said

    assert re.fullmatch("[0-9a-f]{24}", reply.headers["x-request-id"])
    assert "request answered" not in said


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """Give a stream to log to, and leave the loggers of the process as they were."""
    names = ("evidentia", "uvicorn.error", "grpc", "asyncio")
    before = {name: (logging.getLogger(name).handlers[:], logging.getLogger(name).level) for name in names}
    yield io.StringIO()
    for name, (handlers, level) in before.items():
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = handlers, True
        logger.setLevel(level)


def test_the_words_of_an_error_are_not_in_a_line_and_its_kind_is(written: io.StringIO) -> None:
    begin_logging(TelemetrySettings(logs=True), stream=written)
    with answering(RequestFacts("r-1", door="rest")):
        logging.getLogger("evidentia.any").error("it failed", exc_info=ValueError(HIDDEN_WORDS))
        logging.getLogger("evidentia.any").info("it did not")
    first, second = map(json.loads, written.getvalue().splitlines())

    assert ("error", "it failed", "ValueError", "r-1") == (first["level"], first["message"], first["error"], first["request_id"])
    assert "error" not in second
    assert HIDDEN_WORDS not in written.getvalue()


def test_level_and_format_are_settings(written: io.StringIO) -> None:
    begin_logging(TelemetrySettings(logs=True, log_level="warning", log_format="text"), stream=written)
    begin_logging(TelemetrySettings(logs=True, log_level="warning", log_format="text"), stream=written)
    logger = logging.getLogger("evidentia.any")
    logger.info("not told")
    logger.warning("told", extra={"fields": {"door": "rest\nforged"}})
    line = written.getvalue()

    assert 1 == line.count("\n")
    assert "WARNING told logger=evidentia.any door=rest\\nforged" in line


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"x-request-id": "a-1.b:c_"}, "a-1.b:c_"),
        ({"x-request-id": "a b"}, ""),
        ({"x-request-id": "a" * 129}, ""),
        ({"x-request-id": "a\n"}, ""),
        ({"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}, TRACE),
        ({"traceparent": f"00-{'0' * 32}-00f067aa0ba902b7-01"}, ""),
        ({"x-request-id": "", "traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}, TRACE),
        ({}, ""),
    ],
)
def test_an_id_is_taken_only_where_it_has_the_form_of_one(headers: dict[str, str], expected: str) -> None:
    assert expected == id_given(headers.items())
    assert msgspec.json.encode(expected)
