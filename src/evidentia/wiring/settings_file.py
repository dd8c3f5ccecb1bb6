"""`evidentia.toml` to settings, with errors that name the file and the setting."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING

import msgspec

from evidentia.backends.embedded.records.database import database_path
from evidentia.contracts.decoding import convert
from evidentia.contracts.errors import BaseForbiddenError, InvalidFieldError, UnknownSettingError
from evidentia.contracts.settings import OutboundSettings, Settings
from evidentia.contracts.shapes import shape_fault

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


SETTINGS_NAME = "evidentia.toml"
_UNKNOWN = re.compile(r"unknown field `(?P<name>[^`]+)`")


def read_settings(directory: Path) -> Settings:
    """Return the settings of a base; those of a base without a file are the defaults."""
    path = directory / SETTINGS_NAME
    if not path.is_file():
        return Settings()
    try:
        stored = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidFieldError(SETTINGS_NAME, f"the file is not TOML: {error}") from error
    try:
        settings = convert(stored, Settings)
    except msgspec.ValidationError as error:
        raise _meaning(error) from error
    if settings.ingest.chunk_max_chars < settings.ingest.chunk_chars:
        raise InvalidFieldError("ingest.chunk_max_chars", "it is smaller than ingest.chunk_chars")
    return settings


def outbound_of(settings: Settings, *, directory: Path) -> OutboundSettings:
    """Return how others are reached from a base; relative paths begin at its directory."""
    return beside(settings.outbound, directory=directory)


def beside(outbound: OutboundSettings, *, directory: Path) -> OutboundSettings:
    """Return the same with every file at its place."""
    files = {name: getattr(outbound, name) for name in ("authorities", "certificate", "private_key")}
    return msgspec.structs.replace(outbound, **{name: str(directory.resolve() / file) for name, file in files.items() if file})


def settings_template() -> str:
    """Return a commented file in which every setting stands with its default."""
    lines = ["# Settings of this base. Every line that is commented out shows its default."]
    for name, table in setting_tables():
        lines += ["", f"[{name}]"]
        for field in msgspec.structs.fields(table):
            if not isinstance(field.default, msgspec.Struct):
                default = field.default_factory() if callable(field.default_factory) else field.default
                value = msgspec.json.encode(default).decode()
                lines.append(f"# {field.name} = {value}")
    return "\n".join(lines) + "\n"


def setting_tables(group: type[msgspec.Struct] = Settings, within: str = "") -> Iterator[tuple[str, type[msgspec.Struct]]]:
    """Yield the tables of the file with the message behind each; a table in another follows it."""
    for field in msgspec.structs.fields(group):
        if isinstance(field.default, msgspec.Struct):
            yield f"{within}{field.name}", type(field.default)
            yield from setting_tables(type(field.default), f"{within}{field.name}.")


def _meaning(error: msgspec.ValidationError) -> UnknownSettingError | InvalidFieldError:
    place, problem = shape_fault(error, Settings)
    unknown = _UNKNOWN.search(problem)
    if unknown:
        return UnknownSettingError(".".join(part for part in (place, unknown["name"]) if part), file=SETTINGS_NAME)
    return InvalidFieldError(place or SETTINGS_NAME, f"{problem}, in {SETTINGS_NAME}")


def has_base(directory: Path) -> bool:
    """Tell whether there is a base in this directory."""
    try:
        return database_path(directory).is_file()
    except PermissionError as error:
        raise BaseForbiddenError(str(directory)) from error


def is_address(path: object) -> bool:
    """Tell whether this is an address of a served base rather than a directory."""
    return isinstance(path, str) and path.partition("://")[0].isalpha() and "://" in path
