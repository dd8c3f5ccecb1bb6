"""A model's folder: which files it holds, what its settings say, and whether the bytes are those that were named.

Nothing here runs a model or imports a library that does.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple, TypeVar

import msgspec

from evidentia.contracts.canonical import sha256_hex
from evidentia.contracts.decoding import decode_json
from evidentia.contracts.errors import InvalidFieldError, ModelDamagedError
from evidentia.contracts.ids import Sha256

if TYPE_CHECKING:
    from evidentia.backends.onnx.text_model import TextModel


MODEL: Final = "model.onnx"
TOKENIZER: Final = "tokenizer.json"
SETTINGS: Final = "encoder.json"
MANIFEST: Final = "manifest.json"

Pooling = Literal["mean", "cls", "none"]


class EncoderSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `encoder.json` says of an encoder; every field has a default."""

    name: str = ""
    """For people; the folder's name by default."""
    max_tokens: Annotated[int, msgspec.Meta(ge=8, le=8192)] = 256
    """What goes beyond is cut off, the tokens that the tokenizer adds included in the count."""
    pooling: Pooling = "mean"
    """How states become a vector: their mean, the first one, or `none` when the graph gives a vector by itself."""
    query_prefix: str = ""
    document_prefix: str = ""
    normalise: bool = True
    """Whether vectors are scaled to length one."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What `manifest.json` says of the files beside it; fields for people are passed over."""

    dimension: Annotated[int, msgspec.Meta(ge=1)]
    files: dict[str, Sha256]


class EncoderFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder whose settings have been read; `dimension` is None when only the graph knows it."""

    path: Path
    settings: EncoderSettings
    model_hash: Sha256
    tokenizer_hash: Sha256
    dimension: int | None


def read_encoder_folder(path: Path) -> EncoderFolder:
    """Read settings and hashes; with a manifest the hashes are those it names, and the large files are not opened yet."""
    manifest = _read_manifest(path)
    if manifest is None:
        settings = _read_settings(path, content=_read_optional(path / SETTINGS))
        model_hash, tokenizer_hash = (sha256_hex(read_file(path, name)) for name in (MODEL, TOKENIZER))
        return EncoderFolder(path=path, settings=settings, model_hash=model_hash, tokenizer_hash=tokenizer_hash, dimension=None)
    content = read_named(path, SETTINGS, sha256=_named(manifest, path, SETTINGS))
    return EncoderFolder(
        path=path,
        settings=_read_settings(path, content=content),
        model_hash=_named(manifest, path, MODEL),
        tokenizer_hash=_named(manifest, path, TOKENIZER),
        dimension=manifest.dimension,
    )


def read_file(folder: Path, name: str) -> bytes:
    """Return a file of a folder, or say what is missing."""
    try:
        return (folder / name).read_bytes()
    except FileNotFoundError as error:
        raise unusable(folder, f"it has no '{name}'; a model's folder holds '{MODEL}' and '{TOKENIZER}'") from error
    except OSError as error:
        raise unusable(folder, f"its '{name}' cannot be read ({error.strerror}); check the permissions") from error


def read_named(folder: Path, name: str, *, sha256: Sha256) -> bytes:
    """Return a file whose hash is known, or refuse bytes with another one."""
    content = read_file(folder, name)
    if sha256_hex(content) != sha256:
        raise ModelDamagedError(str(folder / name), f"the sha256 of this model file is not '{sha256}'; install or copy its folder again")
    return content


def unusable(folder: Path, problem: str) -> InvalidFieldError:
    """Return the error for a folder that holds no model that can be used; who knows what the model is for names the setting."""
    return InvalidFieldError("model", f"'{folder}' cannot be used: {problem}")


def _read_manifest(folder: Path) -> Manifest | None:
    content = _read_optional(folder / MANIFEST)
    if content is None:
        return None
    try:
        return decode_json(content, Manifest)
    except ValueError as error:
        raise ModelDamagedError(str(folder / MANIFEST), f"{_in_lower_case(error)}; install or copy its folder again") from error


def _read_settings(folder: Path, *, content: bytes | None) -> EncoderSettings:
    if content is None:
        return EncoderSettings()
    try:
        return decode_json(content, EncoderSettings)
    except ValueError as error:
        raise unusable(folder, f"in its '{SETTINGS}', {_in_lower_case(error)}") from error


def _read_optional(path: Path) -> bytes | None:
    return read_file(path.parent, path.name) if path.exists() else None


def _named(manifest: Manifest, folder: Path, name: str) -> Sha256:
    if name not in manifest.files:
        raise ModelDamagedError(str(folder / MANIFEST), f"it names no '{name}'; install or copy its folder again")
    return manifest.files[name]


def _in_lower_case(error: ValueError) -> str:
    problem = str(error)
    return problem[:1].lower() + problem[1:]


# --- folders of models that score a pair of texts ---

Settings = TypeVar("Settings", bound=msgspec.Struct)
USUAL_OUTPUT: Final = "logits"


class ScorerFolder(NamedTuple):
    """A folder with a model, and the setting that names it, for what is said of the folder."""

    path: Path
    setting: str

    def output_of(self, model: TextModel) -> str:
        """Return the output of the usual name, else the only one."""
        names = list(model.outputs)
        if USUAL_OUTPUT in names:
            return USUAL_OUTPUT
        if len(names) != 1:
            raise self.unusable(f"its '{MODEL}' gives {len(names)} outputs, none of them called '{USUAL_OUTPUT}'; export it with one")
        return names[0]

    def settings(self, name: str, kind: type[Settings]) -> Settings:
        """Return what the folder says of itself; the defaults when it says nothing."""
        if not (self.path / name).exists():
            return kind()
        try:
            return decode_json(read_file(self.path, name), kind)
        except ValueError as error:
            problem = str(error)
            raise self.unusable(f"in its '{name}', {problem[:1].lower()}{problem[1:]}") from error

    def unusable(self, problem: str) -> InvalidFieldError:
        """Return the error that says why the folder cannot be used."""
        return InvalidFieldError(self.setting, f"'{self.path}' cannot be used: {problem}")
