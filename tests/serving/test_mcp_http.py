"""MCP over HTTP on a real socket: who is let in, as whom, what each of them sees, and what becomes of a request nobody waits for."""

from __future__ import annotations

import asyncio
import struct
import threading
import zlib
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx2
import pytest
from mcp import MCPError
from mcp.types import BlobResourceContents

import evidentia
from evidentia.contracts.control import Role
from evidentia.contracts.errors import InvalidFieldError
from evidentia.protocol.toolbox import Toolbox
from evidentia.serving.identity.callers import Facts, Grants
from evidentia.serving.identity.host_check import LOCAL_HOSTS, host_in
from serving.mcp_doors import (
    INITIALIZE,
    MODES,
    PATIENT,
    McpServer,
    answer_with_citation,
    http_door,
    make_base,
    over_http,
    piece_of,
    sources_in,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evidentia.base.async_base import AsyncBase
    from evidentia.protocol.toolbox import ToolResult

ASK = {"query": "signing keys", **PATIENT}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_base(tmp_path_factory.mktemp("http"))


@pytest.fixture(scope="module")
def door(base: Path) -> Iterator[McpServer]:
    """Serve the base to holders of tokens; Carol is cleared for what is confidential."""
    with http_door(base, grants=Grants({"carol": Facts(clearance="confidential", groups=("oncall",))}), max_bytes=100_000) as opened:  # type: ignore[arg-type]  # as in a file
        opened.token("first")
        yield opened


@pytest.mark.parametrize("mode", MODES)
def test_each_principal_sees_what_it_may(door: McpServer, mode: str) -> None:
    async def asked(token: str) -> list[str]:
        async with over_http(door.url, mode=mode, token=token) as client:
            return sources_in(await client.call_tool("retrieve", ASK))

    seen = {name: asyncio.run(asked(door.token(name))) for name in ("alice", "bob", "carol")}
    acme = asyncio.run(asked(door.token("alice", tenant="acme")))

    assert {"alice": ["alice", "handbook"], "bob": ["handbook"], "carol": ["handbook", "vault"]} == seen
    assert ["acme"] == acme


@pytest.mark.parametrize("mode", MODES)
def test_a_client_retrieves_reads_and_verifies_over_http(door: McpServer, mode: str) -> None:
    async def scene() -> None:
        async with over_http(door.url, mode=mode, token=door.token("reader of everything")) as client:
            found = (await client.call_tool("retrieve", ASK)).structured_content
            checked = await client.call_tool("verify", {"receipt_id": found["receipt_id"]})
            fragment = await client.read_resource(f"evidentia://fragment/{quote(found['fragments'][0]['chunk_id'], safe='')}")

        assert checked.structured_content["ok"]
        assert found["fragments"][0]["content"] == piece_of(fragment)

    asyncio.run(scene())


@pytest.mark.parametrize("mode", MODES)
def test_an_agent_retrieves_cites_is_checked_and_verifies_over_http(door: McpServer, mode: str) -> None:
    async def scene() -> None:
        async with over_http(door.url, mode=mode, token=door.token(f"an agent in {mode}")) as client:
            await answer_with_citation(client)

    asyncio.run(scene())


def test_another_s_receipt_is_not_there(door: McpServer) -> None:
    async def scene() -> None:
        async with over_http(door.url, token=door.token("alice")) as client:
            receipt = (await client.call_tool("retrieve", ASK)).structured_content["receipt_id"]
            own = await client.call_tool("verify", {"receipt_id": receipt})
        async with over_http(door.url, token=door.token("bob")) as client:
            listed = (await client.list_resources()).resources
            foreign = await client.call_tool("verify", {"receipt_id": receipt})
            with pytest.raises(MCPError, match="Resource not found"):
                await client.read_resource(f"evidentia://receipt/{receipt}")

        assert own.structured_content["ok"]
        assert (True, f"Error: no receipt '{receipt}'") == (foreign.is_error, text_of(foreign).splitlines()[0])
        assert receipt not in [resource.name for resource in listed]

    asyncio.run(scene())


def test_receipts_are_listed_page_by_page(door: McpServer) -> None:
    async def scene() -> None:
        async with over_http(door.url, token=door.token("a busy one")) as client:
            made = [(await client.call_tool("retrieve", ASK)).structured_content["receipt_id"] for _ in range(52)]
            first = await client.list_resources()
            second = await client.list_resources(cursor=first.next_cursor)
            with pytest.raises(MCPError, match="field 'cursor'"):
                await client.list_resources(cursor="elsewhere")

        assert made[:1:-1] == [resource.name for resource in first.resources]
        assert (made[1::-1], None) == ([resource.name for resource in second.resources], second.next_cursor)

    asyncio.run(scene())


def test_without_a_token_nobody_is_let_in(door: McpServer) -> None:
    none, wrong = door.post(), door.post(authorization="Bearer evt_000000000000_nothing")

    assert (401, 'Bearer realm="evidentia"') == (none.status_code, none.headers["www-authenticate"])
    assert "missing_token" == none.json()["error"]["code"]
    assert (401, 'Bearer realm="evidentia", error="invalid_token"') == (wrong.status_code, wrong.headers["www-authenticate"])


def test_a_token_for_other_work_is_refused(door: McpServer) -> None:
    reply = door.post(authorization=f"Bearer {door.token('an auditor', Role.AUDITOR, Role.READER)}")

    assert (403, "wrong_role") == (reply.status_code, reply.json()["error"]["code"])


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"host": "evil.example"}, 421, "wrong_host"),
        ({"host": "127.0.0.1.evil.example:80"}, 421, "wrong_host"),
        ({"host": "evil@localhost"}, 421, "wrong_host"),
        ({"origin": "https://evil.example"}, 403, "wrong_origin"),
        ({"origin": "null"}, 403, "wrong_origin"),
        ({"origin": "http://localhost.evil.example"}, 403, "wrong_origin"),
        ({"origin": "file://localhost"}, 403, "wrong_origin"),
    ],
)
def test_a_page_of_another_site_is_refused_before_its_token_is_looked_at(
    door: McpServer, headers: dict[str, str], status: int, code: str
) -> None:
    reply = door.post(**headers)

    assert (status, code) == (reply.status_code, reply.json()["error"]["code"])


