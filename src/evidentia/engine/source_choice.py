"""Which sources outside the base are asked for which part of a question: a greedy choice under deadline and cost.

    utility = authority * freshness * capability match * past usefulness * weight of the part
    first comes the greatest utility / (p99 / deadline + cost / cost budget); equals come by source id, then by part

Everything compared is an integer, so neither rounding nor the order in which sources are given decides anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.contracts.evidence import CoverageReport
from evidentia.contracts.vocabulary import CoverageState, LatencyTier
from evidentia.ranking.fusion import ONE
from evidentia.ranking.signals import authority

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from evidentia.contracts.evidence import SubQuery
    from evidentia.contracts.ids import SourceId
    from evidentia.contracts.sources import SourceDescriptor
    from evidentia.contracts.vocabulary import BreakerState, QueryCapability
    from evidentia.engine.deadline import Stages

TIER_P99_MS: Final[Mapping[str, int]] = {LatencyTier.HOT: 10, LatencyTier.WARM: 100, LatencyTier.COLD: 1_000, LatencyTier.ARCHIVE: 5_000}
"""What is expected of a source of which nothing else is known."""
CANNOT = "it can do none of what the parts of the question require"
_MILLI: Final = 1_000


class SourceFacts(NamedTuple):
    """What is known of a source outside the base when a request is planned."""

    descriptor: SourceDescriptor
    is_attached: bool
    breaker: BreakerState
    has_rate: bool
    """Whether its `max_qps` leaves room for a call."""
    p99_ms: int | None
    """As measured; None before 100 calls."""
    usefulness_milli: int = 500
    """How useful it was in the past, in thousandths; 500 without a history."""
    age_s: int | None = None
    """How old its data was when it was last seen."""


class PlannedCall(NamedTuple):
    """One question to one source: which part of the question, and how long it is waited for."""

    source_id: SourceId
    part: int
    wait_ms: int


class Limits(NamedTuple):
    """What the choice has to keep to; None limits nothing."""

    stages: Stages
    remaining_ms: int
    cost_budget_micros: int | None
    most_per_part: int | None


class Choice(NamedTuple):
    """The calls in the order in which they were chosen, the sources without any call and why, and the reasoning in short lines."""

    calls: tuple[PlannedCall, ...]
    skipped: Mapping[SourceId, CoverageReport]
    notes: tuple[str, ...]


def choose_sources(facts: Iterable[SourceFacts], parts: Sequence[SubQuery], limits: Limits) -> Choice:
    """Return who is asked what; of every source there is a call or a reason, never both."""
    room_ms = limits.stages.room_ms(limits.remaining_ms)
    required = [frozenset(part.required_capabilities) for part in parts]
    weights = [weight_milli(part) for part in parts]
    skipped: dict[SourceId, CoverageReport] = {}
    options: list[_Option] = []
    for each in sorted(facts, key=lambda one: one.descriptor.source_id):
        p99_ms = _within(room_ms, each)
        if p99_ms > room_ms:
            skipped[each.descriptor.source_id] = left_out(_too_slow(p99_ms, room_ms))
            continue
        found = _options(each, p99_ms, required, weights, limits)
        if not found:
            skipped[each.descriptor.source_id] = left_out(CANNOT)
        options += found
    return _greedy(options, limits, skipped)


def left_out(reason: str, state: CoverageState = CoverageState.SKIPPED) -> CoverageReport:
    """Return the account of a source that was not asked."""
    return CoverageReport(state=state, reason=reason, searched_share=0.0)


def _within(room_ms: int, facts: SourceFacts) -> int:
    """Return how long a source is expected to take; one that has hung now and then is given the room that there is.

    Calls that were given up count in what was measured, so a few of them lift its p99 above any room. It would then never be asked
    again, and nothing better would ever be measured; a source that never answers is the breaker's affair.
    """
    p99_ms = expected_p99_ms(facts)
    declared_ms = facts.descriptor.expected_p99_ms or TIER_P99_MS[facts.descriptor.latency_tier]
    return room_ms if p99_ms > room_ms >= declared_ms else p99_ms


def expected_p99_ms(facts: SourceFacts) -> int:
    """Return how soon 99 of 100 answers come: as measured, else as the descriptor states, else by its latency tier."""
    return max(1, facts.p99_ms or facts.descriptor.expected_p99_ms or TIER_P99_MS[facts.descriptor.latency_tier])


def freshness_milli(descriptor: SourceDescriptor, age_s: int | None) -> int:
    """Return 1000 while a source keeps its promise or nothing is known, else the promise divided by the age; at least 1.

    Data of twice the promised age counts half. One second is added to both, so that a promise of 0 seconds can be broken too.
    """
    promised_s = descriptor.freshness_sla_s
    if promised_s is None or age_s is None or age_s <= promised_s:
        return _MILLI
    return max(1, _MILLI * (promised_s + 1) // (age_s + 1))


def match_milli(required: frozenset[QueryCapability], descriptor: SourceDescriptor) -> int:
    """Return how much of what a part requires a source can do; 0 when it can do nothing of it."""
    if not required:
        return _MILLI
    return _MILLI * len(required.intersection(descriptor.query_capabilities)) // len(required)


def weight_milli(part: SubQuery) -> int:
    """Return the weight of a part in thousandths; the one place where it is rounded."""
    return round(part.weight * _MILLI)


class _Option(NamedTuple):
    """A call that could be made; `price` is the denominator of the greedy order, the same multiple of it for every option."""

    source_id: SourceId
    part: int
    utility: int
    price: int
    p99_ms: int
    cost_micros: int


def _options(
    facts: SourceFacts, p99_ms: int, required: Sequence[frozenset[QueryCapability]], weights: Sequence[int], limits: Limits
) -> list[_Option]:
    descriptor = facts.descriptor
    standing = authority(descriptor.authority_tier, is_annotated=False) * freshness_milli(descriptor, facts.age_s) * facts.usefulness_milli
    cost = descriptor.cost_per_query_micros
    budget = limits.cost_budget_micros
    price = p99_ms * budget + cost * limits.stages.deadline_ms if budget else p99_ms
    return [
        _Option(descriptor.source_id, part, standing * match * weights[part], price, p99_ms, cost)
        for part, wanted in enumerate(required)
        if (match := match_milli(wanted, descriptor))
    ]


def _greedy(options: Sequence[_Option], limits: Limits, skipped: dict[SourceId, CoverageReport]) -> Choice:
    most, budget = limits.most_per_part, limits.cost_budget_micros
    spent = 0
    asked: dict[int, int] = {}
    calls, notes = [], []
    refusals: dict[SourceId, str] = {}
    for option in _in_order(options):
        number = asked.get(option.part, 0)
        if most is not None and number >= most:
            reason = _too_many(most)
        elif budget is not None and spent + option.cost_micros > budget:
            reason = f"it costs {option.cost_micros} millionths, and {budget - spent} of the cost budget are left"
        else:
            asked[option.part] = number + 1
            spent += option.cost_micros
            wait_ms = limits.stages.wait_ms(option.p99_ms, limits.remaining_ms)
            calls.append(PlannedCall(option.source_id, option.part, wait_ms))
            notes.append(_asked_note(option, wait_ms))
            continue
        refusals.setdefault(option.source_id, reason)
        notes.append(f"{option.source_id} is not asked for part {option.part}: {reason}")
    called = {call.source_id for call in calls}
    skipped.update((source, left_out(reason)) for source, reason in refusals.items() if source not in called)
    return Choice(calls=tuple(calls), skipped=skipped, notes=tuple(notes))


def _in_order(options: Sequence[_Option]) -> list[_Option]:
    """Return the options in the greedy order, exactly.

    Two ratios that differ do so by at least 1 / (product of their prices); scaled by more than that product, they differ by more
    than 1, so that rounding down cannot make them equal.
    """
    scale = 2 * max((option.price for option in options), default=0).bit_length()
    return sorted(options, key=lambda option: (-((option.utility << scale) // option.price), option.source_id, option.part))


def _too_slow(p99_ms: int, room_ms: int) -> str:
    return f"too slow: 99 of 100 answers take up to {p99_ms} ms, and {room_ms} ms are left for sources"


def _too_many(most: int) -> str:
    return f"at most {most} sources outside the base are asked per part of the question"


def _asked_note(option: _Option, wait_ms: int) -> str:
    shown = option.utility * _MILLI // (ONE * _MILLI**4)
    utility = f"{shown // _MILLI}.{shown % _MILLI:03d}"
    return f"{option.source_id} is asked for part {option.part}: utility {utility}, p99 {option.p99_ms} ms, waits {wait_ms} ms"
