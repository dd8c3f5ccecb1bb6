"""Thresholds from recorded traffic: where a rule would leave good runs alone, how sure that is, and how often it would trigger.

Reads the decision log and nothing else; proposes a patch and changes nothing.
"""

from __future__ import annotations

import shlex
from array import array
from bisect import bisect_left, bisect_right
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fnmatch import fnmatchcase
from itertools import accumulate, pairwise
from math import exp, lgamma, log, log1p
from statistics import fmean
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from evidentia.contracts.decoding import convert
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.judging import JudgeStatus
from evidentia.contracts.policies import DEFAULT_TENANT, GroundingRules, Policy, PolicyAction, PolicyId, RetrievalRules
from evidentia.contracts.policy_trials import Calibration, HistogramBar, TriggerRate
from evidentia.contracts.runs import AnyCall, GroundingEntry, RetrievedDocument, RunEnded, RunId, RunStarted, RunStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from evidentia.contracts.decisions import LogEntry, LogRecord


LEAST_GOOD_RUNS: Final = 100
PLACES: Final = Decimal("0.0001")
"""A score is rounded down to this, which can only let more pass."""
BARS: Final = 20


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


def _require_enough(sample: Sample, measure: CalibrationMeasure) -> None:
    if len(sample.good_sizes) >= LEAST_GOOD_RUNS:
        return
    raise InvalidFieldError(
        "records",
        f"{len(sample.good_sizes)} good runs recorded a value for '{measure.rule}', and {LEAST_GOOD_RUNS} are needed "
        f"({sample.runs} runs were read, {sample.good_runs} of them good); record more traffic, or widen the filter",
    )


def _calibrated(sample: Sample, measure: CalibrationMeasure, policy: Policy | None) -> Calibration:
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


def _rounded(observed: float, measure: CalibrationMeasure) -> float:
    """Return a threshold in the rule's own terms: whole days rounded up, scores rounded down, within what the rule takes."""
    exact = Decimal(repr(observed))
    if measure.is_upper:
        return int(exact.to_integral_value(rounding=ROUND_CEILING))
    score = float(exact.quantize(PLACES, rounding=ROUND_FLOOR))
    return score if measure.category == "retrieval" else min(1.0, max(0.0, score))


def _rate(sample: Sample, measure: CalibrationMeasure, threshold: float, ordered: Sequence[float]) -> TriggerRate:
    worst = sorted(sample.worst)
    return TriggerRate(
        threshold=threshold,
        values=len(ordered),
        value_triggers=_beyond(ordered, threshold, measure),
        runs=len(worst),
        run_triggers=_beyond(worst, threshold, measure),
    )


def _beyond(ordered: Sequence[float], threshold: float, measure: CalibrationMeasure) -> int:
    return len(ordered) - bisect_right(ordered, threshold) if measure.is_upper else bisect_left(ordered, threshold)


def _histogram(
    good: Sequence[float], everything: Sequence[float], threshold: float, measure: CalibrationMeasure
) -> tuple[HistogramBar, ...]:
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


def _notes(sample: Sample, measure: CalibrationMeasure, policy: Policy | None) -> Iterable[str]:
    if policy and PolicyAction(policy.body.rules.get(measure.action, PolicyAction.WARN)).stops and policy.body.enforcement == "enforce":
        yield (
            f"'{policy.body.name}' blocks on this rule, so runs beyond its threshold are not among the good ones; "
            "calibrate under warn or shadow to see them"
        )
    if sample.redacted:
        yield f"redacted records that were left out: {sample.redacted}"
    if sample.unfinished:
        yield f"runs that have not ended: {sample.unfinished}; they count as traffic, never as good"


# --- sample ---
# One pass over the log that sorts a rule's values by what became of their run. Eight bytes a value, whatever the log holds.


class Sample:
    """The values of good runs, those of all runs, and the worst of each run."""

    def __init__(self, measure: CalibrationMeasure, rules: AnyRules) -> None:
        self._measure = measure
        self._rules = rules
        self.good = array("d")
        self.good_sizes = array("q")
        """How many of `good` belong to each run, in order."""
        self.values = array("d")
        self.worst = array("d")
        self.runs = 0
        self.good_runs = 0
        self.redacted = 0
        self.unfinished = 0

    def take(self, values: Sequence[float], *, is_good: bool) -> None:
        """Take the values of a run that is over."""
        self.runs += 1
        self.good_runs += is_good
        if not values:
            return
        kept = [of_run(values, self._rules)] if self._measure.is_of_run else values
        self.values.extend(kept)
        self.worst.append(max(kept) if self._measure.is_upper else min(kept))
        if is_good:
            self.good.extend(kept)
            self.good_sizes.append(len(kept))


class _OpenRun:
    """A run that has not ended yet."""

    __slots__ = ("is_blocked", "values")

    def __init__(self) -> None:
        self.values = array("d")
        self.is_blocked = False


