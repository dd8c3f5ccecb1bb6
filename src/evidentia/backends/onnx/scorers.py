"""What models in a user's folder that score a pair of texts have in common: which output is read, and what the folder says of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import msgspec

from evidentia.backends.onnx.folder import MODEL, read_file
from evidentia.contracts.errors import InvalidFieldError

if TYPE_CHECKING:
    from pathlib import Path

    from evidentia.backends.onnx.session import TextModel

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
            return msgspec.json.decode(read_file(self.path, name), type=kind)
        except ValueError as error:
            problem = str(error)
            raise self.unusable(f"in its '{name}', {problem[:1].lower()}{problem[1:]}") from error

    def unusable(self, problem: str) -> InvalidFieldError:
        """Return the error that says why the folder cannot be used."""
        return InvalidFieldError(self.setting, f"'{self.path}' cannot be used: {problem}")
