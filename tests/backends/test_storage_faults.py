"""Full disks, forbidden directories, second writers and newer schemas: a clear error, and the last version intact."""

from __future__ import annotations

import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evidentia.backends.embedded.records import schema
from evidentia.backends.embedded.records.database import open_for_writing
from evidentia.backends.embedded.records.writer import EmbeddedWriter
from evidentia.contracts.documents import ChangeSet
from evidentia.contracts.errors import BaseBusyError, BaseDamagedError, BaseFullError, BaseMissingError, BaseVersionError, InvalidFieldError
from evidentia.provenance.verification import verify_base
from evidentia.testing.documents import make_document
from evidentia.testing.store_kit import many_documents
from evidentia.wiring import embedded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evidentia.contracts.documents import CommitSummary
    from evidentia.wiring.embedded import EmbeddedComponents

NOBODY = 65534


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EmbeddedComponents]:
    """Return an open base with one committed version."""
    embedded.create(tmp_path / "base")
    parts = embedded.open_parts(tmp_path / "base")
    _commit(parts, 10, prefix="first")
    yield parts
    parts.close()


def _commit(parts: EmbeddedComponents, count: int, *, prefix: str) -> None:
    writer = parts.writer()
    try:
        writer.commit(ChangeSet(documents=many_documents(count, prefix=prefix)))
    finally:
        writer.close()


