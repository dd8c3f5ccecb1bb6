"""The documents that one version shows, as arrays: where their chunks lie, their metadata as columns, and what ranks them.

Places number the chunks of all segments one after the other; `document_of` gives the document of each place, or -1
where this version does not show the chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import numpy as np

from evidentia.backends.embedded.lexical.postings import features_of, marks_of
from evidentia.backends.embedded.records import schema
from evidentia.backends.embedded.records.database import select_in
from evidentia.backends.embedded.records.schema import decode_metadata
from evidentia.contracts.documents import DocumentMetadata
from evidentia.contracts.errors import VersionCollectedError
from evidentia.contracts.ids import CHUNK_HASH_DIGITS, ChunkId, DocumentId, Sha256, SourceId, chunk_id_of, chunk_parts
from evidentia.contracts.predicates import And, Atom, Not, Or, Predicate, matcher_of
from evidentia.contracts.search import ChunkSignals, ContentFeatures
from evidentia.contracts.vocabulary import AuthorityTier, ContentType
from evidentia.text.features import FEATURE_COUNT, of_type

if TYPE_CHECKING:
    import sqlite3

    from numpy.typing import NDArray

    from evidentia.backends.embedded.lexical.segments import Segment
    from evidentia.contracts.access import AccessRule
    from evidentia.text.weights import Bm25


_VISIBLE = "v.added_seq <= :at AND (v.removed_seq IS NULL OR v.removed_seq > :at)"
_DOCUMENTS = f"""SELECT v.version_key, v.document_id, v.source_id, v.access_key, r.first_chunk, r.chunk_count
    FROM versions v JOIN revisions r USING (revision_key) WHERE {_VISIBLE} ORDER BY v.version_key"""
_METADATA = f"SELECT v.document_id, v.metadata, v.access_key FROM versions v WHERE {_VISIBLE} ORDER BY v.version_key"
_OWN_METADATA = "SELECT metadata FROM versions WHERE version_key = ?"
_LAST_KNOWN = "SELECT document_id, metadata, access_key FROM versions WHERE added_seq <= ? ORDER BY version_key"
_HASHES = "SELECT chunk_key, content_hash FROM chunks WHERE chunk_key IN (%s)"


class DocumentTable:
    """Loaded once per snapshot; the caller holds the database's lock."""

    def __init__(self, database: sqlite3.Connection, *, sequence: int, segments: Sequence[Segment]) -> None:
        self._database = database
        self._sequence = sequence
        self._numbers: dict[DocumentId, int] | None = None
        self._load_documents()
        self._load_places(segments)

    def records(self) -> Sequence[Mapping[str, object]]:
        """Return the fields of every document that filters and facets may name."""
        found = self._database.execute(_METADATA, {"at": self._sequence}).fetchall()
        if len(found) != len(self.document_ids):
            raise VersionCollectedError(str(self._sequence))
        return [record_of(document_id, metadata, self.rules[access_key]) for document_id, metadata, access_key in found]

    def layout_of(self, document: int) -> Sha256 | None:
        """Return the hash of the layout that a document has; None where it has none."""
        row = self._database.execute(_OWN_METADATA, (int(self.version_keys[document]),)).fetchone()
        if row is None:
            raise VersionCollectedError(str(self._sequence))
        return decode_metadata(row[0]).layout

    def last_known(self, sequence: int) -> tuple[NDArray[np.int64], Sequence[Mapping[str, object]]]:
        """Return the access keys and fields that each document had last up to another version, removed or not."""
        last: dict[DocumentId, tuple[bytes, int]] = {}
        for document_id, metadata, access_key in self._database.execute(_LAST_KNOWN, (sequence,)):
            last[document_id] = (metadata, access_key)
        found = [last[document_id] for document_id in self.document_ids]
        records = [
            record_of(document_id, metadata, self.rules[access_key])
            for document_id, (metadata, access_key) in zip(self.document_ids, found, strict=True)
        ]
        return np.asarray([access_key for _, access_key in found], dtype=np.int64), records

    def chunk_ids(self, places: NDArray[np.int64]) -> list[ChunkId]:
        """Return the ids of the chunks at these places."""
        documents = self.document_of[places]
        positions = self.chunk_keys[places] - self.first_chunks[documents]
        return [
            chunk_id_of(self.document_ids[document], position=position, content_hash=mark)
            for document, position, mark in zip(documents.tolist(), positions.tolist(), self._marks_at(places), strict=True)
        ]

    def place_of(self, chunk_id: ChunkId) -> int | None:
        """Return where a chunk lies, or None when this version does not show it."""
        parts = chunk_parts(chunk_id)
        document = None if parts is None else self.number_of(parts.document_id)
        if parts is None or document is None or parts.position >= self.chunk_counts[document]:
            return None
        found = np.flatnonzero(self.chunk_keys == self.first_chunks[document] + parts.position)
        if not len(found):
            return None
        place = int(found[0])
        return place if self.chunk_ids(np.asarray([place], dtype=np.int64)) == [chunk_id] else None

    def _marks_at(self, places: NDArray[np.int64]) -> list[Sha256]:
        """Return the beginnings of content hashes; those of segments without marks are asked of the database."""
        if self._marks is not None:
            digits = self._marks[places].tobytes().hex()
            return [Sha256(digits[start : start + CHUNK_HASH_DIGITS]) for start in range(0, len(digits), CHUNK_HASH_DIGITS)]
        keys = self.chunk_keys[places].tolist()
        hashes: dict[int, bytes] = dict(select_in(self._database, _HASHES, keys))
        try:
            return [Sha256(hashes[key].hex()) for key in keys]
        except KeyError as error:
            raise VersionCollectedError(str(self._sequence)) from error

    def _load_documents(self) -> None:
        found = self._database.execute(_DOCUMENTS, {"at": self._sequence}).fetchall()
        columns = list(zip(*found, strict=True)) or [()] * 6
        self.version_keys = np.asarray(columns[0], dtype=np.int64)
        self.document_ids: list[DocumentId] = list(columns[1])
        self.sources: list[SourceId] = sorted(set(columns[2]))
        number = {source: code for code, source in enumerate(self.sources)}
        self.source_codes = np.fromiter((number[source] for source in columns[2]), dtype=np.int32, count=len(found))
        self.access_keys = np.asarray(columns[3], dtype=np.int64)
        self.first_chunks = np.asarray(columns[4], dtype=np.int64)
        self.chunk_counts = np.asarray(columns[5], dtype=np.int64)
        self.rules = dict(self._database.execute("SELECT access_key, rule FROM access_rules"))

    def _load_places(self, segments: Sequence[Segment]) -> None:
        keys = [segment.array("chunk_keys") for segment in segments]
        self.chunk_keys: NDArray[np.int64] = np.concatenate(keys) if keys else np.empty(0, dtype=np.int64)
        lengths = [segment.array("lengths") for segment in segments]
        self.lengths: NDArray[np.int32] = np.concatenate(lengths) if lengths else np.empty(0, dtype=np.int32)
        self.coded_lengths = CodedLengths.of(self.lengths)
        marks = [each for segment in segments if (each := marks_of(segment)) is not None]
        self._marks: NDArray[np.uint8] | None = np.concatenate(marks) if marks and len(marks) == len(segments) else None
        documents = np.repeat(np.arange(len(self.document_ids), dtype=np.int32), self.chunk_counts)
        starts = np.repeat(self.first_chunks - np.cumsum(self.chunk_counts) + self.chunk_counts, self.chunk_counts)
        visible = starts + np.arange(len(documents))
        owner = np.full(int(max(self.chunk_keys.max(initial=-1), visible.max(initial=-1))) + 1, -1, dtype=np.int32)
        owner[visible] = documents
        self.document_of: NDArray[np.int32] = owner[self.chunk_keys]

    def number_of(self, document_id: DocumentId) -> int | None:
        """Return the number of a document, or None when this version does not show it."""
        if self._numbers is None:
            self._numbers = {each: number for number, each in enumerate(self.document_ids)}
        return self._numbers.get(document_id)


