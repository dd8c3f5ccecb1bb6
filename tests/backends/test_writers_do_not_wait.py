"""A writer that ends while somebody reads an older version does not wait for them."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from evidentia import connect
from evidentia.backends.embedded.records.database import close_after_writing

if TYPE_CHECKING:
    from pathlib import Path


def test_folding_the_log_asks_once_and_goes_on(tmp_path: Path) -> None:
    """With the usual patience the checkpoint would sleep for seconds; what it does is counted, not timed."""
    (tmp_path / "a.md").write_text("Keys are rotated.", encoding="utf-8")
    with connect(tmp_path / "base", init=True) as base:
        base.ingest([tmp_path / "a.md"], embed=False)
    file = tmp_path / "base" / "evidentia.sqlite"
    reader = sqlite3.connect(file, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM sqlite_master").fetchone()
    writer = sqlite3.connect(file, isolation_level=None)
    writer.execute("PRAGMA busy_timeout = 10000")
    seen: list[str] = []
    writer.set_trace_callback(seen.append)
    close_after_writing(writer)
    reader.execute("COMMIT")
    reader.close()

    assert ["PRAGMA busy_timeout = 0", "PRAGMA wal_checkpoint(TRUNCATE)"] == seen[:2]