def collect(
    records: Iterable[LogRecord],
    measure: CalibrationMeasure,
    rules: AnyRules,
    *,
    policy_id: PolicyId | None,
    tenant: str,
    agent: str | None,
    since_us: int | None,
) -> Sample:
    """Return the values of every run of a tenant that passes the filter: of an agent (a name or a glob), begun at or after a moment."""
    sample = Sample(measure, rules)
    opened: dict[RunId, _OpenRun] = {}
    for record in records:
        entry = record.entry
        if isinstance(entry.call, RunStarted):
            if not record.is_redacted and _is_wanted(entry, entry.call, tenant=tenant, agent=agent, since_us=since_us):
                opened[entry.run_id] = _OpenRun()
            continue
        run = opened.get(entry.run_id)
        if run is None:
            continue
        run.is_blocked = run.is_blocked or any(verdict.stops for verdict in entry.verdicts)
        if record.is_redacted:
            sample.redacted += 1
        else:
            run.values.extend(measure.read(entry.call, rules, policy_id))
        if isinstance(entry.call, RunEnded):
            del opened[entry.run_id]
            sample.take(run.values, is_good=entry.call.status is RunStatus.SUCCESS and not run.is_blocked)
    sample.unfinished = len(opened)
    for run in opened.values():  # in the order of their beginning, which the log decides
        sample.take(run.values, is_good=False)
    return sample


def _is_wanted(entry: LogEntry, call: RunStarted, *, tenant: str, agent: str | None, since_us: int | None) -> bool:
    if call.facts.tenant != tenant or (since_us is not None and entry.at_us < since_us):
        return False
    return agent is None or call.facts.agent_name == agent or fnmatchcase(call.facts.agent_name, agent)


# --- statistics ---
# Percentiles of what was recorded, with an interval that holds whatever the distribution is. Pure; ranks are whole numbers.
#
# The percentile is the nearest rank: of n values in order, the one at rank ceil(p n / 100), so it is always a value that was seen. The
# interval lies between two order statistics (David and Nagaraja, Order Statistics, 7.1): the number of values below the true percentile
# is binomial. Values of one run resemble each other, so they count for as many independent ones as their spread between runs says (the
# design effect of Kish; its use for ranks as in Korn and Graubard, 1998).

WHOLE: Final = 100
CONFIDENCE: Final = 95
"""Percent; half of the rest lies on either side of an interval."""


class Interval(NamedTuple):
    """Between which values a percentile lies; None where the values are too few to say."""

    low: float | None
    high: float | None


