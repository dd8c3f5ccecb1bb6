"""What git knows comes in; what a repository would like to run does not."""

from __future__ import annotations

import shutil
import subprocess
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from ingest_rig import Ingest

from evidentia.ingest.version_control import read_history

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(root: Path, *arguments: str, day: int = 1) -> str:
    moment = f"2024-01-{day:02}T12:00:00+00:00"
    environment = {
        "GIT_AUTHOR_DATE": moment,
        "GIT_COMMITTER_DATE": moment,
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(root),
    }
    command = ["git", "-C", str(root), "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    root.mkdir()
    git(root, "init", "-q")
    (root / "a.md").write_text("one\n")
    (root / "sp ace\u00e9.md").write_text("spaced\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first", day=1)
    (root / "a.md").write_text("two\n")
    git(root, "commit", "-qam", "second", day=2)
    return root


def test_dates_author_and_commit_of_a_clean_file(repository: Path) -> None:
    ingest = Ingest()
    ingest(repository)
    document = ingest.store.documents["documents:a.md"]  # type: ignore[index]  # a literal id

    assert datetime(2024, 1, 1, 12, tzinfo=UTC) == document.metadata.created_at
    assert datetime(2024, 1, 2, 12, tzinfo=UTC) == document.metadata.updated_at
    assert document.metadata.author == "Ada"
    assert git(repository, "rev-parse", "HEAD") == document.custody.origin.document_version


def test_a_changed_file_keeps_only_what_is_still_true(repository: Path) -> None:
    (repository / "a.md").write_text("three\n")
    ingest = Ingest()
    ingest(repository)
    document = ingest.store.documents["documents:a.md"]  # type: ignore[index]  # a literal id

    assert datetime(2024, 1, 1, 12, tzinfo=UTC) == document.metadata.created_at
    assert (None, None) == (document.metadata.updated_at, document.metadata.author)
    assert document.custody.origin.document_version.startswith("sha256:")


def test_a_commit_alone_makes_a_document_changed(repository: Path) -> None:
    (repository / "a.md").write_text("three\n")
    ingest = Ingest()
    ingest(repository)
    git(repository, "commit", "-qam", "third", day=3)
    report = ingest(repository)

    assert (1, 1) == (report.changed, report.unchanged)


def test_a_directory_below_the_top_and_a_file_by_name_are_known_too(repository: Path) -> None:
    (repository / "sub").mkdir()
    (repository / "sub" / "b.md").write_text("b\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "third", day=3)

    assert {"b.md"} == set(read_history(str(repository / "sub")).files)
    assert {"a.md"} == set(read_history(str(repository), names=["a.md"]).files)
    assert {"a.md", "sub/b.md", "sp ace\u00e9.md"} == set(read_history(str(repository)).files)


def test_outside_a_work_tree_nothing_is_known(tmp_path: Path) -> None:
    assert ({}, "") == (dict(read_history(str(tmp_path)).files), read_history(str(tmp_path)).problem)


def test_where_a_shallow_clone_was_cut_off_nothing_is_claimed(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{repository}", "shallow")

    assert {} == dict(read_history(str(tmp_path / "shallow")).files)


def test_nothing_a_repository_configures_is_run(repository: Path, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    for key in ("core.fsmonitor", "core.pager", "diff.external", "gpg.program", "filter.x.clean", "filter.x.smudge", "diff.x.textconv"):
        git(repository, "config", key, str(trap))
    git(repository, "config", "log.showSignature", "true")
    git(repository, "config", "core.hooksPath", str(tmp_path))
    (repository / ".gitattributes").write_text("*.md filter=x diff=x\n")
    (repository / "a.md").touch()
    report = Ingest()(repository)

    assert report.added == 2
    assert not (tmp_path / "sprung").exists()


def test_git_that_gives_no_answer_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    silent = tmp_path / "git"
    silent.write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    silent.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    history = read_history(str(tmp_path), timeout_s=0)

    assert ({}, "git gave no answer within 0 s; dates and authors are unknown") == (dict(history.files), history.problem)


def test_without_git_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert {} == dict(read_history(str(tmp_path)).files)
