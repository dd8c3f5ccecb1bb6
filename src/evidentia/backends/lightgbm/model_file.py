"""The file of a fitted model: a text model of LightGBM with two lines of our own, which LightGBM passes over.

The lines say on which features the model was fitted, and the hash of everything else: bytes that were
changed by accident never reach LightGBM, whose parser does not survive them all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.canonical import sha256_hex
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.ids import Sha256

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

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
