"""Approximate search by HNSW graphs (usearch) that come out the same whoever makes them, one per access rule, and their files.

    lengths    rows are scaled to at most 4,000, or 2,000 for distances, and rounded to integers, which float32 holds
    sums       every product, distance and partial sum is then an integer below 2**24: exact in float32, in any order
    insertion  one thread, in the order given, from usearch's fixed seed

So neither the processor nor the number of cores decides how a graph looks. What it finds are proposals, never scores.

A file holds the SHA-256 of a graph and the graph, and is called after the partition and after everything that decides the
graph. It is a copy of what can be made again: one that is missing, damaged or of another usearch is made anew, and a base
that cannot be written does without.
"""

from __future__ import annotations

import hashlib
import importlib
import math
import os
import threading
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from evidentia.backends.embedded.vectors.vector_arithmetic import best_of
from evidentia.contracts.canonical import encode_record, encode_struct
from evidentia.contracts.errors import MissingExtraError
from evidentia.foundation.disk import make_private_directory, open_private

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from types import ModuleType

    from numpy.typing import NDArray

    from evidentia.backends.embedded.vectors.dense_scan import DenseRows
    from evidentia.backends.embedded.vectors.vector_arithmetic import Kernel, SimilarityMeasure
    from evidentia.contracts.ids import ChunkId
    from evidentia.contracts.vectors import VectorIdentity

    Blocks = Callable[[], Iterator[NDArray[np.int32]]]
    """Gives the rows of a graph in their order, some at a time, as often as asked."""


GRAPHS_NAME = "hnsw"
"""The directory of a base's graphs."""
CONNECTIVITY, EXPANSION_ADD, EXPANSION_SEARCH = 16, 128, 96
"""M, efConstruction and ef of HNSW (Malkov and Yashunin, 2018); more results than ef are asked for with a larger ef."""
_FORMAT = 1
_MAX_PRODUCT_LENGTH, _MAX_DISTANCE_LENGTH = 4_000, 2_000
_DIGEST_BYTES = 32
_ENDING = ".usearch"


class Graph:
    """A graph over rows that are known by their number in the order of insertion. Thread safe."""

    def __init__(self, measure: SimilarityMeasure, *, dimension: int, longest_square: int) -> None:
        self._measure = measure
        self._reach = _MAX_DISTANCE_LENGTH if measure.is_distance else _MAX_PRODUCT_LENGTH
        self._longest_square = longest_square
        # The classes of usearch are untyped, hence Any.
        self._index: Any = import_usearch().index.Index(
            ndim=dimension,
            metric="l2sq" if measure.is_distance else "ip",
            dtype="f32",
            connectivity=CONNECTIVITY,
            expansion_add=EXPANSION_ADD,
            expansion_search=EXPANSION_SEARCH,
            enable_key_lookups=False,
        )
        self._lock = threading.Lock()  # usearch gives one caller at a time a place to work

    def insert(self, blocks: Iterator[NDArray[np.int32]]) -> None:
        """Put in rows, in their order."""
        for block in blocks:
            first = len(self._index)
            keys = np.arange(first, first + len(block), dtype=np.uint64)
            self._index.add(keys, self._scaled(block, longest_square=self._longest_square), threads=1)

    def propose(self, query: NDArray[np.int32], *, count: int) -> NDArray[np.int64] | None:
        """Return the numbers of `count` rows that seem nearest, in ascending order; None where the graph cannot tell."""
        wide = query.astype(np.int64)
        square = int(wide @ wide)
        if self._measure.is_distance and square > self._longest_square:
            return None
        scale = self._longest_square if self._measure.is_distance else square
        with self._lock:
            found = self._index.search(self._scaled(query, longest_square=scale), count, threads=1)
        numbers = np.unique(np.asarray(found.keys).astype(np.int64))
        is_sound = len(numbers) == count and int(numbers[0]) >= 0 and int(numbers[-1]) < len(self._index)
        return numbers if is_sound else None

    def save(self) -> bytes:
        """Return the graph as bytes."""
        return bytes(self._index.save())

    def load(self, saved: memoryview, *, rows: int) -> bool:
        """Read a graph from bytes; tell whether they were one over so many rows."""
        try:
            self._index.load(saved)
        except RuntimeError:
            return False
        return len(self._index) == rows

    def _scaled(self, vectors: NDArray[np.int32], *, longest_square: int) -> NDArray[np.float32]:
        unit = math.sqrt(longest_square) / self._reach or 1.0
        return np.rint(vectors / unit).astype(np.float32)


