"""The category `protocol` among the others: it decides, counts, replays and ends like them, and stops what it is told to stop."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from evidentia.contracts.errors import InvalidFieldError, PolicyInvalidError
from evidentia.contracts.ids import Sha256
from evidentia.contracts.protocol import (
    Breadth,
    ProtocolRule,
    QuestionType,
    ReplyDrafted,
    ReplyFinding,
    Shortfall,
    TaskKind,
    TaskOpened,
    ToolAnswered,
    ToolAsked,
    ToolRole,
)
from evidentia.contracts.runs import RunEnded, RunStatus
from evidentia.policy.analysis import analyze
from evidentia.policy.evaluator import PolicySet, RunEvaluator
from evidentia.policy.protocol_profiles import PROFILES
from evidentia.policy.protocol_rules import ProtocolRules
from evidentia.policy.rules import check_policy, rules_schema

if TYPE_CHECKING:
    from evidentia.contracts.decisions import Verdict
    from evidentia.contracts.policies import Policy
    from evidentia.contracts.runs import AnyCall

TASK = TaskOpened(task=TaskKind.KNOWLEDGE, question_type=QuestionType.PRICE, breadth=Breadth.LOOKUP, question_hash=Sha256("one"))
EMPTY = (Shortfall.EMPTY,)
FINDING = ReplyFinding(rule=ProtocolRule.CITATION_MISSING, reason="a paragraph cites nothing")
FAULTY = ReplyDrafted(uses_evidence=True, findings=(FINDING,))
GOOD = ReplyDrafted(uses_evidence=True)


def policy(name: str = "Protocol", **rules: Any) -> Policy:
    return check_policy({"name": name, "category": "protocol", "rules": rules})


def evaluator(*policies: Policy, is_enforced: bool = True) -> RunEvaluator:
    return RunEvaluator(PolicySet.of(policies or [policy()]), is_enforced=is_enforced)


def table(call: int, **facts: Any) -> ToolAsked:
    return ToolAsked(call=call, name="table_rag_retrieve", role=ToolRole.TABLE, query_hash=Sha256(f"q{call}"), **facts)


def text(call: int, top_k: int | None = None) -> ToolAsked:
    return ToolAsked(call=call, name="rag_retrieve", role=ToolRole.TEXT, top_k=top_k, query_hash=Sha256(f"q{call}"))


def back(call: int, *shortfalls: Shortfall) -> ToolAnswered:
    return ToolAnswered(call=call, shortfalls=shortfalls)


def rules_of(verdicts: tuple[Verdict, ...]) -> list[str]:
    return [each.rule for verdict in verdicts for each in verdict.evaluations if each.rule]


def ran(run: RunEvaluator, *calls: AnyCall) -> list[str]:
    """Return every rule that is broken in some calls."""
    return [rule for call in calls for rule in rules_of(run.record(call))]


# --- what it says ---


def test_rules_are_pinned_before_a_run() -> None:
    assert ["Protocol rules stored"] == [verdict.decisive.reason for verdict in evaluator().begin()]


def test_a_call_that_passes_is_silent_and_expands_to_its_count() -> None:
    run = evaluator()

    assert () == run.record(TASK)
    assert () == run.record(table(1))
    assert 1 == run.count
    (verdict,) = run.passed(table(1), count=run.count)
    assert ("Protocol followed (1 retrieval calls)", {"retrieval_calls": 1}) == (verdict.decisive.reason, verdict.decisive.metadata)
    assert () == run.passed(TASK, count=0)
    assert () == run.passed(back(1), count=1)


def test_a_run_that_kept_the_rules_ends_with_its_count() -> None:
    run = evaluator()
    ran(run, TASK, table(1), back(1), GOOD)

    assert ["Protocol followed (1 retrieval calls)"] == [verdict.decisive.reason for verdict in run.finish(RunEnded())]


def test_the_strongest_action_decides_and_all_are_listed() -> None:
    run = evaluator(policy(actions={"raw_query": "block", "lost_entity": "allow"}))
    run.record(TASK)
    (verdict,) = run.record(ToolAsked(call=1, name="t", role=ToolRole.TABLE, is_raw=True, containment=0.0, top_k=3))

    assert ("raw_query", True) == (verdict.decisive.rule, verdict.stops)
    assert [("raw_query", "block"), ("lost_entity", "allow"), ("top_k_tool", "warn")] == [
        (each.rule, each.action.value) for each in verdict.evaluations
    ]


def test_what_is_allowed_is_written_down_and_stops_nothing() -> None:
    run = evaluator(policy(action_on_violation="block", actions={"raw_query": "allow"}))
    (verdict,) = run.record(table(1, is_raw=True))

    assert ("raw_query", "allow", False) == (verdict.evaluations[0].rule, verdict.decisive.action.value, verdict.stops)


def test_two_profiles_decide_side_by_side() -> None:
    run = evaluator(policy("a"), policy("b", profile="thorough"))
    ran(run, TASK, table(1))

    assert () == run.record(back(1, Shortfall.PARTIAL))
    (verdict,) = run.record(text(2, 30))
    assert [("a", "top_k_value"), ("a", "needless_call"), ("b", "")] == [(each.policy_name, each.rule) for each in verdict.evaluations]


def test_policies_with_the_same_rules_say_the_same() -> None:
    run = evaluator(policy("a"), policy("b"))
    (verdict,) = run.record(table(1, is_raw=True))

    assert [("a", "raw_query"), ("b", "raw_query")] == [(each.policy_name, each.rule) for each in verdict.evaluations]


# --- calls that were stopped ---


def test_a_call_that_was_stopped_counts_for_nothing() -> None:
    run = evaluator(policy(action_on_violation="block"))

    assert ["raw_query"] == ran(run, TASK, table(1, is_raw=True))
    assert 0 == run.count
    assert [] == ran(run, table(2), back(2, *EMPTY), table(3), back(3, *EMPTY), text(4, 100), back(4, *EMPTY))
    assert ["call_cap"] == ran(run, text(5, 100))
    assert ["call_cap"] == ran(run, text(6, 100))
    assert [] == ran(run, ReplyDrafted(says_not_found=True))


def test_a_call_that_went_on_all_the_same_counts_once_it_answers() -> None:
    run = evaluator(policy(action_on_violation="block"), is_enforced=False)

    assert ["raw_query"] == ran(run, TASK, table(1, is_raw=True))
    run.record(back(1))
    assert 1 == run.count
    assert ["needless_call"] == ran(run, table(2))


def test_a_policy_in_shadow_stops_nothing() -> None:
    in_shadow = check_policy(
        {"name": "s", "category": "protocol", "enforcement": "shadow", "rules": {"actions": {"raw_query": "block"}}},
    )
    run = evaluator(in_shadow)

    assert ["raw_query", "sequential"] == ran(run, TASK, table(1, is_raw=True), table(2))


# --- questions ---


def test_another_question_has_calls_of_its_own() -> None:
    run = evaluator()

    assert [] == ran(run, TASK, table(1), back(1), GOOD)
    assert [] == ran(run, msgspec.structs.replace(TASK, question_hash="two"), table(2), back(2), GOOD)
    assert 1 == run.count


def test_the_same_question_again_gets_no_new_calls_before_a_reply() -> None:
    run = evaluator()

    assert ["needless_call"] == ran(run, TASK, table(1), back(1), TASK, table(2))
    assert [] == ran(run, back(2), GOOD, TASK, table(3))


def test_what_comes_before_a_task_belongs_to_an_uncertain_one() -> None:
    assert ["filesystem_tools"] == ran(evaluator(), ToolAsked(call=1, name="Read", role=ToolRole.FILESYSTEM))


def test_an_answer_to_no_call_changes_nothing() -> None:
    run = evaluator()

    assert [] == ran(run, TASK, back(7), table(1), back(1, *EMPTY), back(1), table(2))


@pytest.mark.parametrize("share", [float("nan"), float("inf"), -0.1, 1.1])
def test_a_share_that_is_none_is_refused_and_counts_nothing(share: float) -> None:
    run = evaluator()
    with pytest.raises(InvalidFieldError, match="containment"):
        run.record(table(1, containment=share))

    assert [] == ran(run, TASK, table(1))
    assert 1 == run.count


# --- the end ---


@pytest.mark.parametrize(
    ("profile", "calls", "status", "found"),
    [
        ("first_call", (TASK, table(1), back(1)), RunStatus.SUCCESS, [{"unchecked": 1, "questions": 1, "section": "first_call.12"}]),
        ("first_call", (TASK, table(1), back(1)), RunStatus.ERROR, []),
        ("first_call", (TASK, table(1), back(1)), RunStatus.BLOCKED, []),
        ("first_call", (table(1), back(1)), RunStatus.SUCCESS, []),
        ("first_call", (), RunStatus.SUCCESS, []),
        ("first_call", (msgspec.structs.replace(TASK, task=TaskKind.CODE),), RunStatus.SUCCESS, []),
        ("first_call", (TASK, table(1), back(1), FAULTY), RunStatus.SUCCESS, [{"against": 1, "section": "first_call.12"}]),
        ("first_call", (TASK, table(1), back(1), FAULTY, GOOD), RunStatus.SUCCESS, []),
        ("first_call", (TASK, table(1), back(1), msgspec.structs.replace(GOOD, is_checked=False)), RunStatus.SUCCESS, []),
        ("thorough", (TASK, table(1), back(1)), RunStatus.SUCCESS, []),
        ("thorough", (TASK, table(1), back(1), FAULTY), RunStatus.SUCCESS, []),
        (
            "first_call",
            (TASK, table(1), back(1), FAULTY, msgspec.structs.replace(TASK, question_hash="two")),
            RunStatus.SUCCESS,
            [{"unchecked": 1, "questions": 2, "section": "first_call.12"}, {"against": 1, "section": "first_call.12"}],
        ),
    ],
)
def test_the_end_looks_at_the_self_check(profile: str, calls: tuple[AnyCall, ...], status: RunStatus, found: list[Any]) -> None:
    run = evaluator(policy(profile=profile))
    ran(run, *calls)
    (verdict,) = run.finish(RunEnded(status=status))

    assert found == [each.metadata for each in verdict.evaluations if each.rule == "self_check"]
    assert "after_workflow" == verdict.phase


# --- writing one ---


@pytest.mark.parametrize(
    ("rules", "path", "suggestion"),
    [
        ({"profile": "first_cal"}, "rules.profile", "first_call"),
        ({"profile": {"based_on": "thoroug", "name": "x"}}, "rules.profile.based_on", "thorough"),
        ({"profile": {"based_on": "thorough", "name": "x", "top_k": {"lokup": 3}}}, "rules.profile.top_k.lokup", "lookup"),
        ({"profile": 3}, "rules.profile", ""),
        ({"action_on_violation": "stop"}, "rules.action_on_violation", ""),
        ({"actions": {"raw_qury": "warn"}}, "rules.actions", "raw_query"),
        ({"actions": {"raw_query": "blocks"}}, "rules.actions.raw_query", "block"),
        ({"skill_tool": []}, "rules.skill_tool", "skill_tools"),
        ({"self_knowledge": "yes"}, "rules.self_knowledge", ""),
    ],
)
def test_bad_rules_are_refused_by_their_path(rules: dict[str, Any], path: str, suggestion: str) -> None:
    with pytest.raises(PolicyInvalidError) as raised:
        policy(**rules)

    assert [(path, suggestion)] == [(each.path, each.suggestion) for each in raised.value.problems]


def test_rules_left_out_have_their_defaults() -> None:
    expected: dict[str, Any] = {
        "profile": "first_call",
        "action_on_violation": "warn",
        "actions": {},
        "skill_tools": [],
        "self_knowledge": None,
    }

    assert expected == policy().body.rules
    assert policy().digest == policy(profile="first_call", actions={}).digest
    assert policy().digest != policy(actions={"raw_query": "warn"}).digest


def test_a_policy_holds_a_whole_profile() -> None:
    given = msgspec.to_builtins(PROFILES["thorough"])

    assert ["source_order"] == ran(evaluator(policy(profile=given)), TASK, ToolAsked(call=1, name="l", role=ToolRole.LOCAL))


def test_the_schema_says_what_every_rule_is_for() -> None:
    schema = rules_schema("protocol")

    assert {field.name for field in msgspec.structs.fields(ProtocolRules)} == set(schema["properties"])
    assert all({"title", "description", "default"} <= set(rule) for rule in schema["properties"].values())
    assert schema["additionalProperties"] is False
    assert "$ref" not in json.dumps(schema)


def test_a_posture_may_be_set_for_its_rules() -> None:
    given = {"profile": "closed", "control_plane": "open"}

    assert given == check_policy({"name": "x", "category": "protocol", "posture": given}).body.posture


def test_the_analysis_takes_it_as_it_is() -> None:
    policies = [
        policy("a"),
        policy("b", profile="thorough"),
        policy("c", action_on_violation="block"),
        check_policy({"name": "d", "category": "retrieval", "rules": {"min_chunks": 0}}),
        check_policy({"name": "e", "category": "protocol", "scope": {"agents": ["x"], "exclude_agents": ["x"]}}),
        check_policy({"name": "f", "category": "protocol", "enforcement": "shadow"}),
    ]
    analysis = analyze(policies)

    assert {("scope_never_matches", ("e",)), ("unreachable", ("d",))} == {(each.kind.value, each.policies) for each in analysis.findings}
    assert () == analysis.undecided
