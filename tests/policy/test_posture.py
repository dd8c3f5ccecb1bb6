"""What happens when something cannot be checked."""

from __future__ import annotations

import pytest

from evidentia.contracts.policies import PolicyAction, Posture
from evidentia.policy.posture import DEFAULT_POSTURES, OTHERWISE, action_of, posture_of
from evidentia.policy.rules import check_policy


def posture(given: dict[str, str], rule: str) -> Posture:
    return posture_of(check_policy({"name": "p", "category": "grounding", "posture": given}), rule)


def test_the_defaults_are_as_documented() -> None:
    assert {
        "llm_grounding_check": "open",
        "max_source_age_days": "open",
        "control_plane": "degrade",
        "decision_log": "closed",
        "decision_log_buffered": "degrade",
    } == {name: each.value for name, each in DEFAULT_POSTURES.items()}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, Posture.OPEN),
        ({"*": "closed"}, Posture.CLOSED),
        ({"llm_grounding_check": "degrade"}, Posture.DEGRADE),
        ({"*": "closed", "llm_grounding_check": "open"}, Posture.OPEN),
    ],
)
def test_a_name_goes_before_all_and_all_before_the_default(given: dict[str, str], expected: Posture) -> None:
    assert expected is posture(given, "llm_grounding_check")


def test_a_rule_that_nobody_names_goes_on_with_a_warning() -> None:
    assert OTHERWISE is posture({}, "something_else")
    assert PolicyAction.WARN is action_of(OTHERWISE)


def test_postures_are_actions() -> None:
    assert [PolicyAction.ALLOW, PolicyAction.WARN, PolicyAction.BLOCK] == [action_of(each) for each in Posture]


@pytest.mark.parametrize("fault", ["control_plane", "decision_log", "decision_log_buffered"])
def test_faults_have_postures_too(fault: str) -> None:
    assert Posture.CLOSED is posture({fault: "closed"}, fault)
