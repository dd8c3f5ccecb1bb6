"""Where a text is cut: at headings, paragraphs, code fences and lines, with exact character offsets.

Every character that is not white space is in exactly one span. Refuses to change the text, and to spend long on text made to
be slow: lines beyond a budget are cut at sentences and spaces by a plain scan.
"""

from __future__ import annotations

import functools
import importlib.metadata
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from evidentia.contracts.layout import ExtractedText


Span = tuple[int, int]

STRETCH_CHARS = 50_000
"""The splitter sees at most this much at a time, because its time grows with the square of the marks it sees; a longer document is first
parted at blank lines."""
LONG_LINES_CHARS = 300_000
"""When the lines longer than a chunk hold more than this together, they are cut by the plain scan; the splitter takes seconds per
megabyte of unbroken text."""

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_LEADING_BLANK_LINES = re.compile(r"(?:[^\S\r\n]*[\r\n]+)+")
_SENTENCE_END = re.compile(r"[.!?。！？][\"')\]]*\s")  # noqa: RUF001  # full-width marks end sentences too


@functools.cache
def chunker_version() -> str:
    """Return our version and the splitter's; part of every document's custody."""
    return f"1.0.0+semantic-text-splitter.{importlib.metadata.version('semantic-text-splitter')}"


def cut(text: str, *, structure: str = "text", body_start: int = 0, chunk_chars: int, chunk_max_chars: int) -> tuple[Span, ...]:
    """Return the spans of the chunks of `text` from `body_start` on, in order, each at most `chunk_max_chars` long.

    A body no longer than that is one chunk. Spans begin at the first line that is not blank and end at the last character that
    is not white space; a blank body has none.
    """
    end = len(text.rstrip())
    if end - body_start <= chunk_max_chars:
        start = _first_line(text, body_start, end)
        return ((start, end),) if start < end else ()
    splitter = _splitter(structure, min(chunk_chars, chunk_max_chars), chunk_max_chars)
    spans: list[Span] = []
    for start, stop, is_long_line in _stretches(text, body_start, end, chunk_max_chars):
        cuts = _windows(text, start, stop, chunk_chars, chunk_max_chars) if is_long_line else splitter(text[start:stop])
        spans.extend(_trimmed(text, start if not is_long_line else 0, cuts))
    return tuple(spans)


def _first_line(text: str, start: int, end: int) -> int:
    match = _LEADING_BLANK_LINES.match(text, start, end)
    return match.end() if match else start


def _trimmed(text: str, offset: int, cuts: Iterator[Span]) -> Iterator[Span]:
    for start, stop in cuts:
        piece = text[offset + start : offset + stop]
        end = offset + start + len(piece.rstrip())
        begin = _first_line(text, offset + start, end)
        if begin < end:
            yield begin, end


@functools.lru_cache(maxsize=16)
def _splitter(structure: str, chunk_chars: int, chunk_max_chars: int) -> Callable[[str], Iterator[Span]]:
    """Return a function that gives the spans of a stretch; nothing is trimmed, so that spans touch and lose nothing."""
    from semantic_text_splitter import MarkdownSplitter, TextSplitter

    kind = MarkdownSplitter if structure == "markdown" else TextSplitter
    splitter = kind((chunk_chars, chunk_max_chars), trim=False)

    def split(stretch: str) -> Iterator[Span]:
        return ((start, start + len(piece)) for start, piece in splitter.chunk_indices(stretch))

    return split


def _stretches(text: str, start: int, end: int, max_line_length: int) -> Iterator[tuple[int, int, bool]]:
    """Yield the parts to cut on their own: where one starts and stops, and whether it is a long line over budget."""
    long_lines = [(a, b) for a, b in _lines(text, start, end) if b - a > max_line_length]
    if sum(b - a for a, b in long_lines) <= LONG_LINES_CHARS:
        long_lines = []
    for line_start, line_stop in long_lines:
        yield from _pieces(text, start, line_start)
        yield line_start, line_stop, True
        start = line_stop
    yield from _pieces(text, start, end)


def _lines(text: str, start: int, end: int) -> Iterator[Span]:
    while start < end:
        match = _LINE.match(text, start, end)
        stop = match.end() if match else end
        yield start, stop
        start = stop


def _pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int, bool]]:
    while end - start > STRETCH_CHARS:
        low, high = start + STRETCH_CHARS // 2, start + STRETCH_CHARS
        stop = text.rfind("\n\n", low, high) + 1 or text.rfind("\n", low, high) + 1 or high
        yield start, stop, False
        start = stop
    if start < end:
        yield start, end, False


def _windows(text: str, start: int, end: int, chunk_chars: int, chunk_max_chars: int) -> Iterator[Span]:
    """Cut a long line at the first sentence end after `chunk_chars`, else at the last space, else anywhere."""
    while end - start > chunk_max_chars:
        low, high = start + min(chunk_chars, chunk_max_chars), start + chunk_max_chars
        sentence = _SENTENCE_END.search(text, low, high)
        stop = sentence.end() if sentence else text.rfind(" ", low, high) + 1 or high
        yield start, stop
        start = stop
    yield start, end


# --- titles ---
# What a document without a declared title is called: its first heading, else its file name.

LOOK_WITHIN = 4_096
MAX_TITLE_LENGTH = 500
_HEADING = re.compile(r"^#{1,2}[ \t]+(\S[^\r\n]*)", re.MULTILINE)


def title_of(extracted: ExtractedText, *, own_id: str) -> str:
    """Return the first heading near the top of a structured text, else the file's name without its extension."""
    if extracted.structure == "markdown":
        match = _HEADING.search(extracted.text, extracted.body_start, extracted.body_start + LOOK_WITHIN)
        heading = match.group(1).strip(" \t#") if match else ""
        if heading:
            return heading[:MAX_TITLE_LENGTH]
    return PurePosixPath(own_id).stem[:MAX_TITLE_LENGTH]
