"""What tokens asked for in a day: counted at once, kept in a file, shared, and never a reason to refuse anybody."""

from __future__ import annotations

import logging
import sqlite3
import stat
import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.backends.embedded.logs.usage_log import KEEP_DAYS, USAGE_NAME, EmbeddedUsage
from evidentia.contracts.control import TokenId
from evidentia.testing.virtual_time import VirtualClock

if TYPE_CHECKING:
    from pathlib import Path

BOB, EVE = TokenId("bob"), TokenId("eve")
DAY_S = 86_400


def usage_in(directory: Path, clock: VirtualClock, **options: Any) -> EmbeddedUsage:
    return EmbeddedUsage(directory, clock=clock, write_s=0, **options)


def spent(usage: EmbeddedUsage, token_id: TokenId, count: int, *, most: int) -> int:
    """Return how many of so many requests were let through."""
    return sum(usage.spend(token_id, most=most) for _ in range(count))


def test_a_quota_is_exact_and_each_token_has_its_own(tmp_path: Path) -> None:
    usage = usage_in(tmp_path, VirtualClock())

    assert 10 == spent(usage, BOB, 25, most=10)
    assert 3 == spent(usage, EVE, 3, most=10)
    assert (10, 3) == (usage.spent(BOB), usage.spent(EVE))


def test_nothing_is_on_disk_before_somebody_asks(tmp_path: Path) -> None:
    with closing(usage_in(tmp_path, VirtualClock())) as usage:
        usage.flush()

    assert [] == list(tmp_path.iterdir())


def test_what_was_asked_survives_a_restart(tmp_path: Path) -> None:
    clock = VirtualClock()
    with closing(usage_in(tmp_path, clock)) as before:
        spent(before, BOB, 7, most=10)

    after = usage_in(tmp_path, clock)

    assert 7 == after.spent(BOB)
    assert 3 == spent(after, BOB, 9, most=10)
    assert 0o600 == stat.S_IMODE((tmp_path / USAGE_NAME).stat().st_mode)


def test_processes_see_what_the_others_counted_once_both_have_written(tmp_path: Path) -> None:
    clock = VirtualClock()
    one, two = usage_in(tmp_path, clock), usage_in(tmp_path, clock)
    spent(one, BOB, 6, most=10)
    one.flush()
    spent(two, BOB, 2, most=10)
    two.flush()
    one.flush()

    assert 8 == one.spent(BOB) == two.spent(BOB)
    assert 2 == spent(two, BOB, 5, most=10)
    two.flush()
    one.flush()
    assert 0 == spent(one, BOB, 5, most=10)


def test_a_day_ends_at_midnight_utc(tmp_path: Path) -> None:
    clock = VirtualClock()
    usage = usage_in(tmp_path, clock)
    spent(usage, BOB, 10, most=10)

    clock.advance(DAY_S)

    assert 0 == usage.spent(BOB)
    assert 4 == spent(usage, BOB, 4, most=10)
    usage.close()
    again = usage_in(tmp_path, clock)
    assert 4 == again.spent(BOB)


def test_days_long_past_are_forgotten(tmp_path: Path) -> None:
    clock = VirtualClock()
    usage = usage_in(tmp_path, clock)
    spent(usage, BOB, 1, most=10)
    usage.flush()
    clock.advance(DAY_S * (KEEP_DAYS + 1))
    spent(usage, BOB, 1, most=10)
    usage.close()

    with closing(sqlite3.connect(tmp_path / USAGE_NAME)) as database:
        assert [(1,)] == database.execute("SELECT count(*) FROM usage").fetchall()


@pytest.mark.parametrize("obstacle", ["directory", "garbage"])
def test_a_file_that_cannot_be_written_refuses_nobody_and_is_told_once(
    tmp_path: Path, obstacle: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / USAGE_NAME
    if obstacle == "directory":
        path.mkdir()
    else:
        path.write_bytes(b"no database at all" * 100)

    with closing(usage_in(tmp_path, VirtualClock())) as usage:
        assert 10 == spent(usage, BOB, 20, most=10)
        usage.flush()
        usage.flush()
        assert 10 == usage.spent(BOB)

    assert 1 == len([record for record in caplog.records if record.levelno == logging.WARNING])
    assert "in memory only" in caplog.text


def test_a_file_that_can_be_written_again_gets_what_was_counted_meanwhile(tmp_path: Path) -> None:
    clock, path = VirtualClock(), tmp_path / USAGE_NAME
    path.mkdir()
    usage = usage_in(tmp_path, clock)
    spent(usage, BOB, 4, most=10)
    usage.flush()

    path.rmdir()
    usage.close()

    assert 4 == usage_in(tmp_path, clock).spent(BOB)


def test_memory_is_bounded_also_when_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / USAGE_NAME).mkdir()
    usage = usage_in(tmp_path, VirtualClock(), max_kept=5)
    for number in range(20):
        usage.spend(TokenId(str(number)), most=10)
    usage.flush()

    assert len(usage._unwritten) <= 5


def test_those_with_the_most_requests_are_remembered_first(tmp_path: Path) -> None:
    clock = VirtualClock()
    with closing(usage_in(tmp_path, clock)) as usage:
        for number in range(20):
            spent(usage, TokenId(str(number)), number + 1, most=100)

    assert {"19": 20, "18": 19} == usage_in(tmp_path, clock, max_kept=2)._written


def test_it_writes_by_itself(tmp_path: Path) -> None:
    clock = VirtualClock()
    with closing(EmbeddedUsage(tmp_path, clock=clock, write_s=0.001)) as usage:
        usage.spend(BOB, most=10)
        pause = threading.Event()
        while not usage._written:
            pause.wait(0.001)

        assert 1 == usage_in(tmp_path, clock).spent(BOB)


def test_threads_together_spend_no_more_than_there_is(tmp_path: Path) -> None:
    usage = EmbeddedUsage(tmp_path, clock=VirtualClock(), write_s=0.001)
    counts: list[int] = []
    threads = [threading.Thread(target=lambda: counts.append(spent(usage, BOB, 300, most=1_000))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    usage.close()

    assert 1_000 == sum(counts)


@given(st.lists(st.tuples(st.sampled_from(["spend", "flush", "day", "restart"]), st.sampled_from([BOB, EVE])), max_size=60))
def test_however_it_is_written_the_count_is_that_of_a_plain_counter(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, TokenId]]
) -> None:
    clock, directory = VirtualClock(), tmp_path_factory.mktemp("usage")
    usage, counted = usage_in(directory, clock), {BOB: 0, EVE: 0}
    for step, token_id in steps:
        if step == "spend":
            assert (counted[token_id] < 5) == usage.spend(token_id, most=5)
            counted[token_id] = min(5, counted[token_id] + 1)
        elif step == "flush":
            usage.flush()
        elif step == "day":
            clock.advance(DAY_S)
            counted = dict.fromkeys(counted, 0)
        else:
            usage.close()
            usage = usage_in(directory, clock)
        assert counted == {each: usage.spent(each) for each in counted}
    usage.close()
