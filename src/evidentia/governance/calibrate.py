"""Thresholds from recorded traffic: where a rule would leave good runs alone, how sure that is, and how often it would trigger.

Reads the decision log and nothing else; proposes a patch and changes nothing.
"""

from __future__ import annotations

import shlex
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Final

import msgspec

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.policies import DEFAULT_TENANT, PolicyAction
from evidentia.governance.calibrate_sample import Sample, collect
from evidentia.governance.calibrate_statistics import CONFIDENCE, effective_size, interval_of, nearest_rank
from evidentia.governance.calibrate_values import Measure, measure_of, rules_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evidentia.contracts.decisions import LogRecord
    from evidentia.contracts.policies import Policy

LEAST_GOOD_RUNS: Final = 100
PLACES: Final = Decimal("0.0001")
"""A score is rounded down to this, which can only let more pass."""
BARS: Final = 20


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
    confidence_percent: int = CONFIDENCE
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


def calibrate(
    records: Iterable[LogRecord],
    rule: str,
    *,
    policy: Policy | None = None,
    tenant: str = DEFAULT_TENANT,
    agent: str | None = None,
    since_us: int | None = None,
) -> Calibration:
    """Return the threshold at the 5th percentile of good runs (the 95th for ages).

    A run is good when it ended with success and nothing in it was blocked. `policy` gives the rules that the threshold stands
    beside (floor, mode, which confidence counts) and the name in the patch's command. Raises InvalidFieldError under 100 good runs.
    """
    measure = measure_of(rule)
    rules = rules_of(measure, policy)
    sample = collect(records, measure, rules, policy_id=policy.policy_id if policy else None, tenant=tenant, agent=agent, since_us=since_us)
    _require_enough(sample, measure)
    return _calibrated(sample, measure, policy)


def _require_enough(sample: Sample, measure: Measure) -> None:
    if len(sample.good_sizes) >= LEAST_GOOD_RUNS:
        return
    raise InvalidFieldError(
        "records",
        f"{len(sample.good_sizes)} good runs recorded a value for '{measure.rule}', and {LEAST_GOOD_RUNS} are needed "
        f"({sample.runs} runs were read, {sample.good_runs} of them good); record more traffic, or widen the filter",
    )


def _calibrated(sample: Sample, measure: Measure, policy: Policy | None) -> Calibration:
    ordered = sorted(sample.good)
    observed = ordered[nearest_rank(len(ordered), measure.percent) - 1]
    effective = effective_size(_hits(sample, observed), sample.good_sizes)
    interval = interval_of(ordered, measure.percent, effective=effective)
    threshold = _rounded(observed, measure)
    patch = {"rules": {measure.rule: threshold}}
    everything = sorted(sample.values)
    current = policy.body.rules.get(measure.rule) if policy else None
    return Calibration(
        rule=measure.rule,
        category=measure.category,
        unit=measure.unit,
        percentile=measure.percent,
        threshold=threshold,
        observed=observed,
        low=interval.low,
        high=interval.high,
        good_runs=len(sample.good_sizes),
        good_values=len(ordered),
        effective_values=effective,
        predicted=_rate(sample, measure, threshold, everything),
        current=None if current is None else _rate(sample, measure, current, everything),
        histogram=_histogram(ordered, everything, threshold, measure),
        patch=patch,
        command=shlex.join(["evidentia", "policy", "patch", policy.body.name if policy else "NAME", msgspec.json.encode(patch).decode()]),
        notes=tuple(_notes(sample, measure, policy)),
    )


def _hits(sample: Sample, observed: float) -> list[int]:
    """Return how many values of every good run lie at or below the percentile."""
    ends = accumulate(sample.good_sizes, initial=0)
    return [sum(value <= observed for value in sample.good[begin:end]) for begin, end in pairwise(ends)]


def _rounded(observed: float, measure: Measure) -> float:
    """Return a threshold in the rule's own terms: whole days rounded up, scores rounded down, within what the rule takes."""
    exact = Decimal(repr(observed))
    if measure.is_upper:
        return int(exact.to_integral_value(rounding=ROUND_CEILING))
    score = float(exact.quantize(PLACES, rounding=ROUND_FLOOR))
    return score if measure.category == "retrieval" else min(1.0, max(0.0, score))


def _rate(sample: Sample, measure: Measure, threshold: float, ordered: Sequence[float]) -> TriggerRate:
    worst = sorted(sample.worst)
    return TriggerRate(
        threshold=threshold,
        values=len(ordered),
        value_triggers=_beyond(ordered, threshold, measure),
        runs=len(worst),
        run_triggers=_beyond(worst, threshold, measure),
    )


def _beyond(ordered: Sequence[float], threshold: float, measure: Measure) -> int:
    return len(ordered) - bisect_right(ordered, threshold) if measure.is_upper else bisect_left(ordered, threshold)


def _histogram(good: Sequence[float], everything: Sequence[float], threshold: float, measure: Measure) -> tuple[HistogramBar, ...]:
    low, high = min(0.0, everything[0]), max(1.0, everything[-1])
    if measure.is_upper:
        high = max(1.0, min(high, 2.0 * threshold))  # ages have long tails; the last bar holds them
    even = {low + (high - low) * number / BARS for number in range(BARS + 1)}
    edges = sorted(even | {threshold}) if low < threshold < high else sorted(even)
    count = bisect_right if measure.is_upper else bisect_left  # a value at the threshold is on the side that passes
    good_below, all_below = ([0, *(count(values, edge) for edge in edges[1:-1]), len(values)] for values in (good, everything))
    return tuple(
        HistogramBar(
            low=edges[bar],
            high=edges[bar + 1],
            good=good_below[bar + 1] - good_below[bar],
            other=(all_below[bar + 1] - all_below[bar]) - (good_below[bar + 1] - good_below[bar]),
        )
        for bar in range(len(edges) - 1)
    )


def _notes(sample: Sample, measure: Measure, policy: Policy | None) -> Iterable[str]:
    if policy and PolicyAction(policy.body.rules.get(measure.action, PolicyAction.WARN)).stops and policy.body.enforcement == "enforce":
        yield (
            f"'{policy.body.name}' blocks on this rule, so runs beyond its threshold are not among the good ones; "
            "calibrate under warn or shadow to see them"
        )
    if sample.redacted:
        yield f"redacted records that were left out: {sample.redacted}"
    if sample.unfinished:
        yield f"runs that have not ended: {sample.unfinished}; they count as traffic, never as good"
