"""`observe`: what counts as a call's field, what reaches the function, and that every kind of function is a run."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any

import pytest

from evidentia.agents import Context, PolicyViolationError, get_current_context, observe
from evidentia.agents.errors import InvalidRecordError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

GUARD: dict[str, Any] = {"name": "Guard", "category": "retrieval", "rules": {"blocked_sources": ["bad"], "min_chunks": 0}}
ABSTAIN: dict[str, Any] = {
    "name": "Abstain",
    "category": "grounding",
    "rules": {"min_citations": 0, "abstention_threshold": 0.5, "abstention_response": "I do not know."},
}


def current() -> Context:
    context = get_current_context()
    assert context is not None
    return context


def record(source: str) -> None:
    current().record_retrieval_result(relevance_score=0.9, source=source, age_days=1)


def test_a_bare_decorator_names_the_run_after_the_function() -> None:
    @observe
    def answer(question: str) -> tuple[str, str]:
        """Answer."""
        return question, current().facts.agent_name

    assert ("why", "answer") == answer("why")
    assert "Answer." == answer.__doc__
    assert get_current_context() is None


def test_mid_execution_governance_is_on() -> None:
    reached = []

    @observe(agent_name="a", policies=[GUARD])
    def answer() -> None:
        record("bad")
        reached.append(1)

    with pytest.raises(PolicyViolationError):
        answer()
    assert [] == reached


def test_fields_of_a_call_override_and_reach_the_function_only_where_it_declares_them() -> None:
    @observe(agent_name="a", user_id="u1", session_id="s1")
    def answer(question: str, session_id: str = "", **others: Any) -> tuple[Any, ...]:
        facts = current().facts
        return question, facts.user_id, facts.session_id, session_id, others

    assert ("why", "u1", "s1", "", {}) == answer("why")
    assert ("why", "u2", "s2", "s2", {"other": 1}) == answer("why", user_id="u2", session_id="s2", other=1)


def test_a_call_may_switch_enforcement_off() -> None:
    @observe(agent_name="a", policies=[GUARD])
    def answer() -> str:
        record("bad")
        return "done"

    assert "done" == answer(enforce_policy=False)


def test_the_context_is_given_to_a_parameter_of_its_name_alone() -> None:
    @observe(agent_name="a")
    def answer(ctx: str, evidentia_ctx: Context | None = None) -> bool:
        return ctx == "mine" and evidentia_ctx is get_current_context()

    assert answer("mine")


def test_arguments_are_inputs_and_what_is_returned_is_the_result() -> None:
    kept = []

    @observe(agent_name="a")
    def answer(question: str, limit: int = 3, evidentia_ctx: Context | None = None) -> str:
        kept.append(evidentia_ctx)
        return f"{question}!" * min(limit, 1)

    answer("why", limit=5)
    answer("why", capture_io=False)

    with_io, without = kept
    assert with_io is not None
    assert without is not None
    assert ({"question": "why", "limit": 5}, "why!") == (with_io.inputs, with_io.result)
    assert (None, None) == (without.inputs, without.result)


def test_an_abstention_replaces_what_is_returned() -> None:
    @observe(agent_name="a", policies=[ABSTAIN], on_abstain="replace")
    def answer(confidence: float) -> str:
        current().record_grounding(output_confidence=confidence)
        return "guess"

    assert ["I do not know.", "guess"] == [answer(0.1), answer(0.9)]


def test_an_async_function_is_a_run() -> None:
    @observe(agent_name="a", policies=[GUARD])
    async def answer(source: str) -> str:
        await asyncio.sleep(0)
        record(source)
        return current().facts.agent_name

    assert inspect.iscoroutinefunction(answer)
    assert "a" == asyncio.run(answer("good"))
    with pytest.raises(PolicyViolationError):
        asyncio.run(answer("bad"))


def test_a_generator_is_a_run_from_its_first_step_to_its_last() -> None:
    kept: list[Context] = []

    @observe(agent_name="a", policies=[GUARD])
    def stream(evidentia_ctx: Context | None = None) -> Generator[str, str, str]:
        kept.append(current())
        assert evidentia_ctx is kept[0]
        sent = yield "first"
        try:
            yield sent
        except KeyError:
            yield "caught"
        return "returned"

    generator = stream()
    assert [] == kept
    seen = [next(generator), generator.send("sent"), generator.throw(KeyError())]
    assert get_current_context() is None
    assert "running" == kept[0].status
    with pytest.raises(StopIteration) as end:
        next(generator)

    assert ["first", "sent", "caught"] == seen
    assert "returned" == end.value.value == kept[0].result
    assert "success" == kept[0].status


def test_a_generator_that_is_left_early_ends_well_and_one_that_fails_does_not() -> None:
    kept: list[Context] = []

    @observe(agent_name="a")
    def stream(*, fails: bool) -> Generator[int, None, None]:
        kept.append(current())
        yield 1
        if fails:
            raise KeyError("mine")

    left = stream(fails=False)
    next(left)
    left.close()
    with pytest.raises(KeyError):
        list(stream(fails=True))

    assert ["success", "error"] == [context.status for context in kept]


def test_a_generator_is_blocked_at_its_call() -> None:
    @observe(agent_name="a", policies=[GUARD])
    def stream() -> Generator[int, None, None]:
        yield 1
        record("bad")
        yield 2

    seen: list[int] = []
    with pytest.raises(PolicyViolationError):
        seen.extend(stream())

    assert [1] == seen


def test_an_async_generator_is_a_run() -> None:
    kept: list[Context] = []

    @observe(agent_name="a", policies=[GUARD])
    async def stream() -> AsyncGenerator[str, str]:
        kept.append(current())
        sent = yield "first"
        try:
            yield sent
        except KeyError:
            yield "caught"
        record("bad")

    async def run() -> list[Any]:
        generator = stream()
        seen: list[Any] = [await anext(generator), await generator.asend("sent"), await generator.athrow(KeyError())]
        seen.append(get_current_context())
        with pytest.raises(PolicyViolationError):
            await anext(generator)
        left = stream()
        await anext(left)
        await left.aclose()
        return seen

    assert ["first", "sent", "caught", None] == asyncio.run(run())
    assert ["blocked", "success"] == [context.status for context in kept]


def test_a_method_is_a_run_and_keeps_its_self() -> None:
    class Agent:
        @observe(agent_name="a")
        def answer(self, question: str) -> tuple[object, Any, str]:
            return self, current().inputs, question

    agent = Agent()

    assert (agent, {"question": "why"}, "why") == agent.answer("why")


def test_recursion_is_runs_within_runs() -> None:
    @observe
    def depth(left: int) -> list[str]:
        facts = current().facts
        return [facts.parent_run_id or "", *(depth(left - 1) if left else [])]

    top, *below = depth(2)

    assert "" == top
    assert 2 == len(set(below))


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(InvalidRecordError, match="agent_nam"):
        observe(agent_nam="a")
