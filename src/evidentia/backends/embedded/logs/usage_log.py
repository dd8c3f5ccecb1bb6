"""What each token asked for in a day (UTC): counted in memory, written to a file beside the base every few seconds.

Several processes may share the file; each sees what the others asked for when it next writes. A file that cannot be written is
no reason to refuse anybody: counting goes on in memory.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final

from evidentia.contracts.errors import EvidentiaError
from evidentia.foundation.background_writer import BackgroundWriter
from evidentia.foundation.sqlite_file import SqliteFile

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping
    from datetime import date
    from pathlib import Path

    from evidentia.contracts.control import TokenId
    from evidentia.contracts.ports import Clock

USAGE_NAME: Final = "usage.db"
FORMAT: Final = 1
WRITE_S: Final = 2
"""How long what was counted may be in memory alone."""
MAX_KEPT: Final = 100_000
KEEP_DAYS: Final = 32
_WAIT_MS: Final = 1_000
_TABLES: Final = (
    """CREATE TABLE usage (
    day INTEGER NOT NULL, token_id TEXT NOT NULL, requests INTEGER NOT NULL, PRIMARY KEY (day, token_id)) STRICT, WITHOUT ROWID""",
)
_ADD: Final = "INSERT INTO usage VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET requests = requests + excluded.requests"
_TOTALS: Final = "SELECT token_id, requests FROM usage WHERE day = ? ORDER BY requests DESC, token_id LIMIT ?"

_log = logging.getLogger(__name__)


class EmbeddedUsage:
    """Implements `Usage` beside a base. Thread safe; a request costs two look-ups and waits for no disk.

    A quota is exact in one process. In several it may be passed by what the others were asked within `write_s`. With a `write_s`
    of 0 nothing is written until `flush` or `close`.
    """

    def __init__(self, directory: Path, *, clock: Clock, write_s: float = WRITE_S, max_kept: int = MAX_KEPT) -> None:
        self._file = SqliteFile(directory / USAGE_NAME, tables=_TABLES, version=FORMAT, wait_ms=_WAIT_MS)
        self._clock = clock
        self._write_s = write_s
        self._most_kept = max_kept
        self._lock = threading.Lock()
        self._day = _number_of(clock.now().date())
        self._written: dict[str, int] = {}
        """Today's totals, as the file had them when it was last looked at."""
        self._unwritten: dict[tuple[int, str], int] = {}
        self._is_failing = False
        self._is_used = False
        self._writer = BackgroundWriter(self._write, name="evidentia-usage", pause_s=write_s)
        self.flush()

    def spend(self, token_id: TokenId, *, most: int) -> bool:
        """Count one request of today and return True; False when there were as many as may be."""
        day = _number_of(self._clock.now().date())
        with self._lock:
            if day != self._day:
                self._day, self._written = day, {}
            key = (day, token_id)
            unwritten = self._unwritten.get(key, 0)
            if self._written.get(token_id, 0) + unwritten >= most:
                return False
            self._unwritten[key] = unwritten + 1
        self._is_used = True
        self._write_later()
        return True

    def spent(self, token_id: TokenId) -> int:
        """Return how much a token asked for today, as far as this process knows."""
        with self._lock:
            is_today = self._day == _number_of(self._clock.now().date())
            return self._unwritten.get((self._day, token_id), 0) + self._written.get(token_id, 0) if is_today else 0

    def flush(self) -> None:
        """Write down what was counted since the last time, and see what others counted."""
        self._writer.flush()

    def close(self) -> None:
        """Write down what is not written yet, and give back what is held."""
        self._writer.close()
        self._file.close()

    def _write_later(self) -> None:
        if self._write_s > 0:
            self._writer.notify()

    def _write(self) -> None:
        with self._lock:
            day = self._day
            batch = dict(self._unwritten)
        if self._is_used:  # again and again from the first request on, since other processes count too
            self._write_later()
        try:
            totals = self._exchange(batch, day)
        except EvidentiaError as error:
            self._fail(error, day)
            return
        self._is_failing = False
        with self._lock:
            self._settle(batch)
            if day == self._day:
                self._written = totals

    def _exchange(self, batch: Mapping[tuple[int, str], int], day: int) -> dict[str, int]:
        """Add to the file, and return the totals of a day; nothing is written where nothing was counted."""
        if not batch:
            with self._file.reading() as database:
                return {} if database is None else self._totals(database, day)
        with self._file.transaction() as database:
            database.executemany(_ADD, [(when, token_id, count) for (when, token_id), count in sorted(batch.items())])
            database.execute("DELETE FROM usage WHERE day < ?", (day - KEEP_DAYS,))
            return self._totals(database, day)

    def _totals(self, database: sqlite3.Connection, day: int) -> dict[str, int]:
        return dict(database.execute(_TOTALS, (day, self._most_kept)).fetchall())

    def _settle(self, batch: Mapping[tuple[int, str], int]) -> None:
        for key, count in batch.items():
            left = self._unwritten[key] - count
            if left:
                self._unwritten[key] = left
            else:
                del self._unwritten[key]

    def _fail(self, error: EvidentiaError, day: int) -> None:
        """Go on in memory; say so once, and forget days that are over, and everything before there is too much of it."""
        if not self._is_failing:
            _log.warning("usage is counted in memory only: %s", error)
        self._is_failing = True
        with self._lock:
            kept = {key: count for key, count in self._unwritten.items() if key[0] == day}
            self._unwritten = kept if len(kept) <= self._most_kept else {}


def _number_of(day: date) -> int:
    return day.toordinal()
