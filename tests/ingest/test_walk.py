"""A walk finds files in one order, keeps to its root and says what it left out."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from ingest_rig import Ingest

from evidentia.contracts.errors import DuplicateDocumentError, InvalidFieldError
from evidentia.ingest.walk import Walk, walk_paths

if TYPE_CHECKING:
    from collections.abc import Iterator


def make(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def ids(walk: Walk) -> list[str]:
    return [file.own_id for file in walk.files]


def reasons(walk: Walk) -> list[tuple[str, str]]:
    return [(entry.path, entry.reason) for entry in walk.skipped]


def test_files_come_sorted_by_own_id_whatever_the_order_of_the_arguments(tmp_path: Path) -> None:
    make(tmp_path, "x/b.md", "x/a/c.md", "x/a.md", "y/z.md")

    assert ["a.md", "a/c.md", "b.md", "z.md"] == ids(walk_paths([tmp_path / "x", tmp_path / "y"]))
    assert walk_paths([tmp_path / "x", tmp_path / "y"]) == walk_paths([tmp_path / "y", tmp_path / "x"])


def test_an_own_id_is_relative_to_the_root_and_composed(tmp_path: Path) -> None:
    make(tmp_path, "docs/resume\u0301.md")

    assert ["resum\u00e9.md"] == ids(walk_paths([tmp_path / "docs"]))
    assert ["resum\u00e9.md"] == ids(walk_paths([tmp_path / "docs" / "resume\u0301.md"]))


def test_two_names_that_compose_to_one_id_give_one_document(tmp_path: Path) -> None:
    make(tmp_path, "resume\u0301.md", "resum\u00e9.md")
    walk = walk_paths([tmp_path])

    assert ["resum\u00e9.md"] == ids(walk)
    assert [("resum\u00e9.md", "duplicate_id")] == reasons(walk)


def test_built_in_names_and_bases_are_left_out(tmp_path: Path) -> None:
    make(
        tmp_path, "a.md", ".git/config", ".env", "node_modules/x.js", "__pycache__/x.py", "evidentia.toml", "a.md~", "base/evidentia.sqlite"
    )
    make(tmp_path, "base/notes.md", ".evidentia/x.md", ".venv/y.py")

    assert ["a.md"] == ids(walk_paths([tmp_path]))


def test_a_root_that_is_a_base_is_not_silently_empty(tmp_path: Path) -> None:
    make(tmp_path, "evidentia.sqlite", "a.md")

    assert [(".", "is_a_base")] == reasons(walk_paths([tmp_path]))


def test_ignore_files_and_settings_keep_files_out(tmp_path: Path) -> None:
    make(tmp_path, "a.md", "b.log", "keep.log", "sub/c.md", "sub/d.md", "drafts/e.md", "f.tmp")
    (tmp_path / ".gitignore").write_text("*.log\n!keep.log\ndrafts/\n")
    (tmp_path / "sub" / ".evidentiaignore").write_text("/d.md\n")

    assert ["a.md", "keep.log", "sub/c.md"] == ids(walk_paths([tmp_path], ignore=["*.tmp"]))


def test_a_file_given_by_name_is_read_whatever_the_patterns_say(tmp_path: Path) -> None:
    make(tmp_path, ".hidden.md")

    assert [".hidden.md"] == ids(walk_paths([tmp_path / ".hidden.md"]))


def test_a_file_given_twice_is_one_file(tmp_path: Path) -> None:
    make(tmp_path, "a.md")

    assert ["a.md"] == ids(walk_paths([tmp_path, tmp_path / "a.md", tmp_path / "a.md"]))


def test_a_missing_path_is_an_error_that_names_it(tmp_path: Path) -> None:
    make(tmp_path, "a.md")
    with pytest.raises(InvalidFieldError) as caught:
        walk_paths([tmp_path / "a.md", "no/such/file.md"])

    assert str(caught.value) == "field 'paths': there is no file or directory 'no/such/file.md'"


def test_one_id_from_two_roots_is_an_error(tmp_path: Path) -> None:
    make(tmp_path, "x/a.md", "y/a.md")
    with pytest.raises(DuplicateDocumentError) as caught:
        walk_paths([tmp_path / "x", tmp_path / "y"])

    assert str(caught.value) == f"document id 'a.md' comes from both '{tmp_path / 'x'}' and '{tmp_path / 'y'}'"


def test_a_link_within_the_tree_is_followed(tmp_path: Path) -> None:
    make(tmp_path, "real/a.md", "b.md")
    (tmp_path / "alias").symlink_to(tmp_path / "real")
    (tmp_path / "c.md").symlink_to("b.md")

    assert ["alias/a.md", "b.md", "c.md", "real/a.md"] == ids(walk_paths([tmp_path]))


def test_a_link_out_of_the_tree_is_skipped(tmp_path: Path) -> None:
    make(tmp_path, "secret.md", "docs/a.md")
    (tmp_path / "docs" / "out.md").symlink_to(tmp_path / "secret.md")
    (tmp_path / "docs" / "up").symlink_to(tmp_path)
    walk = walk_paths([tmp_path / "docs"])

    assert ["a.md"] == ids(walk)
    assert [("out.md", "link_outside_root"), ("up", "link_outside_root")] == reasons(walk)
    assert walk.skipped[0].message == "'out.md' is a link out of the tree; name its target on the command line to ingest it"


def test_a_link_lends_no_name_to_what_is_never_ingested(tmp_path: Path) -> None:
    make(tmp_path, ".git/config", "a.md")
    (tmp_path / "notes.txt").symlink_to(tmp_path / ".git" / "config")

    assert ["a.md"] == ids(walk_paths([tmp_path]))


def test_link_loops_end(tmp_path: Path) -> None:
    make(tmp_path, "d/a.md")
    (tmp_path / "d" / "again").symlink_to(tmp_path / "d")
    (tmp_path / "self").symlink_to("self")
    walk = walk_paths([tmp_path])

    assert ["d/a.md"] == ids(walk)
    assert [("d/again", "link_loop"), ("self", "link_loop")] == reasons(walk)
    assert walk.skipped[0].message == "'d/again' is a link to a directory that holds it; nothing is lost"
    assert walk.skipped[1].message == "'self' is a link that leads back to itself"


def test_links_that_multiply_paths_are_followed_once(tmp_path: Path) -> None:
    for level in range(30):
        make(tmp_path, f"d{level}/a.md")
        if level:
            (tmp_path / f"d{level - 1}" / "left").symlink_to(tmp_path / f"d{level}")
            (tmp_path / f"d{level - 1}" / "right").symlink_to(tmp_path / f"d{level}")
    walk = walk_paths([tmp_path])

    assert len(walk.files) < 100
    assert {reason for _, reason in reasons(walk)} == {"link_repeated"}


def test_a_dangling_link_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "gone.md").symlink_to("nowhere.md")
    walk = walk_paths([tmp_path])

    assert [("gone.md", "link_dangling")] == reasons(walk)
    assert walk.skipped[0].message == "'gone.md' is a link to something that does not exist"


def test_pipes_and_sockets_are_skipped_without_blocking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("door.md")
        walk = walk_paths([tmp_path, tmp_path / "pipe.md"])

    assert [("door.md", "not_a_file"), ("pipe.md", "not_a_file"), ("pipe.md", "not_a_file")] == reasons(walk)
    assert walk.skipped[0].message == "'door.md' is not a regular file but a pipe, socket or device"


def test_a_name_that_is_not_utf8_is_skipped_legibly(tmp_path: Path) -> None:
    with open(os.fsencode(tmp_path) + b"/bad\xff.md", "w") as file:  # noqa: PTH123  # a Path cannot say this name
        file.write("x")
    walk = walk_paths([tmp_path])

    assert [r"'bad\udcff.md' has a name that is not UTF-8; rename it"] == [entry.message for entry in walk.skipped]


@pytest.fixture
def as_nobody() -> Iterator[Path]:
    """Give a directory that an ordinary user can reach and, for root, the eyes of one."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        yield folder
    finally:
        if is_root:
            os.seteuid(0)
        for path in folder.rglob("*"):
            path.chmod(0o755)
        shutil.rmtree(folder)


def test_a_directory_that_cannot_be_listed_is_reported_and_remembered(as_nobody: Path) -> None:
    if os.getuid() == 0:
        os.seteuid(0)
    make(as_nobody, "closed/a.md", "b.md")
    (as_nobody / "closed").chmod(0)
    if os.getuid() == 0:
        os.seteuid(65534)
    walk = walk_paths([as_nobody])

    assert ["b.md"] == ids(walk)
    assert ["'closed' cannot be read: permission denied"] == [entry.message for entry in walk.skipped]
    assert ((str(as_nobody.resolve()), "closed"),) == walk.unwalked


def test_a_file_that_may_not_be_read_is_reported(as_nobody: Path) -> None:
    if os.getuid() == 0:
        os.seteuid(0)
    make(as_nobody, "a.md", "closed.md")
    (as_nobody / "closed.md").chmod(0)
    if os.getuid() == 0:
        os.seteuid(65534)
    ingest = Ingest()
    report = ingest(as_nobody)

    assert ["a.md"] == ingest.store.own_ids()
    assert ["'closed.md' cannot be read: permission denied"] == [entry.message for entry in report.skipped]
