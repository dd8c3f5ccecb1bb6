"""Who is registered first, attached first or answers first changes no answer, nor does it matter whether an answer was kept."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from engine.federated_base import FederatedBase, ask, describe
from engine.small_base import memory_folder
from evidentia.contracts.documents import ChangeSet
from evidentia.contracts.evidence import DecomposedQuery, SubQuery
from evidentia.contracts.retrieval import Candidate
from evidentia.contracts.sources import SourcePolicy
from evidentia.contracts.vocabulary import AuthorityTier, ContentType, CoverageState
from evidentia.testing.determinism import START
from evidentia.testing.documents import make_document
from evidentia.testing.virtual_time import run_virtual
from soak import cases

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from evidentia.contracts.evidence import EvidenceRequest, EvidenceResponse
    from evidentia.contracts.retrieval import SourceAsk
    from evidentia.contracts.sources import SourceDescriptor

ALL_WORLDS, BASES, RUNS = 10, 4, 25
WORLDS = cases(4, of=ALL_WORLDS)
AS_OF = START + timedelta(days=30)
WORDS = ("harbour", "crane", "gate", "timeout", "limit", "pier", "tide")
CLAIMS = ("The gate timeout is 30 seconds.", "The gate timeout is 60 seconds.", "The crane limit is 40 tonnes.", "Set `gate.timeout = 45`.")


class PacedSource:
    """Implements `Retriever`: always the same fragments, after a pause that each run sets anew."""

    def __init__(self, seed: str) -> None:
        self.pause_s = 0.0
        draw = Random(seed)
        is_scored = draw.random() < 0.6
        self._candidates = [
            Candidate(
                content=draw.choice((*CLAIMS, " ".join(draw.choices(WORDS, k=draw.randint(2, 6))))),
                own_id=f"{place}" if draw.random() < 0.8 else "",
                origin=f"test://{seed}/{place}" if draw.random() < 0.9 else "",
                score=draw.choice((0.2, 0.5, 0.5, 0.9)) if is_scored else None,
                updated_at=draw.choice((None, START, START - timedelta(days=draw.randint(1, 400)))),
                confidence=draw.choice((None, 0.1, 0.7)),
                content_type=draw.choice(tuple(ContentType)),
            )
            for place in range(draw.randint(1, 8))
        ]

    async def retrieve(self, asked: SourceAsk) -> AsyncIterator[object]:
        """Yield them, half of them after half of the pause."""
        await asyncio.sleep(self.pause_s / 2)
        for place, candidate in enumerate(self._candidates[: asked.limit]):
            if place == len(self._candidates) // 2:
                await asyncio.sleep(self.pause_s / 2)
            yield candidate


class OrderedWorld:
    """The same documents and sources in several bases, each of which got to know the sources in another order."""

    def __init__(self, number: int, directory: Path) -> None:
        self.draw = draw = Random(f"order {number}")
        names = [f"s{place}" for place in range(draw.randint(2, 9))]
        self.sources = {name: PacedSource(f"{number} {name}") for name in names}
        descriptors = [self._describe(name) for name in names]
        own = [] if number % 3 == 0 else [make_document(f"d{place}", text) for place, text in enumerate((*CLAIMS, "harbour crane gate"))]
        self.bases = []
        for copy in range(BASES):
            base = FederatedBase(directory / f"base{copy}", documents=own)
            for descriptor in draw.sample(descriptors, len(descriptors)):
                base.commit(ChangeSet(), descriptor)
            self.bases.append(base)
        self.requests = self._requests()

    def _describe(self, name: str) -> SourceDescriptor:
        return describe(
            name,
            authority_tier=self.draw.choice((AuthorityTier.CANONICAL, AuthorityTier.CURATED, AuthorityTier.CURATED, AuthorityTier.DERIVED)),
            weight_milli=self.draw.choice((500, 1_000, 1_000, 2_000)),
            expected_p99_ms=200,
        )

    def _requests(self) -> list[EvidenceRequest]:
        parts = DecomposedQuery(text="gate and crane", subqueries=(SubQuery(text="gate timeout"), SubQuery(text="crane limit", weight=0.5)))
        everybody = SourcePolicy(most_sources=12)
        return [
            ask("gate timeout", policy=everybody, as_of=AS_OF),
            ask("crane limit harbour", policy=everybody, as_of=AS_OF, limit=3, provenance_required=False),
            ask(parts, policy=everybody, as_of=AS_OF, token_budget=150),
        ]

    def run(self, number: int) -> tuple[list[EvidenceResponse], tuple[str, ...]]:
        """Ask everything twice, with new paces and a new engine; return the answers and who was quickest."""
        base, draw = self.bases[number % BASES], self.draw
        for source in self.sources.values():
            source.pause_s = draw.choice((0.0, draw.randint(1, 250) / 1_000))
        for name in draw.sample(sorted(self.sources), len(self.sources)):
            base.attach({name: self.sources[name]})
        asking = base.asking()
        request = self.requests[number % len(self.requests)]

        async def twice() -> list[EvidenceResponse]:
            return [await asking.retrieve(request), await asking.retrieve(request)]

        return run_virtual(twice(), clock=base.clock), tuple(sorted(self.sources, key=lambda name: self.sources[name].pause_s))

    def close(self) -> None:
        """Give back what the bases hold."""
        for base in self.bases:
            base.close()


def states(response: EvidenceResponse, names: Sequence[str]) -> set[CoverageState]:
    return {report.state for source, report in response.source_coverage.items() if source in names}


@pytest.mark.parametrize("number", range(WORLDS))
def test_no_order_of_arrival_or_registration_changes_an_answer(number: int, tmp_path: Path) -> None:
    hashes: dict[int, set[str]] = {}
    orders = set()
    answers = 0
    with memory_folder(tmp_path) as folder:
        world = OrderedWorld(number, Path(folder))
        for run in range(BASES * RUNS):
            (first, again), order = world.run(run)
            orders.add(order)
            answers += 1
            hashes.setdefault(run % len(world.requests), set()).update((first.result_hash, again.result_hash))

            assert {CoverageState.SEARCHED} == states(first, list(world.sources))
            assert {CoverageState.CACHED} == states(again, list(world.sources))
            assert [each.chunk_id for each in first.fragments] == [each.chunk_id for each in again.fragments]
            assert first.fragments
        world.close()

    assert [1, 1, 1] == [len(seen) for _, seen in sorted(hashes.items())]
    assert 1_000 <= ALL_WORLDS * answers
    assert len(orders) > (1 if len(world.sources) == 2 else 5)
