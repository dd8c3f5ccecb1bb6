"""How likely a fragment is relevant, from what both legs say of it in absolute terms.

Relevance within one answer is relative: the best of a bad lot has 1. Confidence compares across questions, so it uses
the cosine itself and the share of the attainable score that the words reached, through a logistic curve whose
coefficients were fitted on judged data (tools/fit_ranking.py; docs/ranking.md has the reliability table). Integers
throughout: coefficients and features are at 2^-16, the result is in millionths.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

import msgspec

from evidentia.contracts.decoding import decode_json
from evidentia.ranking.fusion import ONE
from evidentia.ranking.signals import decay

FEATURE_BITS = 16
_ONE = 1 << FEATURE_BITS
_MILLION = 1_000_000
_STEEPEST = 20 * _ONE
"""Beyond this the curve is flat to a millionth."""


class ConfidenceModel(msgspec.Struct, frozen=True, kw_only=True):
    """Coefficients at 2^-16: for words alone, for vectors alone, and for both."""

    basis: str
    """What it was fitted on."""
    words: tuple[int, int]
    vectors: tuple[int, int]
    both: tuple[int, int, int, int]


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
def shipped_model() -> ConfidenceModel:
    """Return the model that comes with the package."""
    return decode_json((files("evidentia.ranking") / "confidence.json").read_bytes(), ConfidenceModel)


def _logistic(point: int) -> int:
    """Return 1 / (1 + e^-x) in millionths for x at 2^-16."""
    point = max(-_STEEPEST, min(_STEEPEST, point))
    share = _MILLION * ONE // (ONE + decay(abs(point), _ONE))
    return share if point >= 0 else _MILLION - share
