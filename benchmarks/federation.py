"""What it costs to ask sources through a base: CPU per request beside a bare `asyncio.gather` over the same sources.

    make bench-federation

The base holds no documents and the sources are lists in memory, so that what is left is the engine: planning, deadlines, breakers,
cache, checks of what came, ranking, custody, hashes, and receipts where the row has them. Figures are CPU milliseconds of all
threads per request: the median of rounds, in each of which every case is asked a batch of questions, one after the other. What a
base writes behind an answer's back is written at the end of its batch, and counts with it. A receipt's sync to disk is waiting, not
CPU, and only its writing counts here. "Taken in and kept" is what no answer can do without: every proposal is checked, cleaned and
given its identity, and what each source said is kept; nobody plans, waits, ranks or answers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import tempfile
import time
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from evidentia import aconnect
from evidentia.contracts.access import local_owner
from evidentia.contracts.evidence import SubQuery
from evidentia.contracts.ids import Sha256
from evidentia.contracts.retrieval import Candidate, SourceAsk
from evidentia.federation.cache_keys import CacheKey
from evidentia.sources.intake import Intake

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from evidentia import AsyncBase
    from evidentia.base.answers import EvidenceResponse

ROUNDS, BATCH, WARM_UP = 20, 30, 150
"""The warm-up is long enough that every source has been measured: planning and waits are those of a base in use. All in all
fewer answers are kept than the cache has room for."""
FANS = (0, 1, 10)
PROPOSALS = 10
MAX_MORE_THAN_GATHER_MS, MAX_MORE_FOR_TEN_MS = 1.0, 0.5
RESULTS = Path(__file__).parent / "results" / "federation.json"
WRITTEN_AT = datetime(2026, 1, 1, tzinfo=UTC)
FINGERPRINT = Sha256("0" * 64)


class InMemory:
    """A source that has its answer ready."""

    def __init__(self, place: int) -> None:
        self.proposals = [
            Candidate(
                content=f"Source {place} holds fragment {rank}: a sentence of the length that passages have, about subject {place * rank}.",
                own_id=f"{place}-{rank}",
                score=1 / (rank + 1),
                origin=f"memory://{place}/{rank}",
                updated_at=WRITTEN_AT,
            )
            for rank in range(PROPOSALS)
        ]

    async def retrieve(self, ask: SourceAsk) -> AsyncIterator[Candidate]:
        """Yield the ten."""
        assert ask.limit >= PROPOSALS
        for proposed in self.proposals:
            yield proposed


class Case(NamedTuple):
    """One way to ask; `cache` is empty for the bare gather, and for proposals that are taken in and kept without it."""

    sources: int
    cache: str = ""
    receipt: bool = False
    is_kept: bool = False

    @property
    def name(self) -> str:
        """Return it in words."""
        if not self.cache:
            return f"taken in and kept, {self.sources}" if self.is_kept else f"gather, {self.sources}"
        return f"retrieve, {self.sources}, {self.cache}{', receipt' if self.receipt else ''}"


ASKED, NEW, KEPT = "max_staleness_ms=0", "new question", "question asked before"
CASES = (
    *(Case(sources, is_kept=is_kept) for is_kept in (False, True) for sources in FANS if sources),
    *(Case(sources, cache, receipt) for receipt in (False, True) for cache in (ASKED, NEW, KEPT) for sources in FANS),
)


class Asked:
    """Asks one case, each time a question that nobody asked before unless the case is about those."""

    def __init__(self, case: Case, *, base: AsyncBase, sources: list[InMemory]) -> None:
        self._case = case
        self._base = base
        self._sources = sources
        self._asked = 0
        self.stages: list[dict[str, float]] = []
        self.one = self._retrieve if case.cache else self._take_in if case.is_kept else self._gather

    async def _gather(self) -> None:
        ask = self._ask()
        lists = await asyncio.gather(*(_drained(source, ask) for source in self._sources))
        assert sum(map(len, lists)) == PROPOSALS * len(self._sources)

    async def _take_in(self) -> None:
        parts, ask = self._base._parts, self._ask()  # noqa: SLF001 - as below
        descriptors = parts.index().at(search=parts.settings.search).descriptors().values()
        kept = []
        for source, descriptor in zip(self._sources, descriptors, strict=True):
            intake = Intake(descriptor, ask, settings=parts.settings.sources, now=parts.clock.now)
            for proposed in source.proposals:
                assert intake.take(proposed)
            asked = CacheKey(descriptor=descriptor, data_version="", ask=ask, fingerprint=FINGERPRINT, generation=0)
            kept.append((asked, intake.finished().candidates, WRITTEN_AT))
        parts.federation().cache.for_request().put_all(kept, precomputed=False, is_soon=True)

    def _ask(self) -> SourceAsk:
        return SourceAsk(query=SubQuery(text=self._question()), principal=local_owner(), limit=30, budget_ms=500, as_of=WRITTEN_AT)

    async def _retrieve(self) -> None:
        case = self._case
        fields: dict[str, object] = {"max_staleness_ms": 0} if case.cache == ASKED else {}
        response = await self._base.retrieve(
            self._question(), limit=PROPOSALS, receipt=case.receipt, source_policy={"most_sources": len(self._sources)}, **fields
        )
        _check(response, case)
        self.stages.append({**response.stage_latencies_ms, "whole": response.latency_ms})

    def settle(self) -> None:
        """Write what waits to be written, so that its cost is counted here and not with the next case."""
        if self._case.cache or self._case.is_kept:
            self._base._parts.federation().cache.write(is_soon=False)  # noqa: SLF001 - there is no need for it but to measure

    def _question(self) -> str:
        self._asked += 1
        number = 0 if self._case.cache == KEPT else self._asked
        return f"{self._case.name}: what does subject {number} hold"


async def _drained(source: InMemory, ask: SourceAsk) -> list[Candidate]:
    return [proposed async for proposed in source.retrieve(ask)]


def _check(response: EvidenceResponse, case: Case) -> None:
    """Hold every case to what it claims to measure: all sources took part, and none that should not was spared by the cache."""
    states = {report.state.value for report in response.source_coverage.values()}
    assert len(response.source_coverage) == case.sources
    assert len(response.fragments) == (PROPOSALS if case.sources else 0)
    assert states <= ({"cached", "searched"} if case.cache == KEPT else {"searched"}), states
    assert bool(response.receipt_id) is case.receipt


async def measure(rounds: int) -> dict[str, Any]:
    """Ask all cases in turn, round by round, and return milliseconds of CPU per request."""
    async with AsyncExitStack() as opened:
        asked = {case: await _opened(case, opened) for case in CASES}
        for each in asked.values():
            await _spent_ms(each.one, WARM_UP, settle=each.settle)
            each.stages.clear()
        rows: dict[Case, list[float]] = {case: [] for case in CASES}
        load_before = os.getloadavg()[0]
        for _ in range(rounds):
            for case, each in asked.items():
                rows[case].append(await _spent_ms(each.one, BATCH, settle=each.settle))
        cpu_ms = {case: round(float(np.median(spent)), 3) for case, spent in rows.items()}
        return {
            "load_average_before_and_after": [round(load_before, 2), round(os.getloadavg()[0], 2)],
            "cpu_ms_per_request": {case.name: cpu_ms[case] for case in CASES},
            "least_cpu_ms_per_request": {case.name: round(min(rows[case]), 3) for case in CASES},
            "readings": _readings(cpu_ms),
            "stages_p50_wall_ms": {case.name: _stages(each.stages) for case, each in asked.items() if each.stages},
        }


async def _opened(case: Case, opened: AsyncExitStack) -> Asked:
    home = opened.enter_context(tempfile.TemporaryDirectory())
    base = await opened.enter_async_context(await aconnect(Path(home) / "base", init=True))
    sources = [InMemory(place) for place in range(case.sources)]
    for place, source in enumerate(sources):
        await base.add_source({"source_id": f"memory-{place:02}", "source_type": "api", "latency_tier": "hot"}, source)
    return Asked(case, base=base, sources=sources)


async def _spent_ms(one: Callable[[], Awaitable[None]], times: int, *, settle: Callable[[], None] | None = None) -> float:
    started_ns = time.process_time_ns()
    for _ in range(times):
        await one()
    if settle is not None:
        settle()
    return (time.process_time_ns() - started_ns) / 1e6 / times


def _readings(cpu_ms: dict[Case, float]) -> list[dict[str, Any]]:
    """Return both targets for every way to ask: what one source costs beyond gather, and what ten cost beyond one."""
    made = []
    for receipt in (False, True):
        for cache in (ASKED, NEW, KEPT):
            none, one, ten = (cpu_ms[Case(sources, cache, receipt)] for sources in FANS)
            beyond_gather, beyond_one = one - cpu_ms[Case(1)], ten - one
            made.append(
                {
                    "cache": cache,
                    "receipt": receipt,
                    "one_beyond_gather_of_one_ms": round(beyond_gather, 3),
                    "ten_beyond_one_ms": round(beyond_one, 3),
                    "ten_beyond_gather_of_ten_ms": round(ten - cpu_ms[Case(10)], 3),
                    "one_beyond_none_ms": round(one - none, 3),
                    "is_within_targets": beyond_gather <= MAX_MORE_THAN_GATHER_MS and beyond_one <= MAX_MORE_FOR_TEN_MS,
                }
            )
    return made


def _stages(answers: list[dict[str, float]]) -> dict[str, float]:
    return {stage: round(float(np.median([each[stage] for each in answers])), 3) for stage in answers[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description="CPU per request over sources, beside asyncio.gather.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="the results are written when it is the usual number")
    given = parser.parse_args()
    report = {
        "command": "make bench-federation",
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "rounds": given.rounds,
        "requests_per_round": BATCH,
        "proposals_of_each_source": PROPOSALS,
        "targets_ms": {"one_beyond_gather_of_one": MAX_MORE_THAN_GATHER_MS, "ten_beyond_one": MAX_MORE_FOR_TEN_MS},
        **asyncio.run(measure(given.rounds)),
    }
    print(json.dumps(report, indent=1))
    if given.rounds == ROUNDS:
        RESULTS.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
