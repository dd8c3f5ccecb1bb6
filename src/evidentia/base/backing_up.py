"""A base made from a backup: there is nothing to connect to yet, so this is a function and no method."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from evidentia.wiring import embedded

if TYPE_CHECKING:
    from collections.abc import Callable

    from evidentia.contracts.backups import BackupProgress, RestoreReport


def restore(backup: str | Path, directory: str | Path, *, on_progress: Callable[[BackupProgress], None] | None = None) -> RestoreReport:
    """Make a base from what `Base.backup` wrote, in a directory that is new or empty.

    Every byte is checked before anything is made: BackupDamagedError names the file that is not what it was.
    """
    return embedded.restore(Path(backup), Path(directory), watch=on_progress)
