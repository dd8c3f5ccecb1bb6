"""How many cases a law is tried on: some of them in `make test`, all of them in `make test-full`."""

from __future__ import annotations

import os

IS_SOAKED = os.environ.get("EVIDENTIA_SOAK") == "full"


def cases(some: int, *, of: int) -> int:
    """Return how many of the cases are tried in this run."""
    return of if IS_SOAKED else some