@pytest.mark.parametrize("host", ["localhost:9", "LOCALHOST", "[::1]:80", "127.0.0.1"])
def test_names_of_this_machine_are_known(host: str) -> None:
    assert host_in(f"//{host}") in LOCAL_HOSTS


def test_a_page_of_this_host_is_let_in(door: McpServer) -> None:
    assert 200 == door.post(authorization=f"Bearer {door.token('a page')}", origin="http://localhost:3000").status_code


def test_a_session_belongs_to_whoever_opened_it(door: McpServer) -> None:
    alice, bob = (f"Bearer {door.token(name)}" for name in ("alice", "bob"))
    session = door.post(authorization=alice).headers["mcp-session-id"]
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}

    assert 200 == door.post(ping, authorization=alice, mcp_session_id=session).status_code
    assert 404 == door.post(ping, authorization=bob, mcp_session_id=session).status_code
    assert 401 == door.post(ping, mcp_session_id=session).status_code


def test_a_body_that_is_too_large_is_refused(door: McpServer) -> None:
    body = {**INITIALIZE, "padding": "x" * 200_000}

    assert 413 == door.post(body, authorization=f"Bearer {door.token('a loud one')}").status_code


def test_a_base_without_tokens_is_open_to_this_machine_until_the_first_token(tmp_path: Path) -> None:
    async def asked(url: str) -> list[str]:
        async with over_http(url) as client:
            return sources_in(await client.call_tool("retrieve", ASK))

    with http_door(make_base(tmp_path)) as door:
        proxied = door.post(x_forwarded_for="203.0.113.7")
        seen = asyncio.run(asked(door.url))
        door.token("the first")
        later = door.post()

    assert ["alice", "handbook", "vault"] == seen
    assert (401, 401) == (proxied.status_code, later.status_code)


def test_only_this_path_is_there(door: McpServer) -> None:
    with httpx2.Client(trust_env=False) as client:
        assert 404 == client.get(door.url.replace("/mcp", "/")).status_code


def modern(method: str, **params: Any) -> dict[str, Any]:
    """Return a request of the revision without sessions, as it stands on the wire."""
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": {**params, "_meta": meta}}


@pytest.mark.parametrize("argument", ["query", "filter", "session_context"])
def test_half_a_character_is_refused_by_name(door: McpServer, argument: str) -> None:
    body = modern("tools/call", name="retrieve", arguments={"query": "x", argument: "\ud800"})
    headers = {"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/call", "mcp_name": "retrieve"}
    reply = door.post(body, authorization=f"Bearer {door.token('a broken one')}", **headers).json()["result"]

    assert (True, f"Error: field '{argument}': it is not UTF-8") == (reply["isError"], reply["content"][0]["text"].partition(",")[0])


