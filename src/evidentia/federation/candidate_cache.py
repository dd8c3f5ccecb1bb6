"""What sources outside the base said, kept for the next one who asks the same on the same terms.

Only candidates are kept: never the order of an answer, never a decision. Whoever uses what was kept ranks it and checks access anew.
Tiers, in the order in which they are looked in: the request's own, the session's, the precomputed, everybody's. The store may lose
anything at any time, and several processes may share it.
"""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, Final

from evidentia.contracts.reports import CacheStats, TierStats
from evidentia.contracts.vocabulary import CacheTier
from evidentia.federation.cache_entries import Demand, Entry, entry_of
from evidentia.federation.cache_keys import CacheKey, EntryKeyMaker, EntryKeys
from evidentia.federation.cache_tiers import CacheHit, Lookup, Tiers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from evidentia.contracts.ids import SourceId
    from evidentia.contracts.ports import Clock, ResponseStore
    from evidentia.contracts.retrieval import ExternalCandidate
    from evidentia.contracts.settings import CacheSettings


__all__ = ["CacheHit", "CacheKey", "CandidateCache", "RequestCache"]


class CandidateCache:
    """Keeps candidates across requests. Thread safe.

    `intake` identifies what shapes candidates besides their source, such as the settings of the intake: under another one nothing
    that was kept is found.
    """

    def __init__(self, store: ResponseStore, *, settings: CacheSettings, clock: Clock, intake: str = "") -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._key_maker = EntryKeyMaker(intake=intake)
        self.tiers = Tiers(store, settings=settings)
        self.counters = Counters()

    def for_request(self) -> RequestCache:
        """Return the cache for one request, which also holds what that request itself was told."""
        return RequestCache(self)

    def generations(self, source_ids: Sequence[SourceId]) -> Mapping[SourceId, int]:
        """Return the generations of sources, which the asking and the keeping of one answer have to share; 0 when nothing is kept."""
        return self._store.generations(source_ids) if self._settings.enabled else dict.fromkeys(source_ids, 0)

    def get(self, key: CacheKey) -> CacheHit | None:
        """Return what is kept and fresh enough, from the best tier; for just this question before a similar one."""
        return self.for_request().get(key)

    def get_stale(self, key: CacheKey) -> CacheHit | None:
        """Return what is kept where the source itself gives no answer, if need be past its time, which it then says."""
        return self.for_request().get_stale(key)

    def invalidate(self, source_id: SourceId | None = None) -> int:
        """Drop everything of one source, or of all, and return how many answers there were; what is under way is not kept either."""
        return self.tiers.invalidate(source_id)

    def write(self, *, is_soon: bool) -> None:
        """Write what was kept, or have it written soon."""
        if is_soon:
            self.tiers.waiting.start()
        else:
            self.tiers.waiting.flush()

    def close(self) -> None:
        """Write what waits, and whatever is kept from now on at once."""
        self.tiers.waiting.close()

    def stats(self) -> CacheStats:
        """Return how often each tier was looked in and what came of it."""
        self.tiers.waiting.flush()
        return self.counters.stats(self._store.counts())

    def lookup(self, key: CacheKey, keys: EntryKeys | None = None) -> Lookup | None:
        """Return a question as the tiers take it, with its keys where they are known; None when no answer to it is kept."""
        found = keys or (self._key_maker.keys(key) if self._settings.enabled else None)
        return None if found is None else Lookup(key, found, Demand.of(key, now=self._clock.now()))


