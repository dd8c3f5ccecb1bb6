"""PDF: the text of each page, a form feed between pages, and the images on them; refuses to draw or to run anything."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import io
import logging
import math
import struct
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from evidentia.contracts.errors import DocumentUnreadableError
from evidentia.contracts.ids import SemanticVersion, ToolId
from evidentia.contracts.layout import ExtractedImage, ExtractedText
from evidentia.contracts.ports import DocumentReader
from evidentia.ingest.readers.image_gathering import ImageGatherer, OmissionReason, Picture
from evidentia.ingest.readers.limits import ReadLimits, TextGatherer
from evidentia.ingest.readers.nearest_text import Span, TextMap, choose
from evidentia.ingest.readers.pdf_streams import image_file, is_repacked
from evidentia.ingest.reasons import SkipReason

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pypdf


TOOL_ID = ToolId("pypdf")
PAGE_BREAK = "\n\n\f"
NO_CRYPTOGRAPHY = "is encrypted with AES, and the package that opens such files is missing: pip install cryptography"
_PLACEHOLDERS = frozenset({"anonymous", "untitled", "unspecified"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PdfReader(DocumentReader):
    """Reads PDF files that hold text."""

    limits: ReadLimits = field(default_factory=ReadLimits)

    def read(self, content: bytes, *, name: str) -> ExtractedText:  # noqa: ARG002  # the port's signature
        """Return the text of the pages in order and the declared title, author and dates."""
        from pypdf.errors import DependencyError

        logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it narrates every flaw; ours is the one message that counts
        try:
            return self._read(content)
        except DependencyError as error:
            if b"/Encrypt" in content and importlib.util.find_spec("cryptography") is None:
                raise DocumentUnreadableError(SkipReason.ENCRYPTED, NO_CRYPTOGRAPHY) from error
            raise

    def _read(self, content: bytes) -> ExtractedText:
        import pypdf

        reader = pypdf.PdfReader(io.BytesIO(content))
        if reader.is_encrypted and not _opens_without_password(reader):
            raise DocumentUnreadableError(SkipReason.ENCRYPTED, "is encrypted; remove the password and ingest it again")
        gatherer, gathered = TextGatherer(self.limits), ImageGatherer(self.limits)
        images = PdfImages(gathered)
        starts: list[int] = []
        for index, page in enumerate(reader.pages):
            gatherer.add(PAGE_BREAK if index else "")
            starts.append(gatherer.length)
            self._refuse_overdrawn(page, number=index + 1)
            gatherer.add(images.text_of(page, section=index, start=gatherer.length))
        text = gatherer.joined()
        if not text.strip():
            raise DocumentUnreadableError(SkipReason.NO_TEXT, "holds no text, perhaps only scanned pages; run text recognition on it first")
        return ExtractedText(
            text=text,
            media_type="application/pdf",
            method="pdf_text_layer",
            tool_id=TOOL_ID,
            tool_version=SemanticVersion(importlib.metadata.version("pypdf")),
            declared=_declared(reader),
            notes=gathered.notes(),
            pages=tuple(starts),
            images=tuple(images.placed(TextMap(text, sections=starts, wraps=True, has_headings=False))),
        )

    def _refuse_overdrawn(self, page: pypdf.PageObject, *, number: int) -> None:
        """Refuse a page that unfolds to more drawing than a page has; what is unpacked here is kept, and used when its text is read."""
        contents = page.get("/Contents")
        contents = None if contents is None else contents.get_object()
        streams = contents if isinstance(contents, list) else [contents]
        unpacked = 0
        for stream in streams:
            unpacked += len(get_data()) if (get_data := getattr(stream and stream.get_object(), "get_data", None)) else 0
            if unpacked > self.limits.max_page_bytes:
                problem = (
                    f"has a page, number {number}, that unfolds to more than {self.limits.max_page_bytes} bytes of drawing; leave it out"
                )
                raise DocumentUnreadableError(SkipReason.ARCHIVE_BOMB, problem)


def _opens_without_password(reader: pypdf.PdfReader) -> bool:
    try:
        return bool(reader.decrypt(""))
    except NotImplementedError:
        return False


def _declared(reader: pypdf.PdfReader) -> dict[str, str | tuple[str, ...]]:
    about = reader.metadata
    if about is None:
        return {}
    declared: dict[str, str | tuple[str, ...]] = {}
    for key, entry in (("title", "/Title"), ("author", "/Author")):
        value = about.get(entry)
        if isinstance(value, str) and value.strip() and value.strip().lower() not in _PLACEHOLDERS:
            declared[key] = value.strip()
    for key, attribute in (("created", "creation_date"), ("updated", "modification_date")):
        try:
            moment = getattr(about, attribute)
        except ValueError:
            continue
        if moment is not None:
            declared[key] = moment.isoformat()
    return declared


# --- pdf images ---
# The images of PDF pages and the text they stand next to, judged by where both lie on the page.
#
# Refuses to cost a page its text: an image that cannot be understood is counted and left out.

DEEPEST_FORM = 4
MAX_OBJECTS = 2_000
"""Drawn objects of one page that are looked at."""
MAX_PIXELS = 200_000_000
"""Pixels of one document that are packed again, which takes seconds; images that are kept as they are do not count."""
_FARTHEST = 1_000_000
_BROKEN = (AttributeError, TypeError, ValueError, KeyError, IndexError, OverflowError, NotImplementedError, struct.error, zlib.error)


class _Drawn(NamedTuple):
    picture: Picture
    box: PageBox


class _PdfPage(NamedTuple):
    drawn: list[_Drawn]
    lines: list[TextLine]


class PdfImages:
    """Reads page after page, and finds the nearest text of every image once all text is known."""

    def __init__(self, gatherer: ImageGatherer) -> None:
        self._gatherer = gatherer
        self._pages: dict[int, _PdfPage] = {}
        self._files: dict[int, bytes | OmissionReason] = {}
        self._pixels_left = MAX_PIXELS

    def text_of(self, page: pypdf.PageObject, *, section: int, start: int) -> str:
        """Return the text of a page without white space around it; `start` is where it will stand in the document's text."""
        objects = _objects(page)
        if not any(next(_images(each), None) is not None for each in objects.values()):
            return page.extract_text().strip()
        drawing = _Drawing(objects)
        whole = page.extract_text(visitor_text=drawing.write, visitor_operand_before=drawing.before, visitor_operand_after=drawing.after)
        text = whole.strip()
        drawn = [_Drawn(picture, box) for image, box in drawing.images for picture in self._taken(image) if picture is not None]
        for one in drawn:
            one.picture.section = section
        if drawn:
            shift = start - (len(whole) - len(whole.lstrip()))
            self._pages[section] = _PdfPage(drawn, drawing.lines(whole, shift=shift, low=start, high=start + len(text)))
        return text

    def placed(self, texts: TextMap) -> Iterator[ExtractedImage]:
        """Yield the images page by page, from top to bottom, with their nearest text."""
        for section in sorted(self._pages):
            page = self._pages[section]
            boxes = [one.box for one in page.drawn]
            for index, span in nearest_spans(boxes, page.lines, texts, section=section):
                yield page.drawn[index].picture.placed(span)

    def _taken(self, image: Any) -> Sequence[Picture | None]:  # noqa: ANN401  # pypdf's objects are whatever the file says
        key = getattr(getattr(image, "indirect_reference", None), "idnum", 0) or -1 - len(self._files)
        if key not in self._files:
            self._files[key] = self._read(image)
        content = self._files[key]
        if isinstance(content, OmissionReason):
            self._gatherer.leave_out(content)
            return ()
        picture = self._gatherer.take(content)
        if picture is None:
            self._files[key] = self._gatherer.last_left_out
        return (picture,)

    def _read(self, image: Any) -> bytes | OmissionReason:  # noqa: ANN401  # as above
        from pypdf.errors import PyPdfError

        try:
            pixels = int(image.get("/Width", 0)) * int(image.get("/Height", 0)) if is_repacked(image) else 0
            if self._pixels_left < pixels <= MAX_PIXELS:
                return OmissionReason.MANY
            content = image_file(image, self._gatherer.limits)
        except (*_BROKEN, PyPdfError):
            return OmissionReason.COLOURS
        self._pixels_left -= 0 if content is OmissionReason.LARGE else pixels
        return content