# --- columns ---
# Metadata as columns: a filter is decided once per distinct value instead of once per document.
#
# A column holds one code per document and the distinct values behind the codes, so that boolean algebra over documents is a few array
# operations, exactly equal to deciding the filter document by document.

EXTRA_PREFIX = "extra."
_REMEMBERED_RULES: Final = 256
_READERS: Final[Mapping[str, Callable[[DocumentRecord], object]]] = {
    **{name: attrgetter(f"facts.{name}") for name in DocumentMetadata.__struct_fields__},
    **{name: attrgetter(f"access.{name}") for name in ("tenant", "classification")},
    "document_id": attrgetter("document_id"),
}


class MetadataColumn(NamedTuple):
    """One field of every document: `values[codes[d]]` is document d's; a set is one value."""

    codes: NDArray[np.int32]
    values: list[object]


class MetadataColumns:
    """The fields of a snapshot's documents, each laid out when it is first asked for. Thread safe under the GIL."""

    def __init__(self, load_records: Callable[[], Sequence[Mapping[str, object]]]) -> None:
        self._load_records = load_records
        self._records: Sequence[Mapping[str, object]] | None = None
        self._columns: dict[str, MetadataColumn] = {}

    def column(self, field: str) -> MetadataColumn:
        """Return the column of a field."""
        if field not in self._columns:
            self._columns[field] = self._lay_out(field)
        return self._columns[field]

    def decide(self, predicate: Predicate) -> NDArray[np.bool_]:
        """Return which documents pass."""
        if isinstance(predicate, And):
            return self._all([self.decide(clause) for clause in predicate.clauses])
        if isinstance(predicate, Or):
            return ~self._all([~self.decide(clause) for clause in predicate.clauses])
        if isinstance(predicate, Not):
            return ~self.decide(predicate.clause)
        return self._decide_atom(predicate)

    def _decide_atom(self, atom: Atom) -> NDArray[np.bool_]:
        column = self.column(atom.field)
        matcher = matcher_of(atom)
        passes = np.fromiter((matcher({atom.field: value}) for value in column.values), dtype=np.bool_, count=len(column.values))
        return passes[column.codes]

    def _all(self, decided: Sequence[NDArray[np.bool_]]) -> NDArray[np.bool_]:
        together = np.ones(len(self._loaded()), dtype=np.bool_)
        for each in decided:
            together &= each
        return together

    def _lay_out(self, field: str) -> MetadataColumn:
        numbers: dict[object, int] = {}
        values: list[object] = []
        codes = np.empty(len(self._loaded()), dtype=np.int32)
        for document, record in enumerate(self._loaded()):
            value = _value(record, field)
            # Equal instants with other offsets are equal keys, and then the first document would spell them for the rest.
            spelling = value.isoformat() if isinstance(value, datetime) else value
            code = numbers.get(spelling)
            if code is None:
                code = numbers[spelling] = len(values)
                values.append(value)
            codes[document] = code
        return MetadataColumn(codes=codes, values=values)

    def _loaded(self) -> Sequence[Mapping[str, object]]:
        if self._records is None:
            self._records = self._load_records()
        return self._records


