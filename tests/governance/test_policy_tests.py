"""Cases of policies: what passes, what a failure says, and how a mistake in a file is named."""

from __future__ import annotations

from typing import Any

import pytest

from evidentia.contracts.errors import InvalidFieldError
from evidentia.governance.policy_tests import parse_suite, run_suite
from evidentia.policy.templates import TEMPLATES

GUARD: dict[str, Any] = {"name": "guard", "category": "retrieval", "rules": {"blocked_sources": ["old"]}}
GOOD: dict[str, Any] = {"retrieval": {"relevance_score": 0.9, "source": "manual", "age_days": 1}}
OLD: dict[str, Any] = {"retrieval": {"relevance_score": 0.9, "source": "old", "age_days": 1}}


def case(*when: object, then: object, **given: object) -> dict[str, Any]:
    return {"name": "c", "given": {"policies": [GUARD], **given}, "when": list(when), "then": then}


def mismatches(document: object) -> list[tuple[str, str, object, object]]:
    return [
        (each.where, each.field, each.expected, each.actual) for result in run_suite(parse_suite(document)) for each in result.mismatches
    ]


@pytest.mark.parametrize(
    "document",
    [
        case(GOOD, OLD, then=["allow", {"action": "block", "rule": "blocked_sources", "stops": True}]),
        case(GOOD, then=[{"reason": "Retrieval quality within policy (1 chunks)", "rule": "", "policy": "guard", "status": "evaluated"}]),
        case(OLD, then=[{"metadata": {"blocked_source": "old"}, "reason_contains": "blocked source 'old'"}]),
        case(OLD, then={"calls": [{"action": "block", "stops": False, "status": "shadow"}], "run": "success"}, enforce=False),
        case(OLD, then={"run": "blocked"}),
        case(OLD, "llm", {"end": {"status": "error"}}, then={"calls": [None, "allow"], "run": "blocked"}),
        case(GOOD, {"end": {"status": "error"}}, then={"run": "error"}),
        case(then={"begin": {"action": "allow", "reason": "Retrieval rules stored"}, "end": {"rule": "min_chunks", "action": "warn"}}),
        case({**GOOD, "times": 11}, then=[{"rule": "max_chunks", "action": "warn"}]),
        case({"grounding": {"grounding_scores": [0.1]}}, then=[{"action": "allow", "reason": "", "category": ""}]),
        {**case(GOOD, then=["allow"]), "given": {"policies": [{"template": "Lenient Monitoring"}]}},
        {
            "policies": [GUARD],
            "run": {"agent_name": "a"},
            "cases": [{"when": [OLD], "then": ["block"]}, {"when": [GOOD], "then": ["allow"]}],
        },
    ],
    ids=range(12),
)
def test_case_that_describes_what_happens_passes(document: object) -> None:
    assert [] == mismatches(document)


def test_failure_names_the_call_the_field_and_both_values() -> None:
    document = case(GOOD, OLD, then={"calls": ["allow", {"action": "warn", "metadata": {"blocked_source": "new"}}], "run": "success"})

    assert [
        ("call 2, retrieval", "action", "warn", "block"),
        ("call 2, retrieval", "metadata.blocked_source", "new", "old"),
        ("the run", "status", "success", "blocked"),
    ] == mismatches(document)


def test_verdict_of_a_category_can_be_meant() -> None:
    grounding = {"name": "g", "category": "grounding", "rules": {"action_on_violation": "block"}}
    document = {
        "given": {"policies": [GUARD, grounding]},
        "when": [],
        "then": {"end": {"category": "retrieval", "action": "warn"}},
    }

    assert [] == mismatches(document)
    document["then"] = {"end": {"action": "warn"}}
    assert [("at the end", "action", "warn", "block")] == mismatches(document)


def test_scope_decides_whether_a_policy_is_asked() -> None:
    scoped = {**GUARD, "scope": {"agents": ["rag-*"]}}
    document = {"given": {"policies": [scoped], "run": {"agent_name": "other"}}, "when": [OLD], "then": ["allow"]}

    assert [] == mismatches(document)


