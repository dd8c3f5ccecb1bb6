"""The cache by its tiers: who finds what, how long, and what is never used."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest

from engine.cached_answers import ALICE, START, WIKI, CacheBench, contents
from evidentia.contracts.evidence import SubQuery, TimeWindow
from evidentia.contracts.ids import SemanticVersion, SourceId
from evidentia.contracts.settings import CacheSettings
from evidentia.contracts.sources import SourceAccessPolicy
from evidentia.contracts.vocabulary import AuthorityTier, CacheTier, QueryCapability, SourceType

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MEMORY = msgspec.structs.replace(WIKI, source_id=SourceId("notes"), source_type=SourceType.MEMORY_LAYER)


@pytest.fixture(params=["dict", "embedded"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CacheBench]:
    settings = CacheSettings(session_ttl_s=100, global_ttl_s=1_000, stale_ttl_s=500)
    bench = CacheBench(settings, directory=tmp_path if request.param == "embedded" else None)
    yield bench
    bench.close()


def test_what_was_said_is_found_by_whoever_asks_the_same(bench: CacheBench) -> None:
    assert bench.cache.get(bench.asked()) is None

    kept = bench.keep(bench.asked(), "first", "second")
    bench.clock.move(seconds=3)
    hit = bench.cache.get(bench.asked())

    assert hit is not None
    assert kept == hit.candidates
    assert (CacheTier.GLOBAL, 3_000, False, False) == (hit.tier, hit.age_ms, hit.is_reused, hit.is_stale)


def test_another_process_finds_the_same(bench: CacheBench) -> None:
    kept = bench.keep(bench.asked(), "first", "second")
    hit = bench.another().get(bench.asked())

    assert hit is not None
    assert kept == hit.candidates


def test_an_empty_answer_is_an_answer(bench: CacheBench) -> None:
    bench.keep(bench.asked())
    hit = bench.cache.get(bench.asked())

    assert hit is not None
    assert () == hit.candidates


@pytest.mark.parametrize(
    "other",
    [
        {"text": "how are keys rotated?"},
        {"fingerprint": "bob"},
        {"principal": msgspec.structs.replace(ALICE, attributes={"desk": "north"})},
        {"data_version": "2"},
        {"limit": 11},
        {"time_window": TimeWindow(start=START)},
        {"descriptor": msgspec.structs.replace(WIKI, source_id=SourceId("wiki2"))},
        {"descriptor": msgspec.structs.replace(WIKI, version=SemanticVersion("1.0.1"))},
        {"descriptor": msgspec.structs.replace(WIKI, authority_tier=AuthorityTier.USER)},
        {"descriptor": msgspec.structs.replace(WIKI, access_policy=SourceAccessPolicy(roles=("auditor",)))},
    ],
    ids="-".join,
)
def test_on_other_terms_nothing_is_found(bench: CacheBench, other: dict[str, object]) -> None:
    bench.keep(bench.asked(), "first")
    asked = bench.asked(**other)  # type: ignore[arg-type] # each case names one argument of its own type

    assert bench.cache.get(asked) is None
    assert bench.cache.get_stale(asked) is None
    assert bench.cache.get(bench.asked()) is not None


def test_a_question_for_another_capability_is_another_question(bench: CacheBench) -> None:
    bench.keep(bench.asked(), "first")
    asked = bench.asked()
    query = SubQuery(text=asked.ask.query.text, required_capabilities=(QueryCapability.SEMANTIC,), weight=0.5)

    assert bench.cache.get(asked._replace(ask=msgspec.structs.replace(asked.ask, query=query))) is None


def test_weight_and_patience_do_not_make_another_question(bench: CacheBench) -> None:
    bench.keep(bench.asked(), "first")
    asked = bench.asked()
    query = SubQuery(text=asked.ask.query.text, weight=0.5)

    assert bench.cache.get(asked._replace(ask=msgspec.structs.replace(asked.ask, query=query, budget_ms=7))) is not None


def test_another_intake_does_not_find_what_this_one_shaped(bench: CacheBench) -> None:
    bench.keep(bench.asked(), "first")

    assert bench.another(intake="cut at 100").get(bench.asked()) is None


def test_a_session_finds_its_own_answers_and_those_from_outside_sessions(bench: CacheBench) -> None:
    bench.keep(bench.asked("outside"), "for all")
    bench.keep(bench.asked("inside", session="s1"), "for s1")
    hits = {
        (text, session): bench.cache.get(bench.asked(text, session=session))
        for text in ("outside", "inside")
        for session in (None, "s1", "s2")
    }

    assert {
        ("outside", None): CacheTier.GLOBAL,
        ("outside", "s1"): CacheTier.GLOBAL,
        ("outside", "s2"): CacheTier.GLOBAL,
        ("inside", "s1"): CacheTier.SESSION,
    } == {key: hit.tier for key, hit in hits.items() if hit is not None}


def test_the_session_comes_before_the_precomputed_and_that_before_everybody(bench: CacheBench) -> None:
    bench.keep(bench.asked(), "everybody")
    first = bench.cache.get(bench.asked(session="s"))
    bench.keep(bench.asked(), "precomputed", precomputed=True)
    second = bench.cache.get(bench.asked(session="s"))
    bench.keep(bench.asked(session="s"), "session")
    third = bench.cache.get(bench.asked(session="s"))

    assert ["everybody", "precomputed", "session"] == [hit.candidates[0].content for hit in (first, second, third) if hit]


@pytest.mark.parametrize("other", [{"session": "s2", "agent_name": "a"}, {"session": "s1", "agent_name": "b"}, {"agent_name": "a"}])
def test_notes_are_found_by_the_same_agent_in_the_same_session_only(bench: CacheBench, other: dict[str, str]) -> None:
    bench.keep(bench.asked(descriptor=MEMORY, session="s1", agent_name="a"), "in session")
    bench.keep(bench.asked(descriptor=MEMORY, session="s1", agent_name="a"), "ahead", precomputed=True)

    assert bench.cache.get(bench.asked(descriptor=MEMORY, **other)) is None  # type: ignore[arg-type] # words only
    assert bench.cache.get(bench.asked(descriptor=MEMORY, session="s1", agent_name="a")) is not None


def test_other_sources_do_not_ask_which_agent_it_is(bench: CacheBench) -> None:
    bench.keep(bench.asked(agent_name="a"), "first")

    assert bench.cache.get(bench.asked(agent_name="b")) is not None


@pytest.mark.parametrize(
    ("session", "precomputed", "sla_s", "fresh_s"),
    [
        ("s", False, None, 100),
        (None, False, None, 1_000),
        ("s", False, 20, 20),
        (None, False, 20, 20),
        (None, True, 20, 20),
        ("s", False, 5_000, 100),
        (None, False, 0, 0),
    ],
)
def test_an_answer_is_good_for_its_time_and_stands_in_for_a_while_longer(
    bench: CacheBench, session: str | None, *, precomputed: bool, sla_s: int | None, fresh_s: int
) -> None:
    source = msgspec.structs.replace(WIKI, freshness_sla_s=sla_s)
    bench.keep(bench.asked(descriptor=source, session=session), "first", precomputed=precomputed)
    seen = []
    for second in (0, fresh_s - 1, fresh_s, fresh_s + 499, fresh_s + 500):
        bench.clock.moment = START + timedelta(seconds=max(0, second))
        asked = bench.asked(descriptor=source, session=session)
        # Each look is that of a new process, so that the store's own idea of expiry takes part.
        found, stood_in = bench.another().get(asked), bench.another().get_stale(asked)
        seen.append((found is not None, stood_in is not None, stood_in is not None and stood_in.is_stale))

    good, stale, gone = (True, True, False), (False, True, True), (False, False, False)
    young = stale if fresh_s == 0 else good
    assert [young, young, stale, stale, gone] == seen


def test_what_was_computed_ahead_is_good_until_it_is_forgotten(bench: CacheBench) -> None:
    bench.keep(bench.asked(), "first", precomputed=True)
    bench.clock.move(seconds=400 * 86_400)
    hit = bench.another().get(bench.asked())

    assert hit is not None
    assert CacheTier.PRECOMPUTED == hit.tier


def test_what_was_computed_ahead_again_replaces_the_old_in_every_process(bench: CacheBench) -> None:
    bench.keep(bench.asked(), "old", precomputed=True)
    server = bench.another()
    server.get(bench.asked())
    bench.keep(bench.asked(), "new", precomputed=True)
    bench.clock.move(seconds=60)
    hit = server.get(bench.asked())

    assert hit is not None
    assert ("new",) == contents(hit.candidates)


@pytest.mark.parametrize(("limit_ms", "is_found"), [(None, True), (5_001, True), (5_000, True), (4_999, False), (0, False)])
def test_nothing_older_than_the_request_allows_is_used(bench: CacheBench, limit_ms: int | None, *, is_found: bool) -> None:
    bench.keep(bench.asked(), "first")
    bench.clock.move(seconds=5)

    assert is_found == (bench.cache.get(bench.asked(max_staleness_ms=limit_ms)) is not None)
    assert is_found == (bench.cache.get_stale(bench.asked(max_staleness_ms=limit_ms)) is not None)


def test_with_no_staleness_allowed_even_what_came_this_moment_is_not_used(bench: CacheBench) -> None:
    request = bench.cache.for_request()
    asked = bench.asked(max_staleness_ms=0)
    request.put_all([(asked, (), bench.clock.now())])

    assert request.get(asked) is None
    assert bench.cache.get(bench.asked()) is not None


def test_no_evidence_comes_from_after_as_of(bench: CacheBench) -> None:
    bench.clock.move(seconds=10)
    bench.keep(bench.asked(), "first")
    bench.clock.move(seconds=10)

    for use in (bench.cache.get, bench.cache.get_stale):
        assert use(bench.asked(as_of=START + timedelta(seconds=9, microseconds=999_999))) is None
        assert use(bench.asked(as_of=START + timedelta(seconds=10))) is not None


def test_the_last_candidate_decides_about_as_of_and_the_first_about_age(bench: CacheBench) -> None:
    early = bench.keep(bench.asked("other"), "early")
    bench.clock.move(seconds=4)
    late = bench.keep(bench.asked("other"), "late")
    bench.cache.for_request().put_all([(bench.asked(), (*early, *late), START + timedelta(seconds=2))])
    hit = bench.cache.get(bench.asked())

    assert hit is not None
    assert 4_000 == hit.age_ms
    assert bench.cache.get(bench.asked(as_of=START + timedelta(seconds=3))) is None


def test_what_seems_to_come_from_the_future_is_not_used(bench: CacheBench) -> None:
    bench.clock.move(seconds=10)
    bench.keep(bench.asked(), "first")
    bench.clock.move(seconds=-5)

    assert bench.cache.get(bench.asked(as_of=START + timedelta(days=1))) is None


def test_a_request_finds_what_it_was_told_itself_though_that_was_after_its_as_of(bench: CacheBench) -> None:
    request, as_of = bench.cache.for_request(), bench.clock.now()
    bench.clock.move(seconds=1)
    request.put_all([(bench.asked(as_of=as_of), (), bench.clock.now())])
    bench.clock.move(seconds=1)
    hit = request.get(bench.asked(as_of=as_of))

    assert hit is not None
    assert (CacheTier.REQUEST, 1_000) == (hit.tier, hit.age_ms)
    assert request.get(bench.asked(as_of=as_of, max_staleness_ms=999)) is None
    assert request.get(bench.asked("something else", as_of=as_of)) is None
    assert bench.cache.for_request().get(bench.asked(as_of=as_of)) is None


def test_a_request_also_finds_what_earlier_ones_were_told(bench: CacheBench) -> None:
    bench.cache.for_request().put_all([(bench.asked(), (), bench.clock.now())])
    hit = bench.cache.for_request().get(bench.asked())

    assert hit is not None
    assert CacheTier.GLOBAL == hit.tier


def test_switched_off_it_keeps_nothing_and_touches_nothing() -> None:
    bench = CacheBench(CacheSettings(enabled=False))
    request = bench.cache.for_request()
    request.put_all([(bench.asked(), (), bench.clock.now())])
    bench.keep(bench.asked(), "first", precomputed=True)

    assert request.get(bench.asked()) is None
    assert bench.cache.get_stale(bench.asked()) is None
    assert ({}, {}) == (bench.kept, bench.dict.begun)


def test_a_source_is_forgotten_and_no_other(bench: CacheBench) -> None:
    others = [msgspec.structs.replace(WIKI, source_id=SourceId(name)) for name in ("wik", "wiki2", "wiki/a", "wiki%2Fa", "WIKI")]
    for source in (WIKI, *others):
        bench.keep(bench.asked(descriptor=source), source.source_id)
        bench.keep(bench.asked(descriptor=source, session="s"), source.source_id)
        bench.keep(bench.asked(descriptor=source), source.source_id, precomputed=True)

    assert 3 == bench.cache.invalidate(WIKI.source_id)
    assert bench.cache.get(bench.asked()) is None
    assert bench.cache.get_stale(bench.asked(session="s")) is None
    assert all(bench.cache.get(bench.asked(descriptor=source)) is not None for source in others)
    assert 15 == bench.cache.invalidate()
    assert not any(bench.cache.get(bench.asked(descriptor=source)) for source in others)
    assert {} == bench.store.counts()


def test_statistics_tell_what_each_tier_did(bench: CacheBench) -> None:
    request = bench.cache.for_request()
    request.get(bench.asked(session="s"))
    request.put_all([(bench.asked(session="s"), (), bench.clock.now())])
    request.get(bench.asked(session="s"))
    bench.cache.get(bench.asked(session="s"))
    bench.keep(bench.asked("ahead"), "x", precomputed=True)
    bench.cache.get(bench.asked("ahead"))
    bench.clock.move(seconds=101)
    bench.cache.get_stale(bench.asked(session="s"))
    stats = bench.cache.stats()

    assert (4, 3, 1, 2) == (stats.finds, stats.hits, stats.stale_hits, stats.entries)
    assert [
        (CacheTier.REQUEST, 4, 1, 0, 0),
        (CacheTier.SESSION, 2, 1, 1, 1),
        (CacheTier.PRECOMPUTED, 2, 1, 0, 1),
        (CacheTier.GLOBAL, 1, 0, 0, 0),
    ] == [(tier.tier, tier.finds, tier.hits, tier.stale_hits, tier.entries) for tier in stats.tiers]
