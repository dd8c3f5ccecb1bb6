"""What a context makes of decisions: where they raise, how the run ends, and what is offered to the agent. Rows R17 to R28, G15 to G21."""

from __future__ import annotations

import asyncio
import math
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from contexts_at_work import violation_of

from evidentia.agents import Context, PolicyViolationError, get_current_context
from evidentia.agents.errors import InvalidRecordError, PolicyInvalidError
from evidentia.contracts.errors import InvalidFieldError
from evidentia.governance.governor import LocalGovernor
from evidentia.governance.memory_log import MemoryLog
from evidentia.testing.determinism import START, RepeatableEntropy, SteppingClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from evidentia.contracts.access import Principal
    from evidentia.contracts.judging import Judgement, JudgeRequest


def policy(name: str = "Guard", category: str = "retrieval", **rules: Any) -> dict[str, Any]:
    return {"name": name, "category": category, "rules": rules}


STRICT = policy(blocked_sources=["bad"], allowed_collections=["kb"])
CLAIMS = policy(
    "Claims",
    "grounding",
    min_citations=1,
    abstention_threshold=0.5,
    abstention_response="I do not know.",
    action_on_violation="block",
)
WARNING_CLAIMS = {**CLAIMS, "rules": {**CLAIMS["rules"], "action_on_violation": "warn"}}


def good(ctx: Context, **fields: Any) -> None:
    ctx.record_retrieval_result(**{"relevance_score": 0.9, "source": "a.pdf", "collection": "kb", "age_days": 1, **fields})


def actions(ctx: Context) -> list[str]:
    return [decision.action.value for decision in ctx.decisions]


def test_r17_a_warning_is_recorded_and_offered_once_and_the_run_goes_on() -> None:
    with Context(agent_name="a", policies=[STRICT]) as ctx:
        good(ctx, relevance_score=0.41)
        (warning,) = ctx.take_feedback()
        assert [] == ctx.take_feedback()
        good(ctx, relevance_score=0.5)
        text = ctx.feedback_text()
        assert "" == ctx.feedback_text()

    assert ("Retrieval relevance (0.41) below threshold (0.70)", "Guard") == (warning.reason, warning.policy_name)
    assert "- Guard: Retrieval relevance (0.50) below threshold (0.70)" == text
    assert "success" == ctx.status
    assert ["allow", "warn", "warn", "allow"] == actions(ctx)


def test_r17_a_provisional_count_is_not_offered() -> None:
    with Context(agent_name="a", policies=[policy(min_chunks=3)]) as ctx:
        good(ctx, collection="")
        assert [] == ctx.take_feedback()
        ctx.record_llm_call("m")
        assert ["Retrieved chunks (1) below minimum (3)"] == [warning.reason for warning in ctx.take_feedback()]

    assert "provisional" == ctx.decisions[1].status


def test_r18_a_run_begins_with_its_rules_stored() -> None:
    with Context(agent_name="a", policies=[STRICT, CLAIMS]) as ctx:
        stored = [(decision.phase, decision.action, decision.reason) for decision in ctx.decisions]
        ctx.record_grounding(citations=["x"])

    assert [("before_workflow", "allow", "Retrieval rules stored"), ("before_workflow", "allow", "Grounding rules stored")] == stored


def test_r19_an_unknown_age_is_recorded_as_unknown_or_acted_upon() -> None:
    with Context(agent_name="a", policies=[policy()]) as ctx:
        ctx.record_retrieval_result(relevance_score=0.9, source="a.pdf")
    error, _ = violation_of(lambda other: good(other, age_days=None), policies=[policy(action_on_unknown_age="block")])

    assert {"chunk_count": 1, "age_days": None, "unknown_age": True} == ctx.decisions[1].metadata
    assert "Source age is unknown (max 90 days)" == str(error)


