"""The policies to start from load unchanged, and each decides a run as written here."""

from __future__ import annotations

import pytest

from evidentia.contracts.judging import Judgement, JudgeStatus
from evidentia.contracts.runs import GroundingEntry, RetrievedDocument, RunEnded
from evidentia.policy.evaluator import PolicySet, RunEvaluator
from evidentia.policy.rules import check_policy
from evidentia.policy.templates import TEMPLATES

NAMES = list(TEMPLATES)


def trace(name: str, *calls: RetrievedDocument | GroundingEntry, judge_score: float | None = None) -> list[tuple[str, str]]:
    """Return what a run under one template is told, from its first call to its end."""
    policy = check_policy(TEMPLATES[name])
    evaluator = RunEvaluator(PolicySet.of([policy]))
    verdicts = [verdict for call in calls for verdict in evaluator.record(call)]
    judgement = Judgement(status=JudgeStatus.JUDGED, score=judge_score, model="gpt-4o-mini")
    verdicts += evaluator.finish(RunEnded(judgements={policy.policy_id: judgement} if judge_score is not None else {}))
    return [(verdict.decisive.action.value, verdict.decisive.reason) for verdict in verdicts]


def found(score: float, source: str, collection: str = "knowledge_base", age_days: int = 10) -> RetrievedDocument:
    return RetrievedDocument(relevance_score=score, source=source, collection=collection, age_days=age_days)


def test_there_are_some_for_every_category() -> None:
    assert ["retrieval"] * 4 + ["grounding"] * 7 + ["protocol"] * 2 == [body.category for body in TEMPLATES.values()]


@pytest.mark.parametrize("name", NAMES)
def test_a_template_keeps_every_rule_as_it_is_written(name: str) -> None:
    checked = check_policy(TEMPLATES[name]).body

    assert dict(TEMPLATES[name].rules) == {rule: checked.rules[rule] for rule in TEMPLATES[name].rules}
    assert name == checked.name
    assert checked.description


def test_standard_quality_gate() -> None:
    calls = [found(0.19, "a"), found(0.9, "b", age_days=366), found(0.9, "c", "internal-hr"), found(0.2, "d", "product-docs", 365)]

    assert [
        ("warn", "Retrieval relevance (0.19) below threshold (0.20)"),
        ("warn", "Source age (366 days) exceeds max (365 days)"),
        ("allow", "Retrieval quality within policy (4 chunks)"),
    ] == trace("Standard RAG Quality Gate", *calls)


def test_the_gate_stops_what_is_off_topic_and_a_run_that_is_left_without_evidence() -> None:
    assert [("block", "Retrieval relevance (0.06) below threshold (0.30)")] == trace("Off-topic Gate", found(0.06, "a"))[:1]
    assert [("block", "Retrieved chunks (0) below minimum (1)")] == trace("Off-topic Gate")
    assert [("allow", "Retrieval quality within policy (1 chunks)")] == trace("Off-topic Gate", found(0.8, "a"))


@pytest.mark.parametrize("name", NAMES)
def test_no_template_blocks_by_names_that_somebody_has_to_replace_first(name: str) -> None:
    assert not {"allowed_collections", "blocked_sources"} & set(TEMPLATES[name].rules)


@pytest.mark.parametrize("name", ["Standard RAG Quality Gate", "Lenient Monitoring"])
def test_a_recorded_run_with_a_right_answer_and_a_long_tail_is_not_blocked(name: str) -> None:
    """An answer of ten fragments holds one or two that are relevant; whoever records all of them did nothing wrong."""
    tail = [found(score, f"d{place}", "handbook", age_days=400) for place, score in enumerate((0.93, 0.41, 0.12, 0.05, 0.03, 0.01))]

    assert "block" not in {action for action, _ in trace(name, *tail)}


def test_strict_compliance_does_not_stop_at_its_first_document() -> None:
    calls = [found(0.9, "a", "compliance-docs"), found(0.9, "b", "compliance-docs")]

    assert [
        ("warn", "Retrieved chunks (1) below minimum (2)"),
        ("allow", "Retrieval quality within policy (2 chunks)"),
    ] == trace("Strict Compliance Retrieval", *calls)


