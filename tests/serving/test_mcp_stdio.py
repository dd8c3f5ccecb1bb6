"""`evidentia mcp` as a client starts it: a process on the other end of two pipes, in both generations of the protocol."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from mcp import MCPDeprecationWarning, MCPError

from serving.mcp_doors import (
    COMMAND,
    INITIALIZE,
    MODES,
    PATIENT,
    answer_with_citation,
    make_base,
    over_stdio,
    piece_of,
    sources_in,
    text_of,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_base(tmp_path_factory.mktemp("stdio"))


@pytest.mark.parametrize("mode", MODES)
def test_an_agent_retrieves_cites_reads_and_verifies(base: Path, mode: str) -> None:
    async def scene() -> None:
        async with over_stdio(base, mode=mode) as client:
            spoken = client.protocol_version
            names = [tool.name for tool in (await client.list_tools()).tools]
            await answer_with_citation(client)
            found = (await client.call_tool("retrieve", {"query": "when do signing keys expire?", **PATIENT})).structured_content
            whole = await client.call_tool("verify", {"response": found})
            forged = {**found, "fragments": [{**found["fragments"][0], "content": "Keys never expire."}, *found["fragments"][1:]]}
            broken = await client.call_tool("verify", {"response": forged})
            chunk_id = found["fragments"][0]["chunk_id"]
            fragment = await client.read_resource(f"evidentia://fragment/{quote(chunk_id, safe='')}")
            receipt = await client.read_resource((await client.list_resources()).resources[0].uri)

        assert ("2025-11-25" if mode == "legacy" else mode) == spoken
        assert ["table_rag_retrieve", "rag_retrieve", "retrieve", "verify", "check_reply"] == names
        assert whole.structured_content["ok"], whole
        assert not broken.structured_content["ok"]
        assert text_of(broken).startswith("broken:")
        assert found["fragments"][0]["content"] == piece_of(fragment)
        assert chunk_id == json.loads(piece_of(fragment, 1))["chunk_id"]
        assert (found["receipt_id"], True) == (json.loads(piece_of(receipt))["receipt_id"], json.loads(piece_of(receipt))["is_same"])

    asyncio.run(scene())


def uri_of(answer: Any, source: str) -> str:
    """Return the address of the fragment of a source."""
    found = [each["chunk_id"] for each in answer.structured_content["fragments"] if each["source_id"] == source]
    return f"evidentia://fragment/{quote(found[0], safe='')}" if found else ""


def test_the_principal_after_as_decides_and_what_may_not_be_seen_looks_like_what_is_not_there(base: Path) -> None:
    nothing = ["evidentia://fragment/nothing", "evidentia://receipt/r-000000000000-1", "evidentia://other/x", "file:///etc/passwd"]

    async def scene() -> None:
        async with over_stdio(base) as client:
            owner = await client.call_tool("retrieve", {"query": "signing keys", **PATIENT})
            uris = [uri_of(owner, "vault"), f"evidentia://receipt/{owner.structured_content['receipt_id']}"]
            secret = await client.read_resource(uris[0])
        async with over_stdio(base, "--as", "bob") as client:
            bob = await client.call_tool("retrieve", {"query": "signing keys", **PATIENT})
            told = []
            for uri in [*uris, *nothing]:
                with pytest.raises(MCPError) as caught:
                    await client.read_resource(uri)
                assert {"uri": uri} == caught.value.data
                told.append((caught.value.code, caught.value.message))

        assert (["alice", "handbook", "vault"], ["handbook"]) == (sources_in(owner), sources_in(bob))
        assert "4711" in piece_of(secret)
        assert 1 == len(set(told))

    asyncio.run(scene())


@pytest.mark.parametrize("mode", MODES)
def test_an_ingest_by_another_process_is_told(base: Path, tmp_path: Path, mode: str) -> None:
    (tmp_path / "news.md").write_text(f"# News\n\nThere is news in {mode}.\n", encoding="utf-8")
    ingest = [COMMAND, "ingest", str(tmp_path / "news.md"), "--source", f"news-{mode}", "--no-embed", "--quiet", "--base", str(base)]

    async def scene() -> list[str]:
        told: asyncio.Queue[str] = asyncio.Queue()

        async def note(message: Any) -> None:
            told.put_nowait(message.method)

        async with over_stdio(base, mode=mode, message_handler=note) as client:
            await client.call_tool("retrieve", {"query": "keys", **PATIENT})
            if mode == "legacy":
                uri = (await client.list_resources()).resources[0].uri
                with pytest.warns(MCPDeprecationWarning):  # of the newer revision
                    await client.subscribe_resource(uri)
                await asyncio.to_thread(subprocess.run, ingest, check=True, capture_output=True)
                return [await told.get(), await told.get()]
            uri = (await client.list_resources()).resources[0].uri
            async with client.listen(resources_list_changed=True, resource_subscriptions=[uri]) as events:
                await asyncio.to_thread(subprocess.run, ingest, check=True, capture_output=True)
                return [type(await anext(events)).__name__, type(await anext(events)).__name__]

    told = asyncio.run(asyncio.wait_for(scene(), 60))

    if mode == "legacy":
        assert ["notifications/resources/list_changed", "notifications/resources/updated"] == told
    else:
        assert ["ResourceUpdated", "ResourcesListChanged"] == sorted(told)


def test_the_process_ends_with_its_client_and_says_nothing_else_on_stdout(base: Path) -> None:
    notes = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\nno json at all\n\xff\xfe\n'
    done = subprocess.run(
        [COMMAND, "mcp", "--base", str(base)],
        input=json.dumps(INITIALIZE).encode() + b"\n" + notes,
        capture_output=True,
        timeout=60,
        check=False,
    )

    assert 0 == done.returncode, done.stderr
    assert [1] == [json.loads(line)["id"] for line in done.stdout.splitlines()]
    assert b"" == done.stderr


def test_an_interrupt_ends_it(base: Path) -> None:
    with subprocess.Popen([COMMAND, "mcp", "--base", str(base)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
        process.stdin.flush()
        process.stdout.readline()
        process.send_signal(signal.SIGINT)

        assert 130 == process.wait(timeout=30)


def test_a_base_that_is_not_there_is_said_on_stderr(tmp_path: Path) -> None:
    done = subprocess.run([COMMAND, "mcp", "--base", str(tmp_path / "none")], capture_output=True, text=True, check=False)

    assert (3, "") == (done.returncode, done.stdout)
    assert "evidentia init" in done.stderr
