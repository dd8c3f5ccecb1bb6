"""What every test may ask for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent
MAX_LENGTH = ("test_beir", "test_kill", "test_noninterference")
"""The modules with tests of ten seconds and more."""


# The same examples in every run, so that a red run is a change's doing; HYPOTHESIS_PROFILE=explore looks for new ones.
settings.register_profile("steady", derandomize=True, deadline=None)  # how long an example takes is the machine's affair
settings.register_profile("explore", max_examples=2_000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest tests: with one of them at the end, the other process would have nothing left to do meanwhile."""
    items.sort(key=lambda item: item.path.stem not in MAX_LENGTH)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder with third-party sets; tests that need one skip when it is absent."""
    return Path(os.environ.get("EVIDENTIA_DATA", ROOT.parent / "shared" / "data"))
