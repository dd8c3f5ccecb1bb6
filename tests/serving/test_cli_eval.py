"""`eval run` and `eval compare`: figures as JSON, run files, and folders that are not what they should be."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from serving.cli_runs import Run

MEASURES = {"nDCG@10", "P@10", "R@10", "R@100", "MRR", "MAP"}


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    """Return a judged collection of three documents and two queries."""
    folder = tmp_path / "pets"
    (folder / "qrels").mkdir(parents=True)
    documents = {"cat": "A cat purrs.", "dog one": "A dog barks at cats.", "fish": "A fish is silent."}
    _write_lines(folder / "corpus.jsonl", [{"_id": name, "title": "", "text": text} for name, text in documents.items()])
    _write_lines(folder / "queries.jsonl", [{"_id": "q1", "text": "what purrs"}, {"_id": "q2", "text": "who barks"}])
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\tcat\t1\nq2\tdog one\t1\n", encoding="utf-8")
    return folder


def _write_lines(path: Path, records: list[dict[str, str]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def test_figures_are_json_even_without_asking(run: Run, pets: Path) -> None:
    plain, asked = run("eval", "run", pets, "--mode", "lexical"), run("--json", "eval", "run", pets)

    for outcome in (plain, asked):
        figures = json.loads(outcome.out)
        assert (0, "") == (outcome.exit_code, outcome.err)
        assert set(figures) > MEASURES | {"queries", "p50_ms", "p99_ms", "dataset", "split"}
        assert (1.0, 2, "pets", "test") == (figures["nDCG@10"], figures["queries"], figures["dataset"], figures["split"])
    assert "evidentia-lexical" == json.loads(plain.out)["run"]


def test_run_file_can_be_compared(run: Run, pets: Path, tmp_path: Path) -> None:
    run("eval", "run", pets, "--run-file", "a.run", "--k", "3")
    lines = (tmp_path / "a.run").read_text(encoding="utf-8").splitlines()
    (tmp_path / "b.run").write_text("\n".join(line for line in lines if line.startswith("q1")) + "\n", encoding="utf-8")

    outcome = run("eval", "compare", "a.run", "b.run", "--dataset", pets, "--measure", "MRR")
    found = json.loads(run("eval", "compare", "a.run", "b.run", "--dataset", pets, "--json").out)

    assert "q2 Q0 dog%20one 1 " in "\n".join(lines)
    assert "measure     MRR over 2 queries\nbaseline    1.0000  a.run\nsystem      0.5000  b.run\ndifference  -0.5000\n" in outcome.out
    assert "note: 1 queries have no line in the system; judged ones count as 0 there\n" == outcome.err
    assert (-0.5, 0, 1, 1, "nDCG@10") == tuple(found[name] for name in ("mean_difference", "wins", "ties", "losses", "measure"))
    assert ("a.run", "b.run") == (found["baseline"], found["system"])


def test_several_runs_are_compared_pair_by_pair(run: Run, pets: Path, tmp_path: Path) -> None:
    run("eval", "run", pets, "--run-file", "a.run", "--mode", "lexical")
    lines = (tmp_path / "a.run").read_text(encoding="utf-8").splitlines()
    (tmp_path / "b.run").write_text("\n".join(line for line in lines if line.startswith("q1")) + "\n", encoding="utf-8")
    (tmp_path / "c.run").write_text("q1 Q0 fish 1 1.0 c\n", encoding="utf-8")
    arguments = ("eval", "compare", "a.run", "b.run", "c.run", "--dataset", pets, "--measure", "MRR")

    outcome = run(*arguments)
    out = outcome.out
    pairs = json.loads(run(*arguments, "--json").out)["comparisons"]

    assert out.startswith(
        "MRR over 2 queries\n\nrun      mean\na.run  1.0000\nb.run  0.5000\nc.run  0.0000\n\nbaseline  system  difference"
    )
    assert [("a.run", "b.run"), ("a.run", "c.run"), ("b.run", "c.run")] == [(pair["baseline"], pair["system"]) for pair in pairs]
    assert [-0.5, -1.0, -0.5] == [pair["mean_difference"] for pair in pairs]
    assert ["a.run     b.run      -0.5000", "a.run     c.run      -1.0000"] == [line[:28] for line in out.splitlines()[-3:-1]]
    assert "note: 'b.run' lacks 1 queries that another run has; judged ones count as 0 there\n" in outcome.err


def test_pair_of_several_is_the_same_as_the_pair_alone(run: Run, pets: Path, tmp_path: Path) -> None:
    run("eval", "run", pets, "--run-file", "a.run")
    (tmp_path / "b.run").write_text("q1 Q0 fish 1 1.0 b\nq2 Q0 fish 1 1.0 b\n", encoding="utf-8")
    alone = json.loads(run("eval", "compare", "a.run", "b.run", "--dataset", pets, "--json").out)
    among = json.loads(run("eval", "compare", "a.run", "b.run", "a.run", "--dataset", pets, "--json").out)

    assert alone == among["comparisons"][0]


def test_same_runs_give_the_same_comparison_twice(run: Run, pets: Path) -> None:
    run("eval", "run", pets, "--run-file", "a.run")
    arguments = ("eval", "compare", "a.run", "a.run", "--dataset", pets, "--json")

    assert run(*arguments).out == run(*arguments).out


def test_malformed_folder_is_named_with_file_and_line(run: Run, pets: Path) -> None:
    def complaint() -> str:
        outcome = run("eval", "run", pets)
        assert (2, "") == (outcome.exit_code, outcome.out)
        return outcome.err.splitlines()[0]

    corpus, qrels = pets / "corpus.jsonl", pets / "qrels" / "test.tsv"
    good_corpus, good_qrels = corpus.read_text(encoding="utf-8"), qrels.read_text(encoding="utf-8")
    corpus.write_text(good_corpus + "{not json\n", encoding="utf-8")
    assert f"'{corpus}', line 4: " in complaint()
    corpus.write_text(good_corpus + '{"_id": "\\u0007", "text": "x"}\n', encoding="utf-8")
    assert f"'{corpus}': line 4 of 'corpus.jsonl' has an '_id'" in complaint()
    corpus.write_text(good_corpus, encoding="utf-8")
    qrels.write_text(good_qrels + "q1\tcat\tgood\n", encoding="utf-8")
    assert f"'{qrels}', line 4: score 'good' is not an integer" in complaint()
    qrels.unlink()
    assert "field 'split': 'test' is not a split" in complaint()
    corpus.unlink()
    assert "has no file 'corpus.jsonl'" in complaint()


MISTAKES = [
    (("run", "nowhere"), "field 'dataset': 'nowhere' is not a folder"),
    (("run", "pets", "--split", "dev"), "field 'split': 'dev' is not a split of 'pets'; available: 'test'"),
    (("run", "pets", "--k", "0"), "field 'k': '0' is not between 1 and 100"),
    (("run", "pets", "--k", "101"), "field 'k': '101' is not between 1 and 100"),
    (("run", "pets", "--k", "nan"), "invalid value for '--k'"),
    (("run", "pets", "--mode", "fuzzy"), "field 'mode': 'fuzzy' is not one of"),
    (("run", "pets", "--run-file", "no/such.run"), "'no/such.run' cannot be written: its directory does not exist"),
    (("run", "pets", "--run-file", "pets"), "'pets' is a directory"),
    (("compare", "a", "b"), "compare needs --dataset"),
    (("compare", "a", "b", "--dataset", "pets"), "field 'run': 'a' cannot be read"),
    (("compare", "pets/queries.jsonl", "b", "--dataset", "pets"), "field 'run': 'pets/queries.jsonl', line 1: expected the 6 columns"),
    (("compare", "a", "b", "--dataset", "pets", "--measure", "F1"), "field 'measure': 'F1' is not a measure"),
    ((), "missing command"),
    (("walk",), "no such command 'walk'"),
]


@pytest.mark.usefixtures("pets")
@pytest.mark.parametrize(("arguments", "message"), MISTAKES, ids=[" ".join(case[0]) for case in MISTAKES])
def test_mistake_is_named(run: Run, arguments: tuple[str, ...], message: str) -> None:
    outcome = run("eval", *arguments)

    assert (2, "") == (outcome.exit_code, outcome.out)
    assert outcome.err.startswith(f"evidentia: {message}")


def test_a_base_is_calibrated_with_judged_questions(run: Run, tmp_path: Path) -> None:
    names = [f"{colour} {thing}" for colour in ("red", "green", "blue", "white") for thing in ("pump", "valve", "crane", "hoist", "winch")]
    (tmp_path / "pages").mkdir()
    for number, name in enumerate(names):
        (tmp_path / "pages" / f"{number}.md").write_text(f"The {name} is repaired by crew {number}.\n", encoding="utf-8")
    judged = [{"question": f"Who repairs the {name}?", "relevant": [f"pages:{number}.md"]} for number, name in enumerate(names)]
    (tmp_path / "judged.jsonl").write_text("".join(json.dumps(each) + "\n" for each in judged), encoding="utf-8")
    run("init")
    run("ingest", "pages", "--source", "pages", "--no-embed")

    dry, stored = run("eval", "calibrate", "judged.jsonl", "--dry-run"), run("eval", "calibrate", "judged.jsonl", "--json")

    assert (0, 0) == (dry.exit_code, stored.exit_code), (dry.err, stored.err)
    assert "Brier score" in dry.out
    assert "no, a dry run" in dry.out
    assert (20, True) == tuple(json.loads(stored.out)[name] for name in ("questions", "is_stored"))
    assert (tmp_path / ".evidentia" / "calibration.json").exists()
