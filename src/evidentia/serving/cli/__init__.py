"""The command line: words typed in a terminal to calls on a base, and reports to text or JSON.

Everything but the parser is imported by the command that needs it, so that `evidentia --help` stays cheap.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 a check failed, 2 wrong usage, 3 the base is missing or damaged."""
    from evidentia.serving.cli.app import run

    return run(list(sys.argv[1:] if arguments is None else arguments))
