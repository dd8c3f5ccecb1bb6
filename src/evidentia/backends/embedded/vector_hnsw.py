"""Approximate search: a graph per access rule proposes, exact integers decide, and what no graph covers is scanned.

A partition is the rows whose documents have one access rule: one tenant, one classification, one ACL (and, in an old
version, one rule that applies besides). A caller sees all of it or nothing, so no graph that a caller's search walks has
ever held a row that the caller may not see, and whether a graph is used does not depend on such rows either. That is why
the partitions are not simply tenant and classification: with other ACLs in one graph, hidden rows would shape what is
found or, with a scan in such cases, show in the answer's label.

A graph is used where every row of its partition is wanted, and there are enough of them. Filters and phrases that take
away part of a partition, small partitions, and long lists of results have the rows scanned exactly.
"""

from __future__ import annotations

import hashlib
import threading
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evidentia.backends.embedded.best_scores import best_of
from evidentia.backends.embedded.vector_graph import GraphSpec
from evidentia.contracts.canonical import encode_struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from evidentia.backends.embedded.dense_scan import DenseRows
    from evidentia.backends.embedded.vector_graph import Graph, GraphFolder
    from evidentia.backends.embedded.vector_kernel import Kernel
    from evidentia.backends.embedded.vector_measure import Measure
    from evidentia.contracts.ids import ChunkId
    from evidentia.contracts.vectors import VectorIdentity

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


class Found(NamedTuple):
    """Rows with the best scores, and whether a graph took part in finding them."""

    rows: NDArray[np.int64]
    scores: NDArray[np.int64]
    is_approximate: bool


class PartitionGraphs:
    """The partitions of one version's rows that are large enough for a graph. Thread safe."""

    def __init__(
        self, rows: DenseRows, *, places: NDArray[np.int32], document_of: NDArray[np.int32], measure: Measure, source: GraphSource
    ) -> None:
        self._rows = rows
        self._measure = measure
        self._partitions = _partitions(rows, places=places, document_of=document_of, source=source)

    def nearest(self, query: NDArray[np.int32], *, kernel: Kernel, allowed: NDArray[np.bool_] | None, limit: int) -> Found:
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
            return Found(rows, scores, is_approximate=False)
        best = np.sort(np.concatenate(proposed))
        scored = self._rows.scores(best, query.astype(np.int64), measure=self._measure)
        rows, scores = np.concatenate([rows, best]), np.concatenate([scores, scored])
        kept = best_of(scores, limit)
        return Found(rows[kept], scores[kept], is_approximate=True)


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

    def propose(self, query: NDArray[np.int32], *, measure: Measure, limit: int) -> NDArray[np.int64] | None:
        """Return rows that are likely the nearest, some more than asked for; None where the partition is better scanned."""
        count = limit + limit // 2 + _MORE
        if count * LEAST_SHARE > len(self.rows):
            return None
        graph, ordered = self._graph(measure)
        numbers = graph.propose(query, count=count)
        return None if numbers is None else ordered[numbers]

    def _graph(self, measure: Measure) -> tuple[Graph, NDArray[np.int64]]:
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

    def _name(self, measure: Measure) -> str:
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
