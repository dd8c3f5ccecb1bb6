"""A file of vectors: the container of `segments` with these arrays, rows in ascending order of their chunk keys.

    chunk_keys int64, added int64     per row: the chunk, and the commit that gave it the vector
    steps uint16, high int8, low int16  the vectors, row by row (`vector_arithmetic`)
    scan int8                         `high` once more, dimension by dimension: the order in which a search reads it
    sums, high_squares int32          per row: the sum and the sum of squares of `high`
    low_squares, squares int64        per row: the sums of squares of `low` and of the vector itself

The vectors take four bytes per component with `scan`, as much as float32 would. A file is written in stretches, so that
merging needs little memory, and never changes; its SHA-256 stands in the database and is covered by the commit record.
"""

from __future__ import annotations

import math
import threading
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from evidentia.backends.embedded.lexical.segments import ALIGNMENT, MAGIC, Array, Segment, write_parts
from evidentia.backends.embedded.vectors.vector_arithmetic import EXACT_FLOAT64, SplitRows, split
from evidentia.contracts.canonical import encode_record
from evidentia.contracts.decoding import json_decoder
from evidentia.contracts.vectors import VectorIdentity
from evidentia.foundation.disk import make_private_directory, sync_directory

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from evidentia.backends.embedded.vectors.vector_arithmetic import Kernel, Multiply
    from evidentia.contracts.ports import Entropy


VECTORS_NAME = "vectors"
"""The directory of a base's vector files."""
_PREFIX = 16
_HEADER_ROOM = 2_048
_STRETCH = 4_096
_PER_ROW = {
    "chunk_keys": "<i8", "added": "<i8", "steps": "<u2", "sums": "<i4", "high_squares": "<i4", "low_squares": "<i8", "squares": "<i8",
}  # fmt: skip
_PER_COMPONENT = {"high": "|i1", "low": "<i2", "scan": "|i1"}


class VectorFile:
    """An open file; its arrays are views of the memory map."""

    def __init__(self, path: Path) -> None:
        self._segment = Segment(path)
        self.name = path.name
        self.count = self._segment.header.chunk_count
        self.chunk_keys: NDArray[np.int64] = self._segment.array("chunk_keys")
        self.added: NDArray[np.int64] = self._segment.array("added")
        self.steps: NDArray[np.uint16] = self._segment.array("steps")
        self.high: NDArray[np.int8] = self._segment.array("high").reshape(self.count, -1)
        self.low: NDArray[np.int16] = self._segment.array("low").reshape(self.count, -1)
        self.scan: NDArray[np.int8] = self._segment.array("scan").reshape(-1, self.count)
        self.sums: NDArray[np.int32] = self._segment.array("sums")
        self.high_squares: NDArray[np.int32] = self._segment.array("high_squares")
        self.low_squares: NDArray[np.int64] = self._segment.array("low_squares")
        self.squares: NDArray[np.int64] = self._segment.array("squares")

    @property
    def dimension(self) -> int:
        """Return how many components a row has."""
        return int(self.high.shape[1])

    def rows(self, ordinals: NDArray[np.int64] | slice) -> SplitRows:
        """Return some of the rows."""
        return SplitRows(self.high[ordinals], self.low[ordinals], self.steps[ordinals])

    def stretches(self) -> Iterator[slice]:
        """Yield the file in stretches that fit into little memory."""
        for start in range(0, self.count, _STRETCH):
            yield slice(start, min(start + _STRETCH, self.count))


class FileRows(NamedTuple):
    """What a new file takes from an old one: the rows with these ordinals, ascending."""

    file: VectorFile
    ordinals: NDArray[np.int64]


class WrittenFile(NamedTuple):
    """A file that is durable."""

    path: Path
    file_hash: bytes
    byte_count: int
    rows: int


