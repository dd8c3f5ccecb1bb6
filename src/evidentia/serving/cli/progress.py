"""Bars on stderr while something long runs; only on a terminal, and only when the work takes over a second."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Self

from evidentia.serving.cli.output import printable

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from evidentia.contracts.backups import BackupProgress
    from evidentia.contracts.reports import IngestProgress
    from evidentia.contracts.vectors import EmbedProgress


PATIENCE_S = 1.0
MAX_NAME_LENGTH = 40


class Bar:
    """Shows how far something has come; may be moved from one other thread."""

    def __init__(self, action: str, *, is_wanted: bool) -> None:
        self._action = action
        self._is_wanted = is_wanted and sys.stderr.isatty()
        self._began = time.perf_counter()
        self._shown: tuple[Progress, TaskID] | None = None

    def move(self, done: int, total: int | None, *, remark: str = "") -> None:
        """Show a new state; cheap when there is no bar."""
        if not self._is_wanted or (self._shown is None and time.perf_counter() - self._began < PATIENCE_S):
            return
        if self._shown is None:
            self._shown = _start(self._action)
        bar, task = self._shown
        bar.update(task, completed=done, total=total, remark=remark)

    def __enter__(self) -> Self:
        """Return the bar, which is not yet visible."""
        return self

    def __exit__(self, *_: object) -> None:
        """Take the bar off the terminal."""
        self.finish()

    def finish(self) -> None:
        """Take the bar off the terminal; it will not come back."""
        self._is_wanted = False
        if self._shown is not None:
            self._shown[0].stop()
            self._shown = None


class IngestBar(Bar):
    """Shows how far an ingest has come."""

    def __init__(self, *, is_wanted: bool) -> None:
        super().__init__("ingesting", is_wanted=is_wanted)

    def update(self, progress: IngestProgress) -> None:
        """Show a new state."""
        self.move(progress.seen, progress.total, remark=f"{progress.stored} stored {_shortened(progress.current)}")


class EmbedBar(Bar):
    """Shows how far an embedding has come, how fast it is, and how long it will take."""

    def __init__(self, *, is_wanted: bool) -> None:
        super().__init__("embedding", is_wanted=is_wanted)
        self._embedded_before: int | None = None

    def update(self, progress: EmbedProgress) -> None:
        """Show a new state; the time counts from the first one."""
        if self._embedded_before is None:
            self._embedded_before = progress.embedded
            self._began = time.perf_counter()
        done = progress.embedded - self._embedded_before
        remark = pace(done, left=progress.chunks - progress.embedded, seconds=time.perf_counter() - self._began)
        self.move(progress.embedded, progress.chunks, remark=remark)


def pace(done: int, *, left: int, seconds: float) -> str:
    """Return how many were done per second and how long the rest takes at that rate; empty when nothing was done yet."""
    if done <= 0 or seconds <= 0:
        return ""
    rate, left_s = done / seconds, round(left * seconds / done)
    hours, minutes = left_s // 3600, left_s // 60 % 60
    return f"{rate:.1f}/s, {hours}:{minutes:02}:{left_s % 60:02} left"


def _start(action: str) -> tuple[Progress, TaskID]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        TextColumn(action, markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[remark]}", markup=False),
    )
    console = Console(stderr=True, markup=False, highlight=False, emoji=False)
    bar = Progress(*columns, console=console, transient=True)
    bar.start()
    return bar, bar.add_task("", total=None, remark="")


def _shortened(name: str) -> str:
    shown = printable(name)
    return shown if len(shown) <= MAX_NAME_LENGTH else f"…{shown[-MAX_NAME_LENGTH + 1 :]}"


# How far a backup or a restore has come, on a terminal.

MEBIBYTE = 1 << 20


class BackupBar(Bar):
    """Counts in mebibytes."""

    def update(self, progress: BackupProgress) -> None:
        """Show a new state."""
        self.move(progress.done_bytes // MEBIBYTE, progress.total_bytes // MEBIBYTE, remark=f"MiB {printable(progress.current)}")
