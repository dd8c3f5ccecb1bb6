"""Decorators for the functions of an agent.

`observe` makes every call of a function a run: sync and async functions, generators and async generators, each in its own context.
A call of a function with one of the other decorators is recorded in the current run; outside of a run it is a plain call.
"""

from __future__ import annotations

import contextvars
import functools
import inspect
import threading
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Protocol, TypeVar, overload

from evidentia.agents.context import Context
from evidentia.agents.current_context import get_current_context
from evidentia.agents.errors import InvalidRecordError
from evidentia.agents.record_values import plain, retrieves
from evidentia.contracts.errors import PolicyViolationError
from evidentia.contracts.evidence import EvidenceResponse
from evidentia.wiring.system import SystemClock

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping, Sequence

    Function = Callable[..., Any]  # Any: whatever is decorated keeps its own types

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")

CONTEXT_PARAMETER: Final = "evidentia_ctx"
"""A function with a parameter of this name is given the context."""
_FIELDS: Final = frozenset(inspect.signature(Context.__init__).parameters) - {"self", "_clock"}
_OWN: Final = "capture_io"
_NS_PER_MS = 1_000_000
_STRATEGIES: Final = ("retry", "fallback", "circuit_break")


class Decorator(Protocol):
    """Leaves the types of a function as they are."""

    def __call__(self, function: Callable[Arguments, Returned], /) -> Callable[Arguments, Returned]:
        """Return the decorated function."""
        ...


class DecoratedCall:
    """What a marked call was given and what it returned."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.arguments = arguments
        self.returned: Any = None  # Any: whatever the function returns


def tool(name: str | None = None, *, retrieval: bool | None = None) -> Decorator:
    """Record every call of a function as a tool's, with a span around it."""

    @contextmanager
    def mark(context: Context, called: str, outcome: DecoratedCall) -> Iterator[None]:
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
    def mark(context: Context, called: str, outcome: DecoratedCall) -> Iterator[None]:
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
    def mark(context: Context, called: str, outcome: DecoratedCall) -> Iterator[None]:
        yield
        context.record_step(name or called, outcome.returned)

    return functools.partial(_marked, mark)


def decision(name: str | None = None, options: Sequence[str] = ()) -> Decorator:
    """Record what a function returns as a choice: a text, or a mapping with `chosen` and perhaps `reasoning` and `confidence`."""

    @contextmanager
    def mark(context: Context, called: str, outcome: DecoratedCall) -> Iterator[None]:
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
    def mark(context: Context, called: str, outcome: DecoratedCall) -> Iterator[None]:
        yield
        context.record_reasoning(name or called, thought=str(plain(outcome.returned)))

    return functools.partial(_marked, mark)


def _marked(
    mark: Callable[[Context, str, DecoratedCall], AbstractContextManager[None]], function: Callable[..., Any]
) -> Callable[..., Any]:
    signature = inspect.signature(function)

    def outcome_of(args: tuple[object, ...], kwargs: dict[str, object]) -> DecoratedCall:
        return DecoratedCall(signature.bind_partial(*args, **kwargs).arguments)

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


@overload
def observe(function: Callable[Arguments, Returned], /) -> Callable[Arguments, Returned]: ...
@overload
def observe(*, capture_io: bool = True, **fields: Any) -> Callable[[Callable[..., Returned]], Callable[..., Returned]]: ...  # noqa: ANN401 - the arguments of Context
def observe(function: Function | None = None, /, *, capture_io: bool = True, **fields: Any) -> Any:
    """Make every call of a function a run; `agent_name` is the function's name unless it is given.

    Takes the arguments of `Context`. A call may give them as well: they hold for that call, and reach the function only where it
    declares them. `capture_io` takes the arguments as the run's inputs and what is returned as its result.
    Any: whatever is decorated keeps its own types.
    """
    _refuse_unknown(fields)
    if function is not None:
        return _observed(function, fields, is_capturing=capture_io)
    return lambda decorated: _observed(decorated, fields, is_capturing=capture_io)


def _observed(function: Function, fields: Mapping[str, Any], *, is_capturing: bool) -> Function:
    calls = _Calls(function, fields, is_capturing=is_capturing)
    for is_kind, wrap in (
        (inspect.isasyncgenfunction, _wrap_async_generator),
        (inspect.iscoroutinefunction, _wrap_async),
        (inspect.isgeneratorfunction, _wrap_generator),
    ):
        if is_kind(function):
            return wrap(function, calls)
    return _wrap(function, calls)


