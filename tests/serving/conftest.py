"""A small base that the tests of the command line share, and a way to run a command in this process."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from evidentia.serving.cli import main
from serving.cli_runs import Outcome, Run
from serving.federated_bases import PATIENT, make_archive

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run a command in an empty working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EVIDENTIA_BASE", raising=False)

    def run_command(*arguments: str | Path) -> Outcome:
        capsys.readouterr()
        exit_code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(exit_code, captured.out, captured.err)

    return run_command


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with a base of three documents; tests that change it take `base` instead."""
    directory = tmp_path_factory.mktemp("prepared")
    documents = directory / "docs"
    documents.mkdir()
    (documents / "keys.md").write_text("# Keys\n\nKeys expire after 30 days.\n", encoding="utf-8")
    (documents / "long.md").write_text("".join(f"## Part {n}\n\n{'word ' * 300}\n\n" for n in range(6)), encoding="utf-8")
    (documents / "secret.md").write_text("---\nclassification: confidential\n---\n\n# Secret\n", encoding="utf-8")
    assert main(["--base", str(directory / "base"), "init", "--quiet"]) == 0
    assert main(["--base", str(directory / "base"), "ingest", str(documents), "--quiet"]) == 0
    return directory


@pytest.fixture
def base(prepared: Path, tmp_path: Path) -> Path:
    """Return a copy of the prepared base that a test may damage."""
    shutil.copytree(prepared / "base", tmp_path / "own-base")
    return tmp_path / "own-base"


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a second base; nobody changes its documents."""
    return make_archive(tmp_path_factory.mktemp("second"))


@pytest.fixture
def federated(run: Run, base: Path, archive: Path) -> Path:
    """Return a base of its own that has the second one as a source."""
    added = run("sources", "add", "--id", "archive", "--kind", "base", "--address", archive, *PATIENT, "--base", base)
    assert added.exit_code == 0, added.err
    return base