def write_vectors(path: Path, vectors: NDArray[np.int32], *, chunk_keys: NDArray[np.int64], sequence: int) -> WrittenFile:
    """Write and sync a file of new vectors, whose chunk keys ascend."""
    rows = split(vectors)
    high, low = rows.high.astype(np.int64), rows.low.astype(np.int64)
    arrays: dict[str, Array] = {
        "chunk_keys": chunk_keys,
        "added": np.full(len(vectors), sequence, dtype=np.int64),
        "steps": rows.steps,
        "sums": high.sum(axis=1),
        "high_squares": (high * high).sum(axis=1),
        "low_squares": (low * low).sum(axis=1),
        "squares": (vectors.astype(np.int64) ** 2).sum(axis=1),
        "high": rows.high,
        "low": rows.low,
        "scan": rows.high.T,
    }
    return _write(path, arrays=arrays, parts=None, count=len(vectors), dimension=vectors.shape[1])


def write_merged(path: Path, parts: Sequence[FileRows]) -> WrittenFile:
    """Write and sync a file with rows of others, in order of their chunk keys."""
    keys = np.concatenate([part.file.chunk_keys[part.ordinals] for part in parts])
    merged = _Merged(parts, np.argsort(keys, kind="stable"))
    return _write(path, arrays=None, parts=merged, count=len(keys), dimension=parts[0].file.dimension)


class _Merged:
    """Rows of several files in one order; `order` says which of the rows, one file after the other, comes where."""

    def __init__(self, parts: Sequence[FileRows], order: NDArray[np.int64]) -> None:
        self._parts = parts
        self._order = order
        self._firsts = np.cumsum([0, *(len(part.ordinals) for part in parts)])

    def stretches(self, name: str) -> Iterator[Array]:
        """Yield an array of the merged file, a stretch at a time."""
        if name == "scan":
            for dimension in range(self._parts[0].file.dimension):
                yield np.concatenate([part.file.scan[dimension][part.ordinals] for part in self._parts])[self._order]
            return
        for start in range(0, len(self._order), _STRETCH):
            yield self._gathered(name, self._order[start : start + _STRETCH])

    def _gathered(self, name: str, numbers: NDArray[np.int64]) -> Array:
        first: Array = getattr(self._parts[0].file, name)
        taken = np.empty((len(numbers), *first.shape[1:]), dtype=first.dtype)
        for part, begin, end in zip(self._parts, self._firsts[:-1].tolist(), self._firsts[1:].tolist(), strict=True):
            is_here = (numbers >= begin) & (numbers < end)
            if is_here.any():
                taken[is_here] = getattr(part.file, name)[part.ordinals[numbers[is_here] - begin]]
        return taken


def _write(path: Path, *, arrays: dict[str, Array] | None, parts: _Merged | None, count: int, dimension: int) -> WrittenFile:
    file_hash = write_parts(path, _pieces(arrays=arrays, parts=parts, count=count, dimension=dimension))
    return WrittenFile(path, file_hash, path.stat().st_size, count)


def _pieces(*, arrays: dict[str, Array] | None, parts: _Merged | None, count: int, dimension: int) -> Iterator[bytes]:
    header, places = _header(count=count, dimension=dimension)
    yield MAGIC + len(header).to_bytes(8, "little") + header
    written = _PREFIX + len(header)
    for name, (dtype, offset) in places.items():
        yield bytes(offset - written)
        written = offset
        whole = [arrays[name]] if arrays is not None else []
        for stretch in parts.stretches(name) if parts is not None else whole:
            piece = np.ascontiguousarray(stretch, dtype=dtype).tobytes()
            written += len(piece)
            yield piece


def _header(*, count: int, dimension: int) -> tuple[bytes, dict[str, tuple[str, int]]]:
    """Return the header, padded to a fixed size, and where each array begins."""
    offset = _PREFIX + _HEADER_ROOM
    places: dict[str, tuple[str, int]] = {}
    described: dict[str, dict[str, object]] = {}
    sizes = [(name, dtype, count) for name, dtype in _PER_ROW.items()]
    sizes += [(name, dtype, count * dimension) for name, dtype in _PER_COMPONENT.items()]
    for name, dtype, size in sizes:
        offset += -offset % ALIGNMENT
        places[name] = (dtype, offset)
        described[name] = {"count": size, "dtype": dtype, "offset": offset}
        offset += size * np.dtype(dtype).itemsize
    header = encode_record({"arrays": described, "chunk_count": count, "tokeniser": ""})
    return header + b" " * (_HEADER_ROOM - len(header)), places


