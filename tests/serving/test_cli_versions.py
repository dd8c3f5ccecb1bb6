"""`evidentia versions` as typed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from serving.cli_runs import Run


def test_versions_are_a_table_and_json(run: Run, prepared: Path) -> None:
    base = prepared / "base"
    table, listed = run("versions", "--base", base), json.loads(run("versions", "--base", base, "--limit", "2", "--json").out)

    assert ["version", "at", "documents", "chunks", "corpus_version", "evidence_state", "state"] == table.out.splitlines()[0].split()
    assert 2 == len(listed)
    assert listed[0]["corpus_version"][:16] in table.out.splitlines()[1]
    assert 3 == listed[0]["documents"]


def test_a_difference_is_counted_and_listed(run: Run, prepared: Path) -> None:
    base = prepared / "base"
    newest = json.loads(run("versions", "--base", base, "--json").out)[0]["sequence"]
    text = run("versions", "--diff", "0", newest, "--base", base)
    cut = run("versions", "--diff", "0", newest, "--base", base, "--limit", "1")

    assert 0 == text.exit_code, text.err
    assert "added             3" in text.out
    assert "added   documents  documents:keys.md" in text.out
    assert "note: only the first 1 documents of each kind are listed" in cut.err
    assert 3 == json.loads(run("versions", "--diff", "0", newest, "--base", base, "--json").out)["added"]["total"]


def test_a_caller_is_told_of_what_it_may_see(run: Run, prepared: Path) -> None:
    base = prepared / "base"
    newest = json.loads(run("versions", "--base", base, "--json").out)[0]["sequence"]
    hers = run("versions", "--diff", "0", newest, "--base", base, "--as", "ann clearance=internal")

    assert "documents:secret.md" not in hers.out
    assert "added             2" in hers.out


def test_a_version_that_is_not_there_ends_with_two(run: Run, prepared: Path) -> None:
    outcome = run("versions", "--diff", "0", "\x1b[2J", "--base", prepared / "base")

    assert 2 == outcome.exit_code
    assert "\x1b" not in outcome.err
