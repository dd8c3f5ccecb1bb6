"""What is kept of one answer, as bytes and as objects, and whether it is still good.

Bytes that are cut, changed, of another form or under another name than they were kept under are no entry; nothing is repaired.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from evidentia.contracts.retrieval import ExternalCandidate
from evidentia.federation.cache_keys import ENTRIES, FORMAT, INVALIDATED, USED, CacheKey, entry_name, quoted, tier_of, used_name
from evidentia.foundation.lru import SharedLruCache

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evidentia.contracts.ids import SourceId
    from evidentia.contracts.ports import KeyValueStore
    from evidentia.contracts.vocabulary import CacheTier


SECOND_US: Final = 1_000_000
MAX_DURATION_US: Final = 100 * 366 * 86_400 * SECOND_US
"""A time to live longer than a century counts as one, so that every end of it is a date."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_SEAL_BYTES: Final = 16
_HELD_ENTRIES: Final = 1_024
_HELD_BYTES: Final = 32 * 1024 * 1024


class Entry(NamedTuple):
    """Candidates with the moments, in microseconds, between which the source gave them; the older one tells their age."""

    first_us: int
    last_us: int
    candidates: tuple[ExternalCandidate, ...]


class Demand(NamedTuple):
    """What a question asks of an entry, all in microseconds."""

    now_us: int
    as_of_us: int
    max_age_us: int | None

    @classmethod
    def of(cls, key: CacheKey, *, now: datetime, is_any_age: bool = False) -> Demand:
        """Return the demand of a question that is asked now."""
        limit = None if is_any_age else key.max_staleness_ms
        return cls(microseconds(now), microseconds(key.ask.as_of), None if limit is None else limit * 1_000)

    def admits(self, entry: Entry, *, lifetime_us: int | None) -> bool:
        """Tell whether an entry is from before `as_of`, young enough for the request and within a lifetime; None is without end.

        What seems to come from the future is not admitted: then one of two clocks is wrong.
        """
        if entry.last_us > self.as_of_us or entry.last_us > self.now_us:
            return False
        return self.is_young(entry) and (lifetime_us is None or self.now_us - entry.first_us < lifetime_us)

    def is_young(self, entry: Entry) -> bool:
        """Tell whether an entry is young enough for the request."""
        return self.max_age_us is None or self.now_us - entry.first_us <= self.max_age_us

    def age_ms(self, entry: Entry) -> int:
        """Return how old the oldest of an entry is."""
        return max(0, self.now_us - entry.first_us) // 1_000


def entry_of(candidates: Sequence[ExternalCandidate], *, retrieved_at: datetime) -> Entry:
    """Return what is kept of an answer."""
    moments = [retrieved_at, *[candidate.retrieved_at for candidate in candidates]]
    return Entry(microseconds(min(moments)), microseconds(max(moments)), tuple(candidates))


_Row = msgspec.defstruct(
    "_Row", [(field.name, field.type) for field in msgspec.structs.fields(ExternalCandidate)], frozen=True, array_like=True
)
"""A candidate without the names of its fields, which are a third of it: what is kept is hashed, written and read all the time."""
_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(tuple[int, int, tuple[_Row, ...]])  # type: ignore[valid-type]  # mypy takes no type made so


def encode_entry(entry: Entry, *, name: str) -> bytes | None:
    """Return the bytes to keep under a name; None when a text of a candidate has no bytes."""
    rows = [msgspec.structs.astuple(candidate) for candidate in entry.candidates]
    try:
        return seal(_encoder.encode((entry.first_us, entry.last_us, rows)), name=name)
    except UnicodeEncodeError:
        return None


def decode_entry(kept: bytes | None, *, name: str) -> Entry | None:
    """Return the entry that bytes under a name hold, if they do."""
    content = unseal(kept, name=name)
    if content is None:
        return None
    try:
        first_us, last_us, rows = _decoder.decode(content)
    except (msgspec.MsgspecError, ValueError):
        return None
    return Entry(first_us, last_us, tuple([ExternalCandidate(**msgspec.structs.asdict(row)) for row in rows]))


def seal(content: bytes, *, name: str) -> bytes:
    """Return content behind a checksum of it and of its name."""
    return _checksum(content, name) + content


