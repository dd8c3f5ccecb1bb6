"""A change to stored bytes behind a base's back, for the demo; refuses to know how a base stores them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.serving.cli.cli_errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


def change_stored_byte(directory: Path, *, before: bytes, after: bytes) -> tuple[str, int]:
    """Replace a stored stretch of text in the first file that holds it, and return the file and where it differs."""
    for file in sorted(path for path in directory.rglob("*") if path.is_file()):
        stored = file.read_bytes()
        if (at := stored.find(before)) >= 0:
            file.write_bytes(stored[:at] + after + stored[at + len(before) :])
            shift = next(index for index, (old, new) in enumerate(zip(before, after, strict=True)) if old != new)
            return file.relative_to(directory).as_posix(), at + shift
    raise UsageError(f"no file in '{directory}' holds the text to change", hint="run `evidentia demo --fresh`")
