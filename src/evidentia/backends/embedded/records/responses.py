"""Responses of sources outside the base, one row each, and the generation of each source. Nothing that goes wrong here is ever raised.

A row carries a digest, so that a byte that rots is a response that is not there. What could not be replaced or invalidated in the
file is hidden until it can be. A generation is the moment of its beginning, so that one that was lost is followed by a later one and
not by the first again.
"""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, TypeVar

from evidentia.contracts.canonical import has_utf8
from evidentia.contracts.ids import SourceId
from evidentia.contracts.ports import Clock, ResponseStore
from evidentia.contracts.retrieval import StoredResponse
from evidentia.contracts.vocabulary import CacheTier
from evidentia.foundation.sqlite_file import CACHE_WAIT_MS, CacheFile, to_microseconds

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

Answer = TypeVar("Answer")
Value = TypeVar("Value")

FORMAT: Final = 1
MAX_HIDDEN: Final = 1_000
NOTED_EVERY_US: Final = 60_000_000
"""Uses are written down for other processes once in a minute, and with every change; in this process they count at once."""
_EVERYTHING: Final = None
_AT_ONCE: Final = 64
"""Rows per statement: after every statement the other threads of the interpreter have their turn first."""
_HASHED_AT_ONCE: Final = 2_047
"""What is longer is hashed with the interpreter's lock given back, and getting that again takes longer than the hashing."""
_LARGEST: Final = 1 << 62
_TIERS: Final = {tier.value: tier for tier in CacheTier}
_TABLES: Final = (
    """CREATE TABLE responses (
    key BLOB PRIMARY KEY, source TEXT NOT NULL, tier TEXT NOT NULL, generation INTEGER NOT NULL, first_us INTEGER NOT NULL,
    last_us INTEGER NOT NULL, expires_us INTEGER, payload BLOB NOT NULL, near BLOB, vector BLOB, used_us INTEGER NOT NULL,
    digest BLOB NOT NULL) STRICT""",
    "CREATE INDEX responses_by_source ON responses (source)",
    "CREATE INDEX responses_by_use ON responses (used_us)",
    "CREATE INDEX responses_by_end ON responses (expires_us) WHERE expires_us IS NOT NULL",
    "CREATE INDEX responses_by_group ON responses (near) WHERE near IS NOT NULL",
    "CREATE TABLE sources (source TEXT PRIMARY KEY, generation INTEGER NOT NULL) STRICT",
)


