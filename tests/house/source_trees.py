"""The syntax trees of the package's files, each read once per process: several tests walk through all of them."""

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