class _Drawing:
    """Listens to a page being read and keeps where its images and its pieces of text are."""

    def __init__(self, objects: dict[str, Any]) -> None:
        self.images: list[tuple[Any, PageBox]] = []
        self._objects = objects
        self._open: object = None
        self._pieces: list[tuple[str, int, int, int]] = []

    def before(self, operator: object, operands: Any, matrix: Sequence[float], _text: object) -> None:  # noqa: ANN401  # as above
        """Take the images of what is drawn now; what a form draws inside itself counts with the form."""
        if operator != b"Do" or self._open is not None or not operands:
            return
        self._open = operands
        drawn = self._objects.get(str(operands[0]))
        box = _box(matrix)
        self.images.extend((image, box) for image in _images(drawn))

    def after(self, _operator: object, operands: Any, _matrix: object, _text: object) -> None:  # noqa: ANN401  # as above
        """Note the end of a form."""
        if operands is self._open:
            self._open = None

    def write(self, piece: str, matrix: Sequence[float], text: Sequence[float], _font: object, size: float) -> None:
        """Keep a piece of text with its place."""
        if piece:
            x = text[4] * matrix[0] + text[5] * matrix[2] + matrix[4]
            y = text[4] * matrix[1] + text[5] * matrix[3] + matrix[5]
            height = abs(size * (text[3] or text[1]) * (matrix[3] or matrix[1]))
            self._pieces.append((piece, _whole(x), _whole(y), max(1, min(200, _whole(height)))))

    def lines(self, whole: str, *, shift: int, low: int, high: int) -> list[TextLine]:
        """Return the lines of the page with their places; none when the pieces are not the text, so that places would be guesses."""
        if "".join(piece for piece, *_ in self._pieces) != whole:
            return []
        lines: list[TextLine] = []
        offset, is_open = shift, False
        for piece, x, y, size in self._pieces:
            start, end = max(low, offset), min(high, offset + len(piece.rstrip()))
            offset += len(piece)
            if is_open and lines and piece.strip():
                lines[-1] = lines[-1]._replace(end=max(lines[-1].end, end))
            elif start < end and piece.strip():
                lines.append(TextLine(start, end, x, y, size))
            is_open = (is_open or bool(piece.strip())) and not piece.endswith("\n")
        return lines