class GraphFolder:
    """The graphs of a base: each in memory while somebody uses it, and in a file. Thread safe."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory / GRAPHS_NAME
        self._open: WeakValueDictionary[str, Graph] = WeakValueDictionary()
        self._making: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    def graph(self, spec: GraphSpec) -> Graph:
        """Return a graph: the one in use, else the one that is stored, else a new one, which is then stored."""
        with self._lock:
            making = self._making.setdefault(spec.partition, threading.Lock())
        # A lock per partition: making a graph takes seconds, and whoever needs another one must not wait for it.
        with making:
            found = self._open.get(spec.name) or self._stored(spec) or self._made(spec)
            self._open[spec.name] = found
            return found

    def _stored(self, spec: GraphSpec) -> Graph | None:
        try:
            saved = (self._directory / spec.name).read_bytes()
        except OSError:
            return None
        content = memoryview(saved)[_DIGEST_BYTES:]
        if hashlib.sha256(content).digest() != saved[:_DIGEST_BYTES]:
            return None
        graph = spec.empty()
        return graph if graph.load(content, rows=spec.rows) else None

    def _made(self, spec: GraphSpec) -> Graph:
        graph = spec.empty()
        graph.insert(spec.blocks())
        with suppress(OSError):  # a base that cannot be written is searched all the same
            self._store(spec, graph.save())
        return graph

    def _store(self, spec: GraphSpec, content: bytes) -> None:
        """Write a file in one step, and remove what it replaces; one that a crash cut short fails its hash later."""
        make_private_directory(self._directory)
        unfinished = self._directory / f"{spec.name}.{os.getpid()}-{threading.get_ident()}"
        try:
            with open_private(unfinished, "wb") as file:
                file.write(hashlib.sha256(content).digest())
                file.write(content)
            unfinished.replace(self._directory / spec.name)
        finally:
            unfinished.unlink(missing_ok=True)
        for path in self._directory.glob(f"{spec.partition}-*"):
            if path.name != spec.name:
                path.unlink(missing_ok=True)


class GraphSpec:
    """Everything that decides a graph: its rows in their order, how near they are, and the parameters."""

    def __init__(
        self, partition: str, *, measure: SimilarityMeasure, dimension: int, rows: int, longest_square: int, blocks: Blocks
    ) -> None:
        self.partition = partition
        self.rows = rows
        self.blocks = blocks
        self._measure = measure
        self._dimension = dimension
        self._longest_square = longest_square

    @cached_property
    def name(self) -> str:
        """Return the name of the graph's file; reads every row."""
        facts = {
            "connectivity": CONNECTIVITY,
            "dimension": self._dimension,
            "expansion_add": EXPANSION_ADD,
            "format": _FORMAT,
            "longest": _MAX_DISTANCE_LENGTH if self._measure.is_distance else _MAX_PRODUCT_LENGTH,
            "rows": self.rows,
            "similarity": self._measure.similarity.value,
            "usearch": import_usearch().__version__,
        }
        digest = hashlib.sha256(encode_record(facts))
        for block in self.blocks():
            digest.update(np.ascontiguousarray(block, dtype="<i4").tobytes())
        return f"{self.partition}-{digest.hexdigest()}{_ENDING}"

    def empty(self) -> Graph:
        """Return a graph that has no rows yet."""
        return Graph(self._measure, dimension=self._dimension, longest_square=self._longest_square)


def remove_graphs(directory: Path) -> None:
    """Delete every stored graph of a base, so that nothing is left in them of what was removed."""
    for path in (directory / GRAPHS_NAME).glob(f"*{_ENDING}*"):
        path.unlink(missing_ok=True)


def import_usearch() -> ModuleType:
    """Return usearch, or say which extra brings it.

    usearch 2.26 brings a C++ library of its own and shows it to whatever is loaded later; onnxruntime then crashes, so it
    has to come first.
    """
    with suppress(ImportError):
        importlib.import_module("onnxruntime")
    try:
        import usearch.index
    except ImportError as error:
        raise MissingExtraError("hnsw", needed_for="search.dense_index = 'hnsw'") from error
    found: ModuleType = usearch
    return found


# --- vector hnsw ---
# Approximate search: a graph per access rule proposes, exact integers decide, and what no graph covers is scanned.
#
# A partition is the rows whose documents have one access rule: one tenant, one classification, one ACL (and, in an old version, one rule
# that applies besides). A caller sees all of it or nothing, so no graph that a caller's search walks has ever held a row that the caller
# may not see, and whether a graph is used does not depend on such rows either. That is why the partitions are not simply tenant and
# classification: with other ACLs in one graph, hidden rows would shape what is found or, with a scan in such cases, show in the answer's
# label.
#
# A graph is used where every row of its partition is wanted, and there are enough of them. Filters and phrases that take away part of a
# partition, small partitions, and long lists of results have the rows scanned exactly.

SMALLEST_GRAPH = 4_096
"""Partitions with fewer rows are scanned: that takes less time than a graph."""
LEAST_SHARE = 16
"""A graph is asked for at most one row in this many; for more the scan is the better way."""
_MORE = 16
_BLOCK = 4_096
_NAME_DIGITS = 32


class RowRules(NamedTuple):
    """Which rules decide who may see each document: equal numbers, equal rules; `rules` says what they are."""

    numbers: NDArray[np.int64]
    rules: Sequence[bytes]


class GraphSource(NamedTuple):
    """What graphs are made from besides the rows."""

    folder: GraphFolder
    identity: VectorIdentity
    rules: Callable[[], RowRules]
    chunk_ids: Callable[[NDArray[np.int64]], list[ChunkId]]