def _is_whole(parts: EmbeddedComponents) -> bool:
    archive = parts.archive()
    try:
        return verify_base(archive).ok
    finally:
        archive.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a file system of two megabytes."""
    mount = tmp_path / "small"
    mount.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(mount)], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("mounting a small file system needs root")
    yield mount
    subprocess.run(["umount", "-l", str(mount)], check=True)


def test_a_full_disk_is_named_and_the_last_version_stays(small_disk: Path) -> None:
    embedded.create(small_disk / "base")
    parts = embedded.open_parts(small_disk / "base")
    _commit(parts, 10, prefix="first")
    before = parts.reader.head()
    committed = [before]
    with pytest.raises(BaseFullError, match=r"no room left to write in '.*'; the last committed version is intact"):
        _commit_until_full(parts, committed)
    before = committed[-1]

    assert before == parts.reader.head()
    assert _is_whole(parts)
    assert not [path for path in (small_disk / "base" / "segments").iterdir() if path.name not in _named(parts.directory)]
    parts.close()


def _commit_until_full(parts: EmbeddedComponents, committed: list[CommitSummary]) -> None:
    for round_number in range(50):
        _commit(parts, 400, prefix=f"round-{round_number}-")
        committed.append(parts.reader.head())


def _named(directory: Path) -> set[str]:
    database = sqlite3.connect(directory / "evidentia.sqlite")
    try:
        return {name for (name,) in database.execute("SELECT name FROM segments")}
    finally:
        database.close()


@pytest.mark.parametrize("share", [0.02, 0.4, 0.9])
def test_a_quota_that_is_reached_leaves_the_last_version(tmp_path: Path, share: float) -> None:
    """The limit is set in a child process, at several places of the commit."""
    embedded.create(tmp_path / "base")
    parts = embedded.open_parts(tmp_path / "base")
    _commit(parts, 50, prefix="first")
    before = parts.reader.head()
    parts.close()
    size = (tmp_path / "base" / "evidentia.sqlite").stat().st_size
    script = f"""
        import resource, sys
        from pathlib import Path
        from evidentia.contracts.documents import ChangeSet
        from evidentia.contracts.errors import BaseFullError
        from evidentia.testing.store_kit import many_documents
        from evidentia.wiring import embedded
        parts = embedded.open_parts(Path({str(tmp_path / "base")!r}))
        documents = many_documents(600, prefix="second")
        resource.setrlimit(resource.RLIMIT_FSIZE, ({int(size * share) + 4096}, {resource.RLIM_INFINITY}))
        try:
            parts.writer().commit(ChangeSet(documents=documents))
        except BaseFullError as error:
            print(error)
            sys.exit(7)
    """
    child = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False)
    parts = embedded.open_parts(tmp_path / "base")

    assert 7 == child.returncode, child.stderr
    assert "the last committed version is intact" in child.stdout
    assert before == parts.reader.head()
    assert _is_whole(parts)
    _commit(parts, 20, prefix="third")
    assert _is_whole(parts)
    parts.close()


def test_a_directory_that_cannot_be_written_can_still_be_read_and_verified(store: EmbeddedComponents) -> None:
    """A process without rights stands in for a read-only directory, since root may write everywhere."""
    directory = store.directory
    before = store.reader.head()
    store.close()
    for path in (directory.parent, directory, *directory.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    script = f"""
        import os, sys
        from pathlib import Path
        from evidentia.contracts.documents import ChangeSet
        from evidentia.contracts.errors import EvidentiaError
        from evidentia.ingest import preparation
        from evidentia.provenance.verification import verify_base
        from evidentia.testing.documents import make_document
        from evidentia.wiring import embedded
        import evidentia.text.term_table, evidentia.text.counting
        make_document("a", "b")  # what is read on first use is read before rights are given up
        if os.getuid() == 0:
            os.setgid({NOBODY}); os.setuid({NOBODY})
        parts = embedded.open_parts(Path({str(directory)!r}))
        print(parts.reader.head().corpus_version, verify_base(parts.archive()).ok)
        try:
            parts.writer().commit(ChangeSet(documents=(make_document("x", "y"),)))
        except EvidentiaError as error:
            print(error.code, error)
    """
    for parent in directory.parents:
        if parent.owner() == directory.owner() and parent.is_relative_to(tempfile.gettempdir()) and parent != Path(tempfile.gettempdir()):
            parent.chmod(0o755)
    child = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False)
    for path in (directory.parent, directory, *directory.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)

    assert child.stdout.splitlines() == [
        f"{before.corpus_version} True",
        f"base_read_only '{directory}' cannot be written; the last committed version is intact",
    ], child.stderr


def test_a_second_writer_is_told_after_it_has_waited(store: EmbeddedComponents) -> None:
    first = store.writer()
    with pytest.raises(BaseBusyError, match=r"another writer holds '.*' \(waited 50 ms\)"):
        EmbeddedWriter(store.directory, clock=store.clock, entropy=store._entropy, language="english", wait_ms=50)
    first.close()


def test_a_second_writer_waits_its_turn(store: EmbeddedComponents) -> None:
    first = store.writer()
    done = threading.Event()

    def second() -> None:
        _commit(store, 5, prefix="second")
        done.set()

    thread = threading.Thread(target=second)
    thread.start()
    assert not done.wait(0.2)
    first.commit(ChangeSet(documents=(make_document("first", "text"),)))
    first.close()
    thread.join(timeout=20)

    assert done.is_set()
    assert 3 == store.reader.head().sequence
    assert _is_whole(store)


def test_readers_in_other_processes_see_whole_versions_while_one_writes(store: EmbeddedComponents) -> None:
    """Every commit adds ten documents, so a reader must only ever count multiples of ten."""
    script = f"""
        from pathlib import Path
        from evidentia.wiring import embedded
        import sys
        seen = set()
        parts = embedded.open_parts(Path({str(store.directory)!r}))
        print("ready", flush=True)
        while not sys.stdin.closed:
            seen.add(len(list(parts.reader.documents())))
            if max(seen) >= 310:
                break
        print(sorted(seen))
    """
    readers = [
        subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for reader in readers:
        assert reader.stdout is not None
        assert "ready\n" == reader.stdout.readline()
    writer = store.writer()
    for number in range(30):
        writer.commit(ChangeSet(documents=many_documents(10, prefix=f"round-{number}-")))
    writer.close()
    counts = [count for reader in readers for count in eval(reader.communicate(timeout=60)[0])]  # noqa: S307 - a list we printed

    assert 310 == max(counts)
    assert {0} == {count % 10 for count in counts}


def test_a_base_from_the_future_is_refused(store: EmbeddedComponents) -> None:
    database = sqlite3.connect(store.directory / "evidentia.sqlite")
    database.execute("PRAGMA user_version = 99")
    database.close()

    with pytest.raises(BaseVersionError, match="the base has schema 99, and this Evidentia knows schemas up to 7"):
        embedded.open_parts(store.directory)


def test_an_older_base_is_brought_up_step_by_step(store: EmbeddedComponents, monkeypatch: pytest.MonkeyPatch) -> None:
    """Migrations run in order, once, and only for the writer."""
    monkeypatch.setattr(schema, "SCHEMA_VERSION", 9)
    monkeypatch.setattr(schema, "MIGRATIONS", {7: ("CREATE TABLE later (x INTEGER) STRICT",), 8: ("INSERT INTO later VALUES (7)",)})
    for _ in range(2):
        database = open_for_writing(store.directory)
        assert [(7,)] == database.execute("SELECT x FROM later").fetchall()
        assert 9 == schema.schema_version(database)
        database.close()


def test_a_path_without_a_base_is_named(tmp_path: Path) -> None:
    with pytest.raises(BaseMissingError, match="there is no base at"):
        embedded.open_parts(tmp_path / "nowhere")


def test_a_base_is_not_made_over_another(store: EmbeddedComponents) -> None:
    with pytest.raises(InvalidFieldError, match=r"there is a base at '.*' already"):
        embedded.create(store.directory)


def test_a_file_that_is_no_database_is_damage_not_a_crash(store: EmbeddedComponents) -> None:
    directory = store.directory
    store.close()
    (directory / "evidentia.sqlite").write_bytes(b"not a database" * 100)
    with pytest.raises(BaseDamagedError, match="file is not a database"):
        embedded.open_parts(directory)


def test_a_missing_segment_is_named(store: EmbeddedComponents) -> None:
    segment = next((store.directory / "segments").iterdir())
    shutil.move(segment, store.directory / "elsewhere")
    archive = store.archive()
    report = verify_base(archive)
    archive.close()

    assert report.first_broken is not None
    assert ("segment", f"segment '{segment.name}'", "the file is missing") == (
        report.first_broken.check,
        report.first_broken.where,
        report.first_broken.problem,
    )


def test_what_a_dead_writer_left_is_removed_by_the_next(store: EmbeddedComponents) -> None:
    orphan = store.directory / "segments" / "00000099-deadbeef.seg"
    orphan.write_bytes(b"half a segment")
    store.writer().close()

    assert not orphan.exists()
    assert list((store.directory / "segments").iterdir())