class _Calls:
    """What every call of a decorated function goes through: its fields are told from its arguments."""

    def __init__(self, function: Function, fields: Mapping[str, Any], *, is_capturing: bool) -> None:
        self._signature = inspect.signature(function)
        self._fields = {"agent_name": function.__name__, **fields}
        self._is_capturing = is_capturing
        parameters = self._signature.parameters
        self._declared = frozenset(parameters)
        self._wants_context = CONTEXT_PARAMETER in parameters

    def prepare(self, args: tuple[object, ...], kwargs: dict[str, object]) -> tuple[Context, dict[str, Any], bool]:
        """Return the context of a call, the arguments that reach the function, and whether the result is captured."""
        own = {name: value for name, value in kwargs.items() if name in _FIELDS}
        is_capturing = bool(kwargs.get(_OWN, self._is_capturing))
        stripped = _FIELDS | {_OWN}
        passed = {name: value for name, value in kwargs.items() if name not in stripped or name in self._declared}
        if is_capturing and "inputs" not in own and "inputs" not in self._fields:
            own["inputs"] = self._arguments(args, passed)
        context = Context(**{**self._fields, **own})
        if self._wants_context:
            passed.setdefault(CONTEXT_PARAMETER, context)
        return context, passed, is_capturing

    def _arguments(self, args: tuple[object, ...], kwargs: dict[str, object]) -> dict[str, Any]:
        bound = self._signature.bind_partial(*args, **kwargs).arguments
        return {name: value for name, value in bound.items() if name not in {"self", "cls", CONTEXT_PARAMETER}}


def _wrap(function: Function, calls: _Calls) -> Function:
    @functools.wraps(function)
    def run(*args: object, **kwargs: object) -> object:
        context, passed, is_capturing = calls.prepare(args, kwargs)
        with context:
            returned = function(*args, **passed)
            _keep(context, returned, is_capturing=is_capturing)
        return _answer(context, returned)

    return run


def _wrap_async(function: Function, calls: _Calls) -> Function:
    @functools.wraps(function)
    async def run(*args: object, **kwargs: object) -> object:
        context, passed, is_capturing = calls.prepare(args, kwargs)
        async with context:
            returned = await function(*args, **passed)
            _keep(context, returned, is_capturing=is_capturing)
        return _answer(context, returned)

    return run


def _wrap_generator(function: Function, calls: _Calls) -> Function:
    @functools.wraps(function)
    def run(*args: object, **kwargs: object) -> Generator[Any, Any, Any]:
        context, passed, is_capturing = calls.prepare(args, kwargs)
        # Its own variables: what runs inside sees the context, and the consumer of the generator never does.
        variables = contextvars.copy_context()
        variables.run(context.__enter__)
        try:
            returned = yield from _driven(variables, function(*args, **passed))
            _keep(context, returned, is_capturing=is_capturing)
        except BaseException as error:
            variables.run(context.__exit__, type(error), error, error.__traceback__)
            raise
        variables.run(context.__exit__, None, None, None)
        return _answer(context, returned)

    return run


def _driven(variables: contextvars.Context, inner: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Drive a generator in its own variables, and hand on whatever is sent and thrown into it."""
    step: Callable[[], Any] = functools.partial(next, inner)
    while True:
        try:
            yielded = variables.run(step)
        except StopIteration as end:
            return end.value
        try:
            sent = yield yielded
        except GeneratorExit:
            variables.run(inner.close)
            raise
        except BaseException as error:  # noqa: BLE001 - whatever is thrown in belongs to the generator
            step = functools.partial(inner.throw, error)
        else:
            step = functools.partial(inner.send, sent)


def _wrap_async_generator(function: Function, calls: _Calls) -> Function:
    @functools.wraps(function)
    async def run(*args: object, **kwargs: object) -> AsyncGenerator[Any, Any]:
        context, passed, _ = calls.prepare(args, kwargs)
        async with context:
            inner = function(*args, **passed)
            step = functools.partial(anext, inner)
            while True:
                try:
                    yielded = await step()
                except StopAsyncIteration:
                    break
                try:
                    sent = yield yielded
                except GeneratorExit:
                    await inner.aclose()
                    raise
                except BaseException as error:  # noqa: BLE001 - whatever is thrown in belongs to the generator
                    step = functools.partial(inner.athrow, error)
                else:
                    step = functools.partial(inner.asend, sent)

    return run


def _keep(context: Context, returned: object, *, is_capturing: bool) -> None:
    if is_capturing and context.result is None:
        context.set_result(returned)


def _answer(context: Context, returned: object) -> object:
    """Return what the call gives back: the abstention response where it replaces the result."""
    return context.result if context.is_replaced else returned


def _refuse_unknown(fields: Mapping[str, Any]) -> None:
    unknown = sorted(set(fields) - _FIELDS)
    if unknown:
        raise InvalidRecordError(unknown[0], f"observe takes the arguments of Context: {', '.join(sorted(_FIELDS))}")
