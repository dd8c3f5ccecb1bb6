"""Calls of models, each on a thread where it can be left behind: one that is late, fails or hangs takes no part in the answer.

What a model raises becomes `ModelMissingError`, whose words stand in the answer. A model has a breaker and a bulkhead of its own, as
sources have: one that hangs is soon left alone, and holds a bounded number of threads.
"""

from __future__ import annotations

import contextvars
import threading
from functools import partial
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, NoReturn, TypeVar

from evidentia.contracts.errors import EvidentiaError
from evidentia.federation.bulkhead import Bulkhead
from evidentia.federation.circuit_breaker import REFUSED, Breaker
from evidentia.federation.fanout import FORGIVEN_MS
from evidentia.foundation.offload import HAND_OVER_S, outbound_deadline

if TYPE_CHECKING:
    from collections.abc import Callable

    from evidentia.contracts.ports import Clock
    from evidentia.contracts.settings import FanoutSettings

Answer = TypeVar("Answer")

MAX_THREADS: Final = 64
"""Of one model: more than requests that a process answers at a time, so only calls that were left behind can take them all."""
_UNCOUNTED: Final = -1
"""The ticket of a call that no breaker counts."""
_NS_PER_MS: Final = 1_000_000
_MS_PER_S: Final = 1_000


class ModelMissingError(Exception):
    """A model took no part, and why; it never leaves the engine."""


class InlineModelCalls:
    """Calls models on the thread that asks, which waits for them however long they take; a replay needs no other."""

    def begin(self, model: str, work: Callable[[], Answer], *, wait_ms: float, breaks: bool = True) -> Callable[[], Answer]:
        """Begin to call a model; what is returned waits for it, once, and raises ModelMissingError where there is no answer in time.

        One that `breaks` is left alone for a while when it fails again and again.
        """
        del wait_ms, breaks
        return partial(_heard, model, work)

    def close(self) -> None:
        """Let threads end that no model holds; none is asked any more."""


class ThreadedModelCalls(InlineModelCalls):
    """Calls each model on threads of its own. Thread safe."""

    def __init__(self, clock: Clock, *, settings: FanoutSettings) -> None:
        self._clock = clock
        self._settings = settings
        self._lock = threading.Lock()
        self._lanes: dict[str, _Lane] = {}

    def begin(self, model: str, work: Callable[[], Answer], *, wait_ms: float, breaks: bool = True) -> Callable[[], Answer]:
        """Begin on a thread at once; the time runs from here."""
        lane = self._lane(model)
        ticket = lane.breaker.admit() if breaks else _UNCOUNTED
        if ticket == REFUSED:
            return partial(_refuse, f"the {model} was {lane.breaker.why_refused}")
        call = _Call(model, work, wait_ms=wait_ms, lane=lane, ticket=ticket, clock=self._clock)
        refusal = lane.threads.submit(call.run, _nothing)
        if refusal:
            lane.breaker.released(ticket)
            return partial(_refuse, f"the {model} was {refusal}")
        call.begun.wait(HAND_OVER_S)
        return call.result

    def close(self) -> None:
        """Let threads end that no model holds; none is asked any more."""
        with self._lock:
            for lane in self._lanes.values():
                lane.threads.close()

    def _lane(self, model: str) -> _Lane:
        with self._lock:
            if model not in self._lanes:
                settings = self._settings
                breaker = Breaker(self._clock, failures=settings.breaker_failures, open_ms=settings.breaker_open_ms)
                self._lanes[model] = _Lane(breaker, Bulkhead(f"model {model}", max_threads=MAX_THREADS))
            return self._lanes[model]


class _Lane(NamedTuple):
    """What keeps one model apart from the others."""

    breaker: Breaker
    threads: Bulkhead


class _Call(Generic[Answer]):
    """One call while it lasts. The thread that runs it and the one that waits settle under its lock which of them was first."""

    def __init__(self, model: str, work: Callable[[], Answer], *, wait_ms: float, lane: _Lane, ticket: int, clock: Clock) -> None:
        self._model = model
        self._work = partial(contextvars.copy_context().run, _within, work, wait_ms / _MS_PER_S)
        self._wait_ms = wait_ms
        self._lane = lane
        self._ticket = ticket
        self._clock = clock
        self._started_ns = clock.elapsed_ns()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._is_left = False
        self._answer: Answer
        self._problem: ModelMissingError | None = None
        self.begun = threading.Event()

    def run(self) -> None:
        """Make the call, on a thread of the model; what it says after it was left is only heard by the breaker."""
        self.begun.set()
        breaker = self._lane.breaker
        try:
            self._answer = _heard(self._model, self._work)
        except ModelMissingError as problem:
            self._problem = problem
        with self._lock:
            self._ended.set()
            if not self._is_left:
                (breaker.succeeded if self._problem is None else breaker.failed)(self._ticket)
            elif self._problem is None and self._elapsed_ms() <= self._wait_ms + max(self._wait_ms, FORGIVEN_MS):
                breaker.recovered()

    def result(self) -> Answer:
        """Wait as long as the call has time, and return what it returned."""
        self._ended.wait(max(0.0, self._wait_ms - self._elapsed_ms()) / _MS_PER_S)
        with self._lock:
            if not self._ended.is_set():
                self._is_left = True
                self._lane.breaker.failed(self._ticket)
                raise ModelMissingError(f"the {self._model} gave no answer within {max(1, round(self._wait_ms))} ms")
        if self._problem is not None:
            raise self._problem
        return self._answer

    def _elapsed_ms(self) -> float:
        return (self._clock.elapsed_ns() - self._started_ns) / _NS_PER_MS


def _within(work: Callable[[], Answer], seconds: float) -> Answer:
    """Do the work in a context in which an endpoint is not asked again once nobody waits."""
    with outbound_deadline(seconds):
        return work()


def _heard(model: str, work: Callable[[], Answer]) -> Answer:
    """Return what a model says; of what it raises only our own errors are quoted, since others may quote anything."""
    try:
        return work()
    except EvidentiaError as error:
        raise ModelMissingError(str(error)) from error
    except BaseException as error:
        raise ModelMissingError(f"the {model} failed ({type(error).__name__})") from error


def _refuse(problem: str) -> NoReturn:
    raise ModelMissingError(problem)


def _nothing() -> None:
    """Tell nobody that a thread is free again."""
