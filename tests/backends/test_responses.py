"""Stored responses of sources: whatever happens to the file, nothing is raised, and nothing wrong or invalidated is returned."""

from __future__ import annotations

import hashlib
import random
import sqlite3
import subprocess
import sys
import textwrap
import threading
from typing import TYPE_CHECKING

import pytest

from engine.cached_answers import SetClock
from evidentia.backends.embedded.records.responses import MAX_HIDDEN, EmbeddedResponses
from evidentia.contracts.ids import SourceId
from evidentia.contracts.retrieval import StoredResponse
from evidentia.contracts.vocabulary import CacheTier
from evidentia.foundation.sqlite_file import to_microseconds

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WIKI, LOGS = SourceId("wiki"), SourceId("logs")


class Bench:
    """A file of responses, a clock, and short ways to fill it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = SetClock()
        self._made: list[EmbeddedResponses] = []
        self.store = self.another()

    def another(self, *, most: int = 1_000, wait_ms: int = 500) -> EmbeddedResponses:
        """Return the store as another process has it."""
        self._made.append(EmbeddedResponses(self.path, clock=self.clock, most_entries=most, wait_ms=wait_ms))
        return self._made[-1]

    def response(
        self, key: str, *, source: SourceId = WIKI, said: str = "said", ends_s: int | None = None, group: str = ""
    ) -> StoredResponse:
        """Return a response that came now."""
        now_us = to_microseconds(self.clock.now())
        return StoredResponse(
            key=key.encode(),
            source_id=source,
            tier=CacheTier.GLOBAL,
            generation=self.store.generations([source])[source],
            first_us=now_us,
            last_us=now_us,
            expires_us=None if ends_s is None else now_us + ends_s * 1_000_000,
            payload=said.encode(),
            group=group.encode() or None,
            vector=b"1234" if group else None,
        )

    def put(self, *keys: str, **fields: object) -> None:
        """Keep responses."""
        self.store.put([self.response(key, **fields) for key in keys])  # type: ignore[arg-type]  # the fields of `response`

    def close(self) -> None:
        """Close every connection."""
        for store in self._made:
            store.close()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Return an empty store."""
    made = Bench(tmp_path / "responses.db")
    yield made
    made.close()


def found(store: EmbeddedResponses, keys: str = "abcdefgh") -> str:
    """Return the keys of one letter under which there is a response."""
    return "".join(sorted(key.decode() for key in store.get([key.encode() for key in keys])))


def test_reading_makes_no_file(bench: Bench) -> None:
    assert {} == bench.store.get([b"a"])
    assert [] == bench.store.neighbours(b"g", limit=3)
    assert {} == bench.store.counts()
    assert not bench.path.exists()


def test_a_response_is_there_for_this_process_and_the_next_as_it_was(bench: Bench) -> None:
    kept = bench.response("a", ends_s=9, group="g")._replace(tier=CacheTier.SESSION)
    assert [kept] == bench.store.put([kept])

    assert {b"a": kept} == bench.store.get([b"a", b"b"]) == bench.another().get([b"a"])
    assert {CacheTier.SESSION: 1} == bench.another().counts()


def test_many_are_put_and_found_at_once(bench: Bench) -> None:
    some = [bench.response(f"key {number}") for number in range(700)]

    assert some == bench.store.put(some)
    assert {each.key: each for each in some} == bench.store.get([each.key for each in some])


def test_a_response_ends_when_it_expires(bench: Bench) -> None:
    bench.put("a", ends_s=10, group="g")
    bench.put("b", group="g")
    bench.clock.move(seconds=10, microseconds=-1)
    assert "ab" == found(bench.store)
    bench.clock.move(microseconds=1)

    assert "b" == found(bench.store) == found(bench.another())
    assert {CacheTier.GLOBAL: 1} == bench.store.counts()
    assert [b"b"] == [each.key for each in bench.store.neighbours(b"g", limit=5)]
    bench.put("c")
    assert ["b", "c"] == stored_keys(bench.path)


def test_a_group_is_told_newest_first_and_no_longer_than_wanted(bench: Bench) -> None:
    for key in "abcd":
        bench.put(key, group="g")
    bench.put("e", group="other")
    bench.put("b", group="g")

    assert [b"b", b"d", b"c"] == [each.key for each in bench.store.neighbours(b"g", limit=3)]


def test_an_older_response_does_not_replace_a_newer_one_unless_that_is_from_the_future(bench: Bench) -> None:
    older = bench.response("a", said="older")
    bench.clock.move(seconds=5)
    newer = bench.response("a", said="newer")
    bench.another().put([newer])
    assert [] == bench.store.put([older])
    assert newer == bench.store.get([b"a"])[b"a"]
    bench.clock.move(seconds=-5)

    assert [older] == bench.store.put([older])


