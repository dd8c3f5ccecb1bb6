"""What every test may ask for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder with third-party sets; tests that need one skip when it is absent."""
    return Path(os.environ.get("EVIDENTIA_DATA", ROOT.parent / "shared" / "data"))
