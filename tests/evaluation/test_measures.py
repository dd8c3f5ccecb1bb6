"""Measures: as computed by hand, and as trec_eval computes them."""

from __future__ import annotations

from math import log2

import ir_measures
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evidentia.contracts.errors import InvalidFieldError
from evidentia.evaluation.measures import (
    Measure,
    average_precision,
    ndcg,
    precision,
    recall,
    reciprocal_rank,
    score_rankings,
)
from soak import cases

DOCUMENTS = [f"d{number}" for number in range(20)]
GRADES = {"a": 3, "b": 1, "c": 0, "e": 2}
RANKING = ["c", "b", "x", "a"]
QUERIES = st.sampled_from([f"q{number}" for number in range(6)])
RUNS = st.dictionaries(QUERIES, st.lists(st.sampled_from(DOCUMENTS), unique=True, min_size=1), min_size=1)
QRELS = st.dictionaries(QUERIES, st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(-1, 4), min_size=1), min_size=1)
EXPONENTIAL_GAINS = {grade: 2**grade - 1 for grade in range(5)}
# ir-measures 0.4.3 may put a plain nDCG under the gains of another nDCG in the same call, hence two calls.
EXPONENTIAL = {
    "nDCG": ir_measures.nDCG(gains=EXPONENTIAL_GAINS),
    "nDCG@3": ir_measures.nDCG(gains=EXPONENTIAL_GAINS) @ 3,
}
OTHERS = {
    "nDCG(linear)": ir_measures.nDCG,
    "nDCG(linear)@10": ir_measures.nDCG @ 10,
    "P@1": ir_measures.P @ 1,
    "P@10": ir_measures.P @ 10,
    "R@5": ir_measures.R @ 5,
    "R@100": ir_measures.R @ 100,
    "MRR": ir_measures.RR,
    "MRR@3": ir_measures.RR @ 3,
    "MAP": ir_measures.AP,
    "MAP@5": ir_measures.AP @ 5,
}
THEIRS = {**EXPONENTIAL, **OTHERS}


@settings(max_examples=cases(60, of=300))
@given(rankings=RUNS, qrels=QRELS)
def test_every_measure_agrees_with_trec_eval(rankings: dict[str, list[str]], qrels: dict[str, dict[str, int]]) -> None:
    judged = {query_id: grades for query_id, grades in qrels.items() if any(grade > 0 for grade in grades.values())}
    assume(judged)
    # trec_eval sorts by score and ignores ranks, so scores fall strictly.
    run = {query_id: {name: float(-rank) for rank, name in enumerate(ranking)} for query_id, ranking in rankings.items()}
    theirs = {
        (str(metric.query_id), metric.measure): metric.value
        for measures in (EXPONENTIAL, OTHERS)
        for metric in ir_measures.iter_calc(list(measures.values()), judged, run)
    }

    for name, measure in THEIRS.items():
        expected = {query_id: theirs[query_id, measure] for query_id in judged}
        assert expected == pytest.approx(dict(score_rankings(rankings, qrels, measure=Measure.parse(name)).per_query), abs=1e-9)


def test_ndcg_is_the_hand_computed_share_of_the_ideal_gain() -> None:
    expected = (1 / log2(3) + 7 / log2(5)) / (7 / log2(2) + 3 / log2(3) + 1 / log2(4))

    assert expected == pytest.approx(ndcg(RANKING, GRADES), abs=1e-15)


def test_linear_gain_is_the_grade_itself() -> None:
    expected = (1 / log2(3) + 3 / log2(5)) / (3 / log2(2) + 2 / log2(3) + 1 / log2(4))

    assert expected == pytest.approx(ndcg(RANKING, GRADES, gain="linear"), abs=1e-15)


def test_the_ideal_ranking_is_cut_too() -> None:
    expected = (1 / log2(3)) / (7 / log2(2) + 3 / log2(3))

    assert expected == pytest.approx(ndcg(RANKING, GRADES, cut=2), abs=1e-15)


def test_precision_counts_empty_places_and_recall_all_relevant_documents() -> None:
    expected = (2 / 10, 1 / 2, 2 / 3, 1 / 3)

    assert expected == (
        precision(RANKING, GRADES, cut=10),
        precision(RANKING, GRADES, cut=2),
        recall(RANKING, GRADES, cut=10),
        recall(RANKING, GRADES, cut=2),
    )


def test_reciprocal_rank_looks_at_the_first_relevant_document_within_the_cut() -> None:
    expected = (1 / 2, 0.0)

    assert expected == (reciprocal_rank(RANKING, GRADES), reciprocal_rank(RANKING, GRADES, cut=1))


