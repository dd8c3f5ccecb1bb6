"""Findings about policies: each kind is found where it is, is silent where it is not, and comes with traces that hold."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.policies import Policy, PolicyAction
from evidentia.policy.analysis import FindingKind, PolicyAnalysis, PolicyFinding, Severity, analyze, reproduces
from evidentia.policy.rules import check_policy


def retrieval(name: str, **fields: Any) -> Policy:
    scope = {"agents": fields.pop("agents", ["*"])}
    outer: dict[str, Any] = {key: fields.pop(key) for key in ("compat", "enforcement", "priority", "enabled") if key in fields}
    return check_policy({"name": name, "category": "retrieval", "rules": fields, "scope": scope, **outer})


def grounding(name: str, **rules: Any) -> Policy:
    posture = rules.pop("posture", {})
    return check_policy({"name": name, "category": "grounding", "rules": rules, "posture": posture})


def kinds(analysis: PolicyAnalysis) -> set[FindingKind]:
    return {finding.kind for finding in analysis.findings}


def only(analysis: PolicyAnalysis, kind: FindingKind) -> PolicyFinding:
    (found,) = [finding for finding in analysis.findings if finding.kind is kind]
    return found


def checked(*policies: Policy) -> PolicyAnalysis:
    """Return an analysis whose every trace was executed once more."""
    analysis = analyze(policies)
    by_name = {policy.body.name: policy for policy in policies}
    for finding in analysis.findings:
        assert finding.witnesses
        for witness in finding.witnesses:
            assert reproduces(witness, [by_name[name] for name in (*witness.policies, *finding.policies)])
    return analysis


def test_disjoint_collections_of_overlapping_scopes_contradict_each_other() -> None:
    found = only(
        checked(
            retrieval("support", agents=["rag-*"], allowed_collections=["kb"]),
            retrieval("people", agents=["*-bot"], allowed_collections=["hr"]),
        ),
        FindingKind.CONTRADICTION,
    )

    assert (("people", "support"), ("allowed_collections",), Severity.ERROR) == (tuple(sorted(found.policies)), found.rules, found.severity)
    assert {"rag-bot"} == {witness.facts.agent_name for witness in found.witnesses}
    assert all(witness.is_stopped for witness in found.witnesses)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"agents": ["rag-1"], "allowed_collections": ["kb"]}, {"agents": ["rag-2"], "allowed_collections": ["hr"]}),
        ({"allowed_collections": ["kb"]}, {"allowed_collections": ["hr", "kb"]}),
        ({"allowed_collections": ["kb"]}, {"allowed_collections": ["hr"], "enforcement": "shadow"}),
        ({"allowed_collections": ["kb"]}, {"allowed_collections": ["hr"], "enabled": False}),
    ],
    ids=["other agents", "common collection", "shadow", "disabled"],
)
def test_policies_that_leave_something_do_not_contradict(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert FindingKind.CONTRADICTION not in kinds(checked(retrieval("first", **first), retrieval("second", **second)))


def test_three_policies_contradict_where_no_two_do() -> None:
    found = only(
        checked(
            retrieval("a", allowed_collections=["x", "y"]),
            retrieval("b", allowed_collections=["y", "z"]),
            retrieval("c", allowed_collections=["x", "z"]),
            retrieval("d", blocked_sources=["s"]),
        ),
        FindingKind.CONTRADICTION,
    )

    assert ("a", "b", "c") == found.policies


def test_counts_that_exclude_each_other_contradict() -> None:
    found = only(
        checked(
            retrieval("many", min_chunks=4, action_on_chunk_violation="block"),
            retrieval("few", max_chunks=3, action_on_chunk_violation="block"),
        ),
        FindingKind.CONTRADICTION,
    )

    assert (("many", "few"), ("min_chunks", "max_chunks")) == (found.policies, found.rules)
    assert [3, 4] == sorted(len(witness.calls) for witness in found.witnesses)


def test_counts_that_only_warn_do_not_contradict() -> None:
    policies = retrieval("many", min_chunks=4, action_on_chunk_violation="block"), retrieval("few", max_chunks=3)

    assert FindingKind.CONTRADICTION not in kinds(checked(*policies))


def test_relevance_that_no_score_reaches_blocks_everything_on_the_usual_scale() -> None:
    # Refused today, and still in force where it was stored before.
    stored = retrieval("never", action_on_low_relevance="block")
    stored = replace(stored, body=replace(stored.body, rules={**stored.body.rules, "min_relevance_score": 1.2}))
    found = only(checked(stored), FindingKind.BLOCKS_EVERYTHING)

    assert "relevance scores lie between 0 and 1" == found.assumes
    assert ("min_relevance_score",) == found.rules


def test_minimum_that_is_read_literally_blocks_the_first_document() -> None:
    rules = {"min_chunks": 2, "action_on_chunk_violation": "block"}

    assert ("min_chunks",) == only(checked(retrieval("literal", compat="literal", **rules)), FindingKind.BLOCKS_EVERYTHING).rules
    assert FindingKind.BLOCKS_EVERYTHING not in kinds(checked(retrieval("resolved", **rules)))


def test_policy_below_a_stricter_one_of_a_wider_scope_is_redundant() -> None:
    strict = retrieval("strict", agents=["rag-*"], min_relevance_score=0.9, action_on_low_relevance="block", max_source_age_days=30)
    lax = retrieval("lax", agents=["rag-1", "rag-2"], min_relevance_score=0.5)
    found = only(checked(strict, lax), FindingKind.REDUNDANT)

    assert ("lax", "strict") == found.policies
    for witness in found.witnesses:
        assert PolicyAction.ALLOW is not witness.strongest("lax")
        assert witness.strongest("strict").rank >= witness.strongest("lax").rank


@pytest.mark.parametrize(
    "wider",
    [
        {"agents": ["rag-1"]},
        {"min_relevance_score": 0.4},
        {"max_chunks": 11},
        {"min_chunks": 0},
        {"allowed_collections": ["kb"], "max_source_age_days": 91},
        {"action_on_stale_source": "warn"},
        {"enforcement": "shadow"},
        {"compat": "literal"},
    ],
    ids=str,
)
def test_policy_is_not_redundant_beside_one_that_is_laxer_anywhere(wider: dict[str, Any]) -> None:
    analysis = checked(retrieval("other", **wider), retrieval("own", agents=["rag-1", "rag-2"]))

    assert [] == [each for each in analysis.findings if each.kind is FindingKind.REDUNDANT and each.policies[0] == "own"]


def test_of_two_equal_policies_the_later_is_redundant() -> None:
    assert ("second", "first") == only(checked(retrieval("first"), retrieval("second")), FindingKind.REDUNDANT).policies


def test_redundant_policy_is_named_once_beside_one_that_is_not() -> None:
    found = checked(retrieval("c", min_relevance_score=0.5), retrieval("b", min_relevance_score=0.6), retrieval("a"))

    assert [("b", "a"), ("c", "a")] == [each.policies for each in found.findings if each.kind is FindingKind.REDUNDANT]


def test_policy_that_wants_other_words_for_an_abstention_is_not_redundant() -> None:
    one, other = (grounding(name, abstention_threshold=0.5, abstention_response=f"words of {name}") for name in "ab")

    assert set() == kinds(checked(one, other))


def test_lax_grounding_policy_is_redundant_and_one_with_a_judge_is_not() -> None:
    strict = grounding("strict", min_grounding_score=0.8, min_citations=2, action_on_violation="block")

    assert ("lax", "strict") == only(checked(strict, grounding("lax", score_relevance_floor=0.6)), FindingKind.REDUNDANT).policies
    assert FindingKind.REDUNDANT not in kinds(checked(strict, grounding("high floor", score_relevance_floor=0.9)))
    assert FindingKind.REDUNDANT not in kinds(checked(strict, grounding("judged", llm_grounding_check=True)))


def test_rule_that_another_policy_always_overrules_never_decides() -> None:
    found = only(
        checked(
            retrieval("old", max_source_age_days=60, allowed_collections=["kb"]),
            retrieval("fresh", max_source_age_days=10, action_on_stale_source="block", priority=1),
        ),
        FindingKind.NEVER_DECIDES,
    )

    assert (("old", "fresh"), ("max_source_age_days",)) == (found.policies, found.rules)
    assert ["fresh"] == [each.policy for each in found.witnesses[0].violations if each.is_decisive]


@pytest.mark.parametrize(
    ("policy", "kind", "rules"),
    [
        (retrieval("p", min_chunks=0), FindingKind.UNREACHABLE, ("min_chunks",)),
        (retrieval("p", min_relevance_score=0), FindingKind.UNREACHABLE, ("min_relevance_score",)),
        (
            retrieval("p", require_source_diversity=True, max_single_source_ratio=1),
            FindingKind.UNREACHABLE,
            ("require_source_diversity", "max_single_source_ratio"),
        ),
        (retrieval("p", max_single_source_ratio=0.4), FindingKind.UNUSED, ("max_single_source_ratio",)),
        (
            retrieval("p", require_source_diversity=True, max_single_source_ratio=0.05),
            FindingKind.ALWAYS_WARNS,
            ("max_single_source_ratio", "max_chunks"),
        ),
        (grounding("p", score_relevance_floor=0.7), FindingKind.UNREACHABLE, ("score_relevance_floor", "min_grounding_score")),
        (grounding("p", min_grounding_score=0), FindingKind.UNREACHABLE, ("min_grounding_score",)),
        (grounding("p", min_citations=0), FindingKind.UNREACHABLE, ("min_citations",)),
        (grounding("p", require_source_grounding=True), FindingKind.UNUSED, ("require_source_grounding", "min_citations")),
        (grounding("p", abstention_threshold=0, abstention_response="no"), FindingKind.UNREACHABLE, ("abstention_threshold",)),
        (grounding("p", abstention_response="no"), FindingKind.UNUSED, ("abstention_threshold",)),
        (grounding("p", score_top_n=5), FindingKind.UNUSED, ("score_top_n",)),
        (grounding("p", llm_grounding_threshold=0.9), FindingKind.UNUSED, ("llm_grounding_threshold",)),
        (
            grounding("p", abstention_threshold=0.5),
            FindingKind.ABSTENTION_WITHOUT_RESPONSE,
            ("abstention_threshold", "abstention_response"),
        ),
        (grounding("p", llm_grounding_check=True), FindingKind.JUDGE_OUTAGE_PASSES, ("llm_grounding_check",)),
        (
            grounding("p", llm_grounding_check=True, posture={"llm_grounding_check": "closed"}),
            FindingKind.JUDGE_OUTAGE_BLOCKS,
            ("llm_grounding_check",),
        ),
    ],
    ids=lambda each: each.value if isinstance(each, FindingKind) else "",
)
def test_rule_is_named_with_a_trace(policy: Policy, kind: FindingKind, rules: tuple[str, ...]) -> None:
    found = only(checked(policy), kind)

    assert (rules, ("p",)) == (found.rules, found.policies)


def test_judge_that_nothing_forces_to_be_asked_can_be_skipped() -> None:
    lax = {"llm_grounding_check": True, "posture": {"llm_grounding_check": "open"}}
    strict = {"llm_grounding_check": True, "posture": {"llm_grounding_check": "degrade"}}

    assert FindingKind.JUDGE_CAN_BE_SKIPPED in kinds(checked(grounding("p", min_citations=0, **lax)))
    assert FindingKind.JUDGE_CAN_BE_SKIPPED not in kinds(checked(grounding("p", **lax)))
    assert {FindingKind.UNREACHABLE} == kinds(checked(grounding("p", min_citations=0, **strict)))


def test_scope_that_excludes_what_it_names_matches_nothing() -> None:
    policy = check_policy(
        {"name": "p", "category": "retrieval", "scope": {"agents": ["rag-*"], "exclude_agents": ["r*"], "users": ["alice"]}}
    )
    found = only(checked(policy), FindingKind.SCOPE_NEVER_MATCHES)

    assert ["rag-x"] == [witness.facts.agent_name for witness in found.witnesses]
    assert ((),) == tuple(witness.policies for witness in found.witnesses)


def test_scope_of_another_tenant_matches_nothing() -> None:
    body = {"name": "p", "category": "retrieval", "scope": {"tenants": ["acme"]}}

    assert {FindingKind.SCOPE_NEVER_MATCHES} == kinds(analyze([check_policy(body, tenant="globex")]))
    assert set() == kinds(analyze([check_policy(body)]))


def test_policies_of_defaults_alone_have_no_findings() -> None:
    assert () == checked(retrieval("retrieval"), grounding("grounding")).findings


def test_two_policies_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidFieldError, match="two policies are called 'p'"):
        analyze([retrieval("p"), retrieval("p", min_chunks=0)])


def test_the_gravest_finding_stands_first_whatever_the_order_of_the_policies() -> None:
    policies = [
        retrieval("a", min_chunks=0, agents=["x"]),
        retrieval("b", min_chunks=2, action_on_chunk_violation="block", compat="literal"),
    ]

    assert analyze(policies) == analyze(policies[::-1])
    assert Severity.ERROR is analyze(policies).worst
