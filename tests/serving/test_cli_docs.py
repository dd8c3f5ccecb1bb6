"""docs/cli.md shows the help that the program prints, and has a section for every command."""

from __future__ import annotations

from pathlib import Path

import pytest
from cogapp import Cog  # type: ignore[import-untyped]  # it ships no types

from evidentia.serving.cli.app import app

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cli.md"
COMMANDS = [command.name for command in app.registered_commands]
GROUPS = {group.name: group.typer_instance for group in app.registered_groups}
GROUPED = [f"{name} {command.name}" for name, group in GROUPS.items() if group is not None for command in group.registered_commands]


def test_help_in_the_docs_is_the_help_of_the_program() -> None:
    """When this fails, run `cog -r docs/cli.md`."""
    assert 0 == Cog().main(["cog", "--check", str(PAGE)])


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_section(name: str) -> None:
    assert f"## `evidentia {name}`" in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", GROUPS)
def test_every_group_has_a_section(name: str) -> None:
    assert f"\n## `evidentia {name}`\n" in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", GROUPED)
def test_every_command_of_a_group_has_a_section(name: str) -> None:
    assert f"\n### `evidentia {name}`\n" in PAGE.read_text(encoding="utf-8")
