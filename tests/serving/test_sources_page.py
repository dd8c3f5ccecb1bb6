"""docs/sources.md names every field of a descriptor, every kind, every state and every fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from evidentia.contracts.sources import SourceDescriptor
from evidentia.contracts.vocabulary import ConnectionKind, CoverageState
from evidentia.sources.intake_fields import Fault

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "sources.md").read_text(encoding="utf-8")
FIRST_CELLS = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
NAMED = {name.strip().strip("`") for cell in FIRST_CELLS for name in cell.split(",")}


@pytest.mark.parametrize("name", [*SourceDescriptor.__struct_fields__, *ConnectionKind.words(), *CoverageState.words(), *Fault])
def test_table_has_a_row(name: str) -> None:
    assert name in NAMED
