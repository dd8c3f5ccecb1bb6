"""Why a row stands behind one with less confidence: read off scores and flags, and none where nothing is to be explained."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from answer_samples import fragment_of
from evidentia.contracts.evidence import RankingWeights
from evidentia.ranking.order_notes import order_notes

SHARE = st.integers(min_value=0, max_value=20).map(lambda twentieths: twentieths / 20)


def test_rows_in_the_order_of_confidence_have_no_notes() -> None:
    assert ("", "", "", "") == order_notes([fragment_of(each) for each in (0.9, 0.5, 0.5, 0.1)])
    assert () == order_notes([])


def test_rows_that_show_the_same_number_have_no_notes() -> None:
    assert ("", "") == order_notes([fragment_of(0.501), fragment_of(0.503)])


def test_the_unlikely_have_no_notes() -> None:
    assert ("", "") == order_notes([fragment_of(0.01), fragment_of(0.15)])


@pytest.mark.parametrize(
    ("above", "below", "expected"),
    [
        ({"authority": 1.0}, {}, "lower authority"),
        ({"freshness": 0.9}, {}, "older"),
        ({"freshness": 0.9}, {"flags": ("freshness_unknown",)}, "no date"),
        ({"flags": ("freshness_unknown",)}, {"freshness": 0.1}, "old"),
        ({"utility": 0.9}, {}, "less to act on"),
        ({"relevance": 0.9}, {}, "lower relevance"),
        ({"relevance": 0.9, "reranked": 0.9}, {"reranked": 0.2}, "lower by the reranker"),
        ({"relevance": 0.9, "reranked": 0.2}, {"reranked": 0.9}, "lower relevance"),
        ({"authority": 1.0, "freshness": 0.9}, {}, "lower authority, older"),
        ({"authority": 1.0, "freshness": 0.51, "relevance": 0.4}, {}, "lower authority"),
        ({}, {}, "the same score"),
    ],
)
def test_what_the_composite_weighs_is_named(above: dict[str, Any], below: dict[str, Any], expected: str) -> None:
    notes = order_notes([fragment_of(0.4, **above), fragment_of(0.7, **below)])

    assert ("", f"behind 1: {expected}") == notes


def test_a_task_s_own_weights_are_recognised_and_a_request_s_are_not_guessed() -> None:
    explaining = RankingWeights(relevance=0.50, authority=0.30, freshness=0.10, utility=0.10)
    own = RankingWeights(relevance=0.1, authority=0.8, freshness=0.05, utility=0.05)
    for weights, expected in ((explaining, "lower authority"), (own, "the weights of the request")):
        rows = [fragment_of(0.4, authority=1.0, weights=weights), fragment_of(0.7, utility=0.6, weights=weights)]

        assert ("", f"behind 1: {expected}") == order_notes(rows)


def test_a_near_copy_that_stepped_back_says_so() -> None:
    assert ("", "", "behind 2: much like a row above") == order_notes([fragment_of(0.9, 0.9), fragment_of(0.3, 0.3), fragment_of(0.8, 0.8)])


def test_an_outdated_page_and_what_its_successor_passed_say_so() -> None:
    successor, outdated, other = fragment_of(0.3, 0.3), fragment_of(0.8, 0.8, flags=("deprecated",)), fragment_of(0.7, 0.7)

    assert ("", "behind 1: no longer current", "behind 1: 1 replaces 2, so it stands before it") == order_notes(
        [successor, outdated, other]
    )


def test_the_nearest_row_above_with_less_confidence_is_named() -> None:
    notes = order_notes([fragment_of(0.3, 0.9), fragment_of(0.4, 0.8), fragment_of(0.6, 0.7)])

    assert ["", "behind 1", "behind 2"] == [each.partition(":")[0] for each in notes]


def test_numbers_that_are_not_told_are_not_explained() -> None:
    stripped = msgspec.structs.replace(fragment_of(0.0, 0, 0, 0, 0), score=0)

    assert ("", "") == order_notes([stripped, stripped])


@given(st.lists(st.tuples(SHARE, SHARE, SHARE, SHARE, SHARE), max_size=8))
def test_exactly_the_rows_behind_a_less_likely_one_have_a_reason(rows: list[tuple[float, float, float, float, float]]) -> None:
    fragments = [fragment_of(*row) for row in rows]
    notes = order_notes(fragments)
    is_behind = [
        fragment.likelihood not in ("unlikely", "-") and any(other.confidence < fragment.confidence for other in fragments[:place])
        for place, fragment in enumerate(fragments)
    ]

    assert is_behind == [bool(note) for note in notes]
    assert not any(note.endswith(": ") for note in notes)
