"""The words' share by question: what is seen of a question, and a logistic curve in integers."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.search import LexicalQuery
from evidentia.ranking.query_weights import (
    FEATURES,
    LARGEST_COUNT,
    QueryFeatures,
    QueryWeightModel,
    lexical_milli,
    query_features,
    read_model,
)

UNIT = 1 << 16
COUNTS = st.integers(0, LARGEST_COUNT)
RARITIES = st.integers(0, 22 * UNIT)
QUESTIONS = st.builds(
    QueryFeatures,
    terms=COUNTS,
    words=COUNTS,
    phrases=COUNTS,
    identifiers=COUNTS,
    is_question=st.integers(0, 1),
    rarest=RARITIES,
    mean_rarity=RARITIES,
)
COEFFICIENTS = st.integers(-4 * UNIT, 4 * UNIT)
MODELS = st.builds(QueryWeightModel, intercept=COEFFICIENTS, coefficients=st.dictionaries(st.sampled_from(FEATURES), COEFFICIENTS))


def test_a_question_is_described_by_its_words_phrases_names_and_rarities() -> None:
    query = LexicalQuery(terms={"keys": 2, "rotate": 1, "rotate_keys": 1}, phrases=(("rotate", "keys"),), expansions={"turn": 100})
    features = query_features(query, 'when does rotate_keys("rotate keys") run?  ', {"keys": 3, "rotate": 6, "turn": 99}, identifiers=1)

    assert QueryFeatures(terms=3, words=5, phrases=1, identifiers=1, is_question=1, rarest=6, mean_rarity=4) == features


def test_an_empty_question_has_no_features() -> None:
    assert QueryFeatures() == query_features(LexicalQuery(terms={}), "", {}, identifiers=0)


def test_counts_are_capped() -> None:
    text = "x_1 " * 500
    features = query_features(LexicalQuery(terms={f"t{index}": 1 for index in range(500)}), text, {}, identifiers=500)

    assert (LARGEST_COUNT,) * 3 == (features.terms, features.words, features.identifiers)


@given(st.text(max_size=200))
def test_any_text_can_be_described(text: str) -> None:
    features = query_features(LexicalQuery(terms={}), text, {}, identifiers=len(text))

    assert features.words <= LARGEST_COUNT
    assert features.identifiers == min(len(text), LARGEST_COUNT)


@given(QUESTIONS)
def test_a_model_without_coefficients_weighs_both_alike(features: QueryFeatures) -> None:
    assert 500 == lexical_milli(features, QueryWeightModel())


@pytest.mark.parametrize(
    ("model", "milli"),
    [
        (QueryWeightModel(intercept=UNIT), 731),
        (QueryWeightModel(intercept=-UNIT), 269),
        (QueryWeightModel(coefficients={"identifiers": UNIT // 2}), 731),
        (QueryWeightModel(coefficients={"rarest": UNIT // 4}), 731),
        (QueryWeightModel(intercept=UNIT, coefficients={"terms": -UNIT // 5}), 500),
        (QueryWeightModel(intercept=50 * UNIT), 900),
        (QueryWeightModel(intercept=-50 * UNIT), 100),
    ],
)
def test_the_share_is_logistic_and_clamped(model: QueryWeightModel, milli: int) -> None:
    assert milli == lexical_milli(QueryFeatures(terms=5, identifiers=2, rarest=4 * UNIT), model)


@given(QUESTIONS, MODELS)
def test_the_share_is_the_curve_within_a_thousandth(features: QueryFeatures, model: QueryWeightModel) -> None:
    point = model.intercept / UNIT
    for name, coefficient in model.coefficients.items():
        point += coefficient / UNIT * getattr(features, name) / (UNIT if name in {"rarest", "mean_rarity"} else 1)
    exact = 1000 / (1 + math.exp(-max(-50.0, min(50.0, point))))

    assert abs(max(100.0, min(900.0, exact)) - lexical_milli(features, model)) <= 0.51


@given(QUESTIONS, MODELS, st.sampled_from(FEATURES), st.integers(0, UNIT))
def test_a_larger_coefficient_never_lowers_the_share(features: QueryFeatures, model: QueryWeightModel, name: str, more: int) -> None:
    raised = {**model.coefficients, name: model.coefficients.get(name, 0) + more}

    assert lexical_milli(features, model) <= lexical_milli(features, msgspec.structs.replace(model, coefficients=raised))


@given(MODELS, QUESTIONS)
def test_a_model_is_read_as_it_was_written_and_ignores_the_order_of_names(model: QueryWeightModel, features: QueryFeatures) -> None:
    turned = msgspec.structs.replace(model, coefficients=dict(reversed(model.coefficients.items())))

    assert model == read_model(msgspec.json.encode(model))
    assert lexical_milli(features, model) == lexical_milli(features, turned)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"intercept": 0.5}',
        b'{"version": 2}',
        b'{"slope": 1}',
        b'{"coefficients": {"moon": 1}}',
        b'{"intercept": 1e30}',
        b"\xff",
    ],
)
def test_a_model_that_makes_no_sense_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidFieldError, match="query_weights"):
        read_model(content)
