"""A base with another base as a source, for the tests of the commands that deal with sources."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from evidentia.serving.cli import main

if TYPE_CHECKING:
    from pathlib import Path

    from serving.cli_runs import Outcome

PATIENT = ("--expected-p99-ms", "20000")
"""What is asked on a busy machine is waited for."""
IN_TIME = ("--deadline-ms", "60000")


def make_archive(directory: Path) -> Path:
    """Return a base of one document about keys."""
    documents = directory / "old"
    documents.mkdir()
    (documents / "archive.md").write_text("# Archive\n\nKeys of the archive expire after ten years.\n", encoding="utf-8")
    archive = directory / "archive"
    assert main(["--base", str(archive), "--quiet", "init"]) == 0
    assert main(["--base", str(archive), "--quiet", "ingest", str(documents), "--source", "old"]) == 0
    return archive


def parsed(outcome: Outcome) -> Any:  # JSON
    """Return what a command printed as JSON."""
    return json.loads(outcome.out)
