"""A base that was closed says so, and does not call itself damaged."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from evidentia import connect
from evidentia.contracts.errors import BaseDamagedError, BaseStateError

if TYPE_CHECKING:
    from pathlib import Path


def test_a_closed_base_is_called_closed(tmp_path: Path) -> None:
    (tmp_path / "keys.md").write_text("Keys are rotated every month.\n", encoding="utf-8")
    base = connect(tmp_path / "base", init=True)
    base.ingest([tmp_path / "keys.md"], embed=False)
    base.retrieve("keys", mode="lexical")
    base.close()

    with pytest.raises(BaseStateError, match="the base was closed; connect to it again") as raised:
        base.retrieve("keys", mode="lexical")
    assert not isinstance(raised.value, BaseDamagedError)


def test_closing_waits_for_models_that_are_being_loaded(tmp_path: Path) -> None:
    """A process that ends while onnxruntime makes a session is aborted."""
    (tmp_path / "keys.md").write_text("Keys are rotated every month.\n", encoding="utf-8")
    with connect(tmp_path / "base", init=True) as base:
        base.ingest([tmp_path / "keys.md"])
    with connect(tmp_path / "base") as base:
        base.retrieve("keys", mode="lexical", receipt=False)

    assert "evidentia-models" not in {thread.name for thread in threading.enumerate()}


def test_the_package_is_the_command_too() -> None:
    ran = subprocess.run([sys.executable, "-m", "evidentia", "--version"], capture_output=True, text=True, check=True)

    assert ran.stdout.strip()
