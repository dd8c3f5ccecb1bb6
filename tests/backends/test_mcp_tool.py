"""A tool of a real MCP server, started as a command and called over HTTP: what it is asked, what it proposes, and how it breaks."""

from __future__ import annotations

import asyncio
import shlex
import sys
import threading
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from evidentia.backends.mcp.mcp_retriever import McpTool, arguments_of, proposals_of
from evidentia.contracts.access import local_owner
from evidentia.contracts.errors import EvidentiaError, InvalidFieldError, ServiceReplyError, ServiceUnavailableError
from evidentia.contracts.evidence import SubQuery
from evidentia.contracts.ports import SupportsDataVersion
from evidentia.contracts.retrieval import SourceAsk
from evidentia.contracts.sources import SourceConnection
from evidentia.contracts.vocabulary import ConnectionKind
from evidentia.serving.cli.serve_loop import bound_socket

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

SCRIPT = Path(__file__).with_name("mcp_sample_server.py")
COMMAND = f"{shlex.quote(sys.executable)} {shlex.quote(str(SCRIPT))}"
KEY_VARIABLE = "EVIDENTIA_TEST_MCP_KEY"
ASK = SourceAsk(
    query=SubQuery(text="how tall is the crane?"),
    principal=local_owner(),
    limit=2,
    budget_ms=60_000,
    as_of=datetime(2026, 3, 1, tzinfo=UTC),
)


@asynccontextmanager
async def connected(address: str, tool: str, *, key_variable: str = "", linger_ms: int = 0, **options: str) -> AsyncIterator[McpTool]:
    named = {name.replace("__", "."): value for name, value in options.items()}
    connection = SourceConnection(kind=ConnectionKind.MCP, address=address, tool=tool, key_variable=key_variable, options=named)
    asked = McpTool(connection, linger_ms=linger_ms)
    try:
        yield asked
    finally:
        await asked.aclose()


async def ask_tool(tool: McpTool, ask: SourceAsk = ASK) -> list[Any]:
    return [each async for each in tool.retrieve(ask)]


def ask_once(address: str, tool: str, **options: Any) -> list[Any]:
    async def scene() -> list[Any]:
        async with connected(address, tool, **options) as asked:
            return await ask_tool(asked)

    return asyncio.run(scene())


