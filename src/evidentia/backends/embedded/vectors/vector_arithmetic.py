"""Vectors in integers: how they are stored in two arrays, how near two are, and sums of products that every machine gets alike.

A query of unsigned bytes meets rows of signed bytes. onnxruntime's MatMulInteger does it with the processor's dot-product
instructions; numpy does it everywhere. Which of them works is found out once, by comparing with plain integers.
"""

from __future__ import annotations

import hashlib
import math
import threading
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.ids import Sha256
from evidentia.contracts.vectors import LARGEST_COMPONENT, VectorIdentity
from evidentia.contracts.vocabulary import Similarity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from evidentia.backends.embedded.lexical.segments import Array

    Multiply = Callable[[NDArray[np.uint8]], NDArray[np.int32]]
    """What multiplies a query with rows that it holds."""


FINE_LEVELS = 127
"""A query of 8 bits: -127 to 127, shifted to 0 to 254."""
COARSE_LEVELS = 63
"""A query of 7 bits, for processors that add pairs of products in 16 bits: 2 * 126 * 128 still fits."""
EXACT_FLOAT32 = 1 << 24
"""Sums of integers below this are exact in float32, in whatever order they are added."""
_LARGEST_BYTE = 128
_BLOCK = 8_192


class Kernel(Protocol):
    """Multiplies a query with rows that lie beside each other, dimension by dimension."""

    @property
    def levels(self) -> int:
        """Return the largest magnitude that a component of the query may have before it is shifted."""
        ...

    def multiply(self, query: NDArray[np.uint8], scan: NDArray[np.int8]) -> NDArray[np.int32]:
        """Return query (dimensions) times scan (dimensions by rows), exactly."""
        ...

    def packed(self, scan: NDArray[np.int8]) -> Multiply:
        """Return what multiplies queries with a copy of these rows, laid out in memory as it is read fastest."""
        ...


class NumpyKernel:
    """Implements `Kernel` in float32, a stretch of dimensions at a time, so short that every sum is exact."""

    levels = COARSE_LEVELS

    def multiply(self, query: NDArray[np.uint8], scan: NDArray[np.int8]) -> NDArray[np.int32]:
        """Return query times scan, exactly."""
        step = EXACT_FLOAT32 // (_LARGEST_BYTE * max(1, int(query.max(initial=0)))) - 1
        wide = query.astype(np.float32)
        totals = np.zeros(scan.shape[1], dtype=np.int32)
        for start in range(0, scan.shape[1], _BLOCK):
            for first in range(0, len(query), step):
                part = scan[first : first + step, start : start + _BLOCK].astype(np.float32)
                totals[start : start + _BLOCK] += (wide[first : first + step] @ part).astype(np.int32)
        return totals

    def packed(self, scan: NDArray[np.int8]) -> Multiply:
        """Return what multiplies queries with a copy of these rows: large pages are read faster than a file's."""
        return partial(self.multiply, scan=np.array(scan))


class OnnxKernel:
    """Implements `Kernel` by MatMulInteger. The query stands on the left: with the rows there it is many times slower."""

    def __init__(self, *, levels: int) -> None:
        self.levels = levels
        self._session = _session(multiplication_graph())

    def multiply(self, query: NDArray[np.uint8], scan: NDArray[np.int8]) -> NDArray[np.int32]:
        """Return query times scan, exactly."""
        product: NDArray[np.int32] = self._session.run(None, {"query": query[np.newaxis], "rows": scan})[0]
        sums: NDArray[np.int32] = product[0]
        return sums

    def packed(self, scan: NDArray[np.int8]) -> Multiply:
        """Return what multiplies queries with a copy of these rows; those of a model are laid out once, others in every multiplication."""
        return partial(_multiplied, _session(multiplication_graph(scan)))


class _Session(Protocol):
    """What onnxruntime makes of a model; the package says nothing of its types."""

    def run(self, _outputs: None, _given: dict[str, NDArray[np.uint8] | NDArray[np.int8]], /) -> list[NDArray[np.int32]]: ...


def _multiplied(session: _Session, query: NDArray[np.uint8]) -> NDArray[np.int32]:
    sums: NDArray[np.int32] = session.run(None, {"query": query[np.newaxis]})[0][0]
    return sums


def _session(model: bytes) -> _Session:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # there is one node
    options.enable_cpu_mem_arena = False  # every packed block has a session, and would keep an arena
    session: _Session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session


def best_kernel() -> Kernel:
    """Return the fastest kernel that is exact here; found out once."""
    with _lock:
        return _found_kernel()


