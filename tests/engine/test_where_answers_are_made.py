"""What waits for a disk or a model is never done on the event loop; what only has to be worked out stays there while it is little."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from engine.federated_base import OWNER, ask, describe
from evidentia.contracts.ids import SourceId
from evidentia.contracts.retrieval import Candidate
from evidentia.engine.retrieval_task import MAX_CANDIDATES, MAX_CHARS
from evidentia.foundation.offload import ThreadPoolBlockingExecutor
from evidentia.testing.determinism import RepeatableEntropy
from evidentia.wiring import embedded as wiring
from evidentia.wiring.settings_file import SETTINGS_NAME

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from evidentia.contracts.evidence import EvidenceResponse
    from evidentia.contracts.retrieval import SourceAsk

SETTINGS = '[embedding]\nencoder = "none"\n[sources]\nmost_candidates = 400\n[fanout]\nbackground_ms = 60000\n'


class SeenEntropy(RepeatableEntropy):
    """Implements `Entropy`, of which every answer takes a little, and takes note of the threads that ask for some."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: list[threading.Thread] = []

    def take(self, count: int) -> bytes:
        """Return bytes."""
        self.threads.append(threading.current_thread())
        return super().take(count)


class Listed:
    """Implements `Retriever` over a list."""

    def __init__(self, *contents: str) -> None:
        self._contents = contents

    async def retrieve(self, asked: SourceAsk) -> AsyncIterator[Candidate]:
        """Yield the list."""
        for number, content in enumerate(self._contents):
            yield Candidate(content=content, own_id=f"{asked.query.text} {number}", origin=f"listed:{number}")


def answered(directory: Path, source: Listed, **fields: object) -> tuple[EvidenceResponse, bool]:
    """Return an answer, and whether it was made on the event loop."""
    entropy = SeenEntropy()
    wiring.create(directory, entropy=entropy)
    (directory / SETTINGS_NAME).write_text(SETTINGS)
    parts = wiring.open_parts(directory, entropy=entropy)

    async def run() -> tuple[EvidenceResponse, bool]:
        parts.registry.register(describe("listed", expected_p99_ms=20_000))
        parts.sources.attach(SourceId("listed"), source)
        response = await parts.retrieve(ask("harbour", latency_deadline_ms=60_000, **fields), principal=OWNER)  # type: ignore[arg-type]  # fields of a request
        is_here = entropy.threads[-1] is threading.current_thread()
        await parts.close_sources()
        return response, is_here

    try:
        return asyncio.run(run())
    finally:
        parts.close()


def test_a_little_that_sources_said_goes_to_its_answer_on_the_event_loop(tmp_path: Path) -> None:
    response, is_here = answered(tmp_path, Listed("The harbour is open.", "The harbour is closed."))

    assert is_here
    assert 2 == len(response.fragments)


@pytest.mark.parametrize("fields", [{"receipt": True}, {"token_budget": 50}])
def test_what_may_wait_for_the_disk_or_a_model_does_not(tmp_path: Path, fields: dict[str, object]) -> None:
    response, is_here = answered(tmp_path, Listed("The harbour is open."), **fields)

    assert not is_here
    assert 1 == len(response.fragments)
    assert bool(response.receipt_id) is ("receipt" in fields)


@pytest.mark.parametrize("contents", [["short"] * (MAX_CANDIDATES + 1), ["The harbour is open. " * 500] * (MAX_CHARS // 10_000)])
def test_much_text_is_not_worked_out_where_others_wait_for_their_turn(tmp_path: Path, contents: list[str]) -> None:
    response, is_here = answered(tmp_path, Listed(*contents))

    assert not is_here
    assert response.source_coverage[SourceId("listed")].candidates == len(contents)


def test_an_answer_is_the_same_wherever_it_was_made(tmp_path: Path) -> None:
    here, is_here = answered(tmp_path / "here", Listed("The harbour is open."))
    there, is_there = answered(tmp_path / "there", Listed("The harbour is open."), receipt=True)

    assert (True, False) == (is_here, is_there)
    assert [each.chunk_id for each in here.fragments] == [each.chunk_id for each in there.fragments]
    assert [each.score for each in here.fragments] == [each.score for each in there.fragments]


def test_workers_pass_on_what_work_returns_and_raises() -> None:
    def broken() -> None:
        raise ValueError("broken")

    async def run() -> tuple[int, bool]:
        workers = ThreadPoolBlockingExecutor()
        ident = await workers.run(threading.get_ident)
        with pytest.raises(ValueError, match="broken"):
            await workers.run(broken)
        await workers.close()
        return ident, await workers.run(lambda: True)

    ident, is_open_again = asyncio.run(run())
    assert threading.get_ident() != ident
    assert is_open_again


def test_work_that_has_begun_goes_on_when_nobody_waits() -> None:
    begun, may_go, is_done = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        assert may_go.wait(60)
        is_done.set()

    async def run() -> None:
        workers = ThreadPoolBlockingExecutor()
        waiting = asyncio.ensure_future(workers.run(work))
        await asyncio.to_thread(begun.wait, 60)
        waiting.cancel()
        may_go.set()
        await workers.close()

    asyncio.run(run())
    assert is_done.is_set()
