"""Spans of a run: what is recorded while one is open belongs under it, in the thread or task that opened it and those it starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from evidentia.agents.checks import checked_text
from evidentia.agents.current import OpenSpan, current_span, innermost_span
from evidentia.contracts.calls import SpanId
from evidentia.contracts.runs import SpanClosed, SpanOpened

if TYPE_CHECKING:
    from types import TracebackType

    from evidentia.agents.context import Context


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
