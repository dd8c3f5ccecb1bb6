"""The registered sources of every version: each descriptor with the commit that brought it and the one that ended it.

A base from before schema 3 kept those of the newest version only. Its history begins with the commit that `source_history`
names, by number and by hash; what an older version had is then taken to be what the first known one had.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from evidentia.backends.embedded.records import schema
from evidentia.backends.embedded.records.database import open_for_reading, storage_errors
from evidentia.contracts.canonical import encode_struct
from evidentia.contracts.documents import ChangeSet, CommitSummary
from evidentia.contracts.errors import BaseDamagedError, InvalidFieldError, VersionCollectedError
from evidentia.contracts.ids import Sha256, SourceId
from evidentia.contracts.ports import SourceRegistry

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from evidentia.backends.embedded.records.writer import EmbeddedWriter
    from evidentia.contracts.provenance import CommitRecord
    from evidentia.contracts.sources import SourceDescriptor

    Check = Callable[[SourceDescriptor | None, SourceDescriptor], None]


_IN_FORCE = """SELECT source_id, descriptor FROM source_versions
    WHERE added_seq <= :sequence AND (removed_seq IS NULL OR removed_seq > :sequence) ORDER BY source_id"""


def begin_history(database: sqlite3.Connection, *, since: int, record_hash: bytes) -> None:
    """Say from which commit on every descriptor is known, in the transaction that is open."""
    database.execute("DELETE FROM source_history")
    database.execute("INSERT INTO source_history VALUES (?, ?)", (since, record_hash))


def stored_descriptors(database: sqlite3.Connection) -> dict[SourceId, bytes]:
    """Return the canonical bytes of every source of the newest version, ordered by id."""
    if not schema.holds_source_history(database):
        return dict(database.execute("SELECT source_id, descriptor FROM sources ORDER BY source_id"))
    return dict(database.execute("SELECT source_id, descriptor FROM source_versions WHERE removed_seq IS NULL ORDER BY source_id"))


def decoded(stored: Mapping[SourceId, bytes]) -> dict[SourceId, SourceDescriptor]:
    """Return stored descriptors as messages, in the same order."""
    return {source_id: schema.decode_descriptor(descriptor) for source_id, descriptor in stored.items()}


def sources_hash(descriptors: Mapping[SourceId, bytes]) -> Sha256:
    """Return the hash of the registered sources, given the canonical bytes of each as stored, whatever their order.

    The bytes are those of the day on which it was registered, so that a field that descriptors gain later changes no hash.
    """
    ordered = [descriptor for _, descriptor in sorted(descriptors.items())]
    return Sha256(hashlib.sha256(b"[" + b",".join(ordered) + b"]").hexdigest())


def descriptors_at(database: sqlite3.Connection, record: CommitRecord) -> dict[SourceId, SourceDescriptor]:
    """Return the sources of one version, ordered by id; what is returned is what its commit record vouches for, if it is known."""
    database.execute("SAVEPOINT sources")  # a writer may bring the schema up or collect versions between two statements
    try:
        if not schema.holds_source_history(database):
            return decoded(stored_descriptors(database))
        since, _ = _beginning(database)
        stored = dict(database.execute(_IN_FORCE, {"sequence": max(record.sequence, since)}))
        oldest = _oldest_readable(database)
    finally:
        database.execute("RELEASE sources")
    if sources_hash(stored) != record.sources_hash:
        if record.sequence < oldest:
            raise VersionCollectedError(record.corpus_version)
        if record.sequence >= since:
            raise BaseDamagedError("sources", f"they are not those that commit {record.sequence} names")
    return decoded(stored)


def change_sources(database: sqlite3.Connection, changes: Mapping[SourceId, bytes | None], *, sequence: int) -> None:
    """Put descriptors in force from a commit on, and end those that are None, in the transaction that is open."""
    for source_id, descriptor in changes.items():
        database.execute("UPDATE source_versions SET removed_seq = ? WHERE source_id = ? AND removed_seq IS NULL", (sequence, source_id))
        if descriptor is not None:
            database.execute("INSERT INTO source_versions VALUES (?, ?, NULL, ?)", (source_id, sequence, descriptor))


def forget_sources(database: sqlite3.Connection, *, oldest: int) -> None:
    """Drop what no version from `oldest` on had, in the transaction that is open; the history begins there then."""
    since, _ = _beginning(database)
    if since >= oldest:
        return
    database.execute("DELETE FROM source_versions WHERE removed_seq <= ?", (oldest,))
    database.execute("UPDATE source_versions SET added_seq = ? WHERE added_seq < ?", (oldest, oldest))
    (record_hash,) = database.execute("SELECT record_hash FROM commits WHERE sequence = ?", (oldest,)).fetchone()
    begin_history(database, since=oldest, record_hash=record_hash)


def source_faults(database: sqlite3.Connection, commits: Iterator[tuple[CommitRecord, Sha256]]) -> Iterator[tuple[str, str]]:
    """Yield (where, problem) for the first version whose sources are not those that its commit record names.

    Every commit from the beginning of the history on is compared, so every row is spoken for by a hash.
    """
    if not schema.holds_source_history(database):
        *_, (head, _) = commits
        yield from _bytes_faults(stored_descriptors(database).items())
        yield from _commit_faults(head, stored_descriptors(database))
        return
    stored = database.execute(
        "SELECT source_id, added_seq, removed_seq, descriptor FROM source_versions ORDER BY source_id, added_seq"
    ).fetchall()
    yield from _bytes_faults((source_id, descriptor) for source_id, _, _, descriptor in stored)
    since, since_hash = _beginning(database)
    changed = {sequence for _, added, removed, _ in stored for sequence in (added, removed) if sequence is not None}
    present: dict[SourceId, bytes] = {}
    last = -1
    for record, record_hash in commits:
        last = record.sequence
        if last < since:
            continue
        if last == since and record_hash != since_hash:
            yield "sources", f"their history does not begin with commit {since}"
        if last in changed:
            present = {name: each for name, added, removed, each in stored if added <= last and (removed is None or removed > last)}
        yield from _commit_faults(record, present)
    free: dict[SourceId, int] = {}
    for source_id, added, removed, _ in stored:
        end = last + 1 if removed is None else removed
        if not free.get(source_id, since) <= added < end <= last + (removed is None):
            yield f"source '{source_id}'", "its descriptor is in force where another one is, or in versions that are not there"
        free[source_id] = end


def _commit_faults(record: CommitRecord, present: Mapping[SourceId, bytes]) -> Iterator[tuple[str, str]]:
    if sources_hash(present) != record.sources_hash:
        yield "sources", f"the list is not the one that commit {record.sequence} names"


def _bytes_faults(stored: Iterable[tuple[SourceId, bytes]]) -> Iterator[tuple[str, str]]:
    for source_id, descriptor in stored:
        where = f"source '{source_id}'"
        try:
            message = schema.decode_descriptor(descriptor)
            plain = msgspec.json.decode(descriptor)
        except (msgspec.MsgspecError, ValueError) as error:
            raise BaseDamagedError(where, f"the record cannot be read ({error})") from error
        if message.source_id != source_id:
            yield where, "the descriptor is another source's"
        if encode_struct(plain) != descriptor or not _is_part(plain, msgspec.to_builtins(message)):
            yield where, "the record is not in its canonical form"


def _is_part(stored: object, whole: object) -> bool:
    """Tell whether all that was stored is in the message; fields that came later are in the message only."""
    if isinstance(stored, dict) and isinstance(whole, dict):
        return all(key in whole and _is_part(value, whole[key]) for key, value in stored.items())
    if isinstance(stored, list) and isinstance(whole, (list, tuple)):
        return len(stored) == len(whole) and all(_is_part(one, other) for one, other in zip(stored, whole, strict=True))
    return type(stored) is type(whole) and stored == whole


def _beginning(database: sqlite3.Connection) -> tuple[int, Sha256]:
    found = database.execute("SELECT since, record_hash FROM source_history").fetchall()
    if len(found) != 1:
        raise BaseDamagedError("sources", "it is not known from which commit on they are known")
    since, record_hash = found[0]
    return since, Sha256(record_hash.hex())


def _oldest_readable(database: sqlite3.Connection) -> int:
    (head,) = database.execute("SELECT record FROM commits ORDER BY sequence DESC LIMIT 1").fetchone()
    return schema.decode_commit(head).oldest_readable


# --- registry ---
# The registry of sources in an embedded base: every change is a commit, so old versions keep the sources they had.


class EmbeddedRegistry(SourceRegistry):
    """Implements `SourceRegistry`. Thread safe; a change waits for the writer's lock.

    `check` is given the descriptor in force, if there is one, and the new one, while nobody else can write; what it raises
    refuses the change.
    """

    def __init__(self, directory: Path, *, open_writer: Callable[[], EmbeddedWriter], check: Check | None = None) -> None:
        self._directory = directory
        self._open_writer = open_writer
        self._check = check

    def descriptors(self) -> Mapping[SourceId, SourceDescriptor]:
        """Return every registered source, ordered by id."""
        with storage_errors(self._directory):
            database = open_for_reading(self._directory)
            try:
                database.execute("BEGIN")
                return decoded(stored_descriptors(database))
            finally:
                database.close()

    def register(self, descriptor: SourceDescriptor) -> CommitSummary:
        """Add a source or replace its descriptor; one whose documents are in the base stays the base's own."""
        writer = self._open_writer()
        try:
            if self._check is not None:
                self._check(writer.descriptors().get(descriptor.source_id), descriptor)
            if not descriptor.is_own and writer.live_documents(descriptor.source_id):
                raise InvalidFieldError(
                    "connection.kind",
                    f"source '{descriptor.source_id}' has documents in the base, so its kind stays 'own'; "
                    f"remove them first, or register '{descriptor.connection.kind}' under another name",
                )
            writer.register(descriptor)
            return writer.commit(ChangeSet())
        finally:
            writer.close()

    def remove(self, source_id: SourceId) -> CommitSummary:
        """Forget a source; one that has documents is refused."""
        writer = self._open_writer()
        try:
            writer.remove_source(source_id)
            return writer.commit(ChangeSet())
        finally:
            writer.close()
