"""The documents that one version shows, as arrays: where their chunks lie, and what ranks them.

Places number the chunks of all segments one after the other; `document_of` gives the document of each place, or -1
where this version does not show the chunk. A version is derived from another one by what happened between the two: it shares the
arrays of the other, adds documents and places at their ends, and gives the places of documents that changed another owner. A
document that is gone keeps its number; it has no places.
"""

from __future__ import annotations

import copy
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import msgspec
import numpy as np

from evidentia.backends.embedded.records.database import select_in
from evidentia.backends.embedded.records.growing_array import GrowingArray, GrowingTexts
from evidentia.backends.embedded.records.metadata_columns import NO_RECORD, DocumentRecord, MetadataColumns, record_of
from evidentia.backends.embedded.records.schema import decode_metadata
from evidentia.contracts.decoding import json_decoder
from evidentia.contracts.errors import VersionCollectedError
from evidentia.contracts.ids import CHUNK_HASH_DIGITS, ChunkId, DocumentId, Sha256, SourceId, chunk_id_of, chunk_parts
from evidentia.contracts.search import ChunkSignals, ContentFeatures
from evidentia.contracts.vocabulary import AuthorityTier, ContentType
from evidentia.text.features import FEATURE_COUNT, of_type

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from evidentia.backends.embedded.lexical.segments import Array, Segment
    from evidentia.text.weights import Bm25


_VISIBLE = "v.added_seq <= {at} AND (v.removed_seq IS NULL OR v.removed_seq > {at})"
_COLUMNS = "v.version_key, v.document_id, v.source_id, v.access_key, r.first_chunk, r.chunk_count"
_DOCUMENTS = f"SELECT {_COLUMNS} FROM versions v JOIN revisions r USING (revision_key) WHERE {_VISIBLE} ORDER BY v.version_key"
_TOUCHED = f"SELECT {_COLUMNS} FROM versions v JOIN revisions r USING (revision_key) WHERE {_VISIBLE} AND v.document_id IN (%s)"
_NUMBER = f"SELECT v.version_key FROM versions v WHERE {_VISIBLE} AND v.document_id = ?"
_METADATA = "SELECT version_key, document_id, metadata, access_key FROM versions WHERE version_key IN (%s)"
_OWN_METADATA = "SELECT metadata FROM versions WHERE version_key = ?"
_LAST_KNOWN = "SELECT document_id, metadata, access_key FROM versions WHERE added_seq <= {at} AND document_id IN (%s) ORDER BY version_key"
_EVENTS = "SELECT leaf FROM events WHERE event_index >= ? AND event_index < ?"
_HASHES = "SELECT chunk_key, content_hash FROM chunks WHERE chunk_key IN (%s)"
_RECORDS_AT_ONCE: Final = 8_192
_Row = tuple[int, DocumentId, SourceId, int, int, int]


class _Touched(msgspec.Struct):
    document_id: str


_decode_touched: Final = json_decoder(_Touched)


def touched_documents(database: sqlite3.Connection, first: int, last: int) -> list[DocumentId]:
    """Return the documents of which the events between two sizes of the log speak: no other document differs between the versions."""
    leaves = database.execute(_EVENTS, (min(first, last), max(first, last)))
    return sorted({DocumentId(_decode_touched(leaf).document_id) for (leaf,) in leaves})


class TableChange(NamedTuple):
    """What a version differs in from the one that it was derived from.

    `gone` and `come` are the numbers of documents; those from `first_new` on are new to the arrays. `moved` are the places that have
    another owner, new places included; None where places were numbered anew.
    """

    gone: NDArray[np.int64]
    come: NDArray[np.int64]
    first_new: int
    moved: NDArray[np.int64] | None


class StoredDocuments(NamedTuple):
    """The documents of a version as they are kept: ids, one array for each fact, and the sources by code."""

    ids: GrowingTexts
    arrays: Mapping[str, Array]
    sources: tuple[SourceId, ...]


