"""Gathers the images of one document within limits, and says in one note what was left out and why.

Refuses to fetch anything, to render anything and to believe a name: what an image is, its bytes say.
"""

from __future__ import annotations

import hashlib
import re
import struct
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.layout import ExtractedImage
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


class OmissionReason(StrEnum):
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
        self.last_left_out = OmissionReason.KIND
        """Why the last image that was not kept was left out."""
        self._bytes_left = limits.max_images_bytes
        self._shared: dict[bytes, bytes] = {}
        self._seen: dict[bytes, int] = {}
        self._left_out: dict[OmissionReason, int] = {}
        self._hosts: list[str] = []

    def take(self, content: bytes, *, name: str = "", alt: str = "") -> Picture | None:
        """Take the bytes of an image; None when it is left out. The place is for the caller to fill in."""
        media_type = media_type_of(content)
        if media_type is None:
            self.leave_out(OmissionReason.KIND)
            return None
        if len(content) > self.limits.max_image_bytes:
            self.leave_out(OmissionReason.LARGE)
            return None
        if is_tiny(pixels_of(content, media_type)):
            self.leave_out(OmissionReason.TINY)
            return None
        key = hashlib.sha256(content).digest()
        is_new = key not in self._shared
        if len(self.pictures) >= self.limits.max_images or (is_new and len(content) > self._bytes_left):
            self.leave_out(OmissionReason.MANY)
            return None
        self._seen[key] = self._seen.get(key, 0) + 1
        if self._seen[key] > MAX_REPEATS:
            self.leave_out(OmissionReason.REPEATED)
            return None
        if is_new:
            self._bytes_left -= len(content)
        return self._kept(self._shared.setdefault(key, content), media_type, name=clean_name(name), alt=alt)

    def refer(self, reference: str, *, alt: str = "") -> Picture | None:
        """Take an image that is a file next to the document, by its path; the caller of the reader brings its bytes."""
        if len(self.pictures) >= self.limits.max_images:
            self.leave_out(OmissionReason.MANY)
            return None
        return self._kept(b"", "", name=reference, alt=alt)

    def leave_out(self, cause: OmissionReason, *, host: str = "") -> None:
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
        for cause in OmissionReason:
            if cause in self._left_out:
                hosts = ", ".join([*self._hosts[:MAX_HOSTS], *(["..."] if len(self._hosts) > MAX_HOSTS else [])])
                yield f"{self._left_out[cause]} {cause.value}" + (f" ({hosts})" if cause is OmissionReason.REMOTE and hosts else "")

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


# --- image types ---
# What kind of image some bytes are and how many pixels it claims, from the head of the file alone; refuses to decode a single pixel.

SVG = "image/svg+xml"
_SVG_WITHIN = 4_096
_MAX_SEGMENTS = 500
_MAX_TIFF_FIELDS = 200
_FIRST_TAG = re.compile(rb"<([A-Za-z_][A-Za-z0-9_.:-]*)")
_BMP_HEADERS = frozenset({12, 16, 40, 52, 56, 64, 108, 124})
_JPEG_FRAMES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_JPEG_BARE = frozenset({0x01, *range(0xD0, 0xD9)})
_TIFF_SIZES = {256: 0, 257: 1}
_TIFF_SHORT = 3
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"\0\0\0\x0cjP  \r\n\x87\n", "image/jp2"),
    (b"\xd7\xcd\xc6\x9a", "image/wmf"),
    (b"\x01\0\x09\0\0\x03", "image/wmf"),
)

Size = tuple[int, int]


def media_type_of(content: bytes) -> str | None:
    """Return the media type of an image that is kept, or None; the name of a file has no say in it."""
    for signature, media_type in _SIGNATURES:
        if content.startswith(signature):
            return media_type
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    if content[:4] == b"\x01\0\0\0" and content[40:44] == b" EMF":
        return "image/emf"
    if content[:2] == b"BM" and int.from_bytes(content[14:18], "little") in _BMP_HEADERS:
        return "image/bmp"
    return SVG if _is_svg(content[:_SVG_WITHIN]) else None


def pixels_of(content: bytes, media_type: str) -> Size | None:
    """Return the width and height the head claims, or None where it says nothing; vector images have none."""
    measure = {
        "image/png": _png_size,
        "image/jpeg": _jpeg_size,
        "image/gif": _gif_size,
        "image/webp": _webp_size,
        "image/bmp": _bmp_size,
        "image/tiff": _tiff_size,
    }.get(media_type)
    try:
        return measure(content) if measure else None
    except (struct.error, IndexError):
        return None


def jpeg_components(content: bytes) -> int:
    """Return how many colour components a JPEG has: 1 is grey, 3 is colour, 4 is for printing; 0 when it does not say."""
    frame = _jpeg_frame(content)
    return content[frame + 9] if 0 < frame < len(content) - 9 else 0


def _is_svg(head: bytes) -> bool:
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not start.startswith(b"<"):
        return False
    first = _FIRST_TAG.search(start)
    return first is not None and first.group(1).rpartition(b":")[2] == b"svg"


def _png_size(content: bytes) -> Size:
    width, height = struct.unpack_from(">II", content, 16)
    return width, height


def _gif_size(content: bytes) -> Size:
    width, height = struct.unpack_from("<HH", content, 6)
    return width, height


def _bmp_size(content: bytes) -> Size:
    (header,) = struct.unpack_from("<I", content, 14)
    width, height = struct.unpack_from("<HH" if header == min(_BMP_HEADERS) else "<ii", content, 18)
    return abs(width), abs(height)


def _webp_size(content: bytes) -> Size | None:
    kind = content[12:16]
    if kind == b"VP8X":
        return 1 + int.from_bytes(content[24:27], "little"), 1 + int.from_bytes(content[27:30], "little")
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", content, 21)
        return 1 + (bits & 0x3FFF), 1 + ((bits >> 14) & 0x3FFF)
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", content, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None


def _jpeg_size(content: bytes) -> Size | None:
    frame = _jpeg_frame(content)
    if not frame:
        return None
    height, width = struct.unpack_from(">HH", content, frame + 5)
    return width, height


def _jpeg_frame(content: bytes) -> int:
    """Return where the frame header begins, 0 when there is none within the first segments."""
    place = 2
    for _ in range(_MAX_SEGMENTS):
        if place + 4 > len(content) or content[place] != 0xFF:  # noqa: PLR2004  # the byte that begins every marker
            return 0
        marker = content[place + 1]
        if marker in _JPEG_FRAMES:
            return place
        if marker in _JPEG_BARE or marker == 0xFF:  # noqa: PLR2004  # as above
            place += 1 if marker == 0xFF else 2  # noqa: PLR2004  # as above
        else:
            place += 2 + int.from_bytes(content[place + 2 : place + 4], "big")
    return 0


def _tiff_size(content: bytes) -> Size | None:
    order = "<" if content[:2] == b"II" else ">"
    (directory,) = struct.unpack_from(f"{order}I", content, 4)
    (fields,) = struct.unpack_from(f"{order}H", content, directory)
    size = [0, 0]
    for number in range(min(fields, _MAX_TIFF_FIELDS)):
        place = directory + 2 + 12 * number
        tag, kind = struct.unpack_from(f"{order}HH", content, place)
        if tag in _TIFF_SIZES:
            (size[_TIFF_SIZES[tag]],) = struct.unpack_from(f"{order}H" if kind == _TIFF_SHORT else f"{order}I", content, place + 8)
    return (size[0], size[1]) if all(size) else None
