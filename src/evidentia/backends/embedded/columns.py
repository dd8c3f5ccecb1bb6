"""Metadata as columns: a filter is decided once per distinct value instead of once per document.

A column holds one code per document and the distinct values behind the codes, so that boolean algebra over documents
is a few array operations, exactly equal to deciding the filter document by document.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from evidentia.backends.embedded import rows
from evidentia.contracts.documents import DocumentMetadata
from evidentia.contracts.predicates import And, Not, Or, matcher_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from evidentia.contracts.access import AccessRule
    from evidentia.contracts.predicates import Atom, Predicate

EXTRA_PREFIX = "extra."
_REMEMBERED_RULES: Final = 256
_READERS: Final[Mapping[str, Callable[[DocumentRecord], object]]] = {
    **{name: attrgetter(f"facts.{name}") for name in DocumentMetadata.__struct_fields__},
    **{name: attrgetter(f"access.{name}") for name in ("tenant", "classification")},
    "document_id": attrgetter("document_id"),
}


class Column(NamedTuple):
    """One field of every document: `values[codes[d]]` is document d's; a set is one value."""

    codes: NDArray[np.int32]
    values: list[object]


class Columns:
    """The fields of a snapshot's documents, each laid out when it is first asked for. Thread safe under the GIL."""

    def __init__(self, load_records: Callable[[], Sequence[Mapping[str, object]]]) -> None:
        self._load_records = load_records
        self._records: Sequence[Mapping[str, object]] | None = None
        self._columns: dict[str, Column] = {}

    def column(self, field: str) -> Column:
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

    def _lay_out(self, field: str) -> Column:
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
        return Column(codes=codes, values=values)

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
    return DocumentRecord(document_id, facts=rows.decode_metadata(metadata), access=_access_of(rule))


@lru_cache(maxsize=_REMEMBERED_RULES)
def _access_of(rule: bytes) -> AccessRule:
    """Return an access rule; very many documents share few."""
    return rows.decode_access(rule)


def _value(record: Mapping[str, object], field: str) -> object:
    if field.startswith(EXTRA_PREFIX):
        extra = record.get("extra")
        return extra.get(field.removeprefix(EXTRA_PREFIX)) if isinstance(extra, dict) else None
    value = record.get(field)
    return tuple(value) if isinstance(value, list) else value
