"""Values that may be lost: whatever happens to the file, nothing is raised and nothing wrong is returned."""

from __future__ import annotations

import hashlib
import random
import sqlite3
import subprocess
import sys
import textwrap
import threading
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidentia.backends.embedded.records.key_values import EmbeddedKeyValues, ValueCache
from evidentia.testing.determinism import START

if TYPE_CHECKING:
    from collections.abc import Iterator


class HandClock:
    """Implements `Clock`: stands still until it is set."""

    def __init__(self, now: datetime = START) -> None:
        self.moment = now

    def now(self) -> datetime:
        return self.moment

    def elapsed_ns(self) -> int:
        return 0


@pytest.fixture
def clock() -> HandClock:
    """Return a clock that stands still."""
    return HandClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where the values lie."""
    return tmp_path / "runtime.db"


@pytest.fixture
def store(path: Path, clock: HandClock) -> Iterator[EmbeddedKeyValues]:
    """Return an empty store."""
    made = EmbeddedKeyValues(path, clock=clock)
    yield made
    made.close()


def _again(path: Path, *, most_entries: int | None = None) -> EmbeddedKeyValues:
    return EmbeddedKeyValues(path, clock=HandClock(), most_entries=most_entries)


def test_reading_and_deleting_make_no_file(store: EmbeddedKeyValues, path: Path) -> None:
    assert store.get("a") is None
    assert 0 == store.delete("")
    assert [] == list(store.items(""))
    assert not path.exists()


def test_a_value_is_there_for_this_process_and_the_next(store: EmbeddedKeyValues, path: Path) -> None:
    store.put("a", b"one")
    store.put("a", b"two")
    store.put("b", b"")

    assert (b"two", b"", None) == (store.get("a"), store.get("b"), store.get("c"))
    store.close()
    later = _again(path)
    assert (b"two", b"", None) == (later.get("a"), later.get("b"), later.get("c"))
    later.close()


def test_a_value_ends_when_it_expires_in_memory_and_in_the_file(store: EmbeddedKeyValues, path: Path, clock: HandClock) -> None:
    store.put("a", b"x", expires_at=START + timedelta(seconds=10))
    store.put("b", b"y")
    clock.moment = START + timedelta(seconds=10, microseconds=-1)
    assert b"x" == store.get("a")
    assert ["a", "b"] == [key for key, _ in store.items("")]
    clock.moment = START + timedelta(seconds=10)

    assert store.get("a") is None
    assert ["b"] == [key for key, _ in store.items("")] == list(store.names(""))
    late = EmbeddedKeyValues(path, clock=clock)
    assert late.get("a") is None
    late.put("c", b"z")
    assert ["b", "c"] == _stored_keys(path)
    late.close()


def test_names_that_begin_alike_are_listed_in_order_and_deleted_together(store: EmbeddedKeyValues) -> None:
    names = ["a", "a%", "a_b", "ab", "a\ud7ff", "a\ue000", "a\U0010ffff", "a\U0010ffffz", "b", "B", "é"]
    for name in reversed(names):
        store.put(name, name.encode())

    expected = sorted(name for name in names if name.startswith("a"))
    assert [(name, name.encode()) for name in expected] == list(store.items("a"))
    assert ["a\U0010ffff", "a\U0010ffffz"] == [name for name, _ in store.items("a\U0010ffff")]
    assert 1 == store.delete("a%")
    assert len(expected) - 1 == store.delete("a")
    assert [] == list(store.items("a"))
    assert store.get("ab") is None
    assert sorted(["b", "B", "é"]) == [name for name, _ in store.items("")]
    assert 3 == store.delete("")


@given(
    keys=st.lists(st.text(alphabet="ab\ud7ff\ue000\U0010ffff", max_size=4), unique=True, max_size=8),
    prefix=st.text(alphabet="ab\ud7ff\U0010ffff", max_size=2),
)
@settings(max_examples=60, deadline=None)
def test_a_prefix_means_what_it_means_in_python(keys: list[str], prefix: str) -> None:
    with TemporaryDirectory() as folder:
        store = _again(Path(folder) / "runtime.db")
        for key in keys:
            store.put(key, b"x")
        expected = sorted(key for key in keys if key.startswith(prefix))

        assert expected == [key for key, _ in store.items(prefix)] == list(store.names(prefix))
        assert len(expected) == store.delete(prefix)
        assert sorted(set(keys) - set(expected)) == [key for key, _ in store.items("")]
        store.close()


def test_the_ones_not_used_for_longest_go_first(path: Path) -> None:
    store = _again(path, most_entries=3)
    for key in "abc":
        store.put(key, key.encode())
    assert b"a" == store.get("a")
    store.put("d", b"d")

    assert ["a", "c", "d"] == [key for key, _ in store.items("")]
    assert store.get("b") is None
    store.put("c", b"again")
    store.put("e", b"e")
    assert ["c", "d", "e"] == [key for key, _ in store.items("")]
    store.close()


def test_what_was_used_is_remembered_when_the_store_is_closed(path: Path) -> None:
    store = _again(path, most_entries=3)
    for key in "abc":
        store.put(key, key.encode())
    store.get("b")
    store.get("a")
    store.close()
    later = _again(path, most_entries=3)
    later.put("d", b"d")
    later.put("e", b"e")

    assert ["a", "d", "e"] == [key for key, _ in later.items("")]
    later.close()


def test_a_change_by_another_process_is_seen(store: EmbeddedKeyValues, path: Path) -> None:
    """Two stores have two connections, as two processes do."""
    other = _again(path)
    store.put("a", b"1")
    assert b"1" == store.get("a")
    other.put("a", b"2")
    assert b"2" == store.get("a")
    other.delete("a")

    assert store.get("a") is None
    other.close()


def test_processes_and_threads_share_a_file(store: EmbeddedKeyValues, path: Path) -> None:
    script = f"""
        import sys
        from pathlib import Path
        from evidentia.backends.embedded.records.key_values import EmbeddedKeyValues
        from evidentia.testing.determinism import SteppingClock
        store = EmbeddedKeyValues(Path({str(path)!r}), clock=SteppingClock())
        for number in range(200):
            key = f"{{sys.argv[1]}}-{{number % 20}}"
            store.put(key, key.encode())
            assert store.get(key) == key.encode()
    """
    children = [subprocess.Popen([sys.executable, "-c", textwrap.dedent(script), name]) for name in ("p", "q")]
    wrong: list[str] = []

    def work(name: str) -> None:
        for number in range(200):
            key = f"{name}-{number % 20}"
            store.put(key, key.encode())
            if store.get(key) != key.encode():
                wrong.append(key)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("x", "y")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)

    assert [0, 0] == [child.wait(timeout=60) for child in children]
    assert [] == wrong
    assert {f"{name}-{number}": f"{name}-{number}".encode() for name in "pqxy" for number in range(20)} == dict(store.items(""))


# --- damage ---


def test_a_file_that_is_no_database_is_set_aside(store: EmbeddedKeyValues, path: Path) -> None:
    path.write_bytes(b"not a database" * 1000)

    assert store.get("a") is None
    store.put("a", b"1")
    assert b"1" == store.get("a")
    assert path.with_name("runtime.db.damaged").exists()
    assert ["a"] == _stored_keys(path)


def test_a_database_of_something_else_is_set_aside(store: EmbeddedKeyValues, path: Path) -> None:
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE entries (x)")
    other.close()
    store.put("a", b"1")

    assert b"1" == store.get("a")


def test_a_file_that_turns_bad_while_it_is_open_is_set_aside(store: EmbeddedKeyValues, path: Path) -> None:
    for number in range(300):
        store.put(f"k{number}", bytes(1000))
    store.close()
    whole = path.read_bytes()
    assert bytes(1000) == store.get("k0")
    path.write_bytes(b"\xff" * len(whole))

    for number in range(300):
        assert store.get(f"k{number}") in (None, bytes(1000))
    store.put("a", b"1")
    assert b"1" == store.get("a")
    assert [] == [value for key, value in store.items("k") if value != bytes(1000)]


@pytest.mark.slow
def test_a_flipped_byte_is_a_value_that_is_not_there(tmp_path: Path) -> None:
    """Whatever byte rots: no error, no value that was not put, and what is put afterwards is there."""
    made = _again(tmp_path / "runtime.db")
    expected = {f"key-{number}": hashlib.sha256(bytes([number])).digest() * 20 for number in range(40)}
    for key, value in expected.items():
        made.put(key, value, expires_at=START + timedelta(days=1))
    made.close()
    whole = (tmp_path / "runtime.db").read_bytes()
    chance = random.Random(3)
    lost = 0
    for round_number in range(250):
        folder = tmp_path / str(round_number)
        folder.mkdir()
        flipped = bytearray(whole)
        flipped[chance.randrange(len(flipped))] ^= 1 << chance.randrange(8)
        (folder / "runtime.db").write_bytes(flipped)
        store = _again(folder / "runtime.db", most_entries=100)
        found = {key: store.get(key) for key in expected}
        wrong = [key for key, value in found.items() if value not in (None, expected[key])]
        wrong += [key for key, value in store.items("") if expected.get(key) != value]
        lost += sum(value is None for value in found.values())
        store.put("new", b"value")

        assert [] == wrong
        assert b"value" == store.get("new")
        store.close()
        assert b"value" == _again(folder / "runtime.db").get("new")
    assert lost > 0


def test_another_process_that_set_the_file_aside_is_followed(store: EmbeddedKeyValues, path: Path) -> None:
    """A store whose file was replaced does not set the new one aside."""
    store.put("a", b"1")
    path.with_name("runtime.db-wal").unlink(missing_ok=True)
    path.with_name("runtime.db-shm").unlink(missing_ok=True)
    path.replace(path.with_name("runtime.db.damaged"))
    other = _again(path)
    other.put("b", b"2")
    store._after(sqlite3.DatabaseError("what a damaged page gives"))

    assert b"2" == store.get("b")
    other.close()


# --- disks that take nothing ---


def test_a_directory_that_is_not_there_keeps_nothing(tmp_path: Path) -> None:
    store = _again(tmp_path / "nowhere" / "runtime.db")
    store.put("a", b"1")

    assert store.get("a") is None
    assert 0 == store.delete("a")
    assert [] == list(store.items(""))
    store.close()


def test_a_change_that_cannot_be_written_hides_what_it_would_have_replaced(store: EmbeddedKeyValues, path: Path) -> None:
    store.put("a", b"old")
    store.put("b", b"old")
    store.put("other", b"old")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    store.put("a", b"new")
    store.delete("b")

    assert (None, None, b"old") == (store.get("a"), store.get("b"), store.get("other"))
    assert ["other"] == [key for key, _ in store.items("")]
    other.execute("ROLLBACK")
    other.close()
    assert (None, None, b"old") == (store.get("a"), store.get("b"), store.get("other"))
    store.put("c", b"new")
    assert ["c", "other"] == [key for key, _ in store.items("")] == _stored_keys(path)
    store.put("a", b"newest")
    assert b"newest" == store.get("a")


def test_a_name_that_has_no_bytes_is_not_kept(store: EmbeddedKeyValues) -> None:
    store.put("a", b"1")
    store.put("\ud800", b"x")

    assert store.get("\ud800") is None
    assert 0 == store.delete("\ud800")
    assert [] == list(store.items("\ud800"))
    store.put("b", b"2")
    assert (b"1", b"2") == (store.get("a"), store.get("b"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a file system of one megabyte."""
    mount = tmp_path / "small"
    mount.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(mount)], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("mounting a small file system needs root")
    yield mount
    subprocess.run(["umount", "-l", str(mount)], check=True)


