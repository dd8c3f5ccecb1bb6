"""Lists and counts the live documents that a scope shows, in time that follows the page or the change and not the base.

A page is read by key. Documents that share a source and an access rule are a group: access is decided once for a group, the
attribute rules of a scope once for each document of a page.
"""

from __future__ import annotations

import threading
from contextlib import closing
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from evidentia.backends.embedded.records import schema
from evidentia.backends.embedded.records.commit_log import stored_head
from evidentia.backends.embedded.records.database import open_for_searching, select_in, storage_errors
from evidentia.backends.embedded.records.metadata_columns import record_of
from evidentia.contracts.access import AccessRule
from evidentia.contracts.canonical import encode_struct
from evidentia.contracts.decoding import convert
from evidentia.contracts.documents import DocumentMetadata
from evidentia.contracts.ids import DocumentId, SourceId
from evidentia.contracts.predicates import matcher_of
from evidentia.contracts.sources import SourceCount
from evidentia.contracts.vocabulary import Classification
from evidentia.foundation.lru import LruCache
from evidentia.policy.access import is_allowed

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from evidentia.contracts.search import AccessScope

    ListedDocument = tuple[DocumentId, AccessRule, int]


class RowFilter:
    """Tells what a scope shows of documents as they are stored; None shows everything. Not thread safe."""

    def __init__(self, scope: AccessScope | None) -> None:
        self._scope = scope
        self._admitted: dict[bytes, bool] = {}
        self._matchers = () if scope is None else tuple(matcher_of(rule) for rule in scope.rules)

    @property
    def has_rules(self) -> bool:
        """Tell whether a document's own fields take part."""
        return bool(self._matchers)

    def admits(self, rule: bytes) -> bool:
        """Tell whether an access rule lets the caller in; very many documents share few."""
        if self._scope is None:
            return True
        known = self._admitted.get(rule)
        if known is None:
            known = self._admitted[rule] = is_allowed(schema.decode_access(rule), self._scope)
        return known

    def passes(self, document_id: DocumentId, metadata: bytes, rule: bytes) -> bool:
        """Tell whether a document passes the attribute rules, whatever its access rule says of the caller."""
        if not self._matchers:
            return True
        record = record_of(document_id, metadata, rule)
        return all([matches(record) for matches in self._matchers])  # noqa: C419 - every rule is asked, so that no time tells which holds

    def shows(self, document_id: DocumentId, metadata: bytes, rule: bytes) -> bool:
        """Tell whether a document is shown."""
        return self.admits(rule) and self.passes(document_id, metadata, rule)


_LAST_RULE: Final = """SELECT v.metadata, a.rule FROM versions v JOIN access_rules a USING (access_key)
    WHERE v.document_id = ? ORDER BY v.version_key DESC LIMIT 1"""

_NOBODYS: Final = AccessRule(classification=Classification.RESTRICTED, acl=("user:",))
_NO_DOCUMENT: Final = encode_struct(DocumentMetadata(source_id=SourceId(""))), encode_struct(_NOBODYS)


def is_shown(database: sqlite3.Connection, document_id: DocumentId, *, scope: AccessScope) -> bool | None:
    """Tell whether a scope shows a document by the last rule it had; None when there is no such document."""
    row = database.execute(_LAST_RULE, (document_id,)).fetchone()
    # A document that is not there is decided like one that is hidden, so that the time does not tell which of the two it is.
    metadata, rule = _NO_DOCUMENT if row is None else row
    shown = RowFilter(scope)
    is_seen = shown.admits(rule) & shown.passes(document_id, metadata, rule)  # both, whatever the first says
    return None if row is None else is_seen


# --- pages ---

PAGE: Final = 2_000
"""How many documents are looked at in one go where the whole list, or a rule that few pass, is asked for."""
_BY_ID: Final = """SELECT document_id, version_key FROM versions INDEXED BY versions_by_document
    WHERE document_id > ? AND removed_seq IS NULL ORDER BY document_id LIMIT ?"""
_BY_GROUP: Final = """SELECT document_id, version_key FROM versions
    WHERE source_id = ? AND access_key = ? AND document_id > ? AND removed_seq IS NULL ORDER BY document_id LIMIT ?"""
_NEXT_RULE: Final = """SELECT source_id, access_key FROM versions
    WHERE removed_seq IS NULL AND source_id = ? AND access_key > ? ORDER BY access_key LIMIT 1"""
_NEXT_SOURCE: Final = """SELECT source_id, access_key FROM versions
    WHERE removed_seq IS NULL AND source_id > ? ORDER BY source_id, access_key LIMIT 1"""
_DETAILS: Final = """SELECT v.document_id, v.metadata, a.rule, r.chunk_count FROM versions v JOIN revisions r USING (revision_key)
    JOIN access_rules a USING (access_key) WHERE v.version_key IN (%s)"""


