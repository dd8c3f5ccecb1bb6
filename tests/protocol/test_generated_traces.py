"""Generated traces of both profiles: every break is found and named, and nothing correct is accused.

The default run is a sample; `EVIDENTIA_TRACES=5000` (or more) asks for a full one.
"""

from __future__ import annotations

import os
from collections import Counter
from random import Random

import msgspec
import pytest
import yaml
from trace_breaks import WAYS
from trace_domains import WORLDS
from trace_generator import FIRST_CALL, THOROUGH, Case, cases, correct

import soak
from evidentia.contracts.protocol import Breadth, ProtocolRule, QuestionType, TraceFinding
from evidentia.policy.protocol_profiles import PROFILES
from evidentia.protocol import lint_trace

COUNT = int(os.environ.get("EVIDENTIA_TRACES", "600"))
FULL = soak.cases(1_500, of=6_000)
MAX_SHOWN = 3
SECTIONS = {*(f"first_call.{number}" for number in (*range(10), 11, 12)), *(f"thorough.{number}" for number in range(1, 8))}
"""Every numbered section of the two documents; the first has none with the number 10."""


def wrongs(case: Case, findings: tuple[TraceFinding, ...]) -> list[str]:
    """Return what is wrong with the findings of a case."""
    found = {finding.rule for finding in findings}
    said = []
    if case.expected and not found & case.expected:
        said.append(f"missed: none of {sorted(rule.value for rule in case.expected)}")
    accused = sorted(rule.value for rule in found - case.expected - case.also)
    if accused:
        said.append(f"accused of {accused}")
    return said


def explain(case: Case, findings: tuple[TraceFinding, ...], said: list[str]) -> str:
    """Return a case as it can be read: the trace, what was found, and what is wrong with that."""
    trace = yaml.safe_dump(msgspec.to_builtins(case.trace), sort_keys=False, allow_unicode=True, width=160)
    told = "\n".join(f"  {one.rule.value} ({one.section}) call {one.call} block {one.block}: {one.reason}" for one in findings)
    return f"--- {case.way}: {'; '.join(said)}\n{trace}findings:\n{told or '  none'}"


def check(count: int, *, seed: int) -> None:
    """Lint many cases and tell the first that are judged wrongly, and how many of each kind are."""
    shown: list[str] = []
    kinds: Counter[str] = Counter()
    for case in cases(count, seed=seed):
        findings = lint_trace(case.trace)
        said = wrongs(case, findings)
        if not said:
            continue
        kinds[f"{case.way}: {'; '.join(said)}"] += 1
        if len(shown) < MAX_SHOWN:
            shown.append(explain(case, findings, said))

    assert Counter() == kinds, "\n".join([*shown, *(f"{times} x {kind}" for kind, times in kinds.most_common())])


def test_breaks_are_named_and_correct_traces_are_left_alone() -> None:
    check(COUNT, seed=1)


@pytest.mark.slow
def test_breaks_are_named_and_correct_traces_are_left_alone_in_thousands() -> None:
    check(FULL, seed=2)


def test_every_rule_of_a_profile_is_broken() -> None:
    for name, profile in PROFILES.items():
        broken = {way.rule for way in WAYS if way.profile == name}

        assert set(profile.sections) == broken


def test_every_numbered_section_is_broken() -> None:
    broken = {PROFILES[way.profile].sections[way.rule] for way in WAYS}

    assert SECTIONS == broken


def test_every_kind_of_question_and_every_world_occurs_in_correct_traces() -> None:
    plans = [correct(Random(f"kinds/{number}"), (FIRST_CALL, THOROUGH)[number % 2]) for number in range(800)]

    assert set(QuestionType) <= {plan.question_type for plan in plans}
    assert set(Breadth) <= {plan.breadth for plan in plans}
    assert {world.key for world in WORLDS} == {plan.world.key for plan in plans}
    assert len(WORLDS) >= 12


def test_the_same_seed_gives_the_same_traces() -> None:
    first, second = ([case.trace for case in cases(50, seed=7)] for _ in range(2))

    assert first == second


def test_a_wrong_expectation_is_noticed() -> None:
    case = cases(2, seed=1)[1]
    other = Case(trace=case.trace, expected=frozenset({ProtocolRule.IMAGES_AT_END}))

    assert wrongs(other, lint_trace(other.trace))