def is_exact(kernel: Kernel) -> bool:
    """Compare a kernel with plain integers where its sums are largest, over odd shapes."""
    for dimension, rows in ((384, 100), (7, 33), (1, 1), (67, 1_025)):
        places = np.arange(dimension * rows, dtype=np.int64).reshape(dimension, rows)
        scan = (places * 7919 % 255 - 127).astype(np.int8)
        scan[:, 0], scan[:, -1] = 127, -127
        mixed = (np.arange(dimension) * 31 % (2 * kernel.levels + 1)).astype(np.uint8)
        packed = kernel.packed(scan)
        for query in (np.full(dimension, 2 * kernel.levels, dtype=np.uint8), mixed):
            exact = query.astype(np.int64) @ scan.astype(np.int64)
            if not all(np.array_equal(exact, sums) for sums in (kernel.multiply(query, scan), packed(query))):
                return False
    return True


def multiplication_graph(rows: NDArray[np.int8] | None = None) -> bytes:
    """Return the ONNX model rows * query, written by hand: its format is Protocol Buffers, and this is all of it.

    It holds the rows where they are given, else they are its second input.

    model  {1: ir_version, 7: graph, 8: {1: domain, 2: version}}
    graph  {1: node, 2: name, 5: rows, 11: input, 11: input, 12: output}
    node   {1: input, 1: input, 2: output, 4: op_type}
    rows   {1: dimensions, 1: rows, 2: element type, 8: name, 9: bytes}
    value  {1: name, 2: {1: {1: element type, 2: {1: {2: named dimension}, 1: {2: named dimension}}}}}
    """
    node = _text(1, "query") + _text(1, "rows") + _text(2, "sums") + _text(4, "MatMulInteger")
    graph = _bytes(1, node) + _text(2, "scan")
    graph += _bytes(11, _value("query", _UINT8, ("one", "dimension")))
    if rows is None:
        graph += _bytes(11, _value("rows", _INT8, ("dimension", "row")))
    else:
        shape = _number(1, rows.shape[0]) + _number(1, rows.shape[1])
        graph += _bytes(5, shape + _number(2, _INT8) + _text(8, "rows") + _bytes(9, rows.tobytes()))
    graph += _bytes(12, _value("sums", _INT32, ("one", "row")))
    return _number(1, 8) + _bytes(7, graph) + _bytes(8, _text(1, "") + _number(2, 10))


_UINT8, _INT8, _INT32 = 2, 3, 6
_lock = threading.Lock()


