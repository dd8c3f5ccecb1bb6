"""MCP doors on real processes and sockets in front of a real base, and the package's own client to go through them."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import uvicorn
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

import evidentia
from evidentia.contracts.access import local_owner
from evidentia.contracts.control import Role
from evidentia.serving.cli.serve_loop import bound_socket
from evidentia.serving.identity.admission import Admission
from evidentia.serving.mcp.http_endpoint import McpEndpoint, mcp_app
from evidentia.serving.mcp.server import make_server
from evidentia.serving.operations.served_base import ServedBase
from evidentia.wiring.governance_runtime import open_tokens
from web_servers import running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from evidentia.serving.identity.callers import Grants
    from evidentia.wiring.governance_runtime import TokenStore

MODES = ("legacy", "2026-07-28")
"""With a handshake and a session, and without either."""
COMMAND = str(Path(sys.executable).with_name("evidentia"))
PATIENT = {"latency_deadline_ms": 60_000}


def make_base(directory: Path) -> Path:
    """Return a base with a document for everybody, one for Alice, one that is confidential, and one of another tenant."""
    documents = directory / "documents"
    documents.mkdir()
    for name, text in (
        ("keys.md", "# Keys\n\nSigning keys expire after 30 days.\n"),
        ("alice.md", "# Keys of Alice\n\nAlice keeps her signing keys in a blue vault.\n"),
        ("vault.md", "# Vault\n\nThe vault of signing keys has code 4711.\n"),
        ("acme.md", "# Acme\n\nAcme rotates signing keys every Monday.\n"),
    ):
        (documents / name).write_text(text, encoding="utf-8")
    with evidentia.connect(directory / "base", init=True) as base:
        base.ingest([documents / "keys.md"], source="handbook", embed=False)
        base.ingest([documents / "alice.md"], source="alice", acl=["user:alice"], embed=False)
        base.ingest([documents / "vault.md"], source="vault", classification="confidential", embed=False)
        base.ingest([documents / "acme.md"], source="acme", tenant="acme", embed=False)
    return directory / "base"


class McpServer:
    """A door that is open, and the tokens for it."""

    def __init__(self, url: str, tokens: TokenStore) -> None:
        self.url = url
        self._tokens = tokens

    def token(self, name: str, *roles: Role, tenant: str = "default") -> str:
        return self._tokens.issue(name=name, roles=roles or (Role.AGENT,), tenant=tenant, by="test").token

    def post(self, body: Any = None, **headers: str) -> httpx2.Response:
        """Send one request without the package."""
        given = {"accept": "application/json, text/event-stream", **{name.replace("_", "-"): value for name, value in headers.items()}}
        with httpx2.Client(trust_env=False, timeout=30) as client:
            # Written by the standard library, which writes halves of characters too.
            content = json.dumps(INITIALIZE if body is None else body)
            return client.post(self.url, content=content, headers={"content-type": "application/json", **given})


INITIALIZE: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


@contextmanager
def http_door(base: Path, *, grants: Grants | None = None, max_bytes: int = 1 << 20, **makers: Any) -> Iterator[McpServer]:
    """Serve a base over HTTP, on a thread of this process."""
    with open_tokens(base) as (tokens, _), bound_socket("127.0.0.1", 0) as listening:
        served_base = ServedBase.open(base)
        server = make_server(served_base, poll_s=0.05, **makers)
        endpoint = McpEndpoint(server, tokens=tokens, admission=Admission(tokens, grants=grants), alone=local_owner(), max_bytes=max_bytes)
        web = uvicorn.Server(uvicorn.Config(mcp_app(endpoint), log_config=None, access_log=False, timeout_graceful_shutdown=1))
        try:
            with running(web, listening) as url:
                yield McpServer(f"{url}/mcp", tokens)
        finally:
            asyncio.run(served_base.close())


@asynccontextmanager
async def over_http(url: str, *, mode: str = "legacy", token: str = "", **options: Any) -> AsyncIterator[Client]:
    """Go through a door with the package's client."""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False, timeout=httpx2.Timeout(30, read=300)) as web,
        Client(streamable_http_client(url, http_client=web), mode=mode, **options) as client,
    ):
        yield client


@asynccontextmanager
async def over_stdio(base: Path, *arguments: str, mode: str = "legacy", **options: Any) -> AsyncIterator[Client]:
    """Start `evidentia mcp` and speak to it."""
    command = StdioServerParameters(command=COMMAND, args=["mcp", "--base", str(base), *arguments])
    async with Client(stdio_client(command), mode=mode, **options) as client:
        yield client


def text_of(result: Any) -> str:
    """Return the text of a tool's result."""
    (part,) = result.content
    return str(part.text)


def piece_of(resource: Any, place: int = 0) -> str:
    """Return the text of one part of a resource."""
    return str(resource.contents[place].text)


def sources_in(result: Any) -> list[str]:
    """Return the sources of the fragments that `retrieve` gave, sorted."""
    assert not result.is_error, text_of(result)
    return sorted(fragment["source_id"] for fragment in result.structured_content["fragments"])


async def answer_with_citation(client: Client) -> None:
    """Do what an agent should: ask, cite what came back, have the reply checked, and verify the evidence."""
    question = "What is the policy for the expiry of signing keys?"
    found = await client.call_tool("rag_retrieve", {"query": "signing key expiry policy lifetime", "top_k": 50})
    heading = next(line for line in text_of(found).splitlines() if line.startswith("### [") and "keys.md" in line)
    piece = heading.partition("] ")[2]
    said = "Signing keys expire after 30 days."
    without = await client.call_tool("check_reply", {"question": question, "reply": said})
    cited = await client.call_tool("check_reply", {"question": question, "reply": f"{said}\n<CITATION {piece} />"})
    assert found.meta is not None
    verified = await client.call_tool("verify", {"receipt_id": found.meta["evidentia/receipt_id"]})
    listed = (await client.list_resources()).resources

    assert not found.is_error
    assert without.structured_content is not None
    assert ["citation_missing"] == [each["rule"] for each in without.structured_content["findings"]]
    assert cited.structured_content is not None
    assert cited.structured_content["ok"], text_of(cited)
    assert verified.structured_content is not None
    assert verified.structured_content["ok"], text_of(verified)
    assert found.meta["evidentia/receipt_id"] in [resource.name for resource in listed]
