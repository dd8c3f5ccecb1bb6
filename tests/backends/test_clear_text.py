"""Every client of ours that shows a key: none does so over a connection that others on the way can read, and each does on this machine."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

import evidentia
from evidentia.backends.llm.judge import ModelJudge
from evidentia.backends.llm.model_endpoint import Endpoint, EndpointSettings
from evidentia.backends.mcp.mcp_session import transport_to
from evidentia.backends.remote.grpc_calls import GrpcCalls
from evidentia.backends.remote.http_calls import HttpCalls
from evidentia.backends.remote.remote_governor import RemoteGovernor
from evidentia.backends.remote.remote_retriever import RemoteEvidentia
from evidentia.contracts.access import local_owner
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.evidence import SubQuery
from evidentia.contracts.retrieval import SourceAsk
from evidentia.contracts.sources import SourceConnection
from evidentia.contracts.vocabulary import ConnectionKind
from evidentia.testing.determinism import START

if TYPE_CHECKING:
    from collections.abc import Callable

KEY = "a-key"
VARIABLE = "EVIDENTIA_SOURCE_TEST_KEY"


def over_mcp(url: str) -> None:
    async def open_it() -> None:
        async with transport_to(SourceConnection(kind=ConnectionKind.MCP, address=f"{url}/mcp", key_variable=VARIABLE)):
            pass

    asyncio.run(open_it())


def ask_remote(url: str) -> None:
    async def ask() -> None:
        source = RemoteEvidentia(url, key_variable=VARIABLE)
        asked = SourceAsk(query=SubQuery(text="x"), principal=local_owner(), limit=1, budget_ms=50, as_of=START)
        try:
            async for _ in source.retrieve(asked):
                pass
        except evidentia.EvidentiaError as error:
            if isinstance(error, InvalidFieldError):
                raise
        finally:
            await source.aclose()

    asyncio.run(ask())


async def aconnected(url: str) -> None:
    await (await evidentia.aconnect(url, token=KEY)).close()


CLIENTS: dict[str, Callable[[str], Any]] = {
    "connect": lambda url: evidentia.connect(url, token=KEY).close(),
    "aconnect": lambda url: asyncio.run(aconnected(url)),
    "HttpCalls": lambda url: HttpCalls(url, token=KEY),
    "GrpcCalls": lambda url: GrpcCalls(url.replace("http", "grpc"), token=KEY),
    "connect over gRPC": lambda url: evidentia.connect(url.replace("http", "grpc"), token=KEY).close(),
    "RemoteGovernor": lambda url: RemoteGovernor(url, token=KEY).close(),
    "RemoteEvidentia": ask_remote,
    "Endpoint": lambda url: Endpoint(EndpointSettings(url=f"{url}/v1", model="m", key_variable=VARIABLE)),
    "ModelJudge": lambda url: ModelJudge(key_for=lambda _: KEY, urls={"openai": f"{url}/v1"}).close(),
    "MCP": over_mcp,
}
ELSEWHERE = (
    "http://evidence.example:8321",
    "http://10.0.0.7:8321",
    "http://127.0.0.1.evil.example:1",
    "http://localhost.example:1",
    "http://0.0.0.0:1",
)
HERE = ("http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1")


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("url", ELSEWHERE)
def test_no_key_goes_over_plain_http_to_another_host(monkeypatch: pytest.MonkeyPatch, client: str, url: str) -> None:
    monkeypatch.setenv(VARIABLE, KEY)
    with pytest.raises(InvalidFieldError, match="in the clear") as raised:
        CLIENTS[client](url)

    assert KEY not in str(raised.value)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("url", HERE)
def test_a_key_may_go_to_this_machine(monkeypatch: pytest.MonkeyPatch, client: str, url: str) -> None:
    monkeypatch.setenv(VARIABLE, KEY)
    try:
        CLIENTS[client](url)
    except InvalidFieldError:
        raise
    except evidentia.EvidentiaError:
        pass  # nobody listens there
