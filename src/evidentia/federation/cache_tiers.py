"""The tiers that outlive a request: which are looked in for a question, for how long each keeps, and what is alike.

First just this question is looked for in every tier, then, where the settings say so, similar ones.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from functools import lru_cache
from hashlib import shake_256
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from evidentia.contracts.retrieval import StoredResponse
from evidentia.contracts.vectors import LARGEST_COMPONENT
from evidentia.contracts.vocabulary import CacheTier
from evidentia.federation.cache_entries import Demand, Entry, EntryCache, decode_entry, encode_candidates
from evidentia.foundation.background_writer import BackgroundWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from evidentia.contracts.ids import SourceId
    from evidentia.contracts.ports import ResponseStore
    from evidentia.contracts.retrieval import ExternalCandidate
    from evidentia.contracts.settings import CacheSettings
    from evidentia.contracts.sources import SourceDescriptor
    from evidentia.federation.cache_keys import CacheKey, EntryKeys


SECOND_US: Final = 1_000_000
MAX_DURATION_US: Final = 100 * 366 * 86_400 * SECOND_US
"""A time to live longer than a century counts as one, so that every end of it is a date."""


class CacheHit(NamedTuple):
    """What was kept, where, and what has to be said about it."""

    candidates: tuple[ExternalCandidate, ...]
    tier: CacheTier
    age_ms: int
    is_reused: bool
    """Whether it was found for another, similar question, so that its order means nothing."""
    is_stale: bool
    """Whether it is past its time and only stands in for a source that gives no answer."""


class Lifetimes(NamedTuple):
    """How long an entry is good, and how long it is kept, as good or as a stand-in; None is for ever."""

    fresh_us: int | None
    kept_us: int | None


class Lookup(NamedTuple):
    """A question with its keys and its demand."""

    key: CacheKey
    keys: EntryKeys
    demand: Demand

    def hit(self, tier: CacheTier, entry: Entry, *, is_reused: bool = False, is_stale: bool = False) -> CacheHit:
        """Return what answers the question."""
        return CacheHit(entry.candidates, tier, self.demand.age_ms(entry), is_reused=is_reused, is_stale=is_stale)


class Tiers:
    """Finds and keeps entries, each in its tier. Thread safe."""

    def __init__(self, store: ResponseStore, *, settings: CacheSettings) -> None:
        self._store = store
        self._settings = settings
        self._entries = EntryCache(store, most_entries=settings.most_entries)
        self.waiting = WriteBehind(self._write)
        self._ttl_s = {CacheTier.SESSION: settings.session_ttl_s, CacheTier.GLOBAL: settings.global_ttl_s}

    def get(self, lookups: Sequence[Lookup], *, is_stale: bool = False) -> list[CacheHit | None]:
        """Return the best of what is kept and good for each question; with `is_stale` of what is past its time."""
        wanted: list[bytes] = []
        held: dict[bytes, Entry] = {}
        for lookup in lookups:
            for tier, key in lookup.keys.entries.items():
                entry = self._held(lookup, tier, key, is_stale=is_stale)
                if entry is not None:
                    held[key] = entry
                    break
                wanted.append(key)
        known = {**self._entries.read(wanted, now_us=lookups[0].demand.now_us), **held} if wanted else held
        hits = [self._exact(lookup, known, is_stale=is_stale) for lookup in lookups]
        if not self._settings.semantic:
            return hits
        return [hit or self._alike(lookup, is_stale=is_stale) for hit, lookup in zip(hits, lookups, strict=True)]

    def put(self, lookup: Lookup, entry: Entry, *, is_precomputed: bool) -> None:
        """Keep what was found ahead of time, in a session, or else for everybody on the same terms; it waits to be written."""
        found_in = CacheTier.SESSION if CacheTier.SESSION in lookup.keys.entries else CacheTier.GLOBAL
        tier = CacheTier.PRECOMPUTED if is_precomputed and found_in is CacheTier.GLOBAL else found_in
        if self._lifetimes(tier, lookup.key.descriptor).kept_us != 0:
            chars = sum([len(candidate.content) for candidate in entry.candidates])
            self.waiting.add(lookup.keys.entries[tier], PendingWrite(lookup, tier, entry, chars))

    def invalidate(self, source_id: SourceId | None) -> int:
        """Drop everything of one source, or of all, and return how many answers there were."""
        self.waiting.flush()  # so that those that wait are counted too
        with self.waiting.invalidating(source_id):
            count = self._store.invalidate(source_id)
            self._entries.invalidate(source_id)
            return count

    def _exact(self, lookup: Lookup, known: Mapping[bytes, Entry], *, is_stale: bool) -> CacheHit | None:
        for tier, key in lookup.keys.entries.items():
            entry = known.get(key)
            if entry is not None and lookup.demand.admits(entry, lifetime_us=self._lifetime_us(lookup, tier, is_stale=is_stale)):
                self._store.touch([key])
                return lookup.hit(tier, entry, is_stale=is_stale)
        return None

    def _held(self, lookup: Lookup, tier: CacheTier, key: bytes, *, is_stale: bool) -> Entry | None:
        """Return what is in memory and good: what waits to be written before what was."""
        lifetime_us = self._lifetime_us(lookup, tier, is_stale=is_stale)
        waiting = self.waiting.get(key)
        if waiting is not None and lookup.demand.admits(waiting.entry, lifetime_us=lifetime_us):
            return waiting.entry
        return self._entries.get(key, lookup.demand, lifetime_us=lifetime_us)

    def _lifetime_us(self, lookup: Lookup, tier: CacheTier, *, is_stale: bool) -> int | None:
        return self._lifetimes(tier, lookup.key.descriptor)[is_stale]

    def _lifetimes(self, tier: CacheTier, descriptor: SourceDescriptor) -> Lifetimes:
        return lifetimes_of(promised_s=descriptor.freshness_sla_s, ttl_s=self._ttl_s.get(tier), stale_ttl_s=self._settings.stale_ttl_s)

    def _write(self, some: Sequence[tuple[bytes, PendingWrite]]) -> None:
        """Write answers in one transaction; where similar ones are looked for, one by one: the next may be alike to the last."""
        for batch in [[each] for each in some] if self._settings.semantic else [some]:
            entries = {key: waiting.entry for key, waiting in batch}
            rows = [row for key, waiting in batch if (row := self._row(key, waiting)) is not None]
            for kept in self._store.put(rows):
                self._entries.hold(kept, entries[kept.key], now_us=batch[0][1].lookup.demand.now_us)

    def _row(self, key: bytes, waiting: PendingWrite) -> StoredResponse | None:
        lookup, tier, entry, _ = waiting
        payload = encode_candidates(entry.candidates)
        if payload is None:
            return None
        kept_us, group = self._lifetimes(tier, lookup.key.descriptor).kept_us, self._group(lookup, tier, key)
        expires_us = None if kept_us is None else entry.first_us + kept_us
        source, generation, vector = lookup.key.source_id, lookup.key.generation, None if group is None else lookup.key.vector
        return StoredResponse(key, source, tier, generation, entry.first_us, entry.last_us, expires_us, payload, group, vector)

    def _alike(self, lookup: Lookup, *, is_stale: bool) -> CacheHit | None:
        """Return what answers a similar question, the session's first, the most alike first."""
        vector = self._vector(lookup)
        if vector is None:
            return None
        self.waiting.flush()  # questions are found by those they are alike to once they are written
        for tier in lookup.keys.entries:
            lifetime_us = self._lifetime_us(lookup, tier, is_stale=is_stale)
            for stored in nearest(vector, self._neighbours(lookup, tier, vector), similarity_milli=self._settings.similarity_milli):
                entry = decode_entry(stored) if lookup.demand.admits(stored, lifetime_us=lifetime_us) else None
                if entry is not None:
                    self._store.touch([stored.key])
                    return lookup.hit(tier, entry, is_reused=True, is_stale=is_stale)
        return None

    def _group(self, lookup: Lookup, tier: CacheTier, key: bytes) -> bytes | None:
        """Return the group in which similar questions find one; a question near a leader that is good is found through that."""
        vector = self._vector(lookup)
        if vector is None or tier is CacheTier.PRECOMPUTED:
            return None
        if tier is CacheTier.GLOBAL:
            leaders = self._neighbours(lookup, tier, vector)
            fresh_us = self._lifetime_us(lookup, tier, is_stale=False)
            near = nearest(vector, leaders, similarity_milli=self._settings.similarity_milli)
            is_led = any(lookup.demand.admits(leader, lifetime_us=fresh_us) for leader in near)
            if is_led and key not in [leader.key for leader in leaders]:
                return None
        return _group_of(lookup, tier, vector)

    def _neighbours(self, lookup: Lookup, tier: CacheTier, vector: NDArray[np.int64]) -> Sequence[StoredResponse]:
        if tier is CacheTier.PRECOMPUTED:
            return ()
        return self._store.neighbours(_group_of(lookup, tier, vector), limit=BUCKET_MEMBERS if tier is CacheTier.SESSION else MAX_LEADERS)

    def _vector(self, lookup: Lookup) -> NDArray[np.int64] | None:
        return read_vector(lookup.key.vector) if self._settings.semantic and lookup.keys.space else None


