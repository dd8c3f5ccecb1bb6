"""Similar questions: off unless wanted, exact before alike, alike only by an exact cosine, and the same in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.cached_answers import CacheBench, contents, unit
from evidentia.contracts.ids import SourceId
from evidentia.contracts.retrieval import StoredResponse
from evidentia.contracts.settings import CacheSettings
from evidentia.contracts.vectors import LARGEST_COMPONENT
from evidentia.contracts.vocabulary import CacheTier
from evidentia.federation.cache_tiers import (
    BUCKET_MEMBERS,
    MAX_LEADERS,
    bucket_of,
    is_alike,
    nearest,
    read_vector,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
ENABLE, DISABLE, ELSEWHERE = unit(100, 10, 1), unit(100, 14, 1), unit(1, 10, 100)
ROWS = st.lists(st.integers(-LARGEST_COMPONENT, LARGEST_COMPONENT), min_size=4, max_size=4).filter(any)


def similar(**changes: object) -> CacheBench:
    return CacheBench(CacheSettings(semantic=True, **changes))  # type: ignore[arg-type] # tests name settings of their own types


@pytest.mark.parametrize("session", [None, "s"])
def test_an_answer_to_a_similar_question_is_used_and_says_so(session: str | None) -> None:
    bench = similar()
    bench.keep(bench.asked("enable it", session=session, vector=ENABLE), "enabling")
    hit = bench.another().get(bench.asked("disable it", session=session, vector=DISABLE))

    assert hit is not None
    assert hit.is_reused
    assert ("enabling",) == contents(hit.candidates)
    assert ("enable it",) == tuple(found.query for found in hit.candidates)
    assert (CacheTier.GLOBAL if session is None else CacheTier.SESSION) == hit.tier
    assert bench.cache.get(bench.asked("elsewhere", session=session, vector=ELSEWHERE)) is None


def test_it_is_off_unless_the_settings_say_so() -> None:
    bench = CacheBench(CacheSettings())
    bench.keep(bench.asked("enable it", vector=ENABLE), "enabling")
    bench.keep(bench.asked("enable it", session="s", vector=ENABLE), "enabling")

    assert bench.cache.get(bench.asked("disable it", session="s", vector=DISABLE)) is None
    assert all(stored.group is None for stored in bench.kept.values())


@pytest.mark.parametrize("vector", [None, b"", b"123", b"\x00" * 12, b"\xff\xff\xff\x7f" * 3, b"\x01\x00\x00\x00" * 8_193])
def test_without_a_vector_that_can_be_compared_nothing_is_alike(vector: bytes | None) -> None:
    bench = similar()
    bench.keep(bench.asked("enable it", vector=ENABLE), "enabling")
    bench.keep(bench.asked("broken", vector=vector), "of the broken one")

    assert bench.cache.get(bench.asked("disable it", vector=vector)) is None
    assert bench.cache.get(bench.asked("broken", vector=vector)) is not None


def test_vectors_of_another_space_are_not_compared() -> None:
    bench = similar()
    bench.keep(bench.asked("enable it", vector=ENABLE), "enabling")

    assert bench.cache.get(bench.asked("disable it", vector=DISABLE, space="other")) is None
    bench.keep(bench.asked("enable it", vector=ENABLE, space=""), "enabling")
    assert bench.cache.get(bench.asked("disable it", vector=DISABLE, space="")) is None


def test_vectors_of_another_length_are_not_compared() -> None:
    bench = similar()
    bench.keep(bench.asked("enable it", vector=ENABLE), "enabling")

    assert bench.cache.get(bench.asked("disable it", vector=ENABLE[:8])) is None


def test_just_this_question_comes_before_a_similar_one_in_whatever_tier() -> None:
    bench = similar()
    bench.keep(bench.asked("disable it", vector=DISABLE), "disabling")
    bench.keep(bench.asked("enable it", session="s", vector=ENABLE), "enabling")
    hit = bench.cache.get(bench.asked("disable it", session="s", vector=DISABLE))

    assert hit is not None
    assert (("disabling",), CacheTier.GLOBAL, False) == (contents(hit.candidates), hit.tier, hit.is_reused)


def test_the_most_alike_that_is_good_is_used() -> None:
    bench = similar(similarity_milli=500)
    bench.keep(bench.asked("near", session="s", vector=unit(100, 11, 1)), "near")
    bench.clock.move(seconds=10)
    bench.keep(bench.asked("far", session="s", vector=unit(100, 13, 1)), "far")
    wanted = bench.asked("this", session="s", vector=unit(100, 10, 1))
    first, second = bench.cache.get(wanted), bench.cache.get(wanted._replace(max_staleness_ms=5_000))

    assert [("near",), ("far",)] == [contents(hit.candidates) for hit in (first, second) if hit]


def test_a_similar_answer_stands_in_when_it_is_past_its_time() -> None:
    bench = similar(global_ttl_s=10)
    bench.keep(bench.asked("enable it", vector=ENABLE), "enabling")
    bench.clock.move(seconds=11)
    asked = bench.asked("disable it", vector=DISABLE)
    hit = bench.another().get_stale(asked)

    assert bench.cache.get(asked) is None
    assert hit is not None
    assert (True, True) == (hit.is_reused, hit.is_stale)


def test_a_question_near_a_leader_joins_it_and_takes_its_place_when_it_is_past_its_time() -> None:
    bench = similar(global_ttl_s=10)
    bench.keep(bench.asked("enable it", vector=ENABLE), "enabling")
    bench.keep(bench.asked("disable it", vector=DISABLE), "disabling")
    joined = bench.cache.get(bench.asked("toggle it", vector=unit(100, 12, 1)))
    bench.clock.move(seconds=11)
    bench.keep(bench.asked("disable it", vector=DISABLE), "disabling again")
    led = bench.cache.get(bench.asked("toggle it", vector=unit(100, 12, 1)))

    assert [("enabling",), ("disabling again",)] == [contents(hit.candidates) for hit in (joined, led) if hit]
    assert bench.cache.get_stale(bench.asked("enable it")) is not None


def test_a_leader_that_was_asked_again_leads_for_longer() -> None:
    bench = similar(global_ttl_s=10, stale_ttl_s=0)
    bench.keep(bench.asked("enable it", vector=ENABLE), "enabling")
    bench.clock.move(seconds=8)
    bench.keep(bench.asked("enable it", vector=ENABLE), "enabling again")
    bench.clock.move(seconds=8)

    assert bench.cache.get(bench.asked("disable it", vector=DISABLE)) is not None


@pytest.mark.parametrize(("session", "most"), [(None, MAX_LEADERS), ("s", BUCKET_MEMBERS)])
def test_there_are_never_more_than_so_many_to_compare_with(session: str | None, most: int) -> None:
    bench = similar(similarity_milli=1_000)
    for number in range(most + 10):
        bench.keep(bench.asked(f"question {number}", session=session, vector=unit(1_000, number, 1)), f"answer {number}")

    newest = bench.cache.get(bench.asked("new", session=session, vector=unit(1_000, most + 9, 1)))
    assert newest is not None
    found = [bench.cache.get(bench.asked("new", session=session, vector=unit(1_000, number, 1))) for number in range(most + 10)]
    assert [False] * 10 + [True] * most == [hit is not None for hit in found]


@given(ROWS, st.lists(ROWS, min_size=1, max_size=6), st.integers(0, 1_000))
def test_likeness_is_the_exact_cosine(own: list[int], rows: list[list[int]], similarity_milli: int) -> None:
    listed = [stored(f"e{number}", row) for number, row in enumerate(rows)]
    found = [each.key.decode() for each in nearest(np.array(own, dtype=np.int64), listed, similarity_milli=similarity_milli)]
    squares = {f"e{number}": signed_square(own, row) for number, row in enumerate(rows)}
    wanted = {name for name, square in squares.items() if square >= Fraction(similarity_milli, 1_000) ** 2}

    assert wanted == set(found)
    rounded = {name: square * (1 << 40) // 1 for name, square in squares.items()}
    assert sorted(found, key=lambda name: (-rounded[name], name)) == found


def stored(key: str, row: Sequence[int] | NDArray[np.int64]) -> StoredResponse:
    vector = np.array(row, dtype="<i4").tobytes()
    return StoredResponse(key.encode(), SourceId("wiki"), CacheTier.GLOBAL, 1, 0, 0, None, b"", b"group", vector)


def signed_square(first: list[int], second: list[int]) -> Fraction:
    product = sum(a * b for a, b in zip(first, second, strict=True))
    return Fraction(product * abs(product), sum(a * a for a in first) * sum(b * b for b in second))


def test_the_largest_vectors_do_not_overflow() -> None:
    largest = np.full(8_192, LARGEST_COMPONENT, dtype=np.int64)
    same, opposite = stored("same", largest), stored("opposite", -largest)

    assert [same] == nearest(largest, [same, opposite], similarity_milli=1_000)
    assert 0 <= bucket_of(largest) < 16


def test_without_length_there_is_no_likeness() -> None:
    assert not is_alike(0, 0, similarity_milli=0)


@given(ROWS, st.integers(1, 5))
def test_a_bucket_depends_on_direction_alone(row: list[int], factor: int) -> None:
    vector = np.array(row, dtype=np.int64)

    assert bucket_of(vector) == bucket_of(vector * factor)


def test_questions_spread_over_the_buckets() -> None:
    drawn = np.random.default_rng(5).integers(-1_000, 1_000, size=(400, 384))

    assert set(range(16)) == {bucket_of(row) for row in drawn}


def test_a_vector_is_read_as_it_was_written() -> None:
    vector = read_vector(ENABLE)

    assert vector is not None
    assert np.frombuffer(ENABLE, dtype="<i4").tolist() == vector.tolist()


HISTORY = """
import random
from engine.cached_answers import CacheBench, unit
from evidentia.contracts.settings import CacheSettings

draw = random.Random(7)
bench = CacheBench(CacheSettings(semantic=True, similarity_milli=990, most_entries=60))
for step in range(300):
    row = [draw.randrange(1, 20) for _ in range(5)]
    asked = bench.asked(str(row), session=draw.choice((None, "s")), vector=unit(*row))
    hit = bench.cache.get(asked)
    print(hit.candidates[0].content if hit else "-", hit.is_reused if hit else "-")
    if hit is None:
        bench.keep(asked, f"answer {step}")
    bench.clock.move(seconds=1)
for key, stored in sorted(bench.kept.items()):
    print(key.hex(), stored)
"""


def test_clusters_do_not_depend_on_how_a_process_hashes() -> None:
    """Hits, names and bytes are the same under three hash seeds."""
    told = set()
    for seed in ("0", "1", "4242"):
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(["src", "tests"])}
        run = subprocess.run([sys.executable, "-c", HISTORY], env=environment, capture_output=True, check=True, text=True, cwd=ROOT)
        told.add(run.stdout)

    assert 1 == len(told)
    assert "True" in next(iter(told))
