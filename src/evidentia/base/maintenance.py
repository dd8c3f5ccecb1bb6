"""A quick check-up: is everything there that a base needs, and does the base open?"""

from __future__ import annotations

import importlib.util
import platform
import shutil
import sqlite3
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from evidentia.contracts.errors import EvidentiaError
from evidentia.contracts.reports import DoctorReport, Finding
from evidentia.wiring import embedded
from evidentia.wiring.settings_file import SETTINGS_NAME, has_base

if TYPE_CHECKING:
    from collections.abc import Callable

    from evidentia.contracts.backups import BackupProgress, RestoreReport
    from evidentia.contracts.vectors import VectorIdentity
    from evidentia.wiring.components import BaseComponents


OLDEST_SQLITE = (3, 37, 0)  # STRICT tables
LOW_SPACE_BYTES = 256 * 1024 * 1024
READERS = {
    "pypdf": "PDF",
    "docx": "Word",
    "pptx": "PowerPoint",
    "python_calamine": "spreadsheets",
    "selectolax": "HTML",
    "semantic_text_splitter": "chunking",
}


def check_up(path: Path) -> DoctorReport:
    """Look at the installation and at the base in a directory."""
    findings = [_python(), _sqlite(), _readers(), *_base(path)]
    return DoctorReport(ok=all(finding.ok for finding in findings), findings=tuple(findings))


def _python() -> Finding:
    return Finding(
        check="python", ok=sys.version_info >= (3, 11), detail=platform.python_version(), hint="Evidentia needs Python 3.11 or newer"
    )


def _sqlite() -> Finding:
    is_new_enough = sqlite3.sqlite_version_info >= OLDEST_SQLITE
    return Finding(check="sqlite", ok=is_new_enough, detail=sqlite3.sqlite_version, hint="SQLite 3.37 or newer is needed")


def _readers() -> Finding:
    missing = [kind for module, kind in READERS.items() if importlib.util.find_spec(module) is None]
    detail = f"missing: {', '.join(missing)}" if missing else f"{len(READERS)} of {len(READERS)} there"
    return Finding(check="readers", ok=not missing, detail=detail, hint="install evidentia again; these come with it")


def _base(path: Path) -> list[Finding]:
    if not has_base(path):
        return [Finding(check="base", ok=False, detail=f"there is no base at '{path}'", hint="run `evidentia init`")]
    try:
        parts = embedded.open_base(path)
        try:
            head = parts.reader.head()
            vectors = _vectors(parts)
        finally:
            parts.close()
    except EvidentiaError as error:
        return [Finding(check="base", ok=False, detail=str(error), hint=error.hint)]
    free = shutil.disk_usage(path).free
    return [
        Finding(check="base", ok=True, detail=f"version {head.sequence}, corpus {head.corpus_version[:16]}, {head.log_size} events"),
        Finding(check="settings", ok=True, detail=SETTINGS_NAME if (path / SETTINGS_NAME).exists() else "defaults"),
        Finding(
            check="space", ok=free >= LOW_SPACE_BYTES, detail=f"{free // 2**20} MiB free", hint="free some space, or run `evidentia gc`"
        ),
        vectors,
    ]


def _vectors(parts: BaseComponents) -> Finding:
    """Tell how much is embedded, and with what; a base that is to have no vectors lacks none."""
    try:
        encoder = parts.encoder()
        if encoder is None:
            return Finding(check="vectors", ok=True, detail="none wanted: embedding.encoder is 'none'")
        with parts.vectors() as store:
            state = store.state(encoder.identity)
    except EvidentiaError as error:
        return Finding(check="vectors", ok=False, detail=str(error), hint=error.hint)
    detail = f"{state.embedded} of {state.chunks} chunks embedded by {_named(encoder.identity)}"
    if state.identity is not None and state.identity != encoder.identity:
        detail += f"; those that are there are by {_named(state.identity)}"
    hint = "run `evidentia embed`, or set embedding.encoder to 'none'"
    return Finding(check="vectors", ok=state.embedded == state.chunks, detail=detail, hint=hint)


def _named(identity: VectorIdentity) -> str:
    return f"'{identity.name}' ({identity.dimension} components, {identity.model[:12]})"


# --- backing up ---
# A base made from a backup: there is nothing to connect to yet, so this is a function and no method.


def restore(backup: str | Path, directory: str | Path, *, on_progress: Callable[[BackupProgress], None] | None = None) -> RestoreReport:
    """Make a base from what `Base.backup` wrote, in a directory that is new or empty.

    Every byte is checked before anything is made: BackupDamagedError names the file that is not what it was.
    """
    return embedded.restore(Path(backup), Path(directory), watch=on_progress)