# --- room ---


def test_the_ones_not_used_for_longest_go_first(bench: Bench) -> None:
    store = bench.another(most=3)
    for key in "abc":
        store.put([bench.response(key)])
        bench.clock.move(seconds=1)
    store.touch([b"a"])
    store.put([bench.response("d")])

    assert "acd" == found(store)
    assert {CacheTier.GLOBAL: 3} == store.counts()


def test_what_was_used_is_remembered_when_the_store_is_closed(bench: Bench) -> None:
    store = bench.another(most=3)
    for key in "abc":
        store.put([bench.response(key)])
        bench.clock.move(seconds=1)
    store.touch([b"c"])  # within a minute of the last note, so that it is written with the next change or at the end
    bench.clock.move(seconds=1)
    store.touch([b"a"])
    store.close()
    bench.clock.move(seconds=1)
    bench.another(most=3).put([bench.response("d"), bench.response("e")])

    assert "ade" == found(bench.store)


def test_of_several_processes_each_adds_at_most_a_quarter(bench: Bench) -> None:
    stores = [bench.another(most=40) for _ in range(3)]
    for number in range(300):
        bench.clock.move(seconds=1)
        stores[number % 3].put([bench.response(f"key {number}")])

    assert 40 <= sum(bench.store.counts().values()) <= 40 + 3 * 10


# --- generations ---


def test_a_source_that_is_invalidated_loses_its_responses_and_gets_a_later_generation(bench: Bench) -> None:
    bench.put("a", "b")
    bench.put("c", source=LOGS)
    late, before = bench.response("d"), bench.store.generations([WIKI, LOGS])

    assert 2 == bench.another().invalidate(WIKI)
    after = bench.store.generations([WIKI, LOGS])
    assert (True, True) == (after[WIKI] > before[WIKI], after[LOGS] == before[LOGS])
    assert [] == bench.store.put([late])
    assert "c" == found(bench.store)
    assert 1 == bench.store.invalidate()
    assert bench.another().generations([LOGS])[LOGS] > before[LOGS]


def test_a_source_without_bytes_has_a_generation_and_keeps_nothing(bench: Bench) -> None:
    broken = SourceId("\ud800")

    assert bench.store.generations([broken, WIKI])[broken] > 0
    assert 0 == bench.store.invalidate(broken)
    bench.put("a")
    assert "a" == found(bench.store)


# --- several processes ---


def test_a_change_by_another_process_is_seen(bench: Bench) -> None:
    other = bench.another()
    bench.put("a")
    assert "a" == found(other)
    other.put([bench.response("a", said="new")])

    assert b"new" == bench.store.get([b"a"])[b"a"].payload
    other.invalidate(WIKI)
    assert "" == found(bench.store)


def test_processes_and_threads_share_a_file(bench: Bench) -> None:
    script = f"""
        import sys
        from pathlib import Path
        sys.path.insert(0, "tests")
        from backends.test_responses import Bench, fill
        fill(Bench(Path({str(bench.path)!r})), sys.argv[1])
    """
    children = [subprocess.Popen([sys.executable, "-c", textwrap.dedent(script), name]) for name in ("p", "q")]
    wrong: list[BaseException] = []

    def work(name: str) -> None:
        try:
            fill(bench, name)
        except BaseException as error:  # noqa: BLE001 - told by the test
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("x", "y")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)

    assert [0, 0] == [child.wait(timeout=60) for child in children]
    assert [] == wrong
    keys = [f"{name}-{number}" for name in "pqxy" for number in range(20)]
    assert {key.encode(): key.encode() for key in keys} == {
        key: each.payload for key, each in bench.store.get([key.encode() for key in keys]).items()
    }


def fill(bench: Bench, name: str) -> None:
    """Keep and find responses of a source of one's own."""
    for number in range(100):
        key = f"{name}-{number % 20}"
        bench.put(key, said=key, source=SourceId(name))
        assert bench.store.get([key.encode()])[key.encode()].payload == key.encode()


# --- damage ---


@pytest.mark.parametrize("content", [b"not a database" * 1_000, b""])
def test_a_file_that_is_no_database_is_replaced(bench: Bench, content: bytes) -> None:
    bench.path.write_bytes(content)
    assert "" == found(bench.store)
    bench.put("a")

    assert "a" == found(bench.store)
    assert bool(content) == bench.path.with_name("responses.db.damaged").exists()


