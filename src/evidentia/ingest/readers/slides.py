"""Presentations: each slide is a page, its title a heading, then its text, tables and speaker notes, and its pictures.

Refuses sound, film, embedded files and pictures that are only linked.
"""

from __future__ import annotations

import importlib.metadata
import io
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Self

from evidentia.contracts.ids import SemanticVersion, ToolId
from evidentia.contracts.layout import ExtractedImage, ExtractedText
from evidentia.contracts.ports import DocumentReader
from evidentia.ingest.readers.file_types import Family
from evidentia.ingest.readers.image_gathering import ImageGatherer, Picture
from evidentia.ingest.readers.image_sources import take_related
from evidentia.ingest.readers.limits import ReadLimits, TextGatherer
from evidentia.ingest.readers.nearest_text import TextMap, TextUnit, choose
from evidentia.ingest.readers.office_archives import declared_properties, open_checked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


TOOL_ID = ToolId("python-pptx")
MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.presentationml.presentation"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlidesReader(DocumentReader):
    """Reads .pptx files."""

    limits: ReadLimits = field(default_factory=ReadLimits)

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
            blocks: list[SlideBlock] = []
            for text, position in _blocks(slide, number):
                blocks.append(SlideBlock(gatherer.length, gatherer.length + len(text), position))
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


def _blocks(slide: object, number: int) -> Iterator[tuple[str, SlidePosition | None]]:
    """Yield the texts of a slide, each with the place of its shape; speaker notes have none."""
    shapes = slide.shapes  # type: ignore[attr-defined]  # python-pptx has no types
    title = shapes.title
    heading = " ".join(title.text_frame.text.split()) if title is not None else ""
    contents = [
        (text, SlidePosition.of(shape, order))
        for order, shape in enumerate(shapes)
        if title is None or shape.shape_id != title.shape_id
        for text in _shape_texts(shape)
    ]
    notes = _notes(slide)
    if heading or contents or notes:
        yield f"# {heading or f'Slide {number}'}", SlidePosition.first()
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


# --- slide images ---
# The pictures of slides, in the order in which a person meets them: from top to bottom, then from left to right.

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"


class SlidePosition(NamedTuple):
    """Where the outermost shape stands on its slide; shapes at one place keep the order of the file."""

    top: int
    left: int
    order: int

    @classmethod
    def of(cls, shape: object, order: int) -> Self:
        """Return the place of a shape; one that has none, or a broken one, stands at the upper left."""
        from pptx.exc import PythonPptxError

        try:
            top, left = shape.top, shape.left  # type: ignore[attr-defined]  # python-pptx has no types
            return cls(int(top or 0), int(left or 0), order)
        except (AttributeError, KeyError, TypeError, ValueError, PythonPptxError):
            return cls(0, 0, order)

    @classmethod
    def first(cls) -> Self:
        """Return the place of a title, which is read before everything else wherever it stands."""
        return cls(-(1 << 62), 0, 0)


class SlideBlock(NamedTuple):
    """A text of a slide: its characters and where it stands; None for what is not on the slide."""

    start: int
    end: int
    position: SlidePosition | None


class _Placed(NamedTuple):
    picture: Picture
    before: SlideBlock | None
    after: SlideBlock | None


class SlidePictures:
    """Takes the pictures of slide after slide, then finds their nearest text once all text is known."""

    def __init__(self, gatherer: ImageGatherer) -> None:
        self._gatherer = gatherer
        self._placed: list[_Placed] = []

    def take(self, slide: object, blocks: Sequence[SlideBlock], *, section: int) -> None:
        """Take the pictures of one slide, those in groups too."""
        relations = slide.part.rels  # type: ignore[attr-defined]  # python-pptx has no types
        shown = sorted((block for block in blocks if block.position is not None), key=lambda block: (block.position, block.start))
        index = 0
        for position, element in sorted(_pictures(slide), key=lambda found: found[0]):
            while index < len(shown) and (shown[index].position or position) < position:
                index += 1
            picture = self._taken(element, relations)
            if picture is None:
                continue
            picture.section = section
            before = shown[index - 1] if index else None
            self._placed.append(_Placed(picture, before, shown[index] if index < len(shown) else None))

    def placed(self, texts: TextMap) -> Iterator[ExtractedImage]:
        """Yield the pictures with their nearest text."""
        for picture, before, after in self._placed:
            last = texts.last_within(before.start, before.end, section=picture.section) if before else None
            first = texts.first_within(after.start, after.end, section=picture.section) if after else None
            chosen = choose(last, first, gap_before=1, gap_after=1)
            if chosen is None:
                yield picture.placed(texts.nearest(texts.start_of(picture.section), section=picture.section))
            else:
                yield picture.placed(texts.span_of(chosen, at_end=_is(chosen, last)))

    def _taken(self, element: object, relations: object) -> Picture | None:
        blip = next(element.iter(f"{_A}blip"), None)  # type: ignore[attr-defined]  # lxml has no types
        if blip is None:
            return None
        about = next(element.iter(f"{_P}cNvPr"), None)  # type: ignore[attr-defined]  # lxml has no types
        alt = (about.get("descr") or about.get("title") or "") if about is not None else ""
        return take_related(self._gatherer, relations, blip.get(f"{_R}embed") or blip.get(f"{_R}link") or "", alt=alt)


def _pictures(slide: object) -> Iterable[tuple[SlidePosition, object]]:
    for order, shape in enumerate(slide.shapes):  # type: ignore[attr-defined]  # python-pptx has no types
        element = shape._element  # noqa: SLF001  # the public interface refuses linked and broken pictures with an error
        if element.tag == f"{_P}pic":
            yield SlidePosition.of(shape, order), element
        elif element.tag == f"{_P}grpSp":
            yield from ((SlidePosition.of(shape, order), inner) for inner in element.iter(f"{_P}pic"))


def _is(chosen: TextUnit, last: TextUnit | None) -> bool:
    return last is not None and chosen == last
