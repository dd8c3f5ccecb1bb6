"""How likely a fragment is relevant: how likely the base answers the question at all, times how likely this fragment then does.

Relevance within one answer is relative: the best of a bad lot has 1. Confidence compares across questions and bases. Both factors are
logistic curves over features of the candidates: how near the nearest is and how far ahead of the rest, and how a fragment stands out among
them. None depends on how many fragments were asked for. tools/fit_confidence.py fits the coefficients on judged sets, one corpus left out
at a time (docs/ranking.md has the figures). Integers throughout: coefficients and features are at 2^-16, the result is in millionths.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.decoding import decode_json
from evidentia.ranking.fusion import ONE
from evidentia.ranking.signals import decay

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.contracts.receipts import ConfidenceCalibration
    from evidentia.contracts.search import LegScores

FEATURE_BITS: Final = 16
_ONE: Final = 1 << FEATURE_BITS
_MILLION: Final = 1_000_000
_STEEPEST: Final = 20 * _ONE
"""Beyond this the curve is flat to a millionth."""
_WORDS_PERCENT: Final = 52
"""What words weigh in the order that places are counted in, as in linear fusion."""
_TENTH, _FAR = 10, 50
"""Ranks whose scores show the shape of the candidates' scores."""
_NO_VECTOR: Final = -(1 << 62)
"""Stands for the score of a candidate without a vector: below any that there is."""
_LOG_BITS: Final = 62
_LN_2: Final = 45_426
"""The natural logarithm of 2, at 2^-16."""


class ConfidenceModel(msgspec.Struct, frozen=True, kw_only=True):
    """The first generation, for receipts of its time: coefficients for words alone, for vectors alone, and for both."""

    basis: str
    """What it was fitted on."""
    words: tuple[int, int]
    vectors: tuple[int, int]
    both: tuple[int, int, int, int]


class LegModel(msgspec.Struct, frozen=True, kw_only=True):
    """The coefficients of both factors by feature, each with its intercept under that name."""

    question: Mapping[str, int]
    fragment: Mapping[str, int]


class FeatureModel(msgspec.Struct, frozen=True, kw_only=True):
    """The second generation: a model for each choice of legs that took part."""

    basis: str
    words: LegModel
    vectors: LegModel
    both: LegModel


class ShippedModels(msgspec.Struct, frozen=True, kw_only=True):
    """Both generations, as they come with the package."""

    first: ConfidenceModel
    second: FeatureModel


def confidence(model: ConfidenceModel, *, words: int | None, cosine: int | None) -> int:
    """Return a probability in millionths; `words` is the share of the attainable score and `cosine` the nearness, at 2^-16."""
    if words is not None and cosine is not None:
        constant, by_words, by_cosine, jointly = model.both
        total = constant * _ONE + by_words * words + by_cosine * cosine + jointly * (words * cosine >> FEATURE_BITS)
    elif words is not None:
        total = model.words[0] * _ONE + model.words[1] * words
    elif cosine is not None:
        total = model.vectors[0] * _ONE + model.vectors[1] * cosine
    else:
        return 0
    return _logistic(total >> FEATURE_BITS)


@lru_cache(maxsize=1)
def shipped_models() -> ShippedModels:
    """Return the models that come with the package."""
    return decode_json((files("evidentia.ranking") / "confidence.json").read_bytes(), ShippedModels)


INTERCEPT: Final = "intercept"
QUESTION_FEATURES: Final = (
    "terms",
    "best_attained",
    "lead_of_best",
    "nearest",
    "lead_of_nearest",
    "distance_of_nearest",
    "tenth",
    "agreement",
)
"""What is the same for all candidates of a question."""
FEATURES: Final = (
    *QUESTION_FEATURES,
    "document_place",
    "place",
    "is_first_of_a_leg",
    "words_of_best",
    "words_attained",
    "lead_of_words",
    "cosine",
    "lead_of_cosine",
    "distance_of_cosine",
    "behind",
    "ahead",
    "siblings",
)
"""What a model may weigh, in the order of `CandidateFeatures.row`."""
_PLACE: Final = {name: place for place, name in enumerate(FEATURES)}


