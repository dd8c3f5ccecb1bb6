"""The table of the grounding rules, row by row: reasons and metadata to the letter."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

from evidentia.contracts.decisions import DecisionStatus
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.judging import Judgement, JudgeStatus
from evidentia.contracts.policies import PolicyAction
from evidentia.contracts.runs import GroundingEntry, Phase, RunEnded, RunStatus
from evidentia.policy.evaluator import PolicySet, RunEvaluator
from evidentia.policy.rules import check_policy, policy_id_of

if TYPE_CHECKING:
    from evidentia.contracts.decisions import Verdict

ALLOW, WARN, BLOCK = PolicyAction.ALLOW, PolicyAction.WARN, PolicyAction.BLOCK
NAME = "grounded"


def run(rules: dict[str, Any] | None = None, **body: Any) -> RunEvaluator:
    given = {"name": NAME, "category": "grounding", "rules": rules or {}, **body}
    return RunEvaluator(PolicySet.of([check_policy(given)]))


def scored(*scores: float, **fields: Any) -> GroundingEntry:
    return GroundingEntry(**{"grounding_scores": scores, "citations": ("a", "b", "c"), **fields})


def only(verdicts: tuple[Verdict, ...]) -> Verdict:
    (verdict,) = verdicts
    return verdict


def said(verdicts: tuple[Verdict, ...]) -> tuple[str, str, dict[str, Any]]:
    decisive = only(verdicts).decisive
    return decisive.action.value, decisive.reason, dict(decisive.metadata)


def judged(status: JudgeStatus, score: float | None = None) -> dict[str, Any]:
    return {"judgements": {policy_id_of(NAME): Judgement(status=status, score=score, model="gpt-4o-mini")}}


# --- scores at a call ---


def test_before_a_run_the_rules_are_stored() -> None:
    assert ("allow", "Grounding rules stored", {}) == said(run().begin())


@pytest.mark.parametrize("rules", [{}, {"score_relevance_floor": 0.5}])
def test_no_scores_pass_even_with_a_floor(rules: dict[str, Any]) -> None:
    evaluator = run(rules)

    assert () == evaluator.record(GroundingEntry())
    assert ("allow", "Grounding scores within policy (0 scores)", {"score_count": 0}) == said(
        evaluator.passed(GroundingEntry(), count=evaluator.count)
    )


def test_the_first_low_score_is_named_in_the_shortest_decimals() -> None:
    verdict = only(run().record(scored(0.9, 0.42, 0.1)))

    assert ("warn", "Grounding score (0.42) below threshold (0.7)", {"score": 0.42, "threshold": 0.7}) == said((verdict,))
    assert ("min_grounding_score", Phase.MID_EXECUTION) == (verdict.decisive.rule, verdict.phase)


def test_a_score_at_the_minimum_passes() -> None:
    assert () == run().record(scored(0.7, 1))


def test_whole_numbers_are_shown_as_decimals() -> None:
    assert "Grounding score (0.0) below threshold (1.0)" == said(run({"min_grounding_score": 1}).record(scored(0)))[1]


def test_a_violation_blocks_where_the_policy_says_so() -> None:
    assert only(run({"action_on_violation": "block"}).record(scored(0.1))).stops


TAIL = (0.92, 0.87, 0.85, 0.35, 0.22)


def test_a_floor_leaves_the_tail_out() -> None:
    assert () == run({"score_relevance_floor": 0.5}).record(scored(*TAIL))


def test_without_a_floor_the_tail_violates() -> None:
    assert "Grounding score (0.35) below threshold (0.7)" == said(run().record(scored(*TAIL)))[1]


def test_a_score_at_the_floor_is_kept() -> None:
    assert "Grounding score (0.5) below threshold (0.7)" == said(run({"score_relevance_floor": 0.5}).record(scored(0.9, 0.5)))[1]


def test_nothing_above_the_floor_is_a_violation() -> None:
    verdict = only(run({"score_relevance_floor": 0.5}).record(scored(0.4, 0.3)))

    reason = "No grounding scores above relevance floor — all retrieved results appear irrelevant"
    assert ("warn", reason, {"score_count": 2, "max_score": 0.4, "floor": 0.5}) == said((verdict,))
    assert "score_relevance_floor" == verdict.decisive.rule


def test_scores_that_reach_a_low_minimum_and_no_floor_violate() -> None:
    rules = {"score_relevance_floor": 0.9, "min_grounding_score": 0.1}

    assert "score_relevance_floor" == only(run(rules).record(scored(0.5))).decisive.rule


def test_a_low_average_is_a_violation() -> None:
    verdict = only(run({"score_eval_mode": "average"}).record(scored(0.9, 0.34)))

    expected = {"score": 0.62, "threshold": 0.7, "score_count": 2}
    assert ("warn", "Average grounding score (0.62) below threshold (0.7)", expected) == said((verdict,))


def test_an_average_is_not_lowered_by_how_floats_add() -> None:
    assert () == run({"score_eval_mode": "average"}).record(scored(0.7, 0.7, 0.7))


def test_an_average_is_taken_above_the_floor() -> None:
    assert () == run({"score_eval_mode": "average", "score_relevance_floor": 0.4}).record(scored(0.9, 0.6, 0.1))


def test_of_the_largest_few_the_largest_that_is_too_low_is_named() -> None:
    rules = {"score_eval_mode": "top_n", "score_top_n": 3}

    assert "Grounding score (0.6) below threshold (0.7)" == said(run(rules).record(scored(0.1, 0.5, 0.6, 0.9)))[1]


def test_scores_beyond_the_largest_few_are_not_asked() -> None:
    assert () == run({"score_eval_mode": "top_n", "score_top_n": 2}).record(scored(0.1, 0.8, 0.9))


def test_fewer_scores_than_asked_are_all_asked() -> None:
    assert "min_grounding_score" == only(run({"score_eval_mode": "top_n"}).record(scored(0.1))).decisive.rule


def test_only_the_scores_of_the_call_count() -> None:
    evaluator = run()

    assert WARN is only(evaluator.record(scored(0.1))).decisive.action
    assert () == evaluator.record(scored(0.9))


@pytest.mark.parametrize(
    "fields", [{"grounding_scores": (0.9, math.nan)}, {"grounding_scores": (math.inf,)}, {"output_confidence": math.nan}]
)
def test_numbers_that_compare_with_nothing_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidFieldError, match=r"grounding_scores\[|output_confidence"):
        run().record(GroundingEntry(**fields))


def test_scores_of_another_type_are_refused_by_name() -> None:
    with pytest.raises(InvalidFieldError, match=r"grounding_scores\[1\]"):
        run().record(GroundingEntry(grounding_scores=(0.9, "x")))  # type: ignore[arg-type]


def test_scores_outside_their_range_are_flagged() -> None:
    evaluator = run()

    assert {"score": -0.5, "threshold": 0.7, "score_out_of_range": True} == said(evaluator.record(scored(-0.5)))[2]
    assert {"score_count": 1, "score_out_of_range": True} == said(evaluator.passed(scored(1.5), count=1))[2]


# --- the end ---


def ended(rules: dict[str, Any], *entries: GroundingEntry, **end: Any) -> Verdict:
    evaluator = run(rules)
    for entry in entries:
        evaluator.record(entry)
    return only(evaluator.finish(RunEnded(**end)))


def test_a_run_that_kept_the_rules_says_how_many_citations() -> None:
    verdict = ended({}, scored(0.9))

    assert ("allow", "Grounding audit passed (3 citations)", {"citation_count": 3}) == said((verdict,))
    assert Phase.AFTER_WORKFLOW is verdict.phase


def test_a_run_that_recorded_no_grounding_is_audited_all_the_same() -> None:
    expected = {"warnings": ["Citations (0) below minimum (1)"], "citation_count": 0}

    assert ("warn", "Citations (0) below minimum (1)", expected) == said((ended({}),))


def test_missing_and_required_citations_are_both_said() -> None:
    verdict = ended({"require_source_grounding": True, "action_on_violation": "block"})

    reasons = ["Citations (0) below minimum (1)", "No source citations provided (grounding required)"]
    assert ("block", "; ".join(reasons), {"warnings": reasons, "citation_count": 0}) == said((verdict,))
    assert [("min_citations", reasons[0]), ("require_source_grounding", reasons[1])] == [(e.rule, e.reason) for e in verdict.evaluations]
    assert verdict.stops


def test_everything_that_is_violated_is_joined_in_its_order() -> None:
    rules = {"require_source_grounding": True, "max_unsupported_claims": 0, "abstention_threshold": 0.5, "llm_grounding_check": True}
    entry = GroundingEntry(unsupported_claims=("x", "y"), output_confidence=0.42)
    verdict = ended(rules | {"llm_grounding_phase": "after_workflow"}, entry, **judged(JudgeStatus.JUDGED, 0.3))

    assert [
        "Citations (0) below minimum (1)",
        "No source citations provided (grounding required)",
        "Unsupported claims (2) exceeds max (0)",
        "Output confidence (0.42) below abstention threshold (0.5)",
        "LLM grounding score (0.3) below threshold (0.7)",
    ] == verdict.decisive.metadata["warnings"]
    assert "; ".join(verdict.decisive.metadata["warnings"]) == verdict.decisive.reason


def test_citations_of_all_calls_add_up() -> None:
    assert (
        "Grounding audit passed (6 citations)"
        == ended({"min_citations": 6}, scored(0.9), scored(0.9, citations=("d", "e", "f"))).decisive.reason
    )


def test_citations_given_twice_count_twice_and_the_metadata_says_so() -> None:
    verdict = ended({"min_citations": 2}, scored(citations=("a", "a")))

    assert ("allow", "Grounding audit passed (2 citations)", {"citation_count": 2, "unique_citation_count": 1}) == said((verdict,))


def test_citations_given_twice_can_count_once() -> None:
    verdict = ended({"min_citations": 2, "unique_citations": True}, scored(citations=("a", "a")))

    assert "Citations (1) below minimum (2)" == verdict.decisive.reason


def test_policies_that_count_citations_otherwise_each_say_their_own_count() -> None:
    bodies = [{"name": name, "category": "grounding", "rules": {"unique_citations": name == "b"}} for name in "ab"]
    evaluator = RunEvaluator(PolicySet.of([check_policy(body) for body in bodies]))
    evaluator.record(scored(citations=("x", "x")))
    verdict = only(evaluator.finish(RunEnded()))

    assert ["Grounding audit passed (2 citations)", "Grounding audit passed (1 citations)"] == [e.reason for e in verdict.evaluations]


@pytest.mark.parametrize(("limit", "action"), [(None, ALLOW), (2, ALLOW), (1, WARN), (0, WARN)])
def test_unsupported_claims_are_limited_where_a_limit_is_set(limit: int | None, action: PolicyAction) -> None:
    assert action is ended({"max_unsupported_claims": limit}, scored(unsupported_claims=("x", "y"))).decisive.action


def test_no_confidence_asks_for_no_abstention() -> None:
    assert ALLOW is ended({"abstention_threshold": 0.5}, scored()).decisive.action


def test_the_last_confidence_counts() -> None:
    entries = [scored(output_confidence=0.2), scored(output_confidence=0.8), scored()]

    assert ALLOW is ended({"abstention_threshold": 0.5}, *entries).decisive.action


def test_the_least_confidence_counts_where_the_policy_says_so() -> None:
    entries = [scored(output_confidence=0.2), scored(output_confidence=0.8)]
    verdict = ended({"abstention_threshold": 0.5, "confidence_mode": "min"}, *entries)

    assert "Output confidence (0.2) below abstention threshold (0.5)" == verdict.decisive.reason


@pytest.mark.parametrize("action", ["warn", "block"])
def test_an_abstention_brings_its_response_along(action: str) -> None:
    rules = {"abstention_threshold": 0.5, "abstention_response": "I do not know.", "action_on_violation": action}
    verdict = ended(rules, scored(output_confidence=0.42))

    assert ("I do not know.", action) == (verdict.abstention_response, verdict.decisive.action.value)


def test_another_violation_brings_no_response() -> None:
    assert ended({"abstention_threshold": 0.5, "abstention_response": "No."}).abstention_response is None


@pytest.mark.parametrize("status", [RunStatus.ERROR, RunStatus.BLOCKED])
def test_after_a_failure_the_audit_is_written_and_not_enforced(status: RunStatus) -> None:
    verdict = ended({"action_on_violation": "block"}, status=status)

    assert (BLOCK, False, False) == (verdict.decisive.action, verdict.is_enforced, verdict.stops)


def test_after_a_block_the_audit_is_written_and_not_enforced() -> None:
    verdict = ended({"action_on_violation": "block", "min_citations": 9}, scored(0.1))

    assert (BLOCK, False) == (verdict.decisive.action, verdict.is_enforced)


def test_a_rejected_call_still_counts_for_the_audit() -> None:
    assert 3 == ended({}, scored(0.1)).decisive.metadata["citation_count"]


def test_the_reserved_rule_has_no_effect_and_a_notice_says_so() -> None:
    verdict = only(run({"factual_consistency_check": True}).begin())

    assert "Grounding rules stored" == verdict.decisive.reason
    assert [("factual_consistency_check", DecisionStatus.BYPASSED), ("", DecisionStatus.EVALUATED)] == [
        (e.rule, e.status) for e in verdict.evaluations
    ]


# --- the judge ---

JUDGE = {"llm_grounding_check": True, "action_on_violation": "block"}


@pytest.mark.parametrize(
    ("phase", "at_call", "at_end"), [("mid_execution", True, False), ("after_workflow", False, True), ("both", True, True)]
)
def test_a_judge_is_asked_in_its_phase(phase: str, at_call: bool, at_end: bool) -> None:  # noqa: FBT001 - of the table
    evaluator = run({**JUDGE, "llm_grounding_phase": phase, "llm_grounding_criteria": "be strict"})

    assert (at_call, at_end) == (bool(evaluator.asks(scored())), bool(evaluator.asks(RunEnded())))
    (ask,) = evaluator.asks(scored() if at_call else RunEnded())
    assert (policy_id_of(NAME), "gpt-4o-mini", "be strict", 0.7) == (ask.policy_id, ask.model, ask.criteria, ask.threshold)


def test_a_policy_without_a_judge_asks_nothing() -> None:
    assert () == run().asks(scored())


def test_a_low_judgement_is_a_violation() -> None:
    verdict = only(run(JUDGE).record(scored(0.9, **judged(JudgeStatus.JUDGED, 0.42))))

    expected = {"llm_score": 0.42, "threshold": 0.7, "model": "gpt-4o-mini"}
    assert ("block", "LLM grounding score (0.42) below threshold (0.7)", expected) == said((verdict,))


def test_a_judgement_at_the_threshold_passes() -> None:
    assert () == run(JUDGE).record(scored(0.9, **judged(JudgeStatus.JUDGED, 0.7)))


@pytest.mark.parametrize(("status", "score"), [(JudgeStatus.UNPARSEABLE, 0.5), (JudgeStatus.JUDGED, 7.0), (JudgeStatus.JUDGED, math.nan)])
def test_a_reply_that_cannot_be_read_warns_at_most(status: JudgeStatus, score: float) -> None:
    decisive = only(run(JUDGE).record(scored(0.9, **judged(status, score)))).decisive

    assert (WARN, DecisionStatus.BYPASSED) == (decisive.action, decisive.status)
    assert {"llm_score": 0.5, "threshold": 0.7, "model": "gpt-4o-mini", "judge_status": "unparseable"} == decisive.metadata


def test_a_reply_that_cannot_be_read_is_only_recorded_where_a_half_is_enough() -> None:
    decisive = only(run({**JUDGE, "llm_grounding_threshold": 0.5}).record(scored(0.9, **judged(JudgeStatus.UNPARSEABLE, 0.5)))).decisive

    assert (ALLOW, DecisionStatus.BYPASSED) == (decisive.action, decisive.status)


SKIPPED = [
    JudgeStatus.NO_KEY,
    JudgeStatus.UNAVAILABLE,
    JudgeStatus.TIMED_OUT,
    JudgeStatus.SOURCE_UNAVAILABLE,
    JudgeStatus.NOT_CONFIGURED,
]


@pytest.mark.parametrize("status", SKIPPED)
@pytest.mark.parametrize(("posture", "action"), [(None, ALLOW), ("open", ALLOW), ("degrade", WARN), ("closed", BLOCK)])
def test_a_judge_that_cannot_say_is_a_bypass_by_posture(status: JudgeStatus, posture: str | None, action: PolicyAction) -> None:
    body = {"posture": {"llm_grounding_check": posture}} if posture else {}
    verdict = only(run(JUDGE, **body).record(scored(0.9, **judged(status))))

    assert (action, f"LLM grounding check skipped ({status.value})") == (verdict.decisive.action, verdict.decisive.reason)
    assert DecisionStatus.BYPASSED is verdict.decisive.status
    assert (action is BLOCK) is verdict.stops


def test_a_judgement_that_is_missing_is_a_bypass() -> None:
    assert "LLM grounding check skipped (not_configured)" == said(run(JUDGE).record(scored(0.9)))[1]


def test_an_output_that_says_nothing_does_not_get_past_the_judge() -> None:
    closed = only(run(JUDGE, posture={"*": "closed"}).record(scored(0.9, **judged(JudgeStatus.NOTHING_TO_JUDGE))))
    by_default = only(run(JUDGE).record(scored(0.9, **judged(JudgeStatus.NOTHING_TO_JUDGE))))

    assert (BLOCK, DecisionStatus.BYPASSED) == (closed.decisive.action, closed.decisive.status)
    assert (ALLOW, DecisionStatus.BYPASSED) == (by_default.decisive.action, by_default.decisive.status)


def test_without_a_judge_the_thresholds_still_hold() -> None:
    verdict = only(run(JUDGE).record(scored(0.1, **judged(JudgeStatus.NO_KEY))))

    assert ["min_grounding_score", "llm_grounding_check"] == [each.rule for each in verdict.evaluations]
    assert (BLOCK, "min_grounding_score") == (verdict.decisive.action, verdict.decisive.rule)


def test_a_bypass_at_the_end_stands_beside_the_audit() -> None:
    verdict = ended({**JUDGE, "llm_grounding_phase": "after_workflow"}, scored(0.9), **judged(JudgeStatus.TIMED_OUT))

    assert ["llm_grounding_check", ""] == [each.rule for each in verdict.evaluations]
    assert (ALLOW, DecisionStatus.BYPASSED) == (verdict.decisive.action, verdict.decisive.status)


def test_a_violation_at_the_end_is_not_joined_with_a_bypass() -> None:
    verdict = ended({**JUDGE, "llm_grounding_phase": "after_workflow"}, **judged(JudgeStatus.UNPARSEABLE, 0.5))

    assert "Citations (0) below minimum (1)" == verdict.decisive.reason
    assert [BLOCK, WARN] == [each.action for each in verdict.evaluations]
