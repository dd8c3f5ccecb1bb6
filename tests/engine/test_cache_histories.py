"""After a change no tier brings the old state back: random histories of a base, another base and Python sources.

What an answer has to hold is known from the history alone: everything that is there now and that the caller may see, and nothing else.
The default run plays a quarter of the histories; EVIDENTIA_SOAK=full plays all of them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import msgspec
import pytest

from engine.federated_base import OWNER, FederatedBase, ask, describe
from engine.small_base import memory_folder
from evidentia.contracts.access import AccessRule, Principal
from evidentia.contracts.documents import AccessChange, ChangeSet
from evidentia.contracts.ids import PrincipalId, SemanticVersion, SourceId, document_id_of
from evidentia.contracts.retrieval import Candidate
from evidentia.contracts.sources import SourceAccessPolicy, SourceConnection
from evidentia.contracts.vocabulary import Classification, ConnectionKind, CoverageState, QueryStepName, SourceType
from evidentia.testing.documents import make_document
from evidentia.testing.faulty_sources import FaultySource
from evidentia.wiring import embedded as wiring
from evidentia.wiring.settings_file import SETTINGS_NAME
from soak import cases

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from evidentia.contracts.evidence import EvidenceRequest, EvidenceResponse
    from evidentia.contracts.retrieval import SourceAsk
    from evidentia.contracts.sources import SourceDescriptor
    from evidentia.wiring.embedded import EmbeddedComponents

ALL_SHARDS, HISTORIES, EVENTS = 8, 125, (3, 4)
SHARDS = cases(2, of=ALL_SHARDS)
OWN, OTHER, PYTHON, SLOW = "own", "other", "python", "slow"
QUERIES = ("open the harbour", "close the harbour")
SETTINGS = (
    '[embedding]\nencoder = "none"\n'
    "[fanout]\nbreaker_failures = 1000000\nbackground_ms = 60000\nbackground_calls = 1000\n"
    "[telemetry]\ntraces = 0\n"
)
PATIENCE_MS = 60_000
SLOW_P99_MS, HISTORIES_PER_NAME = 10, 12
"""After 100 calls a source is waited for as long as it was measured to take, which a late one would stretch; so its name is given up."""
OPEN, FOR_BOB = AccessRule(classification=Classification.PUBLIC), AccessRule(classification=Classification.PUBLIC, acl=("user:bob",))
PEOPLE = tuple(Principal(principal_id=PrincipalId(name), clearance=Classification.INTERNAL) for name in ("ann", "bob"))


class EntryStore:
    """The documents of one source as they are now: a text and a rule per name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.documents: dict[str, tuple[str, AccessRule]] = {}
        self._written = 0

    def write(self, own_id: str, rule: AccessRule) -> str:
        """Put a new text under a name, and return it."""
        self._written += 1
        text = f"The harbour of {self.name} {own_id}, as of change {self._written}."
        self.documents[own_id] = (text, rule)
        return text

    def seen_by(self, caller: Principal) -> set[str]:
        """Return the texts that a caller may see now."""
        return {text for text, rule in self.documents.values() if not rule.acl or f"user:{caller.principal_id}" in rule.acl}


class ShelfSource:
    """Implements `Retriever` over a shelf; while its gate is shut it answers nobody, and then with what was there when it was asked."""

    def __init__(self, shelf: EntryStore) -> None:
        self.gate = asyncio.Event()
        self.gate.set()
        self._shelf = shelf

    async def retrieve(self, asked: SourceAsk) -> AsyncIterator[object]:
        """Yield every document."""
        found = sorted(self._shelf.documents.items())
        await self.gate.wait()
        for own_id, (text, rule) in found[: asked.limit]:
            yield Candidate(content=text, own_id=own_id, origin=f"shelf:{own_id}", access=rule)