def test_average_precision_divides_by_all_relevant_documents() -> None:
    expected = ((1 / 2 + 2 / 4) / 3, (1 / 2) / 3)

    assert expected == (average_precision(RANKING, GRADES), average_precision(RANKING, GRADES, cut=3))


@given(grades=st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(1, 30), min_size=1))
def test_the_best_ranking_scores_exactly_one(grades: dict[str, int]) -> None:
    best = sorted(grades, key=lambda document_id: (-grades[document_id], document_id))

    assert [1.0] * 4 == [Measure.parse(name).score(best, grades) for name in ("nDCG", "R@20", "MRR", "MAP")]


@given(ranking=st.lists(st.sampled_from(DOCUMENTS), unique=True), grades=st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(0, 30)))
def test_every_score_lies_between_zero_and_one(ranking: list[str], grades: dict[str, int]) -> None:
    for name in THEIRS:
        assert 0 <= Measure.parse(name).score(ranking, {**grades, "d0": 1}) <= 1


def test_unjudged_documents_count_like_documents_judged_not_relevant() -> None:
    judged = {**GRADES, "x": 0}

    for name in THEIRS:
        assert Measure.parse(name).score(RANKING, GRADES) == Measure.parse(name).score(RANKING, judged)


def test_queries_without_results_count_as_zero_and_are_listed() -> None:
    scores = score_rankings({"q1": ["a"], "q2": []}, {"q1": {"a": 1}, "q2": {"a": 1}, "q3": {"a": 1}}, measure=Measure("MRR"))

    assert 1 / 3 == scores.mean
    assert {"q1": 1.0, "q2": 0.0, "q3": 0.0} == scores.per_query
    assert ("q2", "q3") == scores.without_results


def test_queries_without_a_relevant_document_are_left_out_and_listed() -> None:
    scores = score_rankings({"q1": ["a"], "q2": ["a"]}, {"q1": {"a": 1}, "q2": {"a": 0}}, measure=Measure("P", 1))

    assert 1.0 == scores.mean
    assert ("q2",) == scores.without_relevant


def test_ranked_queries_that_nobody_judged_are_listed() -> None:
    scores = score_rankings({"q2": ["a"], "q1": ["a"]}, {"q1": {"a": 1}}, measure=Measure("MAP"))

    assert ("q2",) == scores.unjudged


def test_the_order_of_queries_does_not_matter() -> None:
    qrels = {f"q{number}": {"a": 1} for number in range(50)}
    rankings = {f"q{number}": [*DOCUMENTS[: number % 7], "a"] for number in range(50)}
    backwards = dict(reversed(rankings.items())), dict(reversed(qrels.items()))

    assert score_rankings(rankings, qrels, measure=Measure("MRR")) == score_rankings(*backwards, measure=Measure("MRR"))


def test_a_document_ranked_twice_is_refused_with_both_ranks() -> None:
    with pytest.raises(InvalidFieldError, match="document 'b' has two ranks, 2 and 4"):
        ndcg(["a", "b", "c", "b"], GRADES, cut=1)


def test_judgments_in_which_nothing_is_relevant_are_refused() -> None:
    with pytest.raises(InvalidFieldError, match="nothing to measure"):
        score_rankings({"q": ["a"]}, {"q": {"a": 0}}, measure=Measure("MAP"))
    with pytest.raises(InvalidFieldError, match="no document is relevant"):
        recall(["a"], {"a": -1}, cut=1)


def test_a_grade_beyond_the_largest_is_refused() -> None:
    with pytest.raises(InvalidFieldError, match="'31' is greater than 30"):
        ndcg(["a"], {"a": 31})


@pytest.mark.parametrize("name", THEIRS)
def test_a_measure_has_the_name_it_was_read_from(name: str) -> None:
    assert name == Measure.parse(name).name


@pytest.mark.parametrize("name", ["", "ndcg@10", "nDCG@0", "nDCG@-1", "P", "R", "P(linear)@3", "MAP@", "nDCG @10", "nDCG(cubic)"])
def test_what_is_not_a_measure_is_refused(name: str) -> None:
    with pytest.raises(InvalidFieldError):
        Measure.parse(name)


@pytest.mark.parametrize("cut", [0, -1])
def test_a_cut_below_one_is_refused(cut: int) -> None:
    with pytest.raises(InvalidFieldError, match="field 'cut'"):
        precision(["a"], GRADES, cut=cut)
