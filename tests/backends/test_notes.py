"""Notes of agents: durable, each owner's own, and gone when they have expired."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import textwrap
import threading
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from evidentia.backends.embedded.records.note_store import EmbeddedNotes
from evidentia.contracts.errors import (
    BaseBusyError,
    BaseDamagedError,
    BaseFullError,
    BaseReadOnlyError,
    BaseVersionError,
    InvalidFieldError,
)
from evidentia.contracts.sources import Note
from evidentia.testing.determinism import START, SteppingClock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

LATER = START + timedelta(days=1)


def _note(note_id: str, text: str = "a text", *, owner: str = "ann", tenant: str = "t", agent: str = "bot", session: str = "",
          expires_at: datetime | None = None) -> Note:  # fmt: skip
    return Note(
        note_id=note_id, text=text, owner=owner, tenant=tenant, agent_name=agent, session=session, written_at=START, expires_at=expires_at
    )


def _ids(store: EmbeddedNotes, *, owner: str = "ann", tenant: str = "t", agent: str | None = None, session: str | None = None,
         now: datetime = START) -> list[str]:  # fmt: skip
    return [note.note_id for note in store.of(tenant=tenant, owner=owner, agent_name=agent, session=session, now=now)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where the notes lie."""
    return tmp_path / "notes.db"


@pytest.fixture
def store(path: Path) -> Iterator[EmbeddedNotes]:
    """Return an empty store."""
    made = EmbeddedNotes(path, clock=SteppingClock())
    yield made
    made.close()


def test_reading_makes_no_file(store: EmbeddedNotes, path: Path) -> None:
    assert [] == _ids(store)
    assert 0 == store.remove(["x"], tenant="t", owner="ann")
    assert 0 == store.clean()
    assert "0" == store.revision()
    assert not path.exists()


def test_a_note_comes_back_as_it_was(store: EmbeddedNotes, path: Path) -> None:
    note = _note("n1", "naïve ☃ \x00 text", session="s", expires_at=LATER)
    store.add(note)
    store.close()

    assert [note] == list(EmbeddedNotes(path, clock=SteppingClock()).of(tenant="t", owner="ann", agent_name="bot", session="s", now=START))


def test_notes_are_ordered_by_id(store: EmbeddedNotes) -> None:
    for note_id in ("b", "c", "a"):
        store.add(_note(note_id))

    assert ["a", "b", "c"] == _ids(store)


def test_nobody_finds_or_removes_the_notes_of_another(store: EmbeddedNotes) -> None:
    store.add(_note("n"))
    store.add(_note("n", "another text", owner="bob"))
    store.add(_note("n", "a third text", tenant="other"))

    assert ["a text"] == [note.text for note in store.of(tenant="t", owner="ann", agent_name=None, session=None, now=START)]
    assert [] == _ids(store, owner="eve")
    assert 0 == store.remove(["n"], tenant="t", owner="eve")
    assert 1 == store.remove(["n", "n", "missing"], tenant="t", owner="bob")
    assert ["n"] == _ids(store)
    assert ["n"] == _ids(store, tenant="other")


def test_notes_are_found_by_agent_and_session(store: EmbeddedNotes) -> None:
    store.add(_note("everywhere"))
    store.add(_note("first", session="s1"))
    store.add(_note("second", session="s2"))
    store.add(_note("other", agent="other"))

    assert ["everywhere", "first"] == _ids(store, agent="bot", session="s1")
    assert ["everywhere"] == _ids(store, agent="bot", session="")
    assert ["everywhere", "first", "second"] == _ids(store, agent="bot")
    assert ["everywhere", "first", "other"] == _ids(store, session="s1")
    assert [] == _ids(store, agent="")


def test_a_note_with_the_same_id_takes_the_place_of_the_one_before(store: EmbeddedNotes) -> None:
    store.add(_note("n", "first"))
    store.add(_note("n", "second"))

    assert ["second"] == [note.text for note in store.of(tenant="t", owner="ann", agent_name=None, session=None, now=START)]


def test_an_expired_note_is_never_returned_and_goes_with_the_next_change(store: EmbeddedNotes, path: Path) -> None:
    store.add(_note("short", expires_at=START + timedelta(seconds=60)))
    store.add(_note("long", expires_at=LATER))

    assert ["long", "short"] == _ids(store, now=START + timedelta(seconds=59))
    assert ["long"] == _ids(store, now=START + timedelta(seconds=60))
    late = EmbeddedNotes(path, clock=SteppingClock(START + timedelta(seconds=61)))
    late.add(_note("new"))
    assert ["long", "new"] == _ids(late, now=START)
    assert 0 == late.clean()
    late.close()


def test_what_expired_can_be_cleaned_up_without_a_change(store: EmbeddedNotes, path: Path) -> None:
    store.add(_note("a", expires_at=START + timedelta(seconds=60)))
    store.close()
    late = EmbeddedNotes(path, clock=SteppingClock(LATER))

    assert 1 == late.clean()
    assert [] == _ids(late, now=START)
    late.close()


def test_every_change_is_another_revision(store: EmbeddedNotes) -> None:
    seen = [store.revision()]
    store.add(_note("a"))
    seen.append(store.revision())
    store.add(_note("a", "changed"))
    seen.append(store.revision())
    store.remove(["a"], tenant="t", owner="ann")
    seen.append(store.revision())

    assert 4 == len(set(seen))
    assert seen[-1] == store.revision()
    store.remove(["a"], tenant="t", owner="ann")
    assert seen[-1] == store.revision()


