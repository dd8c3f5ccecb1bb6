"""One request, many sources: each has its say in time, or the reply says why not."""

from __future__ import annotations

import asyncio
import gc
import sys
import weakref
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import pytest

from engine.fanout_samples import Watched, call_of, without_times
from evidentia.contracts.errors import ServiceUnavailableError
from evidentia.contracts.ids import SourceId
from evidentia.contracts.retrieval import Candidate
from evidentia.contracts.settings import FanoutSettings, SourceSettings
from evidentia.contracts.sources import SourceConnection
from evidentia.contracts.vocabulary import BreakerState, ConnectionKind, CoverageState
from evidentia.testing.determinism import START
from evidentia.testing.faulty_sources import FaultySource, SourceFault
from evidentia.testing.virtual_time import VirtualClock, VirtualTimeLoop, run_virtual

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from evidentia.contracts.retrieval import SourceAsk, SourceReply
    from evidentia.federation.fanout import SourceCall


class Outcome(NamedTuple):
    replies: list[SourceReply]
    elapsed_ms: float
    watched: Watched


def fan_out(
    *calls: SourceCall, settings: FanoutSettings | None = None, limits: SourceSettings | None = None, linger_s: float = 0.0
) -> Outcome:
    """Run one fan-out in virtual time, and let some more of it pass."""
    clock = VirtualClock()
    watched = Watched(clock, settings=settings, limits=limits)

    async def main() -> Outcome:
        replies = await watched.fan_out.run(calls, started_ns=0)
        elapsed_ms = clock.elapsed_ns() / 1_000_000
        await asyncio.sleep(linger_s)
        await watched.fan_out.close()
        return Outcome(replies, elapsed_ms, watched)

    return run_virtual(main(), clock=clock)


def test_replies_come_in_the_order_of_the_calls_whoever_was_first() -> None:
    pauses_ms = (150, 20, 90, 0)
    outcome = fan_out(*(call_of(FaultySource(seed=pause, pause_ms=pause), f"s{pause}") for pause in pauses_ms))

    assert [f"s{pause}" for pause in pauses_ms] == [reply.source_id for reply in outcome.replies]
    assert [150.0, 20.0, 90.0, 0.0] == [reply.report.elapsed_ms for reply in outcome.replies]
    assert 150.0 == outcome.elapsed_ms


def test_an_empty_answer_is_searched_and_says_nothing_is_missing() -> None:
    report = fan_out(call_of(FaultySource(SourceFault.EMPTY))).replies[0].report

    assert (CoverageState.SEARCHED, "", 0, 1.0) == (report.state, report.reason, report.candidates, report.searched_share)


def test_a_source_that_hangs_is_cut_off_at_its_wait_and_others_are_not_held_up() -> None:
    outcome = fan_out(call_of(FaultySource(SourceFault.HANG), "hung", wait_ms=50), call_of(FaultySource(pause_ms=10), "well"))
    hung, well = (reply.report for reply in outcome.replies)

    assert 50.0 == outcome.elapsed_ms
    assert (CoverageState.TIMED_OUT, "not finished within 50 ms; nothing had come") == (hung.state, hung.reason)
    assert (0.0, 50.0) == (hung.searched_share, hung.elapsed_ms)
    assert (CoverageState.SEARCHED, 10) == (well.state, well.candidates)


def test_what_dripped_in_before_the_end_of_the_wait_is_kept() -> None:
    reply = fan_out(call_of(FaultySource(SourceFault.SLOW_DRIP, pause_ms=40), wait_ms=210)).replies[0]

    assert CoverageState.TIMED_OUT is reply.report.state
    assert "not finished within 210 ms; the 4 that had come were kept, the rest is missing" == reply.report.reason
    assert 4 == len(reply.candidates) == reply.report.candidates
    assert 0.4 == reply.report.searched_share


def test_what_came_before_a_crash_is_kept_and_the_reason_has_no_content() -> None:
    reply = fan_out(call_of(FaultySource(SourceFault.CRASH))).replies[0]

    assert CoverageState.FAILED is reply.report.state
    assert "ConnectionResetError; the 5 that had come were kept, the rest is missing" == reply.report.reason
    assert 5 == len(reply.candidates)
    assert 0.5 == reply.report.searched_share


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (SourceFault.ERROR, "ConnectionError"),
        (SourceFault.SYSTEM_EXIT, "SystemExit"),
        (SourceFault.KEYBOARD_INTERRUPT, "KeyboardInterrupt"),
        (SourceFault.GENERATOR_EXIT, "GeneratorExit"),
        (SourceFault.CANCELS_ITSELF, "CancelledError"),
    ],
)
def test_whatever_a_source_raises_is_its_own_failure(fault: SourceFault, kind: str) -> None:
    outcome = fan_out(call_of(FaultySource(fault), "bad"), call_of(FaultySource(pause_ms=5), "good"))
    bad, good = (reply.report for reply in outcome.replies)

    assert (CoverageState.FAILED, f"{kind}; nothing had come") == (bad.state, bad.reason)
    assert CoverageState.SEARCHED is good.state
    assert ("bad", CoverageState.FAILED, 0.0, kind) == outcome.watched.records[0]