class Slow(Toolbox):
    """A toolbox whose search never ends by itself, and which cannot ask tables."""

    def __init__(self, base: AsyncBase, *, began: threading.Event, left: threading.Event) -> None:
        super().__init__(base)
        self._began = began
        self._left = left

    async def rag_retrieve(self, query: str, top_k: int = 100) -> ToolResult:
        self._began.set()
        try:
            await asyncio.sleep(3600)
        finally:
            self._left.set()
        return await super().rag_retrieve(query, top_k)

    async def table_rag_retrieve(self, query: str) -> ToolResult:
        raise NotImplementedError(query)


@pytest.mark.parametrize("mode", MODES)
def test_a_request_that_is_cancelled_stops_its_work(tmp_path: Path, mode: str) -> None:
    began, left = threading.Event(), threading.Event()

    async def scene(url: str) -> list[str]:
        async with over_http(url, mode=mode) as client:
            call = asyncio.create_task(client.call_tool("rag_retrieve", {"query": "x"}))
            assert await asyncio.to_thread(began.wait, 30)
            call.cancel()
            assert await asyncio.to_thread(left.wait, 30)
            return sources_in(await client.call_tool("retrieve", ASK))

    with http_door(make_base(tmp_path), toolbox=lambda base, _: Slow(base, began=began, left=left)) as door:
        assert ["alice", "handbook", "vault"] == asyncio.run(scene(door.url))


@pytest.mark.parametrize("mode", MODES)
def test_a_fault_of_our_own_shows_no_trace(tmp_path: Path, mode: str) -> None:
    async def scene(url: str) -> Any:
        async with over_http(url, mode=mode) as client:
            return await client.call_tool("table_rag_retrieve", {"query": "a secret question"})

    with http_door(make_base(tmp_path), toolbox=lambda base, _: Slow(base, began=threading.Event(), left=threading.Event())) as door:
        result = asyncio.run(scene(door.url))

    assert (True, "Error: something went wrong inside the server") == (result.is_error, text_of(result))


@pytest.mark.parametrize("mode", MODES)
def test_sessions_over_http_are_told_of_new_versions(door: McpServer, base: Path, tmp_path: Path, mode: str) -> None:
    (tmp_path / "news.md").write_text(f"# News\n\nNews over HTTP in {mode}.\n", encoding="utf-8")

    def ingest() -> None:
        with evidentia.connect(base) as other:
            other.ingest([tmp_path / "news.md"], source=f"news-{mode}", acl=["user:nobody"], embed=False)

    async def scene() -> str:
        told: asyncio.Queue[str] = asyncio.Queue()

        async def note(message: Any) -> None:
            told.put_nowait(message.method)

        async with over_http(door.url, mode=mode, token=door.token("a listener"), message_handler=note) as client:
            if mode == "legacy":
                await client.list_tools()
                while told.empty():  # the stream for notifications is opened beside the first requests
                    await asyncio.to_thread(ingest)
                    (tmp_path / "news.md").write_text(
                        f"# News\n\nMore news, {told.qsize()} {asyncio.get_running_loop().time()}.\n", encoding="utf-8"
                    )
                    await asyncio.sleep(0.2)
                return await told.get()
            async with client.listen(resources_list_changed=True) as events:
                await asyncio.to_thread(ingest)
                return type(await anext(events)).__name__

    expected = "notifications/resources/list_changed" if mode == "legacy" else "ResourcesListChanged"

    assert expected == asyncio.run(asyncio.wait_for(scene(), 60))


