"""A BEIR folder through the public engine: what it measures, what it leaves behind, and what it refuses."""

from __future__ import annotations

import json
import tempfile
from itertools import count
from typing import TYPE_CHECKING

import pytest

from evidentia.contracts.errors import InvalidFieldError
from evidentia.evaluation.beir import DEPTH, run_beir

if TYPE_CHECKING:
    from pathlib import Path

    from evidentia.evaluation.beir import BeirRun


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a collection in which one document has many chunks and one has no text."""
    corpus = tmp_path / "letters"
    (corpus / "qrels").mkdir(parents=True)
    documents = {"a b": "alpha beta", "c": "gamma delta", "long": "\n\n".join(f"## Part {n}\n\n{'omega ' * 300}" for n in range(300))}
    records = [{"_id": name, "title": "", "text": text} for name, text in documents.items()]
    records += [{"_id": f"short{n:03}", "title": "", "text": f"omega {'filler ' * 400}"} for n in range(DEPTH + 20)]
    records.append({"_id": "void", "title": "", "text": ""})
    (corpus / "corpus.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    queries = {"q1": "alpha", "q2": "delta", "q3": "nothing of the kind", "q4": "omega"}
    lines = [json.dumps({"_id": name, "text": text}) for name, text in queries.items()]
    (corpus / "queries.jsonl").write_text("\n".join(lines), encoding="utf-8")
    judged = ("q1\ta b\t1", "q2\tc\t1", "q3\tvoid\t1", "q4\tlong\t1")
    (corpus / "qrels" / "test.tsv").write_text("\n".join(("query-id\tcorpus-id\tscore", *judged)), encoding="utf-8")
    return corpus


def run(folder: Path) -> BeirRun:
    ticks = count(step=2_000_000)
    return run_beir(folder, timer_ns=lambda: next(ticks), mode="lexical")


def test_every_query_is_asked_and_measured_under_the_ids_of_the_folder(folder: Path) -> None:
    report, found = run(folder)

    assert (4, 1, 2.0, 2.0) == (report.queries, report.without_results, report.p50_ms, report.p99_ms)
    assert {"q1": 1.0, "q2": 1.0, "q3": 0.0, "q4": 1.0} == report.per_query["nDCG@10"]
    assert ["nDCG@10", "P@10", "R@10", "R@100", "MRR", "MAP"] == list(report.measures)
    assert ("a b",) == found.ranked_ids()["q1"]
    assert "evidentia-lexical" == found.tag


def test_enough_documents_remain_when_one_has_hundreds_of_chunks(folder: Path) -> None:
    ranking = run(folder).run.ranked_ids()["q4"]

    assert (DEPTH, DEPTH) == (len(ranking), len(set(ranking)))
    assert "long" == ranking[0]


def test_same_folder_gives_the_same_run_and_leaves_nothing_behind(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    before = sorted(path.name for path in folder.rglob("*"))

    assert run(folder) == run(folder)
    assert [] == list((tmp_path / "scratch").iterdir())
    assert before == sorted(path.name for path in folder.rglob("*"))


def test_progress_is_told(folder: Path) -> None:
    few = (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "corpus.jsonl").write_text("".join([*few[:2], few[-1]]), encoding="utf-8")
    judged = (folder / "qrels" / "test.tsv").read_text(encoding="utf-8").replace("long", "c")
    (folder / "qrels" / "test.tsv").write_text(judged, encoding="utf-8")
    answered: list[tuple[int, int]] = []
    seen: list[int] = []
    run_beir(
        folder,
        timer_ns=count().__next__,
        on_ingest=lambda progress: seen.append(progress.seen),
        on_answer=lambda done, total: answered.append((done, total)),
    )

    assert [(1, 4), (2, 4), (3, 4), (4, 4)] == answered
    assert seen


@pytest.mark.parametrize(
    ("line", "problem"), [("{", "line 125"), ('{"_id": "x"}', "line 125"), ('{"_id": "\\u0000", "text": "x"}', "line 125")]
)
def test_malformed_line_of_the_corpus_is_named(folder: Path, line: str, problem: str) -> None:
    with (folder / "corpus.jsonl").open("a", encoding="utf-8") as corpus:
        corpus.write(line + "\n")

    with pytest.raises(InvalidFieldError, match=problem) as caught:
        run(folder)

    assert "corpus.jsonl" in str(caught.value)


@pytest.mark.slow
def test_scifact_and_limit_reach_the_required_quality(shared_data: Path) -> None:
    if not (shared_data / "scifact").is_dir():
        pytest.skip("the third-party sets are not here")
    scifact = run(shared_data / "scifact").report.measures
    limit = run(shared_data / "limit_small").report.measures

    assert scifact["nDCG@10"] >= 0.68
    assert scifact["R@100"] >= 0.91
    assert limit["nDCG@10"] >= 0.99
