"""What is kept behind an answer's back: found at once, written later, and never when it was forgotten meanwhile."""

from __future__ import annotations

import random
import threading
from typing import TYPE_CHECKING

import pytest

from engine.cached_answers import WIKI, CacheBench, answer, contents
from evidentia.contracts.settings import CacheSettings
from evidentia.contracts.vocabulary import CacheTier
from evidentia.federation.cache_entries import entry_of
from evidentia.federation.cache_tiers import MANY, MAX_WAITING, PendingWrite, WriteBehind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from evidentia.federation.candidate_cache import CacheKey, CandidateCache


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[CacheBench]:
    """Return a cache over the embedded store."""
    made = CacheBench(CacheSettings(), directory=tmp_path)
    yield made
    made.close()


def keep_soon(bench: CacheBench, cache: CandidateCache, asked: CacheKey, *said: str) -> None:
    """Keep an answer without having it written by anybody."""
    entry = entry_of(answer(*said, at=bench.clock.now()), retrieved_at=bench.clock.now())
    lookup = cache.lookup(asked)
    assert lookup is not None
    cache.tiers.put(lookup, entry, is_precomputed=False)


def entries(bench: CacheBench) -> int:
    """Return how much was written."""
    return sum(bench.store.counts().values())


def test_what_waits_is_found_by_its_process_and_after_it_was_written_by_others(bench: CacheBench) -> None:
    other = bench.another()
    keep_soon(bench, bench.cache, bench.asked(), "said")
    here, there = bench.cache.get(bench.asked()), other.get(bench.asked())
    written = entries(bench)
    bench.cache.close()

    assert here is not None
    assert ("said",) == contents(here.candidates)
    assert 0 == written
    assert there is None
    assert 1 == entries(bench)
    assert other.get(bench.asked()) is not None


def test_a_thread_writes_what_waits(bench: CacheBench) -> None:
    written = threading.Event()
    behind = WriteBehind(lambda _some: written.set())
    entry = entry_of((), retrieved_at=bench.clock.now())
    lookup = bench.cache.lookup(bench.asked())
    assert lookup is not None
    behind.add(b"one", PendingWrite(lookup, CacheTier.GLOBAL, entry, 0))
    behind.start()

    assert written.wait(60)
    behind.close()
    assert behind.get(b"one") is None


def test_what_is_kept_after_the_end_is_written_at_once(bench: CacheBench) -> None:
    bench.cache.close()
    bench.cache.for_request().put_all([(bench.asked(), answer("said", at=bench.clock.now()), bench.clock.now())], is_soon=True)

    assert 1 == entries(bench)


@pytest.mark.parametrize("whole", [False, True])
def test_what_was_forgotten_while_it_waited_is_never_written(bench: CacheBench, *, whole: bool) -> None:
    asked = bench.asked()
    keep_soon(bench, bench.cache, asked, "old")
    bench.cache.invalidate(None if whole else WIKI.source_id)
    keep_soon(bench, bench.cache, asked, "old, and under way")
    bench.cache.close()

    assert 0 == entries(bench)
    assert bench.cache.get(bench.asked()) is None
    assert bench.another().get_stale(bench.asked()) is None


def test_nor_what_another_process_forgot(bench: CacheBench) -> None:
    keep_soon(bench, bench.cache, bench.asked(), "old")
    bench.another().invalidate(WIKI.source_id)

    assert bench.cache.get(bench.asked()) is None
    bench.cache.close()
    assert 0 == entries(bench)


def test_forgetting_counts_what_waited(bench: CacheBench) -> None:
    keep_soon(bench, bench.cache, bench.asked("one"), "said")
    keep_soon(bench, bench.cache, bench.asked("two"), "said")

    assert 2 == bench.cache.invalidate(WIKI.source_id)


def test_a_newer_answer_of_another_process_is_not_replaced_by_an_older_one_that_waited(bench: CacheBench) -> None:
    asked = bench.asked()
    keep_soon(bench, bench.cache, asked, "older")
    bench.clock.move(seconds=1)
    other = bench.another()
    other.for_request().put_all([(asked, answer("newer", at=bench.clock.now()), bench.clock.now())])
    bench.clock.move(seconds=1)
    bench.cache.close()

    found = bench.another().get(bench.asked())
    assert found is not None
    assert ("newer",) == contents(found.candidates)


def test_no_more_waits_than_there_is_room_for(bench: CacheBench) -> None:
    behind = WriteBehind(lambda _some: None)
    lookup = bench.cache.lookup(bench.asked())
    assert lookup is not None
    waiting = PendingWrite(lookup, CacheTier.GLOBAL, entry_of((), retrieved_at=bench.clock.now()), 0)
    for number in range(MAX_WAITING + 10):
        behind.add(b"%d" % number, waiting)

    assert behind.get(b"9") is None
    assert behind.get(b"10") is waiting
    assert MANY < MAX_WAITING


def test_a_store_that_fails_loses_what_it_was_given_and_no_more(bench: CacheBench) -> None:
    taken: list[bytes] = []

    def write(some: Sequence[tuple[bytes, PendingWrite]]) -> None:
        if not taken:
            taken.append(b"")
            raise OSError("the disk is gone")
        taken.extend(key for key, _ in some)

    behind = WriteBehind(write)
    lookup = bench.cache.lookup(bench.asked())
    assert lookup is not None
    waiting = PendingWrite(lookup, CacheTier.GLOBAL, entry_of((), retrieved_at=bench.clock.now()), 0)
    behind.add(b"one", waiting)
    with pytest.raises(OSError, match="gone"):
        behind.flush()
    behind.add(b"two", waiting)
    behind.flush()

    assert [b"", b"two"] == taken


@pytest.mark.parametrize("seed", range(60))
def test_whenever_it_is_written_only_the_present_state_is_ever_found(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    bench = CacheBench(CacheSettings(most_entries=draw.choice((2, 100))), directory=tmp_path if seed % 6 == 0 else None)
    processes = [bench.cache, bench.another()]
    on_the_way: list[tuple[CacheKey, str]] = []
    state = 0
    for _ in range(60):
        bench.clock.move(microseconds=draw.randrange(1, 20_000_000))
        bench.cache = draw.choice(processes)
        match draw.choice(("ask", "ask", "answer", "change", "write", "look", "look")):
            case "ask":
                on_the_way.append((bench.asked(draw.choice(("one", "two"))), f"state {state}"))
            case "answer" if on_the_way:
                keep_soon(bench, bench.cache, *on_the_way.pop(draw.randrange(len(on_the_way))))
            case "change":
                state += 1
                bench.cache.invalidate(draw.choice((WIKI.source_id, None)))
            case "write":
                bench.cache.write(is_soon=False)
            case "look":
                hit = bench.cache.for_request().get(bench.asked(draw.choice(("one", "two"))))

                assert hit is None or (f"state {state}",) == contents(hit.candidates)
            case _:
                pass
    bench.close()