def test_a_note_that_expires_is_another_revision_and_so_is_its_deletion(store: EmbeddedNotes, path: Path) -> None:
    store.add(_note("a", expires_at=START + timedelta(seconds=60)))
    before = store.revision()
    late = EmbeddedNotes(path, clock=SteppingClock(LATER))
    expired = late.revision()
    late.clean()

    assert 3 == len({before, expired, late.revision()})
    late.close()


def test_a_store_that_was_made_anew_has_other_revisions(path: Path) -> None:
    first = EmbeddedNotes(path, clock=SteppingClock())
    first.add(_note("a"))
    before = first.revision()
    first.close()
    for file in path.parent.glob("notes.db*"):
        file.unlink()
    second = EmbeddedNotes(path, clock=SteppingClock(LATER))
    second.add(_note("a"))

    assert before != second.revision()
    second.close()


def test_two_stores_on_one_file_see_each_other(store: EmbeddedNotes, path: Path) -> None:
    other = EmbeddedNotes(path, clock=SteppingClock())
    store.add(_note("a"))
    before = other.revision()
    other.add(_note("b"))

    assert ["a", "b"] == _ids(store) == _ids(other)
    assert before != store.revision() == other.revision()
    other.close()


def test_processes_and_threads_that_write_at_once_lose_nothing(store: EmbeddedNotes, path: Path) -> None:
    script = f"""
        import sys
        from pathlib import Path
        from evidentia.backends.embedded.records.note_store import EmbeddedNotes
        from evidentia.contracts.sources import Note
        from evidentia.testing.determinism import START, SteppingClock
        store = EmbeddedNotes(Path({str(path)!r}), clock=SteppingClock())
        for number in range(30):
            store.add(Note(note_id=f"{{sys.argv[1]}}-{{number}}", text="x", owner="ann", tenant="t", written_at=START))
    """
    children = [subprocess.Popen([sys.executable, "-c", textwrap.dedent(script), name]) for name in ("p", "q")]

    def add(name: str) -> None:
        for number in range(30):
            store.add(_note(f"{name}-{number}"))

    threads = [threading.Thread(target=add, args=(name,)) for name in ("x", "y")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)

    assert [0, 0] == [child.wait(timeout=60) for child in children]
    assert {f"{name}-{number}" for name in "pqxy" for number in range(30)} == set(_ids(store))


def test_a_file_that_is_no_database_is_damage(store: EmbeddedNotes, path: Path) -> None:
    path.write_bytes(b"not a database" * 1000)
    with pytest.raises(BaseDamagedError, match=r"notes.db: file is not a database"):
        _ids(store)


def test_a_rotten_note_is_damage_and_not_another_text(store: EmbeddedNotes, path: Path) -> None:
    store.add(_note("n", "pay 10 euros"))
    database = sqlite3.connect(path)
    database.execute("UPDATE notes SET note = CAST(replace(CAST(note AS TEXT), 'pay 10', 'pay 90') AS BLOB)")
    database.commit()
    database.close()
    with pytest.raises(BaseDamagedError, match="note 'n' is not what was written"):
        _ids(store)


def test_notes_from_the_future_are_refused(store: EmbeddedNotes, path: Path) -> None:
    store.add(_note("n"))
    store.close()
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 9")
    database.close()
    with pytest.raises(BaseVersionError):
        _ids(store)


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BaseReadOnlyError, match="nowhere"):
        EmbeddedNotes(tmp_path / "nowhere" / "notes.db", clock=SteppingClock()).add(_note("n"))


def test_a_writer_that_does_not_let_go_is_named(store: EmbeddedNotes, path: Path) -> None:
    store.add(_note("n"))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    hasty = EmbeddedNotes(path, clock=SteppingClock(), wait_ms=10)
    with pytest.raises(BaseBusyError):
        hasty.add(_note("m"))
    other.execute("ROLLBACK")
    other.close()
    hasty.add(_note("m"))
    hasty.close()

    assert ["m", "n"] == _ids(store)


def test_a_text_that_has_no_bytes_is_refused(store: EmbeddedNotes) -> None:
    with pytest.raises(InvalidFieldError, match="unpaired surrogate"):
        store.add(_note("n", "\ud800"))


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


def test_a_full_disk_is_named_and_the_notes_before_stay(small_disk: Path) -> None:
    store = EmbeddedNotes(small_disk / "notes.db", clock=SteppingClock())
    kept: list[str] = []
    with pytest.raises(BaseFullError, match="no room left"):
        _fill(store, kept)

    assert kept
    assert kept == _ids(store)
    store.close()
    copied = small_disk.parent / "copied"
    shutil.copytree(small_disk, copied)
    again = EmbeddedNotes(copied / "notes.db", clock=SteppingClock())
    again.add(_note("zzz"))
    assert [*kept, "zzz"] == _ids(again)
    again.close()


def _fill(store: EmbeddedNotes, kept: list[str]) -> None:
    for number in range(100):
        store.add(_note(f"{number:03d}", "x" * 50_000))
        kept.append(f"{number:03d}")