def _group_of(lookup: Lookup, tier: CacheTier, vector: NDArray[np.int64]) -> bytes:
    return lookup.keys.bucket(bucket_of(vector)) if tier is CacheTier.SESSION else lookup.keys.leaders()


@lru_cache(maxsize=256)
def lifetimes_of(*, promised_s: int | None, ttl_s: int | None, stale_ttl_s: int) -> Lifetimes:
    """Return how long an entry is good: as long as its tier says, and no longer than its source promises; None is for ever."""
    fresh_us = min((min(limit * SECOND_US, MAX_DURATION_US) for limit in (promised_s, ttl_s) if limit is not None), default=None)
    return Lifetimes(fresh_us, None if fresh_us is None else fresh_us + min(stale_ttl_s * SECOND_US, MAX_DURATION_US))


# --- cache waiting ---
# Answers that are kept in memory at once and written a little later, many together: nobody who asks waits for the store.
#
# What is lost with the process was only kept for the next one who asks. What is forgotten meanwhile is never written.

PAUSE_S: Final = 0.5
"""How long answers gather before they are written."""
BATCH: Final = 64
"""At most so many answers are written in one transaction, so that nobody who reads waits long for it."""
MANY: Final = 512
"""When so many answers wait they are written without a pause."""
MAX_WAITING: Final = 4_096
MAX_CHARS: Final = 16 * 1024 * 1024
"""Of what waits; where the store takes it more slowly than it comes, the oldest are lost."""


