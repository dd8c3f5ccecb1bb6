"""Text, Markdown, source code, configuration, logs and comma-separated tables: the text is the decoded file, character for character.

Refuses to guess encodings: UTF-8, or UTF-16 that says so with a byte order mark.
"""

from __future__ import annotations

import codecs
import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from evidentia.contracts.errors import DocumentUnreadableError
from evidentia.contracts.ids import SemanticVersion, ToolId
from evidentia.contracts.layout import ExtractedImage, ExtractedText
from evidentia.contracts.ports import DocumentReader
from evidentia.ingest.readers.file_types import Family, ending_of
from evidentia.ingest.readers.image_gathering import ImageGatherer
from evidentia.ingest.readers.image_sources import HtmlImages, take_source
from evidentia.ingest.readers.limits import ReadLimits, text_too_long
from evidentia.ingest.readers.nearest_text import TextMap
from evidentia.ingest.reasons import NoteReason, SkipReason

if TYPE_CHECKING:
    from evidentia.contracts.tables import ExtractedTable


TOOL_ID = ToolId("evidentia-text")
TOOL_VERSION = SemanticVersion("1.0.0")

_MEDIA_TYPES = {
    ".csv": "text/csv",
    ".json": "application/json",
    ".rst": "text/x-rst",
    ".toml": "application/toml",
    ".tsv": "text/tab-separated-values",
    ".xml": "application/xml",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}
