"""The pictures of slides, in the order in which a person meets them: from top to bottom, then from left to right."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

from evidentia.ingest.readers.image_sources import take_related
from evidentia.ingest.readers.nearest_text import choose

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evidentia.contracts.layout import ExtractedImage
    from evidentia.ingest.readers.images import ImageGatherer, Picture
    from evidentia.ingest.readers.nearest_text import TextMap, Unit

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"


class Position(NamedTuple):
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


class Block(NamedTuple):
    """A text of a slide: its characters and where it stands; None for what is not on the slide."""

    start: int
    end: int
    position: Position | None


class _Placed(NamedTuple):
    picture: Picture
    before: Block | None
    after: Block | None


class SlidePictures:
    """Takes the pictures of slide after slide, then finds their nearest text once all text is known."""

    def __init__(self, gatherer: ImageGatherer) -> None:
        self._gatherer = gatherer
        self._placed: list[_Placed] = []

    def take(self, slide: object, blocks: Sequence[Block], *, section: int) -> None:
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


def _pictures(slide: object) -> Iterable[tuple[Position, object]]:
    for order, shape in enumerate(slide.shapes):  # type: ignore[attr-defined]  # python-pptx has no types
        element = shape._element  # noqa: SLF001  # the public interface refuses linked and broken pictures with an error
        if element.tag == f"{_P}pic":
            yield Position.of(shape, order), element
        elif element.tag == f"{_P}grpSp":
            yield from ((Position.of(shape, order), inner) for inner in element.iter(f"{_P}pic"))


def _is(chosen: Unit, last: Unit | None) -> bool:
    return last is not None and chosen == last
