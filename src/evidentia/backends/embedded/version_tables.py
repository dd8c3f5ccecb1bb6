"""What everybody who searches one version shares: its documents, their metadata, its terms, and which sources it has for whom.

Loading reads every document. A version is otherwise derived from another one, in time that follows what happened between the two: the
events of the log name the documents that differ, and whatever concerns no other document or segment is shared.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from evidentia.backends.embedded.lexical.term_dictionary import TermDictionary
from evidentia.backends.embedded.records.document_table import DocumentTable, SignalTable, TableChange, touched_documents
from evidentia.backends.embedded.records.metadata_columns import MetadataColumns
from evidentia.contracts.vocabulary import AuthorityTier

if TYPE_CHECKING:
    import sqlite3
    import threading
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from evidentia.backends.embedded.lexical.segments import Segment
    from evidentia.backends.embedded.records.metadata_columns import DocumentRecord
    from evidentia.backends.embedded.stored_tables import StoredTables
    from evidentia.contracts.ids import SourceId
    from evidentia.contracts.provenance import CommitRecord

WORTH_DERIVING = 4
"""A version is loaded where more than one document in this many differs: adding them one by one costs more than reading all in a row."""
_FEW = 256


class VersionTables:
    """The tables of one version. Thread safe; derived by one thread at a time."""

    def __init__(self, table: DocumentTable, columns: MetadataColumns, terms: TermDictionary, *, commit: CommitRecord) -> None:
        self.table = table
        self.columns = columns
        self.terms = terms
        self.signals = SignalTable(table, columns)
        self.commit = commit
        self._tally: Counter[tuple[int, int, int]] = Counter()

    @classmethod
    def load(
        cls,
        database: sqlite3.Connection,
        *,
        reading: sqlite3.Connection,
        lock: threading.RLock,
        commit: CommitRecord,
        segments: Sequence[Segment],
        former: VersionTables | None = None,
        stored: StoredTables | None = None,
    ) -> VersionTables:
        """Load a version through `reading`, or take what was stored of it; `database` is asked later, under the lock.

        What `former` knows of segments is used.
        """
        documents = None if stored is None else stored.documents
        table = DocumentTable(database, sequence=commit.sequence, segments=segments, reading=reading, stored=documents)
        columns = MetadataColumns(lambda: table.records(reading), None if stored is None else stored.columns)
        if stored is None:
            columns.prepare()
        terms = TermDictionary(segments, former=None if former is None else former.terms)
        loaded = cls(table, MetadataColumns(_under(lock, table), columns.laid_out), terms, commit=commit)
        loaded._count(np.arange(len(table.version_keys)))
        return loaded

    def derived(
        self, reading: sqlite3.Connection, *, lock: threading.RLock, commit: CommitRecord, segments: Sequence[Segment]
    ) -> tuple[VersionTables, TableChange] | None:
        """Return the tables of another version, and what they differ in; None where too much does, or rows of this one were collected."""
        events = abs(commit.log_size - self.commit.log_size)
        is_much = events > max(_FEW, len(self.table.chunk_keys) // WORTH_DERIVING)
        if is_much or commit.oldest_readable != self.commit.oldest_readable:
            return None
        touched = touched_documents(reading, self.commit.log_size, commit.log_size)
        table, change = self.table.derived(reading, sequence=commit.sequence, touched=touched, segments=segments)
        added = [record for records in table.records(reading, start=change.first_new) for record in records]
        columns = self.columns.plus(_under(lock, table), added)
        other = VersionTables(table, columns, TermDictionary(segments, former=self.terms), commit=commit)
        other._tally = self._tally.copy()
        other._count(change.come)
        other._count(change.gone, times=-1)
        return other, change

    def is_of(self, commit: CommitRecord, names: Sequence[str]) -> bool:
        """Tell whether these are the tables of a version over segments of these names: what changes a document is an event of the log."""
        is_same = (self.commit.log_size, self.commit.oldest_readable) == (commit.log_size, commit.oldest_readable)
        return is_same and [segment.name for segment in self.table.segments] == list(names)

    def prepare(self) -> None:
        """Lay out what the first look-up of a term would have to."""
        self.terms.prepare()

    def sources(self, is_admitted: Callable[[int], bool]) -> Mapping[SourceId, AuthorityTier]:
        """Return the sources that have a chunk under one of some access rules, with their highest authority, ordered by name."""
        tiers = self.columns.column("authority_tier").values
        return _highest(
            (self.table.sources[source], tiers[tier]) for (source, tier, rule), count in self._tally.items() if count and is_admitted(rule)
        )

    def sources_of(self, documents: NDArray[np.bool_]) -> Mapping[SourceId, AuthorityTier]:
        """Return the sources of some documents, with their highest authority, ordered by name."""
        tiers = self.columns.column("authority_tier")
        kinds = len(tiers.values)
        pairs = np.unique(self.table.source_codes[documents].astype(np.int64) * kinds + tiers.codes[documents])
        return _highest((self.table.sources[pair // kinds], tiers.values[pair % kinds]) for pair in pairs.tolist())

    def _count(self, documents: NDArray[np.int64], *, times: int = 1) -> None:
        table, tiers = self.table, self.columns.column("authority_tier")
        shown = documents[table.chunk_counts[documents] > 0]
        kinds, rules = len(tiers.values), max(table.rules, default=0) + 1
        keys = (table.source_codes[shown].astype(np.int64) * kinds + tiers.codes[shown]) * rules + table.access_keys[shown]
        found, counts = np.unique(keys, return_counts=True)
        for key, count in zip(found.tolist(), counts.tolist(), strict=True):
            self._tally[key // rules // kinds, key // rules % kinds, key % rules] += times * count


def _highest(pairs: Iterator[tuple[SourceId, object]]) -> Mapping[SourceId, AuthorityTier]:
    highest: dict[SourceId, AuthorityTier] = {}
    for name, tier in pairs:
        if isinstance(tier, AuthorityTier) and (name not in highest or tier.rank > highest[name].rank):
            highest[name] = tier
    return dict(sorted(highest.items()))


def _under(lock: threading.RLock, table: DocumentTable) -> Callable[[], Iterator[Sequence[DocumentRecord]]]:
    """Return what reads a table's records; the lock is held for some at a time, so that nobody waits for all of them."""

    def read() -> Iterator[Sequence[DocumentRecord]]:
        records = table.records()
        while True:
            with lock:
                some = next(records, None)
            if some is None:
                return
            yield some

    return read
