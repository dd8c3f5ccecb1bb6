"""A disk that is slow costs the receipt, not the deadline."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from evidentia import connect
from evidentia.backends.embedded.logs.receipt_log import EmbeddedReceipts
from evidentia.engine.retrieval_task import RECEIPT_IS_LATE

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from evidentia.contracts.ids import ReceiptId
    from evidentia.contracts.receipts import Receipt


def test_an_answer_goes_without_its_receipt_when_the_disk_takes_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.md").write_text("Keys are rotated.")
    may_go = threading.Event()
    append = EmbeddedReceipts.append

    def slow(log: EmbeddedReceipts, receipt: Receipt) -> ReceiptId:
        assert may_go.wait(60)
        return append(log, receipt)

    with connect(tmp_path / "base", init=True) as base:
        base.ingest([tmp_path / "a.md"], embed=False)
        written = base.retrieve("keys")
        monkeypatch.setattr(EmbeddedReceipts, "append", slow)
        late = base.retrieve("keys", as_of=written.as_of)
        none = base.retrieve("keys", as_of=written.as_of, receipt=False)
        threading.Timer(0.2, may_go.set).start()

    assert written.receipt_id is not None
    assert 2 == sum(len(log.read_bytes().splitlines()) for log in (tmp_path / "base" / "receipts").iterdir())
    assert late.receipt_id is None
    assert RECEIPT_IS_LATE in late.degraded
    assert RECEIPT_IS_LATE not in none.degraded
    assert written.result_hash == late.result_hash == none.result_hash