def _objects(page: pypdf.PageObject) -> dict[str, Any]:
    resources = page.get("/Resources")
    return _named(resources.get_object() if resources is not None else None)


def _named(resources: Any) -> dict[str, Any]:  # noqa: ANN401  # as above
    """Return the objects that a page or a form can draw, by name; broken ones are not among them."""
    from pypdf.errors import PyPdfError

    found: dict[str, Any] = {}
    try:
        listed = resources.get("/XObject").get_object()
        for name in list(listed)[:MAX_OBJECTS]:
            drawn = listed[name].get_object()
            if hasattr(drawn, "get"):
                found[str(name)] = drawn
    except (*_BROKEN, PyPdfError):
        return found
    return found


def _images(drawn: Any) -> Iterator[Any]:  # noqa: ANN401  # as above
    """Yield the images that drawing an object shows, those of forms in forms up to a depth; each object once, so that loops end."""
    seen: set[object] = set()
    waiting = [(drawn, 0)]
    while waiting and len(seen) < MAX_OBJECTS:
        current, depth = waiting.pop()
        key = getattr(getattr(current, "indirect_reference", None), "idnum", None) or id(current)
        if current is None or key in seen:
            continue
        seen.add(key)
        kind = str(current.get("/Subtype"))
        if kind == "/Image":
            yield current
        elif kind == "/Form" and depth < DEEPEST_FORM:
            waiting.extend((inner, depth + 1) for inner in reversed(_named(current.get("/Resources")).values()))