def nearest_rank(size: int, percent: int) -> int:
    """Return the rank of a percentile among `size` values, from 1."""
    return max(1, -(-percent * size // WHOLE))


def interval_of(ordered: Sequence[float], percent: int, *, effective: int) -> Interval:
    """Return the interval of a percentile of ordered values that count for `effective` independent ones."""
    below, above = _binomial_ranks(effective, percent)
    size = len(ordered)
    low = ordered[max(1, below * size // effective) - 1] if below >= 1 else None
    high = ordered[-(-above * size // effective) - 1] if above <= effective else None
    return Interval(low, high)


def effective_size(hits: Sequence[int], sizes: Sequence[int]) -> int:
    """Return for how many independent values clusters count, by how many of each are hits; never more than there are."""
    size, total = sum(sizes), sum(hits)
    if total in {0, size}:
        return size
    # In whole numbers, with p = total / size: n^2 sum (m_j - p n_j)^2 beside n^2 times what as many independent values would give.
    spread = sum((size * hit - total * own) ** 2 for hit, own in zip(hits, sizes, strict=True))
    alone = total * (size - total) * size
    return min(size, max(1, size * alone // spread)) if spread else size


def _binomial_ranks(size: int, percent: int) -> tuple[int, int]:
    """Return the widest rank below and the narrowest rank above with at most half of the doubt beyond each.

    The first is 0, or the second `size + 1`, where no rank does.
    """
    if 2 * percent > WHOLE:  # the mirror image, which has fewer terms
        below, above = _binomial_ranks(size, WHOLE - percent)
        return size + 1 - above, size + 1 - below
    doubt = (WHOLE - CONFIDENCE) / (2 * WHOLE)
    share = percent / WHOLE
    mass, below = 0.0, 0
    for count in range(size + 1):
        mass += _binomial(count, size, share)
        if mass <= doubt:
            below = count + 1
        if mass >= 1 - doubt:
            return below, count + 1
    return below, size + 1


def _binomial(count: int, size: int, share: float) -> float:
    ways = lgamma(size + 1) - lgamma(count + 1) - lgamma(size - count + 1)
    return exp(ways + count * log(share) + (size - count) * log1p(-share))


# --- values of a rule ---
# What the threshold of a rule is compared with, taken out of what a run recorded; exactly the values that the rule looks at.

LOW_PERCENT: Final = 5
HIGH_PERCENT: Final = 95
AVERAGE_PLACES: Final = 10
"""Averages are rounded as the rule itself rounds them."""

AnyRules = RetrievalRules | GroundingRules


class CalibrationMeasure(NamedTuple):
    """A rule that can be calibrated: its category, which end of the values it guards, and what it looks at."""

    rule: str
    category: str
    unit: str
    """What one value is, for people."""
    is_upper: bool
    read: Callable[[AnyCall, AnyRules, PolicyId | None], Sequence[float]]
    action: str
    """The rule that says what happens on a violation."""
    is_of_run: bool = False
    """Whether the values of a run come down to one."""

    @property
    def percent(self) -> int:
        """Return the percentile at which the threshold belongs."""
        return HIGH_PERCENT if self.is_upper else LOW_PERCENT


def measure_of(rule: str) -> CalibrationMeasure:
    """Return how a rule is measured, or name those that can be."""
    measure = MEASURES.get(rule)
    if measure is None:
        raise InvalidFieldError("rule", f"'{rule[:80]}' has no threshold to calibrate; name one of {', '.join(sorted(MEASURES))}")
    return measure


def rules_of(measure: CalibrationMeasure, policy: Policy | None) -> AnyRules:
    """Return the rules beside which a threshold is read: those of the policy, or the defaults of its category."""
    kind: type[AnyRules] = RetrievalRules if measure.category == "retrieval" else GroundingRules
    if policy is None:
        return kind()
    if policy.body.category != measure.category:
        raise InvalidFieldError(
            "policy",
            f"'{policy.body.name}' is of category '{policy.body.category}', and '{measure.rule}' is a rule of '{measure.category}'",
        )
    return convert(policy.body.rules, kind)


def of_run(values: Sequence[float], rules: AnyRules) -> float:
    """Return the output confidence that counts for a run: the last, or the lowest."""
    return min(values) if getattr(rules, "confidence_mode", "last") == "min" else values[-1]


def _relevance(call: AnyCall, rules: AnyRules, policy_id: PolicyId | None) -> Sequence[float]:
    del rules, policy_id
    return (call.relevance_score,) if isinstance(call, RetrievedDocument) else ()


def _age(call: AnyCall, rules: AnyRules, policy_id: PolicyId | None) -> Sequence[float]:
    del rules, policy_id
    return (call.age_days,) if isinstance(call, RetrievedDocument) and call.age_days is not None else ()


def _grounding(call: AnyCall, rules: AnyRules, policy_id: PolicyId | None) -> Sequence[float]:
    """Return the scores that are held against the threshold: above the floor, and averaged or cut as the mode says."""
    del policy_id
    if not isinstance(call, GroundingEntry) or not isinstance(rules, GroundingRules):
        return ()
    floor = rules.score_relevance_floor
    kept = [score for score in call.grounding_scores if floor is None or score >= floor]
    if rules.score_eval_mode == "average":
        return (round(fmean(kept), AVERAGE_PLACES),) if kept else ()
    return sorted(kept, reverse=True)[: rules.score_top_n] if rules.score_eval_mode == "top_n" else kept


def _best_score(call: AnyCall, rules: AnyRules, policy_id: PolicyId | None) -> Sequence[float]:
    """Return the best score of a call: a floor is violated when even that lies below it."""
    del rules, policy_id
    return (max(call.grounding_scores),) if isinstance(call, GroundingEntry) and call.grounding_scores else ()


def _confidence(call: AnyCall, rules: AnyRules, policy_id: PolicyId | None) -> Sequence[float]:
    del rules, policy_id
    return (call.output_confidence,) if isinstance(call, GroundingEntry) and call.output_confidence is not None else ()


def _judged(call: AnyCall, rules: AnyRules, policy_id: PolicyId | None) -> Sequence[float]:
    """Return what judges said: of one policy where one is named, else of all."""
    del rules
    if not isinstance(call, GroundingEntry | RunEnded):
        return ()
    asked = sorted(call.judgements.items())
    return [
        judgement.score
        for policy, judgement in asked
        if (policy_id is None or policy == policy_id) and judgement.status is JudgeStatus.JUDGED and judgement.score is not None
    ]


_ALL: Final = (
    CalibrationMeasure("min_relevance_score", "retrieval", "document", is_upper=False, read=_relevance, action="action_on_low_relevance"),
    CalibrationMeasure("max_source_age_days", "retrieval", "document", is_upper=True, read=_age, action="action_on_stale_source"),
    CalibrationMeasure("min_grounding_score", "grounding", "score", is_upper=False, read=_grounding, action="action_on_violation"),
    CalibrationMeasure("score_relevance_floor", "grounding", "call", is_upper=False, read=_best_score, action="action_on_violation"),
    CalibrationMeasure("llm_grounding_threshold", "grounding", "judgement", is_upper=False, read=_judged, action="action_on_violation"),
    CalibrationMeasure(
        "abstention_threshold", "grounding", "run", is_upper=False, read=_confidence, action="action_on_violation", is_of_run=True
    ),
)
MEASURES: Final[Mapping[str, CalibrationMeasure]] = MappingProxyType({measure.rule: measure for measure in _ALL})