def test_strict_compliance_blocks_and_still_only_warns_about_a_source_that_dominates() -> None:
    calls = [found(0.9, "a"), found(0.79, "archive", "x", 31), found(0.9, "a")]

    assert [
        ("warn", "Retrieved chunks (1) below minimum (2)"),
        ("block", "Retrieval relevance (0.79) below threshold (0.80)"),
        ("allow", "Retrieval quality recorded after a block (3 chunks)"),
        ("warn", "Source 'a' dominates at 67% (max 50%)"),
    ] == trace("Strict Compliance Retrieval", *calls)


def test_lenient_monitoring_never_blocks() -> None:
    assert [
        ("warn", "Retrieval relevance (0.41) below threshold (0.50)"),
        ("warn", "Source age (400 days) exceeds max (365 days)"),
        ("allow", "Retrieval quality within policy (2 chunks)"),
    ] == trace("Lenient Monitoring", found(0.41, "a"), found(0.9, "b", age_days=400))


def test_rag_pipeline() -> None:
    good = GroundingEntry(grounding_scores=(0.92, 0.87, 0.85, 0.35, 0.22), citations=("a", "b", "c"))
    weak = GroundingEntry(grounding_scores=(0.92, 0.6), citations=("a",))

    assert [("allow", "Grounding audit passed (3 citations)")] == trace("RAG Pipeline", good)
    assert ("block", "Grounding score (0.6) below threshold (0.7)") == trace("RAG Pipeline", weak)[0]


def test_lenient_average() -> None:
    entry = GroundingEntry(grounding_scores=(0.8, 0.44, 0.1), citations=("a",))

    assert [
        ("warn", "Average grounding score (0.62) below threshold (0.7)"),
        ("allow", "Grounding audit passed (1 citations)"),
    ] == trace("Lenient Average-Based", entry)


def test_strict_research_assistant() -> None:
    entry = GroundingEntry(grounding_scores=(0.9,), citations=("a",), unsupported_claims=("x",), output_confidence=0.42)

    reasons = [
        "Citations (1) below minimum (2)",
        "Unsupported claims (1) exceeds max (0)",
        "Output confidence (0.42) below abstention threshold (0.5)",
    ]
    assert [("block", "; ".join(reasons))] == trace("Strict Research Assistant", entry)


def test_medical_questions() -> None:
    entry = GroundingEntry(grounding_scores=(0.95, 0.9), citations=("a", "b", "c"), output_confidence=0.7)

    assert [("allow", "Grounding audit passed (3 citations)")] == trace("Medical Q&A", entry)


def test_lenient_rag_agent() -> None:
    entry = GroundingEntry(grounding_scores=(0.59,), unsupported_claims=("w", "x", "y", "z"))

    assert [
        ("warn", "Grounding score (0.59) below threshold (0.6)"),
        ("warn", "Citations (0) below minimum (1); Unsupported claims (4) exceeds max (3)"),
    ] == trace("Lenient RAG Agent", entry)


def test_citations_only() -> None:
    assert [("block", "Citations (0) below minimum (1); No source citations provided (grounding required)")] == trace(
        "Citation-Only Enforcement"
    )


def test_the_judge_at_the_end() -> None:
    entry = GroundingEntry(grounding_scores=(0.9,), citations=("a", "b"), output_confidence=0.9)

    assert [("block", "LLM grounding score (0.42) below threshold (0.7)")] == trace("LLM Grounding Judge", entry, judge_score=0.42)
    passed = "Grounding audit passed (2 citations); LLM grounding score (0.7) meets threshold (0.7)"
    assert [("allow", passed)] == trace("LLM Grounding Judge", entry, judge_score=0.7)
    assert [("allow", "LLM grounding check skipped (not_configured)")] == trace("LLM Grounding Judge", entry)
