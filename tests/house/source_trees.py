"""The syntax trees of the package's files, each read and walked once per process: several tests go through all of them."""

from __future__ import annotations

import ast
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the tree of a file; nobody changes it."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of a file's tree, as `ast.walk` gives them."""
    return tuple(ast.walk(tree_of(path)))
