"""The table of the retrieval rules, row by row: reasons and metadata to the letter."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

from evidentia.contracts.decisions import DecisionStatus
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.policies import PolicyAction
from evidentia.contracts.runs import BatchClosed, BatchId, GroundingEntry, LlmCall, Phase, RetrievedDocument, RunEnded, StepCall, ToolCall
from evidentia.policy.evaluator import PolicySet, RunEvaluator
from evidentia.policy.rules import check_policy

if TYPE_CHECKING:
    from evidentia.contracts.decisions import Verdict
    from evidentia.contracts.protocol import RunCall

ALLOW, WARN, BLOCK = PolicyAction.ALLOW, PolicyAction.WARN, PolicyAction.BLOCK


def run(rules: dict[str, Any] | None = None, **body: Any) -> RunEvaluator:
    given = {"name": "quality", "category": "retrieval", "rules": rules or {}, **body}
    return RunEvaluator(PolicySet.of([check_policy(given)]))


def document(score: float = 0.9, source: str = "manual.pdf", **fields: Any) -> RetrievedDocument:
    return RetrievedDocument(**{"relevance_score": score, "source": source, "collection": "kb", "age_days": 10, **fields})


def only(verdicts: tuple[Verdict, ...]) -> Verdict:
    (verdict,) = verdicts
    return verdict


def said(verdicts: tuple[Verdict, ...]) -> tuple[str, str, dict[str, Any]]:
    decisive = only(verdicts).decisive
    return decisive.action.value, decisive.reason, dict(decisive.metadata)


# --- one document ---


def test_a_score_below_the_minimum_warns_by_default() -> None:
    verdict = only(run().record(document(0.41)))

    assert "Retrieval relevance (0.41) below threshold (0.70)" == verdict.decisive.reason
    assert {"relevance_score": 0.41, "threshold": 0.7} == verdict.decisive.metadata
    assert (WARN, "min_relevance_score", Phase.MID_EXECUTION) == (verdict.decisive.action, verdict.decisive.rule, verdict.phase)
    assert not verdict.stops


def test_a_score_at_the_minimum_passes() -> None:
    assert () == run().record(document(0.70))


def test_a_low_score_blocks_where_the_policy_says_so() -> None:
    verdict = only(run({"action_on_low_relevance": "block"}).record(document(0.41)))

    assert verdict.stops


def test_a_blocked_source_is_blocked_whatever_its_score() -> None:
    verdicts = run({"blocked_sources": ["deprecated-kb"]}).record(document(1.0, "deprecated-kb"))

    assert ("block", "Retrieved from blocked source 'deprecated-kb'", {"blocked_source": "deprecated-kb"}) == said(verdicts)


@pytest.mark.parametrize("source", ["Deprecated-KB", "deprecated-kb ", "deprecated-kb.pdf", ""])
def test_a_blocked_source_is_an_exact_name(source: str) -> None:
    assert () == run({"blocked_sources": ["deprecated-kb"]}).record(document(source=source))


def test_a_collection_outside_the_list_is_blocked() -> None:
    verdicts = run({"allowed_collections": ["knowledge_base"]}).record(document(collection="internal-hr"))

    expected = {"collection": "internal-hr", "allowed": ["knowledge_base"]}
    assert ("block", "Collection 'internal-hr' not in allowed list", expected) == said(verdicts)


def test_an_empty_list_of_collections_allows_all() -> None:
    assert () == run({"allowed_collections": []}).record(document(collection="internal-hr"))


def test_a_stale_source_is_blocked_by_default() -> None:
    verdicts = run().record(document(age_days=400))

    assert ("block", "Source age (400 days) exceeds max (90 days)", {"age_days": 400, "max_age": 90}) == said(verdicts)


def test_a_stale_source_can_be_warned_about() -> None:
    verdict = only(run({"action_on_stale_source": "warn"}).record(document(age_days=90.5)))

    assert (WARN, "Source age (90.5 days) exceeds max (90 days)") == (verdict.decisive.action, verdict.decisive.reason)


def test_a_source_as_old_as_the_maximum_passes() -> None:
    assert () == run().record(document(age_days=90))


def test_the_order_is_relevance_then_source_then_collection_then_age() -> None:
    rules = {"blocked_sources": ["old"], "allowed_collections": ["kb"], "action_on_stale_source": "warn"}
    low = run(rules).record(document(0.1, "old", collection="hr", age_days=400))
    stale = run(rules).record(document(0.1, age_days=400))

    assert ["min_relevance_score", "blocked_sources"] == [each.rule for each in only(low).evaluations]
    assert ["min_relevance_score", "max_source_age_days"] == [each.rule for each in only(stale).evaluations]


def test_a_low_relevance_warning_does_not_hide_a_blocked_source() -> None:
    verdict = only(run({"blocked_sources": ["old"]}).record(document(0.1, "old")))

    assert ("blocked_sources", BLOCK) == (verdict.decisive.rule, verdict.decisive.action)


def test_the_first_block_ends_the_evaluation_of_a_policy() -> None:
    verdict = only(run({"action_on_low_relevance": "block", "blocked_sources": ["old"]}).record(document(0.1, "old")))

    assert ["min_relevance_score"] == [each.rule for each in verdict.evaluations]


def test_read_literally_the_first_violation_ends_the_evaluation() -> None:
    verdict = only(run({"blocked_sources": ["old"]}, compat="literal").record(document(0.1, "old")))

    assert [("min_relevance_score", WARN)] == [(each.rule, each.action) for each in verdict.evaluations]


def test_each_document_is_decided_by_itself() -> None:
    evaluator = run({"allowed_collections": ["kb"]})

    assert () == evaluator.record(document())
    assert only(evaluator.record(document(collection="internal-hr"))).stops
    assert ("allow", "Retrieval quality recorded after a block (3 chunks)", {"chunk_count": 3}) == said(evaluator.record(document()))


# --- what cannot be compared ---


@pytest.mark.parametrize(
    "fields", [{"score": math.nan}, {"score": math.inf}, {"score": -math.inf}, {"age_days": -1}, {"age_days": math.nan}]
)
def test_numbers_that_compare_with_nothing_are_refused_and_not_counted(fields: dict[str, Any]) -> None:
    evaluator = run()

    with pytest.raises(InvalidFieldError, match=r"relevance_score|age_days"):
        evaluator.record(document(**fields))
    evaluator.record(document())
    assert 1 == evaluator.count


@pytest.mark.parametrize("fields", [{"relevance_score": "0.9"}, {"age_days": "3"}, {"source": ["a"]}, {"relevance_score": None}])
def test_values_of_another_type_are_refused_by_name(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidFieldError, match=next(iter(fields))):
        run().record(document(**fields))


def test_bad_numbers_are_refused_without_any_policy_too() -> None:
    with pytest.raises(InvalidFieldError, match="relevance_score"):
        RunEvaluator(PolicySet.of([])).record(document(math.nan))


@pytest.mark.parametrize("score", [1.7, 12.5])
def test_a_score_outside_its_range_is_compared_and_flagged(score: float) -> None:
    evaluator = run({"min_relevance_score": 0.0})
    call = document(score)

    assert () == evaluator.record(call)
    assert {"chunk_count": 1, "score_out_of_range": True} == only(evaluator.passed(call, count=1)).decisive.metadata


def test_a_violation_says_that_its_score_is_out_of_range() -> None:
    metadata = only(run().record(document(-0.2))).decisive.metadata

    assert {"relevance_score": -0.2, "threshold": 0.7, "score_out_of_range": True} == metadata


def test_names_of_documents_cannot_break_a_line_of_the_log() -> None:
    verdict = only(run({"blocked_sources": ["a\nb"]}).record(document(source="a\nb")))

    assert "Retrieved from blocked source 'a\\nb'" == verdict.decisive.reason
    assert {"blocked_source": "a\nb"} == verdict.decisive.metadata


# --- unknown age ---


def test_an_unknown_age_passes_by_default_and_is_recorded_as_unknown() -> None:
    evaluator = run()
    call = document(age_days=None)

    assert () == evaluator.record(call)
    verdict = only(evaluator.passed(call, count=evaluator.count))
    assert {"chunk_count": 1, "age_days": None, "unknown_age": True} == verdict.decisive.metadata


@pytest.mark.parametrize("action", ["warn", "block"])
def test_an_unknown_age_does_what_the_rule_says(action: str) -> None:
    verdict = only(run({"action_on_unknown_age": action}).record(document(age_days=None)))

    assert (action, "Source age is unknown (max 90 days)", {"age_days": None, "max_age": 90}) == said((verdict,))
    assert ("max_source_age_days", DecisionStatus.BYPASSED) == (verdict.decisive.rule, verdict.decisive.status)


@pytest.mark.parametrize(("posture", "action"), [("open", None), ("degrade", WARN), ("closed", BLOCK)])
def test_the_posture_of_the_age_holds_where_it_is_stronger(posture: str, action: PolicyAction | None) -> None:
    verdicts = run(posture={"max_source_age_days": posture}).record(document(age_days=None))

    assert ([action] if action else []) == [verdict.decisive.action for verdict in verdicts]


# --- counts ---


def test_too_many_documents_warn_once_at_the_crossing() -> None:
    evaluator = run()
    verdicts = [evaluator.record(document()) for _ in range(13)]

    assert [10] == [number for number, each in enumerate(verdicts) if each]
    assert ("warn", "Retrieved chunks (11) exceeds max (10)", {"chunk_count": 11, "limit": 10}) == said(verdicts[10])


def test_too_many_documents_block_again_and_again() -> None:
    evaluator = run({"max_chunks": 2, "action_on_chunk_violation": "block"})
    verdicts = [evaluator.record(document()) for _ in range(4)]

    assert [False, False, True, True] == [bool(each) for each in verdicts]
    assert "Retrieved chunks (4) exceeds max (2)" == only(verdicts[3]).decisive.reason


def test_too_few_documents_are_provisional_and_never_stop() -> None:
    evaluator = run({"min_chunks": 3, "action_on_chunk_violation": "block"})
    first, second, third = (evaluator.record(document()) for _ in range(3))

    assert ("warn", "Retrieved chunks (1) below minimum (3)", {"chunk_count": 1, "limit": 3}) == said(first)
    assert DecisionStatus.PROVISIONAL is only(first).decisive.status
    assert not only(first).is_enforced
    assert "Retrieved chunks (2) below minimum (3)" == only(second).decisive.reason
    assert () == third


def test_a_warning_decides_before_a_provisional_count() -> None:
    verdict = only(run({"min_chunks": 3}).record(document(0.1)))

    assert ("min_relevance_score", True) == (verdict.decisive.rule, verdict.is_enforced)
    assert ["min_chunks", "min_relevance_score"] == [each.rule for each in verdict.evaluations]


SETTLING = [BatchClosed(), LlmCall(), StepCall(), GroundingEntry(), ToolCall(name="send")]


@pytest.mark.parametrize("call", SETTLING, ids=lambda call: type(call).__name__)
def test_a_count_settles_with_the_configured_action_at_the_first_call_that_does_not_retrieve(call: RunCall) -> None:
    evaluator = run({"min_chunks": 2, "action_on_chunk_violation": "block"})
    evaluator.record(document())
    verdict = only(evaluator.record(call))

    assert ("block", "Retrieved chunks (1) below minimum (2)", {"chunk_count": 1, "limit": 2}) == said((verdict,))
    assert (Phase.MID_EXECUTION, DecisionStatus.EVALUATED, True) == (verdict.phase, verdict.decisive.status, verdict.stops)
    assert () == evaluator.record(call)


def test_a_tool_that_retrieves_settles_nothing() -> None:
    evaluator = run({"min_chunks": 2})
    evaluator.record(document())

    assert () == evaluator.record(ToolCall(name="vector_search", is_retrieval=True))


def test_a_count_that_is_high_enough_settles_in_silence() -> None:
    evaluator = run({"min_chunks": 1})
    evaluator.record(document())

    assert () == evaluator.record(BatchClosed())
    assert () == evaluator.passed(BatchClosed(), count=0)


def test_a_batch_settles_once() -> None:
    evaluator = run({"min_chunks": 3})
    evaluator.record(document())

    assert "min_chunks" == only(evaluator.record(LlmCall())).decisive.rule
    evaluator.record(document())
    assert () == evaluator.record(LlmCall())
    assert "Retrieval quality within policy (2 chunks)" == only(evaluator.finish(RunEnded())).decisive.reason


def test_counts_are_per_batch_where_one_is_named() -> None:
    evaluator = run({"max_chunks": 2})
    first = [evaluator.record(document(batch=BatchId("a"))) for _ in range(2)]
    second = [evaluator.record(document(batch=BatchId("b"))) for _ in range(3)]

    assert [(), ()] == first
    assert "Retrieved chunks (3) exceeds max (2)" == only(second[2]).decisive.reason


def test_an_empty_batch_that_is_closed_has_too_few_documents() -> None:
    verdict = only(run().record(BatchClosed(batch=BatchId("a"))))

    assert ("warn", "Retrieved chunks (0) below minimum (1)", {"chunk_count": 0, "limit": 1}) == said((verdict,))


def test_a_run_without_documents_has_too_few_at_its_end() -> None:
    evaluator = run()
    evaluator.record(LlmCall())
    verdict = only(evaluator.finish(RunEnded()))

    assert ("warn", "Retrieved chunks (0) below minimum (1)", {"chunk_count": 0, "limit": 1}) == said((verdict,))
    assert Phase.AFTER_WORKFLOW is verdict.phase


def test_an_open_batch_settles_at_the_end() -> None:
    evaluator = run({"min_chunks": 2, "action_on_chunk_violation": "block"})
    evaluator.record(document())
    verdict = only(evaluator.finish(RunEnded()))

    assert "Retrieved chunks (1) below minimum (2)" == verdict.decisive.reason
    assert verdict.stops


def test_an_empty_batch_is_not_reported_again_at_the_end() -> None:
    evaluator = run()
    evaluator.record(BatchClosed())

    assert ALLOW is only(evaluator.finish(RunEnded())).decisive.action


def test_read_literally_too_few_documents_stop_the_first_call() -> None:
    evaluator = run({"min_chunks": 2, "action_on_chunk_violation": "block"}, compat="literal")

    assert only(evaluator.record(document())).stops
    assert "Retrieval quality recorded after a block (2 chunks)" == only(evaluator.record(document())).decisive.reason
    assert () == evaluator.record(LlmCall())


def test_read_literally_too_many_documents_are_said_at_every_call() -> None:
    evaluator = run({"max_chunks": 1}, compat="literal")

    assert [False, True, True] == [bool(evaluator.record(document())) for _ in range(3)]


# --- passing, and the end ---


def test_a_call_that_passes_expands_to_its_count() -> None:
    evaluator = run()
    calls = [document() for _ in range(3)]

    assert [(), (), ()] == [evaluator.record(call) for call in calls]
    assert ("allow", "Retrieval quality within policy (3 chunks)", {"chunk_count": 3}) == said(
        evaluator.passed(calls[-1], count=evaluator.count)
    )


def test_the_end_of_a_run_that_kept_the_rules_is_an_allow() -> None:
    evaluator = run()
    evaluator.record(document())
    evaluator.record(document(batch=BatchId("b")))

    assert ("allow", "Retrieval quality within policy (2 chunks)", {"chunk_count": 2}) == said(evaluator.finish(RunEnded()))


DIVERSE = {"require_source_diversity": True, "action_on_low_relevance": "block", "action_on_chunk_violation": "block"}


def ended(rules: dict[str, Any], sources: str) -> tuple[str, str, dict[str, Any]]:
    evaluator = run(rules)
    for source in sources.split():
        evaluator.record(document(source=source.replace("-", "")))
    return said(evaluator.finish(RunEnded()))


def test_a_source_that_dominates_is_warned_about_at_the_end() -> None:
    reason = "Source 'doc.pdf' dominates at 75% (max 60%)"

    assert ("warn", reason, {"warnings": [reason]}) == ended(DIVERSE, "doc.pdf doc.pdf doc.pdf b")


def test_a_share_at_the_maximum_passes() -> None:
    assert "allow" == ended(DIVERSE, "a a a b b")[0]


def test_without_the_rule_nothing_is_said_about_shares() -> None:
    assert "allow" == ended({}, "a a a a b")[0]


def test_one_document_dominates() -> None:
    assert "Source 'a' dominates at 100% (max 60%)" == ended(DIVERSE, "a")[1]


def test_several_that_dominate_are_ordered_by_share_and_then_name() -> None:
    reason = ended({**DIVERSE, "max_single_source_ratio": 0.2}, "c c c b b b a a")[1]

    assert "Source 'b' dominates at 38% (max 20%); Source 'c' dominates at 38% (max 20%); Source 'a' dominates at 25% (max 20%)" == reason


def test_a_document_without_a_source_counts_as_one() -> None:
    assert "Source '' dominates at 67% (max 60%)" == ended(DIVERSE, "- - a")[1]


def test_before_a_run_the_rules_are_stored() -> None:
    verdict = only(run().begin())

    assert ("allow", "Retrieval rules stored", {}) == said((verdict,))
    assert Phase.BEFORE_WORKFLOW is verdict.phase
