"""Every mistake has its exit code, one line that says what happened, one that says what to do, and no stack trace."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from serving.cli_runs import Run


def exported(run: Run, base: Path) -> dict[str, Any]:  # JSON
    shown = json.loads(run("show", "documents:keys.md", "--base", base, "--json").out)
    fragment: dict[str, Any] = json.loads(run("export", shown["chunks"][0]["chunk_id"], "--base", base).out)
    return fragment


MISTAKES = [
    (("documents",), 3, "there is no base at '.evidentia'", "run `evidentia init`, or pass --base or EVIDENTIA_BASE"),
    (("ingest", "."), 3, "there is no base at '.evidentia'", "run `evidentia init`, or pass --base or EVIDENTIA_BASE"),
    (("verify",), 3, "there is no base at '.evidentia'", "run `evidentia init`, or pass --base or EVIDENTIA_BASE"),
    (("search",), 2, "missing argument 'QUERY'", "see `evidentia search --help`"),
    (("search", "words"), 3, "there is no base at '.evidentia'", "run `evidentia init`, or pass --base or EVIDENTIA_BASE"),
    (("find",), 2, "no such command 'find'", "see `evidentia --help`"),
    (("demos",), 2, "no such command 'demos'. Did you mean 'demo'?", "see `evidentia --help`"),
    (("ingest",), 2, "missing argument 'PATH...'", "see `evidentia ingest --help`"),
    (("gc", "--keep", "many"), 2, "invalid value for '--keep'", "see `evidentia gc --help`"),
    (("documents", "--colour"), 2, "no such option: --colour", "see `evidentia documents --help`"),
    (("export",), 2, "export takes either a chunk id or --document", "`evidentia show DOC_ID` lists the chunk ids of a document"),
    (("export", "--document", "d:x"), 2, "export --document needs a directory", "pass -o DIR"),
    (
        ("verify", "absent.json"),
        2,
        "'absent.json' cannot be read: no such file or directory",
        "name an exported file, or an id in the base",
    ),
]


@pytest.mark.parametrize(("arguments", "exit_code", "message", "hint"), MISTAKES, ids=[" ".join(case[0]) for case in MISTAKES])
def test_mistake_is_told_in_two_lines(run: Run, arguments: tuple[str, ...], exit_code: int, message: str, hint: str) -> None:
    outcome = run(*arguments)

    assert exit_code == outcome.exit_code
    first, second = outcome.err.splitlines()
    assert first.startswith(f"evidentia: {message}")
    assert f"hint: {hint}" == second
    assert outcome.out == ""


def test_mistakes_inside_a_base(run: Run, base: Path, tmp_path: Path) -> None:
    (tmp_path / "taken.json").touch()
    chunk_id = exported(run, base)["chunk_id"]
    cases = (
        (("init", base), f"there is a base at '{base}' already"),
        (("ingest", "nowhere"), "there is no file or directory 'nowhere'"),
        (("ingest", ".", "--authority", "golden"), "'golden' is not one of ephemeral, user, derived, curated, canonical"),
        (("ingest", ".", "--classification", "odd"), "'odd' is not one of public, internal, confidential, restricted"),
        (("ingest", ".", "--acl", "bob"), "'bob' is not of the form user:name, group:name or role:name"),
        (("show", "documents:none.md"), "no document 'documents:none.md'"),
        (("verify", "documents:none.md"), "no document or chunk 'documents:none.md'"),
        (("export", "documents:keys.md#0@0000000000000000"), "no chunk 'documents:keys.md#0@0000000000000000'"),
        (("export", chunk_id, "-o", "taken.json"), "'taken.json' exists already"),
        (("export", chunk_id, "-o", "no/such/dir.json"), "'no/such/dir.json' cannot be written: no such file or directory"),
        (("export", "--document", "documents:keys.md", "-o", "taken.json"), "'taken.json' cannot be a directory: file exists"),
        (("gc", "--keep", "0"), "0 is less than 1"),
    )
    for arguments, message in cases:
        outcome = run(*arguments, "--base", base)
        assert (2, True) == (outcome.exit_code, message in outcome.err), (arguments, outcome)
        assert outcome.err.startswith("evidentia: ")
        assert "\nhint: " in outcome.err
        assert "Traceback" not in outcome.err


def test_force_overwrites_an_export(run: Run, base: Path, tmp_path: Path) -> None:
    (tmp_path / "taken.json").touch()

    assert run("export", exported(run, base)["chunk_id"], "-o", "taken.json", "--force", "--base", base).exit_code == 0
    assert run("verify", "taken.json").exit_code == 0


def test_no_command_prints_help_on_stderr(run: Run) -> None:
    outcome = run()

    assert (2, "") == (outcome.exit_code, outcome.out)
    assert "Usage: evidentia" in outcome.err


@pytest.mark.parametrize("arguments", [("documents", "--json"), ("--json", "documents"), ("ingest", "--json")])
def test_with_json_the_error_is_on_stdout_too(run: Run, arguments: tuple[str, ...]) -> None:
    outcome = run(*arguments)

    error = json.loads(outcome.out)["error"]
    assert {"code", "message", "hint"} == set(error)
    assert error["message"] in outcome.err


def test_doctor_exits_3_when_the_base_is_missing_and_1_when_something_else_is_wrong(
    run: Run, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = run("doctor", "--json")
    monkeypatch.setattr("sqlite3.sqlite_version_info", (3, 1, 0))
    old_library = run("doctor", "--base", base)

    assert (3, False) == (missing.exit_code, json.loads(missing.out)["ok"])
    assert 1 == old_library.exit_code
    assert "sqlite     NOT OK" in old_library.out or "sqlite    NOT OK" in old_library.out


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"{", "it is not JSON"),
        (b"", "it is not JSON"),
        (b"\xff\xfe", "it is not JSON"),
        (b"[" * 100_000, "it is not"),
        (b"[]", "it is not an exported fragment"),
        (b'{"format": 1}', "it is not an exported fragment"),
        (b"\x1b[31mred", "it is not JSON"),
    ],
    ids=["open brace", "empty", "not utf-8", "deep", "list", "wrong type", "escape"],
)
def test_malformed_export_is_named_with_its_problem(run: Run, tmp_path: Path, content: bytes, problem: str) -> None:
    (tmp_path / "bad.json").write_bytes(content)

    outcome = run("verify", "bad.json")

    assert 2 == outcome.exit_code
    assert f"evidentia: 'bad.json' cannot be verified: {problem}" in outcome.err
    assert "\x1b" not in outcome.err


def test_export_with_something_unproved_in_it_is_refused(run: Run, prepared: Path, tmp_path: Path) -> None:
    fragment = exported(run, prepared / "base")
    cases = {
        "$.approved_by": {**fragment, "approved_by": "the board"},
        "$.event.note": {**fragment, "event": {**fragment["event"], "note": "x"}},
        "$.provenance_chain[0].record.extra": {
            **fragment,
            "provenance_chain": [
                {**fragment["provenance_chain"][0], "record": {**fragment["provenance_chain"][0]["record"], "extra": 1}},
                *fragment["provenance_chain"][1:],
            ],
        },
    }
    for place, content in cases.items():
        (tmp_path / "more.json").write_text(json.dumps(content), encoding="utf-8")
        assert f"there is something else at `{place}`" in run("verify", "more.json").err


def test_export_that_names_a_field_twice_is_refused(run: Run, prepared: Path, tmp_path: Path) -> None:
    text = json.dumps(exported(run, prepared / "base"))
    (tmp_path / "twice.json").write_text('{"content": "Keys never expire.", ' + text[1:], encoding="utf-8")

    outcome = run("verify", "twice.json")

    assert 2 == outcome.exit_code
    assert "the name 'content' is there twice in one object" in outcome.err


@pytest.mark.parametrize("number", [-1, 2**63, 2**64, 10**400], ids=["negative", "signed", "unsigned", "huge"])
def test_impossible_numbers_in_an_export_never_crash_verify(run: Run, prepared: Path, tmp_path: Path, number: int) -> None:
    fragment = exported(run, prepared / "base")
    for part, field in (("event", "index"), ("inclusion", "leaf_index"), ("inclusion", "tree_size"), ("commit", "log_size")):
        (tmp_path / "odd.json").write_text(json.dumps({**fragment, part: {**fragment[part], field: number}}), encoding="utf-8")
        assert run("verify", "odd.json").exit_code in {1, 2}


def test_changed_export_fails_and_names_the_first_broken_link(run: Run, prepared: Path, tmp_path: Path) -> None:
    fragment = exported(run, prepared / "base")
    fragment["content"] = fragment["content"].replace("30", "90")
    (tmp_path / "changed.json").write_text(json.dumps(fragment), encoding="utf-8")

    outcome = run("verify", "changed.json")

    assert 1 == outcome.exit_code
    assert "BROKEN" in outcome.out
    assert "  check    identity\n  where    fragment 'documents:keys.md#0@" in outcome.out


def test_changed_byte_in_a_segment_fails_verify(run: Run, base: Path) -> None:
    segment = next((base / "segments").glob("*.seg"))
    stored = bytearray(segment.read_bytes())
    stored[len(stored) // 2] ^= 1
    segment.write_bytes(stored)

    outcome = run("verify", "--base", base, "--json")

    assert 1 == outcome.exit_code
    assert "segment" == json.loads(outcome.out)["broken"][0]["check"]


def test_base_that_cannot_be_opened_exits_3(run: Run, base: Path) -> None:
    (base / "evidentia.sqlite").write_bytes(b"this is not a database" * 1000)

    for arguments in (("verify",), ("documents",), ("init", base)):
        outcome = run(*arguments, "--base", base)
        assert 3 == outcome.exit_code
        assert outcome.err.startswith("evidentia: evidentia.sqlite: ")


def test_record_that_cannot_be_decoded_means_a_damaged_base(run: Run, base: Path) -> None:
    stored = (base / "evidentia.sqlite").read_bytes()
    (base / "evidentia.sqlite").write_bytes(stored.replace(b'"media_type"', b'"media_typ",'))

    outcome = run("show", "documents:keys.md", "--base", base)

    assert 3 == outcome.exit_code
    assert "a record cannot be read" in outcome.err


def test_wrong_setting_is_named(run: Run, base: Path) -> None:
    (base / "evidentia.toml").write_text("[ingest]\nchunk_charz = 1\n", encoding="utf-8")

    outcome = run("documents", "--base", base)

    assert 2 == outcome.exit_code
    assert "ingest.chunk_charz" in outcome.err


def test_file_where_the_base_should_be(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    assert 2 == run("init", "file").exit_code
    assert 3 == run("documents", "--base", "file").exit_code
    assert 2 == run("init", "file/below").exit_code
