"""The bytes of a PDF's image as a file of its own: JPEG and JPEG 2000 as they are, packed pixels under the head of a PNG.

Refuses to interpret pixels: no colour is converted and nothing is drawn, so what would need either is left out.
"""

from __future__ import annotations

import re
import struct
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

from evidentia.ingest.readers.image_gathering import OmissionReason, is_tiny, jpeg_components

if TYPE_CHECKING:
    from evidentia.ingest.readers.limits import ReadLimits

LARGEST_PIXEL_BYTES = 128 * 1024 * 1024
MAX_FILTERS = 4
COMPRESSION = 3
"""Packing pixels again costs more time than everything else; a middle way between time and size."""
_GREY, _RGB, _PALETTE = 0, 2, 3
_CHANNELS = {_GREY: 1, _RGB: 3, _PALETTE: 1}
_DEPTHS = {_GREY: (1, 2, 4, 8, 16), _RGB: (8, 16), _PALETTE: (1, 2, 4, 8)}
_PNG_PREDICTORS = range(10, 16)
_PALETTE_ENTRY = 3
_LARGEST_PALETTE = 256
_PACKED = frozenset({"/FlateDecode", "/Fl"})
_WRITTEN = frozenset({"", "/ASCII85Decode", "/A85", "/ASCIIHexDecode", "/AHx"})
_WHOLE_FILES = frozenset({"/CCITTFaxDecode", "/CCF", "/DCTDecode", "/DCT", "/JPXDecode"})
_BASE_85_ZERO = ord("!") * (85**4 + 85**3 + 85**2 + 85 + 1)
_WHITE = re.compile(rb"\s+")


class _Pixels(NamedTuple):
    width: int
    height: int
    depth: int
    colour: int
    palette: bytes = b""

    @property
    def row_bytes(self) -> int:
        return (self.width * self.depth * _CHANNELS[self.colour] + 7) // 8


def image_file(stream: Any, limits: ReadLimits) -> bytes | OmissionReason:  # noqa: ANN401  # pypdf's objects are whatever the file says
    """Return an image of a PDF as the bytes of a file, or why it is left out; raises what broken objects make pypdf raise."""
    width, height = int(stream.get("/Width", 0)), int(stream.get("/Height", 0))
    if is_tiny((width, height)):
        return OmissionReason.TINY
    encoded = stream._data  # noqa: SLF001  # the public way decodes the picture
    if len(encoded) > limits.max_image_bytes * 2:
        return OmissionReason.LARGE
    if stream.get("/ImageMask") is not None and bool(stream["/ImageMask"]):
        return OmissionReason.COLOURS
    filters, settings = _filters(stream)
    for name in filters[:-1]:
        encoded = _unwrapped(name, encoded, limits.max_image_bytes * 2)
    last = filters[-1] if filters else ""
    if last in _WHOLE_FILES:
        return _whole_file(last, encoded, settings, height)
    pixels = _pixels(stream, width, height)
    if pixels is None or last not in _PACKED | _WRITTEN:
        return OmissionReason.COLOURS
    if last in _WRITTEN and last:
        encoded = _unwrapped(last, encoded, limits.max_image_bytes * 2)
    return OmissionReason.LARGE if pixels.row_bytes * height > LARGEST_PIXEL_BYTES else _png(pixels, encoded, last, settings)


def is_repacked(stream: Any) -> bool:  # noqa: ANN401  # as above
    """Tell whether an image's pixels have to be unpacked and packed again."""
    filters, settings = _filters(stream)
    return not (filters and filters[-1] in _WHOLE_FILES) and int(settings.get("/Predictor", 1)) not in _PNG_PREDICTORS


def _whole_file(last: str, encoded: bytes, settings: Any, height: int) -> bytes | OmissionReason:  # noqa: ANN401  # as above
    if last in {"/CCITTFaxDecode", "/CCF"}:
        from pypdf.filters import CCITTFaxDecode

        return CCITTFaxDecode.decode(encoded, settings or None, height)
    if last != "/JPXDecode" and jpeg_components(encoded) not in {1, 3}:
        return OmissionReason.COLOURS
    return bytes(encoded)


def _filters(stream: Any) -> tuple[list[str], Any]:  # noqa: ANN401  # as above
    named = stream.get("/Filter", [])
    filters = [str(name) for name in named] if isinstance(named, list) else [str(named)]
    if len(filters) > MAX_FILTERS:
        raise ValueError("more filters than any image has")
    settings = stream.get("/DecodeParms", None)
    if isinstance(settings, list):
        settings = settings[len(filters) - 1].get_object() if len(settings) == len(filters) else None
    return filters, settings if isinstance(settings, dict) else {}


