"""What an agent records besides documents, what of it reaches the log, and where it stands in the trace."""

from __future__ import annotations

import hashlib
import math
import threading
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from contexts_at_work import calls_of, violation_of

from evidentia.agents import Context
from evidentia.agents.errors import InvalidRecordError
from evidentia.agents.record_values import RETRIEVAL_TOOLS, plain, retrieves
from evidentia.contracts.runs import GroundingEntry, LlmCall, RetrievedDocument, RunEnded, SpanClosed, SpanOpened, StepCall, ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable

TWO_OR_NONE: dict[str, Any] = {
    "name": "Two",
    "category": "retrieval",
    "rules": {"min_chunks": 2, "action_on_chunk_violation": "block", "min_relevance_score": 0.0},
}


def good(ctx: Context) -> None:
    ctx.record_retrieval_result(relevance_score=0.9, source="a.pdf", age_days=1)


def test_a_model_call_leaves_hashes_unless_content_is_captured() -> None:
    with Context("a") as ctx:
        ctx.record_llm_call("gpt", prompt="Why?", response="So.", input_tokens=5, output_tokens=1, cost=0.0025, duration_ms=12.5)
    with Context("a", capture_content=True) as open_one:
        open_one.record_llm_call("gpt", prompt="Why?", response="So.")

    call, captured = calls_of(ctx)[0], calls_of(open_one)[0]
    assert isinstance(call, LlmCall)
    assert isinstance(captured, LlmCall)
    assert (5, 1, 2_500, 12.5) == (call.input_tokens, call.output_tokens, call.cost_micro, call.duration_ms)
    assert hashlib.sha256(b"So.").hexdigest() == call.response_hash == call.attributes["response_hash"]
    assert "Why?" not in str(call.attributes)
    assert {"prompt": "Why?", "response": "So."} == captured.attributes


def test_inputs_outputs_and_thoughts_are_hashed_unless_content_is_captured() -> None:
    def record(ctx: Context) -> None:
        ctx.record_tool_call("calculator", {"secret": 1}, output="secret", sources=["a", "b"])
        ctx.record_step("secret step", output="secret")
        ctx.record_reasoning("think", thought="secret", evidence=["a"], conclusion="secret")
        ctx.record_decision("route", options=["x", "y"], chosen="x", reasoning="secret", confidence=0.5)

    with Context("a", inputs={"question": "secret"}) as ctx:
        record(ctx)
    with Context("a", inputs={"question": "secret"}, capture_content=True) as open_one:
        record(open_one)

    hidden = [call for call in calls_of(ctx) if isinstance(call, StepCall | ToolCall)]
    assert 5 == len(hidden)
    assert not any("secret" in str(call.attributes) for call in hidden)
    assert 5 == sum("secret" in str(call.attributes) for call in calls_of(open_one) if isinstance(call, StepCall | ToolCall))
    assert 2 == next(call.sources for call in hidden if isinstance(call, ToolCall))


def test_the_end_keeps_the_hash_of_the_result() -> None:
    with Context("a") as ctx:
        ctx.set_result({"b": 1, "a": [math.inf, object()]})

    end = calls_of(ctx)[-1]
    assert isinstance(end, RunEnded)
    assert hashlib.sha256(b'{"a":["inf","<object>"],"b":1}').hexdigest() == end.result_hash


def test_tags_metadata_and_scores_are_written_and_settle_no_count() -> None:
    with Context("a", policies=[TWO_OR_NONE]) as ctx:
        good(ctx)
        ctx.set_tag("team", "search")
        ctx.set_metadata("tries", 3)
        ctx.record_score("thumbs_up", True, comment="nice")
        ctx.record_policy_check("Budget", "warn", phase="post_execution", category="budget")
        good(ctx)
        ctx.record_step("answer")

    steps = [(call.name, call.attributes) for call in calls_of(ctx) if isinstance(call, StepCall)]
    assert [
        ("tag", {"team": "search"}),
        ("metadata", {"tries": 3}),
        ("score", {"name": "thumbs_up", "value": True, "comment": "nice"}),
        ("policy_check", {"policy_name": "Budget", "category": "budget", "priority": 100, "action": "warn", "phase": "after_workflow"}),
        ("answer", {}),
    ] == [(name, {key: value for key, value in attributes.items() if key != "duration_ms"}) for name, attributes in steps]
    assert "success" == ctx.status


def test_a_note_after_the_last_step_is_written_at_the_end() -> None:
    with Context("a") as ctx:
        ctx.set_tag("k", "v")

    assert [StepCall, RunEnded] == [type(call) for call in calls_of(ctx)]


@pytest.mark.parametrize(
    "settle",
    [
        lambda ctx: ctx.record_llm_call("m"),
        lambda ctx: ctx.record_step("answer"),
        lambda ctx: ctx.record_tool_call("calculator"),
        lambda ctx: ctx.record_grounding(),
        lambda ctx: ctx.record_data_access("db", records=3),
        lambda ctx: ctx.record_retry(1, reason="x"),
    ],
)
def test_a_call_that_does_not_retrieve_settles_the_count(settle: Callable[[Context], None]) -> None:
    reached = []

    def work(ctx: Context) -> None:
        good(ctx)
        ctx.record_tool_call("vector_search")
        ctx.record_tool_call("my own", retrieval=True)
        reached.append(True)
        settle(ctx)

    error, _ = violation_of(work, policies=[TWO_OR_NONE])

    assert [True] == reached
    assert ("Retrieved chunks (1) below minimum (2)", "mid_execution") == (str(error), error.decision.phase)


