"""`evidentia mcp` on the command line: what it refuses to start with, and a server that is asked and stopped."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from serving.mcp_doors import COMMAND, PATIENT, make_base, over_http, sources_in

if TYPE_CHECKING:
    from pathlib import Path

    from serving.cli_runs import Run


@pytest.mark.parametrize("address", ["8322", "127.0.0.1:", "127.0.0.1:70000", ":8322", "127.0.0.1:eighty"])
def test_an_address_without_a_port_is_refused(run: Run, base: Path, address: str) -> None:
    done = run("mcp", "--http", address, "--base", base)

    assert (2, "") == (done.exit_code, done.out)
    assert f"field 'http': '{address}' is no address with a port" in done.err


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "192.0.2.1"])  # noqa: S104 - it is refused
def test_a_base_without_tokens_is_not_opened_to_other_machines(run: Run, base: Path, host: str) -> None:
    done = run("mcp", "--http", f"{host}:0", "--base", base)

    assert (2, "") == (done.exit_code, done.out)
    assert "has no tokens" in done.err
    assert "evidentia tokens add" in done.err


def test_principals_that_cannot_be_read_are_refused(run: Run, base: Path, tmp_path: Path) -> None:
    (tmp_path / "principals.json").write_text('{"carol": {"is_owner": true}}', encoding="utf-8")
    done = run("mcp", "--http", "127.0.0.1:0", "--principals", tmp_path / "principals.json", "--base", base)

    assert 2 == done.exit_code
    assert "field 'principals'" in done.err


def test_without_the_package_the_extra_is_named(base: Path) -> None:
    code = (
        f"import sys; sys.modules['mcp'] = None; from evidentia.serving.cli import main; sys.exit(main(['mcp', '--base', {str(base)!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)

    assert 2 == done.returncode
    assert "pip install 'evidentia[mcp]'" in done.stderr


def test_a_server_is_asked_with_tokens_and_stopped(run: Run, tmp_path: Path) -> None:
    base = make_base(tmp_path)
    tokens = {name: run("tokens", "add", "--name", name, "--role", "agent", "--base", base).out.strip() for name in ("bob", "carol")}
    (tmp_path / "principals.json").write_text('{"carol": {"clearance": "confidential"}}', encoding="utf-8")
    command = [COMMAND, "mcp", "--http", "127.0.0.1:0", "--principals", str(tmp_path / "principals.json"), "--json", "--base", str(base)]

    async def asked(url: str, token: str) -> list[str]:
        async with over_http(url, token=token) as client:
            return sources_in(await client.call_tool("retrieve", {"query": "signing keys", **PATIENT}))

    async def stopped(url: str, token: str) -> str:
        """Stop the server while a client listens; its stream ends in the orderly way."""
        async with over_http(url, token=token, mode="2026-07-28") as client, client.listen(resources_list_changed=True) as events:
            server.send_signal(signal.SIGTERM)
            assert [] == [event async for event in events]
            return (await asyncio.to_thread(server.communicate, timeout=60))[1]

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = json.loads(server.stdout.readline())["address"]
        seen = {name: asyncio.run(asked(url, token)) for name, token in tokens.items()}
        told = asyncio.run(stopped(url, tokens["bob"]))

    assert {"bob": ["handbook"], "carol": ["handbook", "vault"]} == seen
    assert (0, "note: stopped\n") == (server.returncode, told)
