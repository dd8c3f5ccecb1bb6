"""Calls of sources while they are out: each reads its source one proposal at a time, so that whatever ends it leaves what came.

Whatever a source raises ends here; what it does to the thread it runs on cannot. An async source that computes without ever
awaiting holds up the event loop it shares with others, and belongs behind `adapted(..., isolate=True)`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from typing import TYPE_CHECKING, NamedTuple

from evidentia.contracts.errors import EvidentiaError, MissingExtraError
from evidentia.contracts.evidence import CoverageReport
from evidentia.contracts.retrieval import ExternalCandidate, SourceAsk, SourceReply
from evidentia.contracts.vocabulary import ConnectionKind, CoverageState

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from evidentia.contracts.ports import BlockingRetriever, Retriever
    from evidentia.contracts.sources import SourceDescriptor
    from evidentia.federation.bulkhead import Bulkhead
    from evidentia.sources.intake import Intake, Taken


_log = logging.getLogger(__name__)

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
            problem = problem_of(error, call)
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
            self._raised = problem_of(error, call)
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


# --- fanout problems ---
# Says what went wrong inside a source in a few safe words: the kind of the error, and a message only where it is one of ours.

_OURS = frozenset({ConnectionKind.BASE, ConnectionKind.REMOTE, ConnectionKind.MCP, ConnectionKind.MEMORY})
"""Connections whose code, and so whose messages, are this package's."""
_MAX_PROBLEM_CHARS = 160
_MAX_KIND_CHARS = 60
_MAX_RAW_CHARS = 2_000
_LEFT_OUT = "…"
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|«[^»]*»|“[^”]*”")
_ADDRESS = re.compile(r"\b([a-z][a-z0-9+.-]*)://\S*", re.IGNORECASE)
_LONG_WORD = re.compile(r"\S{24,}")
_UNPRINTABLE = re.compile(r"[^\w .,;:!?()\[\]{}/+*=%$#@&|_…'\"-]")


class Problem(NamedTuple):
    """Why a source failed."""

    kind: str
    """The error's type."""
    told: str
    """The type, and what a connection of ours says of it."""


def problem_of(error: BaseException, call: SourceCall) -> Problem:
    """Describe an error; its message is told only where a connection of ours wrote it, without what it quotes.

    What a stranger's code raises may hold anything: keys, paths, rows that the caller may not see. It is written to the log of this
    process alone, for whoever looks for the cause, and only at the level `debug`.
    """
    kind = _cleaned(type(error).__name__)[:_MAX_KIND_CHARS] or "Exception"
    is_ours = isinstance(error, EvidentiaError) and call.descriptor.connection.kind in _OURS
    if not is_ours:
        _log.debug("a source raised", extra={"source": call.descriptor.source_id}, exc_info=error)
        return Problem(kind=kind, told=kind)
    message = str(error) if type(error) is MissingExtraError else _message(error, query=call.ask.query.text)
    return Problem(kind=kind, told=f"{kind}: {message}" if message else kind)


def _message(error: BaseException, *, query: str) -> str:
    """Return the message of an error without quoted text, addresses, long words and the question itself."""
    raw = str(error)[:_MAX_RAW_CHARS]
    if query:
        raw = raw.replace(query, _LEFT_OUT)
    for pattern in (_QUOTED, _ADDRESS, _LONG_WORD):
        raw = pattern.sub(_LEFT_OUT, raw)
    cleaned = _cleaned(raw)
    return cleaned if len(cleaned) <= _MAX_PROBLEM_CHARS else f"{cleaned[: _MAX_PROBLEM_CHARS - 1]}{_LEFT_OUT}"


def _cleaned(text: str) -> str:
    return " ".join(_UNPRINTABLE.sub(" ", text).split())


# --- fanout replies ---
# Writes down what became of a call: the state, the reason in words, and what came.

_NS_PER_MS = 1_000_000


GIVEN_UP = "given up: "
"""How the account of a source begins that was not waited for because enough had come."""


