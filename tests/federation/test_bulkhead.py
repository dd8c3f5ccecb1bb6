"""A source that blocks gets a few threads and no more; they end when there is nothing to do."""

from __future__ import annotations

import subprocess
import sys
import threading
from queue import Queue

from evidentia.federation.bulkhead import Bulkhead

PATIENCE_S = 30


def nothing() -> None:
    """Do nothing."""


def test_work_beyond_the_cap_is_refused_at_once_with_the_reason() -> None:
    bulkhead = Bulkhead("slow", max_threads=2)
    release = threading.Event()
    done: Queue[str] = Queue()

    def hang() -> None:
        release.wait()

    accepted = [bulkhead.submit(hang, lambda: done.put("done")) for _ in range(4)]

    assert ["", "", *["not asked: all of its 2 threads are taken by earlier calls"] * 2] == accepted
    assert 2 == bulkhead.threads

    release.set()

    assert ["done", "done"] == [done.get(timeout=PATIENCE_S) for _ in range(2)]
    bulkhead.close()


def test_whoever_hears_that_work_is_done_finds_the_thread_free() -> None:
    bulkhead = Bulkhead("quick", max_threads=1)
    refusals: list[str] = []
    done: Queue[int] = Queue()
    for turn in range(500):
        refusals.append(bulkhead.submit(nothing, lambda turn=turn: done.put(turn)))  # type: ignore[misc]
        done.get(timeout=PATIENCE_S)

    assert [""] * 500 == refusals
    assert 1 == bulkhead.threads
    bulkhead.close()


def test_work_may_be_submitted_by_the_thread_that_has_just_done_some() -> None:
    bulkhead = Bulkhead("chained", max_threads=1)
    refusals: Queue[str] = Queue()
    bulkhead.submit(nothing, lambda: refusals.put(bulkhead.submit(nothing, lambda: refusals.put("done"))))

    assert ["", "done"] == [refusals.get(timeout=PATIENCE_S) for _ in range(2)]
    assert 1 == bulkhead.threads
    bulkhead.close()


def test_an_idle_thread_ends_after_a_while_and_the_next_work_gets_a_new_one() -> None:
    bulkhead = Bulkhead("seldom", max_threads=1, idle_s=0.01)
    names: Queue[threading.Thread] = Queue()
    for _ in range(2):
        assert bulkhead.submit(lambda: names.put(threading.current_thread()), nothing) == ""
        thread = names.get(timeout=PATIENCE_S)
        thread.join(timeout=PATIENCE_S)

        assert not thread.is_alive()
        assert 0 == bulkhead.threads


def test_closing_ends_idle_threads_and_takes_no_more_work() -> None:
    bulkhead = Bulkhead("closing", max_threads=2)
    ran: Queue[threading.Thread] = Queue()
    bulkhead.submit(lambda: ran.put(threading.current_thread()), nothing)
    thread = ran.get(timeout=PATIENCE_S)
    bulkhead.close()
    thread.join(timeout=PATIENCE_S)

    assert not thread.is_alive()
    assert "not asked: the base is closing" == bulkhead.submit(nothing, nothing)


def test_all_work_of_many_submitters_is_done_once_or_refused() -> None:
    bulkhead = Bulkhead("busy", max_threads=3, idle_s=0.001)
    lock = threading.Lock()
    counts = {"done": 0, "accepted": 0, "most": 0}

    def count(name: str) -> None:
        with lock:
            counts[name] += 1

    def submit_many() -> None:
        for _ in range(500):
            if not bulkhead.submit(nothing, lambda: count("done")):
                count("accepted")
            with lock:
                counts["most"] = max(counts["most"], bulkhead.threads)

    submitters = [threading.Thread(target=submit_many) for _ in range(4)]
    for submitter in submitters:
        submitter.start()
    for submitter in submitters:
        submitter.join()
    bulkhead.close()
    for thread in threading.enumerate():
        if thread.name == "evidentia busy":
            thread.join(timeout=PATIENCE_S)

    assert counts["accepted"] == counts["done"]
    assert 0 < counts["accepted"]
    assert 3 >= counts["most"]
    assert 0 == bulkhead.threads


def test_a_thread_that_hangs_does_not_keep_the_interpreter() -> None:
    program = (
        "import threading\n"
        "from evidentia.federation.bulkhead import Bulkhead\n"
        "started = threading.Event()\n"
        "Bulkhead('hung', max_threads=1).submit(lambda: (started.set(), threading.Event().wait()), lambda: None)\n"
        "started.wait()\n"
        "print('over')\n"
    )

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S, check=True)

    assert "over\n" == ended.stdout
