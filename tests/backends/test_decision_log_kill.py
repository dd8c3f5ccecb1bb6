"""A durable log whose writer is killed at any moment keeps every decision it acknowledged, and its chain holds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

KILLS = 40


@pytest.mark.slow
def test_a_killed_writer_keeps_every_acknowledged_decision(tmp_path: Path) -> None:
    program = [sys.executable, str(Path(__file__).with_name("decision_kill_loop.py")), str(tmp_path), str(KILLS), "1"]
    run = subprocess.run(program, capture_output=True, text=True, check=False, timeout=300)

    assert 0 == run.returncode, run.stderr[-2000:]
    counts = json.loads(run.stdout)
    assert KILLS == counts["kills"]
    assert counts["acknowledged"] > KILLS
