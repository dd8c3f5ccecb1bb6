"""Bytes under names that may be lost: what was measured, and what sources said. Nothing that goes wrong here is ever raised.

The file is made with the first value. A row carries a digest, so that a byte that rots is a value that is not there, and a
file that cannot be read is set aside for a new one. A change that cannot be written hides what it would have replaced until
it can.
"""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections import OrderedDict
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from evidentia.contracts.canonical import has_utf8
from evidentia.contracts.ports import Clock, KeyValueStore, SupportsBatchReads, SupportsKeyScan, SupportsTransactions
from evidentia.foundation.sqlite_file import connect, is_transient, make_tables, to_microseconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path


Answer = TypeVar("Answer")

WAIT_MS: Final = 500
"""How long another process may be writing before a change is given up: nobody waits long for what may be lost."""
MAX_TOMBSTONES: Final = 1_000
MAX_PRELOADED: Final = 500
_FAILURES: Final = (sqlite3.Error, OSError, OverflowError)


class EmbeddedKeyValues(KeyValueStore, SupportsTransactions, SupportsBatchReads, SupportsKeyScan):
    """Implements `KeyValueStore`. Thread safe; several processes may share the file, and each sees what the others write."""

    def __init__(self, path: Path, *, clock: Clock, most_entries: int | None = None, wait_ms: int = WAIT_MS) -> None:
        self._path = path
        self._clock = clock
        self._most_entries = most_entries
        self._wait_ms = wait_ms
        # Reentrant: a transaction holds it for as long as it is open, and what is read or written within comes through it again.
        self._lock = threading.RLock()
        self._database: sqlite3.Connection | None = None
        self._opened_as: tuple[int, int] | None = None
        self._cache = ValueCache()
        self._seen_version = -1
        self._used: dict[str, None] = {}
        self._tombstones: set[Tombstone] = set()
        self._batch = ReadBatch()
        self._within: Transaction | None = None
        """The transaction under way; None when each change is one of its own."""

    def get(self, key: str) -> bytes | None:
        """Return what is kept under a name and has not expired."""
        with self._lock:
            found = self._reading(key, self._find, otherwise=None)
            if found is not None:
                self._used.pop(key, None)  # moves it to the end: the last one is the one that was used last
                self._used[key] = None
            return found

    def put(self, key: str, value: bytes, *, expires_at: datetime | None = None) -> None:
        """Keep a value under a name, in place of what was there; a disk that takes nothing keeps nothing."""
        expires_us = None if expires_at is None else to_microseconds(expires_at)
        if not has_utf8(key):
            return
        with self._lock:
            self._used.pop(key, None)
            self._cache.forget(key)
            self._batch.missing.discard(key)
            tombstone, within = Tombstone(key, is_prefix=False), self._within
            if within is None:
                if self._writing(lambda database: self._insert(database, {key: CachedValue(value, expires_us)}), otherwise=tombstone):
                    self._cache.put(key, value, expires_us)
            elif within.is_open:
                within.changed.append(tombstone)
                within.rows[key] = CachedValue(value, expires_us)
            else:
                self._hide([tombstone])

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write what this thread changes within the context in one transaction; what fails there is hidden, like any change that does."""
        with self._lock:
            if self._within is not None:
                yield
                return
            self._within = Transaction(is_open=self._begin())
            try:
                yield
            finally:
                self._end(self._within)
                self._within = None

    @contextmanager
    def batch_reads(self) -> Iterator[None]:
        """Look once for what other processes wrote: what this thread reads within the context is at least as new as its beginning."""
        with self._lock:
            self._reading("", lambda database, _: self._look(database), otherwise=None)
        self._batch.is_taken = True
        try:
            yield
        finally:
            self._batch.is_taken, self._batch.missing = False, set()

    def preload(self, keys: Sequence[str]) -> None:
        """Read several values in one go, which this thread is about to ask for within `batch_reads`."""
        if self._batch.is_taken:
            with self._lock:
                wanted = [key for key in keys if self._cache.get(key) is None and has_utf8(key)][:MAX_PRELOADED]
                self._batch.missing = self._reading("", lambda database, _: self._load(database, wanted), otherwise=set())

    def delete(self, prefix: str) -> int:
        """Forget every name that begins so, and return how many there were."""
        with self._lock:
            self._cache.clear()
            if (self._database is None and not self._exists()) or not has_utf8(prefix):
                return 0
            return self._writing(lambda database: self._delete(database, prefix), otherwise=Tombstone(prefix, is_prefix=True))

    def items(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        """Yield every name that begins so, with its value, ordered by name, as they were when the first was asked for."""
        with self._lock:
            nothing: Sequence[tuple[str, bytes]] = ()
            found = self._reading(prefix, self._list, otherwise=nothing)
        yield from found

    def names(self, prefix: str) -> Iterator[str]:
        """Yield every name that begins so, in order, as they were when the first was asked for; no value is read or checked."""
        with self._lock:
            nothing: Sequence[str] = ()
            found = self._reading(prefix, self._name, otherwise=nothing)
        yield from found

    def close(self) -> None:
        """Give back what is held; which values were used last is noted, where that is possible."""
        with self._lock:
            if self._database is not None and self._used:
                self._writing(lambda _: 0, otherwise=None)
            self._close()
            self._cache.clear()

    # --- reading ---

    def _find(self, database: sqlite3.Connection, key: str) -> bytes | None:
        if key in self._batch.missing or (self._tombstones and self._is_deleted(key)):
            return None
        if not self._batch.is_taken and (self._within is None or not self._within.is_open):
            self._look(database)
        cached = self._cache.get(key) if self._within is None else self._within.rows.get(key) or self._cache.get(key)
        if cached is None:
            row = database.execute("SELECT value, expires_us, digest FROM entries WHERE key = ?", (key,)).fetchone()
            if row is None or not is_whole(key, *row):
                return None
            cached = self._cache.put(key, row[0], row[1])
        return cached.value if cached.expires_us is None or cached.expires_us > to_microseconds(self._clock.now()) else None

    def _load(self, database: sqlite3.Connection, keys: Sequence[str]) -> set[str]:
        """Hold what is there in memory, and return the names under which nothing is."""
        found = rows_of(database, keys)
        for key, value, expires_us in found:
            self._cache.put(key, value, expires_us)
        return set(keys).difference([row[0] for row in found])

    def _look(self, database: sqlite3.Connection) -> None:
        """Let go of what is held in memory when another process wrote; within a transaction none can."""
        (version,) = database.execute("PRAGMA data_version").fetchone()
        if version != self._seen_version:
            self._cache.clear()
            self._seen_version = version

    def _list(self, database: sqlite3.Connection, prefix: str) -> Sequence[tuple[str, bytes]]:
        self._insert_waiting(database)
        now = to_microseconds(self._clock.now())
        within, bounds = within_prefix(prefix)
        statement = f"""SELECT key, value, expires_us, digest FROM entries WHERE {within}
            AND (expires_us IS NULL OR expires_us > ?) ORDER BY key"""
        found = database.execute(statement, (*bounds, now)).fetchall()
        return [(key, value) for key, value, *rest in found if is_whole(key, value, *rest) and not self._is_deleted(key)]

    def _name(self, database: sqlite3.Connection, prefix: str) -> Sequence[str]:
        self._insert_waiting(database)
        within, bounds = within_prefix(prefix)
        statement = f"SELECT key FROM entries WHERE {within} AND (expires_us IS NULL OR expires_us > ?) ORDER BY key"
        found = database.execute(statement, (*bounds, to_microseconds(self._clock.now())))
        return [key for (key,) in found if not self._is_deleted(key)]

    def _is_deleted(self, key: str) -> bool:
        return any(key.startswith(tombstone.text) if tombstone.is_prefix else key == tombstone.text for tombstone in self._tombstones)

    def _reading(self, name: str, read: Callable[[sqlite3.Connection, str], Answer], *, otherwise: Answer) -> Answer:
        try:
            database = self._database if self._database is not None or not self._exists() else self._open()
            return otherwise if database is None or not has_utf8(name) else read(database, name)
        except _FAILURES as error:
            self._after(error)
            return otherwise

    # --- writing ---

    def _writing(self, change: Callable[[sqlite3.Connection], int], *, otherwise: Tombstone | None) -> int:
        """Make a change in one transaction; what it would have replaced is hidden when that fails twice."""
        if self._within is not None:
            return self._joining(self._within, change, otherwise)
        for _ in range(2):  # a damaged file is set aside after the first attempt
            try:
                database = self._database or self._open()
                database.execute("BEGIN IMMEDIATE")
                self._catch_up(database)
                changed = change(database)
                database.execute("COMMIT")
            except _FAILURES as error:
                if not self._after(error):
                    break
            else:
                self._used.clear()
                self._tombstones.clear()
                return changed
        if otherwise is not None:
            self._tombstones.add(otherwise if len(self._tombstones) < MAX_TOMBSTONES else Tombstone("", is_prefix=True))
        return 0

    def _begin(self) -> bool:
        for _ in range(2):
            try:
                database = self._database or self._open()
                database.execute("BEGIN IMMEDIATE")
                self._catch_up(database)
                self._look(database)
            except _FAILURES as error:
                if not self._after(error):
                    break
            else:
                return True
        return False

    def _joining(self, within: Transaction, change: Callable[[sqlite3.Connection], int], otherwise: Tombstone | None) -> int:
        """Make a change within the transaction that is under way; when it fails, all of it does, and is hidden."""
        within.changed += [] if otherwise is None else [otherwise]
        if within.is_open and self._database is not None:
            try:
                return change(self._database)
            except _FAILURES as error:
                self._after(error)
        self._fail(within)
        return 0

    def _end(self, within: Transaction) -> None:
        """Finish the transaction, unless it has failed already."""
        if not within.is_open:
            return
        try:
            if self._database is not None:
                self._insert_waiting(self._database)
                self._database.execute("COMMIT")
        except _FAILURES as error:
            self._after(error)
            self._fail(within)
        else:
            self._used.clear()
            self._tombstones.clear()

    def _delete(self, database: sqlite3.Connection, prefix: str) -> int:
        if self._within is not None and any(key.startswith(prefix) for key in self._within.rows):
            self._insert_waiting(database)
        return delete_prefix(database, prefix)

    def _insert_waiting(self, database: sqlite3.Connection) -> None:
        if self._within is not None and self._within.rows:
            self._insert(database, self._within.rows)
            self._within.rows = {}

    def _fail(self, within: Transaction) -> None:
        within.is_open = False
        within.rows = {}
        self._hide(within.changed)
        within.changed = []

    def _hide(self, changed: Sequence[Tombstone]) -> None:
        """Let nobody see what changes should have replaced that could not be written."""
        self._cache.clear()
        for each in changed:
            self._tombstones.add(each if len(self._tombstones) < MAX_TOMBSTONES else Tombstone("", is_prefix=True))

    def _catch_up(self, database: sqlite3.Connection) -> None:
        """Forget what is hidden and what has expired, and note what was used since the last change."""
        for tombstone in self._tombstones:
            if tombstone.is_prefix:
                delete_prefix(database, tombstone.text)
            else:
                database.execute("DELETE FROM entries WHERE key = ?", (tombstone.text,))
        database.execute("DELETE FROM entries WHERE expires_us <= ?", (to_microseconds(self._clock.now()),))
        use = next_use(database)
        uses = [(use + number, key) for number, key in enumerate(self._used)]
        database.executemany("UPDATE entries SET used = ? WHERE key = ?", uses)

    def _insert(self, database: sqlite3.Connection, rows: Mapping[str, CachedValue]) -> int:
        insert_rows(database, rows)
        self._evict(database)
        return len(rows)

    def _evict(self, database: sqlite3.Connection) -> None:
        if self._most_entries is None:
            return
        (count,) = database.execute("SELECT count(*) FROM entries").fetchone()
        surplus = count - self._most_entries
        if surplus > 0:
            gone = database.execute("SELECT key FROM entries ORDER BY used, key LIMIT ?", (surplus,)).fetchall()
            database.executemany("DELETE FROM entries WHERE key = ?", gone)
            for (key,) in gone:
                self._cache.forget(key)

    # --- the file ---

    def _exists(self) -> bool:
        try:
            return self._path.exists()
        except OSError:
            return False

    def _open(self) -> sqlite3.Connection:
        database = connect(self._path, wait_ms=self._wait_ms)
        try:
            prepare(database)
            stat = self._path.stat()
        except BaseException:
            database.close()
            raise
        self._database, self._opened_as, self._seen_version = database, (stat.st_dev, stat.st_ino), -1
        return database

    def _after(self, error: Exception) -> bool:
        """Undo what was begun, and set a damaged file aside; tell whether another attempt is worth while."""
        if self._database is not None:
            with suppress(sqlite3.Error):
                self._database.execute("ROLLBACK")
        if is_transient(error):
            return False
        opened_as = self._opened_as
        self._close()
        self._cache.clear()
        with suppress(OSError):
            stat = self._path.stat()
            if opened_as in (None, (stat.st_dev, stat.st_ino)):  # else another process has set it aside already
                self._set_aside()
        return True

    def _set_aside(self) -> None:
        for ending in ("-wal", "-shm"):
            self._path.with_name(self._path.name + ending).unlink(missing_ok=True)
        self._path.replace(self._path.with_name(f"{self._path.name}.damaged"))

    def _close(self) -> None:
        if self._database is not None:
            with suppress(sqlite3.Error):
                self._database.close()
        self._database = self._opened_as = None


# --- value cache ---
# Values held in memory in front of a file: the ones used last, those it has still to get, and what is known not to be there.

MAX_CACHED: Final = 4_096
MAX_BYTES: Final = 32 << 20


class CachedValue(NamedTuple):
    """A value and when it ends, in microseconds since 1970; None when it does not."""

    value: bytes
    expires_us: int | None


class ValueCache:
    """A least-recently-used memory. Not thread safe; who uses it holds a lock."""

    def __init__(self, *, max_cached: int = MAX_CACHED, max_bytes: int = MAX_BYTES) -> None:
        self._max_cached = max_cached
        self._max_bytes = max_bytes
        self._values: OrderedDict[str, CachedValue] = OrderedDict()
        self._bytes = 0

    def get(self, key: str) -> CachedValue | None:
        """Return what is held, which is then the one used last."""
        found = self._values.get(key)
        if found is not None:
            self._values.move_to_end(key)
        return found

    def put(self, key: str, value: bytes, expires_us: int | None) -> CachedValue:
        """Hold a value in place of what was there; what was not used for longest goes where there is no room."""
        self.forget(key)
        held = self._values[key] = CachedValue(value, expires_us)
        self._bytes += len(value)
        while len(self._values) > self._max_cached or self._bytes > self._max_bytes:
            _, dropped = self._values.popitem(last=False)
            self._bytes -= len(dropped.value)
        return held

    def forget(self, key: str) -> None:
        """Let go of a value, if it is held."""
        dropped = self._values.pop(key, None)
        if dropped is not None:
            self._bytes -= len(dropped.value)

    def clear(self) -> None:
        """Let go of everything."""
        self._values.clear()
        self._bytes = 0


class Tombstone(NamedTuple):
    """A name, or all names that begin so, under which the file has something that is no longer true."""

    text: str
    is_prefix: bool


class Transaction:
    """What is written together: rows that the file does not have yet, and what has to be hidden if it never gets them."""

    def __init__(self, *, is_open: bool) -> None:
        self.is_open = is_open
        self.rows: dict[str, CachedValue] = {}
        self.changed: list[Tombstone] = []


class ReadBatch(threading.local):
    """Whether this thread has just looked for what others wrote, and what it then found not to be there."""

    def __init__(self) -> None:
        self.is_taken = False
        self.missing: set[str] = set()


# --- key value rows ---
# The rows of a file of values that may be lost: its one table, and what a row must be to be believed.

FORMAT: Final = 1
_DIGEST_BYTES: Final = 16
_ROWS_AT_ONCE: Final = 64
_AT_ONCE: Final = 2_047
"""What is longer is hashed with the interpreter's lock given back, and getting that again takes longer than the hashing."""
_HIGHEST: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)
_TABLES: Final = (
    """CREATE TABLE entries (
    key TEXT PRIMARY KEY, value BLOB NOT NULL, expires_us INTEGER, used INTEGER NOT NULL, digest BLOB NOT NULL) STRICT""",
    "CREATE INDEX entries_by_use ON entries (used, key)",
    "CREATE INDEX entries_by_end ON entries (expires_us) WHERE expires_us IS NOT NULL",
)


