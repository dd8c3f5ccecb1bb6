"""Word documents: paragraphs and tables in document order, headings as Markdown, and their images.

Refuses macros, fields, embedded files and images that are only linked.
"""

from __future__ import annotations

import importlib.metadata
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from evidentia.contracts.ids import SemanticVersion, ToolId
from evidentia.contracts.layout import ExtractedText
from evidentia.contracts.ports import DocumentReader
from evidentia.ingest.readers.file_types import Family
from evidentia.ingest.readers.image_gathering import ImageGatherer, Picture
from evidentia.ingest.readers.image_sources import take_related
from evidentia.ingest.readers.limits import ReadLimits, TextGatherer
from evidentia.ingest.readers.nearest_text import TextMap
from evidentia.ingest.readers.office_archives import declared_properties, open_checked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docx.table import Table
    from docx.text.paragraph import Paragraph


TOOL_ID = ToolId("python-docx")
MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
DEEPEST_HEADING = 6
_BETWEEN_CELLS = " | "
_HEADING = re.compile(r"heading (\d)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class WordReader(DocumentReader):
    """Reads .docx files."""

    limits: ReadLimits = field(default_factory=ReadLimits)

    def read(self, content: bytes, *, name: str) -> ExtractedText:
        """Return paragraphs and tables in document order and the declared properties."""
        import io

        import docx

        open_checked(content, family=Family.WORD, name=name, limits=self.limits).close()
        document = docx.Document(io.BytesIO(content))
        gatherer, images = TextGatherer(self.limits), ImageGatherer(self.limits)
        reader = _BlockReader(WordImages(document.part, images))
        captions: set[int] = set()
        for block in document.iter_inner_content():
            for line in reader.lines(block):
                if line.is_caption:
                    captions.add(gatherer.length)
                for place in line.places:
                    place.picture.anchor = gatherer.length + place.offset
                    place.picture.gaps = place.gaps
                if line.text is not None:
                    gatherer.add(f"{line.text}\n\n")
        text = gatherer.joined()
        nearest = TextMap(text, captions=captions)
        return ExtractedText(
            text=text,
            media_type=MEDIA_TYPE,
            method="docx_paragraphs",
            tool_id=TOOL_ID,
            tool_version=SemanticVersion(importlib.metadata.version("python-docx")),
            structure="markdown",
            declared=declared_properties(document.core_properties),
            notes=images.notes(),
            images=tuple(one.placed(nearest.nearest(one.anchor, gaps=one.gaps)) for one in images.pictures),
        )


class _Place(NamedTuple):
    """Where in a line an image stands, and how far from it the text before and after is; None where the line itself tells."""

    offset: int
    picture: Picture
    gaps: tuple[int, int] | None = None


class _WordLine(NamedTuple):
    """A paragraph or a table; without text it is only a place for images."""

    text: str | None
    places: list[_Place]
    is_caption: bool = False


class _BlockReader:
    """Turns paragraphs and tables into lines with the images in them."""

    def __init__(self, images: WordImages) -> None:
        self._images = images

    def lines(self, block: Paragraph | Table) -> Iterator[_WordLine]:
        """Yield what a block gives: a line, a table of lines, or nothing."""
        from docx.text.paragraph import Paragraph

        if not isinstance(block, Paragraph):
            yield self._table(block)
            return
        whole = block.text
        text = whole.strip()
        found = list(self._images.of(block))
        if not text:
            if found:
                yield _WordLine(None, [_Place(0, picture, (1, 1)) for _, picture in found])
            return
        mark = _heading_mark(block)
        indent = len(whole) - len(whole.lstrip())
        places = [
            _Place(len(mark) + min(max(offset - indent, 0), len(text)) if offset > indent else 0, picture) for offset, picture in found
        ]
        yield _WordLine(mark + text, places, _style_of(block) == "Caption")

    def _table(self, table: Table) -> _WordLine:
        """Return a line per row, read from the cells as written: `row.cells` repeats a cell as often as its claimed span says."""
        from docx.table import _Cell

        rows: list[str] = []
        places: list[_Place] = []
        start = 0
        for row in table._tbl.tr_lst:  # noqa: SLF001  # see above
            cells: list[str] = []
            found: list[_Place] = []
            offset = 0
            for cell in row.tc_lst:
                text, inside = self._cell(_Cell(cell, table))
                found += [_Place(offset + place.offset, place.picture) for place in inside]
                cells.append(text)
                offset += len(text) + len(_BETWEEN_CELLS)
            line = _BETWEEN_CELLS.join(cells)
            is_blank = not line.strip(" |")
            places += [_Place(start + (0 if is_blank else place.offset), place.picture, (1, 1) if is_blank else None) for place in found]
            if not is_blank:
                rows.append(line)
                start += len(line) + 1
        return _WordLine("\n".join(rows), places)

    def _cell(self, cell: object) -> tuple[str, list[_Place]]:
        texts: list[str] = []
        places: list[_Place] = []
        written = 0
        for block in cell.iter_inner_content():  # type: ignore[attr-defined]  # python-docx has no types
            for line in self.lines(block):
                if line.text is not None:
                    texts.append(" ".join(line.text.split()))
                    written += len(texts[-1]) + 1
                places += [_Place(max(written - 1, 0), place.picture) for place in line.places]
        return " ".join(texts), places


def _style_of(paragraph: Paragraph) -> str:
    return (paragraph.style.name if paragraph.style is not None else None) or ""


def _heading_mark(paragraph: Paragraph) -> str:
    style = _style_of(paragraph)
    if style == "Title":
        return "# "
    match = _HEADING.match(style)
    return "#" * min(int(match.group(1)), DEEPEST_HEADING) + " " if match and int(match.group(1)) else ""


# --- word images ---
# The images of a Word paragraph in the order of its text: drawings and the older VML pictures, in groups and text boxes too.
#
# Refuses to follow a link: an image that is not inside the file is counted and left where it is.

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_WP = "{http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing}"
_PIC = "{http://schemas.openxmlformats.org/drawingml/2006/picture}"
_VML = "{urn:schemas-microsoft-com:vml}"
_O = "{urn:schemas-microsoft-com:office:office}"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_NOT_SHOWN = frozenset({f"{_W}del", f"{_W}moveFrom", f"{_MC}Fallback"})
"""Deleted text, and the second form of a drawing for programs that do not know the first."""
_MARKS = frozenset({f"{_A}blip", f"{_VML}imagedata"})
_OUTER = frozenset({f"{_WP}inline", f"{_WP}anchor", f"{_VML}shape", f"{_VML}group"})
_NAMED = frozenset({f"{_WP}docPr", f"{_PIC}cNvPr"})


class WordImages:
    """Finds the images of paragraphs; `part` is the part of the file whose relations their ids name."""

    def __init__(self, part: object, gatherer: ImageGatherer) -> None:
        self._relations = part.rels  # type: ignore[attr-defined]  # python-docx has no types
        self._gatherer = gatherer

    def of(self, paragraph: Paragraph) -> Iterator[tuple[int, Picture]]:
        """Yield each image with the number of characters of the paragraph before it."""
        from docx.text.hyperlink import Hyperlink
        from docx.text.run import Run

        element = paragraph._p  # noqa: SLF001  # the public interface does not tell where in a paragraph a drawing is
        if next(element.iter(*_MARKS), None) is None:
            return
        kinds: dict[str, Any] = {f"{_W}r": Run, f"{_W}hyperlink": Hyperlink}  # two classes without a common one
        offset = 0
        for child in element:
            kind = kinds.get(child.tag)
            length = len(kind(child, paragraph).text) if kind else 0
            first = next(child.iter(f"{_W}t", *_MARKS), None) if length else None
            place = offset if first is None or first.tag in _MARKS else offset + length
            for picture in self._within(child):
                yield place, picture
            offset += length

    def _within(self, element: Any) -> Iterator[Picture]:  # noqa: ANN401  # lxml has no types
        alt = outer_alt = ""
        waiting = [element]
        while waiting:
            node = waiting.pop()
            if node.tag in _NOT_SHOWN:
                continue
            if node.tag in _OUTER:
                alt = outer_alt = node.get("alt") or ""
            elif node.tag in _NAMED:
                alt = node.get("descr") or node.get("title") or outer_alt
                outer_alt = outer_alt or alt
            elif node.tag in _MARKS:
                picture = self._taken(node, alt or node.get(f"{_O}title") or "")
                if picture is not None:
                    yield picture
            waiting.extend(reversed(node))

    def _taken(self, node: Any, alt: str) -> Picture | None:  # noqa: ANN401  # lxml has no types
        named = node.get(f"{_R}embed") or node.get(f"{_R}id") or node.get(f"{_R}link") or ""
        return take_related(self._gatherer, self._relations, named, alt=alt)