@pytest.mark.parametrize(
    "created_at", [START - timedelta(days=400), (START - timedelta(days=400)).date(), date(2000, 1, 1), datetime(2001, 1, 1, tzinfo=UTC)]
)
def test_r19_the_age_can_come_from_when_a_document_was_made(created_at: Any) -> None:
    error, _ = violation_of(lambda ctx: good(ctx, age_days=None, created_at=created_at), policies=[policy()], _clock=SteppingClock())

    assert "exceeds max" in str(error)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"relevance_score": math.nan}, "relevance_score"),
        ({"relevance_score": math.inf}, "relevance_score"),
        ({"relevance_score": -math.inf}, "relevance_score"),
        ({"relevance_score": "0.9"}, "relevance_score"),
        ({"relevance_score": True}, "relevance_score"),
        ({"relevance_score": None}, "relevance_score"),
        ({"age_days": -1}, "age_days"),
        ({"age_days": -0.5}, "age_days"),
        ({"age_days": math.nan}, "age_days"),
        ({"age_days": "3"}, "age_days"),
        ({"age_days": 10**40}, "age_days"),
        ({"source": None}, "source"),
        ({"source": b"a"}, "source"),
        ({"source": "\ud800"}, "source"),
        ({"collection": 3}, "collection"),
        ({"chunk_id": None}, "chunk_id"),
        ({"batch_id": 7}, "batch_id"),
        ({"created_at": "yesterday", "age_days": None}, "created_at"),
        ({"created_at": datetime(2020, 1, 1), "age_days": None}, "created_at"),  # noqa: DTZ001 - that is what is refused
        ({"created_at": datetime(2999, 1, 1, tzinfo=UTC), "age_days": None}, "created_at"),
        ({"created_at": date(2020, 1, 1), "age_days": 3}, "created_at"),
    ],
)
def test_r20_what_cannot_be_compared_is_refused_and_nothing_is_recorded(fields: dict[str, Any], field: str) -> None:
    with Context(agent_name="a", policies=[policy(min_chunks=0)]) as ctx:
        with pytest.raises(ValueError, match=field) as caught:
            good(ctx, **fields)
        recorded = [decision.kind for decision in ctx.decisions]

    assert isinstance(caught.value, InvalidFieldError)
    assert field == caught.value.field
    assert ["run"] == recorded
    assert "success" == ctx.status


def test_r20_numbers_of_other_libraries_are_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    with Context(agent_name="a", policies=[policy()]) as ctx:
        good(ctx, relevance_score=numpy.float32(0.5), age_days=numpy.int64(3))
        good(ctx, relevance_score=1, age_days=2.5)

    assert [0.5, 1.0] == [decision.inputs["relevance_score"] for decision in ctx.decisions if decision.kind == "retrieval"]


def test_r21_a_score_outside_its_range_is_compared_and_flagged() -> None:
    with Context(agent_name="a", policies=[policy()]) as ctx:
        good(ctx, relevance_score=14.2)
        good(ctx, relevance_score=-0.2)

    assert ["allow", "warn"] == actions(ctx)[1:3]
    assert all(decision.metadata["score_out_of_range"] for decision in ctx.decisions[1:3])


def test_r25_several_policies_are_all_evaluated_and_the_error_carries_all() -> None:
    late = policy("Late", blocked_sources=["bad"]) | {"priority": 200}

    error, ctx = violation_of(lambda ctx: good(ctx, source="bad", relevance_score=0.2), policies=[late, policy("Early"), STRICT])

    assert "Retrieved from blocked source 'bad'" == str(error)
    said = [(evaluation.policy_name, evaluation.rule, evaluation.action) for evaluation in error.decision.evaluations]
    assert [
        ("Early", "min_relevance_score", "warn"),
        ("Guard", "min_relevance_score", "warn"),
        ("Guard", "blocked_sources", "block"),
        ("Late", "min_relevance_score", "warn"),
        ("Late", "blocked_sources", "block"),
    ] == said
    assert "Guard" == error.decision.policy_name
    assert error.decision == ctx.decisions[1]


def test_r26_a_run_that_is_not_enforced_decides_and_writes_and_never_raises() -> None:
    with Context(agent_name="a", enforce_policy=False, policies=[STRICT, CLAIMS]) as ctx:
        good(ctx, source="bad")

    assert ("success", False) == (ctx.status, ctx.should_stop)
    assert "block" in actions(ctx)
    assert [] == ctx.take_feedback()
    assert {False} == {decision.is_enforced for decision in ctx.decisions if decision.action == "block"}
    assert {"shadow"} == {decision.status for decision in ctx.decisions if decision.action == "block"}


def test_r26_a_policy_in_shadow_stops_nothing() -> None:
    with Context(agent_name="a", policies=[{**STRICT, "enforcement": "shadow"}]) as ctx:
        good(ctx, source="bad")

    assert "success" == ctx.status


