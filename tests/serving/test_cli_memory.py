"""Notes from a terminal: who finds them, how they go, and what a mistake says."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import pytest

from serving.federated_bases import IN_TIME, PATIENT, parsed

if TYPE_CHECKING:
    from pathlib import Path

    from serving.cli_runs import Run

HOSTILE = "keys \x1b]0;owned\x07 \x9b31m \u202ereversed"


def texts(run: Run, base: Path, *options: str) -> list[str]:
    return [each["text"] for each in parsed(run("memory", "list", *options, "--base", base, "--json"))]


def test_note_is_written_listed_and_forgotten(run: Run, base: Path) -> None:
    written = run(
        "memory", "add", "keys were rotated", "--agent", "ops", "--session", "s1", "--title", "Monday", "--ttl", "1h", "--base", base
    )
    note_id = written.out.split()[1]
    (note,) = parsed(run("memory", "list", "--base", base, "--json"))
    listed = run("memory", "list", "--base", base).out.splitlines()
    forgotten = run("memory", "forget", note_id, "--base", base)

    assert (0, f"remembered {note_id}\n") == (written.exit_code, written.out)
    assert (note_id, "keys were rotated", "Monday", "ops", "s1", "ephemeral") == tuple(
        note[name] for name in ("note_id", "text", "title", "agent_name", "session", "authority_tier")
    )
    assert ["id", "written", "agent", "session", "authority", "expires", "note"] == listed[0].split()
    assert re.fullmatch(rf"{note_id}  [-\d]+ [:\d]+  ops    s1       ephemeral  [-\d]+ [:\d]+  Monday: keys were rotated", listed[1])
    assert (0, "forgot 1 note\n") == (forgotten.exit_code, forgotten.out)
    assert "no notes\n" == run("memory", "list", "--base", base).out


def test_search_finds_a_note_of_the_same_agent_and_session(run: Run, base: Path) -> None:
    run("memory", "add", "the crane was repaired", "--agent", "ops", "--session", "s1", "--base", base)
    run("memory", "add", "the crane belongs to ops", "--agent", "ops", "--authority", "user", "--base", base)
    for source in ("memory", "memory-user"):
        run("sources", "add", "--id", source, *PATIENT, "--base", base)

    def found(*options: str) -> set[str]:
        answer = parsed(run("search", "crane", *IN_TIME, *options, "--base", base, "--json"))
        return {each["source_id"] for each in answer["fragments"] if "outside" in each["flags"]}

    assert {"memory", "memory-user"} == found("--agent", "ops", "--session", "s1")
    assert {"memory-user"} == found("--agent", "ops", "--session", "s2") == found("--agent", "ops")
    assert set() == found("--agent", "dev", "--session", "s1") == found("--agent", "ops", "--session", "s1", "--as", "alice")
    assert "memory:ops/s1/" in run("search", "crane", *IN_TIME, "--agent", "ops", "--session", "s1", "--base", base).out


def test_notes_belong_to_whoever_wrote_them(run: Run, base: Path) -> None:
    note_id = parsed(run("memory", "add", "mine", "--as", "alice", "--base", base, "--json"))["note_id"]

    theirs = run("memory", "forget", note_id, "--as", "bob", "--base", base)
    nobodys = run("memory", "forget", "0123456789abcdef", "--as", "bob", "--base", base)

    assert (2, nobodys.err.replace("0123456789abcdef", note_id)) == (theirs.exit_code, theirs.err)
    assert ([], ["mine"]) == (texts(run, base, "--as", "bob"), texts(run, base, "--as", "alice"))


def test_session_and_agent_choose_exactly(run: Run, base: Path) -> None:
    for text, options in {
        "a1": ("--agent", "a", "--session", "1"),
        "a2": ("--agent", "a", "--session", "2"),
        "a": ("--agent", "a"),
        "b1": ("--agent", "b", "--session", "1"),
    }.items():
        run("memory", "add", text, *options, "--base", base)

    assert ["a1", "a2", "a", "b1"] == texts(run, base)
    assert ["a1", "b1"] == texts(run, base, "--session", "1")
    assert ["a"] == texts(run, base, "--agent", "a", "--session", "")
    assert {"forgotten": 2} == parsed(run("memory", "forget", "--session", "1", "--base", base, "--json"))
    assert "forgot 2 notes\n" == run("memory", "forget", "--agent", "a", "--base", base).out
    assert "forgot 0 notes\n" == run("memory", "forget", "--agent", "a", "--base", base).out
    assert [] == texts(run, base)


def test_unknown_id_leaves_every_note(run: Run, base: Path) -> None:
    note_id = run("memory", "add", "stays", "--base", base).out.split()[1]

    outcome = run("memory", "forget", note_id, "nothing", "--base", base)

    assert (2, "evidentia: no note 'nothing'") == (outcome.exit_code, outcome.err.splitlines()[0])
    assert ["stays"] == texts(run, base)


def piped(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_note_comes_from_stdin(run: Run, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    piped(monkeypatch, "zwei\nZeilen, süß\n".encode())

    assert "zwei\nZeilen, süß\n" == parsed(run("memory", "add", "-", "--base", base, "--json"))["text"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [(b"\xff", "stdin is not UTF-8"), (b" \n", "a note needs some text"), (b"a" * (1 << 21), "stdin holds more than")],
    ids=["not UTF-8", "blank", "huge"],
)
def test_unusable_stdin_is_refused(run: Run, prepared: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, problem: str) -> None:
    piped(monkeypatch, content)

    outcome = run("memory", "add", "-", "--base", prepared / "base")

    assert (2, True) == (outcome.exit_code, outcome.err.startswith(f"evidentia: field 'text': {problem}"))


MISTAKES = [
    (("add", ""), "field 'text': a note needs some text"),
    (("add", "x", "--ttl", "soon"), "field 'ttl_s': 'soon' is not a span of time"),
    (("add", "x", "--ttl", "0"), "field 'ttl_s': 0 is less than 1"),
    (("add", "x", "--authority", "canonical"), "field 'authority': a note is ephemeral or user, not 'canonical'"),
    (("add", "x", "--authority", "golden"), "field 'authority': 'golden' is not one of ephemeral, user"),
    (("add", "x", "--agent", "\udcff"), "field 'agent': "),
    (("add", "x", "--as", "a=b"), "field 'principal' (--as): "),
    (("forget",), "forget takes either the ids of notes, or --agent and --session"),
    (("forget", "x", "--agent", "a"), "forget takes either the ids of notes, or --agent and --session"),
    (("forget", HOSTILE), "no note 'keys \\x1b]0;owned"),
]


@pytest.mark.parametrize(
    ("arguments", "message"), MISTAKES, ids=[" ".join(case[0]).encode("ascii", "replace").decode() for case in MISTAKES]
)
def test_mistake_names_the_field(run: Run, prepared: Path, arguments: tuple[str, ...], message: str) -> None:
    outcome = run("memory", *arguments, "--base", prepared / "base")

    assert (2, "") == (outcome.exit_code, outcome.out)
    assert outcome.err.startswith(f"evidentia: {message}"), outcome.err
    assert "\nhint: " in outcome.err


def test_hostile_notes_cannot_steer_the_terminal(run: Run, base: Path) -> None:
    run("memory", "add", HOSTILE, "--title", HOSTILE, "--agent", HOSTILE, "--session", HOSTILE, "--base", base)

    for options in ((), ("--json",)):
        out = run("memory", "list", *options, "--base", base).out
        assert not any(character in out for character in "\x1b\x07\x9b\u202e")
    assert "keys \\x1b]0;owned\\x07 \\x9b31m \\u202ereversed" in run("memory", "list", "--base", base).out
    shown = run("search", "keys reversed", *IN_TIME, "--agent", HOSTILE, "--session", HOSTILE, "--base", base)
    assert not any(character in shown.out + shown.err for character in "\x1b\x07\x9b\u202e")


def test_long_note_is_a_line_of_the_table(run: Run, base: Path) -> None:
    run("memory", "add", "word\n" * 500, "--base", base)

    out = run("memory", "list", "--base", base).out
    assert (2, True) == (len(out.splitlines()), out.endswith("…\n"))