class CandidateFeatures:
    """The features of the candidates of one question. What they share is worked out once; nothing here looks beyond the candidates.

    `legs` and `documents` are in one order, ties being decided by it. Where there are fewer candidates than a rank asks for, its score
    is 0: whatever is not there has no words of the question and is near nothing.
    """

    def __init__(self, legs: Sequence[LegScores], documents: Sequence[str], *, attainable: int, score_bits: int, terms: int) -> None:
        # Every candidate of every request comes through here: plain lists, and scores stay in their own units until a row is asked for.
        self._documents = documents
        self._attainable = max(1, attainable)
        self._bits = score_bits
        self._terms = _log2(1 + terms)
        self._words = words = [leg.lexical for leg in legs]
        self._near = near = [_NO_VECTOR if leg.dense is None else leg.dense for leg in legs]
        by_words = sorted(range(len(legs)), key=words.__getitem__, reverse=True)
        by_vectors = sorted(range(len(legs)), key=near.__getitem__, reverse=True)
        self.has_words = bool(by_words) and words[by_words[0]] > 0
        self.has_vectors = bool(by_vectors) and near[by_vectors[0]] != _NO_VECTOR
        self._best_words = max(1, words[by_words[0]]) if by_words else 1
        self._tenth_words = max(0, words[by_words[_TENTH - 1]]) if len(by_words) >= _TENTH else 0
        self._ranked_near = [max(0, near[by_vectors[rank - 1]]) if len(by_vectors) >= rank else 0 for rank in (1, _TENTH, _FAR)]
        self._nearest, self._tenth_near, self._far = map(self._cosine, self._ranked_near)
        leading = ((by_words, self.has_words), (by_vectors, self.has_vectors))
        self._firsts = [documents[order[0]] for order, takes_part in leading if takes_part]
        is_hybrid = self.has_words and self.has_vectors
        self._agreement = len({*by_words[:_TENTH]}.intersection(by_vectors[:_TENTH])) * _ONE // _TENTH if is_hybrid else 0
        self._joint = joint = self._joined()
        self._order = order = sorted(range(len(legs)), key=joint.__getitem__, reverse=True)
        self._document_order = list(dict.fromkeys([documents[each] for each in order]))
        self._leaders = [documents[each] for each in order[:_TENTH]]
        self._best = joint[order[0]] if order else 0
        self._second = next((joint[each] for each in order if documents[each] != self._document_order[0]), 0)
        self._tenth = joint[order[_TENTH - 1]] if len(order) >= _TENTH else 0

    @cached_property
    def question_row(self) -> tuple[int, ...]:
        """Return the features that all candidates share, as `QUESTION_FEATURES` names them, at 2^-16."""
        best = self._best_words if self.has_words else 0
        return (
            self._terms,
            min(_ONE, best * _ONE // self._attainable),
            # Beside what is attainable: a lead among words that say little, over a base that lacks the others, is no sign of an answer.
            min(_ONE, (best - self._tenth_words) * _ONE // self._attainable),
            self._nearest,
            self._nearest - self._tenth_near,
            self._nearest - self._far,
            self._tenth,
            self._agreement,
        )

    def row(self, index: int) -> tuple[int, ...]:
        """Return the features of one candidate, as `FEATURES` names them, at 2^-16."""
        document, words = self._documents[index], max(0, self._words[index])
        has_vector = self._near[index] != _NO_VECTOR
        near = self._cosine(self._near[index]) if has_vector else 0
        document_place = self._document_order.index(document) + 1
        ahead = self._joint[index] - (self._second if document_place == 1 else self._best)
        return (
            *self.question_row,
            _log2(document_place),
            _log2(self._order.index(index) + 1),
            _ONE if document in self._firsts else 0,
            words * _ONE // self._best_words,
            min(_ONE, words * _ONE // self._attainable),
            (words - self._tenth_words) * _ONE // self._best_words,
            near,
            near - self._tenth_near if has_vector else 0,
            near - self._far if has_vector else 0,
            min(0, ahead),
            max(0, ahead),
            _log2(1 + self._leaders.count(document)),
        )

    def confidence(self, model: FeatureModel, index: int, calibration: ConfidenceCalibration | None = None) -> int:
        """Return the probability that a candidate is relevant, in millionths; a calibration of the base moves it."""
        is_near = self._near[index] != _NO_VECTOR
        if not (is_near or self.has_words):
            return 0
        weights = model.words if not is_near else model.both if self.has_words else model.vectors
        answerable = _logistic(_weighed(weights.question, self.question_row))
        return calibrated(answerable * _logistic(_weighed(weights.fragment, self.row(index))) // _MILLION, calibration)

    def _cosine(self, score: int) -> int:
        return min(_ONE, max(0, score) * _ONE >> self._bits)

    def _joined(self) -> list[int]:
        """Return one score for each candidate, from 0 to 1 at 2^-16: its words beside the best, its nearness beside the nearest."""
        best, (nearest, _, far) = self._best_words, self._ranked_near
        if not self.has_vectors:
            return [words * _ONE // best for words in self._words]
        share = _WORDS_PERCENT if self.has_words else 0
        by_words, by_vectors, whole = share * _ONE, (100 - share) * _ONE, 100 * best
        width = 100 * max(1, nearest - far)
        return [
            by_words * words // whole + by_vectors * (near - far) // width
            if near > far
            else words * _ONE // best
            if near == _NO_VECTOR
            else by_words * words // whole
            for words, near in zip(self._words, self._near, strict=True)
        ]


def calibrated(chance: int, calibration: ConfidenceCalibration | None) -> int:
    """Return a probability in millionths, moved along the logistic curve by what a base's own judged questions say."""
    if calibration is None:
        return chance
    chance = max(1, min(_MILLION - 1, chance))
    point = (_log2(chance) - _log2(_MILLION - chance)) * _LN_2 >> FEATURE_BITS
    return _logistic((point * calibration.scale >> FEATURE_BITS) + calibration.shift)


def _weighed(weights: Mapping[str, int], row: Sequence[int]) -> int:
    """Return the point on the logistic curve that features come to, at 2^-16."""
    total = 0
    for name, weight in weights.items():
        total += weight * (_ONE if name == INTERCEPT else row[_PLACE[name]])
    return total >> FEATURE_BITS


def _logistic(point: int) -> int:
    """Return 1 / (1 + e^-x) in millionths for x at 2^-16."""
    point = max(-_STEEPEST, min(_STEEPEST, point))
    share = _MILLION * ONE // (ONE + decay(abs(point), _ONE))
    return share if point >= 0 else _MILLION - share


@lru_cache(maxsize=1 << 12)
def _log2(value: int) -> int:
    """Return the logarithm of a count from 1 on, rounded down to 2^-16, by squaring: every machine finds the same."""
    whole = value.bit_length() - 1
    mantissa = value << _LOG_BITS - whole if whole <= _LOG_BITS else value >> whole - _LOG_BITS
    fraction = 0
    for _ in range(FEATURE_BITS):
        mantissa = mantissa * mantissa >> _LOG_BITS
        is_above = mantissa >> _LOG_BITS + 1
        mantissa >>= is_above
        fraction = fraction << 1 | is_above
    return whole << FEATURE_BITS | fraction
