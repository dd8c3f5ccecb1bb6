"""The small pieces every reference page is built from."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

NOTICE = "<!-- Written by `make docs` from the code; edit the code instead. -->"

_SENTENCE_END = re.compile(r"(?<=[.?!])\s+(?=[`A-Z\"])")


def page(title: str, *blocks: str) -> str:
    """Return a page: a title, the notice, and blocks with a blank line between them."""
    return "\n\n".join([f"# {title}", NOTICE, *(block for block in blocks if block)]) + "\n"


def prose(docstring: str | None) -> str:
    """Return a docstring with one sentence per line; paragraphs stay apart."""
    paragraphs = (docstring or "").strip().split("\n\n")
    return "\n\n".join(_SENTENCE_END.sub("\n", " ".join(paragraph.split())) for paragraph in paragraphs if paragraph.strip())


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table without the columns in which nothing stands; bars inside a cell are escaped."""
    filled = list(rows)
    kept = [place for place in range(len(headings)) if any(row[place] for row in filled)]
    lines = [[line[place] for place in kept] for line in (headings, ["---"] * len(headings), *filled)]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def code(text: str) -> str:
    """Return text as code within a line."""
    return f"`{text}`"


def _cell(text: str) -> str:
    return text.replace("|", r"\|")
