"""A client that leaves stops the work it caused: no further step begins, sources' calls are cancelled, nothing is written."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from engine.federated_base import OWNER, FederatedBase, ask, describe
from engine.leaky_snapshots import Leaky, LeakyIndex
from evidentia.contracts.evidence import DecomposedQuery, SubQuery
from evidentia.contracts.ids import ReceiptId
from evidentia.contracts.retrieval import Candidate, Rewriting
from evidentia.engine.pipeline import Engine
from evidentia.engine.question import Models
from evidentia.engine.retrieval_task import RetrievalTask
from evidentia.foundation.offload import ThreadPoolBlockingExecutor
from evidentia.testing.documents import make_document
from evidentia.testing.virtual_time import run_virtual

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from evidentia.contracts.receipts import Receipt
    from evidentia.contracts.retrieval import SourceAsk
    from evidentia.contracts.search import ChunkStanding, LegScores, LexicalHits, LexicalQuery, SearchHit


class HeldRewriter:
    """Implements `QueryRewriter`: begins, and goes on when it may."""

    def __init__(self) -> None:
        self.begun, self.may_go = threading.Event(), threading.Event()

    def rewrite(self, query: str, turns: Sequence[object], *, budget_ms: int) -> Rewriting:
        """Return the question as it is, later."""
        del turns, budget_ms
        self.begun.set()
        assert self.may_go.wait(60)
        return Rewriting(query=query)


class ListedReceipts:
    """Implements `ReceiptLog` as a list that is only added to."""

    def __init__(self) -> None:
        self.receipts: list[Receipt] = []

    def append(self, receipt: Receipt) -> ReceiptId:
        """Keep a receipt."""
        self.receipts.append(receipt)
        return ReceiptId(str(len(self.receipts)))

    def read(self, receipt_id: ReceiptId) -> Receipt:
        """Return a receipt."""
        return self.receipts[int(receipt_id) - 1]


@pytest.mark.parametrize("leaves", [True, False])
def test_no_step_begins_after_the_client_has_left(tmp_path: Path, leaves: bool) -> None:  # noqa: FBT001 (a parameter of the test)
    base = FederatedBase(tmp_path / "base")
    rewriter, receipts = HeldRewriter(), ListedReceipts()
    models = Models(encoder=lambda: None, reranker=lambda: None, rewriter=lambda: rewriter, merger=lambda: None, synonyms=None)
    engine = Engine(
        base.parts.index,
        receipts=receipts,
        config=base.parts.config,
        models=models,
        clock=base.clock,
        entropy=base.entropy,
    )

    async def run() -> bool:
        executor = ThreadPoolBlockingExecutor()
        task = RetrievalTask(engine, executor=executor, no_deadline=True)
        waiting = asyncio.ensure_future(task.run(ask("harbour", receipt=True), principal=OWNER))
        assert await asyncio.to_thread(rewriter.begun.wait, 60)
        if leaves:
            waiting.cancel()
            await asyncio.sleep(0)
        rewriter.may_go.set()
        await asyncio.wait({waiting})
        await executor.close()
        return waiting.cancelled()

    is_cancelled = asyncio.run(run())
    base.close()

    assert leaves is is_cancelled
    assert (0 if leaves else 1) == len(receipts.receipts)


class Hung:
    """Implements `Retriever`: says nothing, and takes note of being cancelled."""

    def __init__(self) -> None:
        self.asked, self.is_cancelled = asyncio.Event(), False

    async def retrieve(self, ask: SourceAsk) -> AsyncIterator[Candidate]:
        """Wait for ever."""
        del ask
        self.asked.set()
        try:
            await asyncio.sleep(1_000_000)
        except asyncio.CancelledError:
            self.is_cancelled = True
            raise
        yield Candidate(content="never said", own_id="1", origin="hung:1")


def test_calls_of_sources_are_cancelled_with_their_client(tmp_path: Path) -> None:
    base = FederatedBase(tmp_path / "base", descriptors=[describe("hung", expected_p99_ms=10_000)])
    source = Hung()
    base.attach({"hung": source})
    asking = base.asking()

    async def run() -> bool:
        waiting = asyncio.ensure_future(asking.retrieve(ask("harbour", latency_deadline_ms=60_000)))
        await source.asked.wait()
        waiting.cancel()
        await asyncio.wait({waiting})
        await asyncio.sleep(0.001)
        return waiting.cancelled()

    is_cancelled = run_virtual(run(), clock=base.clock)
    base.close()

    assert is_cancelled
    assert source.is_cancelled
    assert [] == asking.traces.traces


class HeldSnapshot(Leaky):
    """A snapshot that counts what is asked of it, and holds one call until it may go on."""

    held_at: tuple[str, int] = ("", 0)
    """Which method is held, and at which of its calls."""
    counts: Counter[str]
    begun: threading.Event
    may_go: threading.Event

    def _count(self, name: str) -> None:
        self.counts[name] += 1
        if (name, self.counts[name]) == self.held_at:
            self.begun.set()
            assert self.may_go.wait(60)

    def search(self, query: LexicalQuery, **given: Any) -> LexicalHits:  # Any: as the port has them
        self._count("search")
        return super().search(query, **given)

    def scores(self, hits: Sequence[SearchHit], **given: Any) -> Sequence[LegScores]:  # Any: as above
        self._count("scores")
        return super().scores(hits, **given)

    def standing(self, query: LexicalQuery, **given: Any) -> ChunkStanding | None:  # Any: as above
        self._count("standing")
        return super().standing(query, **given)


@pytest.mark.parametrize("held_at", [("search", 3), ("scores", 2), ("standing", 2)])
def test_a_loop_over_parts_or_fragments_ends_with_the_turn_in_which_the_client_leaves(tmp_path: Path, held_at: tuple[str, int]) -> None:
    documents = [make_document(f"d{number}", f"harbour crane number {number}") for number in range(8)]
    base = FederatedBase(tmp_path / "base", documents=documents)
    counts, begun, may_go = Counter[str](), threading.Event(), threading.Event()
    held = type("Held", (HeldSnapshot,), {"held_at": held_at, "counts": counts, "begun": begun, "may_go": may_go})
    models = Models(encoder=lambda: None, reranker=lambda: None, rewriter=lambda: None, merger=lambda: None, synonyms=None)
    receipts = ListedReceipts()
    engine = Engine(
        LeakyIndex(base.parts.index, held),
        receipts=receipts,
        config=base.parts.config,
        models=models,
        clock=base.clock,
        entropy=base.entropy,
    )
    parts = tuple(SubQuery(text=f"crane {number}") for number in range(6))
    request = ask(DecomposedQuery(text="harbour", subqueries=parts), receipt=True, explain=True)

    async def run() -> bool:
        executor = ThreadPoolBlockingExecutor()
        waiting = asyncio.ensure_future(RetrievalTask(engine, executor=executor, no_deadline=True).run(request, principal=OWNER))
        assert await asyncio.to_thread(begun.wait, 60)
        waiting.cancel()
        await asyncio.wait({waiting})
        may_go.set()
        await executor.close()
        return waiting.cancelled()

    is_cancelled = asyncio.run(run())
    base.close()

    assert is_cancelled
    assert held_at[1] == counts[held_at[0]]
    assert [] == receipts.receipts