@pytest.mark.parametrize(
    "act",
    [
        lambda ctx: ctx.record_grounding(grounding_scores=[0.9, math.nan]),
        lambda ctx: ctx.record_grounding(grounding_scores="0.9"),
        lambda ctx: ctx.record_grounding(grounding_scores=0.9),
        lambda ctx: ctx.record_grounding(citations="Source A"),
        lambda ctx: ctx.record_grounding(citations=["a", 3]),
        lambda ctx: ctx.record_grounding(unsupported_claims=2),
        lambda ctx: ctx.record_grounding(output_confidence=math.inf),
        lambda ctx: ctx.record_llm_call("m", input_tokens=-1),
        lambda ctx: ctx.record_llm_call("m", cost=math.nan),
        lambda ctx: ctx.record_tool_call(3),
        lambda ctx: ctx.record_tool_call("t", duration_ms="long"),
        lambda ctx: ctx.record_policy_check("p", "maybe"),
        lambda ctx: ctx.record_policy_check("p", "warn", phase="sometime"),
        lambda ctx: ctx.record_decision("d", confidence="high"),
    ],
)
def test_bad_values_are_refused_and_nothing_is_recorded(act: Callable[[Context], None]) -> None:
    with Context("a") as ctx, pytest.raises(InvalidRecordError):
        act(ctx)

    assert [RunEnded] == [type(call) for call in calls_of(ctx)]


def test_r22_documents_stand_under_the_nearest_open_retrieval_span() -> None:
    with Context("a") as ctx:
        good(ctx)
        with ctx.tool("vector_search") as search:
            good(ctx)
            with ctx.tool("rerank", retrieval=False):
                good(ctx)
                ctx.record_llm_call("m")
            search.sources = 2
        good(ctx)

    calls = calls_of(ctx)
    opened = {call.name: call.opened for call in calls if isinstance(call, SpanOpened)}
    documents = [call.span for call in calls if isinstance(call, RetrievedDocument)]
    assert [None, opened["vector_search"], opened["vector_search"], None] == documents
    assert [opened["rerank"]] == [call.span for call in calls if isinstance(call, LlmCall)]
    closed = [(call.closed, call.sources) for call in calls if isinstance(call, SpanClosed)]
    assert [(opened["rerank"], None), (opened["vector_search"], 2)] == closed


def test_spans_can_be_entered_and_left_by_hand_in_any_order() -> None:
    with Context("a") as ctx:
        outer = ctx.enter_span("outer", retrieval=True)
        inner = ctx.enter_span("inner", retrieval=True)
        ctx.exit_span(outer)
        good(ctx)
        ctx.exit_span(inner, sources=1, error="broken")
        ctx.exit_span(inner)
        ctx.exit_span(None)
        good(ctx)
    ctx.exit_span(outer)

    assert ["s2", None] == [call.span for call in calls_of(ctx) if isinstance(call, RetrievedDocument)]
    assert [("s1", ""), ("s2", "broken")] == [(call.closed, call.error) for call in calls_of(ctx) if isinstance(call, SpanClosed)]


def test_a_span_that_fails_says_so() -> None:
    with pytest.raises(KeyError), Context("a") as ctx, ctx.tool("vector_search"):
        raise KeyError

    assert ["KeyError"] == [call.error for call in calls_of(ctx) if isinstance(call, SpanClosed)]


def test_threads_have_spans_of_their_own() -> None:
    together = threading.Barrier(3)

    def work(ctx: Context, name: str) -> None:
        with ctx.tool(name, retrieval=True):
            together.wait()
            ctx.record_retrieval_result(relevance_score=0.9, source=name)
            together.wait()

    with Context("a") as ctx:
        threads = [threading.Thread(target=work, args=(ctx, f"t{number}")) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    names = {call.opened: call.name for call in calls_of(ctx) if isinstance(call, SpanOpened)}
    found = [(names[call.span], call.source) for call in calls_of(ctx) if isinstance(call, RetrievedDocument) and call.span]
    assert [(name, name) for name in ("t0", "t1", "t2")] == sorted(found)


def test_the_judge_is_given_the_response_and_the_log_is_not() -> None:
    with Context("a") as ctx:
        ctx.record_llm_call("m", response="the words")
        ctx.set_output_text("final words")
        ctx.record_grounding(citations=["a"])

    encoded = msgspec.json.encode(calls_of(ctx))
    assert b"words" not in encoded
    assert isinstance(calls_of(ctx)[1], GroundingEntry)


def test_tools_that_retrieve_are_known_by_name_in_any_spelling() -> None:
    assert all(retrieves(name, None) for name in RETRIEVAL_TOOLS)
    assert retrieves("Vector-Search", None)
    assert retrieves("source retrieval", None)
    assert not retrieves("calculator", None)
    assert (True, False) == (retrieves("calculator", True), retrieves("vector_search", False))


def test_whatever_an_agent_holds_becomes_json() -> None:
    loop: list[Any] = []
    loop.append(loop)
    held = {1: {2, 3}, "\ud800": "\udfff", "big": 2**70, "nan": math.nan, "loop": loop, "none": None, "yes": True}

    encoded = msgspec.json.encode(plain(held))

    assert b'"1":[2,3]' in encoded
    assert b"..." in encoded
    assert str(2**70).encode() in encoded
