"""Step 5: which sources take part, and what the request wants of them.

The base's own documents belong to sources; which of them answer is a narrowing of the search, decided from
`source_policy`, the filter and the time window. It never changes statistics. Sources outside the base are chosen among those
that the caller may ask; the others have no influence and are never named.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from evidentia.contracts.evidence import CoverageReport, EvidenceRequest, SubQuery
from evidentia.contracts.ids import SourceId
from evidentia.contracts.predicates import And, Compare, In, Predicate
from evidentia.contracts.settings import SourceSettings
from evidentia.contracts.vocabulary import AuthorityTier, BreakerState, CoverageState, LatencyTier, QueryCapability
from evidentia.federation.deadline import Stages
from evidentia.policy.access import may_ask
from evidentia.query.capabilities import infer_capabilities
from evidentia.ranking.fusion import ONE
from evidentia.ranking.signals import authority

if TYPE_CHECKING:
    from evidentia.contracts.search import AccessScope
    from evidentia.contracts.sources import SourceDescriptor, SourcePolicy


__all__ = ["MAX_PARTS", "UNKNOWN_SOURCE", "PlannedCall", "SourceFacts", "SourcePlan", "plan_sources"]

UNKNOWN_SOURCE = "there is no such source, or none of it may be seen"
PINNED = "a request for an old version is answered from the base alone"
NOT_ATTACHED = "nothing is attached here that could ask it"
BREAKER_IS_OPEN = "it failed too often of late, and is left alone for a while"
MAX_PARTS = 16
"""Sources are asked for no more parts of a question than this."""
_DEFAULTS = SourceSettings()
_RANKS: Mapping[str, int] = {tier: tier.rank for tier in AuthorityTier}


class SourcePlan(msgspec.Struct, frozen=True, kw_only=True):
    """The sources that are searched, those that are not and why, and the narrowing that follows; then whom to ask outside.

    A source outside the base is in `calls` or in `skipped`, never in both; one that the caller may not ask is in neither, unless
    the request names it, and then it looks like one that does not exist.
    """

    searched: tuple[SourceId, ...]
    skipped: Mapping[SourceId, CoverageReport]
    narrowing: Predicate | None
    calls: tuple[PlannedCall, ...] = ()
    parts: tuple[SubQuery, ...] = ()
    """What `PlannedCall.part` counts, from 0; empty when no source outside the base comes into question."""
    notes: tuple[str, ...] = ()
    """Why these calls, in short lines that name sources and numbers, never content."""


def plan_sources(
    request: EvidenceRequest,
    visible: Mapping[SourceId, AuthorityTier],
    *,
    asked: Sequence[SubQuery] = (),
    outside: Sequence[SourceFacts] = (),
    scope: AccessScope | None = None,
    settings: SourceSettings = _DEFAULTS,
    remaining_ms: int | None = None,
    is_pinned: bool = False,
) -> SourcePlan:
    """Return which sources the request may use: of the base's own those visible, of those outside the best that may be asked.

    `asked` are the parts of the question as it was understood, which sources outside are asked and by which they are chosen; what they
    require of a source is inferred where they do not say. Without them the request's own words are taken as they are.
    `remaining_ms` is what is left of the request's deadline, all of it by default. Without a scope nobody outside may be asked.
    A source whose documents are in the base is its own, whatever else is said of it. The order of `outside` means nothing.
    """
    policy = request.source_policy
    searched, skipped = [], {}
    for source, tier in visible.items():
        if reason := _refusal(source, tier, policy):
            skipped[source] = left_out(reason)
        else:
            searched.append(source)
    narrowing = _narrowing(request, searched=tuple(searched), is_partial=len(searched) < len(visible))
    askable = _askable(outside, scope, visible)
    for source in policy.allowed_sources or ():
        if source not in visible and source not in askable:
            skipped[source] = left_out(UNKNOWN_SOURCE, CoverageState.DENIED)
    plan = SourcePlan(searched=tuple(searched), skipped=skipped, narrowing=narrowing)
    if not askable:
        return plan
    stated = request.query.subqueries or (SubQuery(text=request.query.text),)
    parts = _understood(asked, askable) if asked else [(part, "") for part in stated]
    return _with_outside(plan, request, parts, askable, settings=settings, remaining_ms=remaining_ms, is_pinned=is_pinned)


def _askable(
    outside: Sequence[SourceFacts], scope: AccessScope | None, visible: Mapping[SourceId, AuthorityTier]
) -> Mapping[SourceId, SourceFacts]:
    """Return the sources outside the base that the caller may ask, by id; the others play no part from here on."""
    if scope is None:
        return {}
    return {
        each.descriptor.source_id: each
        for each in outside
        if not each.descriptor.is_own and each.descriptor.source_id not in visible and may_ask(each.descriptor.access_policy, scope)
    }


def _with_outside(
    plan: SourcePlan,
    request: EvidenceRequest,
    parts: Sequence[tuple[SubQuery, str]],
    askable: Mapping[SourceId, SourceFacts],
    *,
    settings: SourceSettings,
    remaining_ms: int | None,
    is_pinned: bool,
) -> SourcePlan:
    skipped = dict(plan.skipped)
    ready = []
    for source, facts in sorted(askable.items()):
        if report := _hindrance(facts, request.source_policy, is_pinned=is_pinned):
            skipped[source] = report
        else:
            ready.append(facts)
    asked = tuple(part for part, _ in parts[:MAX_PARTS])
    limits = Limits(
        stages=Stages(request.latency_deadline_ms),
        remaining_ms=request.latency_deadline_ms if remaining_ms is None else remaining_ms,
        cost_budget_micros=request.cost_budget_micros,
        most_per_part=_most_per_part(request.source_policy, settings),
    )
    choice = choose_sources(ready, asked, limits)
    return SourcePlan(
        searched=plan.searched,
        skipped=skipped | dict(choice.skipped),
        narrowing=plan.narrowing,
        calls=choice.calls,
        parts=asked,
        notes=(*_uncounted(len(parts)), *(note for _, note in parts[:MAX_PARTS] if note), *choice.notes),
    )


def _understood(parts: Sequence[SubQuery], askable: Mapping[SourceId, SourceFacts]) -> list[tuple[SubQuery, str]]:
    """Return the parts with what each requires of a source, and why in words; those that say so themselves are left as they are."""
    names = frozenset(name for facts in askable.values() for name in _schema_names(facts.descriptor))
    found: list[tuple[SubQuery, str]] = []
    for number, part in enumerate(parts):
        if part.required_capabilities:
            found.append((part, ""))
            continue
        signs = infer_capabilities(part.text, names=names)
        told = ", ".join(f"{capability.value} ({sign})" for capability, sign in signs.items())
        found.append((msgspec.structs.replace(part, required_capabilities=tuple(signs)), f"part {number} requires {told}"))
    return found


def _schema_names(descriptor: SourceDescriptor) -> Iterable[str]:
    """Yield the names of what a source can be asked about."""
    yield from (field.name for field in descriptor.schema.fields)
    for table, fields in descriptor.schema.tables.items():
        yield table
        yield from (field.name for field in fields)


def _refusal(source: SourceId, tier: AuthorityTier, policy: SourcePolicy) -> str:
    if source in policy.denied_sources:
        return "source_policy denies it"
    if policy.allowed_sources is not None and source not in policy.allowed_sources:
        return "source_policy does not allow it"
    if _RANKS[tier] < _RANKS[policy.minimum_authority]:
        return f"nothing in it reaches the authority '{policy.minimum_authority}'"
    return ""


def _hindrance(facts: SourceFacts, policy: SourcePolicy, *, is_pinned: bool) -> CoverageReport | None:
    """Return why a source that the caller may ask cannot be asked now; None when it can."""
    descriptor = facts.descriptor
    if reason := _refusal(descriptor.source_id, descriptor.authority_tier, policy):
        return left_out(reason)
    if is_pinned:
        return left_out(PINNED)
    if not facts.is_attached:
        return left_out(NOT_ATTACHED)
    if facts.breaker is BreakerState.OPEN:
        return left_out(BREAKER_IS_OPEN, CoverageState.BREAKER_OPEN)
    if not facts.has_rate:
        return left_out(f"its limit of {descriptor.max_qps} queries per second is used up")
    return None


def _most_per_part(policy: SourcePolicy, settings: SourceSettings) -> int | None:
    """Return how many sources are asked per part: what the request says, else no limit where it names them, else the settings."""
    if policy.most_sources is not None:
        return policy.most_sources
    return None if policy.allowed_sources is not None else settings.most_per_part


def _uncounted(parts: int) -> tuple[str, ...]:
    return (f"sources are asked for the first {MAX_PARTS} of {parts} parts",) if parts > MAX_PARTS else ()


def _narrowing(request: EvidenceRequest, *, searched: tuple[SourceId, ...], is_partial: bool) -> Predicate | None:
    clauses: list[Predicate] = []
    if is_partial:
        clauses.append(In("source_id", tuple(searched)))
    if request.source_policy.minimum_authority is not AuthorityTier.EPHEMERAL:
        clauses.append(Compare("authority_tier", ">=", request.source_policy.minimum_authority.value))
    if request.time_window and request.time_window.start:
        clauses.append(Compare("updated_at", ">=", msgspec.to_builtins(request.time_window.start)))
    if request.time_window and request.time_window.end:
        clauses.append(Compare("updated_at", "<=", msgspec.to_builtins(request.time_window.end)))
    if request.filter is not None and not isinstance(request.filter, str):
        clauses.append(request.filter)
    if not clauses:
        return None
    return clauses[0] if len(clauses) == 1 else And(tuple(clauses))


# --- source choice ---
# Which sources outside the base are asked for which part of a question: a greedy choice under deadline and cost.
#
# utility = authority * freshness * capability match * past usefulness * weight of the part first comes the greatest utility / (p99 /
# deadline + cost / cost budget); equals come by source id, then by part
#
# Everything compared is an integer, so neither rounding nor the order in which sources are given decides anything.

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
    notes: list[str] = []
    for each in sorted(facts, key=lambda one: one.descriptor.source_id):
        p99_ms = _within(room_ms, each)
        if p99_ms > room_ms:
            skipped[each.descriptor.source_id] = left_out(_too_slow(p99_ms, room_ms))
            continue
        found = _options(each, p99_ms, required, weights, limits)
        if not found:
            skipped[each.descriptor.source_id] = left_out(CANNOT)
            notes.append(f"{each.descriptor.source_id} is not asked: {CANNOT}")
        options += found
    choice = _greedy(options, limits, skipped)
    return choice._replace(notes=(*notes, *choice.notes))


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
