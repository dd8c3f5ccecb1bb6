"""HTML: the text a person would see, headings as Markdown, the images in it, and what the head says about the page.

Refuses scripts, styles, comments and what is marked as hidden, which is where text meant only for machines likes to sit.
"""

from __future__ import annotations

import importlib.metadata
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evidentia.contracts.errors import DocumentUnreadableError
from evidentia.contracts.ids import SemanticVersion, ToolId
from evidentia.contracts.layout import ExtractedText
from evidentia.contracts.ports import DocumentReader
from evidentia.ingest.readers.image_gathering import ImageGatherer
from evidentia.ingest.readers.image_sources import HtmlImages
from evidentia.ingest.readers.limits import ReadLimits, TextGatherer
from evidentia.ingest.readers.nearest_text import TextMap
from evidentia.ingest.readers.plain import decode
from evidentia.ingest.reasons import SkipReason

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

TOOL_ID = ToolId("selectolax")

_DROPPED = frozenset(
    ["head", "script", "style", "noscript", "template", "svg", "math", "iframe", "object", "canvas", "audio", "video", "select", "textarea"]
)
_BLOCKS = frozenset(
    [
        *("address", "article", "aside", "blockquote", "body", "caption", "dd", "details", "dialog", "div", "dl", "dt", "fieldset"),
        *("figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "html", "legend", "li", "main"),
        *("nav", "ol", "p", "pre", "section", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul"),
    ]
)
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_PARAGRAPHS = frozenset(["p", "pre", "blockquote", "table", "ul", "ol", "dl", *_HEADINGS])
_CELLS = frozenset(["td", "th"])
_HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_SPACE = re.compile(r"[ \t\r\n\f]+")
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9-]*)")
_NEVER_DEEP = frozenset(
    [
        *("a", "area", "base", "br", "col", "dd", "dt", "embed", "hr", "img", "input", "li", "link", "meta", "optgroup", "option"),
        *("p", "param", "source", "tbody", "td", "tfoot", "th", "thead", "tr", "track", "wbr"),
    ]
)
"""Void elements, and those that close themselves when the next one opens."""
_META = {
    "author": "author",
    "article:author": "author",
    "date": "created",
    "dcterms.created": "created",
    "article:published_time": "created",
    "dcterms.modified": "updated",
    "last-modified": "updated",
    "article:modified_time": "updated",
    "keywords": "tags",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HtmlReader(DocumentReader):
    """Reads HTML pages."""

    limits: ReadLimits = field(default_factory=ReadLimits)

    def read(self, content: bytes, *, name: str) -> ExtractedText:  # noqa: ARG002  # the port's signature
        """Return the visible text and the declared title, author, dates, tags and language."""
        markup, _ = decode(content)
        _check_depth(markup, limit=self.limits.max_depth)
        page = _parsed(markup)
        images = ImageGatherer(self.limits)
        text = _visible_text(page, self.limits, HtmlImages(images))
        nearest = TextMap(text)
        return ExtractedText(
            text=text,
            media_type="text/html",
            method="html_visible_text",
            tool_id=TOOL_ID,
            tool_version=SemanticVersion(importlib.metadata.version("selectolax")),
            structure="markdown",
            declared=_declared(page),
            notes=images.notes(),
            images=tuple(one.placed(one.span or nearest.nearest(one.anchor, gaps=one.gaps)) for one in images.pictures),
        )


def _parsed(markup: str) -> LexborHTMLParser:
    from selectolax.lexbor import LexborHTMLParser, SelectolaxError

    try:
        return LexborHTMLParser(markup)
    except SelectolaxError as error:
        raise MemoryError from error  # HTML has no wrong syntax, so this is the only way in which its parser can fail


def _check_depth(markup: str, *, limit: int) -> None:
    """Refuse markup with more elements open at once than any page has; an estimate from the tags, never too low by much."""
    open_tags: Counter[str] = Counter()
    depth = 0
    for match in _TAG.finditer(markup):
        tag = match.group(2).lower()
        if tag in _NEVER_DEEP:
            continue
        if not match.group(1):
            open_tags[tag] += 1
            depth += 1
        elif open_tags[tag]:
            open_tags[tag] -= 1
            depth -= 1
        if depth > limit:
            problem = f"nests more than {limit} elements in each other; flatten it or save it as text"
            raise DocumentUnreadableError(SkipReason.NESTED_TOO_DEEP, problem)


def _visible_text(page: LexborHTMLParser, limits: ReadLimits, images: HtmlImages) -> str:
    """Walk the tree without recursion, opening and closing blocks with line breaks."""
    writer = _Writer(limits, images)
    node: LexborNode | None = page.root
    while node is not None:
        entered = writer.enter(node)
        below = node.child if entered else None
        if below is not None:
            node = below
            continue
        while node is not None:
            if entered:
                writer.leave(node)
            entered = True
            if node.next is not None:
                node = node.next
                break
            node = node.parent
    return writer.text()


class _Writer:
    """Turns the entering and leaving of elements into text with one blank line between paragraphs."""

    def __init__(self, limits: ReadLimits, images: HtmlImages) -> None:
        self._gatherer = TextGatherer(limits)
        self._images = images
        self._breaks = 0
        self._has_text = False
        self._needs_space = False
        self._preformatted = 0

    def enter(self, node: LexborNode) -> bool:
        """Write what stands before or instead of the node's content; False leaves the content out."""
        tag = node.tag or ""
        if tag == "-text":
            self._write(node.text_content or "")
            return True
        if tag.startswith("-") or tag in _DROPPED or _is_hidden(node):
            return False
        if tag in HtmlImages.TAGS:
            self._images.enter(tag, node.attributes, offset=self._gatherer.length, is_after_break=self._breaks > 0 or not self._has_text)
        if tag == "br":
            self._break(1)
        elif tag in _BLOCKS:
            self._break(2 if tag in _PARAGRAPHS else 1)
        if tag in _HEADINGS:
            self._write_raw(_HEADINGS[tag])
        elif tag == "li":
            self._write_raw("- ")
        self._preformatted += tag == "pre"
        return True

    def leave(self, node: LexborNode) -> None:
        """Write what stands after the node's content."""
        tag = node.tag or ""
        if tag in _BLOCKS:
            self._break(2 if tag in _PARAGRAPHS else 1)
        elif tag in _CELLS and node.next is not None:
            self._write_raw(" | ")
        if tag in HtmlImages.TAGS:
            self._images.leave(tag, offset=self._gatherer.length)
        self._preformatted -= tag == "pre"

    def text(self) -> str:
        """Return everything written."""
        text = self._gatherer.joined()
        self._images.trim(text)
        return text

    def _break(self, lines: int) -> None:
        self._breaks = max(self._breaks, lines)
        self._needs_space = False
        self._images.broken()

    def _write(self, text: str) -> None:
        if self._preformatted:
            self._write_raw(text)
            return
        words = _SPACE.sub(" ", text)
        if words == " ":
            self._needs_space = True
        elif words:
            self._needs_space |= words.startswith(" ")
            self._write_raw(words.strip(" "))
            self._needs_space = words.endswith(" ")

    def _write_raw(self, text: str) -> None:
        if self._has_text:
            self._gatherer.add("\n" * self._breaks or (" " if self._needs_space else ""))
        self._breaks, self._needs_space, self._has_text = 0, False, True
        self._images.written()
        self._gatherer.add(text)


def _is_hidden(node: LexborNode) -> bool:
    attributes = node.attributes
    return "hidden" in attributes or bool(_HIDDEN_STYLE.search(attributes.get("style") or ""))


def _declared(page: LexborHTMLParser) -> dict[str, str | tuple[str, ...]]:
    declared: dict[str, str | tuple[str, ...]] = {}
    title = page.css_first("head > title")
    if title is not None and (text := _SPACE.sub(" ", title.text()).strip()):
        declared["title"] = text
    root = page.css_first("html")
    if root is not None and (language := root.attributes.get("lang")):
        declared["language"] = language
    for meta in page.css("head > meta"):
        key = _META.get((meta.attributes.get("name") or meta.attributes.get("property") or "").strip().lower())
        value = (meta.attributes.get("content") or "").strip()
        if key and value and key not in declared:
            declared[key] = tuple(tag.strip() for tag in value.split(",")) if key == "tags" else value
    return declared
