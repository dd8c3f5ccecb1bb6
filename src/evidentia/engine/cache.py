"""What sources outside the base said, kept for the next one who asks the same on the same terms.

Only candidates are kept: never the order of an answer, never a decision. Whoever uses what was kept ranks it and checks access anew.
Tiers, in the order in which they are looked in: the request's own, the session's, the precomputed, everybody's. The store may lose
anything at any time, and several processes may share it.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from evidentia.contracts.ports import SupportsTogether
from evidentia.contracts.vocabulary import CacheTier
from evidentia.engine.cache_entries import Demand, entry_of
from evidentia.engine.cache_generations import Generations
from evidentia.engine.cache_keys import CacheAsk, Namer
from evidentia.engine.cache_shelf import Shelf
from evidentia.engine.cache_stats import Counters
from evidentia.engine.cache_tiers import CacheHit, Lookup, Tiers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime

    from evidentia.contracts.ids import SourceId
    from evidentia.contracts.ports import Clock, KeyValueStore
    from evidentia.contracts.reports import CacheStats
    from evidentia.contracts.retrieval import ExternalCandidate
    from evidentia.contracts.settings import CacheSettings
    from evidentia.engine.cache_entries import Entry

__all__ = ["CacheAsk", "CacheHit", "CandidateCache", "RequestCache"]


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
        self._shelf = Shelf(store, most_entries=settings.most_entries)
        self._tiers = Tiers(store, shelf=self._shelf, settings=settings)
        self._counters = Counters()

    def together(self) -> AbstractContextManager[None]:
        """Return a context in which what is kept is written at once, where the store can do that."""
        return self._store.together() if isinstance(self._store, SupportsTogether) else nullcontext()

    def for_request(self) -> RequestCache:
        """Return the cache for one request, which also holds what that request itself was told."""
        return RequestCache(self)

    def generation(self, source_id: SourceId) -> int:
        """Return the source's generation, which the asking and the keeping of one answer have to share; 0 when nothing is kept."""
        return self._generations.current(source_id) if self._settings.enabled else 0

    def find(self, asked: CacheAsk) -> CacheHit | None:
        """Return what is kept and fresh enough, from the best tier; for just this question before a similar one."""
        lookup = self.lookup(asked)
        return None if lookup is None else self.find_kept(lookup)

    def stand_in(self, asked: CacheAsk) -> CacheHit | None:
        """Return what is kept where the source itself gives no answer, if need be past its time, which it then says."""
        lookup = self.lookup(asked)
        if lookup is None:
            return None
        hit = self._tiers.find(lookup, is_stale=False) or self._tiers.find(lookup, is_stale=True)
        if hit is not None and hit.is_stale:
            self._counters.count_stale(hit.tier)
        return hit

    def keep(self, asked: CacheAsk, candidates: Sequence[ExternalCandidate], *, retrieved_at: datetime, precomputed: bool = False) -> None:
        """Keep an answer, also an empty one; not when the source was forgotten since it was asked."""
        lookup = self.lookup(asked._replace(max_staleness_ms=None))
        if lookup is not None and self._generations.is_current(asked.source_id, asked.generation):
            self._tiers.keep(lookup, entry_of(candidates, retrieved_at=retrieved_at), is_precomputed=precomputed)

    def forget(self, source_id: SourceId | None = None) -> int:
        """Drop everything of one source, or of all, and return how many answers there were; what is under way is not kept either."""
        self._generations.advance(source_id)
        return self._shelf.forget(source_id)

    def stats(self) -> CacheStats:
        """Return how often each tier was looked in and what came of it."""
        return self._counters.stats(self._shelf.entries())

    def lookup(self, asked: CacheAsk) -> Lookup | None:
        """Return a question as the tiers take it; None when nothing kept may answer it, nor its answer be kept."""
        if not self._settings.enabled or asked.max_staleness_ms == 0:
            return None
        names = self._namer.names(asked)
        return None if names is None else Lookup(asked, names, Demand.of(asked, now=self._clock.now()))

    def find_kept(self, lookup: Lookup, *, own: CacheHit | None = None, is_own_tier: bool = False) -> CacheHit | None:
        """Return what answers a question, beginning with what its own request was told, and count it."""
        hit = own or self._tiers.find(lookup, is_stale=False)
        tiers = (CacheTier.REQUEST, *lookup.tiers) if is_own_tier else lookup.tiers
        looked = tiers if hit is None or hit.is_reused else tiers[: tiers.index(hit.tier) + 1]
        self._counters.count_find(looked, hit=hit.tier if hit else None, is_reused=hit is not None and hit.is_reused)
        return hit


class RequestCache:
    """Keeps candidates for one request and, through it, for those that follow. Thread safe.

    What the request itself was told is good for all of it, though it was told after the request's `as_of`: it is its own evidence.
    """

    def __init__(self, cache: CandidateCache) -> None:
        self._cache = cache
        self._own: dict[tuple[str, bytes], Entry] = {}

    def find(self, asked: CacheAsk) -> CacheHit | None:
        """Return what this request was told already, else what is kept."""
        lookup = self._cache.lookup(asked)
        if lookup is None:
            return None
        entry = self._own.get(_own_key(lookup))
        own = None if entry is None else _own_hit(lookup, entry)
        return self._cache.find_kept(lookup, own=own, is_own_tier=True)

    def stand_in(self, asked: CacheAsk) -> CacheHit | None:
        """Return what is kept where the source itself gives no answer."""
        return self._cache.stand_in(asked)

    def keep(self, asked: CacheAsk, candidates: Sequence[ExternalCandidate], *, retrieved_at: datetime, precomputed: bool = False) -> None:
        """Keep an answer for the rest of this request and for those that follow."""
        lookup = self._cache.lookup(asked)
        if lookup is not None:
            self._own[_own_key(lookup)] = entry_of(candidates, retrieved_at=retrieved_at)
        self._cache.keep(asked, candidates, retrieved_at=retrieved_at, precomputed=precomputed)


def _own_key(lookup: Lookup) -> tuple[str, bytes]:
    return lookup.names.source, lookup.names.question


def _own_hit(lookup: Lookup, entry: Entry) -> CacheHit | None:
    if not lookup.demand.is_young(entry):
        return None
    return CacheHit(entry.candidates, CacheTier.REQUEST, lookup.demand.age_ms(entry), is_reused=False, is_stale=False)
