"""Scores from a fitted model: integers in, integers out, the same on every call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

import msgspec
import numpy as np

from evidentia.contracts.canonical import sha256_hex
from evidentia.contracts.errors import InvalidFieldError, MissingExtraError
from evidentia.contracts.ids import Sha256
from evidentia.contracts.ports import Merger

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import ModuleType

    from numpy.typing import NDArray


LARGEST_SCORE: Final = 1 << 15
"""Scores beyond this are counted as this, so that a fixed-point score has 32 bits at most."""

_LARGEST_EXACT: Final = 1 << 53


class LightGbmMerger(Merger):
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


# --- the file of a fitted model: a text model of LightGBM with two lines of our own, which LightGBM passes over ---
# The lines say on which features the model was fitted, and the hash of everything else: bytes that were changed by accident never reach
# LightGBM, whose parser does not survive them all.

SCORE_BITS: Final = 16

_FIRST_LINE: Final = b"tree\n"
_FEATURES: Final = b"evidentia_features="
_HASH: Final = b"evidentia_sha256="
_NAMES: Final = b"feature_names="


class ModelFile(msgspec.Struct, frozen=True, kw_only=True):
    """A model whose bytes are those that were fitted; `text` is what LightGBM reads."""

    text: str
    features: tuple[str, ...]
    fitted_on: str
    """The identity of the features: their names do not say what they mean."""
    sha256: Sha256


def stamp(text: str, *, fitted_on: str) -> bytes:
    """Return the file of a text model that was fitted on features of this identity."""
    content = text.encode()
    if not fitted_on.isascii() or not fitted_on.isprintable() or "=" in fitted_on or not fitted_on:
        raise InvalidFieldError("fitted_on", "it is no line of printable ASCII characters without '='")
    if not content.startswith(_FIRST_LINE):
        raise _unusable("it does not begin like a text model of LightGBM")
    stamped = _FEATURES + fitted_on.encode() + b"\n" + content.removeprefix(_FIRST_LINE)
    return _FIRST_LINE + _HASH + sha256_hex(stamped).encode() + b"\n" + stamped


def read_model(path: Path) -> ModelFile:
    """Read a model file and check its hash."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidFieldError("merging_model", f"'{path}' cannot be read ({error.strerror}); check the path") from error
    return parse_model(content)


def parse_model(content: bytes) -> ModelFile:
    """Check the bytes of a model file and take it apart."""
    head, _, stamped = content.partition(b"\n" + _FEATURES)
    stamped = _FEATURES + stamped
    if not head.startswith(_FIRST_LINE + _HASH):
        raise _unusable("it is no file that Evidentia fitted")
    if head.removeprefix(_FIRST_LINE + _HASH) != sha256_hex(stamped).encode():
        raise _unusable("its bytes are not those that were fitted")
    fitted_on, _, rest = stamped.removeprefix(_FEATURES).partition(b"\n")
    names = next((line.removeprefix(_NAMES) for line in rest.split(b"\n") if line.startswith(_NAMES)), b"")
    try:
        text = (_FIRST_LINE + rest).decode()
        return ModelFile(text=text, features=tuple(names.decode().split()), fitted_on=fitted_on.decode(), sha256=sha256_hex(content))
    except ValueError as error:
        raise _unusable("it is no file that Evidentia fitted") from error


def check_features(model: ModelFile, *, features: Sequence[str], fitted_on: str) -> None:
    """Refuse a model that was fitted on other features than those it will be shown."""
    if model.fitted_on != fitted_on:
        raise _unusable(f"it was fitted on the features '{model.fitted_on}', and this Evidentia has '{fitted_on}'")
    if model.features != tuple(features):
        raise _unusable(f"its columns are not the {len(features)} of '{fitted_on}'")


def _unusable(problem: str) -> InvalidFieldError:
    return InvalidFieldError("merging_model", f"{problem}; fit the model again")
