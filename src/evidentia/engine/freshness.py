"""How old a source's data is beside what it promises; pure."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from evidentia.contracts.sources import FreshnessReport

if TYPE_CHECKING:
    from datetime import datetime

    from evidentia.contracts.sources import SourceDescriptor

_SECOND: Final = timedelta(seconds=1)


def freshness_report(descriptor: SourceDescriptor, *, newest_at: datetime | None, now: datetime) -> FreshnessReport:
    """Return the age of a source's newest data in whole seconds, and whether that keeps its promise; both times have an offset."""
    age_s = None if newest_at is None else data_age_s(newest_at, at=now)
    promised_s = descriptor.freshness_sla_s
    return FreshnessReport(
        source_id=descriptor.source_id,
        freshness_sla_s=promised_s,
        age_s=age_s,
        is_fresh=None if age_s is None or promised_s is None else age_s <= promised_s,
        newest_at=newest_at,
    )


def data_age_s(newest_at: datetime, *, at: datetime) -> int:
    """Return how old data of `newest_at` was at a moment, rounded up so that no promise is kept by rounding; never negative."""
    return max(0, -((newest_at - at) // _SECOND))
