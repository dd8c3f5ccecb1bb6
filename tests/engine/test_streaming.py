"""A stream tells of every source once, offers what the answer would be by then, and ends with the answer that `retrieve` gives."""

from __future__ import annotations

import asyncio
import threading
from contextlib import aclosing
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from engine.federated_base import FederatedBase, ask, describe
from engine.shifty_sources import ShiftySource
from engine.small_base import memory_folder
from evidentia import aconnect, connect
from evidentia.contracts.canonical import sha256_hex
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.evidence import DecomposedQuery, FinalResponse, ProvisionalFragments, SourceFinished, SubQuery
from evidentia.contracts.ids import SourceId
from evidentia.contracts.settings import FanoutSettings
from evidentia.contracts.sources import SourceAccessPolicy, SourcePolicy
from evidentia.contracts.vocabulary import CoverageState
from evidentia.testing.determinism import START
from evidentia.testing.documents import make_document
from evidentia.testing.faulty_sources import FaultySource
from evidentia.testing.virtual_time import run_virtual
from evidentia.wiring.settings_file import SETTINGS_NAME

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from engine.federated_base import Asking
    from evidentia.base.async_base import AsyncBase
    from evidentia.contracts.evidence import EvidenceRequest, EvidenceResponse, StreamEvent

RUNS = 60
NAMES = tuple(f"s{number}" for number in range(6))
AS_OF = START + timedelta(days=300)
WORDS = "harbour crane"
PLENTY_MS = 20_000


def make_base(directory: Path) -> FederatedBase:
    descriptors = [describe(name, expected_p99_ms=60) for name in NAMES]
    nobody = SourceAccessPolicy(tenants=("elsewhere",))
    documents = [make_document("a", "The harbour opens at noon."), make_document("b", "The crane lifts 40 tonnes.", source="more")]
    return FederatedBase(
        directory, documents=documents, descriptors=[*descriptors, describe("detached"), describe("forbidden", policy=nobody)]
    )


async def watched(asking: Asking, request: EvidenceRequest) -> tuple[list[StreamEvent], EvidenceResponse]:
    events: list[StreamEvent] = []
    response = await asking.retrieve(request, watch=events.append)
    return events, response


def check_events(events: list[StreamEvent], response: EvidenceResponse, *, is_divided: bool = False) -> int:
    """Check what a stream told before its end; return how often it offered something.

    Of a question that was divided, a source may have answered one part before it has finished.
    """
    finished = [event for event in events if isinstance(event, SourceFinished)]

    assert sorted(response.source_coverage) == sorted(event.source_id for event in finished)
    for each in finished:
        final, told = response.source_coverage[each.source_id], each.report
        assert (final.state, final.reason, final.candidates, final.faults) == (told.state, told.reason, told.candidates, told.faults)
    known: set[str] = set()
    offers = 0
    for event in events:
        if isinstance(event, SourceFinished):
            known.add(event.source_id)
        elif isinstance(event, ProvisionalFragments):
            offers += 1
            assert is_divided or set(event.sources) <= known
            assert {fragment.source_id for fragment in event.fragments} <= set(event.sources)
            for fragment in event.fragments:
                assert sha256_hex((fragment.content + fragment.cut_off).encode()) == fragment.content_hash
                assert fragment.provenance_chain
    return offers


def test_a_stream_tells_of_every_source_once_whatever_it_does(tmp_path: Path) -> None:
    rng = Random("streams")
    offers = 0
    with memory_folder(tmp_path) as folder:
        base = make_base(Path(folder) / "base")
        base.attach({name: ShiftySource(number, rng, base.clock) for number, name in enumerate(NAMES)})
        base.attach({"forbidden": FaultySource()})
        parts = DecomposedQuery(text=WORDS, subqueries=(SubQuery(text="harbour"), SubQuery(text="crane")))

        async def run() -> None:
            nonlocal offers
            asking = base.asking(fanout=FanoutSettings(breaker_failures=3, breaker_open_ms=500))
            for number in range(RUNS):
                request = ask(
                    rng.choice((WORDS, "harbour")),
                    agent_name=f"r{number}",
                    early_stop=rng.random() < 0.2,
                    policy=rng.choice(
                        (
                            SourcePolicy(most_sources=12),
                            SourcePolicy(most_sources=3),
                            SourcePolicy(allowed_sources=tuple(map(SourceId, ("s1", "s2", "forbidden", "unheard of", "more")))),
                        )
                    ),
                )
                events, response = await watched(asking, request)
                offers += check_events(events, response)
                await asyncio.sleep(rng.choice((0.0, 0.4)))
            await asking.federation.close()

        async def run_parts() -> None:
            for name, pause in zip(NAMES, (0, 5, 10, 20, 30, 40), strict=True):
                base.attach({name: FaultySource(seed=1, pause_ms=pause, proposals=3)})
            events, response = await watched(base.asking(), ask(parts))
            assert check_events(events, response, is_divided=True) > 1
            assert 6 == response.source_coverage[SourceId("s0")].candidates

        run_virtual(run(), clock=base.clock)
        run_virtual(run_parts(), clock=base.clock)
        base.close()

    assert offers > RUNS // 4


