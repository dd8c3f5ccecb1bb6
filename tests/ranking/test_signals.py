"""Authority, freshness and utility: the specification's numbers, in bounds, and an exponential that is right to the last bit."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evidentia.contracts.evidence import Task
from evidentia.contracts.search import ContentFeatures
from evidentia.contracts.settings import RankingSettings
from evidentia.contracts.vocabulary import AuthorityTier, ContentType
from evidentia.ranking import signals
from evidentia.ranking.fusion import ONE
from evidentia.ranking.signals import (
    NEEDS,
    NEUTRAL,
    UNKNOWN,
    Freshness,
    actionability,
    authority,
    decay,
    exp_fixed,
    freshness,
    needs_of,
    specificity,
    tau_of,
    utility,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOUR_S = 3600
SHARES = st.integers(0, ONE)
BYTES = st.integers(0, 255)
FEATURES = st.builds(ContentFeatures, code=BYTES, commands=BYTES, configuration=BYTES, specificity=BYTES)
TASKS = st.none() | st.builds(Task, type=st.sampled_from([*NEEDS, "gardening"]))
CONTENT_TYPES = st.sampled_from(list(ContentType))


def exact_decay(numerator: int, denominator: int) -> Decimal:
    context = Context(prec=60)
    return context.multiply(context.exp(context.divide(Decimal(-numerator), Decimal(denominator))), Decimal(ONE))


@pytest.mark.parametrize(
    ("tier", "plain", "annotated"),
    [("canonical", 10, 10), ("curated", 8, 9), ("derived", 5, 6), ("user", 4, 5), ("ephemeral", 3, 4)],
)
def test_authority_is_the_tier_and_a_tenth_for_an_annotation(tier: str, plain: int, annotated: int) -> None:
    assert plain * ONE // 10 == authority(AuthorityTier(tier), is_annotated=False)
    assert annotated * ONE // 10 == authority(AuthorityTier(tier), is_annotated=True)


def test_every_tier_has_its_authority_and_a_higher_tier_more() -> None:
    scores = [authority(tier, is_annotated=False) for tier in AuthorityTier]

    assert sorted(set(scores)) == scores


@given(st.integers(1, 1 << 80), st.integers(1, 1 << 70))
@example(1, 1)
@example(1, 1 << 70)
@example(23, 1)
@example(2299, 100)
@example(22_873_856_958, 1_000_000_000)
def test_decay_is_the_exponential_rounded_to_the_nearest(numerator: int, denominator: int) -> None:
    error = abs(Decimal(decay(numerator, denominator)) - exact_decay(numerator, denominator))

    assert error <= Decimal("0.5")


@given(st.integers(0, 24 * 10**9), st.integers(1, 10**9))
def test_decay_is_right_over_the_whole_range_where_it_is_not_zero(numerator: int, step: int) -> None:
    error = abs(Decimal(decay(numerator * step, 10**9 * step)) - exact_decay(numerator, 10**9))

    assert error <= Decimal("0.5")


@given(st.integers(-(1 << 60), 1 << 60), st.integers(0, 1 << 20), st.integers(1, 1 << 60))
def test_decay_never_rises(numerator: int, later: int, denominator: int) -> None:
    young, old = decay(numerator, denominator), decay(numerator + later, denominator)

    assert 0 <= old <= young <= ONE


@pytest.mark.parametrize("step", [0, 1, 1_000, 1 << 31, ONE - 1])
def test_a_case_too_close_to_call_is_decided_with_more_bits(step: int) -> None:
    context = Context(prec=80)
    halfway = context.ln(context.divide(Decimal(2 * ONE), Decimal(2 * step + 1)))
    below = int(context.multiply(halfway, Decimal(1 << 200)))

    assert step + 1 == decay(below, 1 << 200)
    assert step == decay(below + 1, 1 << 200)


def test_exp_fixed_reads_points_at_two_to_the_minus_16() -> None:
    assert ONE == exp_fixed(0) == exp_fixed(5)
    assert decay(3, 2) == exp_fixed(-3 << 15)


@pytest.mark.parametrize("age", [timedelta(0), timedelta(days=-400)])
def test_what_is_dated_now_or_later_is_fresh(age: timedelta) -> None:
    assert Freshness(score=ONE, is_dated=True) == freshness(NOW - age, NOW, tau_s=1)


def test_freshness_falls_to_one_over_e_after_tau() -> None:
    assert Freshness(score=1_580_030_169, is_dated=True) == freshness(NOW - timedelta(days=30), NOW, tau_s=30 * 24 * HOUR_S)


def test_an_unknown_date_is_half_fresh_and_says_so() -> None:
    assert Freshness(score=ONE // 2, is_dated=False) == freshness(None, NOW, tau_s=1)


@given(st.timedeltas(timedelta(0), timedelta(days=4000)), st.timedeltas(timedelta(0), timedelta(days=9)), st.integers(1, 10**8))
def test_the_older_is_never_the_fresher(age: timedelta, more: timedelta, tau_s: int) -> None:
    assert freshness(NOW - age - more, NOW, tau_s=tau_s).score <= freshness(NOW - age, NOW, tau_s=tau_s).score


@pytest.mark.parametrize(
    ("content_type", "tier", "hours"),
    [
        (ContentType.LOG, AuthorityTier.CURATED, 24),
        (ContentType.LOG, AuthorityTier.CANONICAL, 24),
        (ContentType.DOCUMENTATION, AuthorityTier.CURATED, 30 * 24),
        (ContentType.RUNBOOK, AuthorityTier.USER, 30 * 24),
        (ContentType.DOCUMENTATION, AuthorityTier.CANONICAL, 365 * 24),
        (ContentType.CODE, AuthorityTier.CANONICAL, 365 * 24),
        (ContentType.CODE, AuthorityTier.CURATED, 90 * 24),
        (ContentType.CONFIG, AuthorityTier.EPHEMERAL, 90 * 24),
    ],
)
def test_tau_goes_by_content_and_tier(content_type: ContentType, tier: AuthorityTier, hours: int) -> None:
    settings = RankingSettings()

    assert hours * HOUR_S == tau_of(settings, content_type=content_type, tier=tier)
    assert hours * HOUR_S == tau_of(settings, content_type=content_type, tier=tier, source_tau_s=0)
    assert 7 == tau_of(settings, content_type=content_type, tier=tier, source_tau_s=7)


def test_tau_follows_the_settings() -> None:
    settings = RankingSettings(freshness_log_h=1, freshness_documentation_h=2, freshness_canonical_h=3, freshness_other_h=4)
    kinds = [
        (ContentType.LOG, AuthorityTier.USER),
        (ContentType.RUNBOOK, AuthorityTier.USER),
        (ContentType.SCHEMA, AuthorityTier.CANONICAL),
        (ContentType.SCHEMA, AuthorityTier.USER),
    ]

    assert [1, 2, 3, 4] == [tau_of(settings, content_type=content_type, tier=tier) // HOUR_S for content_type, tier in kinds]


def test_the_needs_of_every_kind_of_task_sum_to_a_hundred() -> None:
    sums = {name: needs.code + needs.commands + needs.configuration + needs.kind for name, needs in {**NEEDS, "": NEUTRAL}.items()}

    assert {100} == set(sums.values())


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("coding", "coding"),
        ("Code Review", "coding"),
        ("DEBUG", "debugging"),
        ("runbook", "operations"),
        ("question-answering", "explanation"),
    ],
)
def test_a_task_type_is_read_in_any_spelling(word: str, kind: str) -> None:
    assert NEEDS[kind] == needs_of(Task(type=word))


@given(FEATURES, CONTENT_TYPES, st.text(max_size=8).filter(lambda word: NEUTRAL == needs_of(Task(type=word))))
def test_an_unknown_type_of_task_is_no_task(features: ContentFeatures, content_type: ContentType, word: str) -> None:
    assert actionability(features, content_type, None) == actionability(features, content_type, Task(type=word))


@pytest.mark.parametrize(
    ("task", "better", "worse"),
    [
        ("coding", ContentFeatures(code=200), ContentFeatures(commands=200)),
        ("debugging", ContentFeatures(code=200), ContentFeatures(configuration=200)),
        ("operations", ContentFeatures(commands=200), ContentFeatures(code=200)),
        ("configuration", ContentFeatures(configuration=200), ContentFeatures(code=200)),
    ],
)
def test_each_task_prefers_what_it_can_act_upon(task: str, better: ContentFeatures, worse: ContentFeatures) -> None:
    asked = Task(type=task)

    assert actionability(worse, ContentType.DOCUMENTATION, asked) < actionability(better, ContentType.DOCUMENTATION, asked)


def test_a_question_prefers_prose_of_a_fitting_type() -> None:
    asked = Task(type="question")
    prose = actionability(ContentFeatures(), ContentType.DOCUMENTATION, asked)

    assert actionability(ContentFeatures(code=255, commands=255, configuration=255), ContentType.CODE, asked) < prose


@given(FEATURES, CONTENT_TYPES, TASKS, st.none() | SHARES)
def test_utility_and_its_parts_stay_in_bounds(
    features: ContentFeatures, content_type: ContentType, task: Task | None, historical: int | None
) -> None:
    action, specific = actionability(features, content_type, task), specificity(features)

    assert 0 <= action <= ONE
    assert 0 <= specific <= ONE
    assert 0 <= utility(actionability=action, specificity=specific, historical=historical) <= ONE


def test_all_of_everything_is_one_and_nothing_is_none() -> None:
    full = ContentFeatures(code=255, commands=255, configuration=255, specificity=255)

    assert ONE == actionability(full, ContentType.CODE, None)
    assert ONE == actionability(full, ContentType.CODE, Task(type="coding"))
    assert 0 == actionability(ContentFeatures(), ContentType.CODE, None)
    assert ONE == specificity(full)


def test_utility_weighs_five_four_and_one_tenths() -> None:
    assert ONE * 5 // 10 == utility(actionability=ONE, specificity=0, historical=0)
    assert ONE * 4 // 10 == utility(actionability=0, specificity=0, historical=ONE)
    assert ONE // 10 == utility(actionability=0, specificity=ONE, historical=0)
    assert utility(actionability=3, specificity=5, historical=UNKNOWN) == utility(actionability=3, specificity=5)


@given(
    st.builds(ContentFeatures, **dict.fromkeys(ContentFeatures.__struct_fields__, st.integers(0, 255))),
    st.sampled_from(ContentType),
    st.sampled_from([None, *(Task(type=name) for name in signals.NEEDS)]),
)
def test_utility_in_one_go_is_that_of_its_parts(features: ContentFeatures, content_type: ContentType, task: Task | None) -> None:
    acted, named = signals.actionability(features, content_type, task), signals.specificity(features)

    assert signals.utility(actionability=acted, specificity=named) == signals.utility_of(features, content_type, signals.needs_of(task))


def test_the_text_of_a_task_takes_part_in_what_it_needs() -> None:
    commands = ContentFeatures(code=0, commands=200, configuration=0, specificity=0)
    code = ContentFeatures(code=200, commands=0, configuration=0, specificity=0)

    def acting(features: ContentFeatures, **task: str) -> int:
        return actionability(features, ContentType.DOCUMENTATION, Task(**task))

    assert acting(commands, type="", text="Restart the gateway and run the migration") == acting(commands, type="operations")
    assert acting(code, type="coding") > acting(code, type="coding", text="deploy it") > acting(code, type="operations", text="deploy it")
    assert acting(commands, type="coding", text="deploy it") > acting(commands, type="coding")
    assert acting(code, type="coding", text="of no kind") == acting(code, type="coding")
    assert acting(code, type="unheard of", text="of no kind") == actionability(code, ContentType.DOCUMENTATION, None)


@given(
    st.sampled_from(["", "coding", "operations", "explanation", "x"]),
    st.lists(st.sampled_from(["run", "fix", "why", "install", "write", "z"])),
)
def test_what_a_task_needs_sums_to_all_of_it_whatever_its_words_and_their_order(kind: str, words: list[str]) -> None:
    needs = needs_of(Task(type=kind, text=" ".join(words)))

    assert 100 == needs.code + needs.commands + needs.configuration + needs.kind
    assert needs == needs_of(Task(type=kind, text=" ".join(reversed(words)).upper()))
