"""Exported fragments as files: how they are written; `proof_files` reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from evidentia.serving.cli.cli_errors import UsageError, os_problem
from evidentia.serving.cli.escaping import printable_json

if TYPE_CHECKING:
    from pathlib import Path

    from evidentia.contracts.provenance import FragmentExport


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
        raise UsageError(f"'{path}' exists already", hint="pass --force to overwrite it") from error
    except OSError as error:
        raise UsageError(f"'{path}' cannot be written: {os_problem(error)}", hint="check the path and its permissions") from error
