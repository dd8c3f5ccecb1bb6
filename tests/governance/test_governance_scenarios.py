"""Every row of the policies' table, case by case, through every door: what is decided, why, what raises, and how the run ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import scenario_agents
import scenario_cases
import scenario_doors
from scenario_checks import check_played, check_problems, label_of
from scripted_judge import recorded_runs

from evidentia.agents import Context
from evidentia.contracts.errors import PolicyInvalidError
from evidentia.governance.calibration import calibrate
from evidentia.policy.rules import check_policy

if TYPE_CHECKING:
    from collections.abc import Callable

    from scenario_cases import Case
    from scenario_doors import Played

CASES = scenario_cases.load()
RUNS = [case for case in CASES if case.is_run]
BODIES = [case for case in CASES if case.body is not None]
ROWS = [*(f"R{number}" for number in range(1, 29)), *(f"G{number}" for number in range(1, 31))]
WAYS: dict[str, Callable[[Case], Played]] = {"oracle": scenario_doors.play_oracle, "evaluator": scenario_doors.play_evaluator}
"""Ways that know nothing of agents; they play every case that is for all doors."""
AGENT_DOORS: dict[str, Callable[[Case], Played]] = {"sync": scenario_agents.play_sync, "async": scenario_agents.play_async}
"""The doors of an agent in this process; the door `rest` is in test_governance_over_http.py."""


def test_there_are_cases_for_every_row() -> None:
    covered = {row for case in CASES for row in case.rows}

    assert [row for row in ROWS if row not in covered] == []
    assert sorted(covered - set(ROWS)) == []


def test_there_are_enough_cases_and_each_has_a_name_of_its_own() -> None:
    assert len(CASES) >= 250
    assert len(CASES) == len({case.label for case in CASES})


@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize(
    "case", [case for case in RUNS if case.doors == scenario_cases.DOORS and not case.given.get("texts")], ids=label_of
)
def test_case(case: Case, way: str) -> None:
    check_played(case, WAYS[way](case))


@pytest.mark.parametrize(("case", "door"), [(case, door) for case in RUNS for door in case.doors if door in AGENT_DOORS], ids=label_of)
def test_case_of_an_agent(case: Case, door: str) -> None:
    check_played(case, AGENT_DOORS[door](case))


@pytest.mark.parametrize("case", [case for case in BODIES if "complete" in case.then], ids=label_of)
def test_a_policy_is_completed_with_its_defaults(case: Case) -> None:
    assert case.body is not None
    complete = case.then["complete"] or case.body["rules"]
    rules = {name: list(value) if isinstance(value, tuple) else value for name, value in check_policy(case.body).body.rules.items()}

    assert complete == {name: rules[name] for name in (complete if not case.then["complete"] else rules)}


@pytest.mark.parametrize("case", [case for case in BODIES if "problems" in case.then], ids=label_of)
def test_a_bad_policy_is_refused_with_its_fields(case: Case) -> None:
    assert case.body is not None
    with pytest.raises(PolicyInvalidError) as caught:
        check_policy(case.body)

    check_problems(case, [(problem.path, problem.suggestion) for problem in caught.value.problems])


@pytest.mark.parametrize("case", [case for case in BODIES if "problems" in case.then], ids=label_of)
def test_a_run_under_a_bad_policy_does_not_begin(case: Case) -> None:
    assert case.body is not None
    with pytest.raises(PolicyInvalidError) as caught, Context("rag-agent", policies=[case.body]):
        pytest.fail("the run began")

    check_problems(case, [(problem.path.removeprefix("policies[0]."), problem.suggestion) for problem in caught.value.problems])


@pytest.mark.parametrize("case", [case for case in CASES if "calibrate" in case.then], ids=label_of)
def test_advice_is_the_fifth_percentile_of_good_runs(case: Case) -> None:
    """Good runs give thousandths from `from` to `to`, hundredths up to a hundred of them; failed runs give nothing but zeros."""
    told = case.then["calibrate"]
    numbers = range(told["from"], told["to"] + 1)
    unit = 100 if told["to"] <= 100 else 1_000
    log = recorded_runs([number / unit for number in numbers], failed=told["failed"])

    assert told["advice"] == calibrate(log.records(), "min_grounding_score").threshold
