"""Policies from a terminal: putting them in force, looking at them, and changing one field."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from serving.cli_runs import Outcome, Run

GUARD: dict[str, Any] = {
    "name": "RAG Guard",
    "category": "retrieval",
    "rules": {"min_relevance_score": 0.75, "allowed_collections": ["kb"]},
    "scope": {"agents": ["rag-*"]},
}


@pytest.fixture
def guard(tmp_path: Path) -> Path:
    path = tmp_path / "guard.json"
    path.write_text(json.dumps(GUARD), encoding="utf-8")
    return path


def parsed(outcome: Outcome) -> Any:
    return json.loads(outcome.out)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.json", json.dumps(GUARD)),
        ("p.yaml", "name: RAG Guard\ncategory: retrieval\nrules: {min_relevance_score: 0.75}\n"),
        ("p.toml", 'name = "RAG Guard"\ncategory = "retrieval"\n[rules]\nmin_relevance_score = 0.75\n'),
        ("list.yml", "policies:\n- {name: RAG Guard, category: retrieval}\n"),
        ("p", json.dumps([GUARD])),
    ],
)
def test_policy_is_added_from_any_of_the_formats(run: Run, base: Path, tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    added = run("policy", "add", tmp_path / name, "--base", base)

    assert (0, ["name       change   version", "RAG Guard  created        1"]) == (added.exit_code, added.out.splitlines())


def test_policy_is_read_from_stdin_and_becomes_a_version(run: Run, base: Path, guard: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("policy", "add", guard, "--base", base)
    again = run("policy", "add", guard, "--base", base, "--json")
    changed = {**GUARD, "priority": 5}
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(changed).encode())))
    dry = run("policy", "add", "-", "--dry-run", "--base", base, "--json")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(changed).encode())))
    third = run("policy", "add", "-", "--base", base, "--json")

    assert ["unchanged", "updated", "updated"] == [parsed(each)[0]["action"] for each in (again, dry, third)]
    assert 2 == parsed(run("policy", "show", "RAG Guard", "--base", base, "--json"))["policy"]["version"]
    assert 100 == parsed(run("policy", "show", "RAG Guard", "--version", "1", "--base", base, "--json"))["policy"]["body"]["priority"]


def test_list_shows_policies_in_the_order_in_which_they_are_asked(run: Run, base: Path, tmp_path: Path) -> None:
    none = run("policy", "list", "--base", base)
    bodies = [GUARD, {"name": "First", "category": "grounding", "priority": 1, "enforcement": "shadow"}]
    (tmp_path / "p.json").write_text(json.dumps(bodies), encoding="utf-8")
    run("policy", "add", tmp_path / "p.json", "--base", base)
    listed = run("policy", "list", "--base", base)
    header, first, second = listed.out.splitlines()

    assert "policy add FILE" in none.err
    assert ["priority", "name", "category", "state", "version", "changed", "scope"] == header.split()
    assert first.split()[:4] == ["1", "First", "grounding", "shadow"]
    assert second.endswith("agents rag-*")
    assert ["First", "RAG Guard"] == [each["policy"]["body"]["name"] for each in parsed(run("policy", "list", "--base", base, "--json"))]


def test_show_prints_every_rule_beside_its_default(run: Run, base: Path, guard: Path) -> None:
    run("policy", "add", guard, "--base", base)
    shown = run("policy", "show", "RAG Guard", "--base", base).out

    assert "min_relevance_score        0.75    0.7" in shown
    assert 'allowed_collections        ["kb"]  []' in shown
    assert "max_chunks                 10\n" in shown


def test_removed_policy_is_gone_and_its_versions_stay(run: Run, base: Path, guard: Path) -> None:
    run("policy", "add", guard, "--base", base)
    removed = run("policy", "remove", "RAG Guard", "--base", base)
    missing = run("policy", "show", "RAG Guard", "--base", base)

    assert "removed RAG Guard, version 1\n" == removed.out
    assert (2, True) == (missing.exit_code, "no policy 'RAG Guard'" in missing.err)
    assert 0 == run("policy", "show", "RAG Guard", "--version", "1", "--base", base).exit_code


def test_patch_changes_what_it_names_and_null_restores_a_default(run: Run, base: Path, guard: Path) -> None:
    run("policy", "add", guard, "--base", base)
    patched = run("policy", "patch", "RAG Guard", '{"rules": {"min_relevance_score": null, "max_chunks": 4}}', "--base", base)
    rules = parsed(run("policy", "show", "RAG Guard", "--base", base, "--json"))["policy"]["body"]["rules"]

    assert "RAG Guard: version 2\n" == patched.out
    assert (0.7, 4, ["kb"]) == (rules["min_relevance_score"], rules["max_chunks"], rules["allowed_collections"])


@pytest.mark.parametrize(
    ("patch", "problem"),
    [
        ("[]", "the patch is not an object"),
        ("{", "the patch is not JSON"),
        ('{"rules": {"max_chunk": 1}}', "did you mean 'max_chunks'?"),
        ('{"name": "Other"}', "a policy keeps its name"),
    ],
)
def test_bad_patch_is_refused_and_changes_nothing(run: Run, base: Path, guard: Path, patch: str, problem: str) -> None:
    run("policy", "add", guard, "--base", base)
    refused = run("policy", "patch", "RAG Guard", patch, "--base", base)

    assert (2, True) == (refused.exit_code, problem in refused.err)
    assert 1 == parsed(run("policy", "show", "RAG Guard", "--base", base, "--json"))["policy"]["version"]


def test_validate_prints_every_problem_without_a_base(run: Run, tmp_path: Path) -> None:
    bad = {"name": "", "category": "retrieval", "rules": {"min_chunk": 1, "max_chunks": 0}, "scope": {"agent": ["a"]}}
    (tmp_path / "bad.json").write_text(json.dumps([GUARD, bad]), encoding="utf-8")
    refused = run("policy", "validate", tmp_path / "bad.json")
    as_json = run("policy", "validate", tmp_path / "bad.json", "--json")
    (tmp_path / "good.json").write_text(json.dumps(GUARD), encoding="utf-8")
    fine = run("policy", "validate", tmp_path / "good.json")

    assert (2, 4) == (refused.exit_code, len(refused.out.splitlines()))
    assert all(line.startswith("policy 2, field '") for line in refused.out.splitlines())
    assert {"name", "rules.min_chunk", "rules.max_chunks", "scope.agent"} == {each["path"] for each in parsed(as_json)["problems"]}
    assert (0, "1 policy is valid\n") == (fine.exit_code, fine.out)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [1\nb: }", "line 2, column 2"),
        ("name: a\nname: b\n", "the key 'name' is there twice"),
        ("a: &a [*a]", "an alias holds itself"),
        (
            "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
            + "".join(f"{c}: &{c} [{', '.join([f'*{p}'] * 10)}]\n" for p, c in zip("abcde", "bcdef", strict=True)),
            "more than",
        ),
        ("- " * 2_000 + "x", "cannot be read"),
        ('{"name": "a", "name": "b"}', "there twice"),
        ('{"rules": {"min_relevance_score": NaN}}', "NaN is not a number"),
        ("!!python/object/apply:os.system ['true']", "could not determine a constructor"),
    ],
    ids=["syntax", "twice", "itself", "laughs", "deep", "json twice", "nan", "object"],
)
def test_hostile_file_is_refused_with_what_is_wrong(run: Run, tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "p").write_text(text, encoding="utf-8")
    refused = run("policy", "validate", tmp_path / "p")

    assert (2, True) == (refused.exit_code, problem in refused.err), refused.err


def test_missing_file_and_missing_base_are_told_apart(run: Run, guard: Path, tmp_path: Path) -> None:
    assert (2, True) == ((no_file := run("policy", "validate", tmp_path / "none.yaml")).exit_code, "no such file" in no_file.err)
    assert (3, True) == ((no_base := run("policy", "add", guard)).exit_code, "there is no base" in no_base.err)


def test_names_from_files_cannot_act_on_the_terminal(run: Run, base: Path, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(json.dumps({**GUARD, "name": "x\u001b]0;owned\u0007"}), encoding="utf-8")
    run("policy", "add", tmp_path / "p.json", "--base", base)

    assert "\x1b" not in run("policy", "list", "--base", base).out
