"""The tiers that outlive a request: which are looked in for a question, for how long each keeps, and what is alike.

First just this question is looked for in every tier, then, where the settings say so, similar ones.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.contracts.vocabulary import CacheTier
from evidentia.federation.cache_entries import MAX_DURATION_US, SECOND_US, Demand, Entry, EntryStore, moment_at
from evidentia.federation.semantic_cache import (
    BUCKET_MEMBERS,
    MAX_LEADERS,
    bucket_of,
    decode_neighbourhood,
    encode_neighbourhood,
    read_vector,
)
from evidentia.foundation.background_writer import BackgroundWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from evidentia.contracts.ports import KeyValueStore
    from evidentia.contracts.retrieval import ExternalCandidate
    from evidentia.contracts.settings import CacheSettings
    from evidentia.contracts.sources import SourceDescriptor
    from evidentia.federation.cache_keys import CacheKey, EntryNames
    from evidentia.federation.semantic_cache import Neighbourhood


_ANY_SESSION: Final = (CacheTier.PRECOMPUTED, CacheTier.GLOBAL)
_IN_SESSION: Final = (CacheTier.SESSION, *_ANY_SESSION)


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
    """A question with its names and its demand."""

    key: CacheKey
    names: EntryNames
    demand: Demand

    @property
    def tiers(self) -> tuple[CacheTier, ...]:
        """Return the tiers that may hold an answer, in the order in which they are looked in."""
        return tiers_of(self.names)


class Tiers:
    """Finds and keeps entries, each in its tier. Thread safe."""

    def __init__(self, store: KeyValueStore, *, entries: EntryStore, waiting: WriteBehind, settings: CacheSettings) -> None:
        self._store = store
        self._entries = entries
        self._waiting = waiting
        self._settings = settings
        self._ttl_s = {CacheTier.SESSION: settings.session_ttl_s, CacheTier.GLOBAL: settings.global_ttl_s}

    def get(self, lookup: Lookup, *, is_stale: bool) -> CacheHit | None:
        """Return the best of what is kept and good; with `is_stale` of what is past its time."""
        for tier in lookup.tiers:
            entry = self._read(lookup, tier, lookup.names.entry(tier), is_stale=is_stale)
            if entry is not None:
                return _hit(lookup, tier, entry, is_stale=is_stale)
        for tier, name in self._alike(lookup):
            entry = self._read(lookup, tier, name, is_stale=is_stale)
            if entry is not None:
                return _hit(lookup, tier, entry, is_stale=is_stale, is_reused=True)
        return None

    def put(self, lookup: Lookup, entry: Entry, *, is_precomputed: bool) -> None:
        """Keep what was found ahead of time, in a session, or else for everybody on the same terms; it waits to be written."""
        found_in = CacheTier.GLOBAL if lookup.names.session is None else CacheTier.SESSION
        tier = CacheTier.PRECOMPUTED if is_precomputed and found_in is CacheTier.GLOBAL else found_in
        if self._lifetimes(tier, lookup.key.descriptor).kept_us != 0:
            chars = sum([len(candidate.content) for candidate in entry.candidates])
            self._waiting.add(lookup.names.entry(tier), PendingWrite(lookup, tier, entry, chars))

    def write(self, name: str, waiting: PendingWrite, *, now_us: int) -> None:
        """Write what waits, unless something newer was written under its name meanwhile."""
        lookup, tier, entry, _ = waiting
        kept_us = self._lifetimes(tier, lookup.key.descriptor).kept_us
        if self._entries.is_superseded(name, entry, now_us=now_us):
            return
        if self._entries.write(name, entry, now_us=lookup.demand.now_us, kept_us=kept_us):
            self._join(lookup, tier, name, entry)

    def _read(self, lookup: Lookup, tier: CacheTier, name: str, *, is_stale: bool) -> Entry | None:
        fresh_us, kept_us = self._lifetimes(tier, lookup.key.descriptor)
        lifetime_us = kept_us if is_stale else fresh_us
        waiting = self._waiting.get(name)
        if waiting is not None and lookup.demand.admits(waiting.entry, lifetime_us=lifetime_us):
            return waiting.entry
        return self._entries.read(name, lookup.demand, lifetime_us=lifetime_us, kept_us=kept_us)

    def _lifetimes(self, tier: CacheTier, descriptor: SourceDescriptor) -> Lifetimes:
        return lifetimes_of(promised_s=descriptor.freshness_sla_s, ttl_s=self._ttl_s.get(tier), stale_ttl_s=self._settings.stale_ttl_s)

    def _alike(self, lookup: Lookup) -> Iterator[tuple[CacheTier, str]]:
        """Yield the entries of similar questions, the session's first, most alike first."""
        vector = self._vector(lookup)
        if vector is None:
            return
        self._waiting.flush()  # questions are listed among those they are alike to when they are written
        for tier in lookup.tiers:
            if tier is CacheTier.PRECOMPUTED:
                continue
            _, neighbourhood = self._neighbourhood(lookup, tier, vector)
            for name in neighbourhood.nearest(vector, similarity_milli=self._settings.similarity_milli):
                yield tier, name

    def _join(self, lookup: Lookup, tier: CacheTier, entry_name: str, entry: Entry) -> None:
        """List a question that was kept among those it may be alike to."""
        vector = self._vector(lookup)
        if vector is None or tier is CacheTier.PRECOMPUTED:
            return
        name, known = self._neighbourhood(lookup, tier, vector)
        replaced = ""
        if tier is CacheTier.GLOBAL and entry_name not in known.entries:
            nearest = known.nearest(vector, similarity_milli=self._settings.similarity_milli)
            if nearest and self._read(lookup, tier, nearest[0], is_stale=False) is not None:
                return
            replaced = nearest[0] if nearest else ""
        most = BUCKET_MEMBERS if tier is CacheTier.SESSION else MAX_LEADERS
        joined = known.joined(entry_name, vector, most=most, instead_of=replaced)
        kept_us = self._lifetimes(tier, lookup.key.descriptor).kept_us or 0
        self._store.put(name, encode_neighbourhood(joined, name=name), expires_at=moment_at(entry.first_us + kept_us))

    def _neighbourhood(self, lookup: Lookup, tier: CacheTier, vector: NDArray[np.int64]) -> tuple[str, Neighbourhood]:
        name = lookup.names.bucket(bucket_of(vector)) if tier is CacheTier.SESSION else lookup.names.leaders()
        return name, decode_neighbourhood(self._store.get(name), name=name)

    def _vector(self, lookup: Lookup) -> NDArray[np.int64] | None:
        is_wanted = self._settings.semantic and bool(lookup.names.space)
        return read_vector(lookup.key.vector) if is_wanted else None


