"""A governed run as a context holds it: begun once, given calls one by one, finished once. It never hides an exception on its way.

Calls are decided about as they come, or, where they are deferred, when the run ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

import msgspec

from evidentia.agents.enforcement import HasAlerts, VerdictEnforcer
from evidentia.agents.errors import InvalidRecordError
from evidentia.agents.governors import AnyBase, GovernorSource, checked_bodies, resolve_governor
from evidentia.contracts.errors import InvalidFieldError, PolicyViolationError
from evidentia.contracts.judging import NO_TEXTS
from evidentia.contracts.runs import AnyCall, RunEnded, RunFacts, RunId, RunStatus, StepCall

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evidentia.contracts.decisions import PolicyDecision, Verdict
    from evidentia.contracts.policies import PolicyBody
    from evidentia.contracts.ports import GovernedRun

_NOT_RUNNING: Final = "nothing is recorded outside of it; use it with `with` or `async with`, and record inside"


@runtime_checkable
class SupportsFlush(Protocol):
    """A run whose records can be waited for."""

    def flush(self) -> None:
        """Wait until everything recorded so far is written."""
        ...


class RecordedRun:
    """One run from its beginning to its end. Thread safe while it is open, as far as the governed run is."""

    def __init__(
        self,
        facts: RunFacts,
        *,
        base: AnyBase | None,
        policies: Sequence[PolicyBody | Mapping[str, Any]],  # Any: bodies as an author writes them
        enforcement: VerdictEnforcer,
        is_durable: bool,
        is_deferred: bool,
    ) -> None:
        self.facts = facts
        self.live: GovernedRun | None = None
        """The run while calls are decided about at once; None before, after, and while they are deferred."""
        self.is_over = False
        self._base = base
        self._policies = policies
        self._enforcement = enforcement
        self._is_durable = is_durable
        self._source: GovernorSource | None = None
        self._run: GovernedRun | None = None
        self._deferred: list[tuple[AnyCall, str, Mapping[str, str]]] | None = [] if is_deferred else None
        self._notes: list[StepCall] = []

    @property
    def is_quick(self) -> bool:
        """Tell whether beginning and ending wait for nothing outside of this process."""
        return self._source is not None and self._source.is_quick

    def prepare(self, *, parent: RunId | None) -> None:
        """Resolve who governs, before anything that may wait."""
        if self._run is not None:
            raise InvalidRecordError("context", "it was entered before; make a new one for each run")
        if parent is not None:
            self.facts = msgspec.structs.replace(self.facts, parent_run_id=parent)
        self._source = resolve_governor(self._base, durable=self._is_durable)

    def begin(self) -> None:
        """Begin the run; one that is stopped by what was met at the beginning ends there."""
        bodies = checked_bodies(self._policies, tenant=self.facts.tenant) if self._policies else ()
        assert self._source is not None  # noqa: S101 - prepared before
        run = self._source.open().start(self.facts, policies=bodies, is_enforced=self._enforcement.is_enforced)
        self._run = run
        met: object = run
        if isinstance(met, HasAlerts) and met.alerts:
            try:
                self._enforcement.enforce(run, met.alerts)
            except PolicyViolationError as error:
                run.finish(RunEnded(status=RunStatus.BLOCKED, error_type=type(error).__name__))
                raise
        self.live = run if self._deferred is None else None

    def record(self, call: AnyCall, text: str = "", texts: Mapping[str, str] = NO_TEXTS) -> None:
        """Record a call; the policies decide here, and a block is raised here."""
        run = self.live
        if run is None:
            self._defer(call, text, texts)
            return
        verdicts = run.record(call, text=text, texts=texts)
        if verdicts:
            self._enforcement.enforce(run, verdicts, is_announced=call.is_announced)

    def record_step(self, call: AnyCall, text: str = "", texts: Mapping[str, str] = NO_TEXTS) -> None:
        """Record a call that settles counts, after what was noted since the last one."""
        notes, self._notes = self._notes, []
        for note in notes:
            self.record(note)
        self.record(call, text, texts)

    def note(self, call: StepCall) -> None:
        """Keep what belongs to the run as a whole until the next step: a step would settle the counts of documents too early."""
        if self._run is None or self.is_over:
            raise InvalidRecordError("context", _NOT_RUNNING)
        self._notes.append(call)

    def finish(self, end: RunEnded, *, text: str) -> Sequence[Verdict]:
        """Decide about what was deferred and about the run as a whole, and return what stops it."""
        run = self._running()
        self.live = None
        stopping = self._decide_deferred(run)
        if stopping:
            end = msgspec.structs.replace(end, status=RunStatus.BLOCKED)
        late = self._enforcement.take(run.finish(end, text=text))
        return stopping or late

    def close(self) -> None:
        """Take nothing more."""
        self.live = None
        self.is_over = True

    def stop(self, verdicts: Sequence[Verdict]) -> None:
        """Raise what stops a run that has ended, unless it is approved."""
        self._enforcement.stop(self._running(), verdicts, is_over=True)

    def decisions(self) -> Sequence[PolicyDecision]:
        """Return what was decided so far, in order, as the log tells it."""
        return () if self._run is None else self._run.decisions()

    def flush(self) -> None:
        """Wait until everything recorded so far is written; where calls are decided about at the end, that stays so."""
        run: object = self._run
        if isinstance(run, SupportsFlush):
            run.flush()

    def _defer(self, call: AnyCall, text: str, texts: Mapping[str, str]) -> None:
        if self._run is None or self.is_over or self._deferred is None:
            raise InvalidRecordError("context", _NOT_RUNNING)
        self._deferred.append((call, text, texts))

    def _decide_deferred(self, run: GovernedRun) -> Sequence[Verdict]:
        """Record what waits for the end, in order, and return the verdicts of the first call that is stopped."""
        notes, self._notes = self._notes, []
        stopping: Sequence[Verdict] = ()
        for call, text, texts in (*(self._deferred or ()), *((note, "", NO_TEXTS) for note in notes)):
            found = self._enforcement.take(run.record(call, text=text, texts=texts), is_announced=call.is_announced)
            stopping = stopping or found
        return stopping

    def _running(self) -> GovernedRun:
        if self._run is None:
            raise InvalidFieldError("context", "it is not entered")
        return self._run
