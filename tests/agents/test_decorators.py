"""Decorated functions are recorded in the current run, and are plain functions outside of any."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from contexts_at_work import calls_of

from evidentia.agents import Context, PolicyViolationError, decision, get_current_context, reasoning, retrieval, retry, step, tool
from evidentia.agents.errors import InvalidRecordError
from evidentia.contracts.runs import RetrievedDocument, SpanOpened, StepCall, ToolCall

GUARD: dict[str, Any] = {"name": "Guard", "category": "retrieval", "rules": {"blocked_sources": ["bad"], "min_chunks": 0}}


@tool()
def calculator(term: str) -> int:
    return len(term)


@tool("vector_search")
def find(query: str) -> list[str]:
    context = get_current_context()
    if context is not None:
        context.record_retrieval_result(relevance_score=0.9, source=query)
    return [query]


@retrieval(source="index")
async def look_up(query: str) -> list[dict[str, Any]]:
    return [{"relevance_score": 0.9, "source": query}, {"relevance_score": 0.8}]


@step("plan")
def plan(question: str) -> str:
    return question


@decision(options=["a", "b"])
def route(question: str) -> dict[str, Any]:
    return {"chosen": "a", "confidence": 0.5} if question else {}


@reasoning()
def think(question: str) -> str:
    return question


def test_outside_of_a_run_they_are_plain_functions() -> None:
    assert (3, ["x"], "q", "t") == (calculator("abc"), find("x"), plan("q"), think("t"))
    assert 2 == len(asyncio.run(look_up("x")))
    assert "calculator" == calculator.__name__


def test_a_tool_is_a_span_and_a_call_and_one_that_retrieves_a_span() -> None:
    with Context("a") as ctx:
        assert 3 == calculator("abc")
        assert ["x"] == find("x")

    calls = calls_of(ctx)
    assert ["calculator", "vector_search"] == [call.name for call in calls if isinstance(call, SpanOpened)]
    assert [("calculator", "s1")] == [(call.name, call.span) for call in calls if isinstance(call, ToolCall)]
    assert ["s2"] == [call.span for call in calls if isinstance(call, RetrievedDocument)]


def test_what_a_function_retrieves_is_recorded_and_decided_about() -> None:
    async def run(query: str) -> Context:
        async with Context("a", policies=[GUARD]) as ctx:
            await look_up(query)
        return ctx

    documents = [call for call in calls_of(asyncio.run(run("good"))) if isinstance(call, RetrievedDocument)]
    assert [("good", 0.9), ("index", 0.8)] == [(call.source, call.relevance_score) for call in documents]
    assert {"s1"} == {call.span for call in documents}
    with pytest.raises(PolicyViolationError):
        asyncio.run(run("bad"))


def test_steps_choices_and_thoughts() -> None:
    with Context("a", capture_content=True) as ctx:
        plan("q")
        route("q")
        think("hm")

    steps = [(call.name, call.attributes) for call in calls_of(ctx) if isinstance(call, StepCall)]
    assert ["plan", "route", "think"] == [name for name, _ in steps]
    assert {"output": "q"} == steps[0][1]
    assert {"kind": "decision", "options": ["a", "b"], "chosen": "a", "confidence": 0.5} == steps[1][1]
    assert {"kind": "reasoning", "thought": "hm"} == steps[2][1]


def test_a_function_is_tried_again_and_every_attempt_is_recorded() -> None:
    tries = []

    @retry(max_attempts=3)
    def flaky() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise KeyError
        return "done"

    with Context("a") as ctx:
        assert "done" == flaky()

    assert [1, 2] == [call.attributes["attempt"] for call in calls_of(ctx) if isinstance(call, StepCall)]


def test_the_last_error_is_raised_or_something_else_is_called() -> None:
    @retry(max_attempts=2)
    async def failing() -> None:
        raise KeyError("mine")

    @retry(2, "fallback", fallback=lambda: "other")
    def replaced() -> str:
        raise KeyError

    @retry(2, "fallback", fallback=lambda: asyncio.sleep(0, "other"))
    async def areplaced() -> str:
        raise KeyError

    with pytest.raises(KeyError, match="mine"):
        asyncio.run(failing())
    assert ("other", "other") == (replaced(), asyncio.run(areplaced()))


def test_a_broken_circuit_calls_nothing() -> None:
    tries = []

    @retry(2, "circuit_break")
    def failing() -> None:
        tries.append(1)
        raise KeyError

    for _ in range(5):
        with pytest.raises(KeyError):
            failing()

    assert 2 == len(tries)


def test_what_a_policy_stopped_is_not_tried_again() -> None:
    tries = []

    @retry(max_attempts=3)
    def blocked() -> None:
        tries.append(1)
        find("bad")

    with pytest.raises(PolicyViolationError), Context("a", policies=[GUARD]):
        blocked()

    assert 1 == len(tries)


@pytest.mark.parametrize("arguments", [{"max_attempts": 0}, {"strategy": "pray"}, {"strategy": "fallback"}, {"fallback": print}])
def test_senseless_retries_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidRecordError):
        retry(**arguments)