class DocumentRecord(Mapping[str, object]):
    """The fields of a document that filters and facets may name. Holds what they are read from: a table of its own would be far larger."""

    __slots__ = ("access", "document_id", "facts")

    def __init__(self, document_id: str, *, facts: DocumentMetadata, access: AccessRule) -> None:
        self.document_id = document_id
        self.facts = facts
        self.access = access

    def __getitem__(self, field: str) -> object:
        """Return the value of a field."""
        return _READERS[field](self)

    def get(self, field: str, default: object = None) -> object:
        """Return the value of a field; asked for each document, so it does not wait for an error to find out."""
        reader = _READERS.get(field)
        return default if reader is None else reader(self)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the fields."""
        return iter(_READERS)

    def __len__(self) -> int:
        """Return how many fields there are."""
        return len(_READERS)


def record_of(document_id: str, metadata: bytes, rule: bytes) -> DocumentRecord:
    """Return the fields of a document that filters and facets may name."""
    return DocumentRecord(document_id, facts=schema.decode_metadata(metadata), access=_access_of(rule))


@lru_cache(maxsize=_REMEMBERED_RULES)
def _access_of(rule: bytes) -> AccessRule:
    """Return an access rule; very many documents share few."""
    return schema.decode_access(rule)


def _value(record: Mapping[str, object], field: str) -> object:
    if field.startswith(EXTRA_PREFIX):
        extra = record.get("extra")
        return extra.get(field.removeprefix(EXTRA_PREFIX)) if isinstance(extra, dict) else None
    value = record.get(field)
    return tuple(value) if isinstance(value, list) else value


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
    """The signals of a snapshot's chunks. Thread safe under the GIL.

    A segment keeps what the text alone says; what the document is for is read beside it, since it may change while the
    text stays.
    """

    def __init__(self, segments: Sequence[Segment], *, columns: MetadataColumns, document_of: NDArray[np.int32]) -> None:
        self._segments = segments
        self._columns = columns
        self._document_of = document_of
        self._features: NDArray[np.uint32] | None = None

    def of(self, places: Sequence[int]) -> list[ChunkSignals]:
        """Return the signals of the chunks at these places, which this version shows; those that are alike share one object."""
        if not places:
            return []
        chosen = np.asarray(places, dtype=np.int64)
        documents = self._document_of.take(chosen)
        tiers, kinds, moments = (self._columns.column(name) for name in ("authority_tier", "content_type", "updated_at"))
        codes = zip(
            tiers.codes.take(documents).tolist(),
            kinds.codes.take(documents).tolist(),
            moments.codes.take(documents).tolist(),
            self._loaded().take(chosen).tolist(),
            strict=True,
        )
        known: dict[tuple[int, int, int, int], ChunkSignals] = {}
        found = []
        for key in codes:
            signals = known.get(key)
            if signals is None:
                tier, kind, moment, measured = key
                signals = known[key] = _signals(tiers.values[tier], kinds.values[kind], moments.values[moment], measured)
            found.append(signals)
        return found

    def _loaded(self) -> NDArray[np.uint32]:
        """Return the four features of every place as one number: texts that are alike share one."""
        if self._features is None:
            parts = [features_of(segment) for segment in self._segments]
            self._features = np.ascontiguousarray(np.concatenate(parts)).view("<u4").reshape(-1)
        return self._features


def _signals(tier: object, kind: object, moment: object, measured: int) -> ChunkSignals:
    content_type = ContentType(str(kind))
    return ChunkSignals(
        authority_tier=AuthorityTier(str(tier)),
        content_type=content_type,
        updated_at=moment if isinstance(moment, datetime) else None,
        features=_features(measured, content_type),
    )


@lru_cache(maxsize=_REMEMBERED_FEATURES)
def _features(measured: int, kind: ContentType) -> ContentFeatures:
    code, commands, configuration, specificity = measured.to_bytes(FEATURE_COUNT, "little")
    return of_type(ContentFeatures(code=code, commands=commands, configuration=configuration, specificity=specificity), kind)
