"""The newest requests are remembered, by several processes together, and a store that fails costs nobody an answer."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.trace_samples import DictStore, trace
from evidentia.backends.embedded.logs.trace_log import BATCH, PREFIX, EmbeddedTraces
from evidentia.backends.embedded.records.key_values import EmbeddedKeyValues
from evidentia.contracts.ids import RequestId
from evidentia.contracts.ports import SupportsTraces
from evidentia.testing.determinism import START, SteppingClock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def store() -> DictStore:
    return DictStore()


@pytest.fixture
def traces(store: DictStore) -> Iterator[EmbeddedTraces]:
    remembered = EmbeddedTraces(store, keep=10, clock=SteppingClock())
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


def test_several_writers_share_what_they_remember(store: DictStore) -> None:
    one, other = (EmbeddedTraces(store, keep=10, clock=SteppingClock()) for _ in range(2))
    one.record(trace("id-1", after_s=1))
    other.record(trace("id-2", after_s=2))
    one.flush()

    assert ["id-2", "id-1"] == ids(other)
    other.close()
    one.close()


@given(st.integers(1, 8), st.lists(st.integers(1, 5), max_size=12))
def test_the_newest_remain_however_they_were_written(keep: int, batches: list[int]) -> None:
    store, written = DictStore(), 0
    for size in batches:
        remembered = EmbeddedTraces(store, keep=keep, clock=SteppingClock())
        for number in range(written, written + size):
            remembered.record(trace(f"{number:04}", after_s=number, spans=()))
        written += size
        remembered.close()

    remembered = EmbeddedTraces(store, keep=keep, clock=SteppingClock())

    assert [f"{number:04}" for number in range(written)][::-1][:keep] == ids(remembered)


def test_the_store_does_not_grow_without_end(store: DictStore) -> None:
    remembered = EmbeddedTraces(store, keep=200, clock=SteppingClock())
    for number in range(2_000):
        remembered.record(trace(f"{number:016x}", after_s=number, spans=()))
        if number % 7 == 0:
            remembered.flush()
    remembered.close()

    kept = sum(len(msgspec.json.decode(value)) for _, value in store.items(PREFIX))
    assert 200 <= kept <= 200 + 2 * BATCH
    assert 200 == len(remembered.traces(limit=1_000))


def test_many_small_batches_are_forgotten_in_few_strokes(store: DictStore) -> None:
    for number in range(300):
        remembered = EmbeddedTraces(store, keep=20, clock=SteppingClock(START + timedelta(seconds=7 * number)))
        remembered.record(trace(f"{number:04}", after_s=number, spans=()))
        remembered.close()

    assert 20 <= len(store.kept) <= 40
    assert store.deletions < 300 - 40
    assert [f"{number:04}" for number in range(299, 279, -1)] == ids(remembered)


def test_a_real_store_is_shared_by_two_processes(tmp_path: Path) -> None:
    stores = [EmbeddedKeyValues(tmp_path / "runtime.sqlite", clock=SteppingClock()) for _ in range(2)]
    one, other = (EmbeddedTraces(store, keep=5, clock=SteppingClock()) for store in stores)
    for number in range(12):
        (one, other)[number % 2].record(trace(f"id-{number:02}", after_s=number))
        one.flush()
        other.flush()

    assert [f"id-{number:02}" for number in range(11, 6, -1)] == ids(one) == ids(other)
    one.close()
    other.close()
    for store in stores:
        store.close()


def test_traces_are_written_without_being_asked_for(store: DictStore, traces: EmbeddedTraces) -> None:
    traces.record(trace())

    assert store.was_put.wait(10)


def test_closing_writes_what_is_left_and_ends_the_taking(store: DictStore) -> None:
    remembered = EmbeddedTraces(store, keep=10, clock=SteppingClock())
    remembered.record(trace("id-1"))
    remembered.close()
    remembered.record(trace("id-2"))
    remembered.close()

    assert ["id-1"] == ids(EmbeddedTraces(store, keep=10, clock=SteppingClock()))


def test_a_store_that_fails_loses_traces_and_nothing_else(store: DictStore, traces: EmbeddedTraces) -> None:
    store.is_full = True
    traces.record(trace("id-1"))
    traces.flush()
    store.is_full = False
    traces.record(trace("id-2"))

    assert ["id-2"] == ids(traces)


def test_what_cannot_be_read_is_passed_over(store: DictStore, traces: EmbeddedTraces) -> None:
    store.put(f"{PREFIX}00000000000000001/other.", b"{not json")
    store.put(f"{PREFIX}00000000000000002/other.", b'[{"request_id": 7}]')
    traces.record(trace())

    assert ["0123456789abcdef"] == ids(traces)


def test_what_others_keep_in_the_store_stays(store: DictStore) -> None:
    store.put("cache/a", b"kept")
    remembered = EmbeddedTraces(store, keep=1, clock=SteppingClock())
    for number in range(5):
        remembered.record(trace(f"id-{number}", after_s=number))
        remembered.flush()
    remembered.close()

    assert b"kept" == store.get("cache/a")
    assert 2 >= len(store.kept)


def test_many_threads_record_at_once(store: DictStore) -> None:
    remembered = EmbeddedTraces(store, keep=1_000, clock=SteppingClock())

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
