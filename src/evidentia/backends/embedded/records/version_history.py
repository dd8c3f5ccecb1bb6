"""Which versions a base has had, what each still shows, and what differs between two; each as one caller may see it.

A version is restricted to what a caller may see in it before anything is counted or compared: by the rule that a document had
there and by the last one it had. So what a caller may not see changes neither a number nor a list.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.backends.embedded.records import schema
from evidentia.backends.embedded.records.database import open_for_searching, storage_errors
from evidentia.backends.embedded.records.document_list import RowFilter, Tally, began_after, first_key_after
from evidentia.contracts.documents import ChangedDocument, ChangedDocuments, VersionDiff, VersionSummary
from evidentia.contracts.errors import InvalidFieldError, NotFoundError, VersionCollectedError
from evidentia.contracts.ids import CorpusVersion, DocumentId, EvidenceState, SourceId
from evidentia.contracts.ports import VersionHistory
from evidentia.provenance.signed_heads import public_commit

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from evidentia.backends.embedded.records.document_list import LiveCounts
    from evidentia.contracts.provenance import CommitRecord
    from evidentia.contracts.search import AccessScope

SHORTEST_BEGINNING: Final = 8
"""Digits of a hash that name a version."""
_ROWS: Final = """SELECT v.document_id, v.source_id, v.revision_key, r.chunk_count, v.metadata, a.rule,
    v.added_seq, v.removed_seq, l.metadata, b.rule
    FROM %s CROSS JOIN revisions r USING (revision_key) CROSS JOIN access_rules a ON a.access_key = v.access_key
    CROSS JOIN versions l ON l.version_key = (SELECT max(version_key) FROM versions o WHERE o.document_id = v.document_id)
    CROSS JOIN access_rules b ON b.access_key = l.access_key WHERE %s ORDER BY v.document_id, v.version_key"""
_BEGAN: Final = _ROWS % ("versions v NOT INDEXED", "v.version_key >= :first AND v.added_seq <= :newest")
_ENDED: Final = _ROWS % ("versions v", "v.removed_seq > :oldest AND v.added_seq <= :added")
_FOREVER: Final = 1 << 62
_CUT: Final = "SELECT position, content_hash FROM chunks WHERE revision_key = ? ORDER BY position"


class _VersionRow(NamedTuple):
    """A version of a document, with the metadata and the rule that the document had last."""

    document_id: DocumentId
    source_id: SourceId
    revision_key: int
    chunk_count: int
    metadata: bytes
    rule: bytes
    added: int
    removed: int | None
    last_metadata: bytes
    last_rule: bytes

    def is_in(self, sequence: int) -> bool:
        """Tell whether a version shows it."""
        return self.added <= sequence and (self.removed is None or self.removed > sequence)


class EmbeddedHistory(VersionHistory):
    """Reads the history of one base; a scope of None sees everything. Thread safe: each call reads for itself, at one moment."""

    def __init__(self, directory: Path, *, live: LiveCounts) -> None:
        self._directory = directory
        self._live = live

    def versions(self, *, limit: int, scope: AccessScope | None) -> list[VersionSummary]:
        """Return the newest versions, newest first."""
        with self._reading() as database:
            newest = self._newest(database, scope)
            commits = _commits(database, scope, limit=limit)
            kept = [commit.sequence for commit in commits if commit.sequence >= commits[0].oldest_readable]
            counts = _counts(database, newest, kept, scope)
            return [_summary(commit, counts.get(commit.sequence)) for commit in commits]

    def diff(self, older: int | str, newer: int | str, *, limit: int, scope: AccessScope | None) -> VersionDiff:
        """Return what differs between two versions that can be read, at most `limit` documents of each kind."""
        with self._reading() as database:
            newest = self._newest(database, scope)
            commits = _commits(database, scope)
            pair = [_named(commits, name) for name in (older, newer)]
            for commit in pair:
                if commit.sequence < commits[0].oldest_readable:
                    raise VersionCollectedError(str(commit.sequence))
            counts = _counts(database, newest, [commit.sequence for commit in pair], scope)
            return _diff(database, pair, counts, limit=limit, scope=scope)

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with storage_errors(self._directory), closing(open_for_searching(self._directory)) as database:
            database.execute("BEGIN")
            yield database

    def _newest(self, database: sqlite3.Connection, scope: AccessScope | None) -> Tally:
        """Return what the newest version shows."""
        return reduce(Tally.plus, self._live.tallies(database, scope, is_detailed=True).values(), Tally())


def _commits(database: sqlite3.Connection, scope: AccessScope | None, *, limit: int = -1) -> list[CommitRecord]:
    """Return the newest commit records, newest first, as the owner or as everybody else sees them."""
    found = database.execute("SELECT record FROM commits ORDER BY sequence DESC LIMIT ?", (limit,))
    secret = b"" if scope is None else schema.stored_secret(database)
    return [public_commit(schema.decode_commit(record), secret=secret) for (record,) in found]


def _named(commits: Sequence[CommitRecord], name: int | str) -> CommitRecord:
    """Return a version by its number, or the newest one by a hash or the beginning of it."""
    text = str(name)
    if text.isascii() and text.isdecimal():
        found = [commit for commit in commits if str(commit.sequence) == text]
    elif len(text) >= SHORTEST_BEGINNING:
        found = [commit for commit in commits if any(each.startswith(text) for each in _hashes(commit))]
        if len({each for commit in found for each in _hashes(commit) if each.startswith(text)}) > 1:
            raise InvalidFieldError("version", f"'{text}' is how several versions begin; give more of it")
    else:
        found = []
    if not found:
        raise NotFoundError("version", text)
    return found[0]


def _hashes(commit: CommitRecord) -> tuple[str, str]:
    return commit.corpus_version, commit.evidence_state


def _counts(database: sqlite3.Connection, newest: Tally, sequences: Sequence[int], scope: AccessScope | None) -> dict[int, tuple[int, int]]:
    """Count what versions show, documents and chunks, going back from the newest by what began and ended since."""
    oldest = min(sequences, default=0)
    documents, chunks = newest.documents, newest.chunks
    steps: dict[int, tuple[int, int]] = {}

    def step(sequence: int, more_documents: int, more_chunks: int) -> None:
        before = steps.get(sequence, (0, 0))
        steps[sequence] = before[0] + more_documents, before[1] + more_chunks

    for added, tally in began_after(database, scope, oldest).items():
        documents, chunks = documents - tally.documents, chunks - tally.chunks
        step(added, tally.documents, tally.chunks)
    for row in _visible(database, scope, _ENDED, {"oldest": oldest, "added": _FOREVER}):
        if row.added <= oldest:
            documents, chunks = documents + 1, chunks + row.chunk_count
        else:
            step(row.added, 1, row.chunk_count)
        step(row.removed or 0, -1, -row.chunk_count)
    counts: dict[int, tuple[int, int]] = {}
    changed = sorted(steps)
    for sequence in sorted(sequences):
        while changed and changed[0] <= sequence:
            more_documents, more_chunks = steps[changed.pop(0)]
            documents, chunks = documents + more_documents, chunks + more_chunks
        counts[sequence] = documents, chunks
    return counts


def _summary(commit: CommitRecord, counts: tuple[int, int] | None) -> VersionSummary:
    return VersionSummary(
        sequence=commit.sequence,
        corpus_version=CorpusVersion(commit.corpus_version),
        evidence_state=EvidenceState(commit.evidence_state),
        at=commit.committed_at,
        is_kept=counts is not None,
        documents=None if counts is None else counts[0],
        chunks=None if counts is None else counts[1],
    )


def _diff(
    database: sqlite3.Connection,
    pair: Sequence[CommitRecord],
    counts: Mapping[int, tuple[int, int]],
    *,
    limit: int,
    scope: AccessScope | None,
) -> VersionDiff:
    ends = [commit.sequence for commit in pair]
    oldest, newest = min(ends), max(ends)
    sides: tuple[dict[DocumentId, _VersionRow], dict[DocumentId, _VersionRow]] = ({}, {})
    # What is in both versions is the same row, so that only what began or ended between them is read.
    began = _visible(database, scope, _BEGAN, {"first": first_key_after(database, oldest), "newest": newest})
    for row in chain(began, _visible(database, scope, _ENDED, {"oldest": oldest, "added": oldest})):
        for side, sequence in zip(sides, ends, strict=True):
            if row.is_in(sequence) and not all(map(row.is_in, ends)):
                side[row.document_id] = row
    old, new = sides
    both = [document_id for document_id in sorted(new) if document_id in old]

    def differing(is_other: Callable[[_VersionRow, _VersionRow], bool]) -> ChangedDocuments:
        return _listed([each for each in both if is_other(old[each], new[each])], new, limit=limit)

    lists = {
        "added": _listed([each for each in sorted(new) if each not in old], new, limit=limit),
        "removed": _listed([each for each in sorted(old) if each not in new], old, limit=limit),
        "changed": differing(lambda one, other: _is_cut_otherwise(database, one, other)),
        "metadata_changed": differing(lambda one, other: one.metadata != other.metadata),
        "access_changed": differing(lambda one, other: one.rule != other.rule),
    }
    is_cut = any(each.total > len(each.documents) for each in lists.values())
    note = f"only the first {limit} documents of each kind are listed; the totals are whole" if is_cut else ""
    older, newer = (_summary(commit, counts[commit.sequence]) for commit in pair)
    return VersionDiff(older=older, newer=newer, note=note, **lists)


def _is_cut_otherwise(database: sqlite3.Connection, one: _VersionRow, other: _VersionRow) -> bool:
    """Tell whether the chunks differ: what stands before them, such as front matter, is metadata and no content."""
    if one.revision_key == other.revision_key or one.chunk_count != other.chunk_count:
        return one.revision_key != other.revision_key
    return database.execute(_CUT, (one.revision_key,)).fetchall() != database.execute(_CUT, (other.revision_key,)).fetchall()


def _listed(document_ids: Sequence[DocumentId], side: Mapping[DocumentId, _VersionRow], *, limit: int) -> ChangedDocuments:
    first = tuple(ChangedDocument(document_id=each, source_id=side[each].source_id) for each in document_ids[:limit])
    return ChangedDocuments(total=len(document_ids), documents=first)


def _visible(database: sqlite3.Connection, scope: AccessScope | None, statement: str, values: Mapping[str, int]) -> Iterator[_VersionRow]:
    """Yield the versions of documents that a statement finds and that a scope shows."""
    shown = RowFilter(scope)
    for found in database.execute(statement, values):
        row = _VersionRow(*found)
        if shown.shows(row.document_id, row.metadata, row.rule) and shown.shows(row.document_id, row.last_metadata, row.last_rule):
            yield row
