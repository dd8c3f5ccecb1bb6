"""A source's descriptor from a file, with what was typed beside it; what it means is for the base to check."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING

from evidentia.serving.cli.cli_errors import UsageError, os_problem

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LARGEST_BYTES = 1 << 20
MAX_SHOWN = 200
"""Characters of a parser's message that are shown; some repeat what they could not parse."""
HINT = "write the fields of a descriptor as JSON or TOML; `evidentia sources show ID --json` prints one"


def read_descriptor_file(path: Path) -> dict[str, object]:
    """Return the fields in a `.json` or `.toml` file."""
    content = _read(path)
    try:
        fields = _parsed(content, is_toml=path.suffix.lower() == ".toml")
    except (ValueError, RecursionError) as error:
        kind = "TOML" if path.suffix.lower() == ".toml" else "JSON"
        raise UsageError(f"'{path}' cannot be read: it is not {kind}: {str(error)[:MAX_SHOWN]}", hint=HINT) from error
    if not isinstance(fields, dict):
        raise UsageError(f"'{path}' cannot be read: it is not a table of fields", hint=HINT)
    return fields


def with_typed(fields: Mapping[str, object], typed: Mapping[str, object]) -> dict[str, object]:
    """Return fields with what was typed in their place; tables are joined, everything else is replaced."""
    joined = dict(fields)
    for name, value in typed.items():
        known = joined.get(name)
        joined[name] = with_typed(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return joined


def _read(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise UsageError(f"'{path}' is a directory", hint="name one file that holds a descriptor")
        with path.open("rb") as file:
            content = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"'{path}' cannot be read: {os_problem(error)}", hint=HINT) from error
    if len(content) > LARGEST_BYTES:
        raise UsageError(f"'{path}' is larger than {LARGEST_BYTES} bytes", hint=HINT)
    return content


def _parsed(content: bytes, *, is_toml: bool) -> object:
    text = content.decode()
    return tomllib.loads(text) if is_toml else json.loads(text, object_pairs_hook=_without_repetition)


def _without_repetition(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a field is there twice in one object")
    return fields
