"""A source's descriptor as a file and options give it; what it means is for the base to check."""

from __future__ import annotations

import json
import tomllib
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.vocabulary import LatencyTier
from evidentia.serving.cli.cli_errors import UsageError
from evidentia.serving.cli.input_files import read_bytes, without_repetition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evidentia.contracts.sources import SourceStatus

MAX_SHOWN = 200
"""Characters of a parser's message that are shown; some repeat what they could not parse."""
HINT = "write the fields of a descriptor as JSON or TOML; `evidentia sources show ID --json` prints one"

USUAL_LATENCY = LatencyTier.WARM
"""What is typed here is asked by a process that has just begun, which takes longer than the 10 ms of the contract's default."""
_MILLI = 1_000


class TypedDescriptor(NamedTuple):
    """What was typed, under the names of the contract; None was not typed."""

    fields: Mapping[str, object]
    connection: Mapping[str, object]
    access_policy: Mapping[str, object]

    def given(self) -> dict[str, object]:
        """Return the fields that were typed, tables in their places."""
        tables = {"connection": _given(self.connection), "access_policy": _given(self.access_policy)}
        return {**_given(self.fields), **{name: table for name, table in tables.items() if table}}


def complete(typed: TypedDescriptor, *, file: Path | None, registered: Sequence[SourceStatus]) -> dict[str, object]:
    """Return the descriptor to register: what was typed beside a file, or in place of what is registered under the same name.

    What a command knows better than the contract is filled in, and what no command can do is refused.
    """
    described = with_typed({} if file is None else read_descriptor_file(file), typed.given())
    known = None if file is not None else _known(registered, described)
    descriptor = with_typed(known or {}, described)
    if "source_id" not in descriptor:
        raise InvalidFieldError("source_id", "say what it is called, with --id or in the file")
    descriptor.setdefault("latency_tier", USUAL_LATENCY.value)
    connection = descriptor.get("connection", {})
    if not isinstance(connection, dict):
        return descriptor
    kind = connection.get("kind")
    if kind is None:
        raise InvalidFieldError("connection.kind", "say where it is: base, remote or mcp, with --kind or in the file")
    if str(kind).strip().lower() == "python":
        raise UsageError(
            "field 'connection.kind': an object of a Python program cannot be attached from here",
            hint="register it in that program with `base.add_source(descriptor, retriever)`",
        )
    if typed.connection["address"] is not None and str(kind).strip().lower() == "base":
        # What is typed in a shell starts at the working directory; in a descriptor it starts at the base.
        descriptor["connection"] = {**connection, "address": str(Path(str(connection["address"])).absolute())}
    return descriptor


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
    if path.is_dir():
        raise UsageError(f"'{path}' is a directory", hint="name one file that holds a descriptor")
    return read_bytes(path, hint=HINT, large_hint=HINT)


def _parsed(content: bytes, *, is_toml: bool) -> object:
    text = content.decode()
    return tomllib.loads(text) if is_toml else json.loads(text, object_pairs_hook=without_repetition)


def _known(statuses: Sequence[SourceStatus], described: dict[str, object]) -> dict[str, object] | None:
    """Return the descriptor that is registered under the same name, as fields."""
    wanted = described.get("source_id")
    found = next((each.descriptor for each in statuses if each.descriptor.source_id == wanted), None)
    return None if found is None else msgspec.to_builtins(found)


def _given(fields: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None}


def in_thousandths(weight: float | None) -> int | None:
    """Return a weight as the contract keeps it; what is no number of its range is left for the contract to refuse."""
    if weight is None:
        return None
    if not isfinite(weight):
        raise InvalidFieldError("weight_milli", f"'{weight}' is not a number from 0 to 10")
    return round(weight * _MILLI)


def named_values(typed: Sequence[str] | None) -> dict[str, str] | None:
    """Return `NAME=VALUE` words as a table, or name the one that is none; a value may be a secret and is not repeated."""
    if typed is None:
        return None
    found: dict[str, str] = {}
    for word in typed:
        name, sign, value = word.partition("=")
        if not sign or not name:
            raise InvalidFieldError("connection.options", "an option is not of the form NAME=VALUE")
        if name in found:
            raise InvalidFieldError("connection.options", f"'{name}' is given twice")
        found[name] = value
    return found
