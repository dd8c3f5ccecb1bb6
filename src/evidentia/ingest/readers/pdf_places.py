"""Which line of a page is nearest to an image, in half lines of distance, so that a hair's breadth decides nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from evidentia.ingest.readers.nearest_text import choose

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evidentia.ingest.readers.nearest_text import Span, TextMap

POINTS_PER_STEP = 6
MAX_COMPARISONS = 1_000_000
"""Images times lines of one page; beyond it, images take the text of the page's head."""


class Box(NamedTuple):
    """Where an image lies, in points from the lower left of the page."""

    left: int
    bottom: int
    right: int
    top: int

    def joined(self, other: Box) -> Box:
        """Return the box around both."""
        return Box(min(self.left, other.left), min(self.bottom, other.bottom), max(self.right, other.right), max(self.top, other.top))


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


def nearest_spans(boxes: Sequence[Box], lines: Sequence[TextLine], texts: TextMap, *, section: int) -> Iterator[tuple[int, Span]]:
    """Yield the index of each image of a page, from top to bottom, with its nearest text."""
    order = sorted(range(len(boxes)), key=lambda index: (-boxes[index].top, boxes[index].left, index))
    if not lines or len(lines) * len(boxes) > MAX_COMPARISONS:
        head = texts.nearest(texts.start_of(section), section=section)
        yield from ((index, head) for index in order)
        return
    for run, box in _runs(order, boxes, lines):
        span = _nearest(box, lines, texts, section)
        yield from ((index, span) for index in run)


def _runs(order: Sequence[int], boxes: Sequence[Box], lines: Sequence[TextLine]) -> Iterator[tuple[list[int], Box]]:
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


def _is_between(lines: Sequence[TextLine], *, upper: Box, lower: Box, around: Box) -> bool:
    return any(lower.top <= line.middle <= upper.bottom and line.x <= around.right and line.right >= around.left for line in lines)


def _nearest(box: Box, lines: Sequence[TextLine], texts: TextMap, section: int) -> Span:
    middle = (box.bottom + box.top) // 2
    above = min((_ranked(box, line, index) for index, line in enumerate(lines) if line.middle >= middle), default=None)
    below = min((_ranked(box, line, index) for index, line in enumerate(lines) if line.middle < middle), default=None)
    before = texts.last_within(*lines[above[2]][:2], section=section) if above else None
    after = texts.first_within(*lines[below[2]][:2], section=section) if below else None
    chosen = choose(before, after, gap_before=above[0] if above else 0, gap_after=below[0] if below else 0)
    if chosen is None:
        return texts.nearest(texts.start_of(section), section=section)
    return texts.span_of(chosen, at_end=chosen == before)


def _ranked(box: Box, line: TextLine, index: int) -> tuple[int, int, int]:
    """Return the distance in half lines, then how far the middles are apart, then the place in the text."""
    up = max(0, line.y - box.top, box.bottom - (line.y + line.size))
    across = max(0, box.left - line.right, line.x - box.right)
    return (up + across) // POINTS_PER_STEP, abs(line.middle - (box.bottom + box.top) // 2), index
