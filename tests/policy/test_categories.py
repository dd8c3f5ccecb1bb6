"""The registry is open: a category of one's own is checked, compiled, asked and logged like those built in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import pytest

from evidentia.contracts.errors import FieldProblem, InvalidFieldError, PolicyInvalidError
from evidentia.contracts.policies import PolicyAction, ViolationAction
from evidentia.contracts.runs import GroundingEntry, LlmCall, RunEnded, ToolCall
from evidentia.policy.categories import categories, category, register_category, unregister_category
from evidentia.policy.evaluator import PolicySet, RunEvaluator
from evidentia.policy.handlers import Category, Handlers, Violation, plain_category
from evidentia.policy.rules import check_policy, policy_schema, rules_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evidentia.contracts.protocol import RunCall


class BudgetRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rules of a category for tests."""

    max_tokens: Annotated[int, msgspec.Meta(ge=1)] = 100
    max_calls: int = 3
    action_on_violation: ViolationAction = ViolationAction.BLOCK


def check_budget(rules: BudgetRules) -> Iterable[FieldProblem]:
    if rules.max_calls > rules.max_tokens:
        yield FieldProblem("max_calls", "is more than max_tokens")


def remember(state: tuple[int, int], call: RunCall) -> tuple[int, int]:
    tokens = call.output_tokens if isinstance(call, LlmCall) else 0
    return state[0] + 1, state[1] + tokens


def judge(rules: BudgetRules, state: tuple[int, int], call: RunCall) -> Sequence[Violation]:
    del call
    if state[1] <= rules.max_tokens:
        return ()
    action = PolicyAction(rules.action_on_violation.value)
    return [Violation(rule="max_tokens", action=action, reason=f"Tokens ({state[1]}) exceed max", metadata={"tokens": state[1]})]


def judge_end(rules: BudgetRules, state: tuple[int, int]) -> Sequence[Violation]:
    if state[0] <= rules.max_calls:
        return ()
    return [Violation(rule="max_calls", action=PolicyAction.WARN, reason=f"Calls ({state[0]}) exceed max")]


BUDGET = plain_category(
    "budget",
    title="Budget",
    rules=BudgetRules,
    listens_to=(LlmCall, GroundingEntry),
    handlers=Handlers(start=(0, 0), remember=remember, judge=judge, judge_end=judge_end),
    check=check_budget,
)


@pytest.fixture
def budget() -> Iterator[Category]:
    register_category(BUDGET)
    yield BUDGET
    unregister_category("budget")


def policy(**rules: Any) -> dict[str, Any]:
    return {"name": "spending", "category": "budget", "rules": rules}


def test_three_categories_are_built_in() -> None:
    assert ["retrieval", "grounding", "protocol"] == [each.name for each in categories()]


def test_an_unknown_category_is_refused_with_the_nearest() -> None:
    with pytest.raises(InvalidFieldError, match="did you mean 'grounding'"):
        category("grouding")
    with pytest.raises(InvalidFieldError, match="the categories are retrieval, grounding, protocol"):
        category("zzz")


@pytest.mark.usefixtures("budget")
def test_a_category_of_ones_own_is_checked_like_any() -> None:
    with pytest.raises(PolicyInvalidError) as raised:
        check_policy(policy(max_token=1, max_tokens=0))

    assert [("rules.max_token", "max_tokens"), ("rules.max_tokens", "")] == [(each.path, each.suggestion) for each in raised.value.problems]
    with pytest.raises(PolicyInvalidError, match=r"rules\.max_calls.*is more than max_tokens"):
        check_policy(policy(max_tokens=1))


@pytest.mark.usefixtures("budget")
def test_a_category_of_ones_own_decides_at_the_call_and_at_the_end() -> None:
    evaluator = RunEvaluator(PolicySet.of([check_policy(policy(max_calls=1))]))

    assert ["Budget rules stored"] == [verdict.decisive.reason for verdict in evaluator.begin()]
    assert () == evaluator.record(LlmCall(output_tokens=100))
    assert ["Budget within policy"] == [verdict.decisive.reason for verdict in evaluator.passed(LlmCall(), count=0)]
    (verdict,) = evaluator.record(LlmCall(output_tokens=1))
    assert ("Tokens (101) exceed max", "max_tokens", True) == (verdict.decisive.reason, verdict.decisive.rule, verdict.stops)
    assert () == evaluator.record(ToolCall())
    assert ["Calls (2) exceed max"] == [each.decisive.reason for each in evaluator.finish(RunEnded())]


@pytest.mark.usefixtures("budget")
def test_several_categories_give_a_verdict_each_in_a_fixed_order() -> None:
    grounding = {"name": "a", "category": "grounding", "rules": {"min_citations": 0}}
    evaluator = RunEvaluator(PolicySet.of([check_policy(policy()), check_policy(grounding)]))

    assert ["grounding", "budget"] == [verdict.decisive.category for verdict in evaluator.begin()]
    verdicts = evaluator.record(GroundingEntry(grounding_scores=(0.1,)))
    assert 1 == evaluator.count
    assert [("grounding", "warn"), ("budget", "allow")] == [(each.decisive.category, each.decisive.action.value) for each in verdicts]


@pytest.mark.usefixtures("budget")
def test_a_category_of_ones_own_has_a_schema() -> None:
    assert ["retrieval", "grounding", "protocol", "budget"] == policy_schema()["properties"]["category"]["enum"]
    assert 100 == rules_schema("budget")["properties"]["max_tokens"]["default"]


def test_the_same_category_twice_is_no_harm_and_another_of_its_name_is_refused(budget: Category) -> None:
    register_category(budget)

    with pytest.raises(InvalidFieldError, match="already a category 'budget'"):
        register_category(budget._replace(title="Other"))
    with pytest.raises(InvalidFieldError, match="is no name"):
        register_category(budget._replace(name="no name"))


def test_what_is_built_in_stays() -> None:
    with pytest.raises(InvalidFieldError, match="is built in"):
        unregister_category("retrieval")
