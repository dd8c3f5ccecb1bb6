"""Presentations: each slide is a page, its title a heading, then its text, tables and speaker notes, and its pictures.

Refuses sound, film, embedded files and pictures that are only linked.
"""

from __future__ import annotations

import importlib.metadata
import io
from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.extraction import ExtractedText
from evidentia.contracts.ids import SemanticVersion, ToolId
from evidentia.ingest.readers.archives import open_checked
from evidentia.ingest.readers.families import Family
from evidentia.ingest.readers.images import ImageGatherer
from evidentia.ingest.readers.limits import ReadLimits, TextGatherer
from evidentia.ingest.readers.nearest_text import TextMap
from evidentia.ingest.readers.properties import declared_properties
from evidentia.ingest.readers.slide_images import Block, Position, SlidePictures

if TYPE_CHECKING:
    from collections.abc import Iterator

TOOL_ID = ToolId("python-pptx")
MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.presentationml.presentation"


class SlidesReader(msgspec.Struct, frozen=True, kw_only=True):
    """Reads .pptx files."""

    limits: ReadLimits = ReadLimits()

    def read(self, content: bytes, *, name: str) -> ExtractedText:
        """Return the slides in order and the declared properties."""
        import pptx

        open_checked(content, family=Family.SLIDES, name=name, limits=self.limits).close()
        presentation = pptx.Presentation(io.BytesIO(content))
        gatherer, images = TextGatherer(self.limits), ImageGatherer(self.limits)
        pictures = SlidePictures(images)
        pages: list[int] = []
        for number, slide in enumerate(presentation.slides, start=1):
            pages.append(gatherer.length)
            blocks: list[Block] = []
            for text, position in _blocks(slide, number):
                blocks.append(Block(gatherer.length, gatherer.length + len(text), position))
                gatherer.add(f"{text}\n\n")
            pictures.take(slide, blocks, section=number - 1)
        text = gatherer.joined()
        return ExtractedText(
            text=text,
            media_type=MEDIA_TYPE,
            method="pptx_slides",
            tool_id=TOOL_ID,
            tool_version=SemanticVersion(importlib.metadata.version("python-pptx")),
            structure="markdown",
            declared=declared_properties(presentation.core_properties),
            notes=images.notes(),
            pages=tuple(pages),
            images=tuple(pictures.placed(TextMap(text, sections=pages))),
        )


def _blocks(slide: object, number: int) -> Iterator[tuple[str, Position | None]]:
    """Yield the texts of a slide, each with the place of its shape; speaker notes have none."""
    shapes = slide.shapes  # type: ignore[attr-defined]  # python-pptx has no types
    title = shapes.title
    heading = " ".join(title.text_frame.text.split()) if title is not None else ""
    contents = [
        (text, Position.of(shape, order))
        for order, shape in enumerate(shapes)
        if title is None or shape.shape_id != title.shape_id
        for text in _shape_texts(shape)
    ]
    notes = _notes(slide)
    if heading or contents or notes:
        yield f"# {heading or f'Slide {number}'}", Position.first()
        yield from contents
        yield from ((text, None) for text in notes)


def _shape_texts(shape: object) -> Iterator[str]:
    """Yield the texts of a shape, its table or its group, without recursion."""
    waiting = [shape]
    while waiting:
        current = waiting.pop()
        if hasattr(current, "shapes"):
            waiting.extend(reversed(list(current.shapes)))
        elif getattr(current, "has_table", False):
            rows = (" | ".join(_cells(row)) for row in current.table._tbl.tr_lst)  # type: ignore[attr-defined]  # noqa: SLF001
            yield "\n".join(row for row in rows if row.strip(" |"))
        elif getattr(current, "has_text_frame", False):
            text = current.text_frame.text.replace("\v", "\n").strip()  # type: ignore[attr-defined]  # python-pptx has no types
            if text:
                yield text


def _cells(row: object) -> Iterator[str]:
    for cell in row.tc_lst:  # type: ignore[attr-defined]  # python-pptx has no types
        yield " ".join(cell.text.split())


def _notes(slide: object) -> list[str]:
    if not slide.has_notes_slide:  # type: ignore[attr-defined]  # python-pptx has no types
        return []
    frame = slide.notes_slide.notes_text_frame  # type: ignore[attr-defined]  # python-pptx has no types
    text = frame.text.strip() if frame is not None else ""
    return [f"Notes: {text}"] if text else []
