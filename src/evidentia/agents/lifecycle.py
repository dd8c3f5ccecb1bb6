"""How a run begins and ends: entered once, left once, and never hiding the exception that is on its way."""

from __future__ import annotations

import asyncio
import os
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, runtime_checkable

import msgspec

from evidentia.agents.checks import plain
from evidentia.agents.current import enter, get_current_context, leave
from evidentia.agents.enforcement import HasAlerts
from evidentia.agents.errors import InvalidRecordError
from evidentia.agents.finding import checked_bodies, find_governor
from evidentia.agents.recording import hash_of
from evidentia.agents.retrieving import RetrievalRecorder
from evidentia.contracts.errors import InvalidFieldError, PolicyViolationError
from evidentia.contracts.runs import RunEnded, RunFacts, RunId, RunStatus, StepCall
from evidentia.wiring.system import SystemEntropy

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from evidentia.agents.current import Entered
    from evidentia.agents.finding import AnyBase, Found
    from evidentia.contracts.decisions import Verdict
    from evidentia.contracts.policies import PolicyBody
    from evidentia.contracts.ports import GovernedRun
    from evidentia.contracts.runs import AnyCall

_RUN_ID_BYTES: Final = 12
_ANSWERS: Final = ("answer", "output", "text", "response")
"""Where the words of a result are looked for."""


@runtime_checkable
class SupportsFlush(Protocol):
    """A run whose records can be waited for."""

    def flush(self) -> None:
        """Wait until everything recorded so far is written."""
        ...


