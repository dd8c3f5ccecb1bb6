"""Tests of the integrations, against the frameworks themselves: `make test-integrations` installs them beside the project and runs these.

Nothing here reaches the network: Haystack's usage reports and LangChain's tracing are off, and a connection is refused.
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from evidentia.base.sync_base import Base, connect

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Haystack and LangChain read these when they are imported, which the tests do after this.
os.environ |= {"HAYSTACK_TELEMETRY_ENABLED": "False", "LANGSMITH_TRACING": "false", "LANGCHAIN_TRACING_V2": "false"}

PAGES = {
    "gate.md": "# The gate\n\nThe harbour gate opens at six in the morning.\n",
    "crane.md": "# The crane\n\nThe crane lifts forty tonnes, and no more in wind.\n",
    "tide.md": "# The tide\n\nShips of deep draught leave with the morning tide.\n",
}
GUARDED = "# The code\n\nThe harbour gate code changes every Monday.\n"


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: socket.socket, address: object) -> None:
        problem = f"a test reached for {address}"
        raise AssertionError(problem)

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)


@pytest.fixture(scope="session")
def base_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a base with a handbook that staff may read and a page that security alone may."""
    root = tmp_path_factory.mktemp("harbour")
    for folder, pages in {"handbook": PAGES, "security": {"code.md": GUARDED}}.items():
        (root / folder).mkdir()
        for name, text in pages.items():
            (root / folder / name).write_text(text, encoding="utf-8")
    with connect(root / "base", init=True) as base:
        base.ingest([root / "handbook"], source="handbook")
        base.ingest([root / "security"], source="security", classification="confidential", acl=["group:security"])
    return root / "base"


@pytest.fixture
def base(base_path: Path) -> Iterator[Base]:
    """Open the base as its owner."""
    with connect(base_path) as opened:
        yield opened
