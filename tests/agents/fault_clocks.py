"""Worlds whose wall clock jumps while the run goes on, and worlds in which the age of a document is not known."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from fault_judges import Governed, put
from fault_play import Step, World

from evidentia.contracts.policies import PolicyBody, Posture
from evidentia.wiring.governance_runtime import GovernanceRuntime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from evidentia.agents import Context

NOON: Final = datetime(2026, 6, 1, 12, tzinfo=UTC)
AGE: Final = "max_source_age_days"
JUMPS: Final = {
    "hours back": timedelta(hours=-3),
    "hours on": timedelta(hours=3),
    "days back": timedelta(days=-400),
    "days on": timedelta(days=400),
}
_TICK_NS: Final = 1_000_000


class JumpingClock:
    """Implements `Clock`: the steady part goes on by a millisecond at each reading, and the wall goes where it is put."""

    def __init__(self) -> None:
        self.jumped = timedelta()
        self._elapsed_ns = 0

    def now(self) -> datetime:
        """Return the time on the wall."""
        return NOON + self.jumped + timedelta(microseconds=self._elapsed_ns // 1_000)

    def elapsed_ns(self) -> int:
        """Return the steady time."""
        self._elapsed_ns += _TICK_NS
        return self._elapsed_ns


@contextmanager
def clock_world(directory: Path, jump: timedelta, posture: Posture) -> Iterator[World]:
    """Give an agent whose clock jumps between two documents whose ages it knows, and a third of which it knows the date."""
    clock = JumpingClock()
    rules = {AGE: 90, "min_chunks": 0, "action_on_stale_source": "warn"}
    with GovernanceRuntime(directory, clock=clock, is_durable=True) as control:
        put(control, PolicyBody(name="Fresh", category="retrieval", rules=rules, posture={"*": posture}))

        def leap(_: Context) -> None:
            clock.jumped = jump

        steps = (Step("first", _aged(10)), Step("jump", leap), Step("second", _aged(10)), Step("third", _aged(91)), Step("dated", dated))
        yield World(base=Governed(control), steps=steps, struck="dated", what=AGE, logs=lambda _: control.log, fields={"_clock": clock})


@contextmanager
def reopened(directory: Path, jump: timedelta) -> Iterator[World]:
    """Give an agent of a base with policies whose clock stands elsewhere from the start."""
    clock = JumpingClock()
    clock.jumped = jump
    with GovernanceRuntime(directory, clock=clock, is_durable=True) as control:
        yield World(base=Governed(control), steps=(Step("first", _aged(10)),), struck="", what=AGE, logs=lambda _: control.log)


@contextmanager
def unaged_world(directory: Path, posture: Posture) -> Iterator[World]:
    """Give an agent who does not know how old a document is."""
    with GovernanceRuntime(directory) as control:
        put(control, PolicyBody(name="Fresh", category="retrieval", rules={"min_chunks": 0}, posture={AGE: posture}))
        yield World(base=Governed(control), steps=(Step("unaged", _aged(None)),), struck="unaged", what=AGE, logs=lambda _: control.log)


def dated(ctx: Context) -> None:
    """Record a document of which the date is known: ten days and some hours before noon."""
    ctx.record_retrieval_result(relevance_score=0.9, source="dated.pdf", created_at=NOON - timedelta(days=10, hours=6))


def _aged(age_days: int | None) -> Callable[[Context], None]:
    def act(ctx: Context) -> None:
        ctx.record_retrieval_result(relevance_score=0.9, source="a.pdf", age_days=age_days)

    return act
