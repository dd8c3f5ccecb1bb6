"""Whose context is current: nested ones, threads, tasks and generators each see their own, and nobody sees another's."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from evidentia.agents import Context, get_current_context

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


def name() -> str | None:
    context = get_current_context()
    return None if context is None else context.facts.agent_name


def numbers(agent: str, seen: list[str | None]) -> Iterator[int]:
    with Context(agent):
        for number in range(3):
            seen.append(name())
            yield number
        seen.append(name())


async def anumbers(agent: str, seen: list[str | None]) -> AsyncIterator[int]:
    async with Context(agent):
        for number in range(3):
            seen.append(name())
            yield number
            await asyncio.sleep(0)
        seen.append(name())


def test_contexts_nest() -> None:
    seen = [name()]
    with Context("outer"):
        seen.append(name())
        with Context("inner"):
            seen.append(name())
        seen.append(name())
    seen.append(name())

    assert [None, "outer", "inner", "outer", None] == seen


def test_a_context_that_fails_is_left() -> None:
    with pytest.raises(KeyError), Context("a"):
        raise KeyError

    assert name() is None


def test_a_thread_sees_nothing_unless_it_is_started_with_the_variables() -> None:
    seen: dict[str, str | None] = {}
    with Context("a"):
        bare = threading.Thread(target=lambda: seen.update(bare=name()))
        carried = threading.Thread(target=contextvars.copy_context().run, args=(lambda: seen.update(carried=name()),))
        for thread in (bare, carried):
            thread.start()
            thread.join()

    assert {"bare": None, "carried": "a"} == seen


def test_threads_have_contexts_of_their_own() -> None:
    together = threading.Barrier(4)

    def work(agent: str) -> str | None:
        with Context(agent):
            together.wait()
            seen = name()
            together.wait()
        return seen

    agents = [f"agent-{number}" for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert agents == list(pool.map(work, agents))


def test_a_thread_may_end_a_context_that_another_began() -> None:
    context = Context("a")
    context.__enter__()
    thread = threading.Thread(target=context.__exit__, args=(None, None, None))
    thread.start()
    thread.join()

    assert name() is None


def test_tasks_have_contexts_of_their_own_and_inherit_the_one_they_are_started_in() -> None:
    async def work(agent: str) -> list[str | None]:
        seen = [name()]
        async with Context(agent):
            for _ in range(3):
                await asyncio.sleep(0)
                seen.append(name())
        return [*seen, name()]

    async def run() -> list[list[str | None]]:
        async with Context("outer"):
            return list(await asyncio.gather(work("a"), work("b"), asyncio.create_task(work("c"))))

    assert [["outer", agent, agent, agent, "outer"] for agent in "abc"] == asyncio.run(run())


def test_a_worker_thread_of_a_task_inherits_it() -> None:
    async def run() -> str | None:
        async with Context("a"):
            return await asyncio.to_thread(name)

    assert "a" == asyncio.run(run())


def test_a_generator_keeps_its_context_from_its_consumer() -> None:
    inside: list[str | None] = []
    outside = [name() for _ in numbers("gen", inside)]

    assert [None] * 3 == outside
    assert ["gen"] * 4 == inside
    assert name() is None


def test_a_consumer_with_a_context_keeps_it_between_the_steps() -> None:
    inside: list[str | None] = []
    with Context("consumer"):
        outside = [name() for _ in numbers("gen", inside)]

    assert ["consumer"] * 3 == outside
    assert ["gen"] * 4 == inside


def test_generators_that_take_turns_see_their_own() -> None:
    first: list[str | None] = []
    second: list[str | None] = []
    outside = [name() for _ in zip(numbers("one", first), numbers("two", second), strict=True)]

    assert [None] * 3 == outside
    assert {"one"} == set(first)
    assert {"two"} == set(second)


def test_a_generator_that_was_entered_before_its_consumers_context_sees_its_own() -> None:
    inside: list[str | None] = []
    generator = numbers("gen", inside)
    next(generator)
    with Context("consumer"):
        next(generator)
        between = name()
        list(generator)

    assert "consumer" == between
    assert ["gen"] * 4 == inside


def test_a_generator_that_drives_another_and_contexts_inside_of_it() -> None:
    inside: list[str | None] = []
    seen: list[str | None] = []

    def outer() -> Iterator[int]:
        with Context("driver"):
            for number in numbers("driven", inside):
                with Context("nested"):
                    seen.append(name())
                    yield number
                seen.append(name())

    outside = [name() for _ in outer()]

    assert ["nested", "driver"] * 3 == seen
    assert {"driven"} == set(inside)
    assert [None] * 3 == outside


def test_a_context_entered_by_a_function_that_a_generator_calls_is_kept_too() -> None:
    def generator() -> Iterator[str | None]:
        with contextlib.ExitStack() as stack, Context("gen"):
            _enter(stack, "deep")
            yield name()
            yield name()

    def _enter(stack: contextlib.ExitStack, agent: str) -> None:
        stack.enter_context(Context(agent))

    outside: list[str | None] = []
    inside = []
    for seen in generator():
        inside.append(seen)
        outside.append(name())

    assert ["deep", "deep"] == inside
    assert [None, None] == outside


def test_a_generator_under_contextlib_is_meant_to_be_seen() -> None:
    @contextlib.contextmanager
    def governed(agent: str) -> Iterator[Context]:
        with Context(agent) as context:
            yield context

    @contextlib.asynccontextmanager
    async def agoverned(agent: str) -> AsyncIterator[Context]:
        async with Context(agent) as context:
            yield context

    async def run() -> str | None:
        async with agoverned("b"):
            return name()

    with governed("a"):
        seen = name()

    assert ("a", "b") == (seen, asyncio.run(run()))
    assert name() is None


def test_a_generator_that_is_dropped_ends_its_run() -> None:
    contexts = []

    def generator() -> Iterator[int]:
        with Context("gen") as context:
            contexts.append(context)
            yield 1

    dropped = generator()
    next(dropped)
    del dropped
    gc.collect()

    assert "success" == contexts[0].status
    assert name() is None


def test_an_async_generator_keeps_its_context_from_its_consumer() -> None:
    inside: list[str | None] = []

    async def run() -> list[str | None]:
        outside = [name() async for _ in anumbers("gen", inside)]
        async with Context("consumer"):
            outside += [name() async for _ in anumbers("gen", inside)]
        return [*outside, name()]

    assert [*[None] * 3, *["consumer"] * 3, None] == asyncio.run(run())
    assert ["gen"] * 8 == inside


def test_what_an_async_generator_starts_inherits_its_context() -> None:
    async def child() -> str | None:
        await asyncio.sleep(0)
        return name()

    async def generator() -> AsyncIterator[list[str | None]]:
        async with Context("gen"):
            yield [await asyncio.create_task(child()), await asyncio.to_thread(name), await child()]

    async def run() -> list[list[str | None]]:
        return [seen async for seen in generator()]

    assert [["gen", "gen", "gen"]] == asyncio.run(run())


def test_an_async_generator_that_is_left_early_ends_its_run() -> None:
    inside: list[str | None] = []

    async def run() -> str | None:
        generator = anumbers("gen", inside)
        async for _ in generator:
            break
        await generator.aclose()  # type: ignore[attr-defined]  # it is a generator
        return name()

    assert asyncio.run(run()) is None
