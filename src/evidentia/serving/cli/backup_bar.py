"""How far a backup or a restore has come, on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.serving.cli.escaping import printable
from evidentia.serving.cli.progress import Bar

if TYPE_CHECKING:
    from evidentia.contracts.backups import BackupProgress

MEBIBYTE = 1 << 20


class BackupBar(Bar):
    """Counts in mebibytes."""

    def update(self, progress: BackupProgress) -> None:
        """Show a new state."""
        self.move(progress.done_bytes // MEBIBYTE, progress.total_bytes // MEBIBYTE, remark=f"MiB {printable(progress.current)}")