@pytest.mark.parametrize("mode", MODES)
def test_bad_arguments_are_tool_errors_that_name_the_argument(door: McpServer, mode: str) -> None:
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("retrieve", {}, "field 'query': it is missing"),
        ("retrieve", {"query": "x", "limits": 1}, "field 'limits': retrieve takes no such argument; did you mean 'limit'?"),
        ("retrieve", {"query": "x", "limit": "3"}, "field 'limit': expected `int`, got `str`"),
        ("retrieve", {"query": "x", "filter": "language = en"}, "filter, column 12"),
        ("retrieve", {"query": "x", "principal": {"principal_id": "root"}}, "field 'principal': who asks is settled by the connection"),
        ("retrieve", {"query": {"text": 3}}, "field 'query.text': expected `str`, got `int`"),
        ("rag_retrieve", {"query": 3}, "field 'query': expected `str`, got `int`"),
        ("rag_retrieve", {"query": "x", "topk": 3}, "did you mean 'top_k'?"),
        ("rag_retrieve", {"query": "x", "top_k": 0}, "field 'top_k': expected `int` >= 1"),
        ("rag_retrieve", {"query": "x", "top_k": 201}, "field 'top_k': expected `int` <= 200"),
        ("table_rag_retrieve", {"query": ""}, "field 'query'"),
        ("verify", {}, "field 'receipt_id': give either 'receipt_id' or 'response'"),
        ("verify", {"receipt_id": "r-000000000000-1"}, "no receipt 'r-000000000000-1'"),
        ("verify", {"response": {"fragments": 1}}, "field 'response"),
        ("check_reply", {"question": "x"}, "field 'reply'"),
    ]

    async def scene() -> list[tuple[bool, str]]:
        async with over_http(door.url, mode=mode, token=door.token("a clumsy one")) as client:
            results = [await client.call_tool(name, arguments) for name, arguments, _ in wrong]
            with pytest.raises(MCPError, match="Unknown tool"):
                await client.call_tool("rm_rf", {})
        return [(bool(result.is_error), text_of(result)) for result in results]

    for (is_error, told), (name, _, problem) in zip(asyncio.run(scene()), wrong, strict=True):
        assert is_error, name
        assert problem in told
        assert "Traceback" not in told


def test_the_index_is_read_as_it_is_now(tmp_path: Path) -> None:
    """A client that stays connected finds what came in meanwhile."""
    base = make_base(tmp_path)
    (tmp_path / "late.md").write_text("# Late\n\nThe zeppelin arrives late.\n", encoding="utf-8")

    async def scene(url: str) -> tuple[list[str], list[str]]:
        async with over_http(url) as client:
            before = sources_in(await client.call_tool("retrieve", {"query": "zeppelin", **PATIENT}))
            with evidentia.connect(base) as other:
                other.ingest([tmp_path / "late.md"], source="late", embed=False)
            return before, sources_in(await client.call_tool("retrieve", {"query": "zeppelin", **PATIENT}))

    with http_door(base) as door:
        assert ([], ["late"]) == asyncio.run(asyncio.wait_for(scene(door.url), 60))


def test_an_image_is_read_by_whoever_may_see_its_document(tmp_path: Path) -> None:
    base, image = make_base(tmp_path), png()
    source = f'<h1>Valve</h1><p>The valve opens to the left.</p><img alt="a valve" src="data:image/png;base64,{b64encode(image).decode()}">'
    (tmp_path / "valve.html").write_text(source, encoding="utf-8")
    with evidentia.connect(base) as opened:
        opened.ingest([tmp_path / "valve.html"], source="valves", acl=["user:alice"], embed=False)

    async def scene(url: str, alice: str, bob: str) -> bytes:
        async with over_http(url, token=alice) as client:
            found = (await client.call_tool("retrieve", {"query": "valve", **PATIENT})).structured_content
            uri = f"evidentia://image/{found['fragments'][0]['images'][0]['image_hash']}"
            (content,) = (await client.read_resource(uri)).contents
        async with over_http(url, token=bob) as client:
            with pytest.raises(MCPError, match="Resource not found"):
                await client.read_resource(uri)
        assert "image/png" == content.mime_type
        return b64decode(content.blob) if isinstance(content, BlobResourceContents) else b""

    with http_door(base) as door:
        assert image == asyncio.run(scene(door.url, door.token("alice"), door.token("bob")))


def png() -> bytes:
    """Return an image that is large enough to count as one."""
    pixels = zlib.compress((b"\x00" + bytes(range(32))) * 32)
    parts = ((b"IHDR", struct.pack(">IIBBBBB", 32, 32, 8, 0, 0, 0, 0)), (b"IDAT", pixels), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )


def test_grants_are_read_from_a_file_and_never_make_an_owner() -> None:
    grants = Grants.read(b'{"carol": {"clearance": "confidential", "groups": ["oncall"]}}')

    assert grants is not None
    for wrong in (b"[]", b'{"carol": {"is_owner": true}}', b'{"carol": {"tenant": "acme"}}', b'{"carol": {"clearance": "all"}}', b"\xff"):
        with pytest.raises(InvalidFieldError, match="principals"):
            Grants.read(wrong)
