"""Thousands of fan-outs over sources with every fault, in virtual time: none is late, none raises, every call is accounted for."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from engine.fanout_samples import Watched, call_of, without_times
from evidentia.contracts.settings import FanoutSettings, SourceSettings
from evidentia.contracts.vocabulary import CoverageState
from evidentia.testing.faulty_sources import FaultySource, SourceFault
from evidentia.testing.virtual_time import VirtualClock, run_virtual
from soak import cases

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.contracts.retrieval import SourceReply
    from evidentia.federation.fanout import SourceCall

SHARDS = cases(3, of=8)
ARRIVALS = cases(250, of=1_000)
FAN_OUTS_PER_SHARD = 1_300
DEADLINES_MS = (50, 200, 500)
FAULTS = tuple(SourceFault)
LIMITS = SourceSettings(most_candidates=12, most_chars=400, most_reply_chars=4_000)
SETTINGS = FanoutSettings(background_ms=1_000, background_calls=4, breaker_failures=4, breaker_open_ms=700)
RAISING = {
    SourceFault.ERROR,
    SourceFault.CRASH,
    SourceFault.SYSTEM_EXIT,
    SourceFault.KEYBOARD_INTERRUPT,
    SourceFault.GENERATOR_EXIT,
    SourceFault.CANCELS_ITSELF,
}
ASKED = {CoverageState.SEARCHED, CoverageState.TIMED_OUT, CoverageState.FAILED}


class Simulation:
    """A crowd of sources, some always at fault and some now and then, and the account of what they did to whom."""

    def __init__(self, shard: int) -> None:
        self.random = random.Random(shard)
        self.clock = VirtualClock()
        self.watched = Watched(self.clock, settings=SETTINGS, limits=LIMITS)
        self.states: Counter[str] = Counter()
        self.asked = 0
        self.uncaught: list[dict[str, object]] = []
        self.sources: list[FaultySource] = []

    async def run(self) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: self.uncaught.append(context))
        done = 0
        while done < FAN_OUTS_PER_SHARD:
            at_once = self.random.choice((1, 1, 1, 4))
            await asyncio.gather(*(self.one_fan_out() for _ in range(at_once)))
            done += at_once
            await asyncio.sleep(self.random.choice((0.0, 0.01, 0.3)))
        await self.watched.fan_out.close()

    async def one_fan_out(self) -> None:
        deadline_ms = self.random.choice(DEADLINES_MS)
        calls = [self.one_call(deadline_ms) for _ in range(self.random.randint(1, 12))]
        if self.random.random() < 0.1:
            self.clock.jump(self.random.uniform(-1e6, 1e6))
        finished: list[SourceReply] = []
        stops = self.random.random() < 0.1
        began_ns = self.clock.elapsed_ns()
        replies = await self.watched.fan_out.run(
            calls, started_ns=began_ns, enough=enough if stops else None, on_finished=finished.append if stops else None
        )
        elapsed_ms = (self.clock.elapsed_ns() - began_ns) / 1_000_000

        assert max(call.wait_ms for call in calls) + 1e-6 >= elapsed_ms
        assert len(calls) == len(replies)
        for call, reply in zip(calls, replies, strict=True):
            self.check(call, reply)
        if stops:
            assert sorted(map(id, replies)) == sorted(map(id, finished))

    def one_call(self, deadline_ms: int) -> SourceCall:
        number = self.random.randrange(60)
        fault = FAULTS[number % len(FAULTS)] if number < 40 else self.random.choice(FAULTS)
        source = FaultySource(
            fault,
            seed=number,
            proposals=self.random.choice((0, 1, 10, 20)),
            pause_ms=self.random.choice((0, 0, 1, 5, 20, 60, 300, 700)),
            stubborn_ms=1_500,
        )
        self.sources.append(source)
        wait_ms = self.random.choice((deadline_ms, deadline_ms, deadline_ms // 2, 15))
        return call_of(source, f"s{number:02}", wait_ms=wait_ms)

    def check(self, call: SourceCall, reply: SourceReply) -> None:
        report, state = reply.report, reply.report.state
        self.states[state] += 1
        self.asked += state in ASKED or report.reason.startswith("given up")

        assert call.descriptor.source_id == reply.source_id
        assert len(reply.candidates) == report.candidates <= LIMITS.most_candidates
        assert list(range(1, report.candidates + 1)) == [candidate.rank for candidate in reply.candidates]
        assert call.wait_ms + 1e-6 >= report.elapsed_ms
        assert (state is CoverageState.SEARCHED) or report.reason
        assert (state in ASKED) or not reply.candidates
        if state is CoverageState.TIMED_OUT:
            assert report.reason.startswith(f"not finished within {call.wait_ms} ms; ")
            assert call.wait_ms == report.elapsed_ms
        if state is CoverageState.SEARCHED:
            assert fault_of(call) not in RAISING - {SourceFault.CRASH}
            assert report.searched_share == 1.0
        if state is CoverageState.FAILED:
            assert fault_of(call) in RAISING
        if fault_of(call) is SourceFault.HANG:
            assert state is not CoverageState.SEARCHED


def fault_of(call: SourceCall) -> SourceFault:
    assert isinstance(call.retriever, FaultySource)
    return call.retriever.fault


def enough(replies: Sequence[SourceReply]) -> str:
    return "two have come" if sum(reply.report.candidates > 0 for reply in replies) >= 2 else ""


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_no_fan_out_is_late_raises_or_loses_a_call(shard: int) -> None:
    simulation = Simulation(shard)
    run_virtual(simulation.run(), clock=simulation.clock)

    assert [] == simulation.uncaught
    assert {"searched", "timed_out", "failed", "breaker_open", "skipped"} == set(simulation.states)
    assert len(simulation.watched.records) == sum(count for state, count in simulation.states.items() if state in ASKED)
    assert all(source.calls <= 1 for source in simulation.sources)
    assert simulation.asked >= sum(source.calls for source in simulation.sources)


@pytest.mark.slow
def test_the_order_of_arrival_changes_no_reply() -> None:
    seeds = range(8)
    kinds = (SourceFault.NONE, SourceFault.CRASH, SourceFault.LYING_SCORES, SourceFault.WRONG_TYPES, SourceFault.DUPLICATE_IDS)

    async def one(clock: VirtualClock, shuffled: random.Random) -> list[SourceReply]:
        watched = Watched(clock, limits=LIMITS)
        pauses = [float(pause) for pause in shuffled.sample(range(1, 190), len(seeds))]
        calls = [
            call_of(FaultySource(kinds[seed % len(kinds)], seed=seed, pause_ms=pause), f"s{seed}")
            for seed, pause in zip(seeds, pauses, strict=True)
        ]
        calls.append(call_of(FaultySource(SourceFault.HANG), "hung"))
        arrived: list[str] = []
        replies = await watched.fan_out.run(calls, started_ns=0, on_finished=lambda reply: arrived.append(reply.source_id))
        orders.add(tuple(arrived))
        return [without_times(reply) for reply in replies]

    orders: set[tuple[str, ...]] = set()
    expected = None
    for seed in range(ARRIVALS):
        replies = run_virtual(one(clock := VirtualClock(), random.Random(seed)), clock=clock)
        expected = expected or replies
        assert expected == replies

    assert ARRIVALS * 9 // 10 < len(orders)