class RequestCache:
    """Keeps candidates for one request and, through it, for those that follow. Thread safe.

    What the request itself was told is good for all of it, though it was told after the request's `as_of`: it is its own evidence.
    """

    def __init__(self, cache: CandidateCache) -> None:
        self._cache = cache
        self._own: dict[bytes, Entry] = {}
        self._keyed: dict[int, Lookup] = {}
        """Questions by their identity in memory, with their keys, which take longer to find than anything else here."""

    def get(self, key: CacheKey) -> CacheHit | None:
        """Return what this request was told already, else what is kept."""
        return self.get_all([key])[0]

    def get_all(self, keys: Sequence[CacheKey]) -> list[CacheHit | None]:
        """Return what this request was told already, else what is kept, for several questions at once."""
        lookups = [self._asked(key) for key in keys]
        own = [None if lookup is None else self._own_hit(lookup) for lookup in lookups]
        kept = iter(self._cache.tiers.get([each for each, hit in zip(lookups, own, strict=True) if each is not None and hit is None]))
        hits = [next(kept) if each is not None and hit is None else hit for each, hit in zip(lookups, own, strict=True)]
        for lookup, hit in zip(lookups, hits, strict=True):
            if lookup is not None:
                self._cache.counters.count_find((CacheTier.REQUEST, *lookup.keys.entries), hit)
        return hits

    def get_stale(self, key: CacheKey) -> CacheHit | None:
        """Return what is kept where the source itself gives no answer, if need be past its time, which it then says."""
        lookup, tiers = self._asked(key), self._cache.tiers
        if lookup is None:
            return None
        hit = tiers.get([lookup])[0] or tiers.get([lookup], is_stale=True)[0]
        if hit is not None and hit.is_stale:
            self._cache.counters.count_stale(hit.tier)
        return hit

    def put_all(
        self, said: Sequence[tuple[CacheKey, Sequence[ExternalCandidate], datetime]], *, precomputed: bool = False, is_soon: bool = False
    ) -> None:
        """Keep answers, also empty ones, with the moments at which they came; not those of sources that were forgotten since.

        They are written before this returns, or soon: then they are kept at once in this process, and nobody waits for the store.
        """
        for key, candidates, retrieved_at in said:
            lookup = self._lookup(key)
            if lookup is not None:
                entry = entry_of(candidates, retrieved_at=retrieved_at)
                if key.max_staleness_ms != 0:
                    self._own[lookup.keys.question] = entry
                self._cache.tiers.put(lookup, entry, is_precomputed=precomputed)
        self._cache.write(is_soon=is_soon)

    def _own_hit(self, lookup: Lookup) -> CacheHit | None:
        entry = self._own.get(lookup.keys.question)
        return None if entry is None or not lookup.demand.is_young(entry) else lookup.hit(CacheTier.REQUEST, entry)

    def _asked(self, key: CacheKey) -> Lookup | None:
        """Return a question as the tiers take it; None when nothing kept may answer it."""
        return None if key.max_staleness_ms == 0 else self._lookup(key)

    def _lookup(self, key: CacheKey) -> Lookup | None:
        known = self._keyed.get(id(key))
        lookup = self._cache.lookup(key, None if known is None else known.keys)
        if lookup is not None:
            self._keyed[id(key)] = lookup  # which holds the key, so that no other one gets its identity
        return lookup


# --- cache stats ---
# How often each tier of the cache was looked in and what came of it.

_COUNTED: Final = ("finds", "hits", "reused", "stale_hits")


class Counters:
    """Counts what the tiers do. Thread safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._finds = 0
        self._counts: Counter[tuple[str, CacheTier]] = Counter()

    def count_find(self, tiers: tuple[CacheTier, ...], hit: CacheHit | None) -> None:
        """Count one search for something good in tiers, up to the one that had it."""
        with self._lock:
            self._finds += 1
            for tier in tiers if hit is None or hit.is_reused else tiers[: tiers.index(hit.tier) + 1]:
                self._counts["finds", tier] += 1
            if hit is not None:
                self._counts["hits", hit.tier] += 1
                self._counts["reused", hit.tier] += hit.is_reused

    def count_stale(self, tier: CacheTier) -> None:
        """Count an entry past its time that stands in for a source."""
        with self._lock:
            self._counts["stale_hits", tier] += 1

    def stats(self, entries: Mapping[CacheTier, int]) -> CacheStats:
        """Return the counts so far beside how many entries there are."""
        with self._lock:
            tiers = tuple(
                TierStats(tier=tier, entries=entries.get(tier, 0), **{name: self._counts[name, tier] for name in _COUNTED})
                for tier in (CacheTier.REQUEST, CacheTier.SESSION, CacheTier.PRECOMPUTED, CacheTier.GLOBAL)
            )
            return CacheStats(
                finds=self._finds,
                hits=sum(tier.hits for tier in tiers),
                stale_hits=sum(tier.stale_hits for tier in tiers),
                entries=sum(tier.entries for tier in tiers),
                tiers=tiers,
            )
