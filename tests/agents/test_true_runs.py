"""Status, lines and errors of a run say what happened: what stopped it, what is over its limit, what a judge gave."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import evidentia
from evidentia.agents import Context, InvalidRecordError, PolicyInvalidError, PolicyViolationError, auto_approve
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.runs import GroundingEntry, RunEnded, RunStatus
from evidentia.governance.decision_queries import trace
from evidentia.governance.decision_replay import replay
from evidentia.wiring.governance_runtime import open_control

if TYPE_CHECKING:
    from pathlib import Path

CITED = {"name": "cited", "category": "grounding", "rules": {"min_citations": 1, "action_on_violation": "block"}}
FEW: dict[str, Any] = {"name": "few", "category": "retrieval", "rules": {"max_chunks": 2, "blocked_sources": ["bad"]}}


def judged_policy(**rules: Any) -> dict[str, Any]:
    wanted = {"llm_grounding_check": True, "llm_grounding_model": "local:words", "min_citations": 0, **rules}
    return {"name": "judged", "category": "grounding", "rules": wanted}


def document(ctx: Context, source: str = "a", score: float = 0.9) -> None:
    ctx.record_retrieval_result(relevance_score=score, source=source, collection="kb", age_days=1)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    evidentia.connect(tmp_path / "base", init=True).close()
    return tmp_path / "base"


# --- status ---


@pytest.mark.parametrize(("approve", "status"), [(None, RunStatus.BLOCKED), (auto_approve, RunStatus.SUCCESS)])
def test_a_run_that_is_stopped_at_its_end_is_stored_as_blocked(base: Path, approve: Any, status: RunStatus) -> None:
    ctx = Context("a", base=base, policies=[CITED], on_policy_block=approve)
    if approve is None:
        with pytest.raises(PolicyViolationError, match="Citations"), ctx:
            pass
    else:
        with ctx:
            pass
    ctx.flush()
    with open_control(base) as control:
        ends = [each.entry.call for each in control.log.records() if isinstance(each.entry.call, RunEnded)]
        summary = trace(control.log, ctx.facts.run_id).summary
        report = replay(control.log)

    assert [RunStatus.BLOCKED] == [end.status for end in ends]
    assert (status, status) == (summary.status, ctx.status)
    assert report.ok, report.mismatches


# --- lines ---


def test_after_a_block_nothing_is_within_policy() -> None:
    judged = {"name": "grounded", "category": "grounding", "rules": {"min_citations": 0}}
    with Context("a", policies=[FEW, judged]) as ctx:
        with pytest.raises(PolicyViolationError):
            document(ctx, "bad")
        document(ctx)
        ctx.record_grounding(grounding_scores=[0.9], citations=["a"])
    after = [each.reason for each in ctx.decisions if each.phase != "before_workflow"]

    assert [
        "Retrieved from blocked source 'bad'",
        "Retrieval quality recorded after a block (2 chunks)",
        "Grounding scores recorded after a block (1 scores)",
        "Retrieval quality recorded after a block (2 chunks)",
        "Grounding audit passed (1 citations)",
    ] == after


@pytest.mark.parametrize("how", [{"enforce_policy": False}, {"on_policy_block": auto_approve}, {"mid_execution_governance": False}])
def test_no_line_after_a_block_says_within_policy_however_it_was_taken(how: dict[str, Any]) -> None:
    ctx = Context("a", policies=[FEW], **how)
    try:
        with ctx:
            document(ctx, "bad")
            document(ctx)
    except PolicyViolationError:
        pass

    assert not any("within policy" in each.reason for each in ctx.decisions)


def test_over_the_maximum_nothing_is_within_policy() -> None:
    with Context("a", policies=[FEW]) as ctx:
        for _ in range(4):
            document(ctx)
        offered = [each.reason for each in ctx.take_feedback()]
    said = [(each.action.value, each.reason) for each in ctx.decisions if each.phase != "before_workflow"]

    assert [
        ("allow", "Retrieval quality within policy (1 chunks)"),
        ("allow", "Retrieval quality within policy (2 chunks)"),
        ("warn", "Retrieved chunks (3) exceeds max (2)"),
        ("allow", "Retrieved chunks (4) exceeds max (2)"),
        ("allow", "Retrieved chunks (4) exceeds max (2)"),
    ] == said
    assert ["Retrieved chunks (3) exceeds max (2)"] == offered


def test_the_log_of_an_enforced_run_comes_out_again(base: Path) -> None:
    with Context("a", base=base, policies=[FEW, judged_policy()]) as ctx:
        with pytest.raises(PolicyViolationError):
            document(ctx, "bad")
        for _ in range(3):
            document(ctx)
        ctx.record_llm_call("m", response="Keys expire.")
        ctx.record_grounding(grounding_scores=[0.9], citations=["a"], texts={"a": "Keys expire."})
    ctx.flush()
    with open_control(base) as control:
        report = replay(control.log)

    assert report.ok, report.mismatches


# --- errors ---


def test_the_error_carries_every_decision_that_stopped_the_call() -> None:
    blocking = {"name": "sources", "category": "retrieval", "rules": {"min_chunks": 1, "action_on_chunk_violation": "block"}}
    with pytest.raises(PolicyViolationError) as caught, Context("a", policies=[blocking, CITED]):
        pass

    assert [("retrieval", "min_chunks"), ("grounding", "min_citations")] == [(each.category, each.rule) for each in caught.value.decisions]
    assert caught.value.decision == caught.value.decisions[0]


def test_the_abstention_of_any_of_the_decisions_is_the_errors() -> None:
    blocking = {"name": "sources", "category": "retrieval", "rules": {"min_chunks": 1, "action_on_chunk_violation": "block"}}
    rules = {"abstention_threshold": 0.5, "abstention_response": "I cannot say.", "action_on_violation": "block", "min_citations": 0}
    abstaining = {"name": "abstains", "category": "grounding", "rules": rules}
    ctx = Context("a", policies=[blocking, abstaining])
    with pytest.raises(PolicyViolationError, match="Retrieved chunks") as caught, ctx:
        ctx.record_grounding(output_confidence=0.1)

    assert ["retrieval", "grounding"] == [each.category for each in caught.value.decisions]
    assert "I cannot say." == caught.value.abstention_response


# --- ranges ---


@pytest.mark.parametrize("confidence", [40, 1.01, -0.1, np.float32(40)])
def test_a_confidence_outside_its_range_is_refused_at_the_call(confidence: float) -> None:
    with Context("a", policies=[CITED], enforce_policy=False) as ctx:
        with pytest.raises(InvalidRecordError, match=r"output_confidence.*is not between 0 and 1"):
            ctx.record_grounding(citations=["a"], output_confidence=confidence)
        with pytest.raises(InvalidFieldError, match=r"output_confidence.*is not between 0 and 1"):
            ctx.record_call(GroundingEntry(output_confidence=40.0))
        kinds = {each.kind for each in ctx.decisions}

    assert {"run"} == kinds


@pytest.mark.parametrize("minimum", [75, 1.2, -0.5])
def test_a_minimum_outside_its_range_is_refused_at_the_policy(minimum: float) -> None:
    body = {"name": "p", "category": "retrieval", "rules": {"min_relevance_score": minimum}}
    with pytest.raises(PolicyInvalidError) as caught, Context("a", policies=[body]):
        pass

    assert ["policies[0].rules.min_relevance_score"] == [each.path for each in caught.value.problems]
    assert "is not between 0 and 1" in caught.value.problems[0].problem


# --- numbers of other libraries ---


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.longdouble])
def test_a_number_compares_as_it_prints(kind: Any) -> None:
    rules = {"min_relevance_score": 0.7, "min_chunks": 0}
    with Context("a", policies=[{"name": "p", "category": "retrieval", "rules": rules}]) as ctx:
        document(ctx, score=kind(0.7))
        document(ctx, score=kind(0.69))
        ctx.record_grounding(grounding_scores=[kind(0.7)], output_confidence=kind(0.7))
    found = [(each.action.value, each.inputs["relevance_score"]) for each in ctx.decisions if each.kind == "retrieval"]

    assert [("allow", 0.7), ("warn", 0.69)] == found


def test_whole_numbers_of_other_libraries_are_whole_numbers() -> None:
    one, three, seven = (kind(number) for kind, number in ((np.int64, 1), (np.int32, 3), (np.int64, 7)))
    numbers: dict[str, Any] = {"relevance_score": one, "age_days": three}
    tokens: dict[str, Any] = {"input_tokens": seven}
    with Context("a", policies=[FEW]) as ctx:
        ctx.record_retrieval_result(source="a", **numbers)
        ctx.record_llm_call("m", **tokens)
        (call,) = [each.inputs for each in ctx.decisions if each.kind == "retrieval"]

    assert (1.0, 3) == (call["relevance_score"], call["age_days"])


def test_an_agent_does_not_load_numpy() -> None:
    record = "with a.Context('a') as c: c.record_grounding(output_confidence=0.5)"
    script = f"import sys, evidentia.agents as a\n{record}\nprint('numpy' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout

    assert "False" == said.strip()


# --- a judge that lets pass ---


@pytest.mark.parametrize("phase", ["mid_execution", "after_workflow"])
def test_the_score_of_a_judge_that_lets_pass_is_told(phase: str) -> None:
    with Context("a", policies=[judged_policy(llm_grounding_phase=phase)]) as ctx:
        ctx.record_llm_call("m", response="Keys expire after 30 days.")
        ctx.record_grounding(grounding_scores=[0.9], citations=["Key Report"], texts={"Key Report": "Keys expire after 30 days."})
    said = next(each for each in ctx.decisions if each.phase == phase)

    first = {"mid_execution": "Grounding scores within policy (1 scores)", "after_workflow": "Grounding audit passed (1 citations)"}[phase]
    assert f"{first}; LLM grounding score (0.923) meets threshold (0.7)" == said.reason
    assert {"llm_score": 0.923, "threshold": 0.7, "model": "local:words"} == {
        name: said.metadata[name] for name in ("llm_score", "threshold", "model")
    }
