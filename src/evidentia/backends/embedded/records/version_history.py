"""Which versions a base has had, what each still shows, and what differs between two; each as one caller may see it.

A version is restricted to what a caller may see in it before anything is counted or compared: by the rule that a document had
there and by the last one it had. So what a caller may not see changes neither a number nor a list.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.backends.embedded.records import schema
from evidentia.backends.embedded.records.database import open_for_reading, storage_errors
from evidentia.backends.embedded.records.metadata_columns import record_of
from evidentia.contracts.documents import ChangedDocument, ChangedDocuments, VersionDiff, VersionSummary
from evidentia.contracts.errors import InvalidFieldError, NotFoundError, VersionCollectedError
from evidentia.contracts.ids import CorpusVersion, DocumentId, EvidenceState, SourceId
from evidentia.contracts.ports import VersionHistory
from evidentia.contracts.predicates import matches
from evidentia.policy.access import is_allowed

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from evidentia.contracts.provenance import CommitRecord
    from evidentia.contracts.search import AccessScope

SHORTEST_BEGINNING: Final = 8
"""Digits of a hash that name a version."""
_ROWS: Final = """SELECT v.document_id, v.source_id, v.revision_key, r.chunk_count, v.metadata, a.rule,
    v.added_seq, v.removed_seq, l.metadata, b.rule
    FROM versions v JOIN revisions r USING (revision_key) JOIN access_rules a ON a.access_key = v.access_key
    JOIN versions l ON l.version_key = (SELECT max(version_key) FROM versions o WHERE o.document_id = v.document_id)
    JOIN access_rules b ON b.access_key = l.access_key
    WHERE v.added_seq <= :newest AND (v.removed_seq IS NULL OR v.removed_seq > :oldest) ORDER BY v.document_id, v.version_key"""
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

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def versions(self, *, limit: int, scope: AccessScope | None) -> list[VersionSummary]:
        """Return the newest versions, newest first."""
        with self._reading() as database:
            return _summaries(database, _commits(database, limit=limit), scope)

    def diff(self, older: int | str, newer: int | str, *, limit: int, scope: AccessScope | None) -> VersionDiff:
        """Return what differs between two versions that can be read, at most `limit` documents of each kind."""
        with self._reading() as database:
            commits = _commits(database)
            pair = [_named(commits, name) for name in (older, newer)]
            for commit in pair:
                if commit.sequence < commits[0].oldest_readable:
                    raise VersionCollectedError(str(commit.sequence))
            return _diff(database, pair, limit=limit, scope=scope)

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with storage_errors(self._directory), closing(open_for_reading(self._directory)) as database:
            database.execute("BEGIN")
            yield database


def _commits(database: sqlite3.Connection, *, limit: int = -1) -> list[CommitRecord]:
    found = database.execute("SELECT record FROM commits ORDER BY sequence DESC LIMIT ?", (limit,))
    return [schema.decode_commit(record) for (record,) in found]


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


def _summaries(database: sqlite3.Connection, commits: Sequence[CommitRecord], scope: AccessScope | None) -> list[VersionSummary]:
    """Count what versions show in one pass: a row adds to the version that brought it and takes away from the one that ended it."""
    head = commits[0]
    oldest = max(head.oldest_readable, commits[-1].sequence)
    steps: dict[int, tuple[int, int]] = {}
    for row in _visible(database, scope, oldest=oldest, newest=head.sequence):
        for sequence, sign in ((max(row.added, oldest), 1), (row.removed, -1)):
            if sequence is not None:
                documents, chunks = steps.get(sequence, (0, 0))
                steps[sequence] = documents + sign, chunks + sign * row.chunk_count
    counts: dict[int, tuple[int, int]] = {}
    documents = chunks = 0
    for sequence in range(oldest, head.sequence + 1):
        more_documents, more_chunks = steps.get(sequence, (0, 0))
        documents, chunks = documents + more_documents, chunks + more_chunks
        counts[sequence] = documents, chunks
    return [_summary(commit, counts.get(commit.sequence)) for commit in commits]


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


def _diff(database: sqlite3.Connection, pair: Sequence[CommitRecord], *, limit: int, scope: AccessScope | None) -> VersionDiff:
    ends = [commit.sequence for commit in pair]
    sides: tuple[dict[DocumentId, _VersionRow], dict[DocumentId, _VersionRow]] = ({}, {})
    counts = [[0, 0], [0, 0]]
    for row in _visible(database, scope, oldest=min(ends), newest=max(ends)):
        for side, count, sequence in zip(sides, counts, ends, strict=True):
            if row.is_in(sequence):
                side[row.document_id] = row
                count[0] += 1
                count[1] += row.chunk_count
    old, new = sides
    both = [document_id for document_id in sorted(new) if document_id in old and old[document_id] is not new[document_id]]

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
    older, newer = (_summary(commit, (count[0], count[1])) for commit, count in zip(pair, counts, strict=True))
    return VersionDiff(older=older, newer=newer, note=note, **lists)


def _is_cut_otherwise(database: sqlite3.Connection, one: _VersionRow, other: _VersionRow) -> bool:
    """Tell whether the chunks differ: what stands before them, such as front matter, is metadata and no content."""
    if one.revision_key == other.revision_key or one.chunk_count != other.chunk_count:
        return one.revision_key != other.revision_key
    return database.execute(_CUT, (one.revision_key,)).fetchall() != database.execute(_CUT, (other.revision_key,)).fetchall()


def _listed(document_ids: Sequence[DocumentId], side: Mapping[DocumentId, _VersionRow], *, limit: int) -> ChangedDocuments:
    first = tuple(ChangedDocument(document_id=each, source_id=side[each].source_id) for each in document_ids[:limit])
    return ChangedDocuments(total=len(document_ids), documents=first)


def _visible(database: sqlite3.Connection, scope: AccessScope | None, *, oldest: int, newest: int) -> Iterator[_VersionRow]:
    """Yield every version of a document that is in one of these versions and that a scope shows."""

    @lru_cache(maxsize=4_096)
    def is_admitted(rule: bytes) -> bool:
        return scope is None or is_allowed(schema.decode_access(rule), scope)

    def shows(document_id: DocumentId, metadata: bytes, rule: bytes) -> bool:
        if scope is None or not is_admitted(rule):
            return scope is None
        return all(matches(each, record_of(document_id, metadata, rule)) for each in scope.rules)

    for found in database.execute(_ROWS, {"oldest": oldest, "newest": newest}):
        row = _VersionRow(*found)
        if shows(row.document_id, row.metadata, row.rule) and shows(row.document_id, row.last_metadata, row.last_rule):
            yield row
