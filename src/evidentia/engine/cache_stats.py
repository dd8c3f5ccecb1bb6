"""How often each tier of the cache was looked in and what came of it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.vocabulary import CacheTier

if TYPE_CHECKING:
    from collections.abc import Mapping


class TierStats(msgspec.Struct, frozen=True, kw_only=True):
    """One tier: the counts are this process's since it began, the entries are everybody's."""

    tier: CacheTier
    finds: int = 0
    """How often it was looked in."""
    hits: int = 0
    """How often something good was there."""
    reused: int = 0
    """How many of the hits were for another, similar question."""
    stale_hits: int = 0
    """How often something past its time stood in for a source that gave no answer; not among the hits."""
    entries: int = 0
    """How many answers are kept; 0 for the request's own tier, which ends with the request."""


class CacheStats(msgspec.Struct, frozen=True, kw_only=True):
    """What the cache did: finds and hits of questions, and the same for each tier, nearest first."""

    finds: int
    hits: int
    stale_hits: int
    entries: int
    tiers: tuple[TierStats, ...]


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