def unseal(kept: bytes | None, *, name: str) -> bytes | None:
    """Return sealed content when it is whole and in its place."""
    if kept is None or len(kept) < _SEAL_BYTES:
        return None
    content = kept[_SEAL_BYTES:]
    return content if _checksum(content, name) == kept[:_SEAL_BYTES] else None


class Held(NamedTuple):
    """An entry in memory: its size in bytes, and when it was last read from the store or written there."""

    entry: Entry
    size: int
    read_us: int


def microseconds(moment: datetime) -> int:
    """Return a moment as whole microseconds since 1970."""
    return (moment - _EPOCH) // _MICROSECOND


def moment_at(microseconds: int) -> datetime:
    """Return the moment so many microseconds after 1970."""
    return _EPOCH + microseconds * _MICROSECOND


def _checksum(content: bytes, name: str) -> bytes:
    place = blake2b(name.encode(), digest_size=_SEAL_BYTES).digest()
    return blake2b(content, digest_size=_SEAL_BYTES, key=place, person=b"kept-%d" % FORMAT).digest()


# --- cache entries ---
# Entries by name: in memory those used last, in the store all of them, and room made for new ones.

_TRUSTED_US: Final = 60_000_000
"""After a minute an entry is read again from the store: another process may have kept a newer answer."""


class EntryStore:
    """Keeps entries. Thread safe."""

    def __init__(self, store: KeyValueStore, *, most_entries: int) -> None:
        self._store = store
        self._held = SharedLruCache[str, Held](_HELD_ENTRIES, max_weight=_HELD_BYTES, weigh=attrgetter("size"))
        """The entries used last, as objects, so that they need not be read again."""
        self._usage = Usage(store, most_entries=most_entries)

    def read(self, name: str, demand: Demand, *, lifetime_us: int | None, kept_us: int | None) -> Entry | None:
        """Return the entry under a name when the demand admits it within its lifetime; it is kept for `kept_us` in all."""
        held = self._held.get(name)
        if held is None or demand.now_us - held.read_us >= _TRUSTED_US or not demand.admits(held.entry, lifetime_us=lifetime_us):
            held = self._load(name, now_us=demand.now_us)
            if held is None or not demand.admits(held.entry, lifetime_us=lifetime_us):
                return None
            self._usage.note_again(name, used_us=demand.now_us, expires_us=_end(held.entry, kept_us))
        self._held.put(name, held)
        self._usage.use(name, used_us=demand.now_us)
        return held.entry

    def holds(self, name: str) -> bool:
        """Tell whether an entry is in memory."""
        return name in self._held

    def write(self, name: str, entry: Entry, *, now_us: int, kept_us: int | None) -> bool:
        """Keep an entry for a while, in place of what was there; False when it cannot be kept."""
        content = encode_entry(entry, name=name)
        if content is None:
            return False
        for dropped in self._usage.make_room(name):
            self._held.pop(dropped)
        expires_us = _end(entry, kept_us)
        self._store.put(name, content, expires_at=None if expires_us is None else moment_at(expires_us))
        self._usage.note(name, used_us=now_us, expires_us=expires_us)
        self._usage.use(name, used_us=now_us)
        self._held.put(name, Held(entry, len(content), now_us))
        return True

    def is_superseded(self, name: str, entry: Entry, *, now_us: int) -> bool:
        """Tell whether another process has kept a newer answer since this one came; one from the future is not believed."""
        stored = decode_entry(self._store.get(name), name=name)
        return stored is not None and entry.last_us < stored.last_us <= now_us

    def invalidate(self, source_id: SourceId | None) -> int:
        """Drop every entry of a source, or of all, with all that points to them; return how many entries there were."""
        for name in self._held:
            if name.startswith(entries_under(source_id)):
                self._held.pop(name)
        self._usage.invalidate(entries_under(source_id))
        counts = {prefix: self._store.delete(prefix + _steps(source_id)) for prefix in INVALIDATED}
        return counts[ENTRIES]

    def entries(self) -> Mapping[CacheTier, int]:
        """Return how many entries each tier has."""
        return self._usage.entries()

    def _load(self, name: str, *, now_us: int) -> Held | None:
        content = self._store.get(name)
        entry = decode_entry(content, name=name)
        if entry is None or content is None:
            self._held.pop(name)
            return None
        held = Held(entry, len(content), now_us)
        self._held.put(name, held)
        return held