class PendingWrite(NamedTuple):
    """An answer that is to be written: the question it answers, where it belongs, and how much text it has."""

    lookup: Lookup
    tier: CacheTier
    entry: Entry
    chars: int


class WriteBehind:
    """Holds what is to be written, and has it written from a thread of its own. Thread safe.

    `write` is given some of it at a time, never twice at once; when it raises, those are lost.
    """

    def __init__(self, write: Callable[[Sequence[tuple[bytes, PendingWrite]]], None]) -> None:
        self._write = write
        self._lock = threading.Lock()
        self._waiting: dict[bytes, PendingWrite] = {}
        self._chars = 0
        self._writer = BackgroundWriter(self._write_some, name="evidentia-cache", pause_s=PAUSE_S)

    def add(self, key: bytes, waiting: PendingWrite) -> None:
        """Keep an answer, in place of what waits under its key."""
        with self._lock:
            self._drop(key)
            self._waiting[key] = waiting
            self._chars += waiting.chars
            while len(self._waiting) > MAX_WAITING or self._chars > MAX_CHARS:
                self._drop(next(iter(self._waiting)))

    def get(self, key: bytes) -> PendingWrite | None:
        """Return what waits under a key."""
        return self._waiting.get(key)

    def start(self) -> None:
        """Have what waits written soon; after `close` at once."""
        if self._writer.is_closed:
            self.flush()
        else:
            self._writer.notify(hurry=len(self._waiting) >= MANY)

    def flush(self) -> None:
        """Write what waits."""
        while self._waiting:
            self._writer.flush()

    @contextmanager
    def invalidating(self, source_id: SourceId | None) -> Iterator[None]:
        """Drop what waits of a source, or of all; within the context nothing is written."""
        with self._writer.writing:
            with self._lock:
                for key, waiting in list(self._waiting.items()):
                    if source_id in (None, waiting.lookup.key.source_id):
                        self._drop(key)
            yield

    def close(self) -> None:
        """Write what waits, and what comes later at once."""
        self._writer.close()
        self.flush()

    def _write_some(self) -> None:
        """Write one batch; the lock is let go between two, so that nobody who drops something waits for all of them."""
        with self._lock:
            some = list(islice(self._waiting.items(), BATCH))
        if not some:
            return
        try:
            self._write(some)
        finally:
            with self._lock:
                for key, written in some:
                    if self._waiting.get(key) is written:  # else another answer came meanwhile
                        self._drop(key)
            if self._waiting:
                self._writer.notify(hurry=True)

    def _drop(self, key: bytes) -> None:
        dropped = self._waiting.pop(key, None)
        if dropped is not None:
            self._chars -= dropped.chars


