"""Scenarios: documents in, questions asked through every door, one and the same answer out. STYLE.md shows the form.

`given` fills a base, under its `settings` if it has any, and the bases and notes beside it that are its sources; `when` is one step or
a list of steps; `then` has as many expectations.
Every step is asked through each door that `doors` names, all of them where it is left out, and the doors must agree on the hash of the
result, or on the code and the sentence of the error.
"""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest
import yaml

from evidentia.serving.cli import main
from scenario_bases import Answer, InProcess, change_base, listed, make_scenario_base, question_of
from served_doors import Grpc, JsonRpc, Mcp, Rest, served

if TYPE_CHECKING:
    from collections.abc import Mapping

SCENARIOS = sorted((Path(__file__).parent / "scenarios").glob("*.yaml"))
OPTIONS = {
    "limit": "--limit",
    "token_budget": "--tokens",
    "latency_deadline_ms": "--deadline-ms",
    "mode": "--mode",
    "fusion": "--fusion",
    "ranking_weights": "--weights",
    "diversity_constraint": "--diversity",
    "task": "--task",
    "without": "--without",
    "filter": "--filter",
    "facets": "--facet",
    "as_of": "--as-of",
    "corpus_version": "--corpus-version",
    "agent_name": "--agent",
    "session_context": "--session",
    "source": "--source",
}


class Door(Protocol):
    """A way to ask a base."""

    def search(self, query: str, fields: Mapping[str, Any], caller: tuple[str, Mapping[str, Any]]) -> Answer:
        """Return the answer, or the error under `error`."""
        ...

    def replay(self, receipt_id: str) -> Answer:
        """Return the report of a replay by the owner."""
        ...


class CommandLine:
    """The door of the terminal; callers are typed in words."""

    def __init__(self, base: Path) -> None:
        self._base = base

    def search(self, query: str, fields: Mapping[str, Any], caller: tuple[str, Mapping[str, Any]]) -> Answer:
        arguments = ["search", query]
        for name, value in fields.items():
            if name == "explain":
                arguments += ["--explain"] if value else []
                continue
            for each in value if isinstance(value, list) else [value]:
                arguments += [OPTIONS[name], _written(each)]
        return self._run([*arguments, "--as", _typed(*caller)])

    def replay(self, receipt_id: str) -> Answer:
        return self._run(["replay", receipt_id])

    def _run(self, arguments: list[str]) -> Answer:
        printed, remarks = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
        with redirect_stdout(printed), redirect_stderr(remarks):
            exit_code = main(["--json", "--base", str(self._base), *arguments])
        printed.seek(0)
        answer: Answer = json.loads(printed.read())
        assert ("error" in answer) == (exit_code == 2), remarks.getvalue()
        return answer


def _written(value: Any) -> str:
    """Return a value as it is typed: a task by its type, weights in their order with commas."""
    return ",".join(map(str, value.values())) if isinstance(value, dict) else str(value)


def _typed(name: str, facts: Mapping[str, Any]) -> str:
    return " ".join([name, *(f"{key}={','.join(value) if isinstance(value, list) else value}" for key, value in facts.items())])


DOORS = ("python", "cli", "rest", "jsonrpc", "grpc", "mcp")
SERVED = ("rest", "jsonrpc", "grpc")


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario(path: Path, tmp_path: Path) -> None:
    scenario = yaml.safe_load(path.read_text(encoding="utf-8"))
    base, folder = tmp_path / "base", tmp_path / "documents"
    make_scenario_base(base, scenario["given"], folder=folder)
    steps, expectations = listed(scenario["when"]), listed(scenario["then"])
    assert len(steps) == len(expectations)

    earlier: list[Answer] = []
    with served(base) as running:
        doors: dict[str, Door] = {
            "python": InProcess(base),
            "cli": CommandLine(base),
            "rest": Rest(running),
            "jsonrpc": JsonRpc(running),
            "grpc": Grpc(running),
            "mcp": Mcp(running),
        }
        named = {name: doors[name] for name in scenario.get("doors", DOORS)}
        for step, expected in zip(steps, expectations, strict=True):
            principals = scenario["given"].get("principals", {})
            earlier.append(_step(base, step, expected, principals=principals, earlier=earlier, folder=folder, doors=named))


def test_there_are_scenarios() -> None:
    assert len(SCENARIOS) >= 20


