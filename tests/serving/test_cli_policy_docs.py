"""What docs/policy-tools.md shows in a terminal is what the program prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from serving.cli_runs import Run


PAGE = Path(__file__).resolve().parents[2] / "docs" / "policy-tools.md"
FENCE = re.compile(r"(?:`(?P<file>[\w.-]+)`:\n\n)?```(?P<language>\w+)\n(?P<content>.*?)```", re.DOTALL)
PASSING = (
    (re.compile(r"\d{8}T\d{6}-\d{6}Z-[0-9a-f]{12}"), "LOG"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"), "MOMENT"),
    (re.compile(r"[0-9a-f]{64}"), "HASH"),
)
"""What differs from run to run, and what is compared in its place."""


def test_console_blocks_show_what_the_program_prints(run: Run, tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    shown = [fence["content"] for fence in FENCE.finditer(page) if fence["language"] == "console"]
    printed = [fence for fence in played(page, run, tmp_path) if fence]

    assert [settled(each) for each in shown] == [settled(each) for each in printed]


def played(page: str, run: Run, directory: Path) -> list[str]:
    """Do what the page does, from top to bottom, and return what each console block should hold."""
    printed: list[str] = []
    for fence in FENCE.finditer(page):
        if fence["file"]:
            (directory / fence["file"]).write_text(fence["content"], encoding="utf-8")
        elif fence["language"] == "python":
            exec(fence["content"], {})  # noqa: S102 - the page is ours
        elif fence["language"] == "console":
            commands = [line for line in fence["content"].splitlines() if line.startswith("$ ")]
            printed.append("".join(f"{command}\n{output(run, command)}" for command in commands))
    return printed


def output(run: Run, command: str) -> str:
    outcome = run(*shlex.split(command.removeprefix("$ evidentia ")))
    return outcome.out + outcome.err


def settled(text: str) -> str:
    for pattern, name in PASSING:
        text = pattern.sub(name, text)
    return text
