"""Sources that misbehave on purpose, each in one way, so that whatever asks sources can be shown to bear it.

All are repeatable: the same seed gives the same proposals and the same pauses. Time is the event loop's, so that under
`testing.virtual_time` nothing really waits.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
from datetime import timedelta
from enum import StrEnum
from itertools import count, islice
from typing import TYPE_CHECKING, Final

from evidentia.contracts.ports import BlockingRetriever, Retriever
from evidentia.contracts.retrieval import Candidate, SourceAsk
from evidentia.testing.determinism import START

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


_HUGE_CHARS = 3_000_000
_MS_PER_S = 1_000


class SourceFault(StrEnum):
    """What is wrong with a source."""

    NONE = "none"
    """Nothing: it answers after its pause."""
    EMPTY = "empty"
    """Nothing: it has no answer."""
    HANG = "hang"
    """It never answers."""
    SLOW_DRIP = "slow_drip"
    """It pauses before every proposal."""
    ERROR = "error"
    """It raises instead of an answer."""
    CRASH = "crash"
    """It raises in the middle of its answer."""
    ENDLESS = "endless"
    """Its answer has no end, and all of it is there at once."""
    HUGE = "huge"
    """One proposal has millions of characters."""
    WRONG_TYPES = "wrong_types"
    """What it proposes are no candidates."""
    LYING_SCORES = "lying_scores"
    """Its scores are no shares: not numbers, without bounds, or against its own order."""
    DUPLICATE_IDS = "duplicate_ids"
    """It calls different proposals by one name."""
    IGNORES_CANCELLATION = "ignores_cancellation"
    """It goes on for a while when it is cancelled. A source that blocks always does."""
    SYSTEM_EXIT = "system_exit"
    """It tries to end the process."""
    KEYBOARD_INTERRUPT = "keyboard_interrupt"
    """It raises what only a person at the keyboard should."""
    GENERATOR_EXIT = "generator_exit"
    """It raises what only the end of a generator should."""
    CANCELS_ITSELF = "cancels_itself"
    """It raises what only whoever asked should: that it was cancelled."""
    RAISES_ON_CLOSE = "raises_on_close"
    """Its answer has no end, and it raises when it is closed."""


class FaultySource(Retriever):
    """Implements `Retriever` with one fault.

    `proposals` is how many a full answer has, `pause_ms` how long it takes before it begins (and before each one, when it drips),
    `stubborn_ms` how long one that ignores cancellation goes on.
    """

    def __init__(
        self,
        fault: SourceFault = SourceFault.NONE,
        *,
        seed: int = 0,
        proposals: int = 10,
        pause_ms: float = 0.0,
        stubborn_ms: float = 10_000.0,
    ) -> None:
        self.fault = fault
        self.calls = 0
        self._seed = seed
        self._proposals = proposals
        self._pause_s = pause_ms / _MS_PER_S
        self._stubborn_s = stubborn_ms / _MS_PER_S

    async def retrieve(self, ask: SourceAsk) -> AsyncIterator[object]:
        """Yield what the fault allows."""
        self.calls += 1
        if self._pause_s:
            await asyncio.sleep(self._pause_s)
        if self.fault is SourceFault.HANG:
            await asyncio.Event().wait()
        if self.fault is SourceFault.IGNORES_CANCELLATION:
            await self._persist()
        try:
            for proposed in proposals_of(self.fault, ask, seed=self._seed, full=self._proposals):
                if self.fault is SourceFault.SLOW_DRIP:
                    await asyncio.sleep(self._pause_s)
                yield proposed
        finally:
            if self.fault is SourceFault.RAISES_ON_CLOSE:
                raise RuntimeError("closing failed")

    async def _persist(self) -> None:
        loop = asyncio.get_running_loop()
        until_s = loop.time() + self._stubborn_s
        while loop.time() < until_s:
            try:
                await asyncio.sleep(until_s - loop.time())
            except asyncio.CancelledError:
                continue


class FaultyBlockingSource(BlockingRetriever):
    """Implements `BlockingRetriever` with one fault. One that hangs does so until `release` is called.

    `hangs_after` proposals come before it hangs.
    """

    def __init__(self, fault: SourceFault = SourceFault.NONE, *, seed: int = 0, proposals: int = 10, hangs_after: int = 0) -> None:
        self.fault = fault
        self.calls = 0
        self._seed = seed
        self._proposals = proposals
        self._hangs_after = hangs_after
        self._released = threading.Event()
        self._lock = threading.Lock()

    def retrieve_blocking(self, ask: SourceAsk) -> Iterator[object]:
        """Yield what the fault allows."""
        with self._lock:
            self.calls += 1
        proposed = proposals_of(self.fault, ask, seed=self._seed, full=self._proposals)
        if self.fault is SourceFault.HANG:
            yield from islice(proposed, self._hangs_after)
            self._released.wait()
        try:
            yield from proposed
        finally:
            if self.fault is SourceFault.RAISES_ON_CLOSE:
                raise RuntimeError("closing failed")

    def release(self) -> None:
        """Let every call that hangs go on."""
        self._released.set()


def proposals_of(fault: SourceFault, ask: SourceAsk, *, seed: int, full: int) -> Iterator[object]:
    """Yield the proposals of a source with a fault, or raise what it raises; nothing here takes time."""
    raised = _RAISED.get(fault)
    if raised is not None:
        raise raised("raised by a faulty source")
    if fault is SourceFault.EMPTY:
        return
    is_endless = fault in (SourceFault.ENDLESS, SourceFault.RAISES_ON_CLOSE)
    for place in count() if is_endless else range(full):
        if fault is SourceFault.CRASH and place >= (full + 1) // 2:
            raise ConnectionResetError("the connection was reset while 'private words' were being read")
        yield _proposal(fault, ask, seed=seed, place=place)


def _proposal(fault: SourceFault, ask: SourceAsk, *, seed: int, place: int) -> object:
    draw = int.from_bytes(hashlib.blake2b(f"{seed}:{place}".encode(), digest_size=4).digest(), "big")
    if fault is SourceFault.WRONG_TYPES:
        return _WRONG[draw % len(_WRONG)]
    content = f"fragment {place} of source {seed} about {ask.query.text} ({draw})"
    score: object = 1 / (place + 1)
    if fault is SourceFault.LYING_SCORES:
        score = _LIES[draw % len(_LIES)]
    return Candidate(
        content=content + "x" * _HUGE_CHARS if fault is SourceFault.HUGE and place == 0 else content,
        own_id="always the same" if fault is SourceFault.DUPLICATE_IDS else f"{seed}-{place}",
        score=score,  # type: ignore[arg-type]  # a lie may be anything
        origin=f"test://{seed}/{place}",
        updated_at=START - timedelta(seconds=draw % 1_000_000),
    )


class _Unreadable:
    """Raises whatever is asked of it."""

    @property
    def content(self) -> str:
        raise RuntimeError("cannot be read")


_RAISED: Final[dict[SourceFault, type[BaseException]]] = {
    SourceFault.ERROR: ConnectionError,
    SourceFault.SYSTEM_EXIT: SystemExit,
    SourceFault.KEYBOARD_INTERRUPT: KeyboardInterrupt,
    SourceFault.GENERATOR_EXIT: GeneratorExit,
    SourceFault.CANCELS_ITSELF: asyncio.CancelledError,
}
_WRONG: Final = (None, 7, 2.5, b"bytes", object(), {"content": 5}, ["a list"], {"no": "content"}, _Unreadable())
_LIES: Final = (float("nan"), float("inf"), float("-inf"), -1.0, 1e300, "best", None, 10**400, 0.5)