def entries_under(source_id: SourceId | None) -> str:
    """Return how the names of a source's entries begin, or of all."""
    return ENTRIES + _steps(source_id)


def _steps(source_id: SourceId | None) -> str:
    return "" if source_id is None else f"{quoted(source_id)}/"


def _end(entry: Entry, kept_us: int | None) -> int | None:
    return None if kept_us is None else entry.first_us + kept_us


# --- cache usage ---
# Which entries were used when, so that those not used for longest make room; kept in the store, for all processes alike.
#
# The store is looked through seldom, since that takes long. In between a process goes by what it did itself: alone it never keeps more
# entries than the settings allow beyond a sixteenth, and after the first look none beyond. Of several, each may add a quarter.

NOTED_EVERY_US: Final = 60_000_000
"""A use is written down for other processes once in a minute; in this one it counts at once."""

_FIRST_LOOK: Final = 16
_NEXT_LOOK: Final = 4
_MOMENT_BYTES: Final = 8


class Usage:
    """Notes uses and makes room. Thread safe."""

    def __init__(self, store: KeyValueStore, *, most_entries: int) -> None:
        self._store = store
        self._most = most_entries
        self._used: OrderedDict[str, int] = OrderedDict()
        """When each entry was last used, as far as this process knows, longest ago first."""
        self._before_look = min(64, most_entries // _FIRST_LOOK)
        self._has_looked = False
        self._lock = threading.Lock()

    def use(self, entry: str, *, used_us: int) -> None:
        """Count a use of an entry in this process."""
        with self._lock:
            self._used[entry] = used_us
            self._used.move_to_end(entry)
            if len(self._used) > self._most:  # others keep more, or this process has not looked for a while
                self._used.popitem(last=False)

    def note(self, entry: str, *, used_us: int, expires_us: int | None) -> None:
        """Write down when an entry was used; the note ends with the entry."""
        expires_at = None if expires_us is None else moment_at(expires_us)
        self._store.put(used_name(entry), max(0, used_us).to_bytes(_MOMENT_BYTES, "big"), expires_at=expires_at)

    def note_again(self, entry: str, *, used_us: int, expires_us: int | None) -> None:
        """Write down that an entry is still used, unless it was written down within the last minute."""
        noted = self._store.get(used_name(entry))
        if noted is None or used_us - _moment(noted) >= NOTED_EVERY_US:
            self.note(entry, used_us=used_us, expires_us=expires_us)

    def make_room(self, entry: str) -> list[str]:
        """Make room for an entry and return those that were dropped for it."""
        with self._lock:
            if self._is_time_to_look(entry):
                self._look()
            self._used.pop(entry, None)
            dropped = [self._used.popitem(last=False)[0] for _ in range(len(self._used) + 1 - self._most)]
        for gone in dropped:
            self._store.delete(gone)
            self._store.delete(used_name(gone))
        return dropped

    def invalidate(self, prefix: str) -> None:
        """Let go of every entry whose name begins so."""
        with self._lock:
            for entry in [entry for entry in self._used if entry.startswith(prefix)]:
                del self._used[entry]

    def entries(self) -> Mapping[CacheTier, int]:
        """Return how many entries each tier has, everybody's together."""
        return Counter(tier for name, _ in self._store.items(USED) if (tier := tier_of(name)) is not None)

    def _is_time_to_look(self, entry: str) -> bool:
        """Tell whether to look through the store: after so many entries, and sooner in one of 16 processes that end before that."""
        self._before_look -= 1
        return self._before_look < 0 or (not self._has_looked and entry.endswith("0"))

    def _look(self) -> None:
        known = {entry_name(name): _moment(kept) for name, kept in self._store.items(USED)}
        used = {entry: max(moment, self._used.get(entry, 0)) for entry, moment in known.items()}
        self._used = OrderedDict(sorted(used.items(), key=lambda pair: (pair[1], pair[0])))
        self._before_look = self._most // _NEXT_LOOK
        self._has_looked = True


def _moment(kept: bytes) -> int:
    return int.from_bytes(kept, "big") if len(kept) == _MOMENT_BYTES else 0