_FRONT_MATTER_FAMILIES = frozenset({Family.MARKDOWN, Family.TEXT})
_STRUCTURES = {Family.MARKDOWN: "markdown", Family.CODE: "code"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainReader(DocumentReader):
    """Reads files that are text already."""

    family: Family
    limits: ReadLimits = field(default_factory=ReadLimits)

    def read(self, content: bytes, *, name: str) -> ExtractedText:
        """Return the decoded file and what its front matter declares."""
        text, encoding = self._decoded(content)
        if len(text) > self.limits.max_text_chars:
            raise text_too_long(self.limits.max_text_chars)
        front = split_front_matter(text) if self.family in _FRONT_MATTER_FAMILIES else None
        gatherer = ImageGatherer(self.limits)
        body_start = front.body_start if front else 0
        images = place_images(text, gatherer, body_start=body_start) if self.family is Family.MARKDOWN else ()
        tables, table_notes = self._tables(text, name)
        return ExtractedText(
            text=text,
            media_type=self._media_type(name),
            method=f"decode_{encoding}",
            tool_id=TOOL_ID,
            tool_version=TOOL_VERSION,
            structure=_STRUCTURES.get(self.family, "text"),
            body_start=body_start,
            declared=front.declared if front else {},
            notes=(*(front.notes if front else ()), *gatherer.notes(), *table_notes),
            images=images,
            tables=tables,
        )

    def _tables(self, text: str, name: str) -> tuple[tuple[ExtractedTable, ...], tuple[str, ...]]:
        if self.family is not Family.TABLE:
            return (), ()
        from evidentia.ingest.readers.delimited import delimited_tables

        return delimited_tables(text, name=name)

    def _decoded(self, content: bytes) -> tuple[str, str]:
        if self.family is not Family.UNKNOWN:
            return decode(content)
        try:
            return decode(content)
        except DocumentUnreadableError as error:
            raise DocumentUnreadableError(SkipReason.UNSUPPORTED_TYPE, "is of no type that is read and not text either") from error

    def _media_type(self, name: str) -> str:
        if self.family is Family.MARKDOWN:
            return "text/markdown"
        return _MEDIA_TYPES.get(ending_of(name), "text/plain")


def decode(content: bytes) -> tuple[str, str]:
    """Return the text without its byte order mark and the name of the encoding, or refuse with the place that is wrong."""
    mark, encoding, label = _encoding_of(content)
    try:
        text = content[len(mark) :].decode(encoding)
    except UnicodeDecodeError as error:
        problem = f"is not {label} (first wrong byte at offset {len(mark) + error.start}); save it as UTF-8 and ingest it again"
        raise DocumentUnreadableError(SkipReason.BAD_ENCODING, problem) from error
    if (offset := text.find("\0")) >= 0:
        problem = f"holds a NUL character at character {offset}, so it is no text; remove it and ingest the file again"
        raise DocumentUnreadableError(SkipReason.NUL_BYTE, problem)
    return text, encoding.replace("-", "_")


def _encoding_of(content: bytes) -> tuple[bytes, str, str]:
    if content.startswith(codecs.BOM_UTF8):
        return codecs.BOM_UTF8, "utf-8", "UTF-8"
    if content.startswith(codecs.BOM_UTF16_LE):
        return codecs.BOM_UTF16_LE, "utf-16-le", "the UTF-16 its first bytes announce"
    if content.startswith(codecs.BOM_UTF16_BE):
        return codecs.BOM_UTF16_BE, "utf-16-be", "the UTF-16 its first bytes announce"
    return b"", "utf-8", "UTF-8"


# --- front matter ---
# The fenced block at the head of a text file in which it says things about itself.
#
# A small language on purpose: `key: value`, quoted strings, `[a, b]` and `- item` lists. What does not fit is not front matter but text;
# no YAML library means no anchors to unfold, no types to confuse and nothing to construct.

MAX_BLOCK_LENGTH = 16_384
MAX_VALUE_LENGTH = 1_000
MAX_KEYS = 64
MAX_LIST_ENTRIES = 64

_OPENING = re.compile(r"---[ \t]*\r?\n")
_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_KEY = re.compile(r"([A-Za-z_][A-Za-z0-9_.\-]{0,63})[ \t]*:(?:[ \t]+(.*))?\Z", re.DOTALL)
_LIST_ENTRY = re.compile(r"[ \t]*-[ \t]+(.*)\Z", re.DOTALL)
_ACCESS_CLAIM = re.compile(r"^[ \t]*[\"']?(?:acl|classification)[\"']?[ \t]*:", re.MULTILINE | re.IGNORECASE)

Declared = Mapping[str, str | tuple[str, ...]]


class FrontMatter(msgspec.Struct, frozen=True, kw_only=True):
    """What a text declares and where its body begins."""

    declared: Declared = msgspec.field(default_factory=dict)
    body_start: int = 0
    notes: tuple[str, ...] = ()


def split_front_matter(text: str) -> FrontMatter:
    """Return what the head of `text` declares; a block that cannot be understood is body, with a note.

    Raises:
        DocumentUnreadableError: The block cannot be understood but speaks of access; guessing might open what was closed.
    """
    opening = _OPENING.match(text)
    if opening is None:
        return FrontMatter()
    closing = _CLOSING.search(text, opening.end(), opening.end() + MAX_BLOCK_LENGTH)
    if closing is None:
        # A rule at the head of an ordinary text looks like this too, so it is no mistake worth a note.
        return FrontMatter()
    block = text[opening.end() : closing.start()]
    declared, problem = _parse(block)
    if not problem:
        return FrontMatter(declared=declared, body_start=closing.end())
    if _ACCESS_CLAIM.search(block):
        advice = f"has front matter that cannot be understood ({problem}) and limits access; correct it and ingest the file again"
        raise DocumentUnreadableError(SkipReason.BAD_CLAIM, advice)
    return FrontMatter(
        notes=(f"{NoteReason.FRONT_MATTER.value}: has front matter that cannot be understood ({problem}); it counts as text",)
    )


def _parse(block: str) -> tuple[dict[str, str | tuple[str, ...]], str]:
    """Return the declarations, and the first problem or an empty string."""
    declared: dict[str, str | tuple[str, ...]] = {}
    list_key = ""
    for number, line in enumerate(block.splitlines(), start=2):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        entry = _LIST_ENTRY.match(line)
        if entry is not None and list_key:
            declared[list_key] = _appended(declared[list_key], _unquoted(entry.group(1)))
            continue
        match = _KEY.match(line)
        if match is None:
            return {}, f"line {number} is not 'key: value'"
        key, value = match.group(1).lower(), (match.group(2) or "").strip()
        if key in declared:
            return {}, f"line {number} repeats '{key}'"
        if len(declared) >= MAX_KEYS:
            return {}, f"more than {MAX_KEYS} keys"
        declared[key] = _value(value)
        list_key = key if not value else ""
    return declared, ""


def _value(text: str) -> str | tuple[str, ...]:
    if text.startswith("[") and text.endswith("]"):
        entries = (_unquoted(entry) for entry in text[1:-1].split(",")[:MAX_LIST_ENTRIES])
        return tuple(entry for entry in entries if entry)
    return _unquoted(text)


def _appended(value: str | tuple[str, ...], entry: str) -> str | tuple[str, ...]:
    entries = value if isinstance(value, tuple) else ()
    return (*entries, entry) if entry and len(entries) < MAX_LIST_ENTRIES else entries


def _unquoted(text: str) -> str:
    value = text.strip()
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return (value[1:-1] if is_quoted else value.split(" #", 1)[0].rstrip())[:MAX_VALUE_LENGTH]


# --- markdown images ---
# The images a Markdown text shows: `![alt](path)`, `![alt][label]` and `<img>`; not those in code, which are examples.
#
# Refuses to change the text: images are found where they stand, and no offset moves.

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


class MarkdownImage(NamedTuple):
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


def find_images(text: str, *, body_start: int = 0) -> Iterator[MarkdownImage]:
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


def _image(match: re.Match[str], definitions: dict[str, str]) -> MarkdownImage | None:
    alt, bracketed, bare, label, tag = match.groups()
    if tag is not None:
        attributes: dict[str, str | None] = {}
        for attribute in _ATTRIBUTE.finditer(tag):
            attributes.setdefault(
                attribute.group(1).lower(), html.unescape(attribute.group(2) or attribute.group(3) or attribute.group(4) or "")
            )
        return MarkdownImage(match.start(), match.end(), attributes.get("src") or "", "", attributes)
    if bracketed is not None or bare is not None:
        return MarkdownImage(match.start(), match.end(), _plain(bracketed if bracketed is not None else bare), _plain(alt))
    source = definitions.get(_label(label or alt))
    return MarkdownImage(match.start(), match.end(), source, _plain(alt)) if source is not None else None


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


def _without_markup(text: str, found: list[MarkdownImage]) -> str:
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
