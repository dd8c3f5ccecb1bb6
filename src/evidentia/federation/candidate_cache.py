"""What sources outside the base said, kept for the next one who asks the same on the same terms.

Only candidates are kept: never the order of an answer, never a decision. Whoever uses what was kept ranks it and checks access anew.
Tiers, in the order in which they are looked in: the request's own, the session's, the precomputed, everybody's. The store may lose
anything at any time, and several processes may share it.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Final

from evidentia.contracts.ports import Clock, KeyValueStore, SupportsBatchReads, SupportsTransactions
from evidentia.contracts.reports import CacheStats, TierStats
from evidentia.contracts.vocabulary import CacheTier
from evidentia.federation.cache_entries import Demand, Entry, EntryStore, entries_under, entry_of, microseconds
from evidentia.federation.cache_keys import GENERATIONS, CacheKey, EntryNames, Namer, generation_name
from evidentia.federation.cache_tiers import CacheHit, Lookup, PendingWrite, Tiers, WriteBehind, tiers_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from evidentia.contracts.ids import SourceId
    from evidentia.contracts.retrieval import ExternalCandidate
    from evidentia.contracts.settings import CacheSettings


__all__ = ["CacheHit", "CacheKey", "CandidateCache", "RequestCache"]


class CandidateCache:
    """Keeps candidates across requests. Thread safe.

    `intake` identifies what shapes candidates besides their source, such as the settings of the intake: under another one nothing
    that was kept is found.
    """

    def __init__(self, store: KeyValueStore, *, settings: CacheSettings, clock: Clock, intake: str = "") -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._namer = Namer(intake=intake)
        self._generations = Generations(store, clock=clock)
        self._entries = EntryStore(store, most_entries=settings.most_entries)
        self._glancing = store if isinstance(store, SupportsBatchReads) else None
        self._waiting = WriteBehind(self._write)
        self._tiers = Tiers(store, entries=self._entries, waiting=self._waiting, settings=settings)
        self._counters = Counters()

    def batch_reads(self) -> AbstractContextManager[None]:
        """Return a context for looking several things up: what other processes wrote before it is seen, later things may not be."""
        return nullcontext() if self._glancing is None else self._glancing.batch_reads()

    def look_up(self, names: Sequence[EntryNames]) -> None:
        """Read at once what may be kept under these names."""
        if self._glancing is not None:
            wanted = [each.entry(tier) for each in names for tier in tiers_of(each)]
            self._glancing.preload([entry for entry in wanted if not self._entries.holds(entry)])

    def for_request(self) -> RequestCache:
        """Return the cache for one request, which also holds what that request itself was told."""
        return RequestCache(self)

    def generation(self, source_id: SourceId) -> int:
        """Return the source's generation, which the asking and the keeping of one answer have to share; 0 when nothing is kept."""
        return self._generations.current(source_id) if self._settings.enabled else 0

    def get(self, key: CacheKey) -> CacheHit | None:
        """Return what is kept and fresh enough, from the best tier; for just this question before a similar one."""
        lookup = self.lookup(key, self.names(key))
        return None if lookup is None else self.get_entry(lookup)

    def get_stale(self, key: CacheKey) -> CacheHit | None:
        """Return what is kept where the source itself gives no answer, if need be past its time, which it then says."""
        lookup = self.lookup(key, self.names(key))
        if lookup is None:
            return None
        hit = self._tiers.get(lookup, is_stale=False) or self._tiers.get(lookup, is_stale=True)
        if hit is not None and hit.is_stale:
            self._counters.count_stale(hit.tier)
        return hit

    def put(
        self,
        key: CacheKey,
        candidates: Sequence[ExternalCandidate],
        *,
        retrieved_at: datetime,
        precomputed: bool = False,
        is_soon: bool = False,
    ) -> None:
        """Keep an answer, also an empty one; not when the source was forgotten since it was asked.

        It is written before this returns, or soon: then it is kept at once in this process, and nobody waits for the store.
        """
        self.put_entry(key, entry_of(candidates, retrieved_at=retrieved_at), names=self.names(key), precomputed=precomputed)
        self.write(is_soon=is_soon)

    def invalidate(self, source_id: SourceId | None = None) -> int:
        """Drop everything of one source, or of all, and return how many answers there were; what is under way is not kept either."""
        self._waiting.flush()  # so that those that wait are counted too
        self._generations.advance(source_id)
        with self._waiting.invalidating(entries_under(source_id)):
            return self._entries.invalidate(source_id)

    def close(self) -> None:
        """Write what waits, and whatever is kept from now on at once."""
        self._waiting.close()

    def stats(self) -> CacheStats:
        """Return how often each tier was looked in and what came of it."""
        self._waiting.flush()
        return self._counters.stats(self._entries.entries())

    def names(self, key: CacheKey) -> EntryNames | None:
        """Return under which names an answer is kept; None when it has none."""
        return self._namer.names(key) if self._settings.enabled else None

    def lookup(self, key: CacheKey, names: EntryNames | None) -> Lookup | None:
        """Return a question as the tiers take it; None when nothing kept may answer it."""
        if names is None or key.max_staleness_ms == 0:
            return None
        return Lookup(key, names, Demand.of(key, now=self._clock.now()))

    def put_entry(self, key: CacheKey, entry: Entry, *, names: EntryNames | None, precomputed: bool) -> None:
        """Keep an answer in this process, until it is written."""
        if names is not None:
            demand = Demand.of(key, now=self._clock.now(), is_any_age=True)
            self._tiers.put(Lookup(key, names, demand), entry, is_precomputed=precomputed)

    def write(self, *, is_soon: bool) -> None:
        """Write what was kept, or have it written soon."""
        if is_soon:
            self._waiting.start()
        else:
            self._waiting.flush()

    def get_entry(self, lookup: Lookup, *, own: CacheHit | None = None, is_own_tier: bool = False) -> CacheHit | None:
        """Return what answers a question, beginning with what its own request was told, and count it."""
        hit = own or self._tiers.get(lookup, is_stale=False)
        tiers = (CacheTier.REQUEST, *lookup.tiers) if is_own_tier else lookup.tiers
        looked = tiers if hit is None or hit.is_reused else tiers[: tiers.index(hit.tier) + 1]
        self._counters.count_find(looked, hit=hit.tier if hit else None, is_reused=hit is not None and hit.is_reused)
        return hit

    def _write(self, some: Sequence[tuple[str, PendingWrite]]) -> None:
        """Write answers in one transaction, where the store has them, except those of sources that were forgotten meanwhile."""
        with self._store.transaction() if isinstance(self._store, SupportsTransactions) else nullcontext(), self.batch_reads():
            if self._glancing is not None:
                self._glancing.preload([name for name, _ in some])
            now_us = microseconds(self._clock.now())
            generations: dict[SourceId, int | None] = {}
            for name, waiting in some:
                source = waiting.lookup.key.source_id
                if source not in generations:
                    generations[source] = self._generations.stored(source)
                if waiting.lookup.key.generation == generations[source]:
                    self._tiers.write(name, waiting, now_us=now_us)


