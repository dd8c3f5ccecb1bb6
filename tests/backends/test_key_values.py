"""Values that may be lost: whatever happens to the file, nothing is raised and nothing wrong is returned."""

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

from evidentia.backends.embedded.records.key_values import EmbeddedKeyValues

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where the values lie."""
    return tmp_path / "runtime.db"


@pytest.fixture
def store(path: Path) -> Iterator[EmbeddedKeyValues]:
    """Return an empty store."""
    made = EmbeddedKeyValues(path)
    yield made
    made.close()


def test_reading_makes_no_file(store: EmbeddedKeyValues, path: Path) -> None:
    assert store.get("a") is None
    assert not path.exists()


def test_a_value_is_there_for_this_process_and_the_next(store: EmbeddedKeyValues, path: Path) -> None:
    store.put("a", b"one")
    store.put("a", b"two")
    store.put("b", b"")

    assert (b"two", b"", None) == (store.get("a"), store.get("b"), store.get("c"))
    store.close()
    later = EmbeddedKeyValues(path)
    assert (b"two", b"", None) == (later.get("a"), later.get("b"), later.get("c"))
    later.close()


def test_a_change_by_another_process_is_seen(store: EmbeddedKeyValues, path: Path) -> None:
    """Two stores have two connections, as two processes do."""
    other = EmbeddedKeyValues(path)
    store.put("a", b"1")
    assert b"1" == store.get("a")
    other.put("a", b"2")
    assert b"2" == store.get("a")
    other.close()


def test_processes_and_threads_share_a_file(store: EmbeddedKeyValues, path: Path) -> None:
    script = f"""
        import sys
        from pathlib import Path
        from evidentia.backends.embedded.records.key_values import EmbeddedKeyValues
        store = EmbeddedKeyValues(Path({str(path)!r}))
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
    names = [f"{name}-{number}" for name in "pqxy" for number in range(20)]
    assert [name.encode() for name in names] == [store.get(name) for name in names]


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
    assert [None] * 300 == [store.get(f"k{number}") for number in range(300)]


@pytest.mark.slow
def test_a_flipped_byte_is_a_value_that_is_not_there(tmp_path: Path) -> None:
    """Whatever byte rots: no error, no value that was not put, and what is put afterwards is there."""
    made = EmbeddedKeyValues(tmp_path / "runtime.db")
    expected = {f"key-{number}": hashlib.sha256(bytes([number])).digest() * 20 for number in range(40)}
    for key, value in expected.items():
        made.put(key, value)
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
        store = EmbeddedKeyValues(folder / "runtime.db")
        found = {key: store.get(key) for key in expected}
        wrong = [key for key, value in found.items() if value not in (None, expected[key])]
        lost += sum(value is None for value in found.values())
        store.put("new", b"value")

        assert [] == wrong
        assert b"value" == store.get("new")
        store.close()
        assert b"value" == EmbeddedKeyValues(folder / "runtime.db").get("new")
    assert lost > 0


def test_another_process_that_set_the_file_aside_is_followed(store: EmbeddedKeyValues, path: Path) -> None:
    """A store whose file was replaced does not set the new one aside."""
    store.put("a", b"1")
    path.with_name("runtime.db-wal").unlink(missing_ok=True)
    path.with_name("runtime.db-shm").unlink(missing_ok=True)
    path.replace(path.with_name("runtime.db.damaged"))
    other = EmbeddedKeyValues(path)
    other.put("b", b"2")
    store._file.recover(sqlite3.DatabaseError("what a damaged page gives"))

    assert b"2" == store.get("b")
    other.close()


# --- disks that take nothing ---


def test_a_directory_that_is_not_there_keeps_nothing(tmp_path: Path) -> None:
    store = EmbeddedKeyValues(tmp_path / "nowhere" / "runtime.db")
    store.put("a", b"1")

    assert store.get("a") is None
    store.close()


def test_a_change_that_cannot_be_written_hides_what_it_would_have_replaced(store: EmbeddedKeyValues, path: Path) -> None:
    store.put("a", b"old")
    store.put("b", b"old")
    store.put("other", b"old")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    store.put("a", b"new")
    store.put("b", b"new")

    assert (None, None, b"old") == (store.get("a"), store.get("b"), store.get("other"))
    other.execute("ROLLBACK")
    other.close()
    assert (None, None, b"old") == (store.get("a"), store.get("b"), store.get("other"))
    store.put("c", b"new")
    assert ["c", "other"] == _stored_keys(path)
    store.put("a", b"newest")
    assert b"newest" == store.get("a")


def test_a_name_that_has_no_bytes_is_not_kept(store: EmbeddedKeyValues) -> None:
    store.put("a", b"1")
    store.put("\ud800", b"x")

    assert store.get("\ud800") is None
    store.put("b", b"2")
    assert (b"1", b"2") == (store.get("a"), store.get("b"))


def test_a_file_of_an_older_release_is_replaced(store: EmbeddedKeyValues, path: Path) -> None:
    older = sqlite3.connect(path)
    older.execute("CREATE TABLE entries (key TEXT PRIMARY KEY, value BLOB, expires_us INTEGER, used INTEGER, digest BLOB) STRICT")
    older.execute("INSERT INTO entries VALUES ('cache/entry/wiki', x'00', NULL, 1, x'00')")
    older.execute("PRAGMA user_version = 1")
    older.commit()
    older.close()

    assert store.get("cache/entry/wiki") is None
    store.put("a", b"1")
    assert b"1" == store.get("a")
    assert [path.name] == [each.name for each in path.parent.iterdir() if not each.name.endswith(("-wal", "-shm"))]


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
    store = EmbeddedKeyValues(small_disk / "runtime.db")
    for number in range(60):
        store.put(f"{number:02d}", bytes([number]) * 50_000)
    found = {number: store.get(f"{number:02d}") for number in range(60)}

    assert found[0] is not None
    assert found[59] is None
    assert all(value in (None, bytes([number]) * 50_000) for number, value in found.items())
    store.close()


def test_a_full_disk_from_the_beginning_keeps_nothing(small_disk: Path) -> None:
    (small_disk / "filler").write_bytes(bytes((1 << 20) - 4096))
    store = EmbeddedKeyValues(small_disk / "runtime.db")
    for number in range(5):
        store.put(f"k{number}", b"x" * 9000)

    assert all(store.get(f"k{number}") is None for number in range(5))
    store.close()


def _stored_keys(path: Path) -> list[str]:
    database = sqlite3.connect(path)
    try:
        return [key for (key,) in database.execute("SELECT key FROM entries ORDER BY key")]
    finally:
        database.close()
