"""The vectors of one version: which rows of the files it shows, and what a caller finds among them.

The files hold rows of many versions. A version shows those that were added up to it and whose chunks it shows.
"""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from evidentia.backends.embedded.vectors.dense_scan import DenseRows
from evidentia.backends.embedded.vectors.hnsw import GraphSource, NearestRows, PartitionGraphs
from evidentia.backends.embedded.vectors.vector_arithmetic import EXACT_FLOAT64, SimilarityMeasure, best_kernel, checked
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.vectors import SCALE_BITS
from evidentia.contracts.vocabulary import Similarity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from evidentia.backends.embedded.lexical.view import View
    from evidentia.backends.embedded.records.document_table import DocumentTable
    from evidentia.backends.embedded.vectors.vector_file import OpenFile
    from evidentia.contracts.ids import SourceId
    from evidentia.contracts.search import DenseQuery
    from evidentia.contracts.vectors import VectorIdentity

_COSINE_BITS = 16


class PlaceMap:
    """Where the chunk with a given key lies; shared by every version over the same chunks."""

    def __init__(self, table: DocumentTable) -> None:
        self.table = table

    @cached_property
    def _places(self) -> NDArray[np.int32]:
        keys = self.table.chunk_keys
        places = np.full(int(keys.max(initial=-1)) + 2, -1, dtype=np.int32)
        places[keys] = np.where(self.table.document_of >= 0, np.arange(len(keys), dtype=np.int32), -1)
        return places

    def places(self, chunk_keys: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the places of chunks, -1 where this version does not show one."""
        return self._places[np.minimum(chunk_keys, len(self._places) - 1)]


class SeenRows(NamedTuple):
    """What one caller sees of the rows: which (None: all), and how many chunks have one, per source."""

    allowed: NDArray[np.bool_] | None
    by_source: Mapping[SourceId, tuple[int, int]]


class _Searched(NamedTuple):
    """A query that was searched exactly, its vector, and the scores of the rows that were found."""

    query: DenseQuery
    vector: NDArray[np.int64]
    scores: Mapping[int, int]


class VectorPart:
    """The vectors of one version; `graphs` has them searched approximately. Thread safe."""

    def __init__(
        self,
        identity: VectorIdentity,
        files: Sequence[OpenFile],
        *,
        sequence: int,
        places: PlaceMap,
        similarity: Similarity,
        graphs: GraphSource | None = None,
    ) -> None:
        self.identity = identity
        self.measure = SimilarityMeasure(similarity, SCALE_BITS[identity.normalisation])
        self._files = files
        self._sequence = sequence
        self._map = places
        self._source = graphs
        self._recent: _Searched | None = None
        self._seen: WeakKeyDictionary[View, SeenRows] = WeakKeyDictionary()
        self._lock = threading.RLock()

    @property
    def is_exact(self) -> bool:
        """Tell whether the nearest are always found by comparing all of them."""
        return self._source is None

    def prepare(self, views: Iterable[View]) -> None:
        """Lay out what the first searches through these views would have to."""
        _ = self._rows, self._row_of
        for view in views:
            self.seen(view)

    def nearest(
        self,
        query: DenseQuery,
        *,
        view: View,
        keep: NDArray[np.bool_] | None,
        phrases: Sequence[NDArray[np.int64]],
        limit: int,
        may_approximate: bool = False,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], bool]:
        """Return the places with the best scores, ties with the last included, the scores, and whether a graph took part.

        `keep` narrows places; each of `phrases` lists the places that hold one. Only a view that follows from access rules
        alone may be searched approximately (`hnsw`).
        """
        vector = self._vector(query)
        allowed = self._narrowed(self.seen(view).allowed, keep=keep, phrases=phrases)
        if may_approximate and self._graphs is not None:
            found = self._graphs.nearest(vector, kernel=best_kernel(), allowed=allowed, limit=limit)
        else:
            exact = self._rows.nearest(vector, measure=self.measure, kernel=best_kernel(), allowed=allowed, limit=limit)
            found = NearestRows(*exact, is_approximate=False)
            # One assignment: a thread that reads it meanwhile has the one before or this one, and both are whole.
            self._recent = _Searched(query, vector.astype(np.int64), dict(zip(found.rows.tolist(), found.scores.tolist(), strict=True)))
        return self._places[found.rows].astype(np.int64), found.scores, found.is_approximate

    def scores(self, places: Sequence[int], query: DenseQuery) -> list[int | None]:
        """Return the exact score of each place; None where there is no vector."""
        recent = self._recent
        if recent is None or recent.query != query:
            recent = _Searched(query, self._vector(query).astype(np.int64), {})
        rows = self._rows_at(places).tolist()
        missing = sorted({row for row in rows if row >= 0 and row not in recent.scores})
        found = self._rows.scores(np.asarray(missing, dtype=np.int64), recent.vector, measure=self.measure).tolist()
        every = {**recent.scores, **dict(zip(missing, found, strict=True))}
        return [every.get(row) for row in rows]

    def cosines(self, places: Sequence[int]) -> NDArray[np.int64]:
        """Return the cosine of each pair at 2^-16, at least 0; -1 where one of the two has no vector."""
        rows = self._rows_at(places)
        ascending = rows.argsort()
        there = ascending[int((rows < 0).sum()) :]
        found = np.full((len(rows), len(rows)), -1, dtype=np.int64)
        if len(there):
            found[there[:, np.newaxis], there] = _cosines(self._rows.vectors(rows[there]))
        return found

    def seen(self, view: View) -> SeenRows:
        """Return what a view shows of the rows, made once."""
        with self._lock:
            kept = self._seen.get(view)
            if kept is None:
                kept = self._seen[view] = self._see(view)
            return kept

    @cached_property
    def _rows(self) -> DenseRows:
        return DenseRows([opened.scanned for opened in self._files])

    @cached_property
    def _graphs(self) -> PartitionGraphs | None:
        if self._source is None:
            return None
        return PartitionGraphs(
            self._rows, places=self._places, document_of=self._map.table.document_of, measure=self.measure, source=self._source
        )

    @cached_property
    def _places(self) -> NDArray[np.int32]:
        """Return the place of each row, -1 where this version does not show it."""
        found = [np.where(each.file.added <= self._sequence, self._map.places(each.file.chunk_keys), np.int32(-1)) for each in self._files]
        return np.concatenate(found) if found else np.empty(0, dtype=np.int32)

    @cached_property
    def _row_of(self) -> NDArray[np.int32]:
        shown = np.flatnonzero(self._places >= 0)
        rows = np.full(len(self._map.table.chunk_keys), -1, dtype=np.int32)
        rows[self._places[shown]] = shown
        return rows

    def _rows_at(self, places: Sequence[int]) -> NDArray[np.int64]:
        return self._row_of[np.asarray(places, dtype=np.int64)].astype(np.int64)

    def _see(self, view: View) -> SeenRows:
        table = self._map.table
        allowed = np.append(view.mask, np.False_)[self._places]  # -1 is the place of rows that this version does not show
        shown = self._places[allowed]
        kinds = len(table.sources)
        embedded = np.bincount(table.source_codes[table.document_of[shown]], minlength=kinds)
        visible = np.bincount(table.source_codes[table.document_of[view.mask]], minlength=kinds)
        counts = {table.sources[code]: (int(embedded[code]), int(visible[code])) for code in table.live_sources if visible[code]}
        return SeenRows(None if bool(allowed.all()) else allowed, counts)

    def _narrowed(
        self, allowed: NDArray[np.bool_] | None, *, keep: NDArray[np.bool_] | None, phrases: Sequence[NDArray[np.int64]]
    ) -> NDArray[np.bool_] | None:
        if keep is not None:
            kept = np.append(keep, np.False_)[self._places]
            allowed = kept if allowed is None else allowed & kept
        for places in phrases:
            holds = np.zeros(len(self._places), dtype=np.bool_)
            rows = self._row_of[places]
            holds[rows[rows >= 0]] = True
            allowed = holds if allowed is None else allowed & holds
        return allowed

    def _vector(self, query: DenseQuery) -> NDArray[np.int32]:
        if query.identity != self.identity:
            problem = f"it is of '{query.identity.name}', and the base's are of '{self.identity.name}'; embed the base again"
            raise InvalidFieldError("vector", problem)
        if self.measure.similarity is Similarity.COSINE and self.identity.normalisation != "unit":
            raise InvalidFieldError("similarity", "cosine needs vectors of unit length; embed the base again or choose 'dot'")
        if len(query.vector) % 4:
            raise InvalidFieldError("vector", "it must hold little-endian 32-bit integers")
        vector: NDArray[np.int32] = checked([np.frombuffer(query.vector, dtype="<i4")], identity=self.identity)[0]
        return vector


def _cosines(vectors: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the cosines of all pairs; the operations are exact or correctly rounded, so that machines agree."""
    real = vectors.astype(np.float64)
    products = real @ real.T
    squares = products.diagonal()
    if squares.max(initial=0) >= EXACT_FLOAT64 // 2:  # half: a sum beyond what is exact may have been rounded down
        wide = vectors.astype(np.int64)
        products = (wide @ wide.T).astype(np.float64)
        squares = np.einsum("ij,ij->i", wide, wide).astype(np.float64)
    lengths = np.sqrt(squares)
    scale = np.outer(lengths, lengths)
    shares = np.divide(products * (1 << _COSINE_BITS), scale, out=np.zeros_like(products), where=scale > 0)
    cosines: NDArray[np.int64] = np.clip(np.floor(shares), 0, 1 << _COSINE_BITS).astype(np.int64)
    return cosines
