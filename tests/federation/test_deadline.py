"""The deadline's division: the seed's figures, and the laws that hold for every deadline."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evidentia.federation.deadline import SHARES, Stages

deadlines = st.integers(1, 60) | st.integers(1, 2**32 - 1)

AFTER_SOURCES = ("fuse", "rerank", "diversify", "provenance")


def test_the_shares_are_the_whole() -> None:
    assert 100 == sum(SHARES.values())


def test_half_a_second_is_divided_as_the_seed_says() -> None:
    stages = Stages(500)

    assert (20, 5, 350) == (stages.share_ms("decompose"), stages.share_ms("select"), stages.fan_out_ms)
    assert [10, 80, 15, 10] == [stages.share_ms(stage) for stage in AFTER_SOURCES]
    assert 10 == stages.margin_ms
    assert (125, 375) == (stages.post_retrieval_ms, stages.fan_out_ends_ms)


def test_the_margin_is_two_percent_and_at_least_ten_milliseconds() -> None:
    assert [10, 10, 10, 100] == [Stages(deadline).margin_ms for deadline in (1, 100, 500, 5_000)]


def test_a_source_is_waited_for_one_and_a_half_times_its_p99_until_sources_are_given_up() -> None:
    stages = Stages(500)

    assert [2, 15, 300, 375, 375] == [stages.wait_ms(p99, 500) for p99 in (1, 10, 200, 250, 400)]
    assert [75, 1, 1, 0, 0] == [stages.wait_ms(400, remaining) for remaining in (200, 125, 1, 0, -5)]


def test_what_is_left_for_sources_shrinks_once_earlier_stages_took_more_than_their_shares() -> None:
    assert [350, 350, 349, 75, 1, 0] == [Stages(500).room_ms(remaining) for remaining in (500, 475, 474, 200, 20, 0)]


def test_very_short_deadlines_leave_something() -> None:
    assert [1, 1, 1, 2, 10, 20] == [Stages(deadline).room_ms(deadline) for deadline in (1, 2, 10, 12, 20, 30)]
    assert [1, 1, 2, 7, 15, 22] == [Stages(deadline).fan_out_ends_ms for deadline in (1, 2, 3, 10, 20, 30)]


@given(deadlines, st.integers(-10, 2**32), st.integers(1, 2**32))
def test_no_wait_passes_the_deadline_and_none_is_nothing_while_there_is_time(deadline: int, remaining: int, p99: int) -> None:
    stages = Stages(deadline)
    remaining = min(remaining, deadline)
    wait, room = stages.wait_ms(p99, remaining), stages.room_ms(remaining)

    assert wait <= max(0, remaining)
    assert (remaining > 0) == (wait > 0) == (room > 0)
    assert room <= stages.fan_out_ms
    assert p99 > room or p99 <= wait, "whoever fits is waited for at least as long as its p99"
    assert wait <= max(1, remaining - stages.margin_ms)


@given(deadlines)
def test_stages_never_add_up_to_more_than_the_deadline(deadline: int) -> None:
    stages = Stages(deadline)
    after = [stages.share_ms(stage) for stage in AFTER_SOURCES]

    assert 1 <= stages.fan_out_ends_ms <= deadline
    assert sum(after) <= stages.post_retrieval_ms
    assert deadline == 1 or stages.fan_out_ends_ms + stages.post_retrieval_ms == deadline