def _unwrapped(name: str, encoded: bytes, limit: int) -> bytes:
    if name in {"/ASCII85Decode", "/A85"}:
        return _from_base_85(_WHITE.sub(b"", encoded).removeprefix(b"<~").partition(b"~>")[0])
    if name in {"/ASCIIHexDecode", "/AHx"}:
        body = _WHITE.sub(b"", encoded).partition(b">")[0]
        return bytes.fromhex((body + b"0" * (len(body) % 2)).decode("ascii"))
    if name in _PACKED:
        return zlib.decompressobj().decompress(encoded, limit)
    raise ValueError("a filter that is not read")


def _from_base_85(body: bytes) -> bytes:
    """Return what five characters for four bytes stand for; the standard library takes each character by itself, four times as slow."""
    body = body.replace(b"z", b"!!!!!")
    missing = -len(body) % 5
    body += b"u" * missing
    fives = zip(body[0::5], body[1::5], body[2::5], body[3::5], body[4::5], strict=True)
    values = [a * 85**4 + b * 85**3 + c * 85**2 + d * 85 + e - _BASE_85_ZERO for a, b, c, d, e in fives]
    plain = struct.pack(f">{len(values)}I", *values)
    return plain[: len(plain) - missing]


def _pixels(stream: Any, width: int, height: int) -> _Pixels | None:  # noqa: ANN401  # as above
    colour, palette = _colour(stream.get("/ColorSpace", None))
    depth = int(stream.get("/BitsPerComponent", 8))
    if colour is None or depth not in _DEPTHS[colour] or stream.get("/Decode", None) is not None:
        return None
    return _Pixels(width, height, depth, colour, palette)


def _colour(space: Any) -> tuple[int | None, bytes]:  # noqa: ANN401  # as above
    """Return the kind of colours in the words of PNG, and the palette; None for colours that PNG does not have."""
    kind = str(space[0] if isinstance(space, list) and space else space)
    if kind in {"/DeviceGray", "/CalGray", "/G"}:
        return _GREY, b""
    if kind in {"/DeviceRGB", "/CalRGB", "/RGB"}:
        return _RGB, b""
    if kind == "/ICCBased":
        return {1: _GREY, 3: _RGB}.get(int(space[1].get_object().get("/N", 0))), b""
    if kind in {"/Indexed", "/I"}:
        base, _ = _colour(space[1].get_object())
        table = space[3].get_object()
        entries = table.get_data() if hasattr(table, "get_data") else getattr(table, "original_bytes", table)
        return (_PALETTE, _palette(base, bytes(entries))) if base in {_GREY, _RGB} else (None, b"")
    return None, b""


def _palette(base: int | None, entries: bytes) -> bytes:
    if base == _GREY:
        entries = b"".join(bytes([grey]) * _PALETTE_ENTRY for grey in entries[:_LARGEST_PALETTE])
    whole = len(entries) // _PALETTE_ENTRY * _PALETTE_ENTRY
    return entries[: min(whole, _LARGEST_PALETTE * _PALETTE_ENTRY)]


def _png(pixels: _Pixels, encoded: bytes, last: str, settings: Any) -> bytes | OmissionReason:  # noqa: ANN401  # as above
    is_packed = last in _PACKED
    predictor = int(settings.get("/Predictor", 1)) if is_packed else 1
    if predictor in _PNG_PREDICTORS:
        # Such a stream is laid out as in a PNG already, row marks and all, so it is kept as it is.
        shape = (int(settings.get("/Colors", 1)), int(settings.get("/BitsPerComponent", 8)), int(settings.get("/Columns", 1)))
        packed = bytes(encoded) if shape == (_CHANNELS[pixels.colour], pixels.depth, pixels.width) else b""
    elif predictor == 1:
        packed = _repacked(pixels, _plain_rows(pixels, encoded, is_packed=is_packed))
    else:
        packed = b""
    if not packed or (pixels.colour == _PALETTE and not pixels.palette):
        return OmissionReason.COLOURS
    head = struct.pack(">IIBBBBB", pixels.width, pixels.height, pixels.depth, pixels.colour, 0, 0, 0)
    palette = _part(b"PLTE", pixels.palette) if pixels.palette else b""
    return b"\x89PNG\r\n\x1a\n" + _part(b"IHDR", head) + palette + _part(b"IDAT", packed) + _part(b"IEND", b"")


def _plain_rows(pixels: _Pixels, encoded: bytes, *, is_packed: bool) -> bytes:
    wanted = pixels.row_bytes * pixels.height
    return zlib.decompressobj().decompress(encoded, wanted) if is_packed else encoded[:wanted]


def _repacked(pixels: _Pixels, rows: bytes) -> bytes:
    """Return the rows packed as PNG wants them, a mark before each; empty when pixels are missing."""
    size = pixels.row_bytes
    if len(rows) < size * pixels.height:
        return b""
    return zlib.compress(b"".join(b"\0" + rows[start : start + size] for start in range(0, size * pixels.height, size)), COMPRESSION)


def _part(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
