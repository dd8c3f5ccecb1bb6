"""What kind of image some bytes are and how many pixels it claims, from the head of the file alone; refuses to decode a single pixel."""

from __future__ import annotations

import re
import struct

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
