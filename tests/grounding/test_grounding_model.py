"""The shipped models: what they may weigh, that their numbers are those of the fit, and that the logistic is one table."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.contracts.errors import InvalidFieldError
from evidentia.grounding.claim_features import Features
from evidentia.grounding.score import GroundingModel, logistic, predict, read_models, shipped_models

AGAINST = (
    "length", "numbers_missing", "names_missing", "negation_lost", "negation_added",
    "direction_against", "direction_turned", "direction_absent",
)  # fmt: skip


def with_words(**words: Any) -> bytes:
    model = {"threshold_milli": 500}
    return json.dumps({"words": {**model, **words}, "with_encoder": model, "similarity": model}).encode()


@pytest.mark.parametrize("name", ["words", "with_encoder"])
def test_what_speaks_against_a_claim_never_raises_its_score(name: str) -> None:
    model = getattr(shipped_models(), name)

    assert all(model.weights[each] <= 0 for each in AGAINST)
    assert all(model.weights[each] > 0 for each in ("coverage", "with_opening", "phrases", "direction_with"))


@given(st.integers(-100_000, 100_000))
def test_logistic_rises_and_is_near_the_formula(margin_milli: int) -> None:
    found = logistic(margin_milli)

    assert found <= logistic(margin_milli + 1)
    assert 1000 - found == logistic(-margin_milli)
    assert math.isclose(1000 / (1 + math.exp(-margin_milli / 1000)), found, abs_tol=3)


@given(st.integers(0, 1000), st.integers(0, 3000), st.integers(0, 1000))
def test_score_is_in_range(coverage: int, missing: int, similarity_milli: int) -> None:
    features = Features(coverage=coverage, numbers_missing=missing)

    assert all(
        0 <= predict(model, features, similarity_milli=similarity_milli) <= 1000 for model in (shipped_models().words, GroundingModel())
    )


def test_identity_is_that_of_the_numbers_and_not_of_the_basis() -> None:
    assert GroundingModel(basis="a").identity == GroundingModel(basis="b").identity
    assert 3 == len({GroundingModel().identity, GroundingModel(intercept=1).identity, GroundingModel(threshold_milli=1).identity})


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"{", "fit them again"),
        (b"\xff", "fit them again"),
        (with_words(version=2), "fit them again"),
        (with_words(threshold_milli=0), "fit them again"),
        (with_words(weights={"coverage": 1 << 60}), "fit them again"),
        (with_words(surprise=1), "fit them again"),
        (with_words(weights={"luck": 1}), "'luck' is not one of coverage"),
    ],
)
def test_file_that_holds_no_models_is_refused(content: bytes, problem: str) -> None:
    with pytest.raises(InvalidFieldError, match=problem):
        read_models(content)
