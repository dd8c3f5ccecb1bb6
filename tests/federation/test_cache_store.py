"""The cache over a store that loses, changes and mixes up what it is given, and over one that is full."""

from __future__ import annotations

import random
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.cached_answers import ALICE, WIKI, CacheBench, candidate, contents, unit
from evidentia.contracts.ids import SourceId
from evidentia.contracts.settings import CacheSettings

VECTOR = unit(3, 2, 1)
COLUMNS = ("key", "source", "tier", "generation", "first_us", "last_us", "expires_us", "payload", "near", "vector")
WORDS = {"source", "tier"}
BLOBS = {"key", "payload", "near", "vector"}


def filled(*, directory: Path | None = None) -> CacheBench:
    bench = CacheBench(CacheSettings(semantic=True), directory=directory)
    bench.keep(bench.asked("one", session="s", vector=VECTOR), "said")
    bench.keep(bench.asked("one", vector=VECTOR), "said")
    bench.keep(bench.asked("ahead", vector=VECTOR), "said", precomputed=True)
    return bench


@given(st.data())
def test_changed_rows_are_a_miss_and_never_an_error(data: st.DataObject) -> None:
    """Whatever column of whatever row becomes something else, that row is not there."""
    with TemporaryDirectory() as folder:
        bench = filled(directory=Path(folder))
        with closing(sqlite3.connect(Path(folder) / "responses.db", isolation_level=None)) as database:
            for row in database.execute("SELECT rowid, * FROM responses").fetchall():
                column = data.draw(st.sampled_from(COLUMNS))
                old = row[1 + COLUMNS.index(column)]
                value = damaged(old or b"", data) if column in BLOBS else f"{old}x" if column in WORDS else (old or 0) + 1
                database.execute(f"UPDATE OR REPLACE responses SET {column} = ? WHERE rowid = ?", (value, row[0]))
        process = bench.another()
        for session in (None, "s"):
            for text in ("one", "two", "ahead"):
                asked = bench.asked(text, session=session, vector=VECTOR)

                assert process.get(asked) is None
                assert process.get_stale(asked) is None
        bench.keep(bench.asked("two", session="s", vector=VECTOR), "said")
        assert process.stats().entries >= 1
        bench.close()


def damaged(value: bytes, data: st.DataObject) -> bytes:
    place = data.draw(st.integers(0, max(0, len(value) - 1)))
    changed = [value[:place], value + b"\x00"]
    if value:
        changed.append(value[:place] + bytes([value[place] ^ (1 << place % 8)]) + value[place + 1 :])
    return data.draw(st.sampled_from([each for each in changed if each != value]))


def test_a_response_under_another_key_is_a_miss(tmp_path: Path) -> None:
    bench = filled(directory=tmp_path)
    bench.keep(bench.asked("two"), "of another question")
    with closing(sqlite3.connect(tmp_path / "responses.db", isolation_level=None)) as database:
        keys = [key for (key,) in database.execute("SELECT key FROM responses ORDER BY key")]
        database.executemany("UPDATE responses SET key = ? WHERE key = ?", [(b"moved" + key, key) for key in keys])
        database.executemany(
            "UPDATE responses SET key = ? WHERE key = ?", zip([*keys[1:], keys[0]], [b"moved" + key for key in keys], strict=True)
        )

    assert not any(bench.another().get(bench.asked(text, session="s")) for text in ("one", "two", "ahead"))
    bench.close()


@pytest.mark.parametrize("kind", ["responses", "sources"])
def test_rows_of_any_kind_may_be_lost(kind: str, tmp_path: Path) -> None:
    bench = filled(directory=tmp_path)
    with closing(sqlite3.connect(tmp_path / "responses.db", isolation_level=None)) as database:
        database.execute(f"DELETE FROM {kind}")
    process = bench.another()

    assert not any(process.get(bench.asked(text, session="s", vector=VECTOR)) for text in ("one", "ahead", "two"))
    bench.cache = process
    bench.keep(bench.asked("one", session="s", vector=VECTOR), "again")
    hit = process.get(bench.asked("one", session="s"))
    assert hit is not None
    assert ("again",) == contents(hit.candidates)
    bench.close()


@given(st.binary(max_size=200))
def test_bytes_of_others_are_no_entry(content: bytes) -> None:
    bench = filled()
    for key, stored in bench.kept.items():
        bench.kept[key] = stored._replace(payload=b"\xc1" + content)

    assert bench.another().get(bench.asked("one", session="s", vector=VECTOR)) is None


def test_an_entry_comes_back_as_it_was_kept() -> None:
    bench = CacheBench(CacheSettings())
    rich = msgspec.structs.replace(
        candidate("text \N{SNOWMAN}\x00", rank=1), metadata={"b": "1", "a": "2"}, flags=("cut",), updated_at=bench.clock.now()
    )
    said = (rich, candidate("", rank=2))
    bench.cache.for_request().put_all([(bench.asked(), said, bench.clock.now())])
    hit = bench.another().get(bench.asked())

    assert hit is not None
    assert said == hit.candidates


@pytest.mark.parametrize("place", ["text", "data_version", "session", "attribute"])
def test_text_without_bytes_is_neither_kept_nor_found(place: str) -> None:
    bench = CacheBench(CacheSettings(semantic=True))
    words = {"text": "one", "data_version": "1", "session": "s", "attribute": "north"} | {place: "\ud800"}
    caller = msgspec.structs.replace(ALICE, attributes={"desk": words.pop("attribute")})
    asked = bench.asked(principal=caller, vector=VECTOR, **words)  # type: ignore[arg-type] # words only
    bench.keep(asked, "said")

    assert bench.cache.get(asked) is None
    assert bench.cache.get_stale(asked) is None
    assert 0 == bench.cache.stats().entries