class Histories:
    """A base with documents of its own that asks another base and two Python sources, through thousands of changes."""

    def __init__(self, shard: int, folder: Path) -> None:
        self.rng = Random(f"histories {shard}")
        self.tally: Counter[str] = Counter()
        self.shelves = {name: EntryStore(name) for name in (OWN, OTHER, PYTHON, SLOW)}
        self.bases = {OWN: _opened(folder / "base"), OTHER: _opened(folder / "other")}
        self.parts = self.bases[OWN]
        self.sources = {name: ShelfSource(self.shelves[name]) for name in (PYTHON, SLOW)}
        self.descriptors = {
            OTHER: describe(
                OTHER,
                source_type=SourceType.INVERTED_INDEX,
                expected_p99_ms=PATIENCE_MS // 3,
                connection=SourceConnection(kind=ConnectionKind.BASE, address=str(folder / "other")),
            ),
            PYTHON: describe(PYTHON, expected_p99_ms=PATIENCE_MS // 3),
            SLOW: describe(SLOW, expected_p99_ms=SLOW_P99_MS),
        }
        for descriptor in self.descriptors.values():
            self.parts.registry.register(descriptor)
        for name, source in self.sources.items():
            self.parts.sources.attach(SourceId(name), source)
        self.slow = SLOW
        """What the slow source is called at present."""
        for name in self.shelves:
            for own_id in ("a", "b", "c"):
                self.write(name, own_id)

    async def run(self) -> None:
        events = (self.write_one, self.write_one, self.remove_one, self.tighten_one, self.loosen_one, self.register_again, self.answer_late)
        for number in range(HISTORIES):
            self.tally["histories"] += 1
            if number % HISTORIES_PER_NAME == 0:
                self.rename_slow(f"{SLOW}-{number}")
            caller, request = self.rng.choice(PEOPLE), self.make_request()
            await self.parts.retrieve(request, principal=caller, prefetch=self.rng.random() < 0.2)
            for _ in range(self.rng.randint(*EVENTS)):
                event = self.rng.choice(events)
                await event(caller, request)
                self.tally[event.__name__] += 1
                self.check(await self.parts.retrieve(request, principal=caller), caller)
        await self.parts.close_sources()

    def make_request(self) -> EvidenceRequest:
        session = self.rng.choice((None, None, "one"))
        query = self.rng.choice(QUERIES)
        return ask(
            query,
            latency_deadline_ms=PATIENCE_MS,
            session_context=session,
            limit=40,
            diversity_constraint=1.0,
            without=(QueryStepName.SPELLING,),
        )

    def check(self, response: EvidenceResponse, caller: Principal) -> None:
        """Compare an answer with what is there now; a source that the machine was too slow for may be missing, never old."""
        for name, shelf in self.shelves.items():
            source_id = SourceId(self.slow if name == SLOW else name)
            told = {fragment.content for fragment in response.fragments if fragment.source_id == source_id}
            report = response.source_coverage.get(source_id)
            expected = shelf.seen_by(caller) if name == OWN or self.may_ask(name) else set()
            state = report.state if report else None
            self.tally[f"{name} {state}"] += 1

            assert told <= expected, (name, report)
            is_late = state in (CoverageState.TIMED_OUT, CoverageState.STALE) or (
                report is not None and "no answer in time" in report.reason
            )
            assert told == expected or is_late, (name, report)
            assert (report is not None) or not expected

    def may_ask(self, name: str) -> bool:
        return self.descriptors[name].access_policy.minimum_clearance.rank <= Classification.INTERNAL.rank

    # --- what happens ---

    async def write_one(self, *_: object) -> None:
        self.write(self.any_shelf(), self.rng.choice("abcd"))

    async def remove_one(self, *_: object) -> None:
        name = self.any_shelf()
        own_id = self.rng.choice("abcd")
        if self.shelves[name].documents.pop(own_id, None) is not None:
            self.tell(name, ChangeSet(removals=(document_id_of(SourceId(name), own_id),)))

    async def tighten_one(self, *_: object) -> None:
        self.set_access(FOR_BOB)

    async def loosen_one(self, *_: object) -> None:
        self.set_access(OPEN)

    async def register_again(self, *_: object) -> None:
        """Register a source again, under a higher version; half of the time so that nobody here may ask it."""
        name = self.rng.choice((OTHER, PYTHON))
        old = self.descriptors[name]
        level = self.rng.choice((Classification.PUBLIC, Classification.RESTRICTED))
        if self.may_ask(name) is False:
            level = Classification.PUBLIC
        minor = int(old.version.split(".")[1]) + 1
        self.register(
            msgspec.structs.replace(
                old,
                version=SemanticVersion(f"1.{minor}.0"),
                access_policy=SourceAccessPolicy(minimum_clearance=level),
                weight_milli=self.rng.choice((500, 1_000, 2_000)),
            )
        )

    async def answer_late(self, caller: Principal, request: EvidenceRequest) -> None:
        """Let a source be late for one caller, change it, and only then let its old answer come."""
        source = self.sources[SLOW]
        source.gate.clear()
        await self.parts.retrieve(
            msgspec.structs.replace(request, max_staleness_ms=self.rng.choice((None, 0))), principal=caller, prefetch=True
        )
        if self.rng.random() < 0.7:
            self.write(SLOW, self.rng.choice("abc"))
        source.gate.set()
        for _ in range(5):
            await asyncio.sleep(0)

    # --- how ---

    def any_shelf(self) -> str:
        return self.rng.choice((OWN, OTHER, PYTHON, PYTHON, SLOW))

    def write(self, name: str, own_id: str) -> None:
        rule = self.rng.choice((OPEN, OPEN, FOR_BOB))
        text = self.shelves[name].write(own_id, rule)
        self.tell(name, ChangeSet(documents=(make_document(own_id, text, source=name, access=rule),)))

    def set_access(self, rule: AccessRule) -> None:
        name = self.any_shelf()
        shelf = self.shelves[name]
        if not shelf.documents:
            return
        own_id = self.rng.choice(sorted(shelf.documents))
        shelf.documents[own_id] = (shelf.documents[own_id][0], rule)
        self.tell(name, ChangeSet(access_changes=(AccessChange(document_id=document_id_of(SourceId(name), own_id), access=rule),)))

    def tell(self, name: str, changes: ChangeSet) -> None:
        """Write a change down where the source is a base; else say that it has changed."""
        base = self.bases.get(name)
        if base is None:
            self.parts.federation.changed(SourceId(self.slow if name == SLOW else name))
            return
        writer = base.writer()
        try:
            writer.commit(changes)
        finally:
            writer.close()

    def register(self, descriptor: SourceDescriptor) -> None:
        self.descriptors[descriptor.source_id] = descriptor
        self.parts.registry.register(descriptor)

    def rename_slow(self, name: str) -> None:
        self.parts.registry.remove(SourceId(self.slow))
        self.parts.sources.detach(SourceId(self.slow))
        self.slow = name
        self.parts.registry.register(describe(name, expected_p99_ms=SLOW_P99_MS))
        self.parts.sources.attach(SourceId(name), self.sources[SLOW])

    def close(self) -> None:
        for base in self.bases.values():
            base.close()


def _opened(directory: Path) -> EmbeddedComponents:
    wiring.create(directory)
    (directory / SETTINGS_NAME).write_text(SETTINGS, encoding="utf-8")
    return wiring.open_parts(directory)


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_no_tier_brings_back_what_was_before_a_change(shard: int, tmp_path: Path) -> None:
    async def run() -> Counter[str]:
        with memory_folder(tmp_path) as folder:
            histories = Histories(shard, Path(folder))
            try:
                await histories.run()
            finally:
                histories.close()
            return histories.tally

    tally = asyncio.run(run())

    assert 1_000 <= ALL_SHARDS * tally["histories"]
    for name in (OTHER, PYTHON, SLOW):
        assert tally[f"{name} cached"] > tally["histories"]
        assert tally[f"{name} searched"] > tally["histories"] // 10
    assert all(tally[event] > 10 for event in ("write_one", "remove_one", "tighten_one", "loosen_one", "register_again", "answer_late"))


def test_an_answer_that_came_while_others_were_still_waited_for_is_kept(tmp_path: Path) -> None:
    descriptors = [describe("brief", expected_p99_ms=10), describe("long", expected_p99_ms=100)]
    base = FederatedBase(tmp_path / "base", descriptors=descriptors)
    base.attach({"brief": FaultySource(pause_ms=40), "long": FaultySource(pause_ms=90)})
    asking = base.asking()
    first, second = asking.answers([(ask("harbour"), OWNER), (ask("harbour"), OWNER)])
    base.close()

    assert CoverageState.TIMED_OUT is first.source_coverage[SourceId("brief")].state
    assert CoverageState.CACHED is second.source_coverage[SourceId("brief")].state
