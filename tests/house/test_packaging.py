"""What an installed package promises: extras that exist, and hints that lead somewhere without a checkout."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from source_trees import nodes_of, tree_of

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "evidentia"
INSTALLING = ("README.md", "CONTRIBUTING.md", "Makefile", "deploy/Dockerfile")
PAGES = (*(ROOT / name for name in INSTALLING), *sorted((ROOT / "docs").rglob("*.md")))
EXTRAS = frozenset(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"])

_INSTALLED = re.compile(r"(?:evidentia|\s\"?\.)\[([a-z0-9_, -]+)\]")
_MENTIONED = re.compile(r"\bextras?(?: called)?:? ((?:[`'][a-z0-9_-]+[`'](?:, | and | or )?)+)")
_RAISED = re.compile(r"MissingExtraError\(\s*\"([^\"]+)\"")
_QUOTED = re.compile(r"[a-z0-9_-]+(?=[`'])")


def code() -> list[Path]:
    """Return every module, apart from the sample corpus, which is material and not code."""
    return [path for path in sorted(PACKAGE.rglob("*.py")) if "demo_corpus" not in path.parts]


def extras_named_in(text: str) -> set[str]:
    """Return the extras that a text tells somebody to install."""
    installed = {name.strip() for names in _INSTALLED.findall(text) for name in names.split(",")}
    mentioned = {name for names in _MENTIONED.findall(text) for name in _QUOTED.findall(names)}
    return installed | mentioned | set(_RAISED.findall(text))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("`pip install 'evidentia[otlp]'`", {"otlp"}),
        ('pip install ".[server,mcp]"', {"server", "mcp"}),
        ("the extras `mcp` and `grpc` open doors", {"mcp", "grpc"}),
        ("needs the extra `tables`; a row", {"tables"}),
        ('raise MissingExtraError("learned", needed_for="x")', {"learned"}),
        ("up to 32 extra fields, `extra.owner`", set()),
    ],
)
def test_a_named_extra_is_seen(text: str, names: set[str]) -> None:
    assert names == extras_named_in(text)


def test_every_extra_that_is_named_exists() -> None:
    named = {str(path.relative_to(ROOT)): extras_named_in(path.read_text(encoding="utf-8")) for path in (*PAGES, *code())}

    assert {} == {place: sorted(names - EXTRAS) for place, names in named.items() if names - EXTRAS}
    assert {"grpc", "mcp", "server"} <= set().union(*named.values())


def test_every_extra_that_exists_is_on_the_page_about_installation() -> None:
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `([a-z]+)` \|", page, flags=re.MULTILINE))

    assert EXTRAS == listed | extras_named_in(page)


# --- what is said to somebody who has no checkout ---

REPOSITORY = re.compile(
    r"(?<![\w./-])(?:docs|tools|tests|benchmarks|examples|deploy|changelog\.d)/\w"
    r"|\b(?:README|CONTRIBUTING|ARCHITECTURE|STYLE)\b|\bMakefile\b|\bpyproject\.toml\b"
)
READ_AS_HELP = tuple(PACKAGE / name for name in ("base", "contracts", "serving/cli"))
"""Rooms whose docstrings are printed: by `help`, in the schemas that doors hand out, and by `--help`."""
NOT_PATHS = {"tools/list", "tools/call"}


def strings_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield what a module can say to a user, with its line; docstrings only where somebody sees them without opening the file."""
    is_read = any(path.is_relative_to(room) for room in READ_AS_HELP)
    notes = [node.value for node in nodes_of(path) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]
    unseen = set(notes[:1] if is_read and ast.get_docstring(tree_of(path)) else () if is_read else notes)
    for node in nodes_of(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in unseen:
            yield node.lineno, node.value


def test_nothing_that_is_said_to_a_user_names_a_file_of_the_repository() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text[:200]}"
        for path in code()
        for line, text in strings_of(path)
        if REPOSITORY.search(text) and text not in NOT_PATHS
    ]

    assert [] == found


def test_no_page_of_the_dashboard_names_a_file_of_the_repository() -> None:
    pages = sorted((PACKAGE / "serving" / "dashboard").rglob("*.html"))

    assert pages
    assert [] == [str(page.relative_to(ROOT)) for page in pages if REPOSITORY.search(page.read_text(encoding="utf-8"))]


# --- which Python ---


def test_the_gate_looks_for_the_oldest_python_that_is_promised() -> None:
    promised = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["requires-python"].removeprefix(">=")
    looked_for = re.findall(r"python(3\.\d+)", (ROOT / ".ci" / "run").read_text(encoding="utf-8"))

    assert {promised} == set(looked_for)
    assert f"Python {promised} or newer" in (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
