"""Confidence: a probability per candidate that follows from the candidates alone, in integers, for words, vectors and both."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.contracts.receipts import ConfidenceCalibration
from evidentia.contracts.search import LegScores
from evidentia.ranking.confidence import FEATURES, QUESTION_FEATURES, CandidateFeatures, _log2, calibrated, confidence, shipped_models

if TYPE_CHECKING:
    from collections.abc import Sequence

BITS = 20
ATTAINABLE = 100_000
MODEL = shipped_models().second


def leg(words: int, cosine: float | None) -> LegScores:
    return LegScores(lexical=words, dense=None if cosine is None else round(cosine * (1 << BITS)))


def features(legs: Sequence[LegScores], documents: Sequence[str] | None = None) -> CandidateFeatures:
    named = documents or [f"d{place:03}" for place in range(len(legs))]
    return CandidateFeatures(legs, named, attainable=ATTAINABLE, score_bits=BITS, terms=5)


def crowd(*first: LegScores, cosine: float = 0.2, words: int = 5_000) -> list[LegScores]:
    """Return candidates of which all but the first few are alike."""
    return [*first, *(leg(words - place, cosine - place / 1000) for place in range(60))]


def said(legs: Sequence[LegScores], index: int = 0) -> float:
    return features(legs).confidence(MODEL, index) / 1_000_000


def test_what_stands_out_in_both_legs_is_likely_and_what_stands_out_in_none_is_not() -> None:
    found = crowd(leg(40_000, 0.7))

    assert said(found) > 0.7
    assert said(found, 30) < 0.05


def test_a_question_that_nothing_is_near_to_has_no_likely_answer() -> None:
    assert said(crowd(leg(9_000, 0.15), cosine=0.1)) < 0.25


@pytest.mark.parametrize("legs", [(40_000, None), (0, 0.7), (40_000, 0.7)])
def test_words_vectors_and_both_each_have_a_model(legs: tuple[int, float | None]) -> None:
    words, cosine = legs
    others = [leg(5_000 if words else 0, None if cosine is None else 0.2) for _ in range(60)]

    assert said([leg(words, cosine), *others]) > said([leg(words, cosine), *others], 40)


def test_a_candidate_without_a_vector_is_judged_by_its_words() -> None:
    found = crowd(leg(40_000, None))

    assert 0 < said(found) < 1


def test_nothing_to_go_by_is_no_confidence() -> None:
    assert 0 == said([leg(0, None)])


@given(st.lists(st.tuples(st.integers(0, ATTAINABLE), st.floats(0, 1)), min_size=1, max_size=120), st.integers(0, 2**32))
def test_a_probability_that_the_order_of_candidates_does_not_change(scores: list[tuple[int, float]], seed: int) -> None:
    legs = [leg(words + place, min(1.0, cosine + place / 4_096)) for place, (words, cosine) in enumerate(scores)]
    moved = sorted(range(len(legs)), key=lambda place: (place * 2_654_435_761 + seed) % 4_294_967_296)
    before, after = features(legs), features([legs[place] for place in moved], [f"d{place:03}" for place in moved])
    for own, place in enumerate(moved[:5]):
        chance = after.confidence(MODEL, own)

        assert 0 <= chance <= 1_000_000
        if len({each.lexical for each in legs}) == len({each.dense for each in legs}) == len(legs):
            assert before.confidence(MODEL, place) == chance


def test_candidates_further_down_than_the_fiftieth_change_nothing() -> None:
    legs = [leg(40_000 - 500 * place, 0.8 - place / 200) for place in range(60)]
    more = [*legs, *(leg(100, 0.01) for _ in range(100))]

    assert [features(legs).row(place) for place in range(10)] == [features(more).row(place) for place in range(10)]


def test_every_feature_has_a_value_and_every_coefficient_a_feature() -> None:
    assert len(FEATURES) == len(features(crowd(leg(1, 0.1))).row(0))
    for weights in (MODEL.words, MODEL.vectors, MODEL.both):
        assert set(weights.question) <= {"intercept", *QUESTION_FEATURES}
        assert set(weights.fragment) <= {"intercept", *FEATURES}


def test_the_chunks_of_one_document_stand_in_its_place() -> None:
    found = features(crowd(leg(40_000, 0.7), leg(39_000, 0.69)), ["one", "one", *(f"d{place}" for place in range(60))])

    assert 0 == found.row(1)[FEATURES.index("document_place")]
    assert 0 < found.row(1)[FEATURES.index("place")]


@given(st.integers(1, 1 << 70))
def test_the_logarithm_is_rounded_down(value: int) -> None:
    assert abs(math.log2(value) * 65_536 - _log2(value)) <= 1.001


@given(st.integers(0, 1_000_000), st.integers(0, 1_000_000), st.integers(1, 1 << 20), st.integers(-(1 << 18), 1 << 18))
def test_a_calibration_never_turns_an_order_round(one: int, other: int, scale: int, shift: int) -> None:
    calibration = ConfidenceCalibration(basis="", scale=scale, shift=shift)
    low, high = sorted((one, other))

    assert calibrated(low, calibration) <= calibrated(high, calibration)
    assert abs(calibrated(low, None) - calibrated(low, ConfidenceCalibration(basis=""))) <= 30


def test_the_first_generation_is_as_it_was() -> None:
    model = shipped_models().first

    assert "scifact train, 809 questions" == model.basis
    assert [51_786, 3_772, 431] == [
        confidence(model, words=20_000, cosine=30_000),
        confidence(model, words=4_000, cosine=None),
        confidence(model, words=None, cosine=6_000),
    ]
