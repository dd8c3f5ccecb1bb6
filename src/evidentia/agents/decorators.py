"""Decorators for the functions of an agent: a call of one is recorded in the current run, and outside of any it is just a call."""

from __future__ import annotations

import functools
import inspect
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Protocol, TypeVar

from evidentia.agents.current_context import get_current_context
from evidentia.agents.errors import InvalidRecordError
from evidentia.agents.record_values import plain, retrieves
from evidentia.contracts.errors import PolicyViolationError
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


# --- retrying ---
# `retry`: a function is tried again, or something else is called instead, and every attempt stands in the run's record.

_STRATEGIES: Final = ("retry", "fallback", "circuit_break")


def retry(
    max_attempts: int = 3,
    strategy: str = "retry",
    *,
    fallback: Callable[..., Any] | None = None,
    on: tuple[type[Exception], ...] = (Exception,),
) -> Decorator:
    """Try a function up to `max_attempts` times; what a policy stopped is never tried again.

    `retry` raises the last error. `fallback` then calls `fallback` with the same arguments. `circuit_break` tries once per call, and
    after `max_attempts` failures in a row raises the last error without calling the function any more.
    """
    if strategy not in _STRATEGIES:
        raise InvalidRecordError("strategy", f"'{strategy}' is none of {', '.join(_STRATEGIES)}")
    if max_attempts < 1:
        raise InvalidRecordError("max_attempts", f"{max_attempts} is less than 1")
    if (strategy == "fallback") != (fallback is not None):
        raise InvalidRecordError("fallback", "give a function to call instead, together with strategy='fallback'")
    return functools.partial(_retried, max_attempts=max_attempts, strategy=strategy, fallback=fallback, on=on)


class _Attempts:
    """How often one function failed, and what is done about it."""

    def __init__(self, *, max_attempts: int, strategy: str, fallback: Callable[..., Any] | None) -> None:
        self._most = max_attempts
        self._strategy = strategy
        self._fallback = fallback
        self._lock = threading.Lock()
        self._in_a_row = 0
        self._last: Exception | None = None

    @property
    def per_call(self) -> int:
        return 1 if self._strategy == "circuit_break" else self._most

    def refuse(self) -> None:
        """Raise the last error once the circuit is broken."""
        if self._strategy == "circuit_break" and self._last is not None and self._in_a_row >= self._most:
            raise self._last

    def succeed(self) -> None:
        with self._lock:
            self._in_a_row, self._last = 0, None

    def fail(self, attempt: int, error: Exception) -> None:
        """Record a failure; a policy's word is not one."""
        if isinstance(error, PolicyViolationError):
            raise error
        with self._lock:
            self._in_a_row, self._last = self._in_a_row + 1, error
        context = get_current_context()
        if context is not None:
            context.record_retry(
                attempt,
                reason=type(error).__name__,
                strategy=self._strategy,
                original_error=type(error).__name__,
                fallback_to=self._fallback.__name__ if self._fallback is not None and attempt == self._most else "",
                max_attempts=self._most,
            )


def _retried(
    function: Callable[..., Any],
    *,
    max_attempts: int,
    strategy: str,
    fallback: Callable[..., Any] | None,
    on: tuple[type[Exception], ...],
) -> Callable[..., Any]:
    attempts = _Attempts(max_attempts=max_attempts, strategy=strategy, fallback=fallback)

    @functools.wraps(function)
    def run(*args: object, **kwargs: object) -> object:
        attempts.refuse()
        for attempt in range(1, attempts.per_call + 1):
            try:
                returned = function(*args, **kwargs)
            except on as error:
                attempts.fail(attempt, error)
                if attempt == attempts.per_call and fallback is None:
                    raise
            else:
                attempts.succeed()
                return returned
        return fallback(*args, **kwargs) if fallback is not None else None

    @functools.wraps(function)
    async def run_async(*args: object, **kwargs: object) -> object:
        attempts.refuse()
        for attempt in range(1, attempts.per_call + 1):
            try:
                returned = await function(*args, **kwargs)
            except on as error:
                attempts.fail(attempt, error)
                if attempt == attempts.per_call and fallback is None:
                    raise
            else:
                attempts.succeed()
                return returned
        other = fallback(*args, **kwargs) if fallback is not None else None
        return await other if inspect.isawaitable(other) else other

    return run_async if inspect.iscoroutinefunction(function) else run