def test_being_watched_changes_no_answer(tmp_path: Path) -> None:
    with memory_folder(tmp_path) as folder:
        base = make_base(Path(folder) / "base")
        base.attach({name: FaultySource(seed=number, pause_ms=5 * number) for number, name in enumerate(NAMES)})
        request = ask(WORDS, as_of=AS_OF)

        async def both() -> tuple[EvidenceResponse, EvidenceResponse, list[StreamEvent]]:
            plain = await base.asking().retrieve(request)
            events, streamed = await watched(base.asking(), request)
            return plain, streamed, events

        plain, streamed, events = run_virtual(both(), clock=base.clock)
        base.close()
    offered = [event for event in events if isinstance(event, ProvisionalFragments)]

    assert plain.result_hash == streamed.result_hash
    assert len(offered) > 3
    assert all(len(before.sources) <= len(after.sources) for before, after in pairwise(offered))


# --- the surface ---


class Answering:
    """Answers at once."""

    async def retrieve(self, query: str) -> list[dict[str, object]]:
        return [{"id": "w1", "content": f"The wiki on {query}", "url": "https://wiki/w1"}]


class Hanging:
    """Never answers, and notes how that ends."""

    def __init__(self) -> None:
        self.is_asked = threading.Event()
        self.is_cancelled = threading.Event()

    async def retrieve(self, query: str) -> AsyncIterator[str]:
        self.is_asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.is_cancelled.set()
            raise
        yield query


def prepared(directory: Path) -> Path:
    with connect(directory, init=True):
        pass
    (directory / SETTINGS_NAME).write_text('[embedding]\nencoder = "none"\n', encoding="utf-8")
    return directory


async def add_sources(base: AsyncBase, hanging: Hanging | None) -> None:
    await base.add_source({"source_id": "wiki", "source_type": "api", "expected_p99_ms": PLENTY_MS // 3}, Answering())
    if hanging is not None:
        await base.add_source({"source_id": "hanging", "source_type": "api", "expected_p99_ms": PLENTY_MS // 3}, hanging)


def test_a_stream_ends_with_the_answer_that_retrieve_gives(tmp_path: Path) -> None:
    fields = {"as_of": AS_OF, "latency_deadline_ms": PLENTY_MS, "mode": "lexical"}
    with connect(prepared(tmp_path / "base")) as base:
        base.add_source({"source_id": "wiki", "source_type": "api", "expected_p99_ms": PLENTY_MS // 3}, Answering())
        events = list(base.retrieve_stream(WORDS, **fields))
        answer = base.retrieve(WORDS, **fields)
        final = events[-1]

    assert isinstance(final, FinalResponse)
    assert answer.result_hash == final.response.result_hash
    assert final.response.receipt_id is not None
    assert 1 == sum(isinstance(event, FinalResponse) for event in events)
    assert ["wiki"] == [event.source_id for event in events if isinstance(event, SourceFinished)]


def test_leaving_a_stream_early_ends_what_it_began(tmp_path: Path) -> None:
    hanging = Hanging()

    async def leave() -> set[asyncio.Task[object]]:
        async with await aconnect(prepared_path) as base:
            await add_sources(base, hanging)
            await base.retrieve(WORDS, source_policy={"allowed_sources": ["wiki"]})
            before = asyncio.all_tasks()
            async with aclosing(base.retrieve_stream(WORDS, latency_deadline_ms=PLENTY_MS, mode="lexical")) as events:
                async for event in events:
                    if isinstance(event, SourceFinished) and event.source_id == "wiki":
                        break
            for _ in range(5):
                await asyncio.sleep(0)
            return asyncio.all_tasks() - before

    prepared_path = prepared(tmp_path / "base")
    left = asyncio.run(leave())

    assert set() == left
    assert hanging.is_asked.is_set()
    assert hanging.is_cancelled.is_set()


def test_leaving_a_stream_early_gives_back_its_threads(tmp_path: Path) -> None:
    hanging = Hanging()
    before = set(threading.enumerate())
    with connect(prepared(tmp_path / "base")) as base:
        base.add_source({"source_id": "wiki", "source_type": "api", "expected_p99_ms": PLENTY_MS // 3}, Answering())
        base.add_source({"source_id": "hanging", "source_type": "api", "expected_p99_ms": PLENTY_MS // 3}, hanging)
        for event in base.retrieve_stream(WORDS, latency_deadline_ms=PLENTY_MS, mode="lexical"):
            assert isinstance(event, (SourceFinished, ProvisionalFragments))
            break

        assert hanging.is_cancelled.wait(timeout=30)
        answer = base.retrieve(WORDS, mode="lexical", source_policy={"allowed_sources": ["wiki"]})
        assert CoverageState.CACHED is not answer.source_coverage[SourceId("hanging")].state
    left = [thread.name for thread in threading.enumerate() if thread not in before and thread.name.startswith("evidentia")]

    assert [] == left


def test_a_stream_raises_what_is_wrong_with_the_request(tmp_path: Path) -> None:
    with connect(prepared(tmp_path / "base")) as base:
        with pytest.raises(InvalidFieldError, match="limit"):
            list(base.retrieve_stream(WORDS, limit=0))
        with pytest.raises(InvalidFieldError, match="query"):
            list(base.retrieve_stream("   "))
