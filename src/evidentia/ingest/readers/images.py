"""Gathers the images of one document within limits, and says in one note what was left out and why.

Refuses to fetch anything, to render anything and to believe a name: what an image is, its bytes say.
"""

from __future__ import annotations

import hashlib
import re
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.layout import ExtractedImage
from evidentia.ingest.readers.image_types import media_type_of, pixels_of
from evidentia.ingest.reasons import NoteReason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evidentia.ingest.readers.limits import ReadLimits
    from evidentia.ingest.readers.nearest_text import Span

SMALLEST_PIXELS = 8
"""Smaller in width or height is a spacer, a bullet or a tracking pixel."""
MAX_REPEATS = 8
"""Occurrences of the same bytes in one document that are kept; more are a logo, not evidence."""
MAX_ALT_LENGTH = 500
MAX_NAME_LENGTH = 120
MAX_HOSTS = 3
_UNFIT = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]+|[ \t]{2,}")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:-]{0,63}")


class LeftOut(StrEnum):
    """Why an image of a document was not kept; the words of the note."""

    TINY = f"smaller than {SMALLEST_PIXELS} by {SMALLEST_PIXELS} pixels"
    KIND = "of a kind that is not kept"
    LARGE = "larger than an image may be"
    MANY = "beyond what one document may hold"
    REPEATED = f"seen more than {MAX_REPEATS} times"
    REMOTE = "elsewhere on the web"
    OUTSIDE = "named by a path that leaves the ingested directory"
    MISSING = "not found"
    COLOURS = "in a coding or colours that are not read"


class Picture(msgspec.Struct, kw_only=True):
    """An image on its way through a reader: its bytes or the reference to them, and where it stands."""

    content: bytes
    media_type: str
    name: str
    alt: str
    anchor: int = 0
    section: int = 0
    gaps: tuple[int, int] | None = None
    span: tuple[int, int] | None = None
    """The nearest text where the reader knows it already, such as the caption of a figure."""

    def placed(self, span: Span) -> ExtractedImage:
        """Return the image with its nearest text."""
        start, end = span
        return ExtractedImage(content=self.content, media_type=self.media_type, name=self.name, alt=self.alt, start=start, end=end)


class ImageGatherer:
    """Takes images one by one, keeps those within the limits in the order taken and counts the others."""

    def __init__(self, limits: ReadLimits) -> None:
        self.pictures: list[Picture] = []
        self.limits = limits
        self.last_left_out = LeftOut.KIND
        """Why the last image that was not kept was left out."""
        self._bytes_left = limits.max_images_bytes
        self._shared: dict[bytes, bytes] = {}
        self._seen: dict[bytes, int] = {}
        self._left_out: dict[LeftOut, int] = {}
        self._hosts: list[str] = []

    def take(self, content: bytes, *, name: str = "", alt: str = "") -> Picture | None:
        """Take the bytes of an image; None when it is left out. The place is for the caller to fill in."""
        media_type = media_type_of(content)
        if media_type is None:
            self.leave_out(LeftOut.KIND)
            return None
        if len(content) > self.limits.max_image_bytes:
            self.leave_out(LeftOut.LARGE)
            return None
        if is_tiny(pixels_of(content, media_type)):
            self.leave_out(LeftOut.TINY)
            return None
        key = hashlib.sha256(content).digest()
        is_new = key not in self._shared
        if len(self.pictures) >= self.limits.max_images or (is_new and len(content) > self._bytes_left):
            self.leave_out(LeftOut.MANY)
            return None
        self._seen[key] = self._seen.get(key, 0) + 1
        if self._seen[key] > MAX_REPEATS:
            self.leave_out(LeftOut.REPEATED)
            return None
        if is_new:
            self._bytes_left -= len(content)
        return self._kept(self._shared.setdefault(key, content), media_type, name=clean_name(name), alt=alt)

    def refer(self, reference: str, *, alt: str = "") -> Picture | None:
        """Take an image that is a file next to the document, by its path; the caller of the reader brings its bytes."""
        if len(self.pictures) >= self.limits.max_images:
            self.leave_out(LeftOut.MANY)
            return None
        return self._kept(b"", "", name=reference, alt=alt)

    def leave_out(self, cause: LeftOut, *, host: str = "") -> None:
        """Count an image that is not kept."""
        self.last_left_out = cause
        self._left_out[cause] = self._left_out.get(cause, 0) + 1
        match = _HOST.match(host)
        if match and len(self._hosts) <= MAX_HOSTS and match.group().lower() not in self._hosts:
            self._hosts.append(match.group().lower())

    def notes(self) -> tuple[str, ...]:
        """Return the note about what was left out; none when everything was kept."""
        if not self._left_out:
            return ()
        listed = ", ".join(self._counted())
        return (f"{NoteReason.IMAGES_LEFT_OUT.value}: has images that were left out: {listed}",)

    def _counted(self) -> Iterator[str]:
        for cause in LeftOut:
            if cause in self._left_out:
                hosts = ", ".join([*self._hosts[:MAX_HOSTS], *(["..."] if len(self._hosts) > MAX_HOSTS else [])])
                yield f"{self._left_out[cause]} {cause.value}" + (f" ({hosts})" if cause is LeftOut.REMOTE and hosts else "")

    def _kept(self, content: bytes, media_type: str, *, name: str, alt: str) -> Picture:
        picture = Picture(content=content, media_type=media_type, name=name, alt=clean(alt, MAX_ALT_LENGTH))
        self.pictures.append(picture)
        return picture


def is_tiny(size: tuple[int, int] | None) -> bool:
    """Tell whether an image of this size is too small to show anything."""
    return size is not None and min(size) < SMALLEST_PIXELS


def clean(text: str, longest: int) -> str:
    """Return one line of text without control characters, bounded; what it says is left as it is."""
    return _UNFIT.sub(" ", text[: 4 * longest]).strip()[:longest].rstrip()


def clean_name(name: str) -> str:
    """Return the last part of a path, fit to be shown."""
    return clean(name[-4 * MAX_NAME_LENGTH :].replace("\\", "/").rstrip("/").rpartition("/")[2], MAX_NAME_LENGTH)
