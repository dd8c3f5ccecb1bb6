"""The newest requests are remembered, by several processes together, and a store that fails costs nobody an answer."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.trace_samples import trace
from evidentia.backends.embedded.logs.trace_log import EmbeddedTraces
from evidentia.contracts.ids import RequestId
from evidentia.contracts.ports import SupportsTraces

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "traces.db"


@pytest.fixture
def traces(store: Path) -> Iterator[EmbeddedTraces]:
    remembered = EmbeddedTraces(store, keep=10)
    yield remembered
    remembered.close()


def ids(remembered: EmbeddedTraces, *, limit: int = 1_000) -> list[str]:
    return [each.request_id for each in remembered.traces(limit=limit)]


def test_a_trace_comes_back_as_it_was(traces: EmbeddedTraces) -> None:
    traces.record(trace())

    assert isinstance(traces, SupportsTraces)
    assert [trace()] == traces.traces(limit=1)


def test_the_newest_come_first_and_no_more_than_asked_for(traces: EmbeddedTraces) -> None:
    for number in (2, 0, 1):
        traces.record(trace(f"id-{number}", after_s=number))

    assert ["id-2", "id-1", "id-0"] == ids(traces)
    assert ["id-2"] == ids(traces, limit=1)
    assert [] == ids(traces, limit=0)


def test_equal_moments_are_ordered_by_id(traces: EmbeddedTraces) -> None:
    for name in ("b", "c", "a"):
        traces.record(trace(name))

    assert ["c", "b", "a"] == ids(traces)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("0123456789abcdef", "0123456789abcdef"),
        ("0123456789", "0123456789abcdef"),
        ("0123", None),  # two begin so
        ("fed", None),  # too short to be meant
        ("fedc", "fedcba9876543210"),
        ("r-00000000000a-2", "0123ffffffffffff"),
        ("r-00000000000a-", None),
        ("nothing", None),
        ("", None),
    ],
)
def test_a_request_is_found_by_its_id_its_beginning_or_its_receipt(traces: EmbeddedTraces, asked: str, found: str | None) -> None:
    traces.record(trace("0123456789abcdef", receipt_id="r-00000000000a-1"))
    traces.record(trace("0123ffffffffffff", receipt_id="r-00000000000a-2"))
    traces.record(trace("fedcba9876543210", receipt_id=None))

    one = traces.trace(RequestId(asked))

    assert found == (one.request_id if one else None)


def test_several_writers_share_what_they_remember(store: Path) -> None:
    one, other = (EmbeddedTraces(store, keep=10) for _ in range(2))
    one.record(trace("id-1", after_s=1))
    other.record(trace("id-2", after_s=2))
    one.flush()

    assert ["id-2", "id-1"] == ids(other)
    other.close()
    one.close()


@given(st.integers(1, 8), st.lists(st.integers(1, 5), max_size=12))
def test_the_newest_remain_however_they_were_written(keep: int, batches: list[int]) -> None:
    written = 0
    with TemporaryDirectory() as folder:
        store = Path(folder) / "traces.db"
        for size in batches:
            remembered = EmbeddedTraces(store, keep=keep)
            for number in range(written, written + size):
                remembered.record(trace(f"{number:04}", after_s=number, spans=()))
            written += size
            remembered.close()
        remembered = EmbeddedTraces(store, keep=keep)

        assert [f"{number:04}" for number in range(written)][::-1][:keep] == ids(remembered)
        remembered.close()


def test_the_store_does_not_grow_without_end(store: Path) -> None:
    remembered = EmbeddedTraces(store, keep=200)
    for number in range(2_000):
        remembered.record(trace(f"{number:016x}", after_s=number, spans=()))
        if number % 7 == 0:
            remembered.flush()
    remembered.close()

    assert 200 == len(remembered.traces(limit=1_000))
    remembered.close()
    with closing(sqlite3.connect(store)) as database:
        assert (200,) == database.execute("SELECT count(*) FROM traces").fetchone()


def test_two_processes_share_a_file(store: Path) -> None:
    one, other = (EmbeddedTraces(store, keep=5) for _ in range(2))
    for number in range(12):
        (one, other)[number % 2].record(trace(f"id-{number:02}", after_s=number))
        one.flush()
        other.flush()

    assert [f"id-{number:02}" for number in range(11, 6, -1)] == ids(one) == ids(other)
    one.close()
    other.close()


def test_traces_are_written_without_being_asked_for(store: Path, traces: EmbeddedTraces) -> None:
    traces.record(trace())
    until = time.monotonic() + 60
    while not store.exists() and time.monotonic() < until:
        time.sleep(0.01)

    assert store.exists()


def test_closing_writes_what_is_left_and_ends_the_taking(store: Path) -> None:
    remembered = EmbeddedTraces(store, keep=10)
    remembered.record(trace("id-1"))
    remembered.close()
    remembered.record(trace("id-2"))
    remembered.close()

    assert ["id-1"] == ids(EmbeddedTraces(store, keep=10))


def test_a_disk_that_fails_loses_traces_and_nothing_else(tmp_path: Path) -> None:
    remembered = EmbeddedTraces(tmp_path / "later" / "traces.db", keep=10)
    remembered.record(trace("id-1"))
    remembered.flush()
    (tmp_path / "later").mkdir()
    remembered.record(trace("id-2"))

    assert ["id-2"] == ids(remembered)
    remembered.close()


def test_what_cannot_be_read_is_passed_over(store: Path, traces: EmbeddedTraces) -> None:
    traces.record(trace("id-1"))
    traces.record(trace("id-2"))
    traces.flush()
    with closing(sqlite3.connect(store, isolation_level=None)) as database:
        database.execute("UPDATE traces SET trace = CAST(replace(trace, 'id-1', 'id-7') AS BLOB) WHERE number = 1")
        for content in (b"{not json", b'{"request_id": 7}'):
            row = (content, hashlib.blake2b(content, digest_size=16).digest())
            database.execute("INSERT INTO traces (trace, digest) VALUES (?, ?)", row)

    assert ["id-2"] == ids(traces)


def test_the_file_of_an_older_release_is_replaced(store: Path, traces: EmbeddedTraces) -> None:
    with closing(sqlite3.connect(store, isolation_level=None)) as database:
        database.execute("CREATE TABLE entries (key TEXT PRIMARY KEY)")
        database.execute("PRAGMA user_version = 1")
    traces.record(trace("id-1"))

    assert ["id-1"] == ids(traces)


def test_many_threads_record_at_once(store: Path) -> None:
    remembered = EmbeddedTraces(store, keep=1_000)

    def work(thread: int) -> None:
        for number in range(50):
            remembered.record(trace(f"{thread}-{number:02}", spans=()))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert 400 == len(set(ids(remembered)))
    remembered.close()
