"""Sources that misbehave after a script: written once, asked by every system of `deadline.py` through its own door.

The script says for every request what is wrong with each source. It is drawn from a seed and read from the question, which names
its request by number, so that every system meets the same faults whatever it takes.
"""

from __future__ import annotations

import asyncio
import random
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

SOURCES = 6
PROPOSALS = 10
HANG_S = 2.0
"""A source that hangs gives its answer after this long: who waits for it gets it, so that every run ends."""
DRIP_S = 0.06
"""The pause before every proposal of a source that drips: ten of them are later than every deadline here."""
HUGE_CHARS = 3_000_000
QUICKEST_MS, SLOWEST_MS = 1, 8
FAULT_SHARE = 1 / 12
STRETCH, OUTAGE = 250, 50
"""At the start of every stretch of requests one source has one fault for so many requests on end."""
LIES = (float("nan"), float("inf"), float("-inf"), -1.0, 1e300)


class Fault(StrEnum):
    """What is wrong with one call of one source."""

    NONE = "none"
    HANG = "hang"
    DRIP = "slow drip"
    ERROR = "error"
    CRASH = "crash in the middle of a reply"
    HUGE = "huge reply"
    LIES = "lying scores"


FAULTS = tuple(fault for fault in Fault if fault is not Fault.NONE)


class Turn(NamedTuple):
    """What one source does with one request."""

    fault: Fault
    pause_ms: float


class Proposal(NamedTuple):
    """What a source proposes, before a system gives it its own form."""

    name: str
    text: str
    score: float


def write_script(requests: int, *, seed: int) -> list[list[Turn]]:
    """Return what every source does with every request; a longer script begins with the shorter one."""
    chance = random.Random(seed)
    script: list[list[Turn]] = []
    broken, outage = 0, Fault.NONE
    for number in range(requests):
        if number % STRETCH == 0:
            broken, outage = chance.randrange(SOURCES), chance.choice(FAULTS)
        turns = [_turn(chance) for _ in range(SOURCES)]
        if number % STRETCH < OUTAGE:
            turns[broken] = turns[broken]._replace(fault=outage)
        script.append(turns)
    return script


def question(number: int) -> str:
    """Return a question that no other request asks."""
    return f"question {number}: what do the sources hold about subject {number * 7919 % 10_007}?"


class Source:
    """One source of the script."""

    def __init__(self, place: int, script: Sequence[Sequence[Turn]]) -> None:
        self.place = place
        self.name = f"source-{place}"
        self.asked: set[int] = set()
        """The requests that reached it, by their numbers: what a system says of itself is not taken for that."""
        self._script = script

    async def propose(self, asked: str) -> AsyncIterator[Proposal]:
        """Yield ten proposals, best first, as the script allows."""
        number = int(asked.split()[1].rstrip(":"))
        self.asked.add(number)
        turn = self._script[number][self.place]
        await asyncio.sleep(HANG_S if turn.fault is Fault.HANG else turn.pause_ms / 1_000)
        if turn.fault is Fault.ERROR:
            raise ConnectionError("the source is not there")
        for rank in range(PROPOSALS):
            if turn.fault is Fault.DRIP:
                await asyncio.sleep(DRIP_S)
            if turn.fault is Fault.CRASH and rank == PROPOSALS // 2:
                raise ConnectionResetError("the source broke off")
            yield self._proposal(number, rank, turn.fault)

    def _proposal(self, number: int, rank: int, fault: Fault) -> Proposal:
        text = f"Fragment {rank} of {self.name} on what request {number} asks, which no other source says in these words."
        if fault is Fault.HUGE and rank == 0:
            text += " and more" * (HUGE_CHARS // len(" and more"))
        return Proposal(f"{number}-{rank}", text, LIES[rank % len(LIES)] if fault is Fault.LIES else 1 / (rank + 1))


def _turn(chance: random.Random) -> Turn:
    fault = chance.choice(FAULTS) if chance.random() < FAULT_SHARE else Fault.NONE
    return Turn(fault, chance.uniform(QUICKEST_MS, SLOWEST_MS))