def test_a_full_disk_keeps_what_it_can(small_disk: Path) -> None:
    store = _again(small_disk / "runtime.db")
    for number in range(60):
        store.put(f"{number:02d}", bytes([number]) * 50_000)
    found = {number: store.get(f"{number:02d}") for number in range(60)}

    assert found[0] is not None
    assert found[59] is None
    assert all(value in (None, bytes([number]) * 50_000) for number, value in found.items())
    store.close()


def test_a_full_disk_from_the_beginning_keeps_nothing(small_disk: Path) -> None:
    (small_disk / "filler").write_bytes(bytes((1 << 20) - 4096))
    store = _again(small_disk / "runtime.db")
    for number in range(5):
        store.put(f"k{number}", b"x" * 9000)

    assert all(store.get(f"k{number}") is None for number in range(5))
    store.close()


# --- the memory in front ---


def test_the_memory_is_bounded_by_number_and_by_size() -> None:
    kept = ValueCache(max_cached=3, max_bytes=10)
    for key in "abc":
        kept.put(key, b"xx", None)
    kept.get("a")
    kept.put("d", b"xx", None)

    assert [True, False, True, True] == [kept.get(key) is not None for key in "abcd"]
    kept.put("e", b"xxxxxxxxx", None)
    assert [False, False, False, True] == [kept.get(key) is not None for key in "acde"]
    kept.put("f", b"x" * 11, None)
    assert kept.get("f") is None


