"""Claims scored with an encoder that the caller gives: by its similarity alone, or as one more input beside the words.

The room has no clock, so a budget in milliseconds only says whether to begin; what bounds the work is the number of windows.
"""

from __future__ import annotations

from math import isqrt
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from evidentia.contracts.grounding import GroundingReason, GroundingScore, SupportingSentence
from evidentia.contracts.ports import ClaimScorer, Encoder, SupportsBatches
from evidentia.grounding.claim_features import ONE, WIDEST, Features
from evidentia.grounding.score import GroundingModel, predict, score_claims, shipped_models
from evidentia.grounding.scorer_results import checked_texts, outcome, unscored
from evidentia.text.sentences import split_sentences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


MAX_WINDOWS: Final = 64
"""Windows of one passage that are encoded; what stands behind them is not compared."""

_STRIDE: Final = 2
_MAX_WINDOW_LENGTH: Final = 8_000
_NO_TIME: Final = "no time"


class _Encoded(NamedTuple):
    passage: int
    start: int
    end: int
    vector: NDArray[np.int32]


class SimilarityScorer(ClaimScorer):
    """Implements `ClaimScorer` by the cosine of a claim and the nearest window of a passage. As thread safe as the encoder.

    Similar is not the same as supported: a claim and its contrary are near each other. `EncodedWordScorer` sees that, this one does not.
    """

    def __init__(self, encoder: Encoder, *, model: GroundingModel | None = None) -> None:
        self._encoder = encoder
        self._model = shipped_models().similarity if model is None else model
        self._identity = f"evidentia-similarity@{self._model.identity}:{encoder.identity.model}"

    @property
    def identity(self) -> str:
        """Return the hashes of the model and of the encoder."""
        return self._identity

    def score(self, claims: Sequence[str], passages: Sequence[str], *, budget_ms: int) -> Sequence[GroundingScore]:
        """Return one score per claim, in order; every window is encoded once for all claims."""
        texts, sources = checked_texts("claims", claims), checked_texts("passages", passages)
        if budget_ms <= 0:
            return tuple(unscored(text, identity=self._identity, about=(_NO_TIME,)) for text in texts)
        windows = self._encode(sources) if texts else []
        return tuple(self._score(text, sources, windows) for text in texts)

    def nearest(self, claim: str, passages: Sequence[str]) -> int:
        """Return the cosine, in thousandths, of a claim and the nearest window of any passage; 0 without one."""
        vector = self._encoder.encode_query(claim)
        return max((cosine_milli(vector, window.vector) for window in self._encode(passages)), default=0)

    def _encode(self, passages: Sequence[str]) -> list[_Encoded]:
        spans = [(place, *span) for place, text in enumerate(passages) for span in _windows(text)]
        vectors = encode_all(self._encoder, [passages[place][start:end][:_MAX_WINDOW_LENGTH] for place, start, end in spans])
        return [_Encoded(*span, vector) for span, vector in zip(spans, vectors, strict=True)]

    def _score(self, claim: str, passages: Sequence[str], windows: Sequence[_Encoded]) -> GroundingScore:
        if not windows:
            return unscored(claim, identity=self._identity, reason=GroundingReason.NO_PASSAGES)
        if not claim.strip():
            return unscored(claim, identity=self._identity, about=("no words",))
        vector = self._encoder.encode_query(claim)
        nearest: dict[int, tuple[int, _Encoded]] = {}
        for window in windows:
            near = cosine_milli(vector, window.vector)
            if window.passage not in nearest or near > nearest[window.passage][0]:
                nearest[window.passage] = (near, window)
        sentences = [_sentence(window, passages, score=self._predict(near)) for near, window in nearest.values()]
        return outcome(claim, sentences, threshold_milli=self._model.threshold_milli, identity=self._identity)

    def _predict(self, near: int) -> int:
        return predict(self._model, Features(), similarity_milli=near)


class EncodedWordScorer(ClaimScorer):
    """Implements `ClaimScorer` with words and, as one more input, the cosine of the claim and the window they lead to.

    One window is encoded for each claim and passage. As thread safe as the encoder.
    """

    def __init__(self, encoder: Encoder, *, model: GroundingModel | None = None) -> None:
        self._encoder = encoder
        self._model = shipped_models().with_encoder if model is None else model
        self._identity = f"evidentia-words-encoded@{self._model.identity}:{encoder.identity.model}"

    @property
    def identity(self) -> str:
        """Return the hashes of the model and of the encoder."""
        return self._identity

    def score(self, claims: Sequence[str], passages: Sequence[str], *, budget_ms: int) -> Sequence[GroundingScore]:
        """Return one score per claim, in order."""
        if budget_ms <= 0:
            return tuple(unscored(text, identity=self._identity, about=(_NO_TIME,)) for text in checked_texts("claims", claims))
        vectors: dict[str, NDArray[np.int32]] = {}

        def similarity(claim: str, window: str) -> int:
            if claim not in vectors:
                vectors[claim] = self._encoder.encode_query(claim)
            return cosine_milli(vectors[claim], self._encoder.encode_document(window[:_MAX_WINDOW_LENGTH]))

        return score_claims(claims, passages, model=self._model, identity=self._identity, similarity=similarity)


def encode_all(encoder: Encoder, texts: Sequence[str]) -> Sequence[NDArray[np.int32]]:
    """Return one vector per text, in one call where the encoder can."""
    if isinstance(encoder, SupportsBatches) and texts:
        return encoder.encode_documents(texts)
    return [encoder.encode_document(text) for text in texts]


def cosine_milli(left: NDArray[np.int32], right: NDArray[np.int32]) -> int:
    """Return the cosine of two vectors in thousandths, rounded down; 0 where one has no length."""
    dot, left_square, right_square = (
        int(np.dot(first.astype(np.int64), second.astype(np.int64))) for first, second in ((left, right), (left, left), (right, right))
    )
    length = isqrt(left_square * right_square)
    return min(ONE, max(-ONE, dot * ONE // length)) if length else 0


def _windows(text: str) -> list[tuple[int, int]]:
    """Return windows of three sentences, every second sentence beginning one."""
    spans = split_sentences(text)
    starts = range(0, len(spans), _STRIDE)[:MAX_WINDOWS]
    return [(spans[first].start, spans[min(len(spans), first + WIDEST) - 1].end) for first in starts]


def _sentence(window: _Encoded, passages: Sequence[str], *, score: int) -> SupportingSentence:
    text = passages[window.passage][window.start : window.end]
    return SupportingSentence(passage=window.passage, start=window.start, end=window.end, text=text, score_milli=score)