def test_r27_a_block_that_is_caught_leaves_the_run_blocked_and_later_calls_are_still_decided_about() -> None:
    with Context(agent_name="a", policies=[STRICT]) as ctx:
        with pytest.raises(PolicyViolationError):
            good(ctx, source="bad")
        assert ("blocked", True) == (ctx.status, ctx.should_stop)
        assert "Retrieved from blocked source 'bad'" == ctx.stop_reason
        good(ctx)
        with pytest.raises(PolicyViolationError, match="internal-hr"):
            good(ctx, collection="internal-hr")

    assert "blocked" == ctx.status
    assert ["allow", "block", "allow", "block", "allow"] == actions(ctx)


def test_r27_the_end_of_a_blocked_run_is_written_and_not_raised() -> None:
    with Context(agent_name="a", policies=[STRICT, CLAIMS]) as ctx, pytest.raises(PolicyViolationError):
        good(ctx, source="bad")

    last = ctx.decisions[-1]
    assert ("after_workflow", "block", False) == (last.phase, last.action, last.is_enforced)


def _sync(work: Callable[[Context], None], **fields: Any) -> None:
    with Context(agent_name="a", **fields) as ctx:
        work(ctx)


def _async(work: Callable[[Context], None], **fields: Any) -> None:
    async def run() -> None:
        async with Context(agent_name="a", **fields) as ctx:
            work(ctx)

    asyncio.run(run())


@pytest.mark.parametrize("run", [_sync, _async])
def test_r28_a_block_raises_at_the_call_in_both(run: Callable[..., None]) -> None:
    reached = []

    def work(ctx: Context) -> None:
        good(ctx)
        reached.append(1)
        good(ctx, source="bad")
        reached.append(2)

    with pytest.raises(PolicyViolationError):
        run(work, policies=[STRICT])

    assert [1] == reached


def test_g15_the_last_confidence_counts() -> None:
    def work(ctx: Context) -> None:
        ctx.record_grounding(citations=["x"], output_confidence=0.9)
        ctx.record_grounding(output_confidence=0.42)
        ctx.record_grounding()

    error, ctx = violation_of(work, policies=[CLAIMS])

    assert "Output confidence (0.42) below abstention threshold (0.5)" == str(error)
    assert "blocked" == ctx.status


def test_g16_the_abstention_response_is_on_the_error_and_the_decision() -> None:
    def work(ctx: Context) -> None:
        ctx.set_result("guess")
        ctx.record_grounding(citations=["x"], output_confidence=0.1)

    error, ctx = violation_of(work, policies=[CLAIMS], on_abstain="replace")

    assert "I do not know." == error.abstention_response == error.decision.abstention_response
    assert "I do not know." == ctx.result


@pytest.mark.parametrize(("on_abstain", "result"), [("keep", "guess"), ("replace", "I do not know.")])
def test_g16_a_warning_replaces_the_result_only_where_it_is_wanted(on_abstain: str, result: str) -> None:
    with Context("a", policies=[WARNING_CLAIMS], on_abstain=on_abstain) as ctx:
        ctx.set_result("guess")
        ctx.record_grounding(citations=["x"], output_confidence=0.1)

    assert (result, "success") == (ctx.result, ctx.status)
    assert "I do not know." == ctx.abstention_response


def test_g17_a_run_that_passes_says_so() -> None:
    with Context("a", policies=[CLAIMS]) as ctx:
        ctx.record_grounding(citations=["x", "y", "z"])

    assert ("Grounding audit passed (3 citations)", {"citation_count": 3}) == (ctx.decisions[-1].reason, ctx.decisions[-1].metadata)


def test_g18_a_run_that_says_nothing_about_grounding_is_audited_all_the_same() -> None:
    with pytest.raises(PolicyViolationError, match=r"Citations \(0\) below minimum \(1\)"), Context("a", policies=[CLAIMS]):
        pass


def test_g20_a_rejected_call_is_in_the_log() -> None:
    strict = policy("Claims", "grounding", min_grounding_score=0.8, action_on_violation="block")
    scores = [0.9, 0.95, 0.2, 0.99, 0.9]

    error, _ = violation_of(lambda ctx: ctx.record_grounding(grounding_scores=scores, citations=["x"]), policies=[strict])

    assert scores == list(error.decision.inputs["grounding_scores"])


def test_g21_the_end_never_hides_an_exception() -> None:
    with pytest.raises(KeyError, match="mine"), Context("a", policies=[CLAIMS]) as ctx:
        raise KeyError("mine")

    assert "error" == ctx.status
    assert ("block", False) == (ctx.decisions[-1].action, ctx.decisions[-1].is_enforced)


