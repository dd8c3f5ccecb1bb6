"""Scorers over an encoder that the caller gives: the nearest window decides, and words beside it see what it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.grounding import GroundingReason
from evidentia.contracts.ids import Sha256
from evidentia.contracts.vectors import VectorIdentity
from evidentia.grounding.score import GroundingModel
from evidentia.grounding.similarity import MAX_WINDOWS, EncodedWordScorer, SimilarityScorer, cosine_milli

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

COLOURS = ("red", "green", "blue", "night")
STEEP = GroundingModel(intercept=-5000, weights={"similarity": 10_000})
vectors = st.lists(st.integers(-(1 << 22), 1 << 22), min_size=4, max_size=4).map(lambda row: np.array(row, dtype=np.int32))


class ColourEncoder:
    """Counts colours; implements `Encoder` and `SupportsBatches`."""

    def __init__(self, model: str = "a" * 64) -> None:
        self.identity = VectorIdentity(model=Sha256(model), dimension=len(COLOURS), normalisation="none", name="colours")
        self.encoded: list[str] = []

    def encode_query(self, text: str) -> NDArray[np.int32]:
        return np.array([text.lower().count(colour) << 14 for colour in COLOURS], dtype=np.int32)

    def encode_document(self, text: str) -> NDArray[np.int32]:
        self.encoded.append(text)
        return self.encode_query(text)

    def encode_documents(self, texts: Sequence[str]) -> Sequence[NDArray[np.int32]]:
        return [self.encode_document(text) for text in texts]


def test_nearest_window_is_the_evidence() -> None:
    passages = ["Green. Green. Green. Green. Red. Red.", "Night."]
    (score,) = SimilarityScorer(ColourEncoder(), model=STEEP).score(["It is red."], passages, budget_ms=1)
    (evidence,) = score.evidence

    assert score.supported
    assert (0, "Red. Red.") == (evidence.passage, evidence.text)
    assert evidence.text == passages[0][evidence.start : evidence.end]
    assert 993 == score.score_milli  # a cosine of 1 gives 5 in log-odds


def test_far_passage_is_not_support() -> None:
    (score,) = SimilarityScorer(ColourEncoder(), model=STEEP).score(["It is red."], ["Night. Green."], budget_ms=1)

    assert (7, False) == (score.score_milli, score.supported)


def test_windows_are_encoded_once_for_all_claims_and_no_more_than_the_most() -> None:
    encoder = ColourEncoder()
    SimilarityScorer(encoder).score(["red", "green", "blue"], ["Red. " * 1000, "Blue."], budget_ms=1)

    assert MAX_WINDOWS + 1 == len(encoder.encoded)


def test_only_the_window_that_words_lead_to_is_encoded_beside_them() -> None:
    encoder = ColourEncoder()
    scores = EncodedWordScorer(encoder).score(["The house is red."], ["The dog is green. The house is red. It rains."], budget_ms=1)

    assert ["The house is red."] == encoder.encoded
    assert scores[0].supported


def test_words_see_a_number_that_similarity_does_not() -> None:
    passages = ["The red house has 12 rooms."]
    claims = ["The red house has 12 rooms.", "The red house has 90 rooms."]
    similar, encoded = (
        scorer.score(claims, passages, budget_ms=1) for scorer in (SimilarityScorer(ColourEncoder()), EncodedWordScorer(ColourEncoder()))
    )

    assert similar[0].score_milli == similar[1].score_milli
    assert encoded[0].score_milli > encoded[1].score_milli
    assert GroundingReason.NUMBER_MISMATCH in [note.reason for note in encoded[1].reasons]


@pytest.mark.parametrize("kind", [SimilarityScorer, EncodedWordScorer])
def test_without_time_or_passages_claims_are_unscored(kind: type[SimilarityScorer | EncodedWordScorer]) -> None:
    scorer = kind(ColourEncoder())
    (late,) = scorer.score(["red"], ["Red."], budget_ms=0)
    (bare,) = scorer.score(["red"], [" "], budget_ms=1)
    (blank,) = scorer.score([" "], ["Red."], budget_ms=1)

    assert [GroundingReason.UNSCORED, GroundingReason.NO_PASSAGES, GroundingReason.UNSCORED] == [
        score.reasons[0].reason for score in (late, bare, blank)
    ]
    assert not any(score.supported or score.score_milli for score in (late, bare, blank))
    assert () == tuple(scorer.score([], ["Red."], budget_ms=1))


@pytest.mark.parametrize("kind", [SimilarityScorer, EncodedWordScorer])
def test_identity_changes_with_the_encoder_and_the_model(kind: type[SimilarityScorer | EncodedWordScorer]) -> None:
    identities = [kind(ColourEncoder()), kind(ColourEncoder("b" * 64)), kind(ColourEncoder(), model=STEEP)]

    assert 3 == len({scorer.identity for scorer in identities})
    assert kind(ColourEncoder()).identity == identities[0].identity


@pytest.mark.parametrize("kind", [SimilarityScorer, EncodedWordScorer])
def test_wrong_types_are_refused(kind: type[SimilarityScorer | EncodedWordScorer]) -> None:
    with pytest.raises(InvalidFieldError, match="'passages'"):
        kind(ColourEncoder()).score(["red"], "text", budget_ms=1)


@given(vectors, vectors)
def test_cosine_is_exact_symmetric_and_in_range(left: NDArray[np.int32], right: NDArray[np.int32]) -> None:
    found = cosine_milli(left, right)

    assert -1000 <= found <= 1000
    assert found == cosine_milli(right, left)
    assert (1000 if left.any() else 0) == cosine_milli(left, left)