def test_policy_files_are_read_by_whoever_runs_the_cases() -> None:
    document = {"given": {"policies": [{"file": "guard.yaml"}]}, "when": [OLD], "then": ["block"]}
    loaded: list[str] = []

    def load(name: str) -> object:
        loaded.append(name)
        return {"policies": [GUARD]}

    (result,) = run_suite(parse_suite(document, load=load))

    assert (["guard.yaml"], True) == (loaded, result.passed)
    with pytest.raises(InvalidFieldError, match=r"given\.policies\[0\]\.file"):
        parse_suite(document)


@pytest.mark.parametrize(
    ("document", "path", "problem"),
    [
        ([], "file", "expected names with values, not list"),
        ({"cases": []}, "cases", "there is no case"),
        ({"cases": [], "poli": []}, "poli", "unknown key; did you mean 'policies'?"),
        ({**case(then=["allow"]), "wen": []}, "wen", "unknown key; did you mean 'when'?"),
        ({"when": [], "then": {"run": "success"}}, "given.policies", "there is no policy to test"),
        (
            case({"retrieval": {"relevence_score": 1}}, then=["allow"]),
            "when[0].retrieval.relevence_score",
            "did you mean 'relevance_score'?",
        ),
        (case({"retrieva": {}}, then=["allow"]), "when[0].retrieva", "did you mean 'retrieval'?"),
        (case("lm", then=["allow"]), "when[0]", "'lm' is not known; did you mean 'llm'?"),
        (
            case({"retrieval": {"relevance_score": "high"}}, then=["allow"]),
            "when[0].retrieval.relevance_score",
            "expected `float`, got `str`",
        ),
        (case({"retrieval": {"age_days": -1}}, then=["allow"]), "when[0].retrieval.age_days", "-1 is negative"),
        (
            case({"grounding": {"grounding_scores": [0.1, float("nan")]}}, then=["allow"]),
            "when[0].grounding.grounding_scores[1]",
            "not a finite",
        ),
        (case({**GOOD, **OLD, "llm": {}}, then=["allow"]), "when[0]", "expected one call, found 2: llm, retrieval"),
        (case({**GOOD, "times": 0}, then=["allow"]), "when[0].times", "0 is not between 1 and 10000"),
        (case({"end": {}}, GOOD, then=["allow"]), "when[0]", "the end stands last"),
        (case(GOOD, then=["allows"]), "then.calls[0]", "'allows' is not known; did you mean 'allow'?"),
        (case(GOOD, then=[{"acton": "allow"}]), "then.calls[0].acton", "did you mean 'action'?"),
        (case(GOOD, then=[{"status": "done"}]), "then.calls[0].status", "'done' is not known"),
        (case(GOOD, then=["allow", "allow"]), "then.calls[1]", "there are 1 calls, and something is expected of 2"),
        (case(GOOD, then=None), "then", "nothing is expected"),
        (case(GOOD, then=[{}]), "then", "nothing is expected"),
        (case(GOOD, then={"run": "fine"}), "then.run", "'fine' is not known"),
        (case(GOOD, then=["allow"], enforce="no"), "given.enforce", "expected `bool`, got `str`"),
        (case(GOOD, then=["allow"], run={"agent": "a"}), "given.run.agent", "did you mean 'agent_id'?"),
        (
            {**case(GOOD, then=["allow"]), "given": {"policies": [{**GUARD, "rules": {"min_chunk": 1}}]}},
            "given.policies[0].rules.min_chunk",
            "did you mean 'min_chunks'?",
        ),
        ({"cases": [{"given": {"policies": [{"template": "Lenient"}]}}]}, "cases[0].given.policies[0].template", "'Lenient' is not known"),
        ({"cases": [{"given": {"policies": ["guard"]}}]}, "cases[0].given.policies[0]", "expected a policy, not str"),
    ],
    ids=lambda each: each if isinstance(each, str) and "." in each else "",
)
def test_mistake_is_named_with_its_path(document: object, path: str, problem: str) -> None:
    with pytest.raises(InvalidFieldError) as raised:
        parse_suite(document)

    assert path == raised.value.field
    assert problem in str(raised.value)


def test_every_template_can_be_named() -> None:
    documents = [{"given": {"policies": [{"template": name}]}, "then": {"run": "success"}} for name in TEMPLATES]

    assert len(TEMPLATES) == sum(len(parse_suite(document)) for document in documents)
