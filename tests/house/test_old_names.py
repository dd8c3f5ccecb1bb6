"""A name that was given up does not come back, in code or in the code words of the docs.

A line of old_names.txt is one of these, and may have `*` in it; what follows `#` is a remark.

    Shelf             an identifier: a variable, function, class, attribute, argument, module or folder
    engine/outside    a module or folder by the end of its path, where the word alone is still in use
    --most-sources    an option of the command line
"""

from __future__ import annotations

import ast
import re
from fnmatch import translate
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

ROOT = Path(__file__).resolve().parents[2]
OLD_NAMES = Path(__file__).with_name("old_names.txt")
CODE = ("src", "tests", "tools", "benchmarks", "examples", "integrations_tests", "browser_tests")
PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs")
CODE_WORDS = re.compile(r"^( *)```.*?^\1```|`[^`\n]+`", flags=re.MULTILINE | re.DOTALL)
WORD = re.compile(r"(?<![\w-])--[a-z][\w-]*|[^\W\d]\w*")


def old_names() -> list[str]:
    lines = (line.partition("#")[0].strip() for line in OLD_NAMES.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]


def found_in(root: Path, names: list[str]) -> list[str]:
    """Return where each of the names still is."""
    paths = _any_of(f"*/{name}" for name in names if "/" in name)
    words = _any_of(name for name in names if "/" not in name)
    return sorted({*_paths_of(root, paths, words), *_words_of(root, words)})


def _any_of(names: Iterable[str]) -> Callable[[str], object]:
    """Return what says whether a word is one of the names; the same words are in many files."""
    return cache(re.compile("|".join(map(translate, names)) or r"(?!)").match)


def _paths_of(root: Path, paths: Callable[[str], object], words: Callable[[str], object]) -> Iterator[str]:
    for folder in CODE:
        for path in (root / folder).rglob("*.py"):
            inner = path.relative_to(root)
            yield from (
                f"{inner}: {part}" for part in (inner.with_suffix(""), *inner.parents) if paths(part.as_posix()) or words(part.name)
            )


def _words_of(root: Path, words: Callable[[str], object]) -> Iterator[str]:
    for path in _texts(root):
        text = path.read_text(encoding="utf-8")
        # What a text does not hold as a word at all needs no parser; most files hold none of them.
        if any(map(words, {*re.findall(r"\w+", text), *WORD.findall(text)})):
            used = words_of_code(text) if path.suffix == ".py" else words_of_page(text)
            yield from (f"{path.relative_to(root)}: {word}" for word in used if words(word))


def _texts(root: Path) -> Iterator[Path]:
    for folder in CODE:
        yield from (root / folder).rglob("*.py")
    for page in PAGES:
        yield from [root / page] if (root / page).is_file() else (root / page).rglob("*.md")


def words_of_page(text: str) -> set[str]:
    """Return identifiers and options in the fences and code words of a page."""
    return {word for code in CODE_WORDS.finditer(text) for word in WORD.findall(code[0])}


def words_of_code(text: str) -> set[str]:
    """Return every identifier of a module, those within f-strings too, and the options that its strings name."""
    return {word for node in ast.walk(ast.parse(text)) for word in _words_of_node(node)}


def _words_of_node(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            yield from (word for word in WORD.findall(node.value) if word.startswith("--"))
        return
    for _, value in ast.iter_fields(node):  # a node keeps names as texts, or as lists of them
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, str):
                yield from each.split(".")


def test_no_old_name_is_left() -> None:
    assert [] == found_in(ROOT, old_names())


def test_every_line_is_a_name() -> None:
    assert [] == [name for name in old_names() if not re.fullmatch(r"--[a-z*][a-z*-]*|[\w*]+(/[\w*]+)*", name)]


@cache
def module_text() -> str:
    return (
        '"""The Shelf is prose here."""\nimport a.crew as b\n\n\nclass Kept(b.Base):\n    def go(self, *, desk: int) -> str:\n'
        "        # a Shelf\n        self.trail = call(post=1)\n        return f'{Shelf.x} --most-sources'\n"
    )


@pytest.mark.parametrize(
    ("name", "is_found"),
    [
        ("Shelf", True),  # within an f-string
        ("crew", True),  # a part of a module's name
        ("desk", True),  # a parameter
        ("trail", True),  # an attribute
        ("post", True),  # a keyword argument
        ("K*", True),
        ("outside", True),  # a file
        ("room", True),  # a folder
        ("room/outside", True),
        ("hall/outside", False),
        ("--most-sources", True),
        ("--most", False),
        ("prose", False),
        ("MOST_*", True),  # in a fence
        ("Plane", True),  # a code word of a page
        ("Office", False),  # a plain word of a page
    ],
)
def test_a_name_is_found_wherever_it_is_one(tmp_path: Path, name: str, *, is_found: bool) -> None:
    (tmp_path / "src" / "room").mkdir(parents=True)
    (tmp_path / "src" / "room" / "outside.py").write_text(module_text())
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text("The Office, and `Plane.x`.\n\n```python\nMOST_ROWS = 3\n```\n")

    assert is_found == bool(found_in(tmp_path, [name]))