def test_what_is_decided_at_the_end_waits_for_it() -> None:
    before: list[Any] = []

    def work(ctx: Context) -> None:
        good(ctx)
        good(ctx, source="bad")
        good(ctx)
        before.extend(ctx.decisions)

    error, ctx = violation_of(work, policies=[STRICT], mid_execution_governance=False)

    assert 1 == len(before)
    assert ("Retrieved from blocked source 'bad'", "blocked") == (str(error), ctx.status)
    assert ["allow", "allow", "block", "allow", "allow"] == actions(ctx)


def test_what_is_decided_at_the_end_decides_the_same() -> None:
    def reasons(mid: bool | None) -> list[str]:  # noqa: FBT001 - the switch under test
        with Context("a", policies=[policy(min_chunks=2), WARNING_CLAIMS], mid_execution_governance=mid) as ctx:
            good(ctx, collection="", relevance_score=0.2)
            ctx.record_llm_call("m", response="Yes.")
            ctx.record_grounding(grounding_scores=[0.2])
        return [decision.reason for decision in ctx.decisions]

    assert reasons(None) == reasons(False)


def test_a_run_is_entered_once_and_nothing_is_recorded_outside_of_it() -> None:
    ctx = Context("a")
    with pytest.raises(InvalidRecordError, match="with"):
        good(ctx)
    with pytest.raises(InvalidRecordError):
        ctx.set_tag("k", "v")
    with ctx:
        good(ctx)
    for act in (lambda: good(ctx), lambda: ctx.record_step("late"), lambda: ctx.set_tag("k", "v"), ctx.__enter__):
        with pytest.raises(InvalidRecordError):
            act()


def test_bad_policies_and_options_are_refused_before_the_run() -> None:
    with pytest.raises(PolicyInvalidError, match="min_chunk"), Context("a", policies=[policy(min_chunk=2)]):
        pass
    with pytest.raises(InvalidRecordError, match="on_abstain"):
        Context("a", on_abstain="sometimes")
    with pytest.raises(InvalidRecordError, match="base"), Context("a", base=7):  # type: ignore[arg-type]  # that is what is refused
        pass
    assert get_current_context() is None


def test_a_run_can_be_asked_to_stop() -> None:
    with Context("a") as ctx:
        assert (False, "") == (ctx.should_stop, ctx.stop_reason)
        ctx.request_stop("budget spent")
        assert (True, "budget spent") == (ctx.should_stop, ctx.stop_reason)

    assert "success" == ctx.status


def test_where_a_run_stands() -> None:
    with Context("a", policies=[STRICT]) as ctx:
        assert ctx.check_policy().allowed
        good(ctx, relevance_score=0.3)
        warned = ctx.check_policy()
        with pytest.raises(PolicyViolationError):
            good(ctx, source="bad")
        blocked = ctx.check_policy()

    assert ("warn", True) == (warned.action, warned.allowed)
    assert ("block", True, {"blocked_source": "bad"}) == (blocked.action, blocked.blocked, blocked.metadata)


def test_two_runs_have_two_ids_and_a_nested_one_names_its_parent() -> None:
    with Context("outer") as outer, Context("inner") as inner:
        pass

    assert outer.run_id != inner.run_id
    assert outer.run_id == inner.facts.parent_run_id
    assert outer.facts.parent_run_id is None


class BrokenJudge:
    """A judge that breaks its promise in a way that nobody expects."""

    def judge(self, request: JudgeRequest, *, budget_ms: int) -> Judgement:
        """Raise."""
        raise ZeroDivisionError(request.output, budget_ms)

    def text_of(self, citation: str, *, principal: Principal) -> str | None:
        """Return a text."""
        assert principal.is_owner
        return citation

    def governor(self, *, durable: bool = False) -> LocalGovernor:
        """Return who governs."""
        log = MemoryLog(entropy=RepeatableEntropy())
        return LocalGovernor(None, log, clock=SteppingClock(), entropy=RepeatableEntropy(), judge=self, texts=self, is_durable=durable)


def test_g21_whatever_goes_wrong_at_the_end_hides_no_exception() -> None:
    judged = policy("Judged", "grounding", llm_grounding_check=True, llm_grounding_phase="after_workflow")
    ctx = Context("a", base=BrokenJudge(), policies=[judged])
    ctx.set_result("said")
    with pytest.raises(KeyError, match="mine") as caught, ctx:
        raise KeyError("mine")
    with pytest.raises(ZeroDivisionError), Context("a", base=BrokenJudge(), policies=[judged]) as other:
        other.set_result("said")

    assert "could not be closed" in caught.value.__notes__[0]
    assert ["error", "error"] == [ctx.status, other.status]
    assert get_current_context() is None