class EmbeddedResponses(ResponseStore):
    """Implements `ResponseStore`. Thread safe; several processes may share the file, and each sees what the others write."""

    def __init__(self, path: Path, *, clock: Clock, most_entries: int, wait_ms: int = CACHE_WAIT_MS) -> None:
        self._file = CacheFile(path, tables=_TABLES, version=FORMAT, wait_ms=wait_ms)
        self._clock = clock
        self._most = most_entries
        self._room = 0
        """How many responses may be added before they are counted again."""
        self._used: dict[bytes, int] = {}
        """Uses that the file does not know of."""
        self._noted_us = 0
        self._hidden: set[bytes | str | None] = set()
        """Keys, sources or everything of which the file may have something that is no longer true."""
        self._generations: dict[SourceId, int] = {}
        self._newest: dict[SourceId, int] = {}
        self._seen: tuple[sqlite3.Connection | None, int] = (None, 0)
        """The connection and the state of the file of which `_generations` are."""

    def generations(self, source_ids: Sequence[SourceId]) -> Mapping[SourceId, int]:
        """Return the generation of each source, which is a higher one after every invalidation; one that is not known begins now."""
        with self._file.lock:
            known = self._known_generations()
            missing = [source for source in source_ids if source not in known or self._is_hidden(b"", source)]
            if not missing:
                return known
            begun = self._begun(missing)
            self._change(lambda database: _insert_generations(database, begun))
            return known | begun

    def get(self, keys: Sequence[bytes]) -> Mapping[bytes, StoredResponse]:
        """Return those of the responses that are there, whole and not expired."""
        return {each.key: each for some in _batches(keys) for each in self._select(f"key IN ({_places(some)})", some)}

    def neighbours(self, group: bytes, *, limit: int) -> Sequence[StoredResponse]:
        """Return the responses of a group that came last, the newest first."""
        return self._select("near = ?", (group,), f"ORDER BY rowid DESC LIMIT {limit:d}")

    def put(self, responses: Sequence[StoredResponse]) -> Sequence[StoredResponse]:
        """Keep responses in one transaction and return those that were kept; where there is no room, those not used for longest go."""
        return self._change(lambda database: self._insert(database, responses), hiding=[each.key for each in responses]) or []

    def invalidate(self, source_id: SourceId | None = None) -> int:
        """Begin a new generation of one source, or of all, drop their responses, and return how many there were."""
        if source_id is not None and not has_utf8(source_id):
            return 0
        with self._file.lock:
            self._known_generations()
            begun = self._begun(list(self._newest) if source_id is None else [source_id])

            where, given = ("", ()) if source_id is None else ("WHERE source = ?", (source_id,))

            def change(database: sqlite3.Connection) -> int:
                _insert_generations(database, begun)
                return database.execute(f"DELETE FROM responses {where}", given).rowcount

            return self._change(change, hiding=[source_id]) or 0

    def touch(self, keys: Sequence[bytes]) -> None:
        """Count a use of responses."""
        with self._file.lock:
            now_us = to_microseconds(self._clock.now())
            for key in keys:
                self._used.pop(key, None)
                self._used[key] = now_us
            if not 0 <= now_us - self._noted_us < NOTED_EVERY_US:
                self._noted_us = now_us
                self._change(lambda _: 0)

    def counts(self) -> Mapping[CacheTier, int]:
        """Return how many responses each tier has."""
        statement = "SELECT key, source, tier FROM responses WHERE expires_us IS NULL OR expires_us > ?"
        with self._file.lock:
            found = self._file.rows(statement, (to_microseconds(self._clock.now()),))
            return Counter(_TIERS[tier] for key, source, tier in found if tier in _TIERS and not self._is_hidden(key, source))

    def close(self) -> None:
        """Give back what is held; which responses were used last is noted, where that is possible."""
        with self._file.lock:
            if self._used:
                self._change(lambda _: 0)
            self._file.close()

    def _select(self, condition: str, given: Sequence[bytes], order: str = "") -> list[StoredResponse]:
        statement = f"""SELECT key, source, tier, generation, first_us, last_us, expires_us, payload, near, vector, digest FROM responses
            WHERE {condition} AND (expires_us IS NULL OR expires_us > ?) {order}"""
        values = (*given, to_microseconds(self._clock.now()))
        with self._file.lock:
            found = self._file.rows(statement, values)
            rows = [StoredResponse(*fields) for *fields, digest in found if _is_whole(fields, digest)]
            return [each._replace(tier=_TIERS[each.tier]) for each in rows if not self._is_hidden(each.key, each.source_id)]

    def _known_generations(self) -> dict[SourceId, int]:
        return self._file.read(self._read_generations, otherwise=dict[SourceId, int]())

    def _read_generations(self, database: sqlite3.Connection) -> dict[SourceId, int]:
        (version,) = database.execute("PRAGMA data_version").fetchone()
        if self._seen != (database, version):
            rows = database.execute("SELECT source, generation FROM sources").fetchall()
            self._generations = {SourceId(source): number for source, number in rows if isinstance(number, int) and 0 < number < _LARGEST}
            self._seen = (database, version)
            for source, number in self._generations.items():
                self._newest[source] = max(number, self._newest.get(source, 0))
        return self._generations

    def _begun(self, sources: Sequence[SourceId]) -> dict[SourceId, int]:
        """Return a new generation for each source."""
        now_us = to_microseconds(self._clock.now())
        begun = {source: max(now_us, self._newest.get(source, 0) + 1) for source in sources}
        self._newest.update(begun)
        return begun

    def _is_hidden(self, key: bytes, source: str) -> bool:
        return bool(self._hidden) and not self._hidden.isdisjoint((key, source, _EVERYTHING))

    def _change(self, change: Callable[[sqlite3.Connection], Answer], *, hiding: Sequence[bytes | str | None] = ()) -> Answer | None:
        """Make a change in one transaction; when that fails, what it would have replaced is hidden."""

        def caught_up(database: sqlite3.Connection) -> Answer:
            self._catch_up(database)
            return change(database)

        with self._file.lock:
            changed = self._file.write(caught_up)
            self._seen = (None, 0)
            if changed is None:
                self._hidden.update(hiding if len(self._hidden) < MAX_HIDDEN else [_EVERYTHING])
            else:
                self._hidden.clear()
                self._used.clear()
            return changed

    def _catch_up(self, database: sqlite3.Connection) -> None:
        """Delete what is hidden and what has expired, and note what was used since the last change."""
        hidden = [(each,) for each in self._hidden]
        if _EVERYTHING in self._hidden:
            database.execute("DELETE FROM responses")
            database.execute("DELETE FROM sources")
        elif hidden:
            database.executemany("DELETE FROM responses WHERE key = ?1 OR source = ?1", hidden)
            database.executemany("DELETE FROM sources WHERE source = ?", hidden)
        database.execute("DELETE FROM responses WHERE expires_us <= ?", (to_microseconds(self._clock.now()),))
        if self._used:
            database.executemany("UPDATE responses SET used_us = ? WHERE key = ?", [(used, key) for key, used in self._used.items()])

    def _insert(self, database: sqlite3.Connection, responses: Sequence[StoredResponse]) -> list[StoredResponse]:
        now_us = to_microseconds(self._clock.now())
        generations = dict(database.execute("SELECT source, generation FROM sources").fetchall())
        kept: list[StoredResponse] = []
        for batch in _batches(responses):
            some = [each for each in batch if each.generation == generations.get(each.source_id)]
            # A newer response of another process stays, unless it seems to come from the future: that is not believed.
            statement = f"SELECT key, last_us FROM responses WHERE key IN ({_places(some)}) AND last_us <= ?"
            newer = dict(database.execute(statement, [*[each.key for each in some], now_us]).fetchall())
            some = [each for each in some if each.last_us >= newer.get(each.key, 0)]
            rows = [(*fields, now_us, _digest(fields)) for fields in [(*each[:2], each.tier.value, *each[3:]) for each in some]]
            if rows:
                places = ",".join([f"({_places(rows[0])})"] * len(rows))
                database.execute(f"INSERT OR REPLACE INTO responses VALUES {places}", [field for row in rows for field in row])
            kept += some
        self._make_room(database, added=len(kept))
        return kept

    def _make_room(self, database: sqlite3.Connection, *, added: int) -> None:
        """Delete what was not used for longest: alone, a process keeps no more than is allowed; of several each may add a quarter."""
        self._room -= added
        if self._room < 0:
            (count,) = database.execute("SELECT count(*) FROM responses").fetchone()
            surplus = count - self._most
            if surplus > 0:
                oldest = "SELECT rowid FROM responses ORDER BY used_us, rowid LIMIT ?"
                database.execute(f"DELETE FROM responses WHERE rowid IN ({oldest})", (surplus,))
            self._room = min(max(0, -surplus), self._most // 4)


def _insert_generations(database: sqlite3.Connection, begun: Mapping[SourceId, int]) -> int:
    rows = [(source, number) for source, number in begun.items() if has_utf8(source)]
    return database.executemany("INSERT OR REPLACE INTO sources VALUES (?, ?)", rows).rowcount


def _batches(values: Sequence[Value]) -> Iterator[Sequence[Value]]:
    return (values[start : start + _AT_ONCE] for start in range(0, len(values), _AT_ONCE))


def _places(values: Sequence[object]) -> str:
    return ",".join("?" * len(values))


def _digest(fields: Sequence[Any]) -> bytes:
    """Return what vouches for a row: for all of it but when it was used."""
    *others, payload, group, vector = fields
    hashed = blake2b(repr((others, group, vector)).encode(), digest_size=16)
    for start in range(0, len(payload), _HASHED_AT_ONCE):
        hashed.update(payload[start : start + _HASHED_AT_ONCE])
    return hashed.digest()


def _is_whole(fields: Sequence[object], digest: object) -> bool:
    """Tell whether a row is what was written, in a tier that is known."""
    return fields[2] in _TIERS and isinstance(fields[7], bytes) and _digest(fields) == digest
