"""What the cache is worth, counted over the requests that a base remembers.

The cache's own counts begin with each process, so those of a command that has just begun say nothing; entries are everybody's.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.vocabulary import CacheTier, CoverageState
from evidentia.serving.cli.output import Figure, put, put_table

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from evidentia.contracts.reports import CacheStats
    from evidentia.contracts.telemetry import RequestTrace

_NEEDED = frozenset(CoverageState) - {CoverageState.DENIED, CoverageState.SKIPPED}
"""States of a source that was to answer; one that was left out was not looked for in the cache."""


class TierCounts(msgspec.Struct, frozen=True, kw_only=True):
    """One tier: what it keeps, and how often it served."""

    tier: CacheTier
    hits: int
    hit_ratio: float
    """Of all answers of sources that were needed."""
    stale_hits: int
    entries: int


class CacheCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The cache over the remembered requests."""

    requests: int
    finds: int
    """Answers of sources outside the base that these requests needed."""
    hits: int
    hit_ratio: float
    stale_hits: int
    entries: int
    tiers: tuple[TierCounts, ...]


def counted(stats: CacheStats, traces: Sequence[RequestTrace], *, outside: Collection[str]) -> CacheCounts:
    """Return the entries of every tier beside what they did for the remembered requests."""
    spans = [span for trace in traces for span in trace.spans if span.kind == "source" and span.name in outside and span.state in _NEEDED]
    hits = Counter(span.attributes.get("tier") for span in spans if span.state is CoverageState.CACHED)
    stale = Counter(span.attributes.get("tier") for span in spans if span.state is CoverageState.STALE)
    tiers = tuple(
        TierCounts(
            tier=each.tier,
            hits=hits[each.tier.value],
            hit_ratio=_share(hits[each.tier.value], len(spans)),
            stale_hits=stale[each.tier.value],
            entries=each.entries,
        )
        for each in stats.tiers
    )
    return CacheCounts(
        requests=len(traces),
        finds=len(spans),
        hits=hits.total(),
        hit_ratio=_share(hits.total(), len(spans)),
        stale_hits=stale.total(),
        entries=stats.entries,
        tiers=tiers,
    )


def put_counts(counts: CacheCounts) -> None:
    """Print the tiers, nearest first, and what they come to."""
    rows = [(each.tier.value, each.hits, Figure(f"{each.hit_ratio:.0%}"), each.stale_hits, each.entries) for each in counts.tiers]
    put_table(("tier", "hits", "ratio", "stale", "entries"), rows)
    put()
    put(
        f"{counts.finds} answers of sources were needed by the last {counts.requests} requests: "
        f"{counts.hits} were kept ({counts.hit_ratio:.0%}), {counts.stale_hits} stood in past their time"
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
