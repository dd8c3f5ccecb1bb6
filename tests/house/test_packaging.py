"""What an installed package promises: extras that exist, and hints that lead somewhere without a checkout."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "evidentia"
PAGES = (
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "Makefile", "deploy/Dockerfile")),
    *sorted((ROOT / "docs").rglob("*.md")),
)
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
