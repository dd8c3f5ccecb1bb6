"""Calls of sources while they are out: each reads its source one proposal at a time, so that whatever ends it leaves what came.

Whatever a source raises ends here; what it does to the thread it runs on cannot. An async source that computes without ever
awaiting holds up the event loop it shares with others, and belongs behind `adapted(..., isolate=True)`.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, NamedTuple

from evidentia.engine.fanout_problems import problem_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from evidentia.contracts.ports import BlockingRetriever, Retriever
    from evidentia.contracts.retrieval import ExternalCandidate, SourceAsk
    from evidentia.contracts.sources import SourceDescriptor
    from evidentia.engine.bulkhead import Bulkhead
    from evidentia.engine.fanout_problems import Problem
    from evidentia.sources.intake import Intake

_BREATH = 16
_BREATH_NS = 250_000
"""After so many proposals, or so long, the others on the event loop have their turn: deadlines are among them."""
_CLOSING_S = 5.0
"""How long a source may take to close a reply that is not read to its end; nobody waits for it."""


class SourceCall(NamedTuple):
    """One question to one source, and how long somebody waits for the answer."""

    descriptor: SourceDescriptor
    retriever: Retriever | BlockingRetriever
    ask: SourceAsk
    wait_ms: int
    """How long the caller waits for it, from the start of the fan-out."""
    part: int = 0
    part_weight_milli: int = 1_000
    admits: Callable[[ExternalCandidate], bool] | None = None
    """Whether the caller may see a candidate, by the rule it came with; None: all of them."""
    token: object = None
    """What the caller wants to see again with a late reply."""


class Flight:
    """A call that is out. It ends once: by itself, or when it is given up; nothing is taken in after that."""

    def __init__(
        self,
        call: SourceCall,
        *,
        position: int,
        ticket: int,
        intake: Intake,
        elapsed_ns: Callable[[], int],
        on_end: Callable[[Flight], None],
    ) -> None:
        self.call = call
        self.elapsed_ns = elapsed_ns
        self.position = position
        self.ticket = ticket
        self.intake = intake
        self.on_end = on_end
        self.is_over = False
        self.is_late = False
        self.problem: Problem | None = None
        self.asked_ns = 0
        self.started_ns = 0
        self.ended_ns = 0
        self.loop: asyncio.AbstractEventLoop | None = None
        self.timer: asyncio.TimerHandle | None = None

    def end(self, problem: Problem | None) -> None:
        """Take note of how the call ended, unless it has been given up."""
        if not self.is_over:
            self.is_over = True
            self.ended_ns = self.elapsed_ns()
            self.problem = problem
            self.on_end(self)

    def give_up(self) -> None:
        """End the call for good; what it goes on with in spite of that reaches nobody."""
        self.is_over = True


class AsyncFlight(Flight):
    """A call of a source that does not block, on a task of its own."""

    task: asyncio.Task[None] | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to read the source."""
        self.loop = loop
        self.task = loop.create_task(self._read())

    def give_up(self) -> None:
        """Cancel the task; a source that takes no notice is left behind."""
        self.is_over = True
        if self.task is not None:
            self.task.cancel()

    async def _read(self) -> None:
        call, intake, elapsed_ns = self.call, self.intake, self.elapsed_ns
        stream: object = None
        problem: Problem | None = None
        is_open = True
        try:
            stream = call.retriever.retrieve(call.ask)  # type: ignore[union-attr]  # a retriever that blocks has a flight of its own
            came, began_ns = 0, elapsed_ns()
            async for proposed in stream:
                if self.is_over or not intake.take(proposed):
                    break
                came += 1
                if not came % _BREATH or elapsed_ns() - began_ns > _BREATH_NS:
                    await asyncio.sleep(0)
                    began_ns = elapsed_ns()
            else:
                is_open = False
        except BaseException as error:  # noqa: BLE001 (whatever a source raises, also to end the process, is its failure and not ours)
            problem = problem_of(error, query=call.ask.query.text)
            # It may be this coroutine that is being closed, which then must not await anything.
            is_open = not isinstance(error, GeneratorExit)
        self.end(problem)
        if is_open and stream is not None:
            await _close(stream)


class BlockingFlight(Flight):
    """A call of a source that blocks, on one of its threads, where proposals are taken in too; the event loop hears of the end."""

    _raised: Problem | None = None

    def start(self, loop: asyncio.AbstractEventLoop, bulkhead: Bulkhead) -> str:
        """Begin to read the source, or return in words why not."""
        self.loop = loop
        return bulkhead.submit(self._read, self._tell_end)

    def _read(self) -> None:
        call, intake = self.call, self.intake
        stream: object = None
        try:
            stream = call.retriever.retrieve_blocking(call.ask)  # type: ignore[union-attr]  # one that does not block has another flight
            for proposed in stream:
                if self.is_over or not intake.take(proposed):
                    self._tell_end()
                    break
        except BaseException as error:  # noqa: BLE001 (whatever a source raises, also to end the process, is its failure and not ours)
            self._raised = problem_of(error, query=call.ask.query.text)
        _close_blocking(stream)

    def _tell_end(self) -> None:
        """Tell the event loop that nothing more will be read; only the first time counts."""
        assert self.loop is not None  # noqa: S101 (set before the thread begins)
        with contextlib.suppress(RuntimeError):  # the loop was closed while the source was out, and nobody waits
            self.loop.call_soon_threadsafe(self._finish)

    def _finish(self) -> None:
        self.end(self._raised)


async def _close(stream: object) -> None:
    """Close a reply that was not read to its end; nobody waits for this, and nothing that goes wrong matters."""
    try:
        if asyncio.iscoroutine(stream):
            stream.close()
        aclose = getattr(stream, "aclose", None)
        if aclose is not None:
            async with asyncio.timeout(_CLOSING_S):
                await aclose()
    except BaseException:  # noqa: BLE001 (the reply has been taken; what a source raises while it tidies up is its own affair)
        return


def _close_blocking(stream: object) -> None:
    try:
        close = getattr(stream, "close", None)
        if close is not None:
            close()
    except BaseException:  # noqa: BLE001 (as above)
        return
