"""Where the bytes of an image come from: a part of the file, data inside an address, or a file next to the document.

Refuses to fetch: an address on the web is counted, and only its host is ever named.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes, urlsplit

from evidentia.ingest.readers.image_gathering import ImageGatherer, OmissionReason, Picture, is_tiny

if TYPE_CHECKING:
    from collections.abc import Mapping


MAX_REFERENCE_LENGTH = 1_000
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,31}:")
_DATA = re.compile(r"\s*data:[^,]{0,200},", re.IGNORECASE)


def take_related(gatherer: ImageGatherer, relations: object, relation_id: str, *, alt: str) -> Picture | None:
    """Take the image a relation of an Office file names, or count it as elsewhere or missing."""
    if not relation_id:
        return None
    relation = relations.get(relation_id)  # type: ignore[attr-defined]  # neither Office library has types
    if relation is None:
        gatherer.leave_out(OmissionReason.MISSING)
        return None
    if relation.is_external:
        gatherer.leave_out(OmissionReason.REMOTE, host=host_of(relation.target_ref))
        return None
    part = relation.target_part
    return gatherer.take(part.blob, name=str(part.partname), alt=alt)


def take_source(gatherer: ImageGatherer, source: str, *, alt: str) -> Picture | None:
    """Take what an image in a page or a Markdown text names: data inside it, or a file next to it."""
    if match := _DATA.match(source):
        return _inline(gatherer, source, match, alt=alt)
    reference = source.strip()
    if reference.startswith(("//", "\\\\")) or _SCHEME.match(reference):
        gatherer.leave_out(OmissionReason.REMOTE, host=host_of(reference))
        return None
    if not reference or reference.startswith("#") or len(reference) > MAX_REFERENCE_LENGTH:
        gatherer.leave_out(OmissionReason.MISSING)
        return None
    return gatherer.refer(reference, alt=alt)


def _inline(gatherer: ImageGatherer, source: str, match: re.Match[str], *, alt: str) -> Picture | None:
    if (len(source) - match.end()) * 3 // 4 > gatherer.limits.max_image_bytes:
        gatherer.leave_out(OmissionReason.LARGE)
        return None
    encoded = unquote_to_bytes(source[match.end() :])
    if ";base64" not in match.group().lower():
        return gatherer.take(encoded, alt=alt)
    try:
        return gatherer.take(base64.b64decode(encoded), alt=alt)
    except binascii.Error:
        gatherer.leave_out(OmissionReason.KIND)
        return None


def host_of(address: str) -> str:
    """Return the host of an address, empty when there is none; nothing else of an address is ever shown."""
    try:
        return urlsplit(address[:2_000]).hostname or ""
    except ValueError:
        return ""


# --- html images ---
# The images of a page while its text is written: inline data, files next to the page, and the captions of figures.
#
# Refuses to fetch: an address on the web is counted, and only its host is ever named. `srcset` and the attributes that scripts load
# images from are not looked at.

_NUMBER = re.compile(r"\s*([0-9]{1,6})\s*(?:px)?\s*\Z")


class HtmlImages:
    """Follows the entering and leaving of elements and knows where each image stands among the text."""

    TAGS = frozenset({"img", "figure", "figcaption"})

    def __init__(self, gatherer: ImageGatherer) -> None:
        self._gatherer = gatherer
        self._fresh: list[Picture] = []
        """Images after which nothing was written and no line was broken yet."""
        self._figures: list[list[Picture]] = []
        self._captions: list[tuple[int, int] | None] = []
        self._caption_start = 0

    def enter(self, tag: str, attributes: Mapping[str, str | None], *, offset: int, is_after_break: bool) -> None:
        """Take an image, or begin a figure or its caption, when `offset` characters have been written."""
        if tag == "figure":
            self._figures.append([])
            self._captions.append(None)
        elif tag == "figcaption":
            self._caption_start = offset
        elif (picture := self.taken(attributes)) is not None:
            picture.anchor, picture.gaps = offset, (int(is_after_break), 0)
            self._fresh.append(picture)
            if self._figures:
                self._figures[-1].append(picture)

    def leave(self, tag: str, *, offset: int) -> None:
        """End a figure or its caption; the caption belongs to every image of the figure."""
        if tag == "figcaption" and self._captions:
            self._captions[-1] = (self._caption_start, offset)
        elif tag == "figure" and self._figures:
            caption = self._captions.pop()
            for picture in self._figures.pop():
                picture.span = caption

    def broken(self) -> None:
        """Note that the next text begins a new line."""
        for picture in self._fresh:
            if picture.gaps is not None:
                picture.gaps = (picture.gaps[0], 1)
        self._fresh = []

    def written(self) -> None:
        """Note that text follows on the same line."""
        self._fresh = []

    def trim(self, text: str) -> None:
        """Take white space off the captions found, and forget the empty ones."""
        for picture in self._gatherer.pictures:
            if picture.span is not None:
                start, end = picture.span
                piece = text[start:end]
                start += len(piece) - len(piece.lstrip())
                picture.span = (start, start + len(piece.strip())) if piece.strip() else None

    def taken(self, attributes: Mapping[str, str | None]) -> Picture | None:
        """Take the image an `img` element names, unless its size says that nobody is meant to see it."""
        size = (_pixels(attributes.get("width")), _pixels(attributes.get("height")))
        if size[0] is not None and size[1] is not None and is_tiny((size[0], size[1])):
            self._gatherer.leave_out(OmissionReason.TINY)
            return None
        alt = attributes.get("alt") or attributes.get("title") or ""
        return take_source(self._gatherer, attributes.get("src") or "", alt=alt)


def _pixels(attribute: str | None) -> int | None:
    match = _NUMBER.match(attribute or "")
    return int(match.group(1)) if match else None