def test_an_endless_reply_is_read_as_far_as_allowed_and_closed() -> None:
    closed: list[str] = []

    class Endless:
        async def retrieve(self, ask: SourceAsk) -> AsyncIterator[object]:
            try:
                while True:
                    yield Candidate(content=f"{ask.query.text} {len(closed)}")
            finally:
                await asyncio.sleep(0.001)
                closed.append("closed")

    reply = fan_out(call_of(Endless()), limits=SourceSettings(most_candidates=7), linger_s=1).replies[0]

    assert (CoverageState.SEARCHED, "it proposed more than is read; the rest was left") == (reply.report.state, reply.report.reason)
    assert {"duplicate_id": 6, "too_many": 1} == reply.report.faults
    assert ["closed"] == closed


def test_a_source_that_never_awaits_leaves_the_others_their_turn() -> None:
    order: list[str] = []

    class Greedy:
        def __init__(self, name: str, proposals: int) -> None:
            self.name, self.proposals = name, proposals

        async def retrieve(self, ask: SourceAsk) -> AsyncIterator[object]:
            for place in range(self.proposals):
                yield Candidate(content=f"{ask.query.text} {place}")
            order.append(self.name)

    fan_out(call_of(Greedy("long", 90), "long"), call_of(Greedy("short", 1), "short"))

    assert ["short", "long"] == order


def test_the_age_of_the_newest_is_told() -> None:
    class Dated:
        async def retrieve(self, ask: SourceAsk) -> AsyncIterator[object]:
            yield Candidate(content="no date")
            yield Candidate(content="old", updated_at=START.replace(year=2024))
            yield Candidate(content="new", updated_at=START.replace(year=2025))
            assert ask.as_of == START

    reply = fan_out(call_of(Dated())).replies[0]

    assert 365 * 86_400 == reply.report.data_age_s


def test_a_source_that_fails_in_a_row_is_not_asked_and_is_asked_again_after_its_rest() -> None:
    clock = VirtualClock()
    watched = Watched(clock, settings=FanoutSettings(breaker_failures=2, breaker_open_ms=1_000))
    source = FaultySource(SourceFault.ERROR)

    async def states_of(times: int) -> list[CoverageState]:
        return [(await watched.fan_out.run([call_of(source)], started_ns=0))[0].report.state for _ in range(times)]

    async def main() -> list[CoverageState]:
        states = await states_of(4)
        await asyncio.sleep(1)
        source.fault = SourceFault.NONE
        assert watched.fan_out.breaker(SourceId("source")) is BreakerState.HALF_OPEN
        return states + await states_of(2)

    states = run_virtual(main(), clock=clock)

    assert [*["failed"] * 2, *["breaker_open"] * 2, *["searched"] * 2] == states
    assert 4 == source.calls == len(watched.records)
    assert BreakerState.CLOSED is watched.fan_out.breaker(SourceId("source"))


def test_of_several_parts_one_is_the_probe() -> None:
    clock = VirtualClock()
    watched = Watched(clock, settings=FanoutSettings(breaker_failures=1, breaker_open_ms=100))
    source = FaultySource(SourceFault.ERROR)

    async def main() -> list[SourceReply]:
        await watched.fan_out.run([call_of(source)], started_ns=0)
        await asyncio.sleep(0.1)
        source.fault = SourceFault.NONE
        return await watched.fan_out.run([call_of(source, part=part) for part in range(3)], started_ns=0)

    replies = run_virtual(main(), clock=clock)

    assert ["searched", "breaker_open", "breaker_open"] == [reply.report.state for reply in replies]
    assert "not asked: one call is out to see whether it answers again" == replies[1].report.reason
    assert [0, 1, 2] == [reply.part for reply in replies]


