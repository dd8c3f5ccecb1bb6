"""Write docs/reference from the code; `make docs` calls it, and a test compares what it writes with what is there.

Usage: python tools/write_reference.py [DIRECTORY]
"""

from __future__ import annotations

import gc
import sys
from pathlib import Path

from reference.contracts_page import contracts_page
from reference.errors_page import errors_page
from reference.ports_page import ports_page
from reference.schemas import schema_files
from reference.settings_page import settings_page
from reference.surface import surface_file

REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference"


def main() -> None:
    """Write every file, and remove schemas of messages that are gone."""
    gc.disable()  # the syntax trees of the whole package stay until the end: looking through them for garbage takes longer than the rest
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else REFERENCE
    files = reference_files()
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for path in sorted((directory / "schemas").glob("*.json")):
        if f"schemas/{path.name}" not in files:
            path.unlink()
    print(f"wrote {len(files)} files to {directory}")


def reference_files() -> dict[str, str]:
    """Return the text of every file of the reference under its path."""
    return {
        "contracts.md": contracts_page(),
        "errors.md": errors_page(),
        "ports.md": ports_page(),
        "settings.md": settings_page(),
        "surface.json": surface_file(),
        **{f"schemas/{name}": text for name, text in schema_files().items()},
    }


if __name__ == "__main__":
    main()
