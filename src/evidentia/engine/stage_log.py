"""What each stage of one request did and how long it took; decisions are for receipts, times only for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.contracts.evidence import Decision

if TYPE_CHECKING:
    from evidentia.contracts.ports import Clock

_NS_PER_MS = 1_000_000


class AbandonedError(Exception):
    """Whoever asked has left, so the next step does not begin; it ends the thread's work and reaches nobody."""


class StageLog:
    """Collects the stages of one request in order."""

    def __init__(self, clock: Clock, *, deadline_ms: int) -> None:
        self._clock = clock
        self.started_at = clock.now()
        self._started = self._last = clock.elapsed_ns()
        self._deadline_ms = deadline_ms
        self.decisions: list[Decision] = []
        self.latencies_ms: dict[str, float] = {}
        self.degraded: list[str] = []
        self._is_cancelled = False

    @property
    def started_ns(self) -> int:
        """Return the moment at which the request began, on the clock that never goes back."""
        return self._started

    def mark(self, stage: str, note: str, *, remaining: int = 0) -> None:
        """Close a stage: say what it did and how many candidates are left. Raises when whoever asked has left meanwhile."""
        self.check_cancelled()
        now = self._clock.elapsed_ns()
        self.decisions.append(Decision(stage=stage, note=note, remaining=remaining))
        self.latencies_ms[stage] = (now - self._last) / _NS_PER_MS
        self._last = now

    def check_cancelled(self) -> None:
        """Raise when whoever asked has left."""
        if self._is_cancelled:
            raise AbandonedError

    def cancel(self) -> None:
        """Let the stage that is open be the last one; may be called from any thread."""
        self._is_cancelled = True

    def degrade(self, reason: str) -> None:
        """Say what the answer lacks."""
        self.degraded.append(reason)

    def elapsed_ms(self) -> float:
        """Return how long the request has taken so far."""
        return (self._clock.elapsed_ns() - self._started) / _NS_PER_MS

    def left_ms(self) -> float:
        """Return how much of the deadline is left; less than 0 when it is over."""
        return self._deadline_ms - self.elapsed_ms()

    def late_note(self, elapsed_ms: float) -> tuple[str, ...]:
        """Return what is said of an answer that comes after its deadline; nothing of one in time."""
        return (f"deadline: the answer took longer than {self._deadline_ms} ms",) if elapsed_ms > self._deadline_ms else ()