class RequestCache:
    """Keeps candidates for one request and, through it, for those that follow. Thread safe.

    What the request itself was told is good for all of it, though it was told after the request's `as_of`: it is its own evidence.
    """

    def __init__(self, cache: CandidateCache) -> None:
        self._cache = cache
        self._own: dict[tuple[str, bytes], Entry] = {}
        self._named: dict[int, tuple[CacheKey, EntryNames | None]] = {}
        """Questions by their identity in memory, with their names, which take longer to find than anything else here."""

    def get(self, key: CacheKey) -> CacheHit | None:
        """Return what this request was told already, else what is kept."""
        lookup = self._cache.lookup(key, self._names(key))
        if lookup is None:
            return None
        entry = self._own.get((lookup.names.source, lookup.names.question))
        own = None if entry is None else _own_hit(lookup, entry)
        return self._cache.get_entry(lookup, own=own, is_own_tier=True)

    def look_up(self, keys: Sequence[CacheKey]) -> None:
        """Read at once what may answer several questions."""
        names = [self._names(each) for each in keys if each.max_staleness_ms != 0]
        self._cache.look_up([each for each in names if each is not None])

    def get_stale(self, key: CacheKey) -> CacheHit | None:
        """Return what is kept where the source itself gives no answer."""
        return self._cache.get_stale(key)

    def put(self, key: CacheKey, candidates: Sequence[ExternalCandidate], *, retrieved_at: datetime, precomputed: bool = False) -> None:
        """Keep an answer for the rest of this request and for those that follow."""
        self.put_all([(key, candidates, retrieved_at)], precomputed=precomputed, is_soon=False)

    def put_all(self, said: Sequence[tuple[CacheKey, Sequence[ExternalCandidate], datetime]], *, precomputed: bool, is_soon: bool) -> None:
        """Keep answers with the moments at which they came, and write them before this returns, or soon."""
        for key, candidates, retrieved_at in said:
            entry, names = entry_of(candidates, retrieved_at=retrieved_at), self._names(key)
            if names is not None and key.max_staleness_ms != 0:
                self._own[names.source, names.question] = entry
            self._cache.put_entry(key, entry, names=names, precomputed=precomputed)
        self._cache.write(is_soon=is_soon)

    def _names(self, key: CacheKey) -> EntryNames | None:
        known = self._named.get(id(key))
        if known is None:
            known = self._named[id(key)] = (key, self._cache.names(key))
        return known[1]


