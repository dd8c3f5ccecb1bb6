"""Every source has its own time: that of another that has long answered cuts nobody short."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from evidentia.contracts.access import local_owner
from evidentia.contracts.evidence import SubQuery
from evidentia.contracts.ids import SourceId
from evidentia.contracts.retrieval import SourceAsk
from evidentia.contracts.settings import FanoutSettings, SourceSettings
from evidentia.contracts.sources import SourceDescriptor
from evidentia.contracts.vocabulary import BreakerState, CoverageState
from evidentia.federation.fanout import FanOut, SourceCall
from evidentia.testing.virtual_time import VirtualClock, run_virtual

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

AS_OF = datetime(2026, 1, 1, tzinfo=UTC)


class After:
    """Answers after so many milliseconds."""

    def __init__(self, delay_ms: int) -> None:
        self._delay_ms = delay_ms

    async def retrieve(self, _: SourceAsk) -> AsyncIterator[object]:
        await asyncio.sleep(self._delay_ms / 1_000)
        yield "said"


def test_a_short_wait_of_a_source_that_answered_does_not_end_the_longer_one_of_another() -> None:
    async def scenario() -> list[CoverageState]:
        clock = VirtualClock()
        fanout = FanOut(clock=clock, settings=FanoutSettings(), limits=SourceSettings(), record=lambda *_: None, on_late=lambda *_: None)
        calls = [_call("quick", After(1), wait_ms=15), _call("slow", After(100), wait_ms=150)]
        replies = await fanout.run(calls, started_ns=clock.elapsed_ns())
        await fanout.close()
        return [reply.report.state for reply in replies]

    assert [CoverageState.SEARCHED, CoverageState.SEARCHED] == run_virtual(scenario())


@pytest.mark.parametrize(("delay_ms", "state"), [(30, BreakerState.CLOSED), (2_000, BreakerState.OPEN)])
def test_a_source_that_is_a_little_late_is_slow_and_one_that_is_very_late_is_left_alone(delay_ms: int, state: BreakerState) -> None:
    async def scenario() -> BreakerState:
        clock = VirtualClock()
        settings = FanoutSettings(breaker_failures=2)
        fanout = FanOut(clock=clock, settings=settings, limits=SourceSettings(), record=lambda *_: None, on_late=lambda *_: None)
        for _ in range(4):
            await fanout.run([_call("late", After(delay_ms), wait_ms=15)], started_ns=clock.elapsed_ns())
            await asyncio.sleep(0.05)
        found = fanout.breaker(SourceId("late"))
        await fanout.close()
        return found

    assert state is run_virtual(scenario())


def _call(name: str, source: After, *, wait_ms: int) -> SourceCall:
    ask = SourceAsk(query=SubQuery(text="keys"), principal=local_owner(), limit=5, budget_ms=wait_ms, as_of=AS_OF)
    return SourceCall(descriptor=SourceDescriptor(source_id=SourceId(name)), retriever=source, ask=ask, wait_ms=wait_ms)