def test_enough_ends_the_waiting_and_nothing_is_learnt_of_those_given_up() -> None:
    clock = VirtualClock()
    watched = Watched(clock, settings=FanoutSettings(breaker_failures=1))
    calls = [
        call_of(FaultySource(SourceFault.SLOW_DRIP, pause_ms=10), "drip"),
        call_of(FaultySource(pause_ms=25), "quick"),
        call_of(FaultySource(SourceFault.HANG), "hung"),
    ]
    finished: list[SourceReply] = []

    def enough(replies: Sequence[SourceReply]) -> str:
        return "the best are certain" if sum(len(reply.candidates) for reply in replies) >= 10 else ""

    async def main() -> list[SourceReply]:
        return await watched.fan_out.run(calls, started_ns=0, enough=enough, on_finished=finished.append)

    replies = run_virtual(main(), clock=clock)

    assert 25_000_000 == clock.elapsed_ns()
    assert ["skipped", "searched", "skipped"] == [reply.report.state for reply in replies]
    assert "given up: the best are certain; the 1 that had come were dropped" == replies[0].report.reason
    assert "given up: the best are certain" == replies[2].report.reason
    assert ["quick", "drip", "hung"] == [reply.source_id for reply in finished]
    assert ["quick"] == [record[0] for record in watched.records]
    assert BreakerState.CLOSED is watched.fan_out.breaker(SourceId("hung"))


def test_a_probe_that_is_given_up_gives_its_place_back() -> None:
    clock = VirtualClock()
    watched = Watched(clock, settings=FanoutSettings(breaker_failures=1, breaker_open_ms=100, background_ms=0))
    source = FaultySource(SourceFault.ERROR)

    async def main() -> str:
        await watched.fan_out.run([call_of(source)], started_ns=0)
        await asyncio.sleep(0.1)
        source.fault = SourceFault.HANG
        calls = [call_of(source), call_of(FaultySource(), "quick")]
        await watched.fan_out.run(calls, started_ns=0, enough=lambda _: "enough")
        cancelled = asyncio.create_task(watched.fan_out.run([call_of(source)], started_ns=0))
        await asyncio.sleep(0.01)
        cancelled.cancel()
        await asyncio.wait([cancelled])
        source.fault = SourceFault.NONE
        return (await watched.fan_out.run([call_of(source)], started_ns=0))[0].report.state

    assert "searched" == run_virtual(main(), clock=clock)


def test_whoever_cancels_the_caller_cancels_the_calls() -> None:
    clock = VirtualClock()
    watched = Watched(clock)

    async def main() -> int:
        before = len(asyncio.all_tasks())
        running = asyncio.create_task(watched.fan_out.run([call_of(FaultySource(SourceFault.HANG))], started_ns=0))
        await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await asyncio.sleep(0)
        return len(asyncio.all_tasks()) - before

    assert 0 == run_virtual(main(), clock=clock)
    assert [] == watched.records
    assert 10_000_000 == clock.elapsed_ns()


def test_a_late_call_goes_on_and_its_answer_is_handed_over_whole() -> None:
    outcome = fan_out(call_of(FaultySource(SourceFault.SLOW_DRIP, pause_ms=40), wait_ms=100), linger_s=2)
    ((call, late),) = outcome.watched.late

    assert 1 == len(outcome.replies[0].candidates)
    assert (CoverageState.SEARCHED, 10, 440.0) == (late.report.state, len(late.candidates), late.report.elapsed_ms)
    assert 100 == call.wait_ms
    assert [("source", CoverageState.TIMED_OUT, 100.0, "not finished within 100 ms")] == outcome.watched.records


def test_a_late_call_that_fails_is_not_handed_over() -> None:
    class FailsLate:
        async def retrieve(self, ask: SourceAsk) -> AsyncIterator[object]:
            yield Candidate(content=ask.query.text)
            await asyncio.sleep(1)
            raise ConnectionError

    outcome = fan_out(call_of(FailsLate()), linger_s=2)

    assert [] == outcome.watched.late


def test_a_late_call_ends_for_good_when_its_time_is_over() -> None:
    ended_ms = []
    clock = VirtualClock()

    class Hung:
        async def retrieve(self, ask: SourceAsk) -> AsyncIterator[object]:
            try:
                await asyncio.sleep(3_600)
                yield ask
            finally:
                ended_ms.append(clock.elapsed_ns() / 1_000_000)

    async def main() -> None:
        watched = Watched(clock, settings=FanoutSettings(background_ms=300))
        await watched.fan_out.run([call_of(Hung(), wait_ms=100), call_of(Hung(), wait_ms=400)], started_ns=0)
        await asyncio.sleep(1)

    run_virtual(main(), clock=clock)

    assert [300.0, 400.0] == ended_ms


def test_only_so_many_calls_of_a_source_go_on() -> None:
    source = FaultySource(pause_ms=300)
    calls = [call_of(source, wait_ms=100, part=part) for part in range(5)]
    outcome = fan_out(*calls, settings=FanoutSettings(background_calls=2), linger_s=2)

    assert [0, 1] == sorted(call.part for call, _ in outcome.watched.late)