def test_a_file_that_turns_bad_while_it_is_open_is_set_aside(bench: Bench) -> None:
    bench.store.put([bench.response(f"key {number}", said="x" * 1_000) for number in range(300)])
    bench.store.close()
    size = len(bench.path.read_bytes())
    assert 1 == len(bench.store.get([b"key 0"]))
    bench.path.write_bytes(b"\xff" * size)

    told = bench.store.get([b"key %d" % number for number in range(300)])
    assert {b"x" * 1_000} >= {each.payload for each in told.values()}
    bench.put("a")
    assert "a" == found(bench.store)


@pytest.mark.slow
def test_a_flipped_byte_is_a_response_that_is_not_there(tmp_path: Path) -> None:
    """Whatever byte rots: no error, no response that was not put, and what is put afterwards is there."""
    made = Bench(tmp_path / "responses.db")
    said = {f"key-{number}": hashlib.sha256(bytes([number])).hexdigest() * 10 for number in range(40)}
    expected = {key.encode(): made.response(key, said=text, ends_s=86_400, group="g") for key, text in said.items()}
    made.store.put(list(expected.values()))
    made.close()
    whole = made.path.read_bytes()
    chance, lost = random.Random(3), 0
    for round_number in range(150):
        folder = tmp_path / str(round_number)
        folder.mkdir()
        flipped = bytearray(whole)
        flipped[chance.randrange(len(flipped))] ^= 1 << chance.randrange(8)
        (folder / "responses.db").write_bytes(flipped)
        bench = Bench(folder / "responses.db")
        told = [*bench.store.get(list(expected)).values(), *bench.store.neighbours(b"g", limit=100)]
        lost += 2 * len(expected) - len(told)
        for _ in range(2):  # the first may be what finds the damage: then its generation is gone, and it is asked for again
            bench.put("new")

        assert [] == [each for each in told if expected.get(each.key) != each]
        assert 1 == len(bench.store.get([b"new"]))
        bench.close()
        assert 1 == len(Bench(folder / "responses.db").store.get([b"new"]))
    assert lost > 0


# --- disks that take nothing ---


def test_a_directory_that_is_not_there_keeps_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "nowhere" / "responses.db")
    bench.put("a")
    first, second = (bench.store.generations([WIKI])[WIKI] for _ in range(2))

    assert "" == found(bench.store)
    assert 0 == bench.store.invalidate()
    assert first < second
    bench.close()


def test_a_change_that_cannot_be_written_hides_what_it_would_have_replaced(bench: Bench) -> None:
    store = bench.another(wait_ms=1)
    bench.put("a", "b")
    bench.put("c", source=LOGS)
    before, newer = store.generations([WIKI, LOGS]), bench.response("c", source=LOGS, said="new")
    other = sqlite3.connect(bench.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    store.put([newer])
    hidden = found(store)
    invalidated = store.invalidate(WIKI)
    all_hidden, during = found(store), store.generations([WIKI, LOGS])
    other.execute("ROLLBACK")
    other.close()

    assert ("ab", 0, "") == (hidden, invalidated, all_hidden)
    assert (True, True) == (during[WIKI] > before[WIKI], during[LOGS] == before[LOGS])
    assert {} == store.counts()
    store.put([newer])
    assert "c" == found(store) == found(bench.store)
    assert bench.store.generations([WIKI])[WIKI] > before[WIKI]


def test_everything_is_hidden_when_it_could_not_be_invalidated_or_too_much_could_not_be_replaced(bench: Bench) -> None:
    stores = [bench.another(wait_ms=1) for _ in range(2)]
    bench.put("a")
    before = bench.store.generations([WIKI])[WIKI]
    other = sqlite3.connect(bench.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    stores[0].invalidate()
    for start in (0, MAX_HIDDEN):
        stores[1].put([bench.response(f"key {number}") for number in range(start, start + MAX_HIDDEN)])
    hidden = [found(store) for store in stores]
    other.execute("ROLLBACK")
    other.close()
    stores[0].touch([b"a"])

    assert ["", ""] == hidden
    assert "" == found(bench.store)
    assert bench.store.generations([WIKI])[WIKI] > before


def test_a_full_disk_keeps_what_it_can(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "responses.db")
    bench.put("a")
    with sqlite3.connect(bench.path) as database:
        (pages,) = database.execute("PRAGMA page_count").fetchone()
    bench.store._file._database.execute(f"PRAGMA max_page_count = {pages + 20}")  # type: ignore[union-attr]  # the disk ends there
    kept = [bool(bench.store.put([bench.response(f"key {number}", said="x" * 20_000)])) for number in range(10)]

    assert kept[0]
    assert not kept[-1]
    assert "a" == found(bench.store)
    bench.close()


def stored_keys(path: Path) -> list[str]:
    database = sqlite3.connect(path)
    try:
        return [key.decode() for (key,) in database.execute("SELECT key FROM responses ORDER BY key")]
    finally:
        database.close()
