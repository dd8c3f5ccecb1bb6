"""docs/mcp.md: what clients are told to write is JSON, starts our command with options it has, and the tables are complete."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.main import get_command

from evidentia.serving.cli.app import app
from evidentia.serving.cli.principals import principal_from
from evidentia.serving.identity.callers import Grants
from evidentia.serving.mcp.resources import TEMPLATES
from evidentia.serving.mcp.tool_definitions import DEFINITIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "mcp.md").read_text(encoding="utf-8")
BLOCKS = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]


def servers() -> Iterator[dict[str, Any]]:
    for block in BLOCKS:
        yield from (block.get("mcpServers") or block.get("servers") or {}).values()


@pytest.mark.parametrize("server", [each for each in servers() if "command" in each])
def test_a_command_for_a_client_is_one_of_ours(server: dict[str, Any]) -> None:
    name, *arguments = server["args"]
    command = get_command(app).commands[name]  # type: ignore[attr-defined]  # a group of commands
    context = command.make_context(name, list(arguments))
    asking = context.params["caller"]

    assert ("evidentia", "mcp") == (server["command"], name)
    assert context.params["base"] is not None
    assert asking is None or principal_from(asking).principal_id


@pytest.mark.parametrize("server", [each for each in servers() if "url" in each])
def test_an_address_for_a_client_ends_in_the_path(server: dict[str, Any]) -> None:
    assert server["url"].endswith("/mcp")
    assert server["headers"]["Authorization"].startswith("Bearer ${")


def test_there_is_a_block_for_each_kind_of_client_and_the_principals_can_be_read() -> None:
    (principals,) = [block for block in BLOCKS if not {"mcpServers", "servers"} & set(block)]

    assert 6 == len(list(servers()))
    assert isinstance(Grants.read(json.dumps(principals).encode()), Grants)


def test_every_tool_and_every_kind_of_resource_is_described() -> None:
    assert [] == [each.name for each in DEFINITIONS if f"| `{each.name}` |" not in PAGE]
    assert [] == [each.pattern for each in TEMPLATES if f"| `{each.pattern}` |" not in PAGE]
