"""A client that leaves ends the work it caused, whichever door it came through; a change that was begun is finished."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import grpc
import httpx2
import msgspec
import pytest
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from engine.federated_base import describe
from evidentia.contracts.control import Role
from evidentia.contracts.retrieval import Candidate
from evidentia.protobuf.methods import METHODS
from evidentia.serving.cli.serve_loop import bound_socket
from evidentia.serving.hosting.application import make_app
from evidentia.serving.operations.execution import CLIENT_LEFT, unless_left
from evidentia.serving.operations.registry import ENDPOINTS
from evidentia.serving.operations.request_decoding import flat_of
from evidentia.wiring.governance_runtime import GovernanceRuntime
from served_doors import WithGrpc
from serving.mcp_doors import make_base
from web_servers import running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from evidentia.contracts.retrieval import SourceAsk

PATIENCE_S = 60
ASK = {"query": "signing keys", "mode": "lexical", "latency_deadline_ms": 600_000, "source_policy": {"most_sources": 1}}


class Held:
    """Implements `Retriever`: says nothing, and takes note of being asked and of being left."""

    def __init__(self) -> None:
        self.asked, self.left = threading.Event(), threading.Event()

    async def retrieve(self, ask: SourceAsk) -> AsyncIterator[Candidate]:
        """Wait for ever."""
        del ask
        self.asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.left.set()
            raise
        yield Candidate(content="never said", own_id="1", origin="held:1")


class Doors:
    """A served base with a source that never answers."""

    def __init__(self, url: str, grpc_address: str, token: str, source: Held) -> None:
        self.host, self.port = url.rpartition("/")[2].split(":")
        self.grpc_address = grpc_address
        self.token = token
        self.source = source

    async def http(self, path: str, message: object) -> None:
        """Send a request, and leave once the source was asked."""
        body = json.dumps(message).encode()
        head = [
            f"POST {path} HTTP/1.1",
            f"host: {self.host}:{self.port}",
            f"authorization: Bearer {self.token}",
            "content-type: application/json",
            "accept: application/json, text/event-stream",
            f"content-length: {len(body)}",
        ]
        _, writer = await asyncio.open_connection(self.host, int(self.port))
        writer.write("\r\n".join([*head, "", ""]).encode() + body)
        await writer.drain()
        assert await asyncio.to_thread(self.source.asked.wait, PATIENCE_S)
        writer.close()
        await writer.wait_closed()

    async def grpc(self, name: str) -> None:
        """Call a method, and leave once the source was asked."""
        method = next(each for each in METHODS if each.name == name)
        endpoint = next(each for each in ENDPOINTS if each.name == ("retrieve" if name == "Retrieve" else "retrieve_stream"))
        asked = {**ASK, "query": {"text": ASK["query"]}}
        request = method.request(**method.write_request(msgspec.convert(asked, flat_of(endpoint).message)))
        async with grpc.aio.insecure_channel(self.grpc_address) as channel:
            call = channel.unary_stream if method.is_stream else channel.unary_unary
            ask = call(method.path, request_serializer=method.request.SerializeToString, response_deserializer=method.response.FromString)
            calling: Any = ask(request, metadata=(("authorization", f"Bearer {self.token}"),))
            assert await asyncio.to_thread(self.source.asked.wait, PATIENCE_S)
            calling.cancel()

    async def mcp(self, mode: Any) -> None:  # Any: one of the words of the package
        """Call a tool, and leave once the source was asked."""
        headers = {"authorization": f"Bearer {self.token}"}
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False, timeout=60) as web,
            Client(streamable_http_client(f"http://{self.host}:{self.port}/mcp", http_client=web), mode=mode) as client,
        ):
            calling = asyncio.ensure_future(client.call_tool("retrieve", ASK))
            assert await asyncio.to_thread(self.source.asked.wait, PATIENCE_S)
            calling.cancel()
            await asyncio.wait((calling,))


@pytest.fixture
def doors(tmp_path: Path) -> Iterator[Doors]:
    """Serve a base whose one source outside never answers."""
    with ExitStack() as stack:
        control = stack.enter_context(GovernanceRuntime(make_base(tmp_path)))
        app = make_app(control)
        source = Held()
        base = app.state.context.served_base.base_of("default")
        asyncio.run(base.add_source(describe("held", expected_p99_ms=10_000), source))
        listening = stack.enter_context(bound_socket("127.0.0.1", 0))
        ports: list[int] = []
        config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="on", timeout_graceful_shutdown=5)
        server = WithGrpc(config, app.state.context, ports)
        token = control.tokens.issue(name="somebody", roles=(Role.AGENT,), tenant="default", by="test").token
        url = stack.enter_context(running(server, listening, is_up=lambda: bool(ports)))
        yield Doors(url, f"127.0.0.1:{ports[0]}", token, source)


LEAVING = {
    "REST": lambda doors: doors.http("/v1/evidence", ASK),
    "stream": lambda doors: doors.http("/v1/evidence/stream", ASK),
    "JSON-RPC": lambda doors: doors.http("/rpc", {"jsonrpc": "2.0", "id": 1, "method": "retrieve", "params": ASK}),
    "batch": lambda doors: doors.http("/rpc", [{"jsonrpc": "2.0", "id": 1, "method": "retrieve", "params": ASK}]),
    "gRPC": lambda doors: doors.grpc("Retrieve"),
    "gRPC stream": lambda doors: doors.grpc("RetrieveStream"),
    "MCP with a session": lambda doors: doors.mcp("legacy"),
    "MCP without": lambda doors: doors.mcp("2026-07-28"),
}


@pytest.mark.parametrize("door", LEAVING)
def test_a_client_that_leaves_ends_what_it_asked_for(doors: Doors, door: str) -> None:
    asyncio.run(LEAVING[door](doors))

    assert doors.source.left.wait(PATIENCE_S)


def test_work_that_ends_first_is_returned_and_what_was_left_is_cancelled() -> None:
    async def run() -> tuple[int, int, bool]:
        loop = asyncio.get_running_loop()
        stays, leaves = loop.create_future(), loop.create_future()
        leaves.set_result(None)
        hangs = asyncio.ensure_future(asyncio.Event().wait())
        with pytest.raises(Exception, match="the client has left") as refusal:
            await unless_left(hangs, leaves)
        return await unless_left(asyncio.sleep(0, 7), stays), refusal.value.status, hangs.cancelled()  # type: ignore[attr-defined]

    assert (7, CLIENT_LEFT, True) == asyncio.run(run())
