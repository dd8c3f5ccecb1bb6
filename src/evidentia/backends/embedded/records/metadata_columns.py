"""Metadata as columns: a filter is decided once per distinct value instead of once per document.

A column holds one code per document and the distinct values behind the codes, so that boolean algebra over documents is a few array
operations, exactly equal to deciding the filter document by document. A version adds the codes of its new documents to the columns
of the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Final, get_type_hints

import numpy as np

from evidentia.backends.embedded.records import schema
from evidentia.backends.embedded.records.growing_array import GrowingArray
from evidentia.contracts.access import AccessRule
from evidentia.contracts.decoding import decode_json
from evidentia.contracts.documents import DocumentMetadata
from evidentia.contracts.ids import SourceId
from evidentia.contracts.predicates import And, Atom, Not, Or, Predicate, matcher_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


EXTRA_PREFIX = "extra."
_REMEMBERED_RULES: Final = 256
_READERS: Final[Mapping[str, Callable[[DocumentRecord], object]]] = {
    **{name: attrgetter(f"facts.{name}") for name in DocumentMetadata.__struct_fields__},
    **{name: attrgetter(f"access.{name}") for name in ("tenant", "classification")},
    "document_id": attrgetter("document_id"),
}
LoadRecords = Callable[[], Iterable[Sequence["DocumentRecord"]]]
_WIDE: Final = {"document_id", "title", "path", "layout", "remarks", "extra"}
_TYPES: Final[Mapping[str, object]] = get_type_hints(AccessRule) | get_type_hints(DocumentMetadata)
PREPARED_FIELDS: Final = tuple(name for name in _READERS if name not in _WIDE)
"""The fields that are laid out ahead, with every `extra.` field that occurs; others differ in most documents and wait until asked for."""


class MetadataColumn:
    """One field of every document: `values[codes[d]]` is document d's; a set is one value.

    Columns of several versions share their values, of which a version's codes may not use all.
    """

    __slots__ = ("_grown", "_numbers", "codes", "values")

    def __init__(self, codes: GrowingArray, values: list[object], numbers: dict[object, int] | None = None) -> None:
        """Take codes and values; their numbers are worked out when there is something to add."""
        self._grown = codes
        self.codes: NDArray[np.unsignedinteger] = codes.array
        self.values = values
        self._numbers = numbers

    @classmethod
    def of(cls, values: Sequence[object]) -> MetadataColumn:
        """Return the column of some documents."""
        return cls(GrowingArray(np.empty(0, dtype=np.uint8)), []).plus(values)

    @classmethod
    def absent(cls, count: int) -> MetadataColumn:
        """Return the column of a field that none of so many documents has."""
        return cls(GrowingArray(np.zeros(count, dtype=np.uint8)), [None])

    def plus(self, values: Sequence[object]) -> MetadataColumn:
        """Return the column with the values of more documents."""
        if self._numbers is None:
            self._numbers = {_spelling(value): code for code, value in enumerate(self.values)}
        numbers, spelt = self._numbers, values
        if datetime in set(map(type, values)):
            spelt = [_spelling(value) for value in values]
        if not numbers.keys() >= set(spelt):
            for value, spelling in zip(values, spelt, strict=True):
                if spelling not in numbers:
                    numbers[spelling] = len(self.values)
                    self.values.append(value)
        width = np.promote_types(self.codes.dtype, np.min_scalar_type(len(self.values)))
        grown = self._grown if width == self.codes.dtype else GrowingArray(self.codes.astype(width))
        added = np.fromiter(map(numbers.__getitem__, spelt), dtype=width, count=len(spelt))
        return MetadataColumn(grown.plus(added), self.values, numbers)


class MetadataColumns:
    """The fields of a version's documents. Thread safe under the GIL; versions are derived by one thread at a time.

    `load` reads every document again, some at a time, for fields that are not laid out yet.
    """

    def __init__(self, load: LoadRecords, columns: Mapping[str, MetadataColumn] | None = None) -> None:
        self._load = load
        self._columns: dict[str, MetadataColumn] = dict(columns or {})

    @property
    def laid_out(self) -> dict[str, MetadataColumn]:
        """Return the columns that there are so far."""
        return dict(self._columns)

    def prepare(self) -> None:
        """Lay out the fields that ranking, filters and facets use most, in one pass over the documents."""
        columns = MetadataColumns(self._load, {field: MetadataColumn.of(()) for field in PREPARED_FIELDS})
        for records in self._load():
            columns = columns.plus(self._load, records)
        self._columns |= columns.laid_out

    def plus(self, load: LoadRecords, records: Sequence[DocumentRecord]) -> MetadataColumns:
        """Return the columns with more documents."""
        columns = self.laid_out
        for name in sorted({name for record in records for name in record.facts.extra}) if self._is_prepared else ():
            if EXTRA_PREFIX + name not in columns:
                columns[EXTRA_PREFIX + name] = MetadataColumn.absent(self._count)
        return MetadataColumns(load, {field: column.plus(_values(records, field)) for field, column in columns.items()})

    def column(self, field: str) -> MetadataColumn:
        """Return the column of a field; a free field that nobody has costs what one does that somebody has."""
        if field.startswith(EXTRA_PREFIX) and self._is_prepared:
            return self._columns.get(field, self._absent)
        if field not in self._columns:
            self._columns[field] = self._lay_out(field)
        return self._columns[field]

    @cached_property
    def _absent(self) -> MetadataColumn:
        return MetadataColumn.absent(self._count)

    def _lay_out(self, field: str) -> MetadataColumn:
        column = MetadataColumn.of(())
        for records in self._load():
            column = column.plus(_values(records, field))
        return column

    @property
    def _is_prepared(self) -> bool:
        """Tell whether every `extra.` field that a document has is laid out."""
        return PREPARED_FIELDS[0] in self._columns

    @property
    def _count(self) -> int:
        return len(self.column(PREPARED_FIELDS[0]).codes)

    def decide(self, predicate: Predicate, *, start: int = 0) -> NDArray[np.bool_]:
        """Return which documents pass, from a number on."""
        if isinstance(predicate, And):
            return self._all([self.decide(clause, start=start) for clause in predicate.clauses], start=start)
        if isinstance(predicate, Or):
            return ~self._all([~self.decide(clause, start=start) for clause in predicate.clauses], start=start)
        if isinstance(predicate, Not):
            return ~self.decide(predicate.clause, start=start)
        return self._decide_atom(predicate, start=start)

    def _decide_atom(self, atom: Atom, *, start: int) -> NDArray[np.bool_]:
        column = self.column(atom.field)
        codes, values, matcher = column.codes[start:], column.values, matcher_of(atom)
        if len(codes) < len(values):
            decided = {code: matcher({atom.field: values[code]}) for code in set(codes.tolist())}
            return np.fromiter((decided[code] for code in codes.tolist()), dtype=np.bool_, count=len(codes))
        count = len(values)  # once: another thread may add to them
        passes = np.fromiter((matcher({atom.field: value}) for value in values[:count]), dtype=np.bool_, count=count)
        passed: NDArray[np.bool_] = passes[codes]
        return passed

    def _all(self, decided: Sequence[NDArray[np.bool_]], *, start: int) -> NDArray[np.bool_]:
        together = np.ones(self._count - start, dtype=np.bool_)
        for each in decided:
            together &= each
        return together


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


def is_prepared(field: str) -> bool:
    """Tell whether a field is laid out ahead."""
    return field in PREPARED_FIELDS or field.startswith(EXTRA_PREFIX)


def decode_values(field: str, encoded: bytes) -> list[object]:
    """Return the values of a column from JSON."""
    kind = str if field.startswith(EXTRA_PREFIX) else _TYPES[field]
    decoded: list[object] = decode_json(encoded, list[kind | None])  # type: ignore[valid-type]  # known at run time only
    return decoded


NO_RECORD: Final = DocumentRecord("", facts=DocumentMetadata(source_id=SourceId("")), access=AccessRule())
"""Stands for a document that is gone for good."""


def record_of(document_id: str, metadata: bytes, rule: bytes) -> DocumentRecord:
    """Return the fields of a document that filters and facets may name."""
    return DocumentRecord(document_id, facts=schema.decode_metadata(metadata), access=access_of(rule))


@lru_cache(maxsize=_REMEMBERED_RULES)
def access_of(rule: bytes) -> AccessRule:
    """Return an access rule; very many documents share few."""
    return schema.decode_access(rule)


def _spelling(value: object) -> object:
    """Return what tells a value from others: equal instants with other offsets are equal keys, and one would spell the rest."""
    return value.isoformat() if isinstance(value, datetime) else value


def _values(records: Sequence[DocumentRecord], field: str) -> list[object]:
    if field.startswith(EXTRA_PREFIX):
        name = field.removeprefix(EXTRA_PREFIX)
        return [record.facts.extra.get(name) for record in records]
    reader = _READERS.get(field)
    return [None] * len(records) if reader is None else list(map(reader, records))
