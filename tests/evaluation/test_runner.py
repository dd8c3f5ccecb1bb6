"""The runner: what is asked, timed, folded and reported."""

from __future__ import annotations

from itertools import count
from math import log2
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from evidentia.contracts.errors import InvalidFieldError
from evidentia.evaluation.datasets import Dataset, JudgedQuery, load_dataset
from evidentia.evaluation.measures import EvalReport
from evidentia.evaluation.runner import collect_run, evaluate, fold_to_documents, measure_run, nearest_rank

if TYPE_CHECKING:
    from collections.abc import Callable

SMALL = Dataset(
    folder=Path("small"),
    split="test",
    queries=tuple(JudgedQuery(query_id=f"q{number}", text=f"text {number}") for number in range(1, 5)),
    qrels={"q1": {"a": 1, "b": 1}, "q2": {"a": 1}, "q3": {"a": 1}, "q4": {"a": 0}},
)
ANSWERS = {
    "text 1": [("b", 90), ("x", 80), ("b", 70), ("a", 60)],
    "text 2": [("x", 90), ("a", 80)],
    "text 3": [],
    "text 4": [("a", 10)],
}


def ticking(*, step_ns: int = 1_000_000) -> Callable[[], int]:
    ticks = count(step=step_ns)
    return lambda: next(ticks)


def ask(text: str) -> list[tuple[str, int]]:
    return ANSWERS[text]


def test_a_small_evaluation_by_hand() -> None:
    report = evaluate(SMALL, ask, timer_ns=ticking(), k=2)
    expected = {
        "nDCG@2": (1 / (1 + 1 / log2(3)) + 1 / log2(3) + 0) / 3,
        "P@2": (1 / 2 + 1 / 2 + 0) / 3,
        "R@2": (1 / 2 + 1 + 0) / 3,
        "R@100": (1 + 1 + 0) / 3,
        "MRR": (1 + 1 / 2 + 0) / 3,
        "MAP": ((1 + 2 / 3) / 2 + 1 / 2 + 0) / 3,
    }

    assert list(expected) == list(report.measures)
    assert expected == pytest.approx(dict(report.measures), abs=1e-15)


def test_queries_are_counted_by_what_became_of_them() -> None:
    report = evaluate(SMALL, ask, timer_ns=ticking())

    assert (3, 1, 1) == (report.queries, report.without_results, report.without_relevant)
    assert {"q1", "q2", "q3"} == report.per_query["MRR"].keys()


def test_latency_is_the_time_of_the_search_alone() -> None:
    report = evaluate(SMALL, ask, timer_ns=ticking(step_ns=2_500_000))

    assert (2.5, 2.5) == (report.p50_ms, report.p99_ms)


def test_percentiles_are_observed_values() -> None:
    hundred = list(range(100, 0, -1))

    assert (50, 99) == (nearest_rank(hundred, percent=50), nearest_rank(hundred, percent=99))
    assert (2, 3) == (nearest_rank([3, 1, 2], percent=50), nearest_rank([3, 1, 2], percent=99))
    assert 7 == nearest_rank([7], percent=50)


def test_a_document_stands_at_its_best_rank_only() -> None:
    assert (("b", 90), ("x", 80), ("a", 60)) == fold_to_documents(ANSWERS["text 1"], depth=10)


def test_depth_counts_documents_and_not_candidates() -> None:
    candidates = [("a", 5), ("a", 4), ("b", 3), ("b", 2), ("c", 1)]

    assert (("a", 5), ("b", 3)) == fold_to_documents(candidates, depth=2)


def test_the_order_given_is_kept_even_where_scores_rise() -> None:
    assert (("a", 1), ("b", 2)) == fold_to_documents([("a", 1), ("b", 2)], depth=2)


def test_collecting_and_measuring_apart_gives_the_same_report() -> None:
    collected = collect_run(SMALL, ask, timer_ns=ticking(), depth=100)

    assert evaluate(SMALL, ask, timer_ns=ticking()) == measure_run(SMALL, collected)
    assert ["q1", "q2", "q3", "q4"] == list(collected.run.rankings)


def test_linear_gain_shows_in_the_name_of_the_measure() -> None:
    report = evaluate(SMALL, ask, timer_ns=ticking(), gain="linear")

    assert "nDCG(linear)@10" in report.measures


def test_a_report_survives_json() -> None:
    report = evaluate(SMALL, ask, timer_ns=ticking())

    assert report == msgspec.json.decode(msgspec.json.encode(report), type=EvalReport)


def test_a_summary_is_flat_and_leaves_single_queries_out() -> None:
    summary = evaluate(SMALL, ask, timer_ns=ticking()).summary()
    expected = ["nDCG@10", "P@10", "R@10", "R@100", "MRR", "MAP", "queries", "without_results", "without_relevant", "p50_ms", "p99_ms"]

    assert ["dataset", "split", *expected] == list(summary)


@pytest.mark.parametrize(("k", "depth", "field"), [(0, 10, "k"), (10, 9, "depth"), (-1, -1, "k")])
def test_senseless_depths_are_refused_before_anything_is_searched(k: int, depth: int, field: str) -> None:
    asked: list[str] = []

    def note(text: str) -> list[tuple[str, int]]:
        asked.append(text)
        return []

    with pytest.raises(InvalidFieldError, match=f"field '{field}'"):
        evaluate(SMALL, note, timer_ns=ticking(), k=k, depth=depth)

    assert [] == asked


def test_scifact_is_read_whole_and_its_own_judgments_score_one(shared_data: Path) -> None:
    folder = shared_data / "scifact"
    if not folder.is_dir():
        pytest.skip(f"no SciFact in '{shared_data}'; set EVIDENTIA_DATA to the folder that holds it")
    dataset = load_dataset(folder)
    id_of_text = {query.text: query.query_id for query in dataset.queries}
    corpus = {document.document_id for document in dataset.documents()}

    def oracle(text: str) -> list[tuple[str, int]]:
        return [(document_id, 1) for document_id in sorted(dataset.qrels[id_of_text[text]])]

    report = evaluate(dataset, oracle, timer_ns=ticking())

    assert (300, 339, 5183) == (report.queries, sum(map(len, dataset.qrels.values())), len(corpus))
    assert corpus >= {document_id for grades in dataset.qrels.values() for document_id in grades}
    assert [1.0] * 5 == [report.measures[name] for name in ("nDCG@10", "R@10", "R@100", "MRR", "MAP")]
    assert 339 / 3000 == pytest.approx(report.measures["P@10"], abs=1e-12)