@cache
def _found_kernel() -> Kernel:
    try:
        from onnxruntime.capi import onnxruntime_pybind11_state as bindings
    except ImportError:
        return NumpyKernel()
    refusals = [kind for kind in vars(bindings).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    for levels in (FINE_LEVELS, COARSE_LEVELS):
        with suppress(*refusals):
            kernel = OnnxKernel(levels=levels)
            if is_exact(kernel):
                return kernel
    return NumpyKernel()


def _value(name: str, element: int, shape: tuple[str, ...]) -> bytes:
    dimensions = b"".join(_bytes(1, _text(2, each)) for each in shape)
    return _text(1, name) + _bytes(2, _bytes(1, _number(1, element) + _bytes(2, dimensions)))


def _number(field: int, value: int) -> bytes:
    return bytes([field << 3]) + _varint(value)


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _bytes(field: int, content: bytes) -> bytes:
    return bytes([field << 3 | 2]) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """Return a number seven bits at a time, the lowest first; all but the last byte say that there are more."""
    return bytes([value]) if value < _LARGEST_BYTE else bytes([value & 127 | 128]) + _varint(value >> 7)


# --- vector measure ---
# How near two vectors are, in integers: exact keys to compare, and the scores that a hit shows.
#
#     cosine, dot   key = q.v                               score = key at 2**-(2 * scale_bits)
#     euclidean     key = 2 q.v - v.v = q.q - distance**2   score = floor(2**44 / (1 + distance))
#
# Two distances may have one score; such rows tie and are ordered by their ids like any others.

EUCLIDEAN_SCORE_BITS = 44
EXACT_FLOAT64 = 1 << 53
"""Integers below this are exact in float64, and so is any sum whose parts and partial sums are."""
_EXTRA_BITS = 64


class SimilarityMeasure(NamedTuple):
    """A similarity at a scale."""

    similarity: Similarity
    scale_bits: int

    @property
    def is_distance(self) -> bool:
        """Tell whether the length of a row counts besides its product with the query."""
        return self.similarity is Similarity.EUCLIDEAN

    @property
    def gain(self) -> int:
        """Return how often the product counts in a key."""
        return 2 if self.is_distance else 1

    @property
    def score_bits(self) -> int:
        """Return how many bits of a score lie behind the point."""
        return EUCLIDEAN_SCORE_BITS if self.is_distance else 2 * self.scale_bits

    def keys(self, products: NDArray[np.int64], squares: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the keys of rows with these products and squared lengths."""
        return 2 * products - squares if self.is_distance else products

    def scores(self, keys: NDArray[np.int64], *, query_square: int) -> NDArray[np.int64]:
        """Return the scores of keys; a larger key never has a smaller score."""
        if not self.is_distance:
            return keys
        return np.asarray([nearness(query_square - key, bits=self.scale_bits) for key in keys.tolist()], dtype=np.int64)

    def tied_from(self, key: float, *, query_square: int) -> float:
        """Return the smallest key that has the same score as this one, or less."""
        if not self.is_distance:
            return key
        distance_square = max(0, query_square - math.floor(key))
        score = nearness(distance_square, bits=self.scale_bits)
        return query_square - farthest(score, bits=self.scale_bits)


def nearness(distance_square: int, *, bits: int) -> int:
    """Return floor(2**44 / (1 + d)), where d is the square root of `distance_square` at 2**-bits."""
    whole = 1 << (EUCLIDEAN_SCORE_BITS + bits)
    root = math.isqrt(distance_square << (2 * _EXTRA_BITS))
    score = (whole << _EXTRA_BITS) // ((1 << (bits + _EXTRA_BITS)) + root)
    while score * score * distance_square > (whole - (score << bits)) ** 2:  # the root was rounded down
        score -= 1
    return score


def farthest(score: int, *, bits: int) -> int:
    """Return the largest squared distance that still has this score."""
    whole = 1 << (EUCLIDEAN_SCORE_BITS + bits)
    left: int = (whole - (score << bits)) ** 2
    return left // (score * score)


# --- vector rows ---
# A vector as two arrays: its first bits, which are searched, and the rest, which makes it exact.
#
#     v = high * step + low       |high| <= 127, -step/2 <= low <= step/2
#
# with the smallest whole step per row for which this holds. Components are at most 2**22, so the step is at most 33,027 and `low` fits 16
# bits. Nothing is lost: `join` gives back every integer.

HIGHEST = 127
_MARK_BYTES = 8


class SplitRows(NamedTuple):
    """Rows of vectors in two parts."""

    high: NDArray[np.int8]
    low: NDArray[np.int16]
    steps: NDArray[np.uint16]

    def join(self) -> NDArray[np.int32]:
        """Return the rows as they were."""
        return self.high.astype(np.int32) * self.steps[:, np.newaxis].astype(np.int32) + self.low


def split(vectors: NDArray[np.int32]) -> SplitRows:
    """Split rows of vectors."""
    wide = vectors.astype(np.int64)
    largest = np.abs(wide).max(axis=1, initial=0)
    steps = np.maximum(1, -(-largest // HIGHEST))
    column = steps[:, np.newaxis]
    high = (wide + column // 2) // column
    low = wide - high * column
    return SplitRows(high.astype(np.int8), low.astype(np.int16), steps.astype(np.uint16))


def checked(vectors: Iterable[NDArray[np.int32]], *, identity: VectorIdentity) -> NDArray[np.int32]:
    """Return vectors as one array, refusing what the identity does not allow."""
    rows = [np.asarray(vector) for vector in vectors]
    for row in rows:
        if row.shape != (identity.dimension,) or row.dtype.kind != "i":
            raise InvalidFieldError("vector", f"it must hold {identity.dimension} integers, and has shape {row.shape} of {row.dtype}")
    stacked = np.stack(rows) if rows else np.empty((0, identity.dimension), dtype=np.int32)
    if stacked.size and int(max(stacked.max(), -int(stacked.min()))) > LARGEST_COMPONENT:
        raise InvalidFieldError("vector", f"a component is larger than {LARGEST_COMPONENT}; scale the encoder's output")
    return stacked.astype(np.int32)


def vector_hash(vector: NDArray[np.int32]) -> Sha256:
    """Return the hash by which a version knows a vector: over its little-endian 32-bit integers."""
    return Sha256(hashlib.sha256(vector.astype("<i4").tobytes()).hexdigest())


def content_mark(content_hash: bytes) -> int:
    """Return the beginning of a text's hash as the integer by which its vectors are found."""
    return int.from_bytes(content_hash[:_MARK_BYTES], "big", signed=True)


# --- top k ---
# The best of many scores, without sorting them all.


def best_of(scores: Array, limit: int) -> NDArray[np.int64]:
    """Return the indexes of the best `limit` scores and of everything that ties with the last of them, ascending."""
    if len(scores) <= limit:
        return np.arange(len(scores))
    return np.flatnonzero(scores >= nth_largest(scores, limit))


def nth_largest(values: Array, number: int) -> int | float:
    """Return the largest value that at least `number` of the values reach, as a plain number; there are as many."""
    cut = len(values) - number
    found: int | float = np.partition(values, cut)[cut].item()
    return found
