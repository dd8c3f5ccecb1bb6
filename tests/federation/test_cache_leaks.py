"""Nobody is ever given what was said to somebody else, or on other terms: random callers, sources, sessions and questions."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from engine.cached_answers import ALICE, START, WIKI, CacheBench, unit
from evidentia.contracts.evidence import TimeWindow
from evidentia.contracts.ids import PrincipalId, SemanticVersion, SourceId
from evidentia.contracts.settings import CacheSettings
from evidentia.contracts.vocabulary import CacheTier, SourceType

if TYPE_CHECKING:
    from pathlib import Path

    from evidentia.federation.candidate_cache import CacheHit, CacheKey

CASES = 12_000
WORLDS = 60
QUESTIONS = ("how do I enable the gate", "how do I disable the gate", "how do i enable the gate", "how do I enable the gate ")
VECTORS = tuple(unit(100, index, 3, 1) for index in range(len(QUESTIONS)))
SOURCES = tuple(
    msgspec.structs.replace(WIKI, source_id=SourceId(name), source_type=kind, version=SemanticVersion(version))
    for name, kind in (("wiki", SourceType.API), ("wiki2", SourceType.API), ("notes", SourceType.MEMORY_LAYER))
    for version in ("1.0.0", "1.0.1")
)


CALLERS = tuple(
    msgspec.structs.replace(ALICE, principal_id=PrincipalId(name), attributes=attributes)
    for name in ("alice", "bob")
    for attributes in ({}, {"desk": "north"})
)
TERMS: dict[str, tuple[object, ...]] = {
    "question": tuple(range(len(QUESTIONS))),
    "descriptor": SOURCES,
    "principal": CALLERS,
    # A fingerprint stands for the caller's rights: the same caller may have several.
    "fingerprint": ("low", "high", "other tenant"),
    "data_version": ("", "7"),
    "session": (None, "s1", "s2"),
    "agent_name": ("", "planner"),
    "limit": (5, 6),
    "time_window": (None, TimeWindow(start=START)),
    "space": ("minilm", "other"),
}


class Caller:
    """Asks at random: something new, something asked before, or that with one of its terms changed."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self._before: list[dict[str, object]] = []

    def ask(self, bench: CacheBench) -> CacheKey:
        if self._before and self.draw.random() < 0.9:
            terms = dict(self.draw.choice(self._before))
            if self.draw.random() < 0.7:
                name = self.draw.choice(sorted(TERMS))
                terms[name] = self.draw.choice(TERMS[name])
        else:
            terms = {name: self.draw.choice(choices) for name, choices in TERMS.items()}
        self._before.append(terms)
        question = terms.pop("question")
        assert isinstance(question, int)
        asked = bench.asked(QUESTIONS[question], vector=VECTORS[question], **terms)  # type: ignore[arg-type] # TERMS has the types
        terms["question"] = question
        return asked


def terms_of(asked: CacheKey) -> tuple[object, ...]:
    """Return everything on which the caller and what was kept have to agree."""
    ask = asked.ask
    is_memory = asked.descriptor.source_type is SourceType.MEMORY_LAYER
    return (
        asked.fingerprint,
        ask.principal,
        asked.descriptor,
        asked.data_version,
        ask.limit,
        ask.time_window,
        (ask.session, ask.agent_name) if is_memory else None,
    )


def is_leak(hit: CacheHit, asked: CacheKey, told: CacheKey) -> bool:
    if terms_of(asked) != terms_of(told):
        return True
    if hit.tier is CacheTier.SESSION and asked.ask.session != told.ask.session:
        return True
    if hit.is_reused:
        return asked.vector_space != told.vector_space
    return asked.ask.query.text != told.ask.query.text


def ask_at_random(bench: CacheBench, caller: Caller, *, steps: int) -> Counter[str]:
    """Ask so often, keep an answer to whatever was not found, and count what came of it."""
    draw, told, seen = caller.draw, dict[str, "CacheKey"](), Counter[str]()
    processes = [bench.cache, bench.another(), bench.another()]
    for step in range(steps):
        bench.cache = draw.choice(processes)
        asked = caller.ask(bench)
        hit = draw.choice((bench.cache.get, bench.cache.for_request().get, bench.cache.get_stale))(asked)
        if hit is None:
            told[f"answer {step}"] = asked
            bench.keep(asked, f"answer {step}", precomputed=draw.random() < 0.1)
        else:
            seen["reused" if hit.is_reused else "exact"] += 1

            assert not is_leak(hit, asked, told[hit.candidates[0].content])
    seen["finds"] = steps
    return seen


def test_a_hit_is_only_ever_what_the_same_caller_was_told_on_the_same_terms() -> None:
    seen = Counter[str]()
    for world in range(WORLDS):
        caller = Caller(world)
        bench = CacheBench(CacheSettings(semantic=world % 2 == 1, most_entries=caller.draw.choice((40, 1_000))))
        seen += ask_at_random(bench, caller, steps=CASES // WORLDS)

    assert seen["finds"] >= 10_000
    assert seen["exact"] > 2_000
    assert seen["reused"] > 300


def test_nor_is_it_through_the_embedded_store(tmp_path: Path) -> None:
    bench = CacheBench(CacheSettings(semantic=True), directory=tmp_path)
    seen = ask_at_random(bench, Caller(7), steps=600)
    bench.close()

    assert seen["exact"] > 50
    assert seen["reused"] > 20
