"""Which sentence or line of a document an image belongs to: the rule, in one place, for every format.

1. A caption that directly follows the image.
2. Else the nearer of the text before and the text after; text on the line of the image is nearer than any other.
3. At equal distance the text before, unless it is a heading: then the image is the first thing of its section.
Text of another page or slide never counts. Images with no text between them get the same answer, because they stand at the same place.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, NamedTuple

from evidentia.text.sentences import split_sentences

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

MAX_LENGTH = 500
"""Characters of nearest text; of a longer stretch without a sentence end, those next to the image."""
_WORD = re.compile(r"[^\W_]")
_LINE = re.compile(r"[^\n]+")
_BLOCK_MARK = re.compile(r"(?:#{1,6}|>|[-*+])[ \t]++")
_HEADING = re.compile(r"#{1,6}[ \t]")
_FIGURE_WORDS = (
    r"figure|fig\.?|image|picture|photo|diagram|chart|illustration|screenshot|plate|exhibit|abbildung|abb\.?|bild|foto|grafik|diagramm"
    r"|figura|imagen|imagem|immagine|schéma|afbeelding|figuur|figur|rysunek|рисунок|рис\.|图|圖|図"
)
_CAPTION = re.compile(
    rf"""[*_\[(]{{0,3}}(?:{_FIGURE_WORDS})(?:
        [ \t\u00a0]*(?:[0-9][0-9A-Za-z.-]{{0,12}}?|[A-Z][.-]?[0-9]{{0,4}}|[IVXLC]{{1,6}})[*_\])]{{0,3}}
            (?:[:\uff1a)]|[ \t]+[|\u2013\u2014-]|\.[*_]{{0,3}}(?=[ \t]|$)|[ \t]*$)
        |[*_]{{0,3}}[ \t]*[:\uff1a]
    )""",
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
_LOOK = 120

Span = tuple[int, int]


class TextUnit(NamedTuple):
    """A sentence or a line: where it is, and what it is."""

    start: int
    end: int
    is_caption: bool = False
    is_heading: bool = False


def choose(before: TextUnit | None, after: TextUnit | None, *, gap_before: int, gap_after: int) -> TextUnit | None:
    """Return the unit an image between two belongs to; the gaps say how far away each is, in whole numbers of any measure."""
    if before is None or after is None:
        return before or after
    if after.is_caption or gap_after < gap_before:
        return after
    if gap_after == gap_before and before.is_heading and not after.is_heading:
        return after
    return before


def is_caption(line: str) -> bool:
    """Tell whether a line reads like the caption of a figure; `Figure 3 shows` does not, `Figure 3: the pump` does."""
    return _CAPTION.match(line[:_LOOK]) is not None


class TextMap:
    """The units of one document's text, found section by section when the first image of a section asks.

    `sections` are the starts of pages or slides. `wraps` says that lines are wrapped, so that a sentence may go on in the
    next one. `captions` are offsets of lines that the document itself calls captions.
    """

    def __init__(
        self, text: str, *, sections: Sequence[int] = (0,), wraps: bool = False, has_headings: bool = True, captions: Collection[int] = ()
    ) -> None:
        self._text = text
        self._sections = tuple(sections) or (0,)
        self._wraps = wraps
        self._has_headings = has_headings
        self._captions = captions
        self._units: dict[int, tuple[list[TextUnit], list[int]]] = {}
        self._breaks: list[int] | None = None

    def nearest(self, anchor: int, *, section: int = 0, gaps: Span | None = None) -> Span:
        """Return the stretch an image at `anchor` belongs to, empty at the start of its section where that has no text.

        `gaps` are the distances to the text before and after; without them they follow from line breaks.
        """
        units, starts = self._of(section)
        following = bisect_left(starts, anchor)
        before = units[following - 1] if following else None
        after = units[following] if following < len(units) else None
        if before is not None and before.end > anchor:
            return self._clipped(before, at_end=False)
        if gaps is None:
            gaps = (
                self._gap(before.end, anchor) if before else 0,
                self._gap(anchor, after.start) if after else 0,
            )
        chosen = choose(before, after, gap_before=gaps[0], gap_after=gaps[1])
        if chosen is None:
            return self._sections[section], self._sections[section]
        return self.span_of(chosen, at_end=chosen is before)

    def start_of(self, section: int) -> int:
        """Return where a page or slide begins."""
        return self._sections[section]

    def last_within(self, start: int, end: int, *, section: int) -> TextUnit | None:
        """Return the last unit that begins within a stretch."""
        units, starts = self._of(section)
        index = bisect_left(starts, end) - 1
        return units[index] if index >= 0 and units[index].end > start else None

    def first_within(self, start: int, end: int, *, section: int) -> TextUnit | None:
        """Return the first unit that ends within a stretch or begins in it."""
        units, starts = self._of(section)
        index = bisect_right(starts, start) - 1
        if index < 0 or units[index].end <= start:
            index += 1
        return units[index] if index < len(units) and units[index].start < end else None

    def span_of(self, unit: TextUnit, *, at_end: bool) -> Span:
        """Return the characters of a unit, a caption with all of its line, bounded in length."""
        if unit.is_caption:
            line_end = self._text.find("\n", unit.end)
            line = self._text[unit.end : unit.end + MAX_LENGTH if line_end < 0 else line_end]
            unit = unit._replace(end=unit.end + len(line.rstrip()))
            at_end = False
        return self._clipped(unit, at_end=at_end)

    def _of(self, section: int) -> tuple[list[TextUnit], list[int]]:
        if section not in self._units:
            start = self._sections[section]
            end = self._sections[section + 1] if section + 1 < len(self._sections) else len(self._text)
            units = list(self._found(start, end))
            self._units[section] = units, [unit.start for unit in units]
        return self._units[section]

    def _found(self, start: int, end: int) -> Iterator[TextUnit]:
        stretches = [(start, end)] if self._wraps else [match.span() for match in _LINE.finditer(self._text, start, end)]
        for low, high in stretches:
            for sentence in split_sentences(self._text[low:high]):
                unit = self._unit(low + sentence.start, low + sentence.end)
                if unit is not None:
                    yield unit

    def _unit(self, start: int, end: int) -> TextUnit | None:
        if _WORD.search(self._text, start, end) is None:
            return None
        is_heading = self._has_headings and _HEADING.match(self._text, start, end) is not None
        mark = _BLOCK_MARK.match(self._text, start, end)
        bare = mark.end() if mark else start
        captioned = start in self._captions or is_caption(self._text[bare : min(end, bare + _LOOK)])
        return TextUnit(bare, end, captioned, is_heading)

    def _gap(self, start: int, end: int) -> int:
        if self._breaks is None:
            self._breaks = [index for index, character in enumerate(self._text) if character == "\n"]
        return int(bisect_left(self._breaks, start) != bisect_left(self._breaks, end))

    def _clipped(self, unit: TextUnit, *, at_end: bool) -> Span:
        start, end = unit.start, unit.end
        if end - start <= MAX_LENGTH:
            return start, end
        if at_end:
            cut = self._text.find(" ", end - MAX_LENGTH, end) + 1 or end - MAX_LENGTH
            piece = self._text[cut:end]
            return end - len(piece.lstrip()), end
        cut = self._text.rfind(" ", start, start + MAX_LENGTH)
        piece = self._text[start : cut if cut > 0 else start + MAX_LENGTH]
        return start, start + len(piece.rstrip())