def test_a_source_that_ignores_cancellation_is_left_behind() -> None:
    outcome = fan_out(
        call_of(FaultySource(SourceFault.IGNORES_CANCELLATION, stubborn_ms=20_000), wait_ms=50), settings=FanoutSettings(background_ms=100)
    )

    assert 50.0 == outcome.elapsed_ms
    assert CoverageState.TIMED_OUT is outcome.replies[0].report.state
    assert [] == outcome.watched.late


def test_a_source_with_too_many_calls_that_do_not_end_is_not_given_more() -> None:
    clock = VirtualClock()
    watched = Watched(clock, settings=FanoutSettings(background_ms=0, breaker_failures=1_000))
    source = FaultySource(SourceFault.IGNORES_CANCELLATION, stubborn_ms=30_000)

    async def main() -> tuple[SourceReply, SourceReply]:
        await watched.fan_out.run([call_of(source, wait_ms=10, part=part) for part in range(64)], started_ns=0)
        (refused,) = await watched.fan_out.run([call_of(source)], started_ns=0)
        await asyncio.sleep(60)
        source.fault = SourceFault.NONE
        (again,) = await watched.fan_out.run([call_of(source)], started_ns=0)
        return refused, again

    refused, again = run_virtual(main(), clock=clock)

    assert CoverageState.SKIPPED is refused.report.state
    assert "not asked: 64 earlier calls of it have not ended although they were given up" == refused.report.reason
    assert CoverageState.SEARCHED is again.report.state


def test_a_call_without_time_is_not_made() -> None:
    source = FaultySource()
    report = fan_out(call_of(source, wait_ms=0)).replies[0].report

    assert (CoverageState.SKIPPED, "not asked: no time was left for it") == (report.state, report.reason)
    assert 0 == source.calls
    assert 0.0 == report.searched_share


def test_jumps_of_the_wall_clock_move_no_deadline() -> None:
    clock = VirtualClock()
    watched = Watched(clock)

    class Jumping:
        async def retrieve(self, ask: SourceAsk) -> AsyncIterator[object]:
            for seconds in (86_400, -172_800, 5):
                clock.jump(seconds)
                await asyncio.sleep(0.03)
                yield Candidate(content=f"{ask.query.text} {seconds}")

    async def main() -> list[SourceReply]:
        return await watched.fan_out.run([call_of(Jumping(), "a"), call_of(FaultySource(SourceFault.HANG), "b")], started_ns=0)

    jumping, hung = run_virtual(main(), clock=clock)

    assert 200_000_000 == clock.elapsed_ns()
    assert (CoverageState.SEARCHED, 90.0) == (jumping.report.state, jumping.report.elapsed_ms)
    assert 200.0 == hung.report.elapsed_ms


def test_when_it_was_asked_is_counted_from_the_start_of_the_request() -> None:
    clock = VirtualClock()
    watched = Watched(clock)

    async def main() -> SourceReply:
        started_ns = clock.elapsed_ns()
        await asyncio.sleep(0.012)
        (reply,) = await watched.fan_out.run([call_of(FaultySource(pause_ms=3))], started_ns=started_ns)
        return reply

    reply = run_virtual(main(), clock=clock)

    assert (12.0, 3.0) == (reply.asked_ms, reply.report.elapsed_ms)


@pytest.mark.parametrize("is_coroutine", [True, False])
def test_something_that_is_no_retriever_fails_like_a_source(is_coroutine: bool) -> None:  # noqa: FBT001
    class Coroutine:
        async def retrieve(self, ask: SourceAsk) -> list[object]:
            return [ask]

    class Nothing:
        def __getattr__(self, name: str) -> object:
            raise MemoryError(name)

    thing: object = Coroutine() if is_coroutine else Nothing()
    report = fan_out(call_of(thing)).replies[0].report  # type: ignore[arg-type]

    assert CoverageState.FAILED is report.state
    assert ("TypeError" if is_coroutine else "MemoryError") == report.reason.split(";")[0]