class DocumentTable:
    """Loaded or derived once per version; the caller holds the database's lock."""

    version_keys: NDArray[np.int64]
    source_codes: NDArray[np.int32]
    access_keys: NDArray[np.int32]
    first_chunks: NDArray[np.int64]
    chunk_counts: NDArray[np.int32]
    chunk_keys: NDArray[np.int64]
    lengths: NDArray[np.int32]
    features: NDArray[np.uint32]
    """The four features of every place as one number: texts that are alike share one."""

    def __init__(
        self,
        database: sqlite3.Connection,
        *,
        sequence: int,
        segments: Sequence[Segment],
        reading: sqlite3.Connection | None = None,
        stored: StoredDocuments | None = None,
    ) -> None:
        """Load a version through `reading`, or take what was stored of it; `database` is asked later."""
        reading = reading or database
        self._database = database
        self._sequence = sequence
        self._grown: dict[str, GrowingArray] = {}
        self.segments: tuple[Segment, ...] = ()
        self._is_marked = True
        self.rules: dict[int, bytes] = dict(reading.execute("SELECT access_key, rule FROM access_rules"))
        for name, dtype in _PER_PLACE.items():
            self._set(name, GrowingArray(np.empty(0, dtype=dtype)))
        self._set_documents(stored or _NO_DOCUMENTS)
        if stored is None:
            self._add_documents(reading.execute(_DOCUMENTS.format(at=sequence)).fetchall())
        self._set_live(self._by_source(np.arange(len(self.version_keys))))
        self._put_segments(segments, kept=0)
        self.document_of = self._owners(np.full(len(self.chunk_keys), -1, dtype=np.int32), np.arange(len(self.version_keys)))

    def derived(
        self, database: sqlite3.Connection, *, sequence: int, touched: Sequence[DocumentId], segments: Sequence[Segment]
    ) -> tuple[DocumentTable, TableChange]:
        """Return the table of another version, which differs in these documents, over these segments; `database` is read for it."""
        before = {row[0]: row for row in _visible(database, self._sequence, touched)}
        after = {row[0]: row for row in _visible(database, sequence, touched)}
        other: DocumentTable = copy.copy(self)
        other._grown, other._sequence = dict(self._grown), sequence
        gone = self._numbers(sorted(before.keys() - after.keys()))
        wanted = sorted(after.keys() - before.keys())
        known = self._numbers(wanted)
        first_new = len(self.version_keys)
        # All of them: what came and went between the two left chunks in the segments, and who may see those counts too.
        newer = database.execute("SELECT access_key, rule FROM access_rules WHERE access_key > ?", (max(self.rules, default=-1),))
        other.rules = self.rules | dict(newer)
        other._add_documents([after[key] for key, number in zip(wanted, known.tolist(), strict=True) if number < 0])
        come = np.concatenate([known[known >= 0], np.arange(first_new, len(other.version_keys))])
        kinds = len(other.sources)
        other._set_live(np.pad(self._live, (0, kinds - len(self._live))) + other._by_source(come) - other._by_source(gone))
        kept, owners = other._renumber(self, segments)
        dead = np.zeros(len(other.version_keys) + 1, dtype=np.bool_)  # the last is for -1
        dead[gone] = True
        owners[dead[owners]] = -1
        other.document_of = other._owners(owners, come)
        moved = None
        if kept == len(self.chunk_keys):
            changed = np.flatnonzero(other.document_of[:kept] != self.document_of)
            moved = np.concatenate([changed, np.arange(kept, len(other.chunk_keys))])
        return other, TableChange(gone, come, first_new, moved)

    @property
    def documents(self) -> StoredDocuments:
        """Return every document that has a number here."""
        return StoredDocuments(self._ids, {name: self._grown[name].array for name in _PER_DOCUMENT}, self.sources)

    def stored(self) -> tuple[StoredDocuments, NDArray[np.int64]]:
        """Return the documents that this version shows, in order of their rows, and which numbers they have here."""
        is_shown = self.chunk_counts == 0
        is_shown[self.document_of[self.document_of >= 0]] = True
        numbers = np.flatnonzero(is_shown)
        numbers = numbers[self.version_keys[numbers].argsort()]
        arrays = {name: array[numbers] for name, array in self.documents.arrays.items()}
        return StoredDocuments(GrowingTexts.of(self._ids.take(numbers)), arrays, self.sources), numbers

    def records(self, database: sqlite3.Connection | None = None, *, start: int = 0) -> Iterator[list[DocumentRecord]]:
        """Yield the fields that filters and facets may name, of every document from a number on, some at a time.

        A document that is gone for good has those of `NO_RECORD`.
        """
        for first in range(start, len(self.version_keys), _RECORDS_AT_ONCE):
            keys = self.version_keys[first : first + _RECORDS_AT_ONCE].tolist()
            found = {
                key: record_of(document_id, metadata, self.rules[access_key])
                for key, document_id, metadata, access_key in select_in(database or self._database, _METADATA, keys)
            }
            if len(found) < len(keys):
                missing = [first + number for number, key in enumerate(keys) if key not in found]
                if np.isin(self.document_of, missing).any():
                    raise VersionCollectedError(str(self._sequence))
            yield [found.get(key, NO_RECORD) for key in keys]

    def layout_of(self, document: int) -> Sha256 | None:
        """Return the hash of the layout that a document has; None where it has none."""
        row = self._database.execute(_OWN_METADATA, (int(self.version_keys[document]),)).fetchone()
        if row is None:
            raise VersionCollectedError(str(self._sequence))
        return decode_metadata(row[0]).layout

    def last_known(self, sequence: int, touched: Sequence[DocumentId]) -> Iterator[tuple[int, int, Mapping[str, object]]]:
        """Yield number, access key and fields of those of some documents that this version shows, as they were last up to another one.

        Whether they were removed since makes no difference.
        """
        last: dict[DocumentId, tuple[bytes, int]] = {}
        for document_id, metadata, access_key in select_in(self._database, _LAST_KNOWN.format(at=sequence), touched):
            last[document_id] = (metadata, access_key)
        self._add_rules(self._database, {access_key for _, access_key in last.values()})
        for document_id, (metadata, access_key) in last.items():
            number = self.number_of(document_id)
            if number is not None:
                yield number, access_key, record_of(document_id, metadata, self.rules[access_key])

    def chunk_ids(self, places: NDArray[np.int64], *, document_ids: Sequence[DocumentId] | None = None) -> list[ChunkId]:
        """Return the ids of the chunks at these places, of whose documents the ids may be known."""
        documents = self.document_of[places]
        positions = self.chunk_keys[places] - self.first_chunks[documents]
        known = self.document_ids(documents) if document_ids is None else document_ids
        return [
            chunk_id_of(document_id, position=position, content_hash=mark)
            for document_id, position, mark in zip(known, positions.tolist(), self._marks_at(places), strict=True)
        ]

    def document_ids(self, documents: NDArray[np.integer]) -> list[DocumentId]:
        """Return the ids of documents."""
        return [DocumentId(text) for text in self._ids.take(documents)]

    def number_of(self, document_id: DocumentId) -> int | None:
        """Return the number of a document, or None when this version does not show it."""
        row = self._database.execute(_NUMBER.format(at=self._sequence), (document_id,)).fetchone()
        number = int(self._numbers([-1 if row is None else row[0]])[0])
        return None if number < 0 else number

    def place_of(self, chunk_id: ChunkId, *, allowed: NDArray[np.bool_]) -> int | None:
        """Return where a chunk of the documents that are allowed lies, or None when this version does not show it."""
        parts = chunk_parts(chunk_id)
        document = None if parts is None else self.number_of(parts.document_id)
        if parts is None or document is None or not allowed[document] or parts.position >= self.chunk_counts[document]:
            return None
        found = np.flatnonzero(self.chunk_keys == self.first_chunks[document] + parts.position)
        if not len(found):
            return None
        place = int(found[0])
        return place if self.chunk_ids(np.asarray([place], dtype=np.int64)) == [chunk_id] else None

    def _marks_at(self, places: NDArray[np.int64]) -> list[Sha256]:
        """Return the beginnings of content hashes; those of segments without marks are asked of the database."""
        if self._is_marked:
            digits = self._grown["marks"].array[places].tobytes().hex()
            return [Sha256(digits[start : start + CHUNK_HASH_DIGITS]) for start in range(0, len(digits), CHUNK_HASH_DIGITS)]
        keys = self.chunk_keys[places].tolist()
        hashes: dict[int, bytes] = dict(select_in(self._database, _HASHES, keys))
        try:
            return [Sha256(hashes[key].hex()) for key in keys]
        except KeyError as error:
            raise VersionCollectedError(str(self._sequence)) from error

    # --- documents ---

    def _set(self, name: str, grown: GrowingArray) -> None:
        self._grown[name] = grown
        setattr(self, name, grown.array)

    def _set_live(self, documents: NDArray[np.int64]) -> None:
        """Take how many documents each source has; `live_sources` are the codes of those with any chunk, in order of their names."""
        self._live = documents
        self.live_sources: list[int] = sorted(np.flatnonzero(documents).tolist(), key=self.sources.__getitem__)

    def _by_source(self, documents: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count documents that have chunks, by source."""
        return np.bincount(self.source_codes[documents[self.chunk_counts[documents] > 0]], minlength=len(self.sources))

    def _set_documents(self, stored: StoredDocuments) -> None:
        self._ids = stored.ids
        self._is_ascending = True
        self.sources = stored.sources
        for name, array in stored.arrays.items():
            self._set(name, GrowingArray(array))

    def _add_documents(self, rows: Sequence[_Row]) -> None:
        if not rows:
            return
        keys, ids, sources, access, firsts, counts = zip(*rows, strict=True)
        code = {source: number for number, source in enumerate(self.sources)}
        for source in sorted(set(sources) - code.keys()):
            code[source] = len(code)
        self.sources = tuple(code)
        self._is_ascending &= not len(self.version_keys) or keys[0] > self.version_keys[-1]
        self._ids = self._ids.plus(ids)
        added = (keys, [code[source] for source in sources], access, firsts, counts)
        for (name, dtype), values in zip(_PER_DOCUMENT.items(), added, strict=True):
            self._set(name, self._grown[name].plus(np.asarray(values, dtype=dtype)))

    def _add_rules(self, database: sqlite3.Connection, access_keys: set[int]) -> None:
        unknown = sorted(access_keys - self.rules.keys())
        if unknown:
            rules = dict(select_in(database, "SELECT access_key, rule FROM access_rules WHERE access_key IN (%s)", unknown))
            self.rules = self.rules | rules  # another table: the one before may be in use

    def _numbers(self, version_keys: Sequence[int]) -> NDArray[np.int64]:
        """Return the numbers of documents by the keys of their rows, -1 where there is none."""
        wanted = np.asarray(version_keys, dtype=np.int64)
        numbers = np.full(len(wanted), -1, dtype=np.int64)
        if not len(wanted) or not len(self.version_keys):
            return numbers
        # Keys ascend, but where a version was derived from a later one.
        order = None if self._is_ascending else self.version_keys.argsort()
        at = np.minimum(self.version_keys.searchsorted(wanted, sorter=order), len(self.version_keys) - 1)
        at = at if order is None else order[at]
        is_there = self.version_keys[at] == wanted
        numbers[is_there] = at[is_there]
        return numbers

    # --- places ---

    def _renumber(self, former: DocumentTable, segments: Sequence[Segment]) -> tuple[int, NDArray[np.int32]]:
        """Take these segments; return how many places stay what they were, and who owned each place's chunk before."""
        same = 0
        while same < min(len(segments), len(former.segments)) and segments[same].name == former.segments[same].name:
            same += 1
        kept = sum(segment.header.chunk_count for segment in segments[:same])
        self._put_segments(segments, kept=same)
        owners = np.full(len(self.chunk_keys), -1, dtype=np.int32)
        owners[:kept] = former.document_of[:kept]
        order = former.chunk_keys[kept:].argsort()
        if len(order):
            moved, keys = former.chunk_keys[kept:][order], self.chunk_keys[kept:]
            at = np.minimum(moved.searchsorted(keys), len(moved) - 1)
            owners[kept:] = np.where(moved[at] == keys, former.document_of[kept:][order][at], np.int32(-1))
        return kept, owners

    def _put_segments(self, segments: Sequence[Segment], *, kept: int) -> None:
        """Number the chunks of segments after those of the first `kept`, which stay."""
        start = sum(segment.header.chunk_count for segment in segments[:kept])
        new = segments[kept:]
        marks = [segment.marks() for segment in new]
        self._is_marked = (not kept or self._is_marked) and all(each is not None for each in marks)
        arrays: dict[str, list[Array]] = {
            "chunk_keys": [segment.array("chunk_keys") for segment in new],
            "lengths": [segment.array("lengths") for segment in new],
            "features": [np.ascontiguousarray(segment.features()).view("<u4").reshape(-1) for segment in new],
            "marks": [
                np.zeros(segment.header.chunk_count, dtype="<u8") if each is None else np.ascontiguousarray(each).view("<u8").reshape(-1)
                for segment, each in zip(new, marks, strict=True)
            ],
        }
        for name, parts in arrays.items():
            grown = self._grown[name].cut(start)
            self._set(name, grown.plus(np.concatenate(parts)) if parts else grown)
        self.segments = tuple(segments)
        coded = getattr(self, "coded_lengths", None)
        self.coded_lengths: CodedLengths = CodedLengths.of(self.lengths) if coded is None or start == 0 else coded.at(start, self.lengths)

    def _owners(self, owners: NDArray[np.int32], come: NDArray[np.int64]) -> NDArray[np.int32]:
        """Give the places that nobody owns to the documents that have come."""
        has_chunks = come[self.chunk_counts[come] > 0]
        by_first = has_chunks[self.first_chunks[has_chunks].argsort()]
        free = np.flatnonzero(owners < 0)
        if len(by_first) and len(free):
            keys, firsts = self.chunk_keys[free], self.first_chunks[by_first]
            at = firsts.searchsorted(keys, side="right") - 1
            is_here = (at >= 0) & (keys < firsts[at] + self.chunk_counts[by_first][at])
            owners[free[is_here]] = by_first[at[is_here]]
        return owners


_PER_DOCUMENT: Final[Mapping[str, type[np.generic]]] = {
    "version_keys": np.int64, "source_codes": np.int32, "access_keys": np.int32, "first_chunks": np.int64, "chunk_counts": np.int32,
}  # fmt: skip
_PER_PLACE: Final[Mapping[str, type[np.generic]]] = {
    "chunk_keys": np.int64, "lengths": np.int32, "features": np.uint32, "marks": np.uint64,
}  # fmt: skip

_NO_DOCUMENTS: Final = StoredDocuments(GrowingTexts.of(()), {name: np.empty(0, dtype=each) for name, each in _PER_DOCUMENT.items()}, ())


def _visible(database: sqlite3.Connection, sequence: int, document_ids: Sequence[DocumentId]) -> list[_Row]:
    return list(select_in(database, _TOUCHED.format(at=sequence), document_ids))


# --- impact table ---
# What the postings of a term are worth, looked up: chunks have few different lengths and hold a term few times.
#
# Where more postings than pairs of a length and a frequency are asked for, each pair is worked out once, by the same arithmetic.

WORTH_A_TABLE = 4
"""So many postings for each pair of a length and a frequency make a table worth its while."""
_NARROW_CODES = 1 << 16


class CodedLengths(NamedTuple):
    """The different lengths of chunks, ascending, and the number of each chunk's length among them."""

    distinct: NDArray[np.int32]
    codes: NDArray[np.unsignedinteger]

    @classmethod
    def of(cls, lengths: NDArray[np.int32]) -> Self:
        """Return the lengths, which are not negative, with their numbers."""
        distinct = np.flatnonzero(np.bincount(lengths)).astype(np.int32)
        numbers: NDArray[np.unsignedinteger] = np.zeros(
            int(lengths.max(initial=0)) + 1, dtype=np.uint16 if len(distinct) <= _NARROW_CODES else np.uint32
        )
        numbers[distinct] = np.arange(len(distinct))
        return cls(distinct, numbers[lengths])

    def at(self, start: int, lengths: NDArray[np.int32]) -> CodedLengths:
        """Return the codes of lengths of which those before `start` are the same."""
        added = lengths[start:]
        if not len(added):
            return CodedLengths(self.distinct, self.codes[:start])
        numbers = np.minimum(self.distinct.searchsorted(added), len(self.distinct) - 1)
        if not len(self.distinct) or (self.distinct[numbers] != added).any():
            return CodedLengths.of(lengths)
        return CodedLengths(self.distinct, np.concatenate([self.codes[:start], numbers.astype(self.codes.dtype)]))


class ImpactTable:
    """The impacts of any term under one setting of BM25."""

    def __init__(self, bm25: Bm25, lengths: CodedLengths) -> None:
        self._bm25 = bm25
        self._codes = lengths.codes
        self._norms = bm25.norms(lengths.distinct)

    def impacts(self, places: NDArray[np.int32], frequencies: NDArray[np.int32], *, idf: int) -> NDArray[np.int32]:
        """Return what each posting of a term is worth; frequencies are at least 1."""
        codes = self._codes.take(places)
        highest, width = int(frequencies.max(initial=1)), len(self._norms)
        if highest * width * WORTH_A_TABLE > len(places):
            return self._bm25.impacts(frequencies, self._norms.take(codes), idf=idf)
        pairs = np.repeat(np.arange(1, highest + 1, dtype=np.int32), width)
        table = self._bm25.impacts(pairs, np.tile(self._norms, highest), idf=idf)
        cells = codes.astype(np.int32)
        cells += (frequencies - 1) * np.int32(width)
        return table.take(cells)


# --- signals ---
# What ranks a chunk besides its match: facts of its document, and what its text is made of.

_REMEMBERED_FEATURES: Final = 1 << 12


class SignalTable:
    """The signals of a version's chunks. Thread safe under the GIL.

    A segment keeps what the text alone says; what the document is for is read beside it, since it may change while the
    text stays.
    """

    def __init__(self, table: DocumentTable, columns: MetadataColumns) -> None:
        self._table = table
        self._columns = columns
        self._known: dict[tuple[int, int, int, int], ChunkSignals] = {}
        """By what they are made of: one request asks more than once."""

    def of(self, places: Sequence[int]) -> list[ChunkSignals]:
        """Return the signals of the chunks at these places, which this version shows; those that are alike share one object."""
        if not places:
            return []
        chosen = np.asarray(places, dtype=np.int64)
        documents = self._table.document_of.take(chosen)
        tiers, kinds, moments = (self._columns.column(name) for name in ("authority_tier", "content_type", "updated_at"))
        codes = zip(
            tiers.codes.take(documents).tolist(),
            kinds.codes.take(documents).tolist(),
            moments.codes.take(documents).tolist(),
            self._table.features.take(chosen).tolist(),
            strict=True,
        )
        known = self._known
        found = []
        for key in codes:
            signals = known.get(key)
            if signals is None:
                tier, kind, moment, measured = key
                signals = known[key] = _signals(tiers.values[tier], kinds.values[kind], moments.values[moment], measured)
            found.append(signals)
        if len(known) > _REMEMBERED_FEATURES:
            self._known = {}
        return found


_TIERS: Final = {tier.value: tier for tier in AuthorityTier}
_TYPES: Final = {kind.value: kind for kind in ContentType}


def _signals(tier: object, kind: object, moment: object, measured: int) -> ChunkSignals:
    content_type = _TYPES[str(kind)]
    return ChunkSignals(
        authority_tier=_TIERS[str(tier)],
        content_type=content_type,
        updated_at=moment if isinstance(moment, datetime) else None,
        features=_features(measured, content_type),
    )


@lru_cache(maxsize=_REMEMBERED_FEATURES)
def _features(measured: int, kind: ContentType) -> ContentFeatures:
    code, commands, configuration, specificity = measured.to_bytes(FEATURE_COUNT, "little")
    return of_type(ContentFeatures(code=code, commands=commands, configuration=configuration, specificity=specificity), kind)