def list_documents(database: sqlite3.Connection, *, scope: AccessScope | None, after: str, limit: int | None) -> list[ListedDocument]:
    """Return the first live documents after an id that a scope shows, by id, with their access rule and number of chunks."""
    shown = RowFilter(scope)
    groups = _admitted_groups(database, shown) if schema.holds_list_indexes(database) else None
    found: list[ListedDocument] = []
    step = PAGE if limit is None else limit
    while limit is None or len(found) < limit:
        keys = _keys_after(database, after, groups=groups, count=step)
        rows = sorted(select_in(database, _DETAILS, [key for _, key in keys]))
        found += [(row[0], schema.decode_access(row[2]), row[3]) for row in rows if shown.shows(*row[:3])]
        if len(keys) < step:
            break
        after, step = keys[-1][0], max(step, min(2 * step, PAGE))
    return found if limit is None else found[:limit]


def _admitted_groups(database: sqlite3.Connection, shown: RowFilter) -> list[tuple[str, int]] | None:
    """Return the groups that a scope may see anything of; None where it may see all of them."""
    rules = dict(database.execute("SELECT access_key, rule FROM access_rules"))
    if all(map(shown.admits, rules.values())):
        return None
    return [(source, key) for source, key in _groups(database) if shown.admits(rules[key])]


def _groups(database: sqlite3.Connection) -> Iterator[tuple[str, int]]:
    """Yield each group once, by a seek for each: they are few, and their documents many."""
    group = database.execute(_NEXT_SOURCE, ("",)).fetchone()
    while group is not None:
        yield group
        group = database.execute(_NEXT_RULE, group).fetchone() or database.execute(_NEXT_SOURCE, group[:1]).fetchone()


def _keys_after(
    database: sqlite3.Connection, after: str, *, groups: Sequence[tuple[str, int]] | None, count: int
) -> list[tuple[DocumentId, int]]:
    if groups is None:
        return database.execute(_BY_ID, (after, count)).fetchall()
    found: list[tuple[DocumentId, int]] = []
    for group in groups:
        found += database.execute(_BY_GROUP, (*group, after, count))
    return sorted(found)[:count]


# --- counts ---

KEPT_COUNTS: Final = 64
_ALL: Final = "versions v", "v.removed_seq IS NULL"
# Keys are handed out from the end, so that what began after a commit stands after what began before it.
_BEGAN: Final = "versions v NOT INDEXED", "v.version_key >= :first AND v.removed_seq IS NULL"
_ENDED: Final = "versions v", "v.removed_seq > :since AND v.added_seq <= :since"
_GROUP: Final = "versions v", "v.removed_seq IS NULL AND v.source_id = :source AND v.access_key = :access"
_NEWEST: Final = "json_extract(v.metadata, '$.updated_at')"
_COLUMNS: Final = f"v.access_key, v.document_id, v.metadata, a.rule, r.chunk_count, coalesce({_NEWEST}, '')"
_JOINS: Final = "CROSS JOIN revisions r USING (revision_key) CROSS JOIN access_rules a ON a.access_key = v.access_key"
_KEY_PROBE: Final = "SELECT version_key, added_seq FROM versions WHERE version_key >= ? ORDER BY version_key LIMIT 1"


class Tally(NamedTuple):
    """How many documents there are, how many chunks they have, and when the newest was changed, as far as they say."""

    documents: int = 0
    chunks: int = 0
    newest: str = ""

    def plus(self, other: Tally) -> Tally:
        """Return both together."""
        return Tally(self.documents + other.documents, self.chunks + other.chunks, max(self.newest, other.newest))


_Groups = dict[tuple[str, int], Tally]


class _Counted(NamedTuple):
    sequence: int
    groups: _Groups


