"""What every test may ask for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent


# The same examples in every run, so that a red run is a change's doing; HYPOTHESIS_PROFILE=explore looks for new ones.
settings.register_profile("steady", derandomize=True, deadline=None)  # how long an example takes is the machine's affair
settings.register_profile("explore", max_examples=2_000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder with third-party sets; tests that need one skip when it is absent."""
    return Path(os.environ.get("EVIDENTIA_DATA", ROOT.parent / "shared" / "data"))
