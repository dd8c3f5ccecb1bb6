"""`retry`: a function is tried again, or something else is called instead, and every attempt stands in the run's record."""

from __future__ import annotations

import functools
import inspect
import threading
from typing import TYPE_CHECKING, Any, Final

from evidentia.agents.current import get_current_context
from evidentia.agents.errors import InvalidRecordError
from evidentia.contracts.errors import PolicyViolationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from evidentia.agents.decorators import Decorator

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
