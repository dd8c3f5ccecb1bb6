"""How often each tier of the cache was looked in and what came of it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from evidentia.contracts.reports import CacheStats, TierStats
from evidentia.contracts.vocabulary import CacheTier

if TYPE_CHECKING:
    from collections.abc import Mapping


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
