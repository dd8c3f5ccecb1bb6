"""Write down what a base answers, or check that it still answers so: the `result_hash` of SciFact's questions and of every scenario.

    python tools/golden_answers.py write FILE [--quick]
    python tools/golden_answers.py check FILE [--quick]

The 300 test questions of SciFact are asked by the request that `retrieve` makes by default (words and vectors), but for the moment, the
deadline and the receipt: of a base with 400 abstracts, which are those that a test question is about and the first of the others, as
the test suite has it, and of one with all 5,183; `--quick` leaves the second out. It is looked for in EVIDENTIA_DATA or ../shared/data.
Scenarios (tests/scenarios/*.yaml) are asked in process; a step that is replayed has the hash of its replay too, and one that ends in
an error has its code and its sentence. Where a note of an agent is found, which has another name each time, its text stands for it.

Only the public API is used, so that any commit can be asked: PYTHONPATH=OTHER/src OTHER/.venv/bin/python tools/golden_answers.py ...
Exit code 1: an answer is another one, or is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

import evidentia

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests"))

from scenario_bases import InProcess, change_base, listed, make_scenario_base, question_of  # noqa: E402 - tests is no package

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

AS_OF: Final = "2026-01-01T00:00:00Z"
DEADLINE_MS: Final = 600_000
"""Longer than any machine takes: an answer that ran out of time is another answer, and says so."""
SOURCE: Final = "scifact"
CUT: Final = 400
WHOLE: Final = 5_183

Golden = dict[str, Any]  # JSON: {"scenarios": {name: [step]}, "scifact": {documents: {query id: hash}}}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["write", "check"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--quick", action="store_true", help="leave out the base with all of SciFact")
    chosen = parser.parse_args(arguments)
    found = golden_answers(is_quick=chosen.quick)
    if chosen.action == "write":
        chosen.file.write_text(json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"wrote {sum(1 for _ in _flat(found))} answers to {chosen.file}")
        return 0
    expected = json.loads(chosen.file.read_text(encoding="utf-8"))
    if chosen.quick:
        expected["scifact"].pop(str(WHOLE), None)
    others = differing(expected, found)
    print("\n".join([*others, f"{len(others)} of {sum(1 for _ in _flat(expected))} answers are other ones"]))
    return 1 if others else 0


def golden_answers(*, is_quick: bool) -> Golden:
    """Ask everything."""
    data = Path(os.environ.get("EVIDENTIA_DATA", ROOT.parent / "shared" / "data")) / "scifact"
    if not data.is_dir():
        sys.exit(f"SciFact is not in '{data.parent}'; set EVIDENTIA_DATA to the folder that holds it")
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        return {
            "scenarios": {path.stem: scenario_answers(path, folder / path.stem) for path in scenarios()},
            "scifact": {str(size): scifact_answers(data, size, folder / str(size)) for size in ([CUT] if is_quick else [CUT, WHOLE])},
        }


def differing(expected: Golden, found: Golden) -> list[str]:
    """Return a line for each answer that is not the expected one."""
    before, after = dict(_flat(expected)), dict(_flat(found))
    return [
        f"{name}: {before.get(name, 'not asked')} -> {after.get(name, 'not asked')}"
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]


def _flat(golden: Golden) -> Iterator[tuple[str, str]]:
    for size, answers in golden["scifact"].items():
        yield from ((f"scifact {size} {query_id}", each) for query_id, each in answers.items())
    for name, steps in golden["scenarios"].items():
        yield from ((f"scenario {name} {number}", json.dumps(step, sort_keys=True)) for number, step in enumerate(steps))


# --- scenarios ---


def scenarios() -> list[Path]:
    """Return the files with scenarios about answers."""
    return sorted((ROOT / "tests" / "scenarios").glob("*.yaml"))


def scenario_answers(path: Path, folder: Path) -> list[dict[str, Any]]:
    """Return what each step of a scenario ends in, asked of a base in the folder."""
    scenario = yaml.safe_load(path.read_text(encoding="utf-8"))
    base, documents = folder / "base", folder / "documents"
    folder.mkdir(parents=True)
    make_scenario_base(base, scenario["given"], folder=documents)
    door = InProcess(base)
    noted = {note["text"] for note in scenario["given"].get("notes", [])}
    ended: list[dict[str, Any]] = []
    for step in listed(scenario["when"]):
        answer = door.search(*question_of(step, scenario["given"].get("principals", {})))
        if "error" in answer:
            ended.append({"code": answer["error"]["code"], "message": answer["error"]["message"].replace(str(folder), "FOLDER")})
            continue
        if "change" in step:
            change_base(base, step["change"], folder=documents)
        if noted.intersection(fragment["content"] for fragment in answer["fragments"]):
            ended.append(_without_identity(answer))
            continue
        replayed = {"replayed": door.replay(answer["receipt_id"])["result_hash"]} if step.get("replay") else {}
        ended.append({"result_hash": answer["result_hash"], **replayed})
    return ended


def _without_identity(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an answer with a note in it says: a note has a name and a moment of its own each time it is written."""
    return {
        "contents": [fragment["content"] for fragment in answer["fragments"]],
        "relevance": [fragment["relevance_score"] for fragment in answer["fragments"]],
        "coverage": {source: report["state"] for source, report in sorted(answer["source_coverage"].items())},
        "total_candidates": answer["total_candidates"],
    }