def prepare(database: sqlite3.Connection) -> None:
    """Set up a connection, and make the table of a new file; a file of any other kind is damage."""
    database.execute("PRAGMA synchronous = OFF")  # what a crash takes away may be lost
    if make_tables(database, _TABLES, version=FORMAT) != FORMAT:
        raise sqlite3.DatabaseError("the file was made by something else")


def next_use(database: sqlite3.Connection) -> int:
    """Return a number higher than that of every use so far."""
    return int(database.execute("SELECT coalesce(max(used), 0) + 1 FROM entries").fetchone()[0])


def insert_rows(database: sqlite3.Connection, rows: Mapping[str, CachedValue]) -> None:
    """Write rows, many with each statement: after every statement the other threads of the interpreter have their turn first."""
    use = next_use(database)
    made = [
        (key, value, expires_us, use + number, digest(key, value, expires_us))
        for number, (key, (value, expires_us)) in enumerate(rows.items())
    ]
    for start in range(0, len(made), _ROWS_AT_ONCE):
        some = made[start : start + _ROWS_AT_ONCE]
        places = ",".join(["(?, ?, ?, ?, ?)"] * len(some))
        database.execute(f"INSERT OR REPLACE INTO entries VALUES {places}", [field for row in some for field in row])


def rows_of(database: sqlite3.Connection, keys: Sequence[str]) -> list[tuple[str, bytes, int | None]]:
    """Return the rows under some names that are whole, with their ends."""
    places = ",".join("?" * len(keys))
    found = database.execute(f"SELECT key, value, expires_us, digest FROM entries WHERE key IN ({places})", keys).fetchall()
    return [(key, value, expires_us) for key, value, expires_us, stored in found if is_whole(key, value, expires_us, stored)]


