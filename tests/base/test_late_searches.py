"""A search that takes too long is given up in time, and the answer says so."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from evidentia import connect
from evidentia.backends.embedded.snapshot import EmbeddedSnapshot
from evidentia.contracts.vocabulary import CoverageState
from evidentia.engine.pipeline import TOO_SLOW

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from evidentia.contracts.search import LexicalHits


def test_a_search_that_hangs_does_not_hold_up_whoever_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.md").write_text("Keys are rotated.")
    may_go = threading.Event()
    search = EmbeddedSnapshot.search

    def slow(snapshot: EmbeddedSnapshot, *given: Any, **named: Any) -> LexicalHits:  # Any: whatever it is asked with
        assert may_go.wait(60)
        return search(snapshot, *given, **named)

    with connect(tmp_path / "base", init=True) as base:
        base.ingest([tmp_path / "a.md"], embed=False)
        found = base.retrieve("keys")
        monkeypatch.setattr(EmbeddedSnapshot, "search", slow)
        late = base.retrieve("keys", latency_deadline_ms=200, receipt=False)
        is_still_searching = not may_go.is_set()
        may_go.set()
        again = base.retrieve("keys", as_of=found.as_of, receipt=False)

    assert is_still_searching
    assert () == late.fragments
    assert {(CoverageState.TIMED_OUT, TOO_SLOW)} == {(report.state, report.reason) for report in late.source_coverage.values()}
    assert found.result_hash == again.result_hash
