"""What the machine gives: the time, randomness, threads, and somebody to tell of requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from concurrent.futures import Future
    from datetime import datetime

    from evidentia.contracts.ids import RequestId
    from evidentia.contracts.telemetry import RequestTrace

Answer = TypeVar("Answer")


class Clock(Protocol):
    """Tells the time, so that nothing else has to."""

    def now(self) -> datetime:
        """Return the present moment in UTC."""
        ...

    def elapsed_ns(self) -> int:
        """Return nanoseconds since some fixed moment, never going back."""
        ...


class Entropy(Protocol):
    """Gives unpredictable bytes for salts and identifiers, so that nothing else has to."""

    def take(self, count: int) -> bytes:
        """Return `count` unpredictable bytes."""
        ...


class BlockingExecutor(Protocol):
    """Runs the engine's own blocking steps away from the event loop."""

    def run(self, work: Callable[[], Answer]) -> Awaitable[Answer]:
        """Return what gives what the work returns, or raises what it raises; whoever stops waiting does not stop the work."""
        ...

    def submit(self, work: Callable[[], Answer]) -> Future[Answer]:
        """Do the same for a thread that will wait for it."""
        ...


class Offloader(Protocol):
    """Does a piece of work beside whoever asks for it, when somebody is free; else it is done when it is waited for."""

    def submit(self, work: Callable[[], Answer]) -> Callable[[], Answer]:
        """Return what waits for the work, once, and returns what it returns or raises what it raises."""
        ...


class TraceSink(Protocol):
    """Is told of every request once it has been answered; never late and never in the way."""

    def record(self, trace: RequestTrace) -> None:
        """Take note of a request; it must not block, and whatever goes wrong stays here."""
        ...


@runtime_checkable
class SupportsTraces(Protocol):
    """Remembers requests for a while."""

    def traces(self, *, limit: int) -> Sequence[RequestTrace]:
        """Return the newest requests, newest first."""
        ...

    def trace(self, request_id: RequestId) -> RequestTrace | None:
        """Return one request, if it is still remembered."""
        ...