def tiers_of(names: EntryNames) -> tuple[CacheTier, ...]:
    """Return the tiers that may hold an answer, in the order in which they are looked in."""
    return _ANY_SESSION if names.session is None else _IN_SESSION


def _hit(lookup: Lookup, tier: CacheTier, entry: Entry, *, is_stale: bool, is_reused: bool = False) -> CacheHit:
    return CacheHit(entry.candidates, tier, lookup.demand.age_ms(entry), is_reused=is_reused, is_stale=is_stale)


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

    def __init__(self, write: Callable[[Sequence[tuple[str, PendingWrite]]], None]) -> None:
        self._write = write
        self._lock = threading.Lock()
        self._waiting: dict[str, PendingWrite] = {}
        self._chars = 0
        self._writer = BackgroundWriter(self._write_some, name="evidentia-cache", pause_s=PAUSE_S)

    def add(self, name: str, waiting: PendingWrite) -> None:
        """Keep an answer, in place of what waits under its name."""
        with self._lock:
            self._drop(name)
            self._waiting[name] = waiting
            self._chars += waiting.chars
            while len(self._waiting) > MAX_WAITING or self._chars > MAX_CHARS:
                self._drop(next(iter(self._waiting)))

    def get(self, name: str) -> PendingWrite | None:
        """Return what waits under a name."""
        return self._waiting.get(name)

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
    def invalidating(self, prefix: str) -> Iterator[None]:
        """Drop what waits under names that begin so; within the context nothing is written."""
        with self._writer.writing:
            with self._lock:
                for name in [name for name in self._waiting if name.startswith(prefix)]:
                    self._drop(name)
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
                for name, written in some:
                    if self._waiting.get(name) is written:  # else another answer came meanwhile
                        self._drop(name)
            if self._waiting:
                self._writer.notify(hurry=True)

    def _drop(self, name: str) -> None:
        dropped = self._waiting.pop(name, None)
        if dropped is not None:
            self._chars -= dropped.chars
