"""The embedded store passes the kit that every store has to pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.testing.store_kit import StoreConformance
from evidentia.wiring import embedded

if TYPE_CHECKING:
    from pathlib import Path

    from evidentia.testing.store_kit import StoreUnderTest


class TestEmbeddedStore(StoreConformance):
    """Runs the kit."""

    def make(self, directory: Path) -> StoreUnderTest:
        """Return an empty embedded base."""
        embedded.create(directory)
        return embedded.open_parts(directory)
