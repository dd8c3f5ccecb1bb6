"""Bytes under names that may be lost: what was measured, and what sources said. Nothing that goes wrong here is ever raised.

The file is made with the first value. A row carries a digest, so that a byte that rots is a value that is not there, and a
file that cannot be read is set aside for a new one. A change that cannot be written hides what it would have replaced until
it can.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from evidentia.backends.embedded.kept_values import KeptValues
from evidentia.backends.embedded.key_value_rows import (
    delete_prefix,
    digest,
    has_bytes,
    is_passing,
    is_whole,
    microseconds,
    next_use,
    prepare,
    within_prefix,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

    from evidentia.contracts.ports import Clock

Answer = TypeVar("Answer")

WAIT_MS: Final = 500
"""How long another process may be writing before a change is given up: nobody waits long for what may be lost."""
MOST_HIDDEN: Final = 1_000
_FAILURES: Final = (sqlite3.Error, OSError, OverflowError)


class _Hidden(NamedTuple):
    text: str
    is_prefix: bool


class EmbeddedKeyValues:
    """Implements `KeyValueStore`. Thread safe; several processes may share the file, and each sees what the others write."""

    def __init__(self, path: Path, *, clock: Clock, most_entries: int | None = None, wait_ms: int = WAIT_MS) -> None:
        self._path = path
        self._clock = clock
        self._most_entries = most_entries
        self._wait_ms = wait_ms
        self._lock = threading.RLock()
        self._database: sqlite3.Connection | None = None
        self._opened_as: tuple[int, int] | None = None
        self._kept = KeptValues()
        self._seen_version = -1
        self._used: dict[str, None] = {}
        self._hidden: set[_Hidden] = set()
        self._within: list[_Hidden] | None = None
        """What the transaction under way has changed; None when each change is one of its own."""

    def get(self, key: str) -> bytes | None:
        """Return what is kept under a name and has not expired."""
        with self._lock:
            found = self._reading(key, lambda database: self._find(database, key), otherwise=None)
            if found is not None:
                self._used.pop(key, None)  # moves it to the end: the last one is the one that was used last
                self._used[key] = None
            return found

    def put(self, key: str, value: bytes, *, expires_at: datetime | None = None) -> None:
        """Keep a value under a name, in place of what was there; a disk that takes nothing keeps nothing."""
        expires_us = None if expires_at is None else microseconds(expires_at)
        if not has_bytes(key):
            return

        def change(database: sqlite3.Connection) -> int:
            row = (key, value, expires_us, next_use(database), digest(key, value, expires_us))
            database.execute("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?)", row)
            self._evict(database)
            return 1

        with self._lock:
            self._used.pop(key, None)
            self._kept.forget(key)
            if self._writing(change, otherwise=_Hidden(key, is_prefix=False)):
                self._kept.put(key, value, expires_us)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Write what this thread changes within the context in one transaction; what fails there is hidden, like any change that does."""
        with self._lock:
            if self._within is not None or not self._begin():
                yield
                return
            self._within = []
            try:
                yield
            finally:
                within, self._within = self._within, None
                self._end(within)

    def delete(self, prefix: str) -> int:
        """Forget every name that begins so, and return how many there were."""
        with self._lock:
            self._kept.clear()
            if (self._database is None and not self._exists()) or not has_bytes(prefix):
                return 0
            return self._writing(lambda database: delete_prefix(database, prefix), otherwise=_Hidden(prefix, is_prefix=True))

    def items(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        """Yield every name that begins so, with its value, ordered by name, as they were when the first was asked for."""
        with self._lock:
            nothing: Sequence[tuple[str, bytes]] = ()
            found = self._reading(prefix, lambda database: self._list(database, prefix), otherwise=nothing)
        yield from found

    def close(self) -> None:
        """Give back what is held; which values were used last is noted, where that is possible."""
        with self._lock:
            if self._database is not None and self._used:
                self._writing(lambda _: 0, otherwise=None)
            self._close()
            self._kept.clear()

    # --- reading ---

    def _find(self, database: sqlite3.Connection, key: str) -> bytes | None:
        if self._hidden and self._is_hidden(key):
            return None
        now = microseconds(self._clock.now())
        (version,) = database.execute("PRAGMA data_version").fetchone()
        if version != self._seen_version:  # another process wrote
            self._kept.clear()
            self._seen_version = version
        kept = self._kept.get(key)
        if kept is None:
            row = database.execute("SELECT value, expires_us, digest FROM entries WHERE key = ?", (key,)).fetchone()
            if row is None or not is_whole(key, *row):
                return None
            kept = self._kept.put(key, row[0], row[1])
        return kept.value if kept.expires_us is None or kept.expires_us > now else None

    def _list(self, database: sqlite3.Connection, prefix: str) -> Sequence[tuple[str, bytes]]:
        now = microseconds(self._clock.now())
        within, bounds = within_prefix(prefix)
        statement = f"""SELECT key, value, expires_us, digest FROM entries WHERE {within}
            AND (expires_us IS NULL OR expires_us > ?) ORDER BY key"""
        found = database.execute(statement, (*bounds, now)).fetchall()
        return [(key, value) for key, value, *rest in found if is_whole(key, value, *rest) and not self._is_hidden(key)]

    def _is_hidden(self, key: str) -> bool:
        return any(key.startswith(hidden.text) if hidden.is_prefix else key == hidden.text for hidden in self._hidden)

    def _reading(self, name: str, read: Callable[[sqlite3.Connection], Answer], *, otherwise: Answer) -> Answer:
        try:
            database = self._database if self._database is not None or not self._exists() else self._open()
            return otherwise if database is None or not has_bytes(name) else read(database)
        except _FAILURES as error:
            self._after(error)
            return otherwise

    # --- writing ---

    def _writing(self, change: Callable[[sqlite3.Connection], int], *, otherwise: _Hidden | None) -> int:
        """Make a change in one transaction; what it would have replaced is hidden when that fails twice."""
        if self._within is not None and self._database is not None:
            return self._joining(self._database, change, otherwise)
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
                self._hidden.clear()
                return changed
        if otherwise is not None:
            self._hidden.add(otherwise if len(self._hidden) < MOST_HIDDEN else _Hidden("", is_prefix=True))
        return 0

    def _begin(self) -> bool:
        try:
            database = self._database or self._open()
            database.execute("BEGIN IMMEDIATE")
            self._catch_up(database)
        except _FAILURES as error:
            self._after(error)
            return False
        return True

    def _joining(self, database: sqlite3.Connection, change: Callable[[sqlite3.Connection], int], otherwise: _Hidden | None) -> int:
        """Make a change within the transaction that is under way; when it fails, all of it does, and is hidden."""
        within = self._within if self._within is not None else []
        within += [] if otherwise is None else [otherwise]
        try:
            return change(database)
        except _FAILURES as error:
            self._after(error)
            self._within = None
            self._hide(within)
            return 0

    def _end(self, within: list[_Hidden] | None) -> None:
        """Finish the transaction, unless it has failed already."""
        if within is None:
            return
        try:
            if self._database is not None:
                self._database.execute("COMMIT")
        except _FAILURES as error:
            self._after(error)
            self._hide(within)
        else:
            self._used.clear()
            self._hidden.clear()

    def _hide(self, changed: Sequence[_Hidden]) -> None:
        """Let nobody see what changes should have replaced that could not be written."""
        self._kept.clear()
        for each in changed:
            self._hidden.add(each if len(self._hidden) < MOST_HIDDEN else _Hidden("", is_prefix=True))

    def _catch_up(self, database: sqlite3.Connection) -> None:
        """Forget what is hidden and what has expired, and note what was used since the last change."""
        for hidden in self._hidden:
            if hidden.is_prefix:
                delete_prefix(database, hidden.text)
            else:
                database.execute("DELETE FROM entries WHERE key = ?", (hidden.text,))
        database.execute("DELETE FROM entries WHERE expires_us <= ?", (microseconds(self._clock.now()),))
        use = next_use(database)
        uses = [(use + number, key) for number, key in enumerate(self._used)]
        database.executemany("UPDATE entries SET used = ? WHERE key = ?", uses)

    def _evict(self, database: sqlite3.Connection) -> None:
        if self._most_entries is None:
            return
        (count,) = database.execute("SELECT count(*) FROM entries").fetchone()
        surplus = count - self._most_entries
        if surplus > 0:
            gone = database.execute("SELECT key FROM entries ORDER BY used, key LIMIT ?", (surplus,)).fetchall()
            database.executemany("DELETE FROM entries WHERE key = ?", gone)
            for (key,) in gone:
                self._kept.forget(key)

    # --- the file ---

    def _exists(self) -> bool:
        try:
            return self._path.exists()
        except OSError:
            return False

    def _open(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._path, timeout=self._wait_ms / 1_000, isolation_level=None, check_same_thread=False)
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
        if is_passing(error):
            return False
        opened_as = self._opened_as
        self._close()
        self._kept.clear()
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
