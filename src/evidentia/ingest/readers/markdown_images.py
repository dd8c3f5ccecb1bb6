"""The images a Markdown text shows: `![alt](path)`, `![alt][label]` and `<img>`; not those in code, which are examples.

Refuses to change the text: images are found where they stand, and no offset moves.
"""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, NamedTuple

from evidentia.ingest.readers.html_images import HtmlImages
from evidentia.ingest.readers.image_sources import take_source
from evidentia.ingest.readers.nearest_text import TextMap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evidentia.contracts.layout import ExtractedImage
    from evidentia.ingest.readers.images import ImageGatherer

MAX_ALT_MARKUP_LENGTH = 2_000
_ANY = re.compile(r"!\[|<img\b", re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*+(?:[-*+>][ \t]*+)*+(`{3,}|~{3,})[^\n]*$", re.MULTILINE)
_TICKS = re.compile(r"`+")
_ALT = rf"!\[((?:[^\[\]\\]|\\.|\[[^\[\]]{{0,200}}+\]){{0,{MAX_ALT_MARKUP_LENGTH}}}+)\]"
_IMAGE = re.compile(
    rf"""{_ALT}(?:
        \([ \t\n]*+(?:<([^<>\n]*+)>|((?:[^\s()\\<>]|\\.|\([^\s()]*+\))*+))(?:[ \t\n]++(?:"[^"]*+"|'[^']*+'|\([^()]*+\)))?[ \t\n]*+\)
        |\[([^\[\]\n]{{0,500}}+)\])?
    |<img\b([^<>]*+)>""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_DEFINITION = re.compile(r"^ {0,3}\[([^\[\]\n]{1,500}+)\]:[ \t]*+(?:<([^<>\n]*+)>|(\S++))[^\n]*$", re.MULTILINE)
_ATTRIBUTE = re.compile(r"""([A-Za-z][A-Za-z-]{0,30}+)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'>]++))""")
_TAG = re.compile(r"</?[A-Za-z][^<>]*+>")
_LINK_TAIL = re.compile(r"\]\([^()\n]{0,2000}+\)|\]\[[^\[\]\n]{0,500}+\]")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_BLANK_LINE = re.compile(r"\n[ \t]*\r?\n")

Span = tuple[int, int]


class Found(NamedTuple):
    """An image of a text: its markup, what it names, and what it says instead; of a tag also the attributes."""

    start: int
    end: int
    source: str
    alt: str
    attributes: dict[str, str | None] | None = None


def place_images(text: str, gatherer: ImageGatherer, *, body_start: int = 0) -> tuple[ExtractedImage, ...]:
    """Take the images of a text and return them with their nearest text."""
    found = list(find_images(text, body_start=body_start))
    tags = HtmlImages(gatherer)
    taken = []
    for image in found:
        picture = take_source(gatherer, image.source, alt=image.alt) if image.attributes is None else tags.taken(image.attributes)
        if picture is not None:
            picture.anchor = image.start
            taken.append(picture)
    if not taken:
        return ()
    nearest = TextMap(_without_markup(text, found), sections=(body_start,), wraps=True)
    return tuple(picture.placed(nearest.nearest(picture.anchor)) for picture in taken)


def find_images(text: str, *, body_start: int = 0) -> Iterator[Found]:
    """Yield the images of a text in order, in time linear in its length."""
    if _ANY.search(text, body_start) is None:
        return
    code = sorted([*_fenced(text, body_start), *_comments(text, body_start)])
    definitions: dict[str, str] = {}
    shown = _blanked(text, code)
    for match in _DEFINITION.finditer(shown, body_start):
        definitions.setdefault(_label(match.group(1)), _plain(match.group(2) or match.group(3)))
    shown = _blanked(shown, list(_code_spans(shown, body_start)))
    for match in _IMAGE.finditer(shown, body_start):
        image = _image(match, definitions)
        if image is not None:
            yield image


def _image(match: re.Match[str], definitions: dict[str, str]) -> Found | None:
    alt, bracketed, bare, label, tag = match.groups()
    if tag is not None:
        attributes: dict[str, str | None] = {}
        for attribute in _ATTRIBUTE.finditer(tag):
            attributes.setdefault(
                attribute.group(1).lower(), html.unescape(attribute.group(2) or attribute.group(3) or attribute.group(4) or "")
            )
        return Found(match.start(), match.end(), attributes.get("src") or "", "", attributes)
    if bracketed is not None or bare is not None:
        return Found(match.start(), match.end(), _plain(bracketed if bracketed is not None else bare), _plain(alt))
    source = definitions.get(_label(label or alt))
    return Found(match.start(), match.end(), source, _plain(alt)) if source is not None else None


def _fenced(text: str, start: int) -> Iterator[Span]:
    """Yield the fenced blocks, fences included; one that is never closed goes on to the end."""
    opening: re.Match[str] | None = None
    for match in _FENCE.finditer(text, start):
        mark = match.group(1)
        if opening is None:
            if mark[0] == "~" or "`" not in text[match.end(1) : match.end()]:
                opening = match
        elif mark[0] == opening.group(1)[0] and len(mark) >= len(opening.group(1)) and not text[match.end(1) : match.end()].strip():
            yield opening.start(), match.end()
            opening = None
    if opening is not None:
        yield opening.start(), len(text)


def _comments(text: str, start: int) -> Iterator[Span]:
    while (opened := text.find("<!--", start)) >= 0:
        closed = text.find("-->", opened + 4)
        if closed < 0:
            return
        start = closed + 3
        yield opened, start


def _code_spans(text: str, start: int) -> Iterator[Span]:
    """Yield code between runs of as many backticks, within one paragraph."""
    runs = [match.span() for match in _TICKS.finditer(text, start)]
    breaks = [match.start() for match in _BLANK_LINE.finditer(text, start)] if runs else []
    closing: dict[int, int] = {}
    partner = [-1] * len(runs)
    for index in range(len(runs) - 1, -1, -1):
        length = runs[index][1] - runs[index][0]
        partner[index] = closing.get(length, -1)
        closing[length] = index
    index = paragraph = 0
    while index < len(runs):
        while paragraph < len(breaks) and breaks[paragraph] < runs[index][0]:
            paragraph += 1
        other = partner[index]
        if other < 0 or (paragraph < len(breaks) and breaks[paragraph] < runs[other][0]):
            index += 1
            continue
        yield runs[index][0], runs[other][1]
        index = other + 1


def _without_markup(text: str, found: list[Found]) -> str:
    """Return the text with images, the links around them, tags, comments and fences as blanks, every offset where it was."""
    spans: list[Span] = [*_comments(text, 0)]
    for image in found:
        tail = _LINK_TAIL.match(text, image.end) if text[image.start - 1 : image.start] == "[" else None
        spans.append((image.start - 1, tail.end()) if tail else (image.start, image.end))
    spans += [match.span() for match in _TAG.finditer(text)]
    spans += [match.span() for match in _FENCE.finditer(text)]
    spans += [match.span() for match in _DEFINITION.finditer(text)]
    return _blanked(text, sorted(spans))


def _blanked(text: str, spans: list[Span]) -> str:
    """Return the text with these stretches as spaces, line ends kept; they are ordered and may overlap."""
    pieces: list[str] = []
    done = 0
    for start, end in spans:
        first = max(start, done)
        if first < end:
            pieces += [text[done:first], re.sub(r"[^\n]", " ", text[first:end])]
            done = end
    return "".join([*pieces, text[done:]])


def _plain(markup: str) -> str:
    return html.unescape(_ESCAPE.sub(r"\1", markup))


def _label(text: str) -> str:
    return " ".join(text.split()).casefold()