class NearestRows(NamedTuple):
    """Rows with the best scores, and whether a graph took part in finding them."""

    rows: NDArray[np.int64]
    scores: NDArray[np.int64]
    is_approximate: bool


class PartitionGraphs:
    """The partitions of one version's rows that are large enough for a graph. Thread safe."""

    def __init__(
        self, rows: DenseRows, *, places: NDArray[np.int32], document_of: NDArray[np.int32], measure: SimilarityMeasure, source: GraphSource
    ) -> None:
        self._rows = rows
        self._measure = measure
        self._partitions = _partitions(rows, places=places, document_of=document_of, source=source)

    def nearest(self, query: NDArray[np.int32], *, kernel: Kernel, allowed: NDArray[np.bool_] | None, limit: int) -> NearestRows:
        """Return the rows with the best `limit` scores among what was found, those that tie with the last included.

        1. ask the graphs of the partitions that are allowed as a whole
        2. scan what else is allowed
        3. score what the graphs proposed, and cut
        """
        rest = np.ones(self._rows.count, dtype=np.bool_) if allowed is None else allowed.copy()
        proposed: list[NDArray[np.int64]] = []
        for partition in self._partitions:
            if limit < 1 or not bool(rest[partition.rows].all()):
                continue
            found = partition.propose(query, measure=self._measure, limit=limit)
            if found is not None:
                proposed.append(found)
                rest[partition.rows] = False
        rows, scores = self._rows.nearest(query, measure=self._measure, kernel=kernel, allowed=rest, limit=limit)
        if not proposed:
            return NearestRows(rows, scores, is_approximate=False)
        best = np.sort(np.concatenate(proposed))
        scored = self._rows.scores(best, query.astype(np.int64), measure=self._measure)
        rows, scores = np.concatenate([rows, best]), np.concatenate([scores, scored])
        kept = best_of(scores, limit)
        return NearestRows(rows[kept], scores[kept], is_approximate=True)


class _Partition:
    """The rows under one rule, ascending, and their graph, which is made when it is first asked."""

    def __init__(
        self, every: DenseRows, rows: NDArray[np.int64], *, chunk_places: NDArray[np.int64], rule: bytes, source: GraphSource
    ) -> None:
        self.rows = rows
        self._every = every
        self._places = chunk_places
        self._rule = rule
        self._source = source
        self._lock = threading.Lock()
        self._ready: tuple[Graph, NDArray[np.int64]] | None = None

    def propose(self, query: NDArray[np.int32], *, measure: SimilarityMeasure, limit: int) -> NDArray[np.int64] | None:
        """Return rows that are likely the nearest, some more than asked for; None where the partition is better scanned."""
        count = limit + limit // 2 + _MORE
        if count * LEAST_SHARE > len(self.rows):
            return None
        graph, ordered = self._graph(measure)
        numbers = graph.propose(query, count=count)
        return None if numbers is None else ordered[numbers]

    def _graph(self, measure: SimilarityMeasure) -> tuple[Graph, NDArray[np.int64]]:
        """Return the graph, and its rows in the order of insertion, which is that of their chunk ids."""
        with self._lock:
            if self._ready is None:
                ids = self._source.chunk_ids(self._places)
                ordered = self.rows[sorted(range(len(ids)), key=ids.__getitem__)]
                spec = GraphSpec(
                    self._name(measure),
                    measure=measure,
                    dimension=self._source.identity.dimension,
                    rows=len(ordered),
                    longest_square=int(self._every.take("squares", self.rows).max()),
                    blocks=lambda: self._blocks(ordered),
                )
                self._ready = (self._source.folder.graph(spec), ordered)
            return self._ready

    def _name(self, measure: SimilarityMeasure) -> str:
        digest = hashlib.sha256()
        for part in (encode_struct(self._source.identity), measure.similarity.value.encode(), self._rule):
            digest.update(hashlib.sha256(part).digest())
        return digest.hexdigest()[:_NAME_DIGITS]

    def _blocks(self, ordered: NDArray[np.int64]) -> Iterator[NDArray[np.int32]]:
        for start in range(0, len(ordered), _BLOCK):
            some = ordered[start : start + _BLOCK]
            ascending = np.argsort(some)
            block = np.empty((len(some), self._source.identity.dimension), dtype=np.int32)
            block[ascending] = self._every.vectors(some[ascending])
            yield block


def _partitions(rows: DenseRows, *, places: NDArray[np.int32], document_of: NDArray[np.int32], source: GraphSource) -> list[_Partition]:
    shown = np.flatnonzero(places >= 0)
    if len(shown) < SMALLEST_GRAPH:
        return []
    found = source.rules()
    numbers = found.numbers[document_of[places[shown]]]
    counts = np.bincount(numbers, minlength=len(found.rules))
    made = []
    for number in np.flatnonzero(counts >= SMALLEST_GRAPH).tolist():
        own = shown[numbers == number]
        made.append(_Partition(rows, own, chunk_places=places[own].astype(np.int64), rule=found.rules[number], source=source))
    return made