def finished_reply(flight: Flight, *, asked_ns: int, started_ns: int) -> SourceReply:
    """Return the reply of a call that ended by itself, well or not."""
    taken = flight.intake.finished()
    problem = flight.problem
    elapsed_ms = _in_ms(flight.ended_ns - asked_ns)
    asked_ms = _in_ms(asked_ns - started_ns)
    if problem is None:
        reason = "it proposed more than is read; the rest was left" if taken.is_cut else ""
        return _asked(flight.call, taken, CoverageState.SEARCHED, reason=reason, share=1.0, elapsed_ms=elapsed_ms, asked_ms=asked_ms)
    reason = _with_kept(problem.told, taken)
    share = _share(flight.call.ask, taken)
    return _asked(flight.call, taken, CoverageState.FAILED, reason=reason, share=share, elapsed_ms=elapsed_ms, asked_ms=asked_ms)


def late_reply(flight: Flight, *, asked_ns: int, started_ns: int, now_ns: int) -> SourceReply:
    """Return the reply of a call whose caller does not wait any longer."""
    taken = flight.intake.finished()
    return _asked(
        flight.call,
        taken,
        CoverageState.TIMED_OUT,
        reason=_with_kept(f"not finished within {flight.call.wait_ms} ms", taken),
        share=_share(flight.call.ask, taken),
        elapsed_ms=_in_ms(now_ns - asked_ns),
        asked_ms=_in_ms(asked_ns - started_ns),
    )


def stopped_reply(flight: Flight, reason: str, *, asked_ns: int, started_ns: int, now_ns: int) -> SourceReply:
    """Return the reply of a call that was given up because enough had come; what it had brought is left out, and counted."""
    dropped = len(flight.intake.finished().candidates)
    return refused_reply(
        flight.call,
        CoverageState.SKIPPED,
        f"{GIVEN_UP}{reason}; the {dropped} that had come were dropped" if dropped else f"{GIVEN_UP}{reason}",
        elapsed_ms=_in_ms(now_ns - asked_ns),
        asked_ms=_in_ms(asked_ns - started_ns),
    )


def refused_reply(call: SourceCall, state: CoverageState, reason: str, *, elapsed_ms: float = 0.0, asked_ms: float = 0.0) -> SourceReply:
    """Return the reply in place of a source that took no part."""
    report = CoverageReport(state=state, reason=reason, searched_share=0.0, elapsed_ms=elapsed_ms)
    return _reply(call, report, (), asked_ms=asked_ms)


def _asked(
    call: SourceCall, taken: Taken, state: CoverageState, *, reason: str, share: float, elapsed_ms: float, asked_ms: float
) -> SourceReply:
    report = CoverageReport(
        state=state,
        reason=reason,
        candidates=len(taken.candidates),
        searched_share=share,
        data_age_s=age_s(call.ask, taken.candidates),
        elapsed_ms=elapsed_ms,
        faults=taken.faults,
    )
    return _reply(call, report, taken.candidates, asked_ms=asked_ms)


def _reply(call: SourceCall, report: CoverageReport, candidates: tuple[ExternalCandidate, ...], *, asked_ms: float) -> SourceReply:
    descriptor = call.descriptor
    return SourceReply(
        source_id=descriptor.source_id,
        part=call.part,
        part_weight_milli=call.part_weight_milli,
        report=report,
        candidates=candidates,
        source_type=descriptor.source_type,
        version=descriptor.version,
        weight_milli=descriptor.weight_milli,
        freshness_tau_s=descriptor.freshness_tau_s,
        asked_ms=asked_ms,
    )


def _with_kept(reason: str, taken: Taken) -> str:
    kept = len(taken.candidates)
    return f"{reason}; the {kept} that had come were kept, the rest is missing" if kept else f"{reason}; nothing had come"


def _share(ask: SourceAsk, taken: Taken) -> float:
    """Return how much of a reply that did not end is there: of as many as were asked for, those that came.

    That is 0 when nothing came, and 1 when as many came as were asked for, though the state says that it did not end.
    """
    return min(1.0, len(taken.candidates) / ask.limit) if ask.limit > 0 else 0.0


def age_s(ask: SourceAsk, candidates: Sequence[ExternalCandidate]) -> int | None:
    """Return how old the newest of what came is; None where nothing has a date."""
    newest = newest_of(candidates)
    return None if newest is None else max(0, int((ask.as_of - newest).total_seconds()))


def newest_of(candidates: Sequence[ExternalCandidate]) -> datetime | None:
    """Return when the newest of what came was changed, as far as it says."""
    return max((candidate.updated_at for candidate in candidates if candidate.updated_at is not None), default=None)


def _in_ms(elapsed_ns: int) -> float:
    return round(elapsed_ns / _NS_PER_MS, 3)
