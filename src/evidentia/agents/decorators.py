"""Decorators for the functions of an agent: a call of one is recorded in the current run, and outside of any it is just a call."""

from __future__ import annotations

import functools
import inspect
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

from evidentia.agents.checks import plain
from evidentia.agents.current import get_current_context
from evidentia.agents.tool_names import retrieves
from evidentia.contracts.evidence import EvidenceResponse
from evidentia.wiring.system import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from evidentia.agents.context import Context

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")

_NS_PER_MS = 1_000_000


class Decorator(Protocol):
    """Leaves the types of a function as they are."""

    def __call__(self, function: Callable[Arguments, Returned], /) -> Callable[Arguments, Returned]:
        """Return the decorated function."""
        ...


class Outcome:
    """What a marked call was given and what it returned."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.arguments = arguments
        self.returned: Any = None  # Any: whatever the function returns


def tool(name: str | None = None, *, retrieval: bool | None = None) -> Decorator:
    """Record every call of a function as a tool's, with a span around it."""

    @contextmanager
    def mark(context: Context, called: str, outcome: Outcome) -> Iterator[None]:
        label = name or called
        clock = SystemClock()
        began = clock.elapsed_ns()
        with context.tool(label, retrieval=retrieval) as span:
            yield
            span.sources = _number_of(outcome.returned)
            if not retrieves(label, retrieval):
                lasted = (clock.elapsed_ns() - began) / _NS_PER_MS
                context.record_tool_call(label, outcome.arguments, outcome.returned, lasted, retrieval=False)

    return functools.partial(_marked, mark)


def retrieval(source: str = "", name: str | None = None) -> Decorator:
    """Record what a function retrieves: an answer of the engine, or documents as `record_retrieval` takes them.

    `source` is for documents that do not name their own; the first text among the arguments is the query.
    """

    @contextmanager
    def mark(context: Context, called: str, outcome: Outcome) -> Iterator[None]:
        with context.tool(name or called, retrieval=True) as span:
            yield
            span.sources = _number_of(outcome.returned)
            if isinstance(outcome.returned, EvidenceResponse):
                context.record_retrieval(outcome.returned)
            else:
                query = next((value for value in outcome.arguments.values() if isinstance(value, str)), "")
                context.record_retrieval(query=query, documents=outcome.returned or (), source=source)

    return functools.partial(_marked, mark)


def step(name: str | None = None) -> Decorator:
    """Record every call of a function as a step."""

    @contextmanager
    def mark(context: Context, called: str, outcome: Outcome) -> Iterator[None]:
        yield
        context.record_step(name or called, outcome.returned)

    return functools.partial(_marked, mark)


def decision(name: str | None = None, options: Sequence[str] = ()) -> Decorator:
    """Record what a function returns as a choice: a text, or a mapping with `chosen` and perhaps `reasoning` and `confidence`."""

    @contextmanager
    def mark(context: Context, called: str, outcome: Outcome) -> Iterator[None]:
        yield
        returned = outcome.returned
        said = returned if isinstance(returned, dict) else {"chosen": returned}
        context.record_decision(
            name or called,
            options=options,
            chosen=str(plain(said.get("chosen", ""))),
            reasoning=str(said.get("reasoning", "")),
            confidence=said.get("confidence"),
        )

    return functools.partial(_marked, mark)


def reasoning(name: str | None = None) -> Decorator:
    """Record what a function returns as a thought."""

    @contextmanager
    def mark(context: Context, called: str, outcome: Outcome) -> Iterator[None]:
        yield
        context.record_reasoning(name or called, thought=str(plain(outcome.returned)))

    return functools.partial(_marked, mark)


def _marked(mark: Callable[[Context, str, Outcome], AbstractContextManager[None]], function: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(function)

    def outcome_of(args: tuple[object, ...], kwargs: dict[str, object]) -> Outcome:
        return Outcome(signature.bind_partial(*args, **kwargs).arguments)

    @functools.wraps(function)
    def run(*args: object, **kwargs: object) -> object:
        context = get_current_context()
        if context is None:
            return function(*args, **kwargs)
        outcome = outcome_of(args, kwargs)
        with mark(context, function.__name__, outcome):
            outcome.returned = function(*args, **kwargs)
        return outcome.returned

    @functools.wraps(function)
    async def run_async(*args: object, **kwargs: object) -> object:
        context = get_current_context()
        if context is None:
            return await function(*args, **kwargs)
        outcome = outcome_of(args, kwargs)
        with mark(context, function.__name__, outcome):
            outcome.returned = await function(*args, **kwargs)
        return outcome.returned

    return run_async if inspect.iscoroutinefunction(function) else run


def _number_of(returned: object) -> int | None:
    if isinstance(returned, EvidenceResponse):
        return len(returned.fragments)
    return len(returned) if isinstance(returned, list | tuple) else None
