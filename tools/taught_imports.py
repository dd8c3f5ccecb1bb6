"""Print every import of evidentia that README.md and the docs teach, one name a line: what has to stay where it is.

    python tools/taught_imports.py [ROOT] > tests/house/public_api.txt

A line is a module, or a module and a name in it. A test compares the file with the docs, so that a change is a difference to read.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGE: Final = "evidentia"
_FENCE: Final = re.compile(r"^(?P<indent> *)```(?:python|pycon|py)[^\n]*\n(?P<body>.*?)^(?P=indent)```", flags=re.MULTILINE | re.DOTALL)
_PROMPT: Final = re.compile(r"^\s*(?:>>>|\.\.\.)(?: |$)")


def main() -> None:
    """Print the list."""
    print("\n".join(taught_imports(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)))


def taught_imports(root: Path) -> list[str]:
    """Return the lines in alphabetical order."""
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    return sorted({line for page in pages for line in _imports_of_page(page.read_text(encoding="utf-8"))})


def _imports_of_page(text: str) -> Iterator[str]:
    for fence in _FENCE.finditer(text):
        lines = fence["body"].splitlines()
        if any(line.lstrip().startswith(">>>") for line in lines):
            lines = [_PROMPT.sub("", line) for line in lines if _PROMPT.match(line)]
        else:
            lines = [line.removeprefix(fence["indent"]) for line in lines]
        for node in ast.walk(_parsed("\n".join(lines))):
            yield from _imports_of(node)


def _parsed(text: str) -> ast.AST:
    """Return the tree of an example, which may wait at its top."""
    tree = compile(text, "an example", "exec", flags=ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    assert isinstance(tree, ast.AST)  # noqa: S101 - what the first flag says
    return tree


def _imports_of(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name.partition(".")[0] == PACKAGE)
    elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == PACKAGE:
        yield from (f"{node.module} {alias.name}" for alias in node.names)


if __name__ == "__main__":
    main()