def test_of_what_a_source_raises_the_type_is_told_and_a_message_only_if_it_is_ours() -> None:
    class Talkative:
        def __init__(self, error: BaseException) -> None:
            self.error = error

        async def retrieve(self, ask: SourceAsk) -> AsyncIterator[object]:
            if ask.limit:
                raise self.error
            yield ask

    hostile = type("<script>\n", (Exception,), {})
    told = (
        (ValueError("row 'Ada Lovelace' at https://me:secret@db.example/x?key=1 for harbour"), "ValueError"),
        (RuntimeError("password=hunter2 at /etc/secret"), "RuntimeError"),
        (ServiceUnavailableError("https://x.example/v1", "refused"), "ServiceUnavailableError"),
        (hostile("what"), "script"),
        (KeyError("key"), "KeyError"),
        (OSError(), "OSError"),
    )
    for error, expected in told:
        outcome = fan_out(call_of(Talkative(error)))

        assert f"{expected}; nothing had come" == outcome.replies[0].report.reason
        assert expected == outcome.watched.records[0][3]

    of_ours = call_of(Talkative(ServiceUnavailableError("'x.example' gave no answer for harbour")))
    remote = msgspec.structs.replace(
        of_ours.descriptor, connection=SourceConnection(kind=ConnectionKind.REMOTE, address="https://x.example")
    )
    ours = fan_out(of_ours._replace(descriptor=remote))

    assert "ServiceUnavailableError: … gave no answer for …" == ours.watched.records[0][3]
    assert "ServiceUnavailableError: … gave no answer for …; nothing had come" == ours.replies[0].report.reason


def test_a_fan_out_serves_one_event_loop_after_the_other() -> None:
    clock = VirtualClock()
    watched = Watched(clock)
    calls = [call_of(FaultySource(pause_ms=5), "a"), call_of(FaultySource(SourceFault.HANG), "b", wait_ms=20)]

    async def main() -> list[SourceReply]:
        return await watched.fan_out.run(calls, started_ns=0)

    first, second, third = (run_virtual(main(), clock=clock) for _ in range(3))

    assert ["searched", "timed_out"] == [reply.report.state for reply in first]
    assert [without_times(reply) for reply in first] == [without_times(reply) for reply in second]
    assert [without_times(reply) for reply in first] == [without_times(reply) for reply in third]


def test_what_a_listener_raises_is_not_hidden_and_leaves_nothing_behind() -> None:
    clock = VirtualClock()
    watched = Watched(clock, settings=FanoutSettings(breaker_failures=1, breaker_open_ms=10))
    calls = [call_of(FaultySource(), "a"), call_of(FaultySource(SourceFault.HANG), "b")]

    def refuse(reply: SourceReply) -> None:
        raise LookupError(reply.source_id)

    async def main() -> int:
        before = len(asyncio.all_tasks())
        with pytest.raises(LookupError):
            await watched.fan_out.run(calls, started_ns=0, on_finished=refuse)
        await asyncio.sleep(0)
        return len(asyncio.all_tasks()) - before

    assert 0 == run_virtual(main(), clock=clock)


def test_after_closing_nobody_is_asked() -> None:
    clock = VirtualClock()
    watched = Watched(clock)
    slow = FaultySource(pause_ms=1_000)

    async def main() -> tuple[int, SourceReply]:
        before = len(asyncio.all_tasks())
        await watched.fan_out.run([call_of(slow)], started_ns=0)
        await watched.fan_out.close()
        left = len(asyncio.all_tasks()) - before
        (reply,) = await watched.fan_out.run([call_of(FaultySource())], started_ns=0)
        return left, reply

    left, reply = run_virtual(main(), clock=clock)

    assert 0 == left
    assert (CoverageState.SKIPPED, "not asked: the base is closing") == (reply.report.state, reply.report.reason)
    assert [] == watched.late


def test_nothing_of_a_fan_out_waits_for_the_collector_of_cycles() -> None:
    source = FaultySource()
    gone = weakref.ref(source)
    gc.collect()
    gc.disable()
    try:
        fan_out(call_of(source))
        del source

        assert gone() is None
    finally:
        gc.enable()


def test_a_loop_that_is_thrown_away_takes_its_calls_with_it_without_complaint(monkeypatch: pytest.MonkeyPatch) -> None:
    complaints: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)

    class Hung:
        def __aiter__(self) -> Hung:
            return self

        async def __anext__(self) -> object:
            return await asyncio.Event().wait()

        async def aclose(self) -> None:
            await asyncio.sleep(1)

        def retrieve(self, ask: SourceAsk) -> Hung:
            assert ask.limit
            return self

    clock = VirtualClock()
    watched = Watched(clock)
    loop = VirtualTimeLoop(clock)
    loop.set_exception_handler(lambda *_: None)
    (reply,) = loop.run_until_complete(watched.fan_out.run([call_of(Hung())], started_ns=0))
    loop.close()
    del watched, loop

    async def collect_elsewhere() -> None:
        gc.collect()

    run_virtual(collect_elsewhere())

    assert CoverageState.TIMED_OUT is reply.report.state
    assert [] == complaints
