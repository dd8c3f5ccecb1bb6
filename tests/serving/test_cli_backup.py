"""`evidentia backup` and `evidentia restore` as typed: what they print, what they refuse, and with which exit code."""

from __future__ import annotations

import json
import tarfile
from typing import TYPE_CHECKING

import pytest

from evidentia.contracts.backups import BackupProgress
from evidentia.serving.cli.progress import BackupBar

if TYPE_CHECKING:
    from pathlib import Path

    from serving.cli_runs import Run


@pytest.mark.parametrize("name", ["copy", "copy.tar"])
def test_a_backup_restores_to_a_base_that_verifies(run: Run, base: Path, name: str) -> None:
    taken = run("backup", name, "--base", base)
    restored = run("restore", name, "again")
    verified = run("verify", "--base", "again")

    assert (0, 0, 0) == (taken.exit_code, restored.exit_code, verified.exit_code), taken.err + restored.err
    assert taken.out.splitlines()[0].endswith(name)
    assert "note: check it: evidentia verify --base again\n" == restored.err
    assert run("documents", "--base", base).out == run("documents", "--base", "again").out


def test_both_speak_json(run: Run, base: Path) -> None:
    taken = json.loads(run("backup", "copy.tar", "--base", base, "--json").out)
    restored = json.loads(run("restore", "copy.tar", "again", "--json").out)

    for field in ("sequence", "corpus_version", "evidence_state", "files", "bytes", "taken_at"):
        assert taken[field] == restored[field]
    assert "again" == restored["directory"]


def test_quiet_leaves_out_what_is_not_in_the_backup(run: Run, base: Path) -> None:
    (base / "thoughts.txt").write_text("mine")
    loud, quiet = run("backup", "one", "--base", base), run("backup", "two", "--base", base, "-q")

    assert "note: 'thoughts.txt' is not in it: it is no part of a base" in loud.err
    assert "" == quiet.err


def test_bad_input_ends_with_two_and_says_what_to_do(run: Run, base: Path, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("x")
    run("backup", "copy", "--base", base)
    cases = {
        ("backup", "there", "--base", str(base)): "exists already",
        ("backup", "copy.tar.gz", "--base", str(base)): "ends in '.tar'",
        ("backup", "no/where", "--base", str(base)): "make it first",
        ("restore", "copy", "full"): "is not empty",
        ("restore", "nothing", "again"): "there is no backup at 'nothing'",
        ("restore", "there", "again"): "has no manifest.json",
    }
    for arguments, problem in cases.items():
        outcome = run(*arguments)

        assert 2 == outcome.exit_code, arguments
        assert problem in outcome.err
        assert "\nhint: " in outcome.err
    assert not (tmp_path / "again").exists()


def test_a_damaged_backup_ends_with_three_and_names_the_file(run: Run, base: Path, tmp_path: Path) -> None:
    run("backup", "copy", "--base", base)
    (segment,) = (tmp_path / "copy" / "segments").iterdir()
    segment.write_bytes(segment.read_bytes()[:-1] + b"\xff")
    outcome = run("restore", "copy", "again", "--json")

    assert 3 == outcome.exit_code
    assert "backup_damaged" == json.loads(outcome.out)["error"]["code"]
    assert f"segments/{segment.name}" in outcome.err
    assert not (tmp_path / "again").exists()


def test_a_name_in_a_tar_cannot_act_on_the_terminal(run: Run, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "hostile.tar", "w") as tar:
        tar.addfile(tarfile.TarInfo("\x1b[2Jgone"))
    outcome = run("restore", "hostile.tar", "again")

    assert 3 == outcome.exit_code
    assert "\x1b" not in outcome.err


def test_a_base_that_is_missing_ends_with_three(run: Run) -> None:
    assert 3 == run("backup", "copy", "--base", "nowhere").exit_code


def test_the_bar_counts_mebibytes(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[int, int | None, str]] = []
    bar = BackupBar("copying", is_wanted=False)
    monkeypatch.setattr(bar, "move", lambda done, total, *, remark: shown.append((done, total, remark)))
    bar.update(BackupProgress(done_bytes=5 << 20, total_bytes=(9 << 20) + 1, current="a\x1bb"))

    assert [(5, 9, "MiB a\\x1bb")] == shown
