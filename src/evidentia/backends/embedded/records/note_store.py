"""What agents write down for themselves, in a file of its own beside the base: durable, and never part of its corpus.

The file is made with the first note. A note that has expired is never returned, and is deleted with the next change.
"""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from evidentia.contracts.canonical import encode_struct
from evidentia.contracts.decoding import json_decoder
from evidentia.contracts.errors import BaseDamagedError, InvalidFieldError
from evidentia.contracts.ports import Clock, NoteStore
from evidentia.contracts.sources import Note
from evidentia.foundation.disk import BUSY_TIMEOUT_MS
from evidentia.foundation.sqlite_file import SqliteFile, to_microseconds

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence
    from datetime import datetime
    from pathlib import Path


FORMAT: Final = 1
_TABLES: Final = (
    """CREATE TABLE notes (
    tenant TEXT NOT NULL, owner TEXT NOT NULL, note_id TEXT NOT NULL, agent_name TEXT NOT NULL, session TEXT NOT NULL,
    expires_us INTEGER, note BLOB NOT NULL, digest BLOB NOT NULL, PRIMARY KEY (tenant, owner, note_id)) STRICT, WITHOUT ROWID""",
    "CREATE INDEX notes_by_end ON notes (expires_us) WHERE expires_us IS NOT NULL",
    "CREATE TABLE revisions (began_us INTEGER PRIMARY KEY, changes INTEGER NOT NULL) STRICT",
)
_OF: Final = """SELECT note_id, note, digest FROM notes WHERE tenant = :tenant AND owner = :owner
    AND (:agent_name IS NULL OR agent_name = :agent_name) AND (:session IS NULL OR session IN (:session, ''))
    AND (expires_us IS NULL OR expires_us > :now) ORDER BY note_id"""

_decode = json_decoder(Note)


class EmbeddedNotes(NoteStore):
    """Implements `NoteStore`. Thread safe; several processes may share the file."""

    def __init__(self, path: Path, *, clock: Clock, wait_ms: int = BUSY_TIMEOUT_MS) -> None:
        self._path = path
        self._clock = clock
        self._file = SqliteFile(path, tables=_TABLES, version=FORMAT, wait_ms=wait_ms, fill=self._begin_counting)

    def add(self, note: Note) -> None:
        """Keep a note, durably; one of the same owner with the same id is replaced."""
        try:
            encoded = encode_struct(note)
        except UnicodeEncodeError as error:
            raise InvalidFieldError("note", "a string holds an unpaired surrogate, which has no UTF-8 form") from error
        expires_us = None if note.expires_at is None else to_microseconds(note.expires_at)
        row = (note.tenant, note.owner, note.note_id, note.agent_name, note.session, expires_us, encoded, _digest(encoded))
        with self._changing() as database:
            database.execute("INSERT OR REPLACE INTO notes VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
            self._delete_expired(database)

    def of(self, *, tenant: str, owner: str, agent_name: str | None, session: str | None, now: datetime) -> Sequence[Note]:
        """Return the notes of one owner that have not expired, ordered by id; of any agent or session where that is None.

        Notes for every session of an agent are among those of each of them.
        """
        wanted = {"tenant": tenant, "owner": owner, "agent_name": agent_name, "session": session, "now": to_microseconds(now)}
        with self._file.reading() as database:
            found = [] if database is None else database.execute(_OF, wanted).fetchall()
            return [self._read(note_id, encoded, digest) for note_id, encoded, digest in found]

    def remove(self, note_ids: Sequence[str], *, tenant: str, owner: str) -> int:
        """Forget notes of one owner, and return how many there were; ids of others' notes are ids that are not there."""
        with self._file.reading() as existing:
            if existing is None or not note_ids:
                return 0
            with self._changing() as database:
                self._delete_expired(database)
                statement = "DELETE FROM notes WHERE tenant = ? AND owner = ? AND note_id = ?"
                return sum(database.execute(statement, (tenant, owner, note_id)).rowcount for note_id in note_ids)

    def revision(self) -> str:
        """Return a word that is another one after every change, and after a note has expired."""
        with self._file.reading() as database:
            if database is None:
                return "0"
            statement = """SELECT began_us || '.' || changes || '.' || (SELECT count(*) FROM notes WHERE expires_us <= ?) FROM revisions"""
            (word,) = database.execute(statement, (to_microseconds(self._clock.now()),)).fetchone()
            return str(word)

    def clean(self) -> int:
        """Delete the notes that have expired, and return how many there were."""
        with self._file.reading() as existing:
            if existing is None:
                return 0
            with self._changing() as database:
                return self._delete_expired(database)

    def close(self) -> None:
        """Give back what is held."""
        self._file.close()

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        """Make a change in one transaction, and count it unless nothing changed."""
        with self._file.transaction() as database:
            before = database.total_changes
            yield database
            if database.total_changes != before:
                database.execute("UPDATE revisions SET changes = changes + 1")

    def _begin_counting(self, database: sqlite3.Connection) -> None:
        database.execute("INSERT INTO revisions VALUES (?, 0)", (to_microseconds(self._clock.now()),))

    def _delete_expired(self, database: sqlite3.Connection) -> int:
        return database.execute("DELETE FROM notes WHERE expires_us <= ?", (to_microseconds(self._clock.now()),)).rowcount

    def _read(self, note_id: str, encoded: object, digest: object) -> Note:
        if not isinstance(encoded, bytes) or _digest(encoded) != digest:
            raise BaseDamagedError(self._path.name, f"note {note_id!a} is not what was written")
        return _decode(encoded)


def _digest(encoded: bytes) -> bytes:
    return hashlib.sha256(encoded).digest()
