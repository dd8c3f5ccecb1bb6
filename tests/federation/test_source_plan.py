"""Which sources outside the base are asked: every reason to leave one out, and the greedy choice against a naive restatement."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evidentia.contracts.access import Principal
from evidentia.contracts.evidence import DecomposedQuery, EvidenceRequest, SubQuery
from evidentia.contracts.ids import PrincipalId, SourceId
from evidentia.contracts.predicates import In
from evidentia.contracts.settings import SourceSettings
from evidentia.contracts.sources import SourceAccessPolicy, SourceConnection, SourceDescriptor, SourcePolicy
from evidentia.contracts.vocabulary import AuthorityTier, BreakerState, ConnectionKind, CoverageState, LatencyTier, QueryCapability
from evidentia.federation.source_plan import (
    MAX_PARTS,
    TIER_P99_MS,
    UNKNOWN_SOURCE,
    PlannedCall,
    SourceFacts,
    SourcePlan,
    freshness_milli,
    plan_sources,
)
from evidentia.policy.access import access_scope
from soak import cases

if TYPE_CHECKING:
    from collections.abc import Sequence

ANN = access_scope(Principal(principal_id=PrincipalId("ann"), roles=("pilot",)), acl_scope=None, rules=())
OWN = {SourceId("docs"): AuthorityTier.CURATED, SourceId("notes"): AuthorityTier.EPHEMERAL}
REMOTE = SourceConnection(kind=ConnectionKind.REMOTE)
CLOSED_TO_ANN = SourceAccessPolicy(roles=("auditor",))
CAPABILITIES = tuple(QueryCapability)


def facts(name: str, **changes: Any) -> SourceFacts:
    """Return a source that can be asked; names of `SourceFacts` change it, all others its descriptor."""
    own = {field: changes.pop(field) for field in list(changes) if field in SourceFacts._fields}
    descriptor = msgspec.structs.replace(SourceDescriptor(source_id=SourceId(name), connection=REMOTE), **changes)
    ready: dict[str, Any] = {"is_attached": True, "breaker": BreakerState.CLOSED, "has_rate": True, "p99_ms": None}
    return SourceFacts(descriptor=descriptor, **(ready | own))


def request(*, policy: SourcePolicy | None = None, parts: Sequence[SubQuery] = (), **fields: Any) -> EvidenceRequest:
    query = DecomposedQuery(text="why is the pump cold", subqueries=tuple(parts))
    return EvidenceRequest(query=query, source_policy=policy or SourcePolicy(), **fields)


def plan(*outside: SourceFacts, asked: EvidenceRequest | None = None, **options: Any) -> SourcePlan:
    return plan_sources(asked or request(), OWN, outside=outside, **({"scope": ANN} | options))


def called(found: SourcePlan) -> list[str]:
    return [call.source_id for call in found.calls]


def reason(found: SourcePlan, name: str = "wiki") -> tuple[CoverageState, str]:
    report = found.skipped[SourceId(name)]
    assert 0.0 == report.searched_share
    assert not [call for call in found.calls if call.source_id == name]
    return report.state, report.reason


# --- the base's own sources ---


def test_without_sources_outside_the_plan_speaks_of_the_base_alone() -> None:
    asked = request(policy=SourcePolicy(denied_sources=(SourceId("notes"),)))
    found = plan_sources(asked, OWN)

    assert (("docs",), ["notes"], In("source_id", (SourceId("docs"),))) == (found.searched, list(found.skipped), found.narrowing)
    assert ((), (), ()) == (found.calls, found.parts, found.notes)


@pytest.mark.parametrize(
    "policy", [SourcePolicy(), SourcePolicy(minimum_authority=AuthorityTier.CURATED), SourcePolicy(allowed_sources=(SourceId("docs"),))]
)
def test_sources_outside_change_nothing_about_the_base(policy: SourcePolicy) -> None:
    asked = request(policy=policy)
    alone, together = plan_sources(asked, OWN), plan(facts("wiki"), asked=asked)

    assert (alone.searched, alone.narrowing) == (together.searched, together.narrowing)
    assert dict(alone.skipped) == {name: report for name, report in together.skipped.items() if name != "wiki"}


def test_a_source_whose_documents_are_in_the_base_is_not_asked() -> None:
    assert plan_sources(request(), OWN) == plan(facts("docs"), facts("empty", connection=SourceConnection()))


# --- whom the caller may ask ---


def test_a_source_that_the_caller_may_not_ask_leaves_no_trace() -> None:
    hidden = facts("secret", access_policy=CLOSED_TO_ANN, authority_tier=AuthorityTier.CANONICAL, expected_p99_ms=1)
    asked = request(policy=SourcePolicy(most_sources=1, denied_sources=(SourceId("secret"),)))

    assert plan(facts("wiki"), facts("logs"), asked=asked) == plan(hidden, facts("wiki"), facts("logs"), asked=asked)
    assert plan_sources(request(), OWN) == plan(hidden)


def test_one_that_is_named_is_not_told_apart_from_one_that_does_not_exist() -> None:
    asked = request(policy=SourcePolicy(allowed_sources=(SourceId("secret"), SourceId("wiki"))))
    hidden = facts("secret", access_policy=CLOSED_TO_ANN, is_attached=False, breaker=BreakerState.OPEN)

    assert plan(facts("wiki"), asked=asked) == (found := plan(hidden, facts("wiki"), asked=asked))
    assert (CoverageState.DENIED, UNKNOWN_SOURCE) == reason(found, "secret")


def test_without_a_scope_nobody_is_asked() -> None:
    assert plan_sources(request(), OWN) == plan(facts("wiki"), scope=None)


# --- why a source is left out ---


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (SourcePolicy(denied_sources=(SourceId("wiki"),)), "denies it"),
        (SourcePolicy(allowed_sources=(SourceId("docs"),)), "does not allow it"),
        (SourcePolicy(minimum_authority=AuthorityTier.CANONICAL), "authority 'canonical'"),
        (SourcePolicy(most_sources=0), "at most 0 sources"),
    ],
)
def test_what_the_request_does_not_want_is_left_out_and_says_why(policy: SourcePolicy, words: str) -> None:
    state, why = reason(plan(facts("wiki"), asked=request(policy=policy)))

    assert CoverageState.SKIPPED == state
    assert words in why


@pytest.mark.parametrize(
    ("changes", "state", "words"),
    [
        ({"is_attached": False}, CoverageState.SKIPPED, "nothing is attached"),
        ({"breaker": BreakerState.OPEN}, CoverageState.BREAKER_OPEN, "failed too often"),
        ({"has_rate": False, "max_qps": 7}, CoverageState.SKIPPED, "limit of 7 queries per second"),
        ({"expected_p99_ms": 351}, CoverageState.SKIPPED, "up to 351 ms, and 350 ms are left"),
        ({"latency_tier": LatencyTier.COLD}, CoverageState.SKIPPED, "up to 1000 ms"),
    ],
)
def test_what_cannot_be_asked_now_is_left_out_and_says_why(changes: dict[str, Any], state: CoverageState, words: str) -> None:
    found_state, why = reason(plan(facts("wiki", **changes)))

    assert state == found_state
    assert words in why


def test_a_half_open_breaker_lets_a_call_through() -> None:
    assert ["wiki"] == called(plan(facts("wiki", breaker=BreakerState.HALF_OPEN)))


def test_a_request_for_an_old_version_asks_nobody() -> None:
    found = plan(facts("wiki"), is_pinned=True)

    assert "old version" in reason(found)[1]
    assert () == found.calls


def test_the_measured_p99_replaces_the_stated_one_and_that_the_tiers() -> None:
    by_tier, stated = {"latency_tier": LatencyTier.WARM}, {"expected_p99_ms": 40}

    waits = [plan(facts("wiki", **each)).calls[0].wait_ms for each in (by_tier, by_tier | stated, by_tier | stated | {"p99_ms": 20})]
    assert [150, 60, 30] == waits
    assert [10, 100, 1_000, 5_000] == [TIER_P99_MS[tier] for tier in LatencyTier]


def test_what_fits_depends_on_what_is_left_of_the_deadline() -> None:
    warm = facts("wiki", latency_tier=LatencyTier.WARM)

    assert [PlannedCall(SourceId("wiki"), 0, 100)] == list(plan(warm, remaining_ms=225).calls)
    assert "up to 100 ms, and 99 ms are left" in reason(plan(warm, remaining_ms=224))[1]
    assert "0 ms are left" in reason(plan(facts("wiki", p99_ms=1), remaining_ms=0))[1]


@pytest.mark.parametrize("deadline_ms", [1, 5, 10, 30])
def test_a_very_short_deadline_still_asks_a_very_quick_source(deadline_ms: int) -> None:
    found = plan(facts("quick", p99_ms=1), facts("slow"), asked=request(latency_deadline_ms=deadline_ms))

    assert "quick" in called(found)
    assert all(1 <= call.wait_ms <= deadline_ms for call in found.calls)


# --- parts and capabilities ---


def test_a_question_without_parts_is_one_part() -> None:
    assert (SubQuery(text="why is the pump cold"),) == plan(facts("wiki")).parts


def test_every_part_is_asked_of_sources_that_can_do_something_of_what_it_requires() -> None:
    parts = (
        SubQuery(text="a", required_capabilities=(QueryCapability.SEMANTIC, QueryCapability.STRUCTURED)),
        SubQuery(text="b", required_capabilities=(QueryCapability.EXACT_MATCH,)),
        SubQuery(text="c"),
    )
    semantic, graph = (QueryCapability.SEMANTIC,), (QueryCapability.GRAPH_TRAVERSAL,)
    found = plan(facts("wiki", query_capabilities=semantic), facts("graph", query_capabilities=graph), asked=request(parts=parts))

    assert parts == found.parts
    assert [("graph", 2), ("wiki", 0), ("wiki", 2)] == sorted((call.source_id, call.part) for call in found.calls)
    assert "can do none" in reason(plan(facts("wiki", query_capabilities=graph), asked=request(parts=parts[:2])))[1]


def test_more_parts_than_sources_are_asked_for_are_declared() -> None:
    found = plan(facts("wiki"), asked=request(parts=[SubQuery(text=str(number)) for number in range(20)]))

    assert MAX_PARTS == len(found.parts) == len(found.calls)
    assert "sources are asked for the first 16 of 20 parts" == found.notes[0]


def test_who_can_do_more_of_what_a_part_requires_comes_first() -> None:
    parts = (SubQuery(text="a", required_capabilities=CAPABILITIES[:2]),)
    half, whole = facts("half", query_capabilities=CAPABILITIES[1:]), facts("whole", query_capabilities=CAPABILITIES)

    assert ["whole", "half"] == called(plan(half, whole, asked=request(parts=parts)))


# --- how many, which first ---


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({"authority_tier": AuthorityTier.CANONICAL}, {"authority_tier": AuthorityTier.CURATED}),
        ({"usefulness_milli": 501}, {}),
        ({"p99_ms": 10}, {"p99_ms": 11}),
        ({"cost_per_query_micros": 10}, {"cost_per_query_micros": 11}),
        ({"freshness_sla_s": 60, "age_s": 60}, {"freshness_sla_s": 60, "age_s": 70}),
        ({"age_s": 10**9}, {"freshness_sla_s": 60, "age_s": 70}),
    ],
)
def test_the_better_source_comes_first(better: dict[str, Any], worse: dict[str, Any]) -> None:
    asked = request(cost_budget_micros=1_000, policy=SourcePolicy(most_sources=1))
    found = plan(facts("a", **worse), facts("b", **better), asked=asked)

    assert ["b"] == called(found)
    assert (CoverageState.SKIPPED, "at most 1 sources outside the base are asked per part of the question") == reason(found, "a")


def test_a_source_that_was_measured_to_be_slow_is_asked_with_the_room_that_there_is() -> None:
    found = plan(facts("hung", p99_ms=9_000, expected_p99_ms=50), asked=request())

    assert ["hung"] == called(found)
    assert CoverageState.SKIPPED == reason(plan(facts("slow", p99_ms=9_000, expected_p99_ms=8_000)), "slow")[0]


def test_equals_come_by_id() -> None:
    assert ["a", "b", "c"] == called(plan(*(facts(name) for name in "dcba")))


def test_equals_come_by_id_before_they_come_by_part() -> None:
    found = plan(facts("b"), facts("a"), asked=request(parts=[SubQuery(text="x"), SubQuery(text="y")]))

    assert [("a", 0), ("a", 1), ("b", 0), ("b", 1)] == [(call.source_id, call.part) for call in found.calls]


def test_three_are_asked_unless_the_request_or_the_settings_say_otherwise() -> None:
    five = [facts(name) for name in "abcde"]
    named = tuple(SourceId(name) for name in "abcde")

    assert 3 == len(plan(*five).calls)
    assert 2 == len(plan(*five, settings=SourceSettings(most_per_part=2)).calls)
    assert 4 == len(plan(*five, asked=request(policy=SourcePolicy(most_sources=4))).calls)
    assert 5 == len(plan(*five, asked=request(policy=SourcePolicy(allowed_sources=named))).calls)
    assert 1 == len(plan(*five, asked=request(policy=SourcePolicy(allowed_sources=named, most_sources=1))).calls)


def test_the_limit_holds_for_each_part() -> None:
    asked = request(parts=[SubQuery(text="a"), SubQuery(text="b")], policy=SourcePolicy(most_sources=1))

    assert [("a", 0), ("a", 1)] == [(call.source_id, call.part) for call in plan(facts("b"), facts("a"), asked=asked).calls]


def test_cost_is_summed_over_all_calls_and_what_is_cheap_enough_still_comes() -> None:
    asked = request(cost_budget_micros=100, parts=[SubQuery(text="a"), SubQuery(text="b", weight=0.5)])
    dear = facts("dear", cost_per_query_micros=70, authority_tier=AuthorityTier.CANONICAL, usefulness_milli=1_000)
    found = plan(dear, facts("cheap", cost_per_query_micros=15, usefulness_milli=100, p99_ms=100), asked=asked)

    assert [("dear", 0), ("cheap", 0), ("cheap", 1)] == [(call.source_id, call.part) for call in found.calls]
    assert {} == found.skipped, "it was asked for one part"
    assert "dear is not asked for part 1: it costs 70 millionths, and 30 of the cost budget are left" in found.notes


def test_without_a_budget_nothing_is_too_dear_and_with_none_left_only_what_is_free_is_asked() -> None:
    dear, free = facts("dear", cost_per_query_micros=10**12), facts("free")

    assert ["dear", "free"] == called(plan(dear, free))
    found = plan(dear, free, asked=request(cost_budget_micros=0))
    assert ["free"] == called(found)
    assert (CoverageState.SKIPPED, "it costs 1000000000000 millionths, and 0 of the cost budget are left") == reason(found, "dear")


def test_a_source_that_several_parts_left_out_gives_the_reason_of_the_part_it_was_best_for() -> None:
    first = SubQuery(text="a", required_capabilities=(QueryCapability.STRUCTURED,))
    asked = request(cost_budget_micros=10, parts=[first, SubQuery(text="b", weight=0.1)], policy=SourcePolicy(most_sources=1))
    dear = facts("dear", cost_per_query_micros=11, query_capabilities=CAPABILITIES)
    found = plan(dear, facts("free"), asked=asked)

    assert [("free", 1)] == [(call.source_id, call.part) for call in found.calls]
    assert "dear is not asked for part 1: at most 1 sources outside the base are asked per part of the question" in found.notes
    assert "it costs 11 millionths, and 10 of the cost budget are left" == reason(found, "dear")[1]


@given(st.integers(0, 10**6), st.integers(0, 10**9))
def test_freshness_is_whole_while_the_promise_holds_and_falls_after(promised_s: int, age_s: int) -> None:
    descriptor = SourceDescriptor(source_id=SourceId("x"), freshness_sla_s=promised_s)
    found, older = (freshness_milli(descriptor, age) for age in (age_s, 2 * age_s + 1))

    assert (age_s <= promised_s) == (found == 1_000) or promised_s > 900, "just after the promise the loss is below a thousandth"
    assert 1 <= older <= found <= 1_000
    assert age_s <= promised_s or abs(found - 2 * older) <= 2


def test_notes_name_sources_and_numbers_and_nothing_that_was_asked() -> None:
    found = plan(facts("wiki", p99_ms=20, authority_tier=AuthorityTier.CANONICAL))

    assert ("wiki is asked for part 0: utility 0.500, p99 20 ms, waits 30 ms",) == found.notes


# --- laws ---

worlds = st.lists(
    st.builds(
        facts,
        st.sampled_from("abcdefgh"),
        authority_tier=st.sampled_from(AuthorityTier),
        latency_tier=st.sampled_from(LatencyTier),
        expected_p99_ms=st.none() | st.integers(1, 400),
        freshness_sla_s=st.none() | st.integers(0, 100),
        cost_per_query_micros=st.integers(0, 5) | st.integers(0, 10**15),
        query_capabilities=st.lists(st.sampled_from(CAPABILITIES), unique=True).map(tuple),
        access_policy=st.sampled_from([SourceAccessPolicy(), SourceAccessPolicy(), CLOSED_TO_ANN]),
        is_attached=st.integers(0, 5).map(bool),
        breaker=st.sampled_from(BreakerState),
        has_rate=st.integers(0, 5).map(bool),
        p99_ms=st.none() | st.integers(1, 400),
        usefulness_milli=st.sampled_from([1, 499, 500, 1_000]),
        age_s=st.none() | st.integers(0, 1_000),
    ),
    max_size=8,
    unique_by=lambda each: each.descriptor.source_id,
)
ids = st.lists(st.sampled_from("abcdefgh").map(SourceId), unique=True, max_size=5).map(tuple)
policies = st.builds(
    SourcePolicy,
    allowed_sources=st.none() | st.none() | ids,
    denied_sources=st.just(()) | ids,
    minimum_authority=st.sampled_from([AuthorityTier.EPHEMERAL, AuthorityTier.DERIVED]),
    most_sources=st.none() | st.integers(0, 4),
)
subqueries = st.lists(
    st.builds(
        SubQuery,
        text=st.just("x"),
        required_capabilities=st.lists(st.sampled_from(CAPABILITIES), max_size=4).map(tuple),
        weight=st.sampled_from([0.0, 0.25, 1.0]),
    ),
    max_size=4,
)
requests = st.builds(
    request,
    policy=policies,
    parts=subqueries,
    cost_budget_micros=st.none() | st.integers(0, 20) | st.integers(0, 10**16),
    latency_deadline_ms=st.integers(1, 50) | st.integers(1, 2_000),
)
left = st.none() | st.integers(0, 2_000)


@settings(max_examples=cases(50, of=150))
@given(worlds, requests, left, st.randoms(use_true_random=False))
def test_the_order_of_the_facts_means_nothing(
    world: list[SourceFacts], asked: EvidenceRequest, remaining_ms: int | None, chance: Any
) -> None:
    shuffled = chance.sample(world, len(world))

    assert plan(*world, asked=asked, remaining_ms=remaining_ms) == plan(*shuffled, asked=asked, remaining_ms=remaining_ms)


@settings(max_examples=cases(50, of=150))
@given(worlds, requests, left)
def test_every_source_is_accounted_for_once_or_hidden(world: list[SourceFacts], asked: EvidenceRequest, remaining_ms: int | None) -> None:
    found = plan(*world, asked=asked, remaining_ms=remaining_ms)
    hidden = {each.descriptor.source_id for each in world if each.descriptor.access_policy is CLOSED_TO_ANN}
    known = {each.descriptor.source_id for each in world} - hidden
    named = set(asked.source_policy.allowed_sources or ())

    assert set() == set(called(found)) & set(found.skipped)
    assert known | (named - known) == (set(called(found)) | set(found.skipped)) - set(OWN)
    assert named - known == {name for name, report in found.skipped.items() if report.state is CoverageState.DENIED}
    assert plan(*(each for each in world if each.descriptor.source_id in known), asked=asked, remaining_ms=remaining_ms) == found


@settings(max_examples=cases(50, of=150))
@given(worlds, requests, left)
def test_no_limit_is_exceeded(world: list[SourceFacts], asked: EvidenceRequest, remaining_ms: int | None) -> None:
    remaining = asked.latency_deadline_ms if remaining_ms is None else min(remaining_ms, asked.latency_deadline_ms)
    found = plan(*world, asked=asked, remaining_ms=remaining)
    costs = {each.descriptor.source_id: each.descriptor.cost_per_query_micros for each in world}
    policy = asked.source_policy

    assert len(found.calls) == len({(call.source_id, call.part) for call in found.calls})
    assert asked.cost_budget_micros is None or sum(costs[call.source_id] for call in found.calls) <= asked.cost_budget_micros
    assert all(1 <= call.wait_ms <= remaining for call in found.calls)
    for part in range(len(found.parts)):
        number = sum(call.part == part for call in found.calls)
        assert number <= (policy.most_sources if policy.most_sources is not None else 3 if policy.allowed_sources is None else 8)


AUTHORITY = {"canonical": 10, "curated": 8, "derived": 5, "user": 4, "ephemeral": 3}


def restated(world: Sequence[SourceFacts], asked: EvidenceRequest) -> list[tuple[str, int]]:
    """Choose again with fractions, one call at a time, the best of all that still fit; everybody can be asked."""
    deadline, budget = asked.latency_deadline_ms, asked.cost_budget_micros
    room = max(1, min(deadline * 70 // 100, deadline - max(10, deadline * 2 // 100, -(-deadline * 25 // 100))))
    parts = asked.query.subqueries or (SubQuery(text="x"),)
    open_calls = {}
    for each in world:
        source = each.descriptor
        declared = source.expected_p99_ms or {"hot": 10, "warm": 100, "cold": 1_000, "archive": 5_000}[source.latency_tier]
        p99 = each.p99_ms or declared
        p99 = room if p99 > room >= declared else p99
        for number, part in enumerate(parts):
            needs = set(part.required_capabilities)
            match = 1_000 * len(needs & set(source.query_capabilities)) // len(needs) if needs else 1_000
            value = Fraction(AUTHORITY[source.authority_tier], 10) * freshness_milli(source, each.age_s) * each.usefulness_milli * match
            price = Fraction(p99, deadline) + (Fraction(source.cost_per_query_micros, budget) if budget else 0)
            if p99 <= room and match:
                open_calls[source.source_id, number] = (value * round(part.weight * 1_000) / price, source.cost_per_query_micros)
    most = asked.source_policy.most_sources if asked.source_policy.most_sources is not None else 3
    chosen: list[tuple[str, int]] = []
    spent = 0
    while open_calls:
        best = min(open_calls, key=lambda call: (-open_calls[call][0], call))
        cost = open_calls.pop(best)[1]
        if sum(part == best[1] for _, part in chosen) < most and (budget is None or spent + cost <= budget):
            chosen.append(best)
            spent += cost
    return chosen


@settings(max_examples=cases(50, of=150))
@given(worlds, requests)
def test_the_choice_is_the_greedy_one(world: list[SourceFacts], asked: EvidenceRequest) -> None:
    asked = msgspec.structs.replace(asked, source_policy=SourcePolicy(most_sources=asked.source_policy.most_sources))
    askable = [
        each
        for each in world
        if each.is_attached
        and each.has_rate
        and each.breaker is not BreakerState.OPEN
        and each.descriptor.access_policy is not CLOSED_TO_ANN
    ]
    assume(askable)

    found = plan(*world, asked=asked)
    assert restated(askable, asked) == [(call.source_id, call.part) for call in found.calls]


def test_ratios_that_differ_in_the_last_digit_are_told_apart() -> None:
    slight = {"usefulness_milli": 1, "authority_tier": AuthorityTier.EPHEMERAL}
    near = [facts(name, cost_per_query_micros=10**17 + more, **slight) for name, more in (("a", 1), ("b", 0), ("c", 2))]
    asked = request(parts=[SubQuery(text="x", weight=0.001)], cost_budget_micros=10**18, latency_deadline_ms=2**32 - 1)

    assert ["b", "a", "c"] == called(plan(*near, asked=asked))