# --- semantic cache ---
# Which questions are alike: buckets within a session, leaders across sessions. All arithmetic is in integers and exact. A bucket is the
# signs of a few fixed projections of the vector (Charikar 2002). Leaders are clusters that stand for themselves: a question that is near
# a leader joins it, any other becomes one (Hartigan 1975, "leader algorithm"); there are at most so many, and the one that has led for
# longest gives way. In either, two questions are alike only when the cosine of their vectors reaches the threshold.

BUCKET_BITS: Final = 4
BUCKET_MEMBERS: Final = 16
MAX_LEADERS: Final = 64
"""Per caller, source and kind of question."""

_LARGEST_DIMENSION: Final = 8_192
_COMPONENT_BYTES: Final = 4
_CLOSENESS_BITS: Final = 40
_MILLI_SQUARED: Final = 1_000_000


def nearest(vector: NDArray[np.int64], stored: Sequence[StoredResponse], *, similarity_milli: int) -> list[StoredResponse]:
    """Return the responses to questions that are alike, most alike first, equally alike ones by key."""
    known = [(each, row) for each in stored if (row := read_vector(each.vector)) is not None and row.size == vector.size]
    if not known:
        return []
    rows, own = np.stack([row for _, row in known]), int(vector @ vector)
    # Components are at most 2^22 and rows at most 2^13 long, so that no sum leaves 63 bits.
    products, norms = (rows @ vector).tolist(), np.einsum("ij,ij->i", rows, rows).tolist()
    ranked = [
        (-closeness(product, own * norm), each.key, each)
        for product, norm, (each, _) in zip(products, norms, known, strict=True)
        if is_alike(product, own * norm, similarity_milli=similarity_milli)
    ]
    return [each for _, _, each in sorted(ranked)]


def read_vector(raw: bytes | None) -> NDArray[np.int64] | None:
    """Return a question's vector; None when there is none, or nothing can be compared with it."""
    if not raw or len(raw) % _COMPONENT_BYTES or len(raw) > _LARGEST_DIMENSION * _COMPONENT_BYTES:
        return None
    vector = np.frombuffer(raw, dtype="<i4").astype(np.int64)
    largest = int(np.abs(vector).max())
    return vector if 0 < largest <= LARGEST_COMPONENT else None


def bucket_of(vector: NDArray[np.int64]) -> int:
    """Return the bucket of a vector, from 0 to 15; a sum of zero counts as positive."""
    signs = (_projections(vector.size) @ vector) >= 0
    return sum(1 << bit for bit, is_positive in enumerate(signs.tolist()) if is_positive)


def is_alike(product: int, norms: int, *, similarity_milli: int) -> bool:
    """Tell whether a cosine reaches so many thousandths, given a scalar product and the product of both squared lengths."""
    return norms > 0 and product >= 0 and product * product * _MILLI_SQUARED >= similarity_milli * similarity_milli * norms


def closeness(product: int, norms: int) -> int:
    """Return the square of a cosine, with the cosine's sign, at 2^-40 and rounded down."""
    return (product * abs(product) << _CLOSENESS_BITS) // norms


@lru_cache(maxsize=16)
def _projections(dimension: int) -> NDArray[np.int64]:
    """Return rows of 1 and -1 that are the same for everybody, always."""
    drawn = shake_256(b"evidentia cache bucket %d" % dimension).digest(BUCKET_BITS * ((dimension + 7) // 8))
    bits = np.unpackbits(np.frombuffer(drawn, dtype=np.uint8).reshape(BUCKET_BITS, -1), axis=1)[:, :dimension]
    rows: NDArray[np.int64] = 2 * bits.astype(np.int64) - 1
    return rows
