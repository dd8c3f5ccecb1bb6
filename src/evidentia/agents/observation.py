"""`observe`: a function is a run. Sync and async functions, generators and async generators, each in its own context."""

from __future__ import annotations

import contextvars
import functools
import inspect
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar, overload

from evidentia.agents.context import Context
from evidentia.agents.errors import InvalidRecordError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Mapping

    Arguments = ParamSpec("Arguments")
    Returned = TypeVar("Returned")
    Function = Callable[..., Any]  # Any: whatever is decorated keeps its own types

CONTEXT_PARAMETER: Final = "evidentia_ctx"
"""A function with a parameter of this name is given the context."""
_FIELDS: Final = frozenset(inspect.signature(Context.__init__).parameters) - {"self", "_clock"}
_OWN: Final = "capture_io"


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
        # Its own variables: what runs inside sees the context, and whoever consumes it never does.
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
