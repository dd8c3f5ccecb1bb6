"""An ingest that is killed at any moment loses nothing it acknowledged and leaves nothing half done."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from soak import cases

KILLS, RECORDS = cases(24, of=200), cases(200, of=600)
SHARDS = 2


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_killed_ingest_keeps_every_acknowledged_document_and_no_half_of_one(tmp_path: Path, shard: int) -> None:
    words = [Path(__file__).with_name("kill_loop.py"), tmp_path, KILLS // SHARDS, shard, RECORDS]
    run = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, check=False, timeout=600)

    assert 0 == run.returncode, run.stderr[-2000:]
    counts = json.loads(run.stdout)
    assert KILLS // SHARDS == counts["kills"]
    assert counts["interrupted"] > counts["kills"] * 9 // 10
    assert counts["acknowledged"] > 0
