"""The log in memory: the same port, the same chain, sealed when somebody reads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from evidentia.contracts.decisions import LogEntry
from evidentia.contracts.errors import NotFoundError
from evidentia.contracts.ids import Sha256
from evidentia.contracts.runs import RunId, StepCall
from evidentia.governance.log_maintenance import verify
from evidentia.governance.memory_log import MemoryLog
from evidentia.provenance.decision_chain import LogPart
from evidentia.testing.determinism import RepeatableEntropy

if TYPE_CHECKING:
    from collections.abc import Iterator


def _entry(name: str, run: str = "r") -> LogEntry:
    return LogEntry(at_us=1, run_id=RunId(run), policies=Sha256("d" * 64), call=StepCall(name=name))


def _log() -> MemoryLog:
    return MemoryLog(entropy=RepeatableEntropy(1))


def test_entries_come_back_in_order_sealed() -> None:
    log = _log()
    log.append([_entry("a"), _entry("b", "other")])
    first = log.head()
    log.append([_entry("c")])
    log.close()

    assert [("memory", 1), ("memory", 2), ("memory", 3)] == [(record.log, record.seq) for record in log.records()]
    assert ["a", "c"] == [record.entry.call.name for record in log.records(run_id=RunId("r")) if isinstance(record.entry.call, StepCall)]
    assert [3] == [record.seq for record in log.records(after=2)]
    assert (True, 3, 1) == ((report := verify(log, heads=[first, log.head()])).ok, report.records, report.logs)
    assert (2, 3, None) == (first.size, log.head().size, log.problem)


def test_an_append_gives_the_records_that_are_read_back() -> None:
    log = _log()
    first = log.append_now([_entry("a")])
    log.append([_entry("b")])
    rest = log.append_now([_entry("c"), _entry("d")])

    assert [*first, *rest] == [record for record in log.records() if record.seq != 2]


def test_an_empty_log_has_an_empty_head() -> None:
    log = _log()

    assert ([], 0) == (list(log.records()), log.head().size)
    assert verify(log).ok


def test_threads_share_one_chain() -> None:
    log = _log()
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda number: log.append([_entry(str(number))]), range(300)))

    assert {str(number) for number in range(300)} == {
        record.entry.call.name for record in log.records() if isinstance(record.entry.call, StepCall)
    }
    assert verify(log).ok


def test_what_is_appended_during_a_rewrite_comes_after_it() -> None:
    log = _log()
    log.append([_entry("a"), _entry("b")])
    meanwhile = threading.Thread(target=lambda: log.append([_entry("c")]))

    def change(blocks: Iterator[bytes]) -> list[bytes]:
        meanwhile.start()
        meanwhile.join()
        log.flush()
        return list(blocks)

    log.rewrite(log.parts()[0], change)

    assert [1, 2, 3] == [record.seq for record in log.records()]
    assert verify(log).ok


def test_a_run_is_found_after_the_log_was_cut() -> None:
    log = _log()
    log.append([_entry("a", "r1"), _entry("b", "r2"), _entry("c", "r1")])
    before = list(log.records(run_id=RunId("r1")))
    log.rewrite(log.parts()[0], lambda blocks: blocks)
    log.append([_entry("d", "r3")])

    assert [1, 3] == [record.seq for record in before]
    assert before == list(log.records(run_id=RunId("r1")))
    assert [4] == [record.seq for record in log.records(run_id=RunId("r3"))]
    assert [] == list(log.records(run_id=RunId("r4")))


def test_another_log_is_not_there() -> None:
    with pytest.raises(NotFoundError):
        _log().blocks(LogPart("memory", 2))