@pytest.fixture(scope="module")
def web_address() -> Iterator[str]:
    """Serve the sample server over HTTP, on a thread of this process."""
    pytest.importorskip("mcp", reason="the extra `mcp` is not installed")
    import uvicorn
    from mcp_sample_server import server

    with bound_socket("127.0.0.1", 0) as listening:
        web = uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="critical"))
        thread = threading.Thread(target=web.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        web.should_exit = True
        thread.join()


@pytest.fixture
def command() -> str:
    pytest.importorskip("mcp", reason="the extra `mcp` is not installed")
    return COMMAND


# --- proposals ---


def test_structured_documents_are_proposed_as_they_are_and_attributed(web_address: str) -> None:
    proposed = ask_once(web_address, "search")

    assert ["d-1", "d-2"] == [each["id"] for each in proposed]
    assert "origin" not in proposed[0]
    assert "origin" not in proposed[1]


def test_documents_in_a_mapping_are_found(web_address: str) -> None:
    assert ["d-1", "d-2"] == [each["id"] for each in ask_once(web_address, "wrapped")]


def test_texts_are_attributed_to_the_tool(web_address: str) -> None:
    proposed = ask_once(web_address, "texts", query_argument="question", argument__collection="cranes")

    host = web_address.split("/")[2]
    assert [
        {"content": "first of cranes", "origin": f"mcp:{host}/texts"},
        {"content": "answer to how tall is the crane?", "origin": f"mcp:{host}/texts"},
    ] == proposed


def test_json_in_a_text_is_read(web_address: str) -> None:
    (proposed,) = ask_once(web_address, "json_text")

    assert ("about how tall is the crane?", "j-1") == (proposed["text"], proposed["id"])


def test_a_resource_is_proposed_and_an_image_is_no_candidate(web_address: str) -> None:
    named = {"origin": "file:///yard/crane.md", "media_type": "text/markdown"}

    assert [{"content": "about how tall is the crane?", **named}, None] == ask_once(web_address, "mixed")


def test_nothing_found_is_nothing_proposed(web_address: str) -> None:
    async def scene() -> list[Any]:
        async with connected(web_address, "search") as asked:
            return await ask_tool(asked, msgspec.structs.replace(ASK, query=SubQuery(text="zeppelin")))

    assert [] == asyncio.run(scene())


# --- failures ---


def test_an_error_of_the_tool_is_an_error_that_repeats_nothing(web_address: str) -> None:
    with pytest.raises(ServiceReplyError, match="the tool 'failing' reports an error") as failed:
        ask_once(web_address, "failing")

    assert "secret" not in str(failed.value)


def test_a_tool_that_is_not_there_is_named(web_address: str) -> None:
    with pytest.raises(InvalidFieldError, match="no tool 'zeppelin'"):
        ask_once(web_address, "zeppelin")


def test_a_tool_that_takes_no_query_says_how_to_name_the_argument(web_address: str) -> None:
    with pytest.raises(ServiceReplyError, match="query_argument"):
        ask_once(web_address, "texts")


def test_a_slow_tool_is_given_up_and_can_be_asked_again(web_address: str) -> None:
    async def scene() -> list[str]:
        failures = []
        async with connected(web_address, "slow") as asked:
            for _ in range(3):
                with pytest.raises(ServiceUnavailableError) as failed:
                    await ask_tool(asked, msgspec.structs.replace(ASK, budget_ms=50))
                failures.append(str(failed.value))
        return failures

    assert ["the tool 'slow' gave no answer within 50 ms"] * 3 == asyncio.run(scene())


def test_whoever_leaves_does_not_end_the_session_for_others(web_address: str) -> None:
    async def scene() -> int:
        async with connected(web_address, "search") as asked:
            await ask_tool(asked)
            leaving = asyncio.create_task(ask_tool(asked))
            await asyncio.sleep(0)
            leaving.cancel()
            return len(await ask_tool(asked))

    assert 2 == asyncio.run(scene())


@pytest.mark.parametrize("address", ["http://127.0.0.1:1/mcp", "/nowhere/to/be/found", f"{shlex.quote(sys.executable)} -c pass"])
def test_a_server_that_cannot_be_reached_is_unavailable(address: str, command: str) -> None:
    assert command

    with pytest.raises(ServiceUnavailableError, match="no session with the MCP server could be opened"):
        ask_once(address, "search")


@pytest.mark.parametrize(("address", "tool"), [("", "search"), ("'unclosed", "search"), ("server", "")])
def test_a_connection_that_names_nothing_is_refused(address: str, tool: str) -> None:
    with pytest.raises(InvalidFieldError, match="connection"):
        McpTool(SourceConnection(kind=ConnectionKind.MCP, address=address, tool=tool))


# --- a command ---


def test_one_process_answers_all_questions_whichever_loop_asks(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "k3y")
    monkeypatch.setenv("EVIDENTIA_TEST_OTHER", "private")
    tool = McpTool(SourceConnection(kind=ConnectionKind.MCP, address=command, tool="whoami", key_variable=KEY_VARIABLE))

    first, second = (asyncio.run(ask_tool(tool)) for _ in range(2))
    asyncio.run(tool.aclose())

    assert first == second
    assert ["key k3y", "other None"] == [each["content"] for each in first[1:3]]


@pytest.mark.slow
def test_a_server_that_ends_is_started_again(command: str, tmp_path: Path) -> None:
    async def scene() -> list[Any]:
        async with connected(command, "crash", argument__marker=str(tmp_path / "marker")) as asked:
            with pytest.raises(ServiceUnavailableError, match="broke"):
                await ask_tool(asked)
            first = await ask_tool(asked)
            (tmp_path / "marker").unlink()
            second = await ask_tool(asked)  # it ends again; the session was open before, so it is opened anew at once
            return [first, second]

    first, second = asyncio.run(scene())

    assert ASK.query.text == first[0]["content"] == second[0]["content"]
    assert first[1]["content"] != second[1]["content"]


# --- versions ---


@pytest.mark.parametrize(("tool", "protocol"), [("change", "auto"), ("legacy_change", "legacy")])
def test_a_change_that_the_server_tells_of_is_another_version(command: str, tool: str, protocol: str) -> None:
    async def scene() -> list[str]:
        async with connected(command, tool, protocol=protocol) as asked:
            assert isinstance(asked, SupportsDataVersion)
            seen = [asked.data_version()]
            for _ in range(2):
                await ask_tool(asked)
                async with asyncio.timeout(30):
                    while asked.data_version() in seen:  # noqa: ASYNC110  # it is heard on the session's own loop
                        await asyncio.sleep(0.001)
                seen.append(asked.data_version())
            return seen

    assert 3 == len(set(asyncio.run(scene())))


# --- without a server ---


def test_arguments_are_those_of_the_schema() -> None:
    schema: dict[str, object] = {"properties": {"q": {}, "n": {}, "collection": {}}}
    options = {"query_argument": "q", "limit_argument": "n", "argument.collection": "docs"}

    assert {"q": ASK.query.text, "n": 2, "collection": "docs"} == arguments_of(schema, ASK, tool="t", options=options)
    assert {"query": ASK.query.text} == arguments_of({}, ASK, tool="t", options={})
    with pytest.raises(EvidentiaError):
        arguments_of(schema, ASK, tool="t", options={})


@pytest.mark.parametrize(
    ("structured", "blocks", "expected"),
    [
        ([], [SimpleNamespace(text="ignored")], []),
        ({"result": [{"content": "a", "url": "u"}]}, [], [{"content": "a", "url": "u"}]),
        ({"content": "alone"}, [], [{"content": "alone", "origin": "o"}]),
        ({"status": "fine"}, [SimpleNamespace(text="said")], [{"content": "said", "origin": "o"}]),
        (None, [SimpleNamespace(text='{"no": "fragments"}')], [{"content": '{"no": "fragments"}', "origin": "o"}]),
        (None, [SimpleNamespace(text="[" * 100_000)], [{"content": "[" * 100_000, "origin": "o"}]),
        (None, [SimpleNamespace(data="AAAA")], [None]),
        ([7, None], [], [7, None]),
    ],
)
def test_results_in_every_shape(structured: object, blocks: list[object], expected: list[object]) -> None:
    assert expected == list(proposals_of(structured, blocks, origin="o"))
