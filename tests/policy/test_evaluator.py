"""How several policies come to one verdict, what is in scope, and what a run in shadow does not do."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from evidentia.contracts.decisions import DecisionStatus, Verdict
from evidentia.contracts.policies import Policy, PolicyAction
from evidentia.contracts.runs import (
    CheckBypassed,
    GroundingEntry,
    LlmCall,
    RetrievedDocument,
    RunEnded,
    RunFacts,
    RunId,
    RunStatus,
    SpanOpened,
)
from evidentia.policy.evaluator import PolicySet, RunEvaluator
from evidentia.policy.rules import check_policy

ALLOW, WARN, BLOCK = PolicyAction.ALLOW, PolicyAction.WARN, PolicyAction.BLOCK
LOW = RetrievedDocument(relevance_score=0.1, source="a", collection="kb", age_days=1)
GOOD = RetrievedDocument(relevance_score=0.9, source="a", collection="kb", age_days=1)


def policy(name: str, rules: dict[str, Any] | None = None, **body: Any) -> Policy:
    return check_policy({"name": name, "category": "retrieval", "rules": rules or {}, **body})


def run(*policies: Policy, is_enforced: bool = True) -> RunEvaluator:
    return RunEvaluator(PolicySet.of(policies), is_enforced=is_enforced)


def only(verdicts: tuple[Verdict, ...]) -> Verdict:
    (verdict,) = verdicts
    return verdict


BLOCKING = {"action_on_low_relevance": "block"}


# --- the set ---


def test_policies_are_asked_by_priority_then_name_then_id() -> None:
    given = [policy("b"), policy("a"), policy("z", priority=1), policy("y", priority=200)]

    assert ["z", "a", "b", "y"] == [each.body.name for each in PolicySet.of(given).policies]


def test_disabled_policies_are_left_out() -> None:
    assert () == PolicySet.of([policy("a", enabled=False)]).policies


def test_a_policy_given_twice_is_asked_once() -> None:
    assert 1 == len(PolicySet.of([policy("a"), policy("a")]).policies)


def test_the_digest_of_a_set_follows_its_policies() -> None:
    versions = [check_policy({"name": "a", "category": "retrieval"}, version=number) for number in (1, 2)]
    digests = {PolicySet.of(given).digest for given in ([], [policy("a")], [policy("b")], [policy("a"), policy("b")], versions[1:])}

    assert 5 == len(digests)
    assert PolicySet.of([policy("a"), policy("b", enabled=False)]).digest == PolicySet.of([policy("a")]).digest


def test_a_run_is_under_the_policies_in_scope() -> None:
    policies = PolicySet.of([policy("a", scope={"agents": ["rag-*"]}), policy("b")])
    inside, outside = (RunFacts(run_id=RunId("r"), agent_name=name) for name in ("rag-1", "chat"))

    assert policies is policies.for_run(inside)
    assert ["b"] == [each.body.name for each in policies.for_run(outside).policies]
    assert policies.for_run(outside) is policies.for_run(outside)


def test_a_set_that_was_written_down_decides_the_same() -> None:
    policies = PolicySet.of([policy("a", BLOCKING), policy("b", {"allowed_collections": ["x"]}, posture={"*": "closed"})])
    again = PolicySet.of(msgspec.json.decode(msgspec.json.encode(policies.policies), type=tuple[Policy, ...]))

    assert policies.digest == again.digest
    assert RunEvaluator(policies).record(LOW) == RunEvaluator(again).record(LOW)


# --- verdicts ---


def test_the_strongest_action_wins_and_everything_is_kept() -> None:
    verdict = only(run(policy("a"), policy("b", BLOCKING), policy("c", {"min_relevance_score": 0.05})).record(LOW))

    assert ("b", BLOCK, True) == (verdict.decisive.policy_name, verdict.decisive.action, verdict.stops)
    assert [("a", WARN), ("b", BLOCK), ("c", ALLOW)] == [(each.policy_name, each.action) for each in verdict.evaluations]
    assert ["min_relevance_score", "min_relevance_score", ""] == [each.rule for each in verdict.evaluations]
    assert "Retrieval quality within policy (1 chunks)" == verdict.evaluations[2].reason


def test_among_equals_the_first_policy_decides() -> None:
    verdict = only(run(policy("b", priority=1), policy("a")).record(LOW))

    assert "b" == verdict.decisive.policy_name


def test_an_evaluation_names_its_policy_and_version() -> None:
    given = check_policy({"name": "a", "category": "retrieval"}, version=4)
    decisive = only(run(given).record(LOW)).decisive

    assert (given.policy_id, "a", 4, given.digest, "retrieval") == (
        decisive.policy_id,
        decisive.policy_name,
        decisive.version,
        decisive.digest,
        decisive.category,
    )


def test_nothing_in_scope_says_nothing() -> None:
    evaluator = run()

    assert ((), (), (), ()) == (evaluator.begin(), evaluator.record(LOW), evaluator.finish(RunEnded()), evaluator.passed(LOW, count=1))
    assert 0 == evaluator.count


@pytest.mark.parametrize("call", [LlmCall(), SpanOpened(), CheckBypassed()], ids=lambda call: type(call).__name__)
def test_calls_that_no_category_is_about_pass_in_silence(call: Any) -> None:
    evaluator = run(policy("a"))

    assert ((), ()) == (evaluator.record(call), evaluator.passed(call, count=0))
    assert 0 == evaluator.count


def test_counts_belong_to_the_last_call() -> None:
    grounding = check_policy({"name": "g", "category": "grounding"})
    evaluator = run(policy("a"), grounding)
    evaluator.record(GOOD)
    evaluator.record(GOOD)

    assert 2 == evaluator.count
    evaluator.record(GroundingEntry(grounding_scores=(0.9, 0.9, 0.9)))
    assert 3 == evaluator.count


def test_a_call_that_one_category_objects_to_has_the_verdicts_of_all() -> None:
    evaluator = run(policy("a", {"min_chunks": 2}), check_policy({"name": "g", "category": "grounding"}))
    evaluator.record(GOOD)
    verdicts = evaluator.record(GroundingEntry(grounding_scores=(0.9,)))

    assert [("retrieval", WARN), ("grounding", ALLOW)] == [(each.decisive.category, each.decisive.action) for each in verdicts]
    assert "Grounding scores within policy (1 scores)" == verdicts[1].decisive.reason


def test_a_stopped_run_stays_stopped_and_is_still_decided_about() -> None:
    evaluator = run(policy("a", BLOCKING))

    assert only(evaluator.record(LOW)).stops
    assert evaluator.is_stopped
    late = only(evaluator.record(GOOD)).decisive
    assert (ALLOW, "Retrieval quality recorded after a block (2 chunks)") == (late.action, late.reason)
    assert only(evaluator.record(LOW)).stops


def test_the_end_of_a_stopped_run_is_written_and_not_enforced() -> None:
    evaluator = run(policy("a", {**BLOCKING, "min_chunks": 5, "action_on_chunk_violation": "block"}))
    evaluator.record(LOW)
    verdict = only(evaluator.finish(RunEnded(status=RunStatus.SUCCESS)))

    assert (BLOCK, False) == (verdict.decisive.action, verdict.stops)
    assert DecisionStatus.EVALUATED is verdict.decisive.status


def test_a_block_at_the_end_stops() -> None:
    evaluator = run(policy("a", {"action_on_chunk_violation": "block"}))

    assert only(evaluator.finish(RunEnded())).stops
    assert evaluator.is_stopped


# --- shadow ---


def test_a_run_that_is_not_enforced_decides_and_never_stops() -> None:
    evaluator = run(policy("a", BLOCKING), is_enforced=False)
    verdict = only(evaluator.record(LOW))

    assert (BLOCK, DecisionStatus.SHADOW, False) == (verdict.decisive.action, verdict.decisive.status, verdict.is_enforced)
    assert not verdict.stops
    assert not evaluator.is_stopped


def test_a_policy_in_shadow_is_never_decisive_over_an_enforced_one() -> None:
    verdict = only(run(policy("a", BLOCKING, enforcement="shadow"), policy("b")).record(LOW))

    assert ("b", WARN, True) == (verdict.decisive.policy_name, verdict.decisive.action, verdict.is_enforced)
    assert [DecisionStatus.SHADOW, DecisionStatus.EVALUATED] == [each.status for each in verdict.evaluations]


def test_where_only_policies_in_shadow_object_the_verdict_is_theirs() -> None:
    verdict = only(run(policy("a", BLOCKING, enforcement="shadow"), policy("b", {"min_relevance_score": 0})).record(LOW))

    assert ("a", BLOCK, DecisionStatus.SHADOW) == (verdict.decisive.policy_name, verdict.decisive.action, verdict.decisive.status)
    assert not verdict.is_enforced


def test_a_provisional_count_stays_provisional_in_shadow() -> None:
    verdict = only(run(policy("a", {"min_chunks": 3}), is_enforced=False).record(GOOD))

    assert DecisionStatus.PROVISIONAL is verdict.decisive.status


def test_a_warning_decides_before_a_provisional_count_in_shadow_too() -> None:
    verdict = only(run(policy("a", {"min_chunks": 3}), is_enforced=False).record(LOW))

    assert ("min_relevance_score", DecisionStatus.SHADOW) == (verdict.decisive.rule, verdict.decisive.status)


def test_a_provisional_count_decides_before_a_block_in_shadow() -> None:
    verdict = only(run(policy("a", BLOCKING, enforcement="shadow"), policy("b", {"min_relevance_score": 0, "min_chunks": 3})).record(LOW))

    assert ("b", DecisionStatus.PROVISIONAL) == (verdict.decisive.policy_name, verdict.decisive.status)


def test_a_pass_is_in_the_words_of_an_enforced_policy() -> None:
    evaluator = run(policy("a", enforcement="shadow"), policy("b"))
    verdict = only(evaluator.passed(GOOD, count=1))

    assert ("b", True) == (verdict.decisive.policy_name, verdict.is_enforced)
    assert [DecisionStatus.SHADOW, DecisionStatus.EVALUATED] == [each.status for each in verdict.evaluations]


def test_an_abstention_in_shadow_replaces_nothing() -> None:
    rules = {"abstention_threshold": 0.9, "abstention_response": "No."}
    shadow = check_policy({"name": "a", "category": "grounding", "rules": rules, "enforcement": "shadow"})
    evaluator = run(shadow, check_policy({"name": "b", "category": "grounding"}))
    evaluator.record(GroundingEntry(output_confidence=0.1))
    verdict = only(evaluator.finish(RunEnded()))

    assert ("b", None) == (verdict.decisive.policy_name, verdict.abstention_response)
