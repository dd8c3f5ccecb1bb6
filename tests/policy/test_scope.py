"""Which runs a policy is for."""

from __future__ import annotations

from typing import Any

import pytest

from evidentia.contracts.runs import RunFacts, RunId
from evidentia.policy.evaluator import in_scope
from evidentia.policy.rules import check_policy


def is_in(scope: dict[str, Any], *, tenant: str = "default", **facts: str) -> bool:
    policy = check_policy({"name": "p", "category": "retrieval", "scope": scope}, tenant=tenant)
    given: dict[str, Any] = {"run_id": RunId("r"), "agent_name": "rag-agent", **facts}
    return in_scope(policy, RunFacts(**given))


def test_an_empty_scope_is_for_every_run() -> None:
    assert is_in({})


@pytest.mark.parametrize(
    ("facet", "fact"),
    [
        ("agents", "agent_name"),
        ("agent_ids", "agent_id"),
        ("agent_groups", "agent_group"),
        ("agent_types", "agent_type"),
        ("workflows", "workflow_name"),
        ("users", "user_id"),
        ("user_groups", "user_group"),
        ("teams", "team"),
        ("tools", "tool"),
        ("models", "model"),
    ],
)
def test_every_facet_asks_for_its_fact(facet: str, fact: str) -> None:
    assert is_in({facet: ["other", "wanted"]}, **{fact: "wanted"})
    assert not is_in({facet: ["wanted"]}, **{fact: "unwanted"})
    assert not is_in({facet: ["wanted"]}, **{fact: ""})


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("rag-*", "rag-agent", True),
        ("rag-?", "rag-1", True),
        ("rag-?", "rag-12", False),
        ("rag-[ab]", "rag-a", True),
        ("rag-[!ab]", "rag-a", False),
        ("*", "", True),
        ("rag.agent", "rag-agent", False),
        ("RAG-*", "rag-agent", False),
        ("rag-agent", "rag-agent2", False),
    ],
)
def test_glob_characters_match_and_other_names_are_equal(pattern: str, name: str, matches: bool) -> None:  # noqa: FBT001 - of the table
    assert matches is is_in({"agents": [pattern]}, agent_name=name)


def test_every_facet_that_is_given_must_match() -> None:
    scope = {"agents": ["rag-*"], "teams": ["search"]}

    assert is_in(scope, team="search")
    assert not is_in(scope, team="sales")


@pytest.mark.parametrize(
    ("facet", "exclusion", "fact"),
    [
        ("agents", "exclude_agents", "agent_name"),
        ("users", "exclude_users", "user_id"),
        ("tools", "exclude_tools", "tool"),
        ("models", "exclude_models", "model"),
    ],
)
def test_exclusions_win(facet: str, exclusion: str, fact: str) -> None:
    scope = {facet: ["*"], exclusion: ["x-*"]}

    assert not is_in(scope, **{fact: "x-1"})
    assert is_in(scope, **{fact: "y-1"})


def test_a_policy_stays_in_its_tenant() -> None:
    assert not is_in({}, tenant="acme")


def test_only_the_default_tenant_names_others() -> None:
    def reaches(owner: str, wanted: list[str], tenant: str) -> bool:
        policy = check_policy({"name": "p", "category": "retrieval", "scope": {"tenants": wanted}}, tenant=owner)
        return in_scope(policy, RunFacts(run_id=RunId("r"), agent_name="a", tenant=tenant))

    assert reaches("default", ["acme"], "acme")
    assert reaches("default", ["*"], "acme")
    assert not reaches("default", ["acme"], "default")
    assert not reaches("other", ["*"], "acme")
    assert reaches("acme", [], "acme")
    assert not reaches("default", [], "acme")
