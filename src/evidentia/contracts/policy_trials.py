"""What is found out before a policy is put in force: what it would change about recorded runs, and where a threshold belongs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from evidentia.contracts.vocabulary import Vocabulary


class Change(Vocabulary):
    """What a candidate would change about a call."""

    NEWLY_BLOCKED = "newly_blocked"
    """It went on, and would be stopped."""
    NEWLY_ALLOWED = "newly_allowed"
    """It was stopped, and would go on, with a warning or without."""
    NEWLY_WARNED = "newly_warned"
    NO_LONGER_WARNED = "no_longer_warned"
    UNCHANGED = "unchanged"


class ShadowExample(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded call that would be decided otherwise."""

    log: str
    seq: int
    run_id: str
    change: Change


class ShadowGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The changes of one rule, agent or source."""

    name: str
    newly_blocked: int = 0
    newly_allowed: int = 0
    newly_warned: int = 0
    no_longer_warned: int = 0
    examples: tuple[ShadowExample, ...] = ()
    """The first of each kind of change, in the order of the log."""


class ShadowChanges(msgspec.Struct, frozen=True, kw_only=True):
    """What would change, in all and by rule (`policy: rule`), agent and source; groups with most changes first."""

    calls: int = 0
    newly_blocked: int = 0
    newly_allowed: int = 0
    newly_warned: int = 0
    no_longer_warned: int = 0
    unchanged: int = 0
    rules: tuple[ShadowGroup, ...] = ()
    agents: tuple[ShadowGroup, ...] = ()
    sources: tuple[ShadowGroup, ...] = ()


class ShadowReport(msgspec.Struct, frozen=True, kw_only=True):
    """What candidates would have changed."""

    candidates: tuple[str, ...]
    changes: ShadowChanges
    runs: int = 0
    runs_newly_blocked: int = 0
    runs_newly_allowed: int = 0
    after_stop: int = 0
    """Calls that come after one that the candidates stop: they would not have happened, so they are not compared."""
    truncated_runs: int = 0
    """Runs that were stopped then and would go on: what they would have recorded is unknown, so their end is not compared."""
    unfinished_runs: int = 0
    given_up_runs: int = 0
    unknown_runs: int = 0
    """Runs whose policies the log does not hold any more, so that nothing can stay in force beside the candidates; left out."""
    redacted: int = 0
    """Records whose content was taken out, so that nothing can be decided about them."""
    unjudged: int = 0
    """Judgements that candidates ask for and the log does not hold; they count as skipped."""


class TriggerRate(msgspec.Struct, frozen=True, kw_only=True):
    """How often a threshold triggers on all recorded traffic, good and bad."""

    threshold: float
    values: int
    value_triggers: int
    runs: int
    """Runs that recorded at least one value."""
    run_triggers: int


class HistogramBar(msgspec.Struct, frozen=True, kw_only=True):
    """How many values lie between `low` and `high`; the first and the last bar hold whatever lies beyond. The threshold is an edge."""

    low: float
    high: float
    good: int
    other: int


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """A threshold with what it rests on, and how to put it in force."""

    rule: str
    category: str
    unit: str
    percentile: int
    threshold: float
    observed: float
    """The percentile before it was rounded: a value that was recorded."""
    confidence_percent: int = 95
    low: float | None
    high: float | None
    """The interval of the percentile; None on a side where too little was recorded to say."""
    good_runs: int
    good_values: int
    effective_values: int
    """For how many independent values the good ones count."""
    predicted: TriggerRate
    current: TriggerRate | None = None
    histogram: tuple[HistogramBar, ...]
    patch: Mapping[str, Any]  # Any: JSON
    """A JSON merge patch (RFC 7396) for the body of the policy."""
    command: str
    notes: tuple[str, ...] = ()
