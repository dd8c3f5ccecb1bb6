"""docs/glossary.md names things that exist, and links of the documentation lead somewhere."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import msgspec
import pytest
from source_trees import nodes_of
from typer.main import get_command

from evidentia.contracts.settings import Settings
from evidentia.serving.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "evidentia"
GLOSSARY = ROOT / "docs" / "glossary.md"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

PROSE = {"code", "retry-after", "Origin", "$caller.NAME"}
"""Marked as code on the page, and not names of ours: markup, and headers of HTTP."""


@cache
def names_in_source() -> frozenset[str]:
    """Return every identifier of the package, and every whole string in it that could be one: words of the wire and options."""
    found: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        for node in nodes_of(path):
            match node:
                case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    found.add(name)
                case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                    found.add(name)
                case ast.Constant(value=str(text)) if re.fullmatch(r"(--)?[\w-]+", text):
                    found.add(text)
    return frozenset(found)


@cache
def setting_names() -> frozenset[str]:
    groups = msgspec.structs.fields(Settings)
    return frozenset(f"{group.name}.{field.name}" for group in groups for field in msgspec.structs.fields(group.default))


def is_command(words: list[str]) -> bool:
    commands = getattr(get_command(app), "commands", {})
    for word in words:
        if word not in commands:
            return False
        commands = getattr(commands[word], "commands", {})
    return True


def exists(name: str) -> bool:
    if name.startswith("evidentia "):
        return is_command(name.split()[1:])
    if "." in name:
        return name in setting_names()
    return name in names_in_source()


def table_rows() -> list[str]:
    return [line for line in GLOSSARY.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]


def quoted(row: str) -> list[str]:
    # Labels of links are titles of pages, which the test of links looks at.
    return [name for name in re.findall(r"`([^`]+)`", re.sub(r"\[[^\]]*\]\([^)]*\)", "", row)) if name not in PROSE]


@pytest.mark.parametrize("name", sorted({name for row in table_rows() for name in quoted(row)}))
def test_a_name_in_the_glossary_exists(name: str) -> None:
    assert exists(name)


def test_a_name_that_is_gone_would_be_noticed() -> None:
    assert not exists("EvidenceRequestt")
    assert not exists("cache.semantics")
    assert not exists("evidentia tables answer")


def test_entries_of_the_field_are_in_alphabetical_order() -> None:
    _, _, second = GLOSSARY.read_text(encoding="utf-8").partition("## The field's words")
    entries = [line.split("|")[1].strip().casefold() for line in second.splitlines() if line.startswith("| ")][1:]

    assert sorted(entries) == entries


# --- links ---


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page, as GitHub makes them from headings."""
    outside = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", outside, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.casefold()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    outside = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", outside)):
        if re.match(r"\w+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)

    assert [] == broken
