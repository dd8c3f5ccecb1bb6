"""What is kept of one answer, as bytes and as objects, and whether it is still good."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from evidentia.contracts.decoding import msgpack_decoder
from evidentia.contracts.retrieval import ExternalCandidate, StoredResponse
from evidentia.foundation.lru import SharedLruCache
from evidentia.foundation.sqlite_file import to_microseconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from evidentia.contracts.ids import SourceId
    from evidentia.contracts.ports import ResponseStore
    from evidentia.federation.cache_keys import CacheKey


_HELD_ENTRIES: Final = 1_024
_HELD_BYTES: Final = 32 * 1024 * 1024
_TRUSTED_US: Final = 60_000_000
"""After a minute an entry is read again from the store: another process may have kept a newer answer."""


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
    def of(cls, key: CacheKey, *, now: datetime) -> Demand:
        """Return the demand of a question that is asked now."""
        limit = key.max_staleness_ms
        return cls(to_microseconds(now), to_microseconds(key.ask.as_of), None if limit is None else limit * 1_000)

    def admits(self, entry: Entry | StoredResponse, *, lifetime_us: int | None) -> bool:
        """Tell whether an entry is from before `as_of`, young enough for the request and within a lifetime; None is without end.

        What seems to come from the future is not admitted: then one of two clocks is wrong.
        """
        if entry.last_us > self.as_of_us or entry.last_us > self.now_us:
            return False
        return self.is_young(entry) and (lifetime_us is None or self.now_us - entry.first_us < lifetime_us)

    def is_young(self, entry: Entry | StoredResponse) -> bool:
        """Tell whether an entry is young enough for the request."""
        return self.max_age_us is None or self.now_us - entry.first_us <= self.max_age_us

    def age_ms(self, entry: Entry) -> int:
        """Return how old the oldest of an entry is."""
        return max(0, self.now_us - entry.first_us) // 1_000


def entry_of(candidates: Sequence[ExternalCandidate], *, retrieved_at: datetime) -> Entry:
    """Return what is kept of an answer."""
    moments = [retrieved_at, *[candidate.retrieved_at for candidate in candidates]]
    return Entry(to_microseconds(min(moments)), to_microseconds(max(moments)), tuple(candidates))


_Row = msgspec.defstruct(
    "_Row", [(field.name, field.type) for field in msgspec.structs.fields(ExternalCandidate)], frozen=True, array_like=True
)
"""A candidate without the names of its fields, which are a third of it: what is kept is hashed, written and read all the time."""
_encoder: Final = msgspec.msgpack.Encoder()
_decode: Final = msgpack_decoder(tuple[_Row, ...])  # type: ignore[valid-type]  # mypy takes no type made so


def encode_candidates(candidates: Sequence[ExternalCandidate]) -> bytes | None:
    """Return the bytes to keep; None when a text of a candidate has none."""
    try:
        return _encoder.encode([msgspec.structs.astuple(candidate) for candidate in candidates])
    except UnicodeEncodeError:
        return None


def decode_entry(stored: StoredResponse) -> Entry | None:
    """Return the entry that a store kept; None when its bytes are of another form."""
    try:
        rows = _decode(stored.payload)
    except (msgspec.MsgspecError, ValueError):
        return None
    return Entry(stored.first_us, stored.last_us, tuple([ExternalCandidate(**msgspec.structs.asdict(row)) for row in rows]))


class Held(NamedTuple):
    """An entry in memory: its source, its size in bytes, and when it was last read from the store or written there."""

    entry: Entry
    source_id: SourceId
    size: int
    read_us: int


class EntryCache:
    """The entries used last as objects, in front of their store (LRU). Thread safe."""

    def __init__(self, store: ResponseStore, *, most_entries: int) -> None:
        self._store = store
        # No more than the store keeps: what it drops for want of room is then not found here either.
        self._held = SharedLruCache[bytes, Held](min(_HELD_ENTRIES, most_entries), max_weight=_HELD_BYTES, weigh=attrgetter("size"))

    def get(self, key: bytes, demand: Demand, *, lifetime_us: int | None) -> Entry | None:
        """Return an entry that is in memory, was read lately and is admitted."""
        held = self._held.get(key)
        if held is None or demand.now_us - held.read_us >= _TRUSTED_US or not demand.admits(held.entry, lifetime_us=lifetime_us):
            return None
        return held.entry

    def read(self, keys: Sequence[bytes], *, now_us: int) -> Mapping[bytes, Entry]:
        """Return entries from the store, all in one go."""
        found = self._store.get(keys)
        entries: dict[bytes, Entry] = {}
        for key in keys:
            entry = decode_entry(found[key]) if key in found else None
            if entry is None:
                self._held.pop(key)
            else:
                entries[key] = entry
                self.hold(found[key], entry, now_us=now_us)
        return entries

    def hold(self, stored: StoredResponse, entry: Entry, *, now_us: int) -> None:
        """Keep an entry in memory that is in the store now."""
        self._held.put(stored.key, Held(entry, stored.source_id, len(stored.payload), now_us))

    def invalidate(self, source_id: SourceId | None) -> None:
        """Let go of the entries of a source, or of all."""
        for key, held in self._held.items():
            if source_id in (None, held.source_id):
                self._held.pop(key)
