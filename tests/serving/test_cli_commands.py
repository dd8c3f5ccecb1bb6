"""What each command does when all is well: text, JSON shapes and exit code 0."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evidentia.serving.cli.invocation import Invocation

if TYPE_CHECKING:
    from serving.cli_runs import Outcome, Run


def parsed(outcome: Outcome) -> Any:  # JSON
    assert outcome.exit_code == 0, outcome.err
    return json.loads(outcome.out)


def first_chunk(run: Run, base: Path, document: str = "documents:keys.md") -> str:
    return str(parsed(run("show", document, "--base", base, "--json"))["chunks"][0]["chunk_id"])


def test_init_makes_a_base_with_a_commented_settings_file(run: Run, tmp_path: Path) -> None:
    outcome = run("init", "fresh")

    assert outcome.exit_code == 0
    assert outcome.out == "made a base at 'fresh'\n"
    assert "# chunk_chars = 2000" in (tmp_path / "fresh" / "evidentia.toml").read_text(encoding="utf-8")


def test_init_without_a_directory_uses_the_default_base(run: Run, tmp_path: Path) -> None:
    assert {"base", "corpus_version", "sequence"} == set(parsed(run("init", "--json")))
    assert (tmp_path / ".evidentia").is_dir()


@pytest.mark.parametrize("place", ["before", "after", "environment"])
def test_base_is_found_wherever_it_is_named(run: Run, prepared: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    base = prepared / "base"
    if place == "environment":
        monkeypatch.setenv("EVIDENTIA_BASE", str(base))
    arguments: dict[str, tuple[str | Path, ...]] = {
        "before": ("--base", base, "documents"),
        "after": ("documents", "--base", base),
        "environment": ("documents",),
    }

    assert run(*arguments[place]).exit_code == 0


def test_base_before_the_command_wins_over_the_environment(run: Run, prepared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVIDENTIA_BASE", "nowhere")

    assert run("--base", prepared / "base", "documents").exit_code == 0


def test_base_after_the_command_wins_over_the_one_before(run: Run, prepared: Path) -> None:
    assert run("--base", "nowhere", "documents", "--base", prepared / "base").exit_code == 0


def test_ingest_prints_counts_and_what_was_skipped(run: Run, base: Path, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "good.md").write_text("# Good\n", encoding="utf-8")
    (tmp_path / "more" / "empty.md").touch()

    outcome = run("ingest", "more", "--source", "more", "--base", base)

    assert outcome.exit_code == 0
    facts = dict(line.rsplit(maxsplit=1) for line in outcome.out.splitlines()[:8])
    assert {"added": "1", "unchanged": "0", "skipped": "1", "chunks": "1"}.items() <= facts.items()
    assert 64 == len(facts["corpus_version"])
    assert "empty.md" in outcome.out
    assert outcome.err == "note: 1 input was skipped; everything else is in\n"


def test_ingest_json_has_the_whole_report(run: Run, base: Path, tmp_path: Path) -> None:
    (tmp_path / "many").mkdir()
    for number in range(30):
        (tmp_path / "many" / f"empty-{number}.md").touch()

    report = parsed(run("ingest", "many", "--base", base, "--json"))

    assert 30 == report["seen"] == len(report["skipped"])
    assert {"path", "reason", "message"} == set(report["skipped"][0])
    assert 64 == len(report["corpus_version"])
    assert "... and 10 more; --json lists all" in run("ingest", "many", "--base", base).out


def test_ingesting_the_same_again_finds_everything_unchanged(run: Run, base: Path, prepared: Path) -> None:
    report = parsed(run("ingest", prepared / "docs", "--base", base, "--json"))

    assert (0, 0, 3) == (report["added"], report["changed"], report["unchanged"])
    assert 64 == len(report["corpus_version"])


def test_ingest_passes_on_access_and_tags(run: Run, base: Path, tmp_path: Path) -> None:
    (tmp_path / "note.md").write_text("# Note\n", encoding="utf-8")
    options = ("--source", "s", "--authority", "user", "--classification", "restricted", "--tenant", "t", "--acl", "group:a", "--tag", "x")
    run("ingest", "note.md", "--base", base, *options)

    shown = parsed(run("show", "s:note.md", "--base", base, "--json"))

    assert {"tenant": "t", "classification": "restricted", "acl": ["group:a"]} == shown["access"]
    assert ("user", ["x"]) == (shown["metadata"]["authority_tier"], shown["metadata"]["tags"])


def test_prune_removes_what_is_gone(run: Run, base: Path, tmp_path: Path) -> None:
    (tmp_path / "some").mkdir()
    for name in ("a.md", "b.md"):
        (tmp_path / "some" / name).write_text(f"# {name}\n", encoding="utf-8")
    run("ingest", "some", "--source", "some", "--base", base)
    (tmp_path / "some" / "b.md").unlink()

    assert 1 == parsed(run("ingest", "some", "--source", "some", "--prune", "--base", base, "--json"))["removed"]


def test_documents_are_listed_page_by_page(run: Run, prepared: Path) -> None:
    first = run("documents", "--base", prepared / "base", "--limit", "2")
    rest = run("documents", "--base", prepared / "base", "--after", "documents:long.md", "--limit", "2")
    none = run("documents", "--base", prepared / "base", "--after", "documents:secret.md")
    wrong = run("documents", "--base", prepared / "base", "--limit", "0")

    assert ["documents:keys.md", "documents:long.md"] == [line.split()[0] for line in first.out.splitlines()[1:]]
    assert "evidentia documents --limit 2 --after documents:long.md" in first.err
    assert ["documents:secret.md"] == [line.split()[0] for line in rest.out.splitlines()[1:]]
    assert "" == rest.err
    assert "there is no document after 'documents:secret.md'" in none.err
    assert (2, True) == (wrong.exit_code, "limit" in wrong.err)


def test_documents_lists_every_document_with_its_access(run: Run, prepared: Path) -> None:
    listed = parsed(run("documents", "--base", prepared / "base", "--json"))

    assert ["documents:keys.md", "documents:long.md", "documents:secret.md"] == [each["document_id"] for each in listed]
    assert {"document_id", "tenant", "classification", "acl", "chunks"} == set(listed[0])
    assert "confidential" == listed[2]["classification"]
    assert "documents:secret.md  confidential" in run("documents", "--base", prepared / "base").out


def test_show_gives_chunks_whose_offsets_are_those_of_the_document(run: Run, prepared: Path) -> None:
    shown = parsed(run("show", "documents:long.md", "--base", prepared / "base", "--json"))

    text = (prepared / "docs" / "long.md").read_text(encoding="utf-8")
    assert len(shown["chunks"]) > 1
    assert all(text[chunk["start"] : chunk["end"]] == chunk["content"] for chunk in shown["chunks"])


def test_verify_whole_base_document_chunk_and_file(run: Run, prepared: Path, tmp_path: Path) -> None:
    base = prepared / "base"
    chunk_id = first_chunk(run, base)
    run("export", chunk_id, "-o", "fragment.json", "--base", base)

    for target in ((), ("documents:keys.md",), (chunk_id,), (tmp_path / "fragment.json",)):
        outcome = run("verify", *target, "--base", base)
        assert outcome.exit_code == 0
        assert ": ok\nchecked " in outcome.out


def test_exported_file_is_verified_without_any_base(run: Run, prepared: Path) -> None:
    run("export", first_chunk(run, prepared / "base"), "-o", "fragment.json", "--base", prepared / "base")

    report = parsed(run("verify", "fragment.json", "--json"))

    assert report["ok"] is True
    assert (1, []) == (report["fragments"], report["broken"])


def test_export_is_the_same_bytes_every_time_and_on_stdout(run: Run, prepared: Path, tmp_path: Path) -> None:
    base, chunk_id = prepared / "base", first_chunk(run, prepared / "base")
    run("export", chunk_id, "-o", "one.json", "--base", base)

    outcome = run("export", chunk_id, "--base", base)

    assert (tmp_path / "one.json").read_text(encoding="utf-8") == outcome.out
    assert "evidentia-fragment/1" == json.loads(outcome.out)["format"]


def test_export_of_a_document_writes_a_file_for_each_chunk(run: Run, prepared: Path) -> None:
    written = parsed(run("export", "--document", "documents:long.md", "-o", "out", "--base", prepared / "base", "--json"))["written"]

    assert len(written) > 1
    assert all(run("verify", file).exit_code == 0 for file in written)


def test_gc_reports_what_it_removed(run: Run, base: Path) -> None:
    report = parsed(run("gc", "--keep", "1", "--base", base, "--json"))

    assert {"versions_removed", "chunks_removed", "segments_removed", "bytes_before", "bytes_after"} == set(report)
    assert "bytes after" in run("gc", "--base", base).out
    assert run("verify", "--base", base).exit_code == 0


def test_doctor_finds_nothing_wrong_with_a_good_base(run: Run, prepared: Path) -> None:
    report = parsed(run("doctor", "--base", prepared / "base", "--json"))

    assert report["ok"] is True
    assert {"python", "sqlite", "readers", "base"} <= {finding["check"] for finding in report["findings"]}


def test_version_and_help_are_data(run: Run) -> None:
    assert run("--version").out.startswith("evidentia ")
    assert "Usage: evidentia" in run("--help").out
    assert run("ingest", "-h").exit_code == 0


def test_quiet_leaves_out_notes_and_keeps_data(run: Run, base: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.md").touch()

    for outcome in (run("--quiet", "--base", base, "ingest", "empty.md"), run("ingest", "empty.md", "-q", "--base", base)):
        assert outcome.err == ""
        assert "skipped         1" in outcome.out


def test_json_may_stand_before_the_command(run: Run, prepared: Path) -> None:
    assert 3 == len(parsed(run("--json", "--base", prepared / "base", "documents")))


def test_empty_environment_variable_counts_as_none() -> None:
    assert Path(".evidentia") == Invocation.from_globals(base="", quiet=False, json=False).base
