"""What every test may ask for."""

from __future__ import annotations

import gc
import hashlib
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import httpcore2
import pytest
from hypothesis import settings

from soak import cases

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
MAX_LENGTH = ("test_beir", "test_kill", "test_noninterference")
"""The modules with tests of ten seconds and more."""


# The same examples in every run, so that a red run is a change's doing; HYPOTHESIS_PROFILE=explore looks for new ones.
# No deadline: how long an example takes is the machine's affair.
settings.register_profile("steady", derandomize=True, deadline=None, max_examples=cases(30, of=100))
settings.register_profile("explore", max_examples=2_000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

# Fourteen thousand tests and what they import stay until the end: looking through them for garbage, again and again, finds none.
gc.disable()


def pytest_collection_finish() -> None:
    """From here on, look for garbage among what the tests make, and less often than after every 700 objects."""
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest tests: with one of them at the end, the other process would have nothing left to do meanwhile."""
    items.sort(key=lambda item: item.path.stem not in MAX_LENGTH)


@pytest.fixture(scope="session", autouse=True)
def known_answers() -> Iterator[None]:
    """Keep what is expensive, asked for thousands of times and always the same: hashes of tokens, and the machine's authorities."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hashlib, "scrypt", cache(hashlib.scrypt))
        patch.setattr(httpcore2, "default_ssl_context", cache(httpcore2.default_ssl_context))
        yield


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder with third-party sets; tests that need one skip when it is absent."""
    return Path(os.environ.get("EVIDENTIA_DATA", ROOT.parent / "shared" / "data"))