class RunLifecycle(RetrievalRecorder):
    """The half of a context that begins and ends a run."""

    result: object
    inputs: object
    _facts: RunFacts
    _base: AnyBase | None
    _policies: tuple[PolicyBody | Mapping[str, Any], ...]  # Any: bodies as an author writes them
    _is_enforced: bool
    _is_durable: bool
    _replaces: bool
    _found: Found

    def __init__(self) -> None:
        super().__init__()
        self._run: GovernedRun | None = None
        self._live: GovernedRun | None = None
        self._deferred: list[tuple[AnyCall, str]] | None = None
        self._entered: Entered | None = None
        self._output_text = ""
        self._asked_to_stop = False
        self._is_over = False
        self._status = RunStatus.RUNNING

    @property
    def is_over(self) -> bool:
        """Tell whether the run has ended."""
        return self._is_over

    @property
    def is_replaced(self) -> bool:
        """Tell whether an abstention response has taken the place of the result."""
        return self._is_over and self._replaces and self._heeding.abstention_response is not None

    def __enter__(self) -> Self:
        """Begin the run: the policies of this moment are in force until it ends."""
        self._prepare()
        self._start()
        self._entered = enter(self._owner())
        return self

    async def __aenter__(self) -> Self:
        """Begin the run; what has to be opened, read or asked for does not hold up the event loop."""
        self._prepare()
        if self._is_quick():
            self._start()
        else:
            await asyncio.to_thread(self._start)
        self._entered = enter(self._owner())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End the run and audit it; a block is raised unless an exception is on its way or something was blocked before."""
        self._leave()
        try:
            stopping = self._conclude(error)
        except BaseException as problem:
            self._close(error or problem)
            raise
        self._close(error)
        self._raise_at_the_end(stopping, error)

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End the run and audit it; a judge or a control plane does not hold up the event loop."""
        self._leave()
        try:
            stopping = self._conclude(error) if self._is_quick() else await asyncio.to_thread(self._conclude, error)
        except BaseException as problem:
            self._close(error or problem)
            raise
        self._close(error)
        self._raise_at_the_end(stopping, error)

    def flush(self) -> None:
        """Wait until everything recorded so far is written; where calls are decided about at the end, that stays so."""
        run: object = self._run
        if isinstance(run, SupportsFlush):
            run.flush()

    def next_span_number(self) -> int:
        """Return the number of the next span of this run."""
        return next(self._span_numbers)

    def _is_quick(self) -> bool:
        """Tell whether beginning and ending wait for nothing outside of this process."""
        return self._found.is_quick

    def _prepare(self) -> None:
        if self._run is not None:
            raise InvalidRecordError("context", "it was entered before; make a new one for each run")
        around = get_current_context()
        if around is not None:
            self._facts = msgspec.structs.replace(self._facts, parent_run_id=around.facts.run_id)
        self._found = find_governor(self._base, durable=self._is_durable)

    def _start(self) -> None:
        bodies = checked_bodies(self._policies, tenant=self._facts.tenant) if self._policies else ()
        self._run = self._found.governor().start(self._facts, policies=bodies, is_enforced=self._is_enforced)
        self._heed_alerts(self._run)
        self._live = self._run if self._deferred is None else None
        if self.inputs is not None:
            self._notes.append(StepCall(name="inputs", attributes=self._content(inputs=self.inputs)))

    def _heed_alerts(self, run: GovernedRun) -> None:
        """Heed what was met at the beginning; a run that is stopped there ends there."""
        met: object = run
        if not isinstance(met, HasAlerts) or not met.alerts:
            return
        try:
            self._heeding.heed(run, met.alerts)
        except PolicyViolationError as error:
            run.finish(RunEnded(status=RunStatus.BLOCKED, error_type=type(error).__name__))
            raise

    def _leave(self) -> None:
        if self._run is None or self._entered is None or self._is_over:
            raise InvalidRecordError("context", "it is not entered")
        leave(self._entered)

    def _conclude(self, error: BaseException | None) -> Verdict | None:
        """Decide about what was deferred and about the run as a whole, and return what stops it; never hides an exception."""
        try:
            return self._finish(error)
        except Exception as problem:
            if error is None:
                raise
            error.add_note(f"the run '{self._facts.run_id}' could not be closed: {problem}")
            return None

    def _finish(self, error: BaseException | None) -> Verdict | None:
        run = self._running()
        self._live = None
        stopping = self._decide_deferred(run)
        status = RunStatus.BLOCKED if stopping is not None else self._status_after(error)
        end = RunEnded(
            status=status,
            error_type="" if error is None else type(error).__name__,
            result_hash=hash_of(self.result),
        )
        verdicts = run.finish(end, text=self._output_text or _words_of(self.result))
        late = self._heeding.note(verdicts)
        return stopping or late

    def _decide_deferred(self, run: GovernedRun) -> Verdict | None:
        """Record what waits for the end, in order, and return the first verdict that stops."""
        deferred = self._deferred or []
        notes, self._notes = self._notes, []
        stopping: Verdict | None = None
        for call, text in (*deferred, *((note, "") for note in notes)):
            found = self._heeding.note(run.record(call, text=text), is_ahead=call.is_ahead)
            stopping = stopping or found
        return stopping

    def _close(self, error: BaseException | None) -> None:
        self._live = None
        self._is_over = True
        self._status = self._status_after(error)
        if self.is_replaced:
            self.result = self._heeding.abstention_response

    def _raise_at_the_end(self, stopping: Verdict | None, error: BaseException | None) -> None:
        if stopping is not None and error is None and self._heeding.violation is None:
            self._heeding.stop(self._running(), stopping, is_over=True)

    def _status_after(self, error: BaseException | None) -> RunStatus:
        is_prevented = error is not None and error is self._heeding.prevention  # the agent did not do otherwise
        if self._heeding.violation is not None or is_prevented:
            return RunStatus.BLOCKED
        # A generator that its consumer leaves early has not failed.
        return RunStatus.SUCCESS if error is None or isinstance(error, GeneratorExit) else RunStatus.ERROR

    def _running(self) -> GovernedRun:
        if self._run is None:
            raise InvalidFieldError("context", "it is not entered")
        return self._run


def new_run_id() -> RunId:
    """Return an id that no other run has."""
    return RunId("run-" + _entropy_of(os.getpid()).take(_RUN_ID_BYTES).hex())


@lru_cache(maxsize=1)
def _entropy_of(process: int) -> SystemEntropy:
    """Return the source of randomness of a process: a forked one must not go on with its parent's bytes."""
    del process
    return SystemEntropy()


def _words_of(result: object) -> str:
    """Return what a result says: itself, its answer, or the JSON of it; empty for none."""
    if result is None or isinstance(result, str):
        return result or ""
    if isinstance(result, dict):
        said = next((result[name] for name in _ANSWERS if isinstance(result.get(name), str)), None)
        if said is not None:
            return str(said)
    return msgspec.json.encode(plain(result)).decode()
