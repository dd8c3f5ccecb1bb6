"""Scores from a fitted model: integers in, integers out, the same on every call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from evidentia.backends.lightgbm.model_file import SCORE_BITS, check_features, parse_model, read_model
from evidentia.contracts.errors import InvalidFieldError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import ModuleType
    from typing import Self

    from numpy.typing import NDArray

    from evidentia.backends.lightgbm.model_file import ModelFile

LARGEST_SCORE: Final = 1 << 15
"""Scores beyond this are counted as this, so that a fixed-point score has 32 bits at most."""

_LARGEST_EXACT: Final = 1 << 53


class LightGbmMerger:
    """Implements `Merger` with one model, on one thread. Thread safe: a model keeps nothing between two calls."""

    def __init__(self, path: Path, *, features: Sequence[str], fitted_on: str) -> None:
        self._open(read_model(path), features=features, fitted_on=fitted_on)

    @classmethod
    def of_bytes(cls, content: bytes, *, features: Sequence[str], fitted_on: str) -> Self:
        """Return the merger of a model file that has been read already."""
        merger = cls.__new__(cls)
        merger._open(parse_model(content), features=features, fitted_on=fitted_on)  # noqa: SLF001 -- a second way to construct
        return merger

    @property
    def identity(self) -> str:
        """Return the hash of the model file, which changes with every byte of it."""
        return self._identity

    def merge(self, features: Sequence[Sequence[int]]) -> Sequence[int]:
        """Return one fixed-point score (2^-16) per candidate, in the order given; no candidate has an influence on another."""
        if not features:
            return ()
        scores: NDArray[np.float64] = np.asarray(
            self._booster.predict(to_matrix(features, width=self._width), raw_score=True, num_threads=1)
        )
        if not np.isfinite(scores).all():
            raise InvalidFieldError("merging_model", "it gives scores that are no finite numbers; fit the model again")
        bounded = np.clip(scores, -LARGEST_SCORE, LARGEST_SCORE)
        return tuple(int(score) for score in np.rint(bounded * (1 << SCORE_BITS)))

    def _open(self, model: ModelFile, *, features: Sequence[str], fitted_on: str) -> None:
        check_features(model, features=features, fitted_on=fitted_on)
        lightgbm = import_lightgbm()
        try:
            self._booster = lightgbm.Booster(model_str=model.text)
        except lightgbm.basic.LightGBMError as error:
            raise InvalidFieldError("merging_model", "LightGBM cannot read it; fit the model again") from error
        self._width = len(features)
        self._identity = f"lightgbm@{model.sha256}"


def to_matrix(features: Sequence[Sequence[int]], *, width: int) -> NDArray[np.float64]:
    """Return rows of features as LightGBM reads them, refusing what it would read differently."""
    for place, row in enumerate(features):
        if len(row) != width:
            raise InvalidFieldError(f"features[{place}]", f"{len(row)} values, where the model takes {width}")
        if any(abs(value) > _LARGEST_EXACT for value in row):
            raise InvalidFieldError(f"features[{place}]", "a value is beyond 2^53")
    return np.array(features, dtype=np.float64)


def import_lightgbm() -> ModuleType:
    """Return LightGBM, or say which extra brings it."""
    try:
        import lightgbm
    except ImportError as error:
        raise MissingExtraError("learned", needed_for="a learned merging model") from error
    return lightgbm
