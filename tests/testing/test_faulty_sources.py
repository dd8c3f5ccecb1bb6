"""Faults on purpose are the same every time, or a red run could not be run again."""

from __future__ import annotations

import asyncio
from itertools import islice

import pytest

from engine.fanout_samples import call_of
from evidentia.testing.faulty_sources import FaultyBlockingSource, FaultySource, SourceFault, proposals_of
from evidentia.testing.virtual_time import VirtualClock, run_virtual

ASK = call_of(FaultySource()).ask
RAISED = {
    SourceFault.ERROR: ConnectionError,
    SourceFault.SYSTEM_EXIT: SystemExit,
    SourceFault.KEYBOARD_INTERRUPT: KeyboardInterrupt,
    SourceFault.GENERATOR_EXIT: GeneratorExit,
    SourceFault.CANCELS_ITSELF: asyncio.CancelledError,
}


@pytest.mark.parametrize("fault", sorted(set(SourceFault) - set(RAISED) - {SourceFault.CRASH}))
def test_one_seed_gives_one_reply_and_another_another(fault: SourceFault) -> None:
    first, again, other = (repr(list(islice(proposals_of(fault, ASK, seed=seed, full=8), 8))) for seed in (1, 1, 2))

    assert first == again
    assert (fault is SourceFault.EMPTY) == (first == other)


@pytest.mark.parametrize("fault", sorted(RAISED))
def test_those_that_raise_raise_it_on_both_kinds_of_source(fault: SourceFault) -> None:
    async def main() -> None:
        await anext(aiter(FaultySource(fault).retrieve(ASK)))

    with pytest.raises(RAISED[fault]):
        next(FaultyBlockingSource(fault).retrieve_blocking(ASK))
    if fault in (SourceFault.ERROR, SourceFault.CANCELS_ITSELF):
        with pytest.raises(RAISED[fault]):
            run_virtual(main())


def test_one_that_crashes_has_said_half() -> None:
    said: list[object] = []
    with pytest.raises(ConnectionResetError):
        said.extend(proposals_of(SourceFault.CRASH, ASK, seed=1, full=10))

    assert 5 == len(said)


def test_one_that_ignores_cancellation_ends_in_its_own_time() -> None:
    clock = VirtualClock()

    async def main() -> int:
        task = asyncio.ensure_future(anext(aiter(FaultySource(SourceFault.IGNORES_CANCELLATION, stubborn_ms=900).retrieve(ASK))))
        for _ in range(3):
            await asyncio.sleep(0.1)
            task.cancel()
        await asyncio.wait([task])
        return clock.elapsed_ns()

    assert 900_000_000 == run_virtual(main(), clock=clock)


def test_a_hanging_thread_goes_on_when_it_is_released() -> None:
    source = FaultyBlockingSource(SourceFault.HANG, hangs_after=2)
    reply = source.retrieve_blocking(ASK)
    before = [next(reply), next(reply)]
    source.release()

    assert 8 == len(list(reply))
    assert 2 == len(before)
