"""Exported fragments as files: how they are written, and how one from anywhere is read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.provenance import FragmentExport
from evidentia.serving.cli.complaints import MistakeError, os_problem
from evidentia.serving.cli.escaping import printable_json

if TYPE_CHECKING:
    from pathlib import Path

LARGEST_EXPORT_BYTES = 64 * 1024 * 1024
MOST_SHOWN = 200
"""Characters of a parser's message that are shown; some repeat what they could not parse."""


def export_bytes(export: FragmentExport) -> bytes:
    """Return the bytes of an export file: indented JSON, fields in their declared order, the same for the same export."""
    encoded = msgspec.json.encode(export, order="deterministic")
    return f"{printable_json(msgspec.json.format(encoded, indent=2).decode())}\n".encode()


def write_export(path: Path, export: FragmentExport, *, is_forced: bool) -> None:
    """Write an export file; one that exists stays as it is unless forced."""
    try:
        with path.open("wb" if is_forced else "xb") as file:
            file.write(export_bytes(export))
    except FileExistsError as error:
        raise MistakeError(f"'{path}' exists already", hint="pass --force to overwrite it") from error
    except OSError as error:
        raise MistakeError(f"'{path}' cannot be written: {os_problem(error)}", hint="check the path and its permissions") from error


def read_export(path: Path) -> FragmentExport:
    """Read an export file; whatever is not exactly an export is refused with the problem."""
    stored = _read(path)
    try:
        export = msgspec.json.decode(stored, type=FragmentExport)
        found = json.loads(stored, object_pairs_hook=_without_repetition)
        expected = msgspec.json.decode(msgspec.json.encode(export))
    except msgspec.ValidationError as error:
        raise _malformed(path, f"it is not an exported fragment: {error}") from error
    except (ValueError, msgspec.MsgspecError, RecursionError, OverflowError) as error:
        raise _malformed(path, f"it is not JSON: {error}") from error
    # What is not part of an export is not covered by its proof, and a reader could take it for proved.
    if place := _first_difference(found, expected, "$"):
        raise _malformed(path, f"it is not an exported fragment: there is something else at `{place}`")
    return export


def _read(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise MistakeError(f"'{path}' is a directory", hint="name one exported file")
        with path.open("rb") as file:
            stored = file.read(LARGEST_EXPORT_BYTES + 1)
    except OSError as error:
        raise MistakeError(f"'{path}' cannot be read: {os_problem(error)}", hint="name an exported file, or an id in the base") from error
    if len(stored) > LARGEST_EXPORT_BYTES:
        raise _malformed(path, f"it is larger than {LARGEST_EXPORT_BYTES // 2**20} MiB, which no export is")
    return stored


def _malformed(path: Path, problem: str) -> MistakeError:
    shown = problem if len(problem) <= MOST_SHOWN else f"{problem[: MOST_SHOWN - 1]}…"
    return MistakeError(f"'{path}' cannot be verified: {shown}", hint="name a file that `evidentia export` wrote")


def _without_repetition(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Refuse a name that is there twice: one reader would see the first value, another the last."""
    record = dict(pairs)
    if len(record) != len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name '{repeated}' is there twice in one object")
    return record


def _first_difference(found: object, expected: object, place: str) -> str:
    if isinstance(found, dict) and isinstance(expected, dict):
        names = sorted({*found, *expected})
        places = (_first_difference(found.get(name), expected.get(name), f"{place}.{name}") for name in names)
        return next((each for each in places if each), "")
    if isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        pairs = enumerate(zip(found, expected, strict=True))
        return next((each for index, (a, b) in pairs if (each := _first_difference(a, b, f"{place}[{index}]"))), "")
    return "" if type(found) is type(expected) and found == expected else place