# --- vector files ---
# The vector files that a base names: opening each once, adding one, and removing what nobody names.


class OpenFile:
    """An open file, and what searching needs of it from the first search on."""

    def __init__(self, path: Path) -> None:
        self.file = VectorFile(path)

    @cached_property
    def scanned(self) -> ScanRows:
        """Return what searching needs besides the arrays."""
        return ScanRows(self.file)


decode_identity: Final = json_decoder(VectorIdentity)
PERIOD: Final = """SELECT r.sequence, r.space_key, s.identity, r.set_state FROM vector_reigns r JOIN vector_spaces s USING (space_key)
    WHERE r.sequence <= ? ORDER BY r.sequence DESC LIMIT 1"""
"""The space that is in force in a version, with the commit it began with and its sum."""


def space_at(database: sqlite3.Connection, sequence: int) -> tuple[int, VectorIdentity] | None:
    """Return the space that is in force in a version."""
    row = database.execute(PERIOD, (sequence,)).fetchone()
    return None if row is None else (row[1], decode_identity(row[2]))


class OpenFiles:
    """Keeps open what somebody uses; a file never changes, so one map serves every version. Thread safe."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory / VECTORS_NAME
        self._open: WeakValueDictionary[str, OpenFile] = WeakValueDictionary()
        self._lock = threading.Lock()

    def of_space(self, database: sqlite3.Connection, space_key: int) -> list[OpenFile]:
        """Open the files that are named now; a caller whom a collection may overtake looks again."""
        statement = "SELECT name FROM vector_files WHERE space_key = ? ORDER BY file_key"
        return [self._get(name) for (name,) in database.execute(statement, (space_key,)).fetchall()]

    def _get(self, name: str) -> OpenFile:
        with self._lock:  # or two snapshots that open at once would map, and lay out, one file twice
            kept = self._open.get(name)
            if kept is None:
                kept = self._open[name] = OpenFile(self._directory / name)
            return kept


def new_path(directory: Path, *, kind: str, entropy: Entropy) -> Path:
    """Return where a new file goes, and make sure that there is such a place."""
    folder = directory / VECTORS_NAME
    if not folder.is_dir():
        make_private_directory(folder)
        sync_directory(directory)
    return folder / f"{kind}-{entropy.take(4).hex()}.vec"


def insert_file(database: sqlite3.Connection, written: WrittenFile, *, space_key: int) -> None:
    """Name a durable file in the transaction that is open."""
    (highest,) = database.execute("SELECT coalesce(max(file_key), 0) FROM vector_files").fetchone()
    row = (highest + 1, space_key, written.path.name, written.file_hash, written.byte_count, written.rows)
    database.execute("INSERT INTO vector_files VALUES (?, ?, ?, ?, ?, ?)", row)


def remove_unnamed_files(database: sqlite3.Connection, directory: Path) -> None:
    """Delete what a writer that died left behind; only the holder of the lock may."""
    named = {name for (name,) in database.execute("SELECT name FROM vector_files")}
    for path in (directory / VECTORS_NAME).glob("*.vec"):
        if path.name not in named:
            path.unlink()


# --- vector scan rows ---
# One file's rows as a search needs them: lengths for the bound of the scan, and three ways to multiply.

TYPICAL_SHARE = 999
"""The bound that is used for all rows at once holds for this many in a thousand; the others are looked at one by one."""
PACKED_ROWS = 1 << 13
"""So many rows are copied into memory at a time, which takes a request some 13 ms with 384 dimensions."""
_SAFETY = 1 + 1e-6
_BLOCK = 2_048


class ScanRows:
    """What a search needs of one file besides its arrays; made once, kept in memory: 20 bytes a row."""

    def __init__(self, file: VectorFile) -> None:
        self.file = file
        self.units: NDArray[np.float32] = file.steps.astype(np.float32)
        self.reach = _rounded_up(np.sqrt(file.high_squares.astype(np.float64)) * self.units.astype(np.float64))
        self.slack = _rounded_up(np.sqrt(file.low_squares.astype(np.float64)))
        self.typical_reach = _typical(self.reach)
        self.typical_slack = _typical(self.slack)
        self.unusual = np.flatnonzero((self.reach > self.typical_reach) | (self.slack > self.typical_slack))
        self.largest_square = int(file.squares.max(initial=0))
        self.largest_reach = float(self.reach.max(initial=0))
        self._longest = math.sqrt(self.largest_square) + float(self.slack.max(initial=0))
        self._offsets: tuple[int, NDArray[np.int32]] | None = None
        self._packed: list[Multiply] = []
        self._packed_by: Kernel | None = None
        self._packing = threading.Lock()

    def multiply(self, query: NDArray[np.uint8], kernel: Kernel) -> NDArray[np.int32]:
        """Return a query times the rows, exactly: by the copy in memory once all of it is there."""
        if kernel is not self._packed_by or len(self._packed) * PACKED_ROWS < self.file.count:
            return kernel.multiply(query, self.file.scan)
        return np.concatenate([block(query) for block in self._packed])

    def pack(self, kernel: Kernel) -> bool:
        """Copy the next rows of what is scanned into memory, and tell whether there were any."""
        if not self._packing.acquire(blocking=False):  # one of the threads that search is enough
            return True
        try:
            start = len(self._packed) * PACKED_ROWS
            if start >= self.file.count or kernel is not (self._packed_by or kernel):
                return False
            self._packed.append(kernel.packed(self.file.scan[:, start : start + PACKED_ROWS]))
            self._packed_by = kernel
            return True
        finally:
            self._packing.release()

    def offsets(self, levels: int) -> NDArray[np.int32]:
        """Return what a query shifted by `levels` adds to each row's sum."""
        if self._offsets is None or self._offsets[0] != levels:
            self._offsets = (levels, self.file.sums * np.int32(levels))
        return self._offsets[1]

    @cached_property
    def squares(self) -> NDArray[np.float32]:
        """Return the squared lengths of the rows, nearly."""
        return self.file.squares.astype(np.float32)

    def products(self, ordinals: NDArray[np.int64], query: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the exact products of a query with rows."""
        # Then every partial sum over h or l is below that too, in any order.
        is_small = math.sqrt(int(query @ query)) * self._longest * _SAFETY < EXACT_FLOAT64
        found = np.empty(len(ordinals), dtype=np.int64)
        for start in range(0, len(ordinals), _BLOCK):
            some = ordinals[start : start + _BLOCK]
            found[start : start + _BLOCK] = self._in_float64(some, query) if is_small else self._in_int64(some, query)
        return found

    def near_products(self, ordinals: NDArray[np.int64], query: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the products of a query with the first bits of rows, nearly."""
        found = np.empty(len(ordinals), dtype=np.float32)
        for start in range(0, len(ordinals), _BLOCK):
            some = ordinals[start : start + _BLOCK]
            found[start : start + _BLOCK] = self.file.high.take(some, axis=0).astype(np.float32) @ query
        return found * self.units[ordinals]

    def _in_float64(self, ordinals: NDArray[np.int64], query: NDArray[np.int64]) -> NDArray[np.int64]:
        """Multiply where every product and every sum is a whole number that float64 can hold."""
        wide = query.astype(np.float64)
        by_high = (self.file.high.take(ordinals, axis=0).astype(np.float64) @ wide).astype(np.int64)
        by_low = (self.file.low.take(ordinals, axis=0).astype(np.float64) @ wide).astype(np.int64)
        return by_high * self.file.steps[ordinals].astype(np.int64) + by_low

    def _in_int64(self, ordinals: NDArray[np.int64], query: NDArray[np.int64]) -> NDArray[np.int64]:
        products: NDArray[np.int64] = (self.file.rows(ordinals).join().astype(np.int64) * query).sum(axis=1)
        return products


def _typical(values: NDArray[np.float32]) -> float:
    cut = len(values) * TYPICAL_SHARE // 1000
    return float(np.partition(values, min(cut, len(values) - 1))[min(cut, len(values) - 1)]) if len(values) else 0.0


def _rounded_up(values: NDArray[np.float64]) -> NDArray[np.float32]:
    return np.nextafter(values.astype(np.float32), np.float32(np.inf))
