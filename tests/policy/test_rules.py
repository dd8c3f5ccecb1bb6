"""What may be put in force: every problem is named with its path, and what is accepted is complete and has a digest."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.contracts.errors import FieldProblem, PolicyInvalidError
from evidentia.contracts.policies import GroundingRules, PolicyBody, PolicyId, PolicyScope, RetrievalRules
from evidentia.policy.categories import categories
from evidentia.policy.protocol_rules import ProtocolRules
from evidentia.policy.rules import check_policy, policy_id_of, policy_schema, rules_schema

PAGE = Path(__file__).resolve().parents[2] / "docs" / "policies.md"
RETRIEVAL = {
    "min_relevance_score": 0.7,
    "max_source_age_days": 90,
    "min_chunks": 1,
    "max_chunks": 10,
    "allowed_collections": [],
    "blocked_sources": [],
    "require_source_diversity": False,
    "max_single_source_ratio": 0.6,
    "action_on_low_relevance": "warn",
    "action_on_stale_source": "block",
    "action_on_chunk_violation": "warn",
    "action_on_unknown_age": "allow",
}
GROUNDING = {
    "require_source_grounding": False,
    "min_grounding_score": 0.7,
    "min_citations": 1,
    "max_unsupported_claims": None,
    "factual_consistency_check": False,
    "abstention_threshold": None,
    "abstention_response": None,
    "action_on_violation": "warn",
    "score_relevance_floor": None,
    "score_eval_mode": "all",
    "score_top_n": 3,
    "llm_grounding_check": False,
    "llm_grounding_model": "gpt-4o-mini",
    "llm_grounding_threshold": 0.7,
    "llm_grounding_criteria": "",
    "llm_grounding_phase": "mid_execution",
    "unique_citations": False,
    "confidence_mode": "last",
}


def body(category: str = "retrieval", **fields: Any) -> dict[str, Any]:
    return {"name": "guard", "category": category, **fields}


def problems(written: Any) -> list[FieldProblem]:
    with pytest.raises(PolicyInvalidError) as raised:
        check_policy(written)
    return list(raised.value.problems)


def paths(written: Any) -> list[str]:
    return [problem.path for problem in problems(written)]


# --- what is accepted ---


@pytest.mark.parametrize(("category", "defaults"), [("retrieval", RETRIEVAL), ("grounding", GROUNDING)])
def test_rules_are_complete_with_their_defaults(category: str, defaults: dict[str, Any]) -> None:
    assert defaults == check_policy(body(category)).body.rules


def test_a_body_is_accepted_as_a_message_or_as_a_map() -> None:
    message = PolicyBody(name="guard", category="retrieval", rules={"max_chunks": 8}, scope=PolicyScope(agents=("a",)))

    assert check_policy(body(rules={"max_chunks": 8}, scope={"agents": ["a"]})) == check_policy(message)


def test_a_checked_body_is_accepted_again() -> None:
    policy = check_policy(body(rules={"allowed_collections": ["kb"]}, posture={"*": "closed"}, compat="literal"))

    assert policy == check_policy(policy.body)


def test_a_policy_survives_json() -> None:
    policy = check_policy(body("grounding", rules={"score_relevance_floor": 0.5}, posture={"llm_grounding_check": "closed"}))

    assert policy == msgspec.json.decode(msgspec.json.encode(policy), type=type(policy))


def test_a_whole_number_is_a_number() -> None:
    assert 1.0 == check_policy(body(rules={"min_relevance_score": 1})).body.rules["min_relevance_score"]


def test_words_are_read_in_any_case() -> None:
    assert "block" == check_policy(body(rules={"action_on_low_relevance": "Block"})).body.rules["action_on_low_relevance"]


def test_an_id_follows_from_the_tenant_and_the_name() -> None:
    assert check_policy(body()).policy_id == check_policy(body("grounding")).policy_id
    assert policy_id_of("guard", tenant="acme") == check_policy(body(), tenant="acme").policy_id
    assert policy_id_of("guard") != policy_id_of("guard", tenant="acme")
    assert "p-" == policy_id_of("guard")[:2]
    assert 18 == len(policy_id_of("guard"))


def test_an_id_a_version_and_a_tenant_can_be_given() -> None:
    policy = check_policy(body(), policy_id=PolicyId("own"), version=3, tenant="acme")

    assert ("own", 3, "acme") == (policy.policy_id, policy.version, policy.tenant)


def test_versions_begin_at_one() -> None:
    with pytest.raises(PolicyInvalidError, match="version"):
        check_policy(body(), version=0)


@pytest.mark.parametrize("model", ["gpt-4o", "claud" + "e-x", "llama-3.1-8b-instant", "mixtral-8x7b", "local:words"])
def test_models_of_every_known_prefix_are_accepted(model: str) -> None:
    assert model == check_policy(body("grounding", rules={"llm_grounding_model": model})).body.rules["llm_grounding_model"]


# --- what is refused ---

REFUSED = [
    ({"min_relevance_score": math.nan}, "rules.min_relevance_score"),
    ({"min_relevance_score": math.inf}, "rules.min_relevance_score"),
    ({"min_relevance_score": True}, "rules.min_relevance_score"),
    ({"min_relevance_score": "0.7"}, "rules.min_relevance_score"),
    ({"min_relevance_score": None}, "rules.min_relevance_score"),
    ({"min_relevance_score": 10**400}, "rules.min_relevance_score"),
    ({"max_source_age_days": -1}, "rules.max_source_age_days"),
    ({"max_source_age_days": 30.0}, "rules.max_source_age_days"),
    ({"min_chunks": True}, "rules.min_chunks"),
    ({"min_chunks": 11}, "rules.min_chunks"),
    ({"min_chunks": 3, "max_chunks": 2}, "rules.min_chunks"),
    ({"max_chunks": 0}, "rules.max_chunks"),
    ({"max_single_source_ratio": 1.01}, "rules.max_single_source_ratio"),
    ({"max_single_source_ratio": -0.01}, "rules.max_single_source_ratio"),
    ({"require_source_diversity": 1}, "rules.require_source_diversity"),
    ({"allowed_collections": "kb"}, "rules.allowed_collections"),
    ({"allowed_collections": ["kb", 3]}, "rules.allowed_collections[1]"),
    ({"blocked_sources": ["\ud800"]}, "rules.blocked_sources[0]"),
    ({"action_on_low_relevance": "allow"}, "rules.action_on_low_relevance"),
    ({"action_on_stale_source": "redact"}, "rules.action_on_stale_source"),
    ({"action_on_chunk_violation": 1}, "rules.action_on_chunk_violation"),
    ({"action_on_unknown_age": "skip"}, "rules.action_on_unknown_age"),
]
REFUSED_GROUNDING = [
    ({"score_top_n": 0}, "rules.score_top_n"),
    ({"min_grounding_score": 1.5}, "rules.min_grounding_score"),
    ({"score_relevance_floor": math.nan}, "rules.score_relevance_floor"),
    ({"abstention_threshold": 2}, "rules.abstention_threshold"),
    ({"max_unsupported_claims": -1}, "rules.max_unsupported_claims"),
    ({"max_unsupported_claims": 1.0}, "rules.max_unsupported_claims"),
    ({"score_eval_mode": "median"}, "rules.score_eval_mode"),
    ({"llm_grounding_phase": "before_workflow"}, "rules.llm_grounding_phase"),
    ({"confidence_mode": "mean"}, "rules.confidence_mode"),
    ({"llm_grounding_model": "bert-base"}, "rules.llm_grounding_model"),
    ({"llm_grounding_model": "gpt-"}, "rules.llm_grounding_model"),
    ({"action_on_violation": "allow"}, "rules.action_on_violation"),
    ({"abstention_response": 3}, "rules.abstention_response"),
]


@pytest.mark.parametrize(("rules", "path"), REFUSED)
def test_a_bad_retrieval_rule_is_refused_by_its_path(rules: dict[str, Any], path: str) -> None:
    assert [path] == paths(body(rules=rules))


@pytest.mark.parametrize(("rules", "path"), REFUSED_GROUNDING)
def test_a_bad_grounding_rule_is_refused_by_its_path(rules: dict[str, Any], path: str) -> None:
    assert [path] == paths(body("grounding", rules=rules))


NEAREST = [
    (body(rules={"min_chunk": 1}), FieldProblem("rules.min_chunk", "is not a rule of the category 'retrieval'", "min_chunks")),
    (body(scope={"agent": ["a"]}), FieldProblem("scope.agent", "is not a facet of a scope", "agents")),
    (body(enable=True), FieldProblem("enable", "is not a field of a policy", "enabled")),
    (body("retrieved"), FieldProblem("category", "there is no category 'retrieved'", "retrieval")),
    (
        body(rules={"action_on_low_relevance": "blocks"}),
        FieldProblem("rules.action_on_low_relevance", "'blocks' is not one of 'warn', 'block'", "block"),
    ),
    (
        body(posture={"llm_grounding": "open"}),
        FieldProblem("posture.llm_grounding", "is not a rule or fault that has a posture", ""),
    ),
    (
        body("grounding", posture={"llm_grounding_chek": "open"}),
        FieldProblem("posture.llm_grounding_chek", "is not a rule or fault that has a posture", "llm_grounding_check"),
    ),
    (
        body(posture={"*": "close"}),
        FieldProblem("posture.*", "'close' is not one of 'open', 'degrade', 'closed'", "closed"),
    ),
]


@pytest.mark.parametrize(("written", "problem"), NEAREST, ids=lambda value: getattr(value, "path", ""))
def test_the_nearest_name_is_offered(written: dict[str, Any], problem: FieldProblem) -> None:
    assert [problem] == problems(written)


def test_every_problem_is_named_at_once() -> None:
    written = {
        "name": " ",
        "category": "retrieval",
        "rules": {"min_chunk": 1, "max_chunks": 0, "min_relevance_score": math.nan},
        "scope": {"users": [1]},
        "priority": -1,
        "posture": {"*": 1},
        "compat": "loose",
    }

    assert {
        "name",
        "rules.min_chunk",
        "rules.max_chunks",
        "rules.min_relevance_score",
        "scope.users[0]",
        "priority",
        "posture.*",
        "compat",
    } == set(paths(written))


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ([], ""),
        ({"category": "retrieval"}, "name"),
        ({"name": "x"}, "category"),
        (body(name="x" * 201), "name"),
        (body(rules=[]), "rules"),
        (body(scope=[]), "scope"),
        (body(posture=[]), "posture"),
        (body(enabled="yes"), "enabled"),
        (body(enforcement="maybe"), "enforcement"),
        (body(rules={3: 1}), "rules.3"),
    ],
)
def test_a_body_of_another_shape_is_refused(written: Any, path: str) -> None:
    assert [path] == paths(written)


def test_the_message_names_the_field_and_the_nearest_name() -> None:
    with pytest.raises(PolicyInvalidError, match=r"field 'rules\.max_chunk': is not a rule .*; did you mean 'max_chunks'\?"):
        check_policy(body(rules={"max_chunk": 3}))


def test_hostile_names_are_shown_escaped_and_cut() -> None:
    (problem,) = problems(body(rules={"\x1b[2J" + "x" * 1_000: 1}))

    assert problem.path.startswith("rules.\\x1b[2J")
    assert len(problem.path) < 300


@given(st.dictionaries(st.text(max_size=8), st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists, max_leaves=4)))
def test_nothing_but_a_refusal_comes_of_arbitrary_bodies(written: dict[str, Any]) -> None:
    with pytest.raises(PolicyInvalidError):
        check_policy({**written, "name": 3})


# --- the digest ---


def digest(**fields: Any) -> str:
    return check_policy({**body(), **fields}).digest


CHANGES: list[dict[str, Any]] = [
    {"name": "other"},
    {"category": "grounding"},
    {"rules": {"min_relevance_score": 0.71}},
    {"rules": {"allowed_collections": ["kb"]}},
    {"scope": {"agents": ["a"]}},
    {"scope": {"exclude_agents": ["a"]}},
    {"priority": 99},
    {"compat": "literal"},
    {"posture": {"max_source_age_days": "closed"}},
    {"enforcement": "shadow"},
]


def test_whatever_can_change_a_decision_changes_the_digest() -> None:
    digests = [digest(), *(digest(**change) for change in CHANGES), check_policy(body(), version=2).digest]

    assert len(digests) == len(set(digests))


@pytest.mark.parametrize(
    "same",
    [{"description": "words"}, {"rules": {"min_relevance_score": 0.7}}, {"scope": {}}, {"scope": {"agents": []}}, {"enabled": False}],
)
def test_what_cannot_change_a_decision_leaves_the_digest(same: dict[str, Any]) -> None:
    assert digest() == digest(**same)


@given(st.lists(st.sampled_from("abcde"), min_size=1))
def test_the_order_of_names_in_a_scope_leaves_the_digest(names: list[str]) -> None:
    assert digest(scope={"agents": sorted(set(names))}) == digest(scope={"agents": names})


# --- the schema, and the page ---


@pytest.mark.parametrize(("category", "rules"), [("retrieval", RetrievalRules), ("grounding", GroundingRules), ("protocol", ProtocolRules)])
def test_the_schema_says_what_every_rule_is_for(category: str, rules: type[msgspec.Struct]) -> None:
    schema = rules_schema(category)

    assert {field.name for field in msgspec.structs.fields(rules)} == set(schema["properties"])
    assert all({"title", "description", "default"} <= set(rule) for rule in schema["properties"].values())
    assert schema["additionalProperties"] is False
    assert "$ref" not in json.dumps(schema)


def test_the_schema_lists_the_words_of_a_rule() -> None:
    assert ["block", "warn"] == sorted(rules_schema("retrieval")["properties"]["action_on_low_relevance"]["enum"])
    assert ["allow", "block", "warn"] == sorted(rules_schema("retrieval")["properties"]["action_on_unknown_age"]["enum"])


def test_the_schema_of_a_policy_names_every_category() -> None:
    schema = policy_schema()

    assert [each.name for each in categories()] == schema["properties"]["category"]["enum"]
    assert [each.name for each in categories()] == [each["if"]["properties"]["category"]["const"] for each in schema["allOf"]]


@pytest.mark.parametrize("rules", [RetrievalRules, GroundingRules, ProtocolRules])
def test_every_rule_has_a_heading_on_the_page(rules: type[msgspec.Struct]) -> None:
    headings = {line.lstrip("#").strip().strip("`") for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("#")}

    assert [] == [field.name for field in msgspec.structs.fields(rules) if field.name not in headings]
