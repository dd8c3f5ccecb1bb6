"""What a test of the command line is handed, and what it gets back."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from pathlib import Path


class Outcome(NamedTuple):
    """What one command left behind."""

    exit_code: int
    out: str
    err: str


class Run(Protocol):
    """Runs a command in this process, in an empty working directory."""

    def __call__(self, *arguments: str | Path) -> Outcome:
        """Return what the command left behind."""
        ...
