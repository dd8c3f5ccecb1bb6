"""Whatever a document or a file name holds, a terminal is not steered by it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.serving.cli.output import printable, printable_json

if TYPE_CHECKING:
    from pathlib import Path

    from serving.cli_runs import Run

DANGEROUS = "\x1b]0;owned\x07 \x9b31m \u202ereversed\u202c \x7f \u2028"


@given(st.text())
def test_printable_text_holds_nothing_a_terminal_acts_on(text: str) -> None:
    shown = printable(text)

    assert all(character.isprintable() or character.isspace() for character in shown)
    assert not any(character in shown for character in "\x1b\n\r\x07\x08\x9b\u202e\u2028")


@given(st.text().filter(str.isprintable))
def test_printable_text_is_not_changed(text: str) -> None:
    assert text == printable(text)


@given(st.text())
def test_escaped_json_means_the_same(text: str) -> None:
    document = json.dumps({"content": text}, ensure_ascii=False)

    assert {"content": text} == json.loads(printable_json(document))


@pytest.mark.parametrize("json_flag", [(), ("--json",)], ids=["text", "json"])
def test_documents_and_names_cannot_steer_the_terminal(run: Run, base: Path, tmp_path: Path, json_flag: tuple[str, ...]) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "na\x1b[2Jme.md").write_text(f"# {DANGEROUS}\n", encoding="utf-8")
    (tmp_path / "in" / "em\x1b[2Jpty.md").touch()

    outcomes = [
        run("ingest", "in", "--source", "odd", "--base", base, *json_flag),
        run("documents", "--base", base, *json_flag),
        run("show", "odd:na\x1b[2Jme.md", "--base", base, *json_flag),
        run("verify", "odd:na\x1b[2Jme.md", "--base", base, *json_flag),
        run("show", "no\x1b[2Jne", "--base", base, *json_flag),
    ]

    shown = "".join(outcome.out + outcome.err for outcome in outcomes)
    assert [0, 0, 0, 0, 2] == [outcome.exit_code for outcome in outcomes]
    assert not any(character in shown for character in "\x1b\x07\x9b\x7f\u202e\u2028")
    assert "na\\x1b[2Jme.md" in shown or "na\\u001b[2Jme.md" in shown
