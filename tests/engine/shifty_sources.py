"""Sources that behave otherwise each time they are asked, and an oracle of its own for what each behaviour has to lead to."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, NamedTuple

from evidentia.contracts.vocabulary import CoverageState
from evidentia.testing.faulty_sources import FaultySource, SourceFault, proposals_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from random import Random

    from evidentia.contracts.retrieval import SourceAsk
    from evidentia.testing.virtual_time import VirtualClock

MAX_CANDIDATES, MAX_CHARS, MAX_REPLY_CHARS = 12, 400, 4_000
STUBBORN_MS = 1_500.0
FAULTS = (*SourceFault, *6 * (SourceFault.NONE,), SourceFault.EMPTY, SourceFault.CRASH, SourceFault.SLOW_DRIP)
PAUSES_MS = (0, 0, 0, 1, 4, 9, 14.5, 20, 29, 60, 140, 300, 700)
RAISING = frozenset(
    {
        SourceFault.ERROR,
        SourceFault.SYSTEM_EXIT,
        SourceFault.KEYBOARD_INTERRUPT,
        SourceFault.GENERATOR_EXIT,
        SourceFault.CANCELS_ITSELF,
    }
)
ENDLESS = frozenset({SourceFault.ENDLESS, SourceFault.RAISES_ON_CLOSE})


class Behaviour(NamedTuple):
    """What a source did when it was asked, and what it was asked."""

    fault: SourceFault
    proposals: int
    pause_ms: float
    ask: SourceAsk
    seed: int

    @property
    def fails(self) -> bool:
        """Tell whether it ends with an error, if it is given the time."""
        return self.fault in RAISING or (self.fault is SourceFault.CRASH and self.proposals > 1)

    @property
    def ends_ms(self) -> float:
        """Return when it ends by itself, in milliseconds after it was asked."""
        if self.fault is SourceFault.HANG:
            return inf
        if self.fault is SourceFault.SLOW_DRIP:
            return self.pause_ms * (1 + self.proposals)
        return self.pause_ms + (STUBBORN_MS if self.fault is SourceFault.IGNORES_CANCELLATION else 0)

    def states(self) -> set[CoverageState]:
        """Return the states of which one is true; on the very moment at which the wait ends, two are."""
        ended = CoverageState.FAILED if self.fails else CoverageState.SEARCHED
        wait_ms = self.ask.budget_ms
        return ({ended} if self.ends_ms <= wait_ms else set()) | ({CoverageState.TIMED_OUT} if self.ends_ms >= wait_ms else set())

    def came(self, state: CoverageState) -> set[int]:
        """Return how many candidates it may have brought by the time it was in a state."""
        if self.fault is SourceFault.EMPTY or self.fault in RAISING:
            return {0}
        if state is CoverageState.TIMED_OUT:
            return self._in_time()
        if self.fault is SourceFault.WRONG_TYPES:
            return set(range(min(MAX_CANDIDATES, self.proposals) + 1))
        if self.fault in (SourceFault.HUGE, SourceFault.DUPLICATE_IDS):
            return {min(1, self.proposals)}
        proposed = (self.proposals + 1) // 2 if self.fails else self.proposals
        return {MAX_CANDIDATES if self.fault in ENDLESS else min(MAX_CANDIDATES, proposed)}

    def faults(self) -> dict[str, int] | None:
        """Return what has to be counted once it has ended; None where only the sum is known."""
        read = min(MAX_CANDIDATES, self.proposals)
        counted: dict[str, int] = {}
        if self.fault is SourceFault.WRONG_TYPES:
            return None
        if self.fault in ENDLESS or (self.proposals > MAX_CANDIDATES and not self.fails and self.fault is not SourceFault.EMPTY):
            counted["too_many"] = 1
        if self.fault is SourceFault.DUPLICATE_IDS and read > 1:
            counted["duplicate_id"] = read - 1
        if self.fault is SourceFault.HUGE and read:
            counted = {"reply_too_large": 1, "too_long": 1}
        if self.fault is SourceFault.LYING_SCORES and (lies := self._lies(read)):
            counted["bad_score"] = lies
        return counted

    def _in_time(self) -> set[int]:
        if self.fault is not SourceFault.SLOW_DRIP or not self.pause_ms:
            return {0}
        exact = self.ask.budget_ms / self.pause_ms - 1
        whole = max(0, min(MAX_CANDIDATES, int(exact), self.proposals))
        return {whole, max(0, whole - 1)} if exact == int(exact) else {whole}

    def _lies(self, read: int) -> int:
        scores = [getattr(each, "score", None) for each in proposals_of(self.fault, self.ask, seed=self.seed, full=read)]
        return sum(1 for score in scores if score is not None and not (isinstance(score, float) and 0 <= score <= 1))


class ShiftySource:
    """Implements `Retriever`: every call draws a fault, a length and a pause, and notes it under whoever asked."""

    def __init__(self, number: int, random: Random, clock: VirtualClock, *, faults: tuple[SourceFault, ...] = FAULTS) -> None:
        self.number = number
        self.calls: dict[str, Behaviour] = {}
        """By the agent's name, which every request has to itself."""
        self._random = random
        self._clock = clock
        self._faults = faults

    def retrieve(self, ask: SourceAsk) -> AsyncIterator[object]:
        """Answer as the draw says; one call in fifteen puts the wall clock forward or back."""
        draw = self._random
        if draw.random() < 1 / 15:
            self._clock.jump(draw.uniform(-1e6, 1e6))
        behaviour = Behaviour(draw.choice(self._faults), draw.choice((0, 1, 1, 2, 3, 4, 14)), draw.choice(PAUSES_MS), ask, seed=self.number)
        assert ask.agent_name not in self.calls
        self.calls[ask.agent_name] = behaviour
        source = FaultySource(
            behaviour.fault,
            seed=self.number,
            proposals=behaviour.proposals,
            pause_ms=behaviour.pause_ms,
            stubborn_ms=STUBBORN_MS,
        )
        return source.retrieve(ask)
