"""The fitted model: a logistic regression over the features, with integer weights that are data. Nothing here fits it."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Annotated, Final, Literal

import msgspec

from evidentia.contracts.canonical import hash_record
from evidentia.contracts.errors import InvalidFieldError
from evidentia.grounding.features import Features
from evidentia.grounding.windows import ONE

SIMILARITY: Final = "similarity"
"""The one input that is no feature of the words: the encoder's, where there is one."""
INPUTS: Final = (*Features.__struct_fields__, SIMILARITY)
"""The names a model may weigh."""

_LARGEST_WEIGHT: Final = 1 << 24
_FILE: Final = "weights.json"
_STEP: Final = 250
_LOGISTIC: Final = (
    500, 562, 622, 679, 731, 777, 818, 852, 881, 905, 924, 940, 953, 963, 971, 977, 982, 986, 989, 991, 993, 995, 996, 997, 998,
)  # fmt: skip
"""1,000 / (1 + exp(-x)) for x from 0 to 6 in quarters; between them the line is straight, beyond them it is flat."""

Weight = Annotated[int, msgspec.Meta(ge=-_LARGEST_WEIGHT, le=_LARGEST_WEIGHT)]


class GroundingModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """ln(supported / not) = intercept + the sum of weight * input, all in thousandths."""

    version: Literal[1] = 1
    basis: str = ""
    """What it was fitted on."""
    intercept: Weight = 0
    weights: dict[str, Weight] = {}
    threshold_milli: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 500
    """The least score of a claim that is supported."""

    @property
    def identity(self) -> str:
        """Return a hash that changes with every number of the model."""
        deciding = {"version": self.version, "intercept": self.intercept, "weights": self.weights, "threshold": self.threshold_milli}
        return hash_record(deciding)


class ShippedModels(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The models of the package: one over words, one over words and an encoder's similarity, one over similarity alone."""

    words: GroundingModel
    with_encoder: GroundingModel
    similarity: GroundingModel


def read_models(content: bytes) -> ShippedModels:
    """Return the models that a JSON file holds; one that weighs an unknown input is refused."""
    try:
        models = msgspec.json.decode(content, type=ShippedModels)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidFieldError("weights", f"the models cannot be read ({error}); fit them again") from error
    for model in (models.words, models.with_encoder, models.similarity):
        unknown = sorted(set(model.weights) - set(INPUTS))
        if unknown:
            raise InvalidFieldError("weights", f"'{unknown[0]}' is not one of {', '.join(INPUTS)}")
    return models


@cache
def shipped_models() -> ShippedModels:
    """Return the models that come with the package, as `tools/fit_grounding.py` wrote them."""
    return read_models(files("evidentia.grounding").joinpath(_FILE).read_bytes())


def predict(model: GroundingModel, features: Features, *, similarity_milli: int = 0) -> int:
    """Return the score in thousandths, 2 to 998."""
    margin = model.intercept * ONE
    for name, weight in model.weights.items():
        margin += weight * (similarity_milli if name == SIMILARITY else getattr(features, name))
    return logistic(margin // ONE)


def logistic(margin_milli: int) -> int:
    """Return 1,000 / (1 + exp(-margin)) from a table, so that it is the same on every machine."""
    if margin_milli < 0:
        return ONE - logistic(-margin_milli)
    step, rest = divmod(margin_milli, _STEP)
    if step >= len(_LOGISTIC) - 1:
        return _LOGISTIC[-1]
    low, high = _LOGISTIC[step : step + 2]
    return low + (high - low) * rest // _STEP
