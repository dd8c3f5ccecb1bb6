"""Run one search of a checkout and say what it passes through; tools/measure_house.py calls it with the Python of that checkout.

    python tools/measure_run.py base|search|threads CORPUS BASE PACKAGE REPORT

`base` fills a base with the corpus and its vectors. `search` counts the files and functions of the package that `evidentia search`
executes: functions, methods and lambdas, not the bodies of modules and classes, which importing runs. `threads` counts the threads that
are there after a few questions to a base that has no source but its own documents. REPORT is written as JSON.
"""

from __future__ import annotations

import inspect
import json
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import evidentia

if TYPE_CHECKING:
    from types import FrameType

QUESTION = "how often are the signing keys rotated?"
ASKED = 20
"""A pool starts a thread when none of its threads happens to be free, so that one question does not always start them all."""
INLINED = {"<listcomp>", "<setcomp>", "<dictcomp>"}
"""Functions of their own in one version of Python and not in the next, so that they are counted in neither."""


def make_base(corpus: Path, base: Path) -> dict[str, Any]:
    """Fill a base with the corpus and encode it."""
    with evidentia.connect(base, init=True) as opened:
        opened.ingest([corpus], source="samples")
        answer = opened.retrieve(QUESTION)
        if not answer.fragments or answer.degraded:
            sys.exit(f"the base gives no hybrid answer: {answer.degraded}")
    return {}


def trace_search(base: Path, package: Path) -> dict[str, Any]:
    """Search once through the command line, and count what ran on every thread."""
    inside = f"{package}/"
    ran: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_flags & inspect.CO_OPTIMIZED and code.co_name not in INLINED and code.co_filename.startswith(inside):
            ran.add((code.co_filename.removeprefix(inside), code.co_qualname))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        # Within what is measured: `evidentia` typed in a terminal imports the command line, too.
        from evidentia.serving.cli import main

        exit_code = main(["--base", str(base), "search", QUESTION])
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    if exit_code or not ran:
        sys.exit(f"the search ended with {exit_code}, and the Python that ran it has evidentia from '{evidentia.__file__}'")
    files = {file for file, _ in ran}
    loaded = {getattr(module, "__file__", None) or "" for module in list(sys.modules.values())}
    imported = {file.removeprefix(inside) for file in loaded if file.startswith(inside)}
    return {
        "search_files": len(files),
        "search_functions": len(ran),
        "search_files_only_imported": len(imported - files),
        "names_of_search_files": {file: sorted(name for own, name in ran if own == file) for file in sorted(files)},
        "names_of_search_files_only_imported": sorted(imported - files),
    }


def count_threads(base: Path) -> dict[str, Any]:
    """Ask a few times, and count the threads while the base is open."""
    with evidentia.connect(base) as opened:
        for _ in range(ASKED):
            opened.retrieve(QUESTION)
        names = sorted(thread.name for thread in threading.enumerate())
    return {"idle_threads": len(names), "names_of_idle_threads": names}


def main() -> None:
    """Run one part and write its report."""
    part, *paths = sys.argv[1:]
    corpus, base, package, report = map(Path, paths)
    parts = {
        "base": lambda: make_base(corpus, base),
        "search": lambda: trace_search(base, package),
        "threads": lambda: count_threads(base),
    }
    report.write_text(json.dumps(parts[part]()), encoding="utf-8")


if __name__ == "__main__":
    main()