def delete_prefix(database: sqlite3.Connection, prefix: str) -> int:
    """Delete every key that begins so, and return how many there were."""
    within, bounds = within_prefix(prefix)
    return database.execute(f"DELETE FROM entries WHERE {within}", bounds).rowcount


def within_prefix(prefix: str) -> tuple[str, tuple[str, ...]]:
    """Return the condition for keys that begin so, as one that an index serves, and its parameters."""
    first, after = range_of(prefix)
    return ("key >= ?", (first,)) if after is None else ("key >= ? AND key < ?", (first, after))


def range_of(prefix: str) -> tuple[str, str | None]:
    """Return the prefix and the first text after all that begin with it, in the order of code points; None when there is none."""
    bare = prefix.rstrip(chr(_HIGHEST))
    if not bare:
        return prefix, None
    following = ord(bare[-1]) + 1
    return prefix, bare[:-1] + chr(_SURROGATES.stop if following in _SURROGATES else following)


def digest(key: str, value: bytes, expires_us: int | None) -> bytes:
    """Return what vouches for a row."""
    hashed = hashlib.blake2b(f"{len(key)} {key} {expires_us} ".encode(), digest_size=_DIGEST_BYTES)
    for start in range(0, len(value), _AT_ONCE):
        hashed.update(value[start : start + _AT_ONCE])
    return hashed.digest()


def is_whole(key: str, value: object, expires_us: object, stored: object) -> bool:
    """Tell whether a row is what was written."""
    is_typed = isinstance(value, bytes) and (expires_us is None or isinstance(expires_us, int))
    return is_typed and digest(key, value, expires_us) == stored  # type: ignore[arg-type]  # mypy does not follow is_typed
