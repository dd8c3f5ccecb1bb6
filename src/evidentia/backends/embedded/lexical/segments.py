"""The file format of a segment: named arrays behind one header, opened by memory map.

    bytes 0-7    b"EVIDSEG1"
    bytes 8-15   length of the header, unsigned little-endian
    header       canonical JSON: tokeniser, chunk_count, arrays {name: {dtype, count, offset}}
    arrays       little-endian, each at a multiple of 64 bytes from the start of the file

A segment never changes; its SHA-256 stands in the database and is covered by the commit record.
"""

from __future__ import annotations

import hashlib
import mmap
import os
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from evidentia.contracts.canonical import encode_record
from evidentia.contracts.decoding import decode_json
from evidentia.contracts.errors import BaseDamagedError
from evidentia.contracts.ids import CHUNK_HASH_DIGITS
from evidentia.foundation.disk import open_private
from evidentia.text.features import FEATURE_COUNT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

MAGIC = b"EVIDSEG1"
ALIGNMENT = 64
MARK_BYTES = CHUNK_HASH_DIGITS // 2
_PREFIX = 16
_READ_BYTES = 1 << 20

Array = NDArray[Any]  # the element type is the header's to say; callers know it by the array's name


class ArrayPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where an array lies in the file."""

    dtype: str
    count: int
    offset: int


class SegmentHeader(msgspec.Struct, frozen=True, kw_only=True):
    """What a segment holds."""

    tokeniser: str
    chunk_count: int
    arrays: dict[str, ArrayPlace]


def write_segment(path: Path, *, tokeniser: str, chunk_count: int, arrays: Mapping[str, Array]) -> bytes:
    """Write and sync a segment; return its SHA-256. A failure leaves no file behind."""
    return write_parts(path, _parts(tokeniser=tokeniser, chunk_count=chunk_count, arrays=arrays))


def write_parts(path: Path, parts: Iterable[bytes | memoryview]) -> bytes:
    """Write and sync a new file, a part at a time; return its SHA-256. A failure leaves no file behind."""
    digest = hashlib.sha256()
    try:
        with open_private(path, "xb") as file:
            for part in parts:
                file.write(part)
                digest.update(part)
            file.flush()
            os.fsync(file.fileno())  # before any transaction names the file: the database must never promise what the disk may lose
    except BaseException:
        with suppress(FileNotFoundError):
            path.unlink()
        raise
    return digest.digest()


def hash_file(path: Path) -> bytes:
    """Return the SHA-256 of a file without reading it into memory at once."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_READ_BYTES):
            digest.update(block)
    return digest.digest()


class Segment:
    """An open segment; arrays are views of the memory map and must not outlive it."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        try:
            with path.open("rb") as file:
                # Shared by every snapshot and thread: nobody writes to it, and it outlives the name that a collection removes.
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            self.header = self._read_header()
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            raise BaseDamagedError(f"segment '{path.name}'", f"cannot be opened ({error})") from error

    def array(self, name: str) -> Array:
        """Return an array by name, without copying it."""
        place = self.header.arrays.get(name)
        if place is None:
            raise BaseDamagedError(f"segment '{self.name}'", f"it has no array '{name}'")
        return np.frombuffer(self._map, dtype=place.dtype, count=place.count, offset=place.offset)

    def has(self, name: str) -> bool:
        """Tell whether the segment holds an array; older ones lack the later kinds."""
        return name in self.header.arrays

    def terms(self) -> list[str]:
        """Return the vocabulary in its stored order, which is that of the UTF-8 bytes."""
        blob = self.array("term_bytes").tobytes()
        offsets = self.array("term_offsets").tolist()
        return [blob[start:stop].decode() for start, stop in pairwise(offsets)]

    def features(self) -> NDArray[np.uint8]:
        """Return one row of features per chunk; segments from before there were any have none but zeros."""
        if not self.has("features"):
            return np.zeros((self.header.chunk_count, FEATURE_COUNT), dtype=np.uint8)
        return self.array("features").reshape(-1, FEATURE_COUNT)

    def marks(self) -> NDArray[np.uint8] | None:
        """Return one row of marks per chunk, or None when the segment has none."""
        return self.array("marks").reshape(-1, MARK_BYTES) if self.has("marks") else None

    def _read_header(self) -> SegmentHeader:
        if self._map[: len(MAGIC)] != MAGIC:
            problem = "it does not begin like a segment"
            raise ValueError(problem)
        length = int.from_bytes(self._map[8:_PREFIX], "little")
        return decode_json(self._map[_PREFIX : _PREFIX + length], SegmentHeader)


def _parts(*, tokeniser: str, chunk_count: int, arrays: Mapping[str, Array]) -> Iterator[bytes | memoryview]:
    stored = {name: np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")) for name, array in arrays.items()}
    header = _header(tokeniser=tokeniser, chunk_count=chunk_count, arrays=stored)
    yield MAGIC + len(header).to_bytes(8, "little") + header
    written = _PREFIX + len(header)
    for array in stored.values():
        yield bytes(-written % ALIGNMENT)
        written += -written % ALIGNMENT
        yield array.data.cast("B") if array.size else b""
        written += array.nbytes


def _header(*, tokeniser: str, chunk_count: int, arrays: Mapping[str, Array]) -> bytes:
    """Return the header; offsets depend on its own length, so it is padded to a fixed size first."""
    room = 512 + 96 * len(arrays) + len(tokeniser)
    offset = _PREFIX + room
    places: dict[str, dict[str, object]] = {}
    for name, array in arrays.items():
        offset += -offset % ALIGNMENT
        places[name] = {"count": int(array.size), "dtype": array.dtype.str, "offset": offset}
        offset += array.nbytes
    header = encode_record({"arrays": places, "chunk_count": chunk_count, "tokeniser": tokeniser})
    return header + b" " * (room - len(header))