def _stored_keys(path: Path) -> list[str]:
    database = sqlite3.connect(path)
    try:
        return [key for (key,) in database.execute("SELECT key FROM entries ORDER BY key")]
    finally:
        database.close()


def test_what_is_changed_together_is_seen_within_and_written_at_the_end(store: EmbeddedKeyValues, path: Path) -> None:
    store.put("a/old", b"0")
    other = _again(path)
    with store.transaction():
        store.put("a/one", b"1")
        store.put("a/one", b"2")
        store.put("b/ended", b"3", expires_at=START - timedelta(seconds=1))
        within = store.get("a/one"), store.get("b/ended"), other.get("a/one")
        deleted = store.delete("a/o")
        store.put("a/three", b"3")
        listed = [name for name, _ in store.items("")]
        store.put("a/four", b"4")

    assert (b"2", None, None) == within
    assert 2 == deleted
    assert ["a/three"] == listed
    assert [("a/four", b"4"), ("a/three", b"3")] == list(other.items("")) == list(store.items(""))
    other.close()


def test_what_cannot_be_written_together_is_hidden_after_one_wait(path: Path, clock: HandClock) -> None:
    store = EmbeddedKeyValues(path, clock=clock, wait_ms=1)
    store.put("one", b"old")
    blocking = sqlite3.connect(path, isolation_level=None)
    blocking.execute("BEGIN IMMEDIATE")
    with store.transaction():
        for number in range(20):
            store.put("one", b"new %d" % number)
        store.delete("two")
    hidden = store.get("one")
    blocking.execute("COMMIT")
    blocking.close()
    store.put("three", b"3")

    assert hidden is None
    assert [("three", b"3")] == list(store.items(""))
    store.close()


def test_a_file_that_turns_bad_is_set_aside_before_several_values_are_written(store: EmbeddedKeyValues, path: Path) -> None:
    path.write_bytes(b"this is no database, and never was one" * 100)
    with store.transaction():
        store.put("one", b"1")

    assert b"1" == store.get("one")


def test_at_a_glance_everything_is_as_new_as_its_beginning(store: EmbeddedKeyValues, path: Path, clock: HandClock) -> None:
    other = _again(path)
    store.put("one", b"1")
    store.put("ends", b"2", expires_at=START + timedelta(seconds=1))
    assert b"1" == store.get("one")
    other.put("one", b"new")
    other.put("two", b"2")
    with store.batch_reads():
        store.preload(["one", "two", "none", "ends", "\ud800"])
        clock.moment = START + timedelta(seconds=2)
        found = [store.get(name) for name in ("one", "two", "none", "ends", "\ud800", "unasked")]
    other.put("none", b"3")

    assert [b"new", b"2", None, None, None, None] == found
    assert b"3" == store.get("none")
    other.close()


def test_without_a_glance_nothing_is_read_ahead(store: EmbeddedKeyValues) -> None:
    store.preload(["one"])
    store.put("one", b"1")

    assert b"1" == store.get("one")
