"""Callers without an event loop: the same answers and the same deadlines, and no loop where nobody outside is asked."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING

import pytest

import evidentia
from evidentia.contracts.ids import SourceId
from evidentia.contracts.retrieval import Candidate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class SourceInMemory:
    """A source in memory."""

    def retrieve(self, query: str, *, limit: int) -> list[Candidate]:
        del limit
        return [Candidate(content=f"what it says of {query}", own_id="1", score=1.0)]


@pytest.fixture
def base(tmp_path: Path) -> Iterator[evidentia.Base]:
    (tmp_path / "keys.md").write_text("# Keys\n\nSigning keys are rotated every quarter.\n", encoding="utf-8")
    with evidentia.connect(tmp_path / "base", init=True) as opened:
        opened.ingest([tmp_path / "keys.md"], embed=False)
    with evidentia.connect(tmp_path / "base") as opened:
        yield opened


def _loops() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name in {"evidentia", "asyncio_0"}]


def test_a_base_that_asks_nobody_needs_no_event_loop(base: evidentia.Base) -> None:
    before = set(_loops())
    assert base.retrieve("how often are keys rotated").fragments
    assert not set(_loops()) - before


def test_every_stage_of_an_answer_has_its_time_and_its_decision(base: evidentia.Base) -> None:
    response = base.retrieve("how often are keys rotated")
    assert "seal" == list(response.stage_latencies_ms)[-1]
    assert [decision.stage for decision in response.decisions] == list(response.stage_latencies_ms)


def test_a_source_is_asked_all_the_same(base: evidentia.Base) -> None:
    base.add_source({"source_id": "memory", "source_type": "api"}, SourceInMemory())
    response = base.retrieve("how often are keys rotated")
    assert 1 == response.source_coverage[SourceId("memory")].candidates


def test_both_ways_give_one_answer(base: evidentia.Base) -> None:
    async def ask() -> str:
        async with await evidentia.aconnect(base.path) as other:
            return (await other.retrieve("rotated keys", as_of="2026-01-01T00:00:00Z")).result_hash

    assert base.retrieve("rotated keys", as_of="2026-01-01T00:00:00Z").result_hash == asyncio.run(ask())


def test_a_search_that_hangs_does_not_hold_up_the_answer(base: evidentia.Base, monkeypatch: pytest.MonkeyPatch) -> None:
    from evidentia.engine.pipeline import Engine

    base.retrieve("keys")
    may_go = threading.Event()
    search = Engine.search_base

    def hang(self: Engine, *given: object) -> object:
        may_go.wait(30)
        return search(self, *given)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(Engine, "search_base", hang)
    began = time.monotonic()
    response = base.retrieve("keys", latency_deadline_ms=300)
    took_s = time.monotonic() - began
    may_go.set()
    assert response.degraded
    assert took_s < 15, "it waited for the search"


def test_what_the_thread_raises_reaches_the_caller(base: evidentia.Base) -> None:
    with pytest.raises(evidentia.EvidentiaError):
        base.retrieve("keys", latency_deadline_ms=0)
