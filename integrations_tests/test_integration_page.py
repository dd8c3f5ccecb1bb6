"""Runs the examples of docs/integrations.md; the tests of the other pages leave `py` fences alone, since they lack the frameworks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[1] / "docs" / "integrations.md"
FENCE = re.compile(r"^```py\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def examples() -> dict[str, list[str]]:
    """Return the examples of the page under their headings, each after as many empty lines as stand before it on the page."""
    text = PAGE.read_text(encoding="utf-8")
    found: dict[str, list[str]] = {}
    for fence in FENCE.finditer(text):
        before = text[: fence.start(1)]
        heading = before.rpartition("\n## ")[2].partition("\n")[0] if "\n## " in before else ""
        found.setdefault(heading, []).append("\n" * before.count("\n") + fence[1])
    return found


def test_every_framework_has_examples() -> None:
    assert ["", "LangChain", "LlamaIndex", "Haystack"] == list(examples())


@pytest.mark.parametrize("heading", ["LangChain", "LlamaIndex", "Haystack"])
def test_the_examples_run(heading: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    try:
        for example in [*examples()[""], *examples()[heading]]:
            exec(compile(example, str(PAGE), "exec"), names)  # noqa: S102  # the page is ours
    finally:
        names["base"].close()  # type: ignore[attr-defined]  # the first example opens it
