"""Word documents: paragraphs and tables in document order, headings as Markdown; refuses macros, fields and embedded files."""

from __future__ import annotations

import importlib.metadata
import re
from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.extraction import ExtractedText
from evidentia.contracts.ids import SemanticVersion, ToolId
from evidentia.ingest.readers.archives import open_checked
from evidentia.ingest.readers.families import Family
from evidentia.ingest.readers.limits import ReadLimits, TextGatherer
from evidentia.ingest.readers.properties import declared_properties

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docx.table import Table
    from docx.text.paragraph import Paragraph

TOOL_ID = ToolId("python-docx")
MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
DEEPEST_HEADING = 6
_HEADING = re.compile(r"heading (\d)", re.IGNORECASE)


class WordReader(msgspec.Struct, frozen=True, kw_only=True):
    """Reads .docx files."""

    limits: ReadLimits = ReadLimits()

    def read(self, content: bytes, *, name: str) -> ExtractedText:
        """Return paragraphs and tables in document order and the declared properties."""
        import io

        import docx

        open_checked(content, family=Family.WORD, name=name, limits=self.limits).close()
        document = docx.Document(io.BytesIO(content))
        gatherer = TextGatherer(self.limits)
        for block in document.iter_inner_content():
            for line in _lines(block):
                gatherer.add(f"{line}\n\n")
        return ExtractedText(
            text=gatherer.joined(),
            media_type=MEDIA_TYPE,
            method="docx_paragraphs",
            tool_id=TOOL_ID,
            tool_version=SemanticVersion(importlib.metadata.version("python-docx")),
            structure="markdown",
            declared=declared_properties(document.core_properties),
        )


def _lines(block: Paragraph | Table) -> Iterator[str]:
    from docx.text.paragraph import Paragraph

    if not isinstance(block, Paragraph):
        yield "\n".join(_rows(block))
    elif text := block.text.strip():
        yield _heading_mark(block) + text


def _heading_mark(paragraph: Paragraph) -> str:
    style = paragraph.style.name if paragraph.style is not None else None
    if style == "Title":
        return "# "
    match = _HEADING.match(style or "")
    return "#" * min(int(match.group(1)), DEEPEST_HEADING) + " " if match and int(match.group(1)) else ""


def _rows(table: Table) -> Iterator[str]:
    """Yield a line per row, read from the cells as written: `row.cells` repeats a cell as often as its claimed span says."""
    from docx.table import _Cell

    for row in table._tbl.tr_lst:  # noqa: SLF001  # see above
        cells = (_cell_text(_Cell(cell, table)) for cell in row.tc_lst)
        line = " | ".join(cells)
        if line.strip(" |"):
            yield line


def _cell_text(cell: object) -> str:
    blocks = cell.iter_inner_content()  # type: ignore[attr-defined]  # python-docx has no types
    return " ".join(" ".join(line.split()) for block in blocks for line in _lines(block))