class LiveCounts:
    """Counts what is live by group, keeps it, and brings it up to date by what began and ended since. Thread safe."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._kept: LruCache[tuple[bool, tuple[bytes, ...]], _Counted] = LruCache(KEPT_COUNTS)

    def by_source(self, scope: AccessScope | None, *, is_dated: bool = False) -> Mapping[SourceId, SourceCount]:
        """Return how many documents of each source a scope shows, by id; the moment of the newest only where it is asked for."""
        with storage_errors(self._directory), closing(open_for_searching(self._directory)) as database:
            database.execute("BEGIN")
            found = self.tallies(database, scope, is_detailed=is_dated)
        return {source: SourceCount(each.documents, _moment(each.newest)) for source, each in found.items()}

    def tallies(self, database: sqlite3.Connection, scope: AccessScope | None, *, is_detailed: bool) -> dict[SourceId, Tally]:
        """Return what a scope shows of each source; documents alone are counted in a tenth of the time.

        The caller has begun a transaction and read nothing in it.
        """
        shown = RowFilter(scope)
        rules = () if scope is None else tuple(map(encode_struct, scope.rules))
        with self._lock:  # one counts, and the others find it counted
            counted = self._brought_up(database, shown, self._kept.get((is_detailed, rules)), is_detailed=is_detailed)
            self._kept.put((is_detailed, rules), counted)
        access = dict(database.execute("SELECT access_key, rule FROM access_rules"))
        found: dict[SourceId, Tally] = {}
        for (source, key), tally in sorted(counted.groups.items()):
            if tally.documents and shown.admits(access[key]):
                found[SourceId(source)] = found.get(SourceId(source), Tally()).plus(tally)
        return found

    def _brought_up(self, database: sqlite3.Connection, shown: RowFilter, kept: _Counted | None, *, is_detailed: bool) -> _Counted:
        head = stored_head(database)[0]
        if kept is None or not head.oldest_readable <= kept.sequence <= head.sequence:  # a collection may have taken what ended since
            return _Counted(head.sequence, _count(database, _ALL, shown, is_detailed=is_detailed))
        if kept.sequence == head.sequence:
            return kept
        groups = dict(kept.groups)
        since = {"since": kept.sequence, "first": first_key_after(database, kept.sequence)}
        for group, gone in _count(database, _ENDED, shown, since, is_detailed=is_detailed).items():
            left = groups[group]
            newest = left.newest
            if gone.newest and gone.newest == newest:
                again = {"source": group[0], "access": group[1]}
                newest = _count(database, _GROUP, shown, again, is_detailed=is_detailed).get(group, Tally()).newest
            groups[group] = Tally(left.documents - gone.documents, left.chunks - gone.chunks, newest)
        for group, come in _count(database, _BEGAN, shown, since, is_detailed=is_detailed).items():
            groups[group] = groups.get(group, Tally()).plus(come)
        return _Counted(head.sequence, groups)


def began_after(database: sqlite3.Connection, scope: AccessScope | None, since: int) -> dict[int, Tally]:
    """Return what is live that began after a commit and that a scope shows, by the commit it began with."""
    shown = RowFilter(scope)
    access = dict(database.execute("SELECT access_key, rule FROM access_rules"))
    values = {"first": first_key_after(database, since)}
    found: dict[int, Tally] = {}
    for (added, key), tally in _count(database, _BEGAN, shown, values, by="v.added_seq", is_detailed=True).items():
        if shown.admits(access[key]):
            found[added] = found.get(added, Tally()).plus(tally)
    return found


def first_key_after(database: sqlite3.Connection, sequence: int) -> int:
    """Return the key from which on versions of documents began after a commit, by a binary search."""
    low, high = 0, database.execute("SELECT coalesce(max(version_key) + 1, 0) FROM versions").fetchone()[0]
    while low < high:
        middle = (low + high) // 2
        key, added = database.execute(_KEY_PROBE, (middle,)).fetchone()
        low, high = (low, middle) if added > sequence else (key + 1, high)
    return int(low)


def _count(
    database: sqlite3.Connection,
    which: tuple[str, str],
    shown: RowFilter,
    values: Mapping[str, object] | None = None,
    *,
    by: str = "v.source_id",
    is_detailed: bool,
) -> dict[tuple[Any, int], Tally]:
    """Count versions by a column and their access rule, in the database where access rules decide alone. Any: what the column holds."""
    table, condition = which
    given = values or {}
    if shown.has_rules:
        groups: dict[tuple[Any, int], Tally] = {}
        for group, tally in _matching(database, f"SELECT {by}, {_COLUMNS} FROM {table} {_JOINS} WHERE {condition}", given, shown):
            groups[group] = groups.get(group, Tally()).plus(tally)
        return groups
    details, join = (f"SUM(r.chunk_count), MAX({_NEWEST})", "CROSS JOIN revisions r USING (revision_key)") if is_detailed else ("0, ''", "")
    statement = f"SELECT {by}, v.access_key, COUNT(*), {details} FROM {table} {join} WHERE {condition} GROUP BY 1, 2"
    found = database.execute(statement, given)
    return {(value, key): Tally(count, chunks, newest or "") for value, key, count, chunks, newest in found}


def _matching(
    database: sqlite3.Connection, statement: str, values: Mapping[str, object], shown: RowFilter
) -> Iterator[tuple[tuple[Any, int], Tally]]:
    for value, key, document_id, metadata, rule, chunks, newest in database.execute(statement, values):
        if shown.passes(document_id, metadata, rule):  # callers who share the rules share what is kept
            yield (value, key), Tally(1, chunks, newest)


def _moment(text: str) -> datetime | None:
    return convert(text, datetime, strict=False) if text else None
