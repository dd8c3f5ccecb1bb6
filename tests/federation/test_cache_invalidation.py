"""After a source has changed, what it said before is never found again: random histories, late answers and lost rows included."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import msgspec
import pytest

from engine.cached_answers import WIKI, CacheBench, contents, unit
from evidentia.contracts.ids import SemanticVersion
from evidentia.contracts.settings import CacheSettings

if TYPE_CHECKING:
    from pathlib import Path

    from evidentia.contracts.sources import SourceDescriptor
    from evidentia.federation.candidate_cache import CacheKey, CandidateCache

HISTORIES = 400
"""For each of three kinds of notice."""
STEPS = 40
QUESTIONS = ("enable the gate", "disable the gate")
VECTORS = (unit(100, 1, 1), unit(100, 2, 1))


class ChangingSource:
    """A source whose data changes, asked by several processes through one store; what it says is the state it was asked in."""

    def __init__(self, seed: int, *, notice: str, directory: Path | None = None) -> None:
        self.draw = random.Random(seed)
        self.notice = notice
        self.bench = CacheBench(CacheSettings(semantic=seed % 2 == 1, most_entries=self.draw.choice((2, 100))), directory=directory)
        self.processes = [self.bench.cache, self.bench.another(), self.bench.another()]
        self.state = 0
        self.descriptor: SourceDescriptor = WIKI
        self.on_the_way: list[tuple[CacheKey, str]] = []
        self.hits = 0

    def step(self) -> None:
        """Let one thing happen, a little later than the last one."""
        self.bench.clock.move(microseconds=self.draw.randrange(1, 50_000_000))
        self.draw.choice((self.ask, self.ask, self.answer_late, self.change, self.look, self.look, self.lose))()

    def ask(self) -> None:
        asked, said = self.asked(), f"state {self.state}"
        if self.draw.random() < 0.5:
            self.keep(asked, said)
        else:
            self.on_the_way.append((asked, said))

    def answer_late(self) -> None:
        if self.on_the_way:
            self.keep(*self.on_the_way.pop(self.draw.randrange(len(self.on_the_way))))

    def change(self) -> None:
        self.state += 1
        if self.notice == "forget":
            self.process().invalidate(self.draw.choice((WIKI.source_id, None)))
        elif self.notice == "version":
            self.descriptor = msgspec.structs.replace(WIKI, version=SemanticVersion(f"1.0.{self.state}"))

    def look(self) -> None:
        process = self.process()
        hit = self.draw.choice((process.get, process.for_request().get, process.get_stale))(self.asked())
        if hit is not None:
            self.hits += 1

            assert (f"state {self.state}",) == contents(hit.candidates)

    def lose(self) -> None:
        kept, begun = self.bench.dict.kept, self.bench.dict.begun
        if (kept or begun) and self.draw.random() < 0.3:
            place = self.draw.randrange(len(kept) + len(begun))
            if place < len(kept):
                del kept[list(kept)[place]]
            else:
                del begun[list(begun)[place - len(kept)]]

    def keep(self, asked: CacheKey, said: str) -> None:
        self.bench.cache = self.process()
        self.bench.keep(asked, said, precomputed=self.draw.random() < 0.2)

    def asked(self) -> CacheKey:
        question = self.draw.randrange(len(QUESTIONS))
        self.bench.cache = self.process()
        return self.bench.asked(
            QUESTIONS[question],
            descriptor=self.descriptor,
            data_version=str(self.state) if self.notice == "data_version" else "",
            session=self.draw.choice((None, "s")),
            vector=VECTORS[question],
        )

    def process(self) -> CandidateCache:
        return self.draw.choice(self.processes)


@pytest.mark.parametrize("notice", ["data_version", "forget", "version"])
def test_the_state_before_a_change_is_never_found_after_it(notice: str) -> None:
    hits = 0
    for seed in range(HISTORIES):
        source = ChangingSource(seed, notice=notice)
        for _ in range(STEPS):
            source.step()
        hits += source.hits

    assert hits > HISTORIES


@pytest.mark.parametrize("notice", ["data_version", "forget", "version"])
def test_nor_through_the_embedded_store(tmp_path: Path, notice: str) -> None:
    hits = 0
    for seed in range(20):
        (tmp_path / str(seed)).mkdir()
        source = ChangingSource(seed, notice=notice, directory=tmp_path / str(seed))
        for _ in range(STEPS):
            source.step()
        source.bench.close()
        hits += source.hits

    assert hits > 20


def test_an_answer_that_was_under_way_when_its_source_was_forgotten_is_not_kept() -> None:
    bench = CacheBench(CacheSettings())
    asked = bench.asked()
    bench.another().invalidate(WIKI.source_id)
    bench.keep(asked, "old")

    assert bench.cache.get(bench.asked()) is None
    assert bench.cache.get(asked) is None
    assert 0 == bench.cache.stats().entries


def test_what_is_in_memory_is_forgotten_too() -> None:
    bench = CacheBench(CacheSettings())
    asked = bench.asked()
    bench.keep(asked, "old")
    bench.cache.invalidate(WIKI.source_id)

    assert bench.cache.get(asked) is None


def test_a_keep_that_a_forget_overtakes_halfway_does_not_bring_the_old_state_back() -> None:
    bench = CacheBench(CacheSettings())
    asked = bench.asked()
    bench.keep(asked, "old")
    written = dict(bench.kept)
    bench.another().invalidate(WIKI.source_id)
    bench.kept.update(written)

    assert bench.cache.get(bench.asked()) is None
    assert bench.another().get_stale(bench.asked()) is None


def test_a_generation_that_the_store_lost_is_followed_by_a_later_one() -> None:
    bench = CacheBench(CacheSettings())
    asked = bench.asked()
    bench.dict.begun.clear()
    bench.keep(asked, "old")

    assert bench.asked().generation > asked.generation
    assert bench.cache.get(bench.asked()) is None
    bench.dict.begun.clear()
    bench.clock.move(microseconds=2)
    assert bench.another().generations([WIKI.source_id])[WIKI.source_id] > asked.generation


@pytest.mark.parametrize("garbage", [0, -1, 1 << 62])
def test_a_generation_that_cannot_be_one_counts_as_lost(tmp_path: Path, garbage: int) -> None:
    bench = CacheBench(CacheSettings(), directory=tmp_path)
    first = bench.asked().generation
    change(tmp_path, "UPDATE sources SET generation = ?", garbage)
    second = bench.asked().generation
    bench.cache.invalidate()

    assert first < second < bench.asked().generation
    bench.close()


def test_nor_after_rows_were_lost_from_the_embedded_store(tmp_path: Path) -> None:
    bench = CacheBench(CacheSettings(), directory=tmp_path)
    asked = bench.asked()
    bench.keep(asked, "old")
    change(tmp_path, "DELETE FROM sources WHERE generation > ?", 0)

    assert bench.asked().generation > asked.generation
    assert bench.another().get(bench.asked()) is None
    bench.close()


def change(directory: Path, statement: str, value: int) -> None:
    """Change the file as something else would."""
    with closing(sqlite3.connect(directory / "responses.db", isolation_level=None)) as database:
        database.execute(statement, (value,))