def test_a_candidate_without_bytes_is_not_kept() -> None:
    bench = CacheBench(CacheSettings())
    broken = msgspec.structs.replace(candidate("said", rank=1), title="\ud800")
    bench.cache.for_request().put_all([(bench.asked(), [broken], bench.clock.now())])

    assert bench.cache.get(bench.asked()) is None


def test_a_source_may_have_any_name() -> None:
    bench = CacheBench(CacheSettings())
    for name in ("", "/", "a/global/b", "\N{SNOWMAN}", "..", "%", "a" * 500):
        source = msgspec.structs.replace(WIKI, source_id=SourceId(name))
        bench.keep(bench.asked(descriptor=source), name)
        hit = bench.another().get(bench.asked(descriptor=source))

        assert hit is not None
        assert (name,) == contents(hit.candidates)
        assert 1 == bench.cache.stats().entries
        assert 1 == bench.cache.invalidate(source.source_id)


@pytest.mark.parametrize("most", [1, 2, 5, 40])
def test_no_more_is_kept_than_the_settings_allow(most: int, tmp_path: Path) -> None:
    bench = CacheBench(CacheSettings(most_entries=most), directory=tmp_path)
    for number in range(3 * most + 5):
        bench.clock.move(seconds=1)
        bench.keep(bench.asked(f"question {number}"), "said")
        entries = bench.cache.stats().entries

        assert entries <= most
        assert bench.cache.get(bench.asked(f"question {number}")) is not None
    assert most == entries
    bench.close()


def test_what_was_not_used_for_longest_goes_first(tmp_path: Path) -> None:
    bench = CacheBench(CacheSettings(most_entries=3), directory=tmp_path)
    for text in ("one", "two", "three"):
        bench.clock.move(seconds=1)
        bench.keep(bench.asked(text), "said")
    bench.clock.move(seconds=1)
    bench.cache.get(bench.asked("one"))
    bench.clock.move(seconds=1)
    bench.keep(bench.asked("four"), "said")

    assert ["one", "three", "four"] == [text for text in ("one", "two", "three", "four") if bench.another().get(bench.asked(text))]


@pytest.mark.parametrize("most", [1, 3, 40])
def test_room_is_made_in_the_order_of_last_use(most: int, tmp_path: Path) -> None:
    bench, draw = CacheBench(CacheSettings(most_entries=most), directory=tmp_path), random.Random(most)
    expected: dict[str, None] = {}
    for _ in range(600):
        bench.clock.move(seconds=1)
        text = f"question {draw.randrange(2 * most)}"
        is_known = text in expected
        expected.pop(text, None)
        if draw.random() < 0.5:
            assert is_known == (bench.cache.get(bench.asked(text)) is not None)
        else:
            bench.keep(bench.asked(text), "said")
            is_known = True
        if is_known:
            expected[text] = None
        if len(expected) > most:
            del expected[next(iter(expected))]


def test_a_use_in_one_process_counts_in_another_after_a_minute(tmp_path: Path) -> None:
    bench = CacheBench(CacheSettings(most_entries=2), directory=tmp_path)
    bench.keep(bench.asked("one"), "said")
    bench.clock.move(seconds=1)
    bench.keep(bench.asked("two"), "said")
    bench.clock.move(seconds=61)
    bench.another().get(bench.asked("one"))
    bench.cache = bench.another()
    bench.keep(bench.asked("three"), "said")

    assert ["one", "three"] == [text for text in ("one", "two", "three") if bench.another().get(bench.asked(text))]


def test_much_text_is_not_all_held_in_memory() -> None:
    bench = CacheBench(CacheSettings())
    for number in range(40):
        bench.keep(bench.asked(f"question {number}"), "x" * 1_000_000)
    bench.kept.clear()

    found = [number for number in range(40) if bench.cache.get(bench.asked(f"question {number}")) is not None]
    assert list(range(40 - len(found), 40)) == found
    assert 30 <= len(found) <= 33


def test_lifetimes_longer_than_the_calendar_are_cut() -> None:
    bench = CacheBench(CacheSettings(session_ttl_s=10**15, global_ttl_s=10**15, stale_ttl_s=10**15))
    bench.keep(bench.asked(session="s"), "said")
    bench.keep(bench.asked(), "said")

    assert bench.another().get(bench.asked(session="s")) is not None
    assert bench.another().get(bench.asked()) is not None


def test_threads_may_share_a_cache() -> None:
    bench = CacheBench(CacheSettings(most_entries=5, semantic=True))

    def work(number: int) -> int:
        hits = 0
        for step in range(100):
            asked = bench.asked(f"question {step % 7}", session=("s", None)[number % 2], vector=unit(1_000, step % 7, 1))
            hit = bench.cache.get(asked)
            if hit is None:
                bench.keep(asked, "said")
            else:
                hits += 1
                assert ("said",) == contents(hit.candidates)
            if step % 40 == 39:
                bench.cache.invalidate(WIKI.source_id)
        return hits

    with ThreadPoolExecutor(4) as pool:
        hits = list(pool.map(work, range(4)))

    assert all(hits)
    assert sum(hits) == bench.cache.stats().hits
