"""Traces linted from a terminal: formats, exit codes, profiles of one's own, and mistakes that are named with file, line and field."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from serving.cli_runs import Run

RESULT = "\n".join(
    (
        "RAG_KNOWLEDGE BEGIN",
        '### [1] file="handbook:keys.md" filename="keys.md" page=0',
        "Signing keys are rotated with the vault after 30 days.",
        "RAG_KNOWLEDGE END",
    )
)
CLEAN: dict[str, Any] = {
    "name": "rotation",
    "question": "How do I rotate the signing keys?",
    "calls": [{"name": "rag_retrieve", "arguments": {"query": "signing key rotation steps", "top_k": 50}, "result": RESULT}],
    "reply": 'Signing keys are rotated with the vault after 30 days.\n<CITATION file="handbook:keys.md" filename="keys.md" page=0 />',
}
BROKEN: dict[str, Any] = {**CLEAN, "name": "files", "calls": [{"name": "Bash", "arguments": {"command": "cat keys.md"}}, *CLEAN["calls"]]}


@pytest.mark.parametrize("name", ["t.json", "list.json", "traces.json", "t.jsonl", "lines", "t.yaml"])
def test_traces_are_read_from_any_of_the_formats(run: Run, tmp_path: Path, name: str) -> None:
    text = {
        "t.json": json.dumps(CLEAN, indent=2),
        "list.json": json.dumps([CLEAN]),
        "traces.json": json.dumps({"traces": [CLEAN]}),
        "t.jsonl": json.dumps(CLEAN) + "\n\n",
        "lines": f"{json.dumps(CLEAN)}\n{json.dumps(CLEAN)}\n",
        "t.yaml": json.dumps(CLEAN),
    }[name]
    (tmp_path / name).write_text(text, encoding="utf-8")
    done = run("policy", "lint-trace", tmp_path / name)
    number = 2 if name == "lines" else 1

    assert (0, f"{number} traces, {number} clean, 0 findings\n") == (done.exit_code, done.out)


def test_finding_is_a_row_with_rule_section_place_and_reason(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    file.write_text(f"{json.dumps(CLEAN)}\n{json.dumps(BROKEN)}\n", encoding="utf-8")
    done = run("policy", "lint-trace", file)
    row = done.out.splitlines()[1]

    assert 1 == done.exit_code
    assert ["files", "filesystem_tools", "first_call.1", "call", "1", "Bash", "(cat)"] == row.split()[:7]
    assert "2 traces, 1 clean, 1 findings" == done.out.splitlines()[-1]


def test_json_has_every_trace_with_its_findings(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    file.write_text(f"{json.dumps(CLEAN)}\n{json.dumps(BROKEN)}\n", encoding="utf-8")
    done = run("policy", "lint-trace", file, "--json")
    clean, broken = json.loads(done.out)

    assert (1, True, "line 2", False) == (done.exit_code, clean["ok"], broken["place"], broken["ok"])
    assert [("filesystem_tools", "first_call.1", 1)] == [(each["rule"], each["section"], each["call"]) for each in broken["findings"]]


def test_profile_by_name_and_from_a_file(run: Run, tmp_path: Path) -> None:
    file, own = tmp_path / "t.json", tmp_path / "own.yaml"
    file.write_text(json.dumps(BROKEN), encoding="utf-8")
    own.write_text("based_on: first_call\nname: lenient\nsections: {filesystem_tools: null, allowed_tools: null}\n", encoding="utf-8")

    assert [1, 0] == [run("policy", "lint-trace", file, "--profile", profile).exit_code for profile in ("first_call", str(own))]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.jsonl", json.dumps(CLEAN) + '\n{"question": 5}\n', ("a.jsonl', line 2", "field 'question'")),
        ("a.jsonl", '{"question": "q", "calls": [{"name": "a", "start": 2, "end": 1}]}', ("line 1", "calls[0].end")),
        ("a.json", '{"question": "q",\n "calls": [{"tool_name": 1}]}', ("trace 1", "field 'calls[0]'", "tool_name")),
        ("a.json", '{"question": "q",\n "calls": ]', ("a.json', line 2", "not JSON")),
        ("a.yaml", "- question: q\n  profile: thorogh\n", ("trace 1", "thorough")),
        ("a.yaml", "question: [", ("a.yaml", "not YAML")),
    ],
)
def test_bad_trace_is_named_with_file_line_and_field(run: Run, tmp_path: Path, name: str, text: str, words: tuple[str, ...]) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    done = run("policy", "lint-trace", tmp_path / name)

    assert 2 == done.exit_code
    assert all(word in done.err for word in words), done.err


def test_missing_file_and_unknown_profile_are_mistakes(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    file.write_text(json.dumps(CLEAN), encoding="utf-8")
    own = tmp_path / "own.yaml"
    own.write_text("based_on: first_call\nname: x\ncall_cap: many\n", encoding="utf-8")

    assert 2 == run("policy", "lint-trace", tmp_path / "none.json").exit_code
    assert "did you mean 'thorough'" in run("policy", "lint-trace", file, "--profile", "thorogh").err
    refused = run("policy", "lint-trace", file, "--profile", own)
    assert (2, True) == (refused.exit_code, "own.yaml" in refused.err and "call_cap" in refused.err)


def test_traces_come_from_stdin(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(CLEAN).encode())))

    assert 0 == run("policy", "lint-trace", "-").exit_code


def test_hostile_names_reach_no_terminal(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    hostile = {**BROKEN, "name": "\x1b[2Jx", "calls": [{"name": "Ba\x1b]0;sh", "arguments": {}}, *CLEAN["calls"]]}
    file.write_text(json.dumps(hostile), encoding="utf-8")
    for options in ((), ("--json",)):
        done = run("policy", "lint-trace", file, *options)

        assert 1 == done.exit_code
        assert "\x1b" not in done.out + done.err


def test_a_profile_is_printed_as_a_prompt(run: Run) -> None:
    lines = run("policy", "prompt", "--profile", "thorough", "--skill", "crm_search").out.splitlines()
    told = json.loads(run("policy", "prompt", "--profile", "thorough", "--skill", "crm_search", "--json").out)

    assert "thorough" == told["profile"]
    assert lines == told["text"].splitlines()
    assert any("crm_search" in line for line in lines)


def test_a_profile_that_is_not_there_is_a_mistake(run: Run) -> None:
    done = run("policy", "prompt", "--profile", "nope")

    assert 2 == done.exit_code
    assert "there is no profile 'nope'" in done.err