def _own_hit(lookup: Lookup, entry: Entry) -> CacheHit | None:
    if not lookup.demand.is_young(entry):
        return None
    return CacheHit(entry.candidates, CacheTier.REQUEST, lookup.demand.age_ms(entry), is_reused=False, is_stale=False)


# --- cache stats ---
# How often each tier of the cache was looked in and what came of it.


class Counters:
    """Counts what the tiers do. Thread safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._finds = 0
        self._looked = dict.fromkeys(CacheTier, 0)
        self._hits = dict.fromkeys(CacheTier, 0)
        self._reused = dict.fromkeys(CacheTier, 0)
        self._stale = dict.fromkeys(CacheTier, 0)

    def count_find(self, looked: tuple[CacheTier, ...], *, hit: CacheTier | None, is_reused: bool = False) -> None:
        """Count one search for something good: the tiers looked in, and the one that had it."""
        with self._lock:
            self._finds += 1
            for tier in looked:
                self._looked[tier] += 1
            if hit is not None:
                self._hits[hit] += 1
                self._reused[hit] += is_reused

    def count_stale(self, tier: CacheTier) -> None:
        """Count an entry past its time that stands in for a source."""
        with self._lock:
            self._stale[tier] += 1

    def stats(self, entries: Mapping[CacheTier, int]) -> CacheStats:
        """Return the counts so far beside how many entries there are."""
        with self._lock:
            tiers = tuple(
                TierStats(
                    tier=tier,
                    finds=self._looked[tier],
                    hits=self._hits[tier],
                    reused=self._reused[tier],
                    stale_hits=self._stale[tier],
                    entries=entries.get(tier, 0),
                )
                for tier in (CacheTier.REQUEST, CacheTier.SESSION, CacheTier.PRECOMPUTED, CacheTier.GLOBAL)
            )
            return CacheStats(
                finds=self._finds,
                hits=sum(tier.hits for tier in tiers),
                stale_hits=sum(tier.stale_hits for tier in tiers),
                entries=sum(tier.entries for tier in tiers),
                tiers=tiers,
            )


# --- cache generations ---
# How often each source was forgotten, so that an answer that was on its way meanwhile does not bring the old state back.
#
# A generation is part of every name: what belongs to an older one is never found, in whichever process it was kept. It is the moment of
# its beginning, so that one that the store lost is followed by a later one and not by the first again.

_BYTES: Final = 8
_LARGEST: Final = 1 << 62


class Generations:
    """Reads and advances the generations of sources. Thread safe."""

    def __init__(self, store: KeyValueStore, *, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._newest: dict[str, int] = {}
        self._lock = threading.Lock()

    def current(self, source_id: SourceId) -> int:
        """Return a source's generation; one that is not known begins now."""
        name = generation_name(source_id)
        stored = self._stored(name)
        if stored is None:
            return self._begin(name, after=0)
        with self._lock:
            self._newest[name] = max(stored, self._newest.get(name, 0))
        return stored

    def stored(self, source_id: SourceId) -> int | None:
        """Return the generation that the store has of a source: what belongs to any other was forgotten."""
        return self._stored(generation_name(source_id))

    def advance(self, source_id: SourceId | None) -> None:
        """Begin a new generation of one source, or of all."""
        if source_id is not None:
            name = generation_name(source_id)
            self._begin(name, after=self._stored(name) or 0)
            return
        known = {name: _read(kept) or 0 for name, kept in self._store.items(GENERATIONS)}
        with self._lock:
            names = sorted(known.keys() | self._newest.keys())
        for name in names:
            self._begin(name, after=known.get(name, 0))

    def _stored(self, name: str) -> int | None:
        return _read(self._store.get(name))

    def _begin(self, name: str, *, after: int) -> int:
        now = microseconds(self._clock.now())
        with self._lock:
            generation = max(now, after + 1, self._newest.get(name, 0) + 1)
            self._newest[name] = generation
        self._store.put(name, generation.to_bytes(_BYTES, "big"))
        return generation


def _read(kept: bytes | None) -> int | None:
    if kept is None or len(kept) != _BYTES:
        return None
    generation = int.from_bytes(kept, "big")
    return generation if 0 < generation < _LARGEST else None
