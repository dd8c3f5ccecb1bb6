"""The write-behind thread: what is noticed, when it is written, and what happens at the end."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

import pytest

from evidentia.foundation.background_writer import BackgroundWriter

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "a writer of its own"
SOON_S = 0.001
NEVER_S = 3_600.0


class Pile:
    """Things that wait, and what became of them."""

    def __init__(self) -> None:
        self.waiting: list[int] = []
        self.batches: list[list[int]] = []
        self.problem: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.has_written = threading.Semaphore(0)
        self.most_at_once = 0
        self._inside = 0

    def write(self) -> None:
        self._inside += 1
        self.most_at_once = max(self.most_at_once, self._inside)
        try:
            self.gate.wait(5)
            if self.problem is not None:
                raise self.problem
            taken, self.waiting = self.waiting, []
            if taken:
                self.batches.append(taken)
        finally:
            self._inside -= 1
            self.has_written.release()


@pytest.fixture
def pile() -> Pile:
    return Pile()


def writing(pile: Pile, *, pause_s: float = SOON_S, idle_s: float | None = 5.0, is_retrying: bool = False) -> BackgroundWriter:
    return BackgroundWriter(pile.write, name=NAME, pause_s=pause_s, idle_s=idle_s, is_retrying=is_retrying)


@pytest.fixture(autouse=True)
def _nobody_is_left_behind() -> Iterator[None]:
    before = set(threads())
    yield
    for thread in set(threads()) - before:
        thread.join(5)
    assert set(threads()) <= before


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == NAME]


def test_there_is_no_thread_before_the_first_notice(pile: Pile) -> None:
    writer = writing(pile)

    assert [] == threads()
    assert writer.close()


def test_what_is_noticed_is_written_on_the_thread(pile: Pile) -> None:
    writer = writing(pile)
    pile.waiting.append(1)
    writer.notify()

    assert pile.has_written.acquire(timeout=5)
    assert [[1]] == pile.batches
    assert 1 == len(threads())
    assert writer.close()


def test_what_comes_within_the_pause_is_written_together_and_a_hurry_ends_the_pause(pile: Pile) -> None:
    writer = writing(pile, pause_s=NEVER_S)
    for number in range(10):
        pile.waiting.append(number)
        writer.notify()
    assert [] == pile.batches
    writer.notify(hurry=True)

    assert pile.has_written.acquire(timeout=5)
    assert [list(range(10))] == pile.batches
    assert writer.close()


def test_what_comes_while_something_is_written_is_written_next(pile: Pile) -> None:
    writer = writing(pile)
    pile.gate.clear()
    pile.waiting.append(1)
    writer.notify()
    pile.waiting.append(2)
    writer.notify()
    pile.gate.set()
    writer.flush()
    assert writer.close()

    assert [1, 2] == [each for batch in pile.batches for each in batch]


def test_flush_writes_in_the_callers_own_time(pile: Pile) -> None:
    writer = writing(pile)
    pile.waiting.append(1)
    writer.flush()

    assert [[1]] == pile.batches
    assert [] == threads()


def test_nothing_is_written_twice_at_once(pile: Pile) -> None:
    writer = writing(pile)

    def add() -> None:
        for number in range(50):
            pile.waiting.append(number)
            writer.notify(hurry=True)
            writer.flush()

    adding = [threading.Thread(target=add) for _ in range(4)]
    for thread in adding:
        thread.start()
    for thread in adding:
        thread.join()
    assert writer.close()

    assert 1 == pile.most_at_once


def test_whoever_holds_the_lock_keeps_the_thread_from_writing(pile: Pile) -> None:
    writer = writing(pile)
    with writer.writing:
        pile.waiting.append(1)
        writer.notify(hurry=True)
        assert not pile.has_written.acquire(timeout=0.05)

    assert pile.has_written.acquire(timeout=5)
    assert writer.close()


def test_the_thread_ends_when_nothing_comes_and_the_next_notice_starts_another(pile: Pile) -> None:
    writer = writing(pile, idle_s=0.01)
    for number in range(3):
        pile.waiting.append(number)
        writer.notify()
        assert pile.has_written.acquire(timeout=5)
        for thread in threads():
            thread.join(5)
        assert [] == threads()

    assert [[0], [1], [2]] == pile.batches


def test_closing_writes_what_is_left_and_waits_for_the_thread(pile: Pile) -> None:
    writer = writing(pile, pause_s=NEVER_S)
    pile.waiting.append(1)
    writer.notify()

    assert writer.close()
    assert [[1]] == pile.batches
    assert [] == threads()


def test_closing_never_waits_for_the_thread_to_be_idle_for_long(pile: Pile) -> None:
    began = time.monotonic()
    for number in range(200):  # each time the thread is somewhere else when it is told
        writer = writing(pile, pause_s=number * 0.000_01, idle_s=NEVER_S)
        pile.waiting.append(number)
        writer.notify()
        assert writer.close()

    assert list(range(200)) == [each for batch in pile.batches for each in batch]
    assert time.monotonic() - began < 60


def test_after_closing_a_notice_starts_nothing(pile: Pile) -> None:
    writer = writing(pile)
    writer.close()
    pile.waiting.append(1)
    writer.notify()

    assert writer.is_closed
    assert [] == pile.batches
    assert [] == threads()


def test_a_thread_that_hangs_is_left_behind(pile: Pile) -> None:
    writer = writing(pile)
    pile.gate.clear()
    pile.waiting.append(1)
    writer.notify(hurry=True)
    while not pile.most_at_once:
        pass

    assert not writer.close(timeout_s=0.01)
    pile.gate.set()


def test_what_cannot_be_written_on_the_thread_ends_nothing(pile: Pile) -> None:
    writer = writing(pile)
    pile.problem = OSError("full")
    pile.waiting.append(1)
    writer.notify()
    assert pile.has_written.acquire(timeout=5)
    pile.problem = None
    pile.waiting.append(2)
    writer.notify()
    assert pile.has_written.acquire(timeout=5)

    assert [[1, 2]] == pile.batches
    assert writer.close()


def test_one_that_tries_again_writes_without_another_notice(pile: Pile) -> None:
    writer = writing(pile, is_retrying=True)
    pile.problem = OSError("full")
    pile.waiting.append(1)
    writer.notify()
    assert pile.has_written.acquire(timeout=5)
    assert pile.has_written.acquire(timeout=5)
    pile.problem = None
    while not pile.batches:
        assert pile.has_written.acquire(timeout=5)

    assert [[1]] == pile.batches
    assert writer.close()


def test_whoever_flushes_or_closes_is_told_what_went_wrong(pile: Pile) -> None:
    writer = writing(pile)
    pile.problem = OSError("full")

    with pytest.raises(OSError, match="full"):
        writer.flush()
    with pytest.raises(OSError, match="full"):
        writer.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_begins_with_a_thread_of_its_own(pile: Pile) -> None:
    writer = writing(pile)
    pile.gate.clear()
    writer.notify(hurry=True)
    while not pile.most_at_once:
        pass
    child = os.fork()
    if child == 0:  # the parent's thread held the lock a moment ago, and is not here
        pile.gate.set()
        pile.waiting.append(1)
        writer.notify(hurry=True)
        is_written = pile.has_written.acquire(timeout=5)
        os._exit(0 if is_written and pile.batches == [[1]] else 1)
    pile.gate.set()

    assert 0 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert writer.close()