def _step(
    base: Path,
    step: Mapping[str, Any],
    expected: Mapping[str, Any],
    *,
    principals: Mapping[str, Any],
    earlier: list[Answer],
    folder: Path,
    doors: Mapping[str, Door],
) -> Answer:
    """Ask one question through every door, compare the doors, then compare with what is expected."""
    query, fields, caller = question_of(step, principals)
    by_door = {name: door.search(query, fields, caller) for name, door in doors.items()}
    answers = list(by_door.values())
    if "error" in expected:
        _check_refusals(by_door, expected["error"])
        return answers[0]
    hashes = {name: answer.get("result_hash", answer) for name, answer in by_door.items()}
    assert 1 == len(set(map(str, hashes.values()))), hashes
    for door, answer in by_door.items():
        _check_answer(answer, expected, earlier=earlier, is_ordered=door != "grpc")  # maps have no order on that wire
    if "change" in step:
        change_base(base, step["change"], folder=folder)
    if step.get("replay"):
        again = {name: door for name, door in doors.items() if name != "mcp"}  # its tools verify receipts, and give no report of a replay
        for name, asked_again in again.items():
            for replayed in (asked_again.replay(answer["receipt_id"]) for answer in answers):
                _check_replay(replayed, expected, recorded=answers[0], is_auditors=name in SERVED)
    return answers[0]


def _check_refusals(by_door: Mapping[str, Answer], expected: Mapping[str, str]) -> None:
    """Check that every door refuses with the same code and sentence; MCP tells a model the sentence alone."""
    for name, answer in by_door.items():
        if name == "mcp":
            assert answer["error"]["text"].startswith(f"Error: {expected['message']}"), answer
            continue
        assert (name, expected["code"]) == (name, answer["error"]["code"])
        assert answer["error"]["message"].startswith(expected["message"]), (name, answer)
    assert 1 == len({answer["error"]["message"] for name, answer in by_door.items() if name != "mcp"})


def _check_answer(answer: Answer, expected: Mapping[str, Any], *, earlier: list[Answer], is_ordered: bool) -> None:
    found = {
        "documents": [fragment["document_id"] for fragment in answer["fragments"]],
        "total": answer["total_candidates"],
        "facets": answer["facets"],
        "sources": sorted(answer["source_coverage"]),
        "coverage": {source: report["state"] for source, report in answer["source_coverage"].items()},
        "withheld": [each["chunk_id"].rpartition("#")[0] for each in answer["withheld"]],
        "is_truncated": answer["truncation_applied"],
        "as_of": answer["as_of"],
        "degraded": list(answer["degraded"]),
        "flags": {fragment["document_id"]: list(fragment["flags"]) for fragment in answer["fragments"]},
        "relevance": [round(fragment["retrieval_context"]["relevance_signal"], 1) for fragment in answer["fragments"]],
        "contents": [fragment["content"] for fragment in answer["fragments"]],
        "cut_off": [fragment["cut_off"] for fragment in answer["fragments"]],
        "conflicts": [_conflict(each) for each in answer["conflicts"]],
        "steps": [step["step"] for step in answer["understanding"]],
        "added": {step["step"]: list(step["added"]) for step in answer["understanding"] if step["added"]},
    }
    assert {name: value for name, value in expected.items() if name in found} == {
        name: value for name, value in found.items() if name in expected
    }
    if "facets" in expected and is_ordered:
        assert [list(counts) for counts in expected["facets"].values()] == [list(counts) for counts in answer["facets"].values()]
    written = json.dumps(answer, ensure_ascii=False)
    assert [] == [word for word in expected.get("absent", ()) if word in written]
    if "same_result_as" in expected:
        assert earlier[expected["same_result_as"]]["result_hash"] == answer["result_hash"]
    if "other_result_than" in expected:
        assert earlier[expected["other_result_than"]]["result_hash"] != answer["result_hash"]


def _conflict(found: Answer) -> Answer:
    """Return a conflict with its documents instead of their chunks."""
    documents = [chunk_id.rpartition("#")[0] for chunk_id in (found["winner"], *found["losers"])]
    losers = dict(zip(documents[1:], found["losing_values"], strict=True))
    return {"winner": documents[0], "value": found["value"], "losers": losers, "decided_by": found["decided_by"]}


def _check_replay(replayed: Answer, expected: Mapping[str, Any], *, recorded: Answer, is_auditors: bool) -> None:
    """Check a replay by the owner, or at a served door by an auditor, who sees nothing that was given to the caller alone."""
    assert expected["is_same"] == replayed["is_same"]
    if is_auditors and "hidden_from_auditors" in expected:
        assert expected["hidden_from_auditors"] == replayed["hidden"]
        assert expected["hidden_from_auditors"] == len(recorded["fragments"]) - len(replayed["response"]["fragments"])
        return
    assert expected.get("hidden", 0) == replayed["hidden"]
    assert recorded["result_hash"] == replayed["result_hash"]
    assert [each["chunk_id"] for each in recorded["fragments"]] == [each["chunk_id"] for each in replayed["response"]["fragments"]]