# --- SciFact ---


def scifact_answers(data: Path, size: int, folder: Path) -> dict[str, str]:
    """Return the hash of the answer to each test question, asked of a new base with so many abstracts."""
    folder.mkdir(parents=True)
    judged = read_judgements(data)
    write_corpus(data, folder / "corpus.jsonl", judged, size=size)
    evidentia.connect(folder / "base", init=True).close()
    (folder / "base" / "evidentia.toml").write_text("[ingest]\nbatch_documents = 5000\n", encoding="utf-8")
    with evidentia.connect(folder / "base") as base:
        base.ingest([folder / "corpus.jsonl"], source=SOURCE, embed=False)
        base.embed()
        return {query_id: answer_hash(base, text) for query_id, text in read_questions(data, judged)}


def answer_hash(base: evidentia.Base, text: str) -> str:
    """Return the hash of the answer to one question."""
    answer = base.retrieve(text, as_of=AS_OF, latency_deadline_ms=DEADLINE_MS, receipt=False)
    if answer.degraded:
        sys.exit(f"no whole answer to {text!r}: {answer.degraded}")
    return answer.result_hash


def read_judgements(data: Path) -> dict[str, set[str]]:
    """Return the abstracts that each test question is about."""
    judged: dict[str, set[str]] = {}
    for line in (data / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query_id, document_id, _grade = line.split("\t")
        judged.setdefault(query_id, set()).add(document_id)
    return judged


def read_questions(data: Path, judged: Mapping[str, set[str]]) -> list[tuple[str, str]]:
    """Return id and text of each test question, in the order of the file."""
    lines = (json.loads(line) for line in (data / "queries.jsonl").read_text(encoding="utf-8").splitlines())
    return [(str(query["_id"]), str(query["text"])) for query in lines if str(query["_id"]) in judged]


def write_corpus(data: Path, target: Path, judged: Mapping[str, set[str]], *, size: int) -> None:
    """Write the abstracts of a base in their order: those that test questions are about, and the first of the others."""
    lines = (data / "corpus.jsonl").read_bytes().splitlines(keepends=True)
    ids = [str(json.loads(line)["_id"]) for line in lines]
    relevant = set[str]().union(*judged.values())
    kept = relevant.union([own_id for own_id in ids if own_id not in relevant][: size - len(relevant)])
    target.write_bytes(b"".join(line for line, own_id in zip(lines, ids, strict=True) if own_id in kept))


if __name__ == "__main__":
    sys.exit(main())
