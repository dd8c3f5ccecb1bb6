"""Which run is the caller in, and under which span? Every thread, task and generator sees its own.

The current context travels with `contextvars`: a task inherits it, a thread does when it is started with `copy_context().run`.
A plain generator shares the variables of its consumer, so a context that was entered inside one counts only while the
generator itself runs; its consumer never sees it. One exception: a generator under `contextlib` is meant to be seen.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, Self

from evidentia.agents.record_values import checked_text
from evidentia.contracts.protocol import SpanId
from evidentia.contracts.runs import SpanClosed, SpanOpened

if TYPE_CHECKING:
    from types import FrameType, TracebackType

    from evidentia.agents.context import Context


_GENERATOR: Final = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
_WANTS_A_LEAK: Final = "contextlib"


class OpenSpan:
    """A span that was opened and not closed, with those around it."""

    __slots__ = ("is_open", "is_retrieval", "outer", "owner", "span_id")

    def __init__(self, owner: Context, span_id: SpanId, *, is_retrieval: bool, outer: OpenSpan | None) -> None:
        self.owner = owner
        self.span_id = span_id
        self.is_retrieval = is_retrieval
        self.outer = outer
        self.is_open = True


class Entered:
    """A context that was entered, what was current then, and the generator it was entered in, if any."""

    __slots__ = ("around", "context", "frame", "is_over", "previous", "task", "thread")

    def __init__(self, context: Context, *, around: Entered | None, previous: Entered | None, frame: FrameType | None) -> None:
        self.context = context
        self.around = around
        """The one it is nested in."""
        self.previous = previous
        """The one that was entered before in these variables, current or not."""
        self.frame = frame
        self.is_over = False
        self.thread = threading.get_ident()
        self.task = None if frame is None else _current_task()

    @property
    def is_in_generator(self) -> bool:
        """Tell whether it was entered in a generator of the caller's own thread and task, so that it may be suspended."""
        return self.frame is not None and self.thread == threading.get_ident() and self.task is _current_task()


current_span: ContextVar[OpenSpan | None] = ContextVar("evidentia_span", default=None)
_entered: ContextVar[Entered | None] = ContextVar("evidentia_context", default=None)


def get_current_context() -> Context | None:
    """Return the innermost context that the caller is in; None outside of any."""
    entered = _current()
    return None if entered is None else entered.context


def enter(context: Context, *, depth: int = 2) -> Entered:
    """Make a context the current one; `depth` is how many calls lie between this and the `with` statement."""
    previous = _alive(_entered.get())
    entered = Entered(context, around=_current(), previous=previous, frame=_generator_frame(depth + 1))
    _entered.set(entered)
    return entered


def leave(entered: Entered) -> None:
    """End it; where the caller is in other variables than those in which it was entered, it is skipped from now on."""
    entered.is_over = True
    entered.frame = None
    if _entered.get() is entered:
        _entered.set(_alive(entered.previous))


def innermost_span(owner: Context, *, is_retrieval: bool = False) -> SpanId | None:
    """Return the innermost open span of a context, or the innermost in which it retrieves."""
    span = current_span.get()
    while span is not None:
        if span.owner is owner and span.is_open and (span.is_retrieval or not is_retrieval):
            return span.span_id
        span = span.outer
    return None


def _current() -> Entered | None:
    newest = _alive(_entered.get())
    entered = newest
    while entered is not None:
        if entered.is_in_generator:
            return _running(newest)
        entered = _alive(entered.previous)
    return newest


def _running(newest: Entered | None) -> Entered | None:
    """Return the context of the nearest generator that runs, or the newest nested in it; suspended ones do not count."""
    places = _places_of_frames()
    best, best_place = None, len(places) + 1
    entered = newest
    while entered is not None:
        place = _place_of(entered, places)
        if place is not None and place < best_place:
            best, best_place = entered, place
        entered = _alive(entered.previous)
    return best


def _place_of(entered: Entered, places: dict[int, int]) -> int | None:
    """Return how far out the nearest generator around a context runs, beyond all frames for none; None when one is suspended."""
    nearest = len(places)
    around: Entered | None = entered
    while around is not None:
        if around.is_in_generator:
            if id(around.frame) not in places:
                return None
            nearest = min(nearest, places[id(around.frame)])
        around = around.around
    return nearest


def _places_of_frames() -> dict[int, int]:
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the only way to know which generators run
    places: dict[int, int] = {}
    while frame is not None:
        places[id(frame)] = len(places)
        frame = frame.f_back
    return places


def _alive(entered: Entered | None) -> Entered | None:
    while entered is not None and entered.is_over:
        entered = entered.previous
    return entered


def _generator_frame(depth: int) -> FrameType | None:
    frame = sys._getframe(depth)  # noqa: SLF001 - the only way to know that a generator enters
    if not frame.f_code.co_flags & _GENERATOR:
        return None
    driver = frame.f_back
    return None if driver is not None and driver.f_globals.get("__name__") == _WANTS_A_LEAK else frame


def _current_task() -> object:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


# --- spans ---
# Spans of a run: what is recorded while one is open belongs under it, in the thread or task that opened it and those it starts.


class Span:
    """A span of a run, for `with` and `async with`; leaving by an exception is recorded as its error."""

    def __init__(self, owner: Context, name: str, *, is_retrieval: bool) -> None:
        self._owner = owner
        self.name = checked_text(name, "name")
        self.is_retrieval = is_retrieval
        self.sources: int | None = None
        """How many sources were found; set it before leaving."""
        self._open: OpenSpan | None = None

    def __enter__(self) -> Self:
        """Open it."""
        span_id = SpanId(f"s{self._owner.next_span_number()}")
        opened = SpanOpened(span=innermost_span(self._owner), opened=span_id, name=self.name, is_retrieval=self.is_retrieval)
        self._owner.record_call(opened)
        self._open = OpenSpan(self._owner, span_id, is_retrieval=self.is_retrieval, outer=current_span.get())
        current_span.set(self._open)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close it."""
        self.close(sources=self.sources, error="" if kind is None else kind.__name__)

    async def __aenter__(self) -> Self:
        """Open it."""
        return self.__enter__()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close it."""
        self.__exit__(kind, error, trace)

    def close(self, *, sources: int | None = None, error: str = "") -> None:
        """Close it; again does nothing."""
        opened, self._open = self._open, None
        if opened is None:
            return
        opened.is_open = False
        if current_span.get() is opened:
            current_span.set(opened.outer)
        if not self._owner.is_over:
            self._owner.record_call(SpanClosed(span=innermost_span(self._owner), closed=opened.span_id, sources=sources, error=error))


def open_span(owner: Context, name: str, *, is_retrieval: bool) -> Span:
    """Open a span that is closed by hand."""
    return Span(owner, name, is_retrieval=is_retrieval).__enter__()
