"""Sums of products of small integers, as fast as the machine allows and exactly the same on every machine.

A query of unsigned bytes meets rows of signed bytes. onnxruntime's MatMulInteger does it with the processor's dot-product
instructions; numpy does it everywhere. Which of them works is found out once, by comparing with plain integers.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

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


class OnnxKernel:
    """Implements `Kernel` by MatMulInteger. The query stands on the left: with the rows there it is many times slower."""

    def __init__(self, *, levels: int) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        self.levels = levels
        self._session: Any = onnxruntime.InferenceSession(  # the package says nothing of its types
            multiplication_graph(), options, providers=["CPUExecutionProvider"]
        )

    def multiply(self, query: NDArray[np.uint8], scan: NDArray[np.int8]) -> NDArray[np.int32]:
        """Return query times scan, exactly."""
        product: NDArray[np.int32] = self._session.run(None, {"query": query[np.newaxis], "rows": scan})[0]
        sums: NDArray[np.int32] = product[0]
        return sums


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
        for query in (np.full(dimension, 2 * kernel.levels, dtype=np.uint8), mixed):
            if not np.array_equal(query.astype(np.int64) @ scan.astype(np.int64), kernel.multiply(query, scan)):
                return False
    return True


def multiplication_graph() -> bytes:
    """Return the ONNX model rows * query, written by hand: its format is Protocol Buffers, and this is all of it.

    model  {1: ir_version, 7: graph, 8: {1: domain, 2: version}}
    graph  {1: node, 2: name, 11: input, 11: input, 12: output}
    node   {1: input, 1: input, 2: output, 4: op_type}
    value  {1: name, 2: {1: {1: element type, 2: {1: {2: named dimension}, 1: {2: named dimension}}}}}
    """
    node = _text(1, "query") + _text(1, "rows") + _text(2, "sums") + _text(4, "MatMulInteger")
    graph = _bytes(1, node) + _text(2, "scan")
    graph += _bytes(11, _value("query", _UINT8, ("one", "dimension"))) + _bytes(11, _value("rows", _INT8, ("dimension", "row")))
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
    return bytes([field << 3, value])  # everything here is below 128, which takes one byte


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _bytes(field: int, content: bytes) -> bytes:
    length = len(content)
    prefix = bytes([length]) if length < _LARGEST_BYTE else bytes([length & 127 | 128, length >> 7])
    return bytes([field << 3 | 2]) + prefix + content