def _box(matrix: Sequence[float]) -> PageBox:
    corners = [(0, 0), (1, 0), (0, 1), (1, 1)]
    across = [_whole(matrix[0] * u + matrix[2] * v + matrix[4]) for u, v in corners]
    up = [_whole(matrix[1] * u + matrix[3] * v + matrix[5]) for u, v in corners]
    return PageBox(min(across), min(up), max(across), max(up))


def _whole(points: float) -> int:
    return round(max(-_FARTHEST, min(_FARTHEST, points))) if math.isfinite(points) else 0


# --- pdf places ---
# Which line of a page is nearest to an image, in half lines of distance, so that a hair's breadth decides nothing.

POINTS_PER_STEP = 6
MAX_COMPARISONS = 1_000_000
"""Images times lines of one page; beyond it, images take the text of the page's head."""


class PageBox(NamedTuple):
    """Where an image lies, in points from the lower left of the page."""

    left: int
    bottom: int
    right: int
    top: int

    def joined(self, other: PageBox) -> PageBox:
        """Return the box around both."""
        return PageBox(min(self.left, other.left), min(self.bottom, other.bottom), max(self.right, other.right), max(self.top, other.top))


class TextLine(NamedTuple):
    """A line of a page: its characters in the document's text, where it begins, and how high it is."""

    start: int
    end: int
    x: int
    y: int
    size: int

    @property
    def middle(self) -> int:
        """Half its height above the base line."""
        return self.y + self.size // 2

    @property
    def right(self) -> int:
        """Where it ends, at half its height a character."""
        return self.x + (self.end - self.start) * self.size // 2


def nearest_spans(boxes: Sequence[PageBox], lines: Sequence[TextLine], texts: TextMap, *, section: int) -> Iterator[tuple[int, Span]]:
    """Yield the index of each image of a page, from top to bottom, with its nearest text."""
    order = sorted(range(len(boxes)), key=lambda index: (-boxes[index].top, boxes[index].left, index))
    if not lines or len(lines) * len(boxes) > MAX_COMPARISONS:
        head = texts.nearest(texts.start_of(section), section=section)
        yield from ((index, head) for index in order)
        return
    for run, box in _runs(order, boxes, lines):
        span = _nearest(box, lines, texts, section)
        yield from ((index, span) for index in run)


def _runs(order: Sequence[int], boxes: Sequence[PageBox], lines: Sequence[TextLine]) -> Iterator[tuple[list[int], PageBox]]:
    """Yield images that follow one another without a line of text between them, with the box around them."""
    run, around = [order[0]], boxes[order[0]]
    for index in order[1:]:
        joined = around.joined(boxes[index])
        if _is_between(lines, upper=around, lower=boxes[index], around=joined):
            yield run, around
            run, around = [index], boxes[index]
        else:
            run, around = [*run, index], joined
    yield run, around


def _is_between(lines: Sequence[TextLine], *, upper: PageBox, lower: PageBox, around: PageBox) -> bool:
    return any(lower.top <= line.middle <= upper.bottom and line.x <= around.right and line.right >= around.left for line in lines)


def _nearest(box: PageBox, lines: Sequence[TextLine], texts: TextMap, section: int) -> Span:
    middle = (box.bottom + box.top) // 2
    above = min((_ranked(box, line, index) for index, line in enumerate(lines) if line.middle >= middle), default=None)
    below = min((_ranked(box, line, index) for index, line in enumerate(lines) if line.middle < middle), default=None)
    before = texts.last_within(*lines[above[2]][:2], section=section) if above else None
    after = texts.first_within(*lines[below[2]][:2], section=section) if below else None
    chosen = choose(before, after, gap_before=above[0] if above else 0, gap_after=below[0] if below else 0)
    if chosen is None:
        return texts.nearest(texts.start_of(section), section=section)
    return texts.span_of(chosen, at_end=chosen == before)


def _ranked(box: PageBox, line: TextLine, index: int) -> tuple[int, int, int]:
    """Return the distance in half lines, then how far the middles are apart, then the place in the text."""
    up = max(0, line.y - box.top, box.bottom - (line.y + line.size))
    across = max(0, box.left - line.right, line.x - box.right)
    return (up + across) // POINTS_PER_STEP, abs(line.middle - (box.bottom + box.top) // 2), index
