"""One call reads for a bounded time: what it leaves no time for is skipped by name, and what was read by then gets in."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from ingest_rig import DictStore

from evidentia import connect
from evidentia.base.base_ingest import ingest_into
from evidentia.contracts.documents import IngestOptions
from evidentia.contracts.errors import BaseBusyError
from evidentia.contracts.settings import IngestSettings
from evidentia.ingest.file_ingest import LARGE_BYTES
from evidentia.ingest.ingest_pipeline import ingest_paths
from evidentia.ingest.reader_pool import ReadingTime
from evidentia.testing.determinism import SteppingClock
from evidentia.wiring.embedded import open_base

if TYPE_CHECKING:
    from pathlib import Path

    from evidentia.contracts.reports import IngestProgress, IngestReport

OVER = "was not read: the 3 s of its call were over; send fewer at a time, or raise limits.ingest_s"


class TickingClock(SteppingClock):
    """A clock that moves on whenever it is read."""

    def elapsed_ns(self) -> int:
        """Return the time that has passed, and move on."""
        self.now()
        return super().elapsed_ns()


class EndlessClock(SteppingClock):
    """A clock that tells real time, without an end."""

    def elapsed_ns(self) -> int:
        """Return real time."""
        return time.monotonic_ns()


def timed(*paths: Path, settings: IngestSettings, clock: SteppingClock) -> tuple[DictStore, IngestReport]:
    store = DictStore()
    limit = ReadingTime(clock, max_s=3)
    report = ingest_paths(paths, options=IngestOptions(), settings=settings, language="en", writer=store, clock=SteppingClock(), time=limit)
    assert report.seen == report.added + len(report.skipped)
    return store, report


@pytest.mark.parametrize("suffix", ["md", "html"])
def test_files_that_there_is_no_time_for_are_skipped_by_name_and_the_others_get_in(tmp_path: Path, suffix: str) -> None:
    for number in range(6):
        (tmp_path / f"f{number}.{suffix}").write_text(f"the text of {number}", encoding="utf-8")
    store, report = timed(tmp_path, settings=IngestSettings(readers=1 if suffix == "html" else 0), clock=TickingClock())

    skipped = {entry.path: (entry.reason, entry.message) for entry in report.skipped}
    assert 0 < len(store.own_ids()) < 6
    assert sorted((*store.own_ids(), *skipped)) == [f"f{number}.{suffix}" for number in range(6)]
    assert {name: ("call_timeout", f"'{name}' {OVER}") for name in skipped} == skipped


def test_records_that_there_is_no_time_for_are_left_out_and_the_corpus_says_so(tmp_path: Path) -> None:
    corpus = tmp_path / "records.jsonl"
    corpus.write_text("".join(f'{{"_id": "r{number}", "text": "the text of {number}"}}\n' for number in range(6)), encoding="utf-8")
    store, report = timed(corpus, settings=IngestSettings(readers=0), clock=TickingClock())

    assert ["r0", "r1"] == store.own_ids()
    assert [("records.jsonl", "call_timeout", f"'records.jsonl' {OVER}")] == [
        (entry.path, entry.reason, entry.message) for entry in report.skipped
    ]


def test_a_file_that_hangs_its_reader_is_given_up_with_its_call(tmp_path: Path) -> None:
    """Nothing here waits for the minute that a single file may take."""
    (tmp_path / "slow.html").write_bytes(b"<div>" * 1_900 + b"<p>x" * 6_000_000)
    store, report = timed(tmp_path, settings=IngestSettings(readers=1), clock=EndlessClock())

    assert [] == store.own_ids()
    assert [("slow.html", "call_timeout")] == [(entry.path, entry.reason) for entry in report.skipped]


def test_a_large_file_of_any_kind_is_read_in_a_process_and_says_the_same(tmp_path: Path) -> None:
    (tmp_path / "large.md").write_text("# Keys\n\nSigning keys expire.\n\n" * (LARGE_BYTES // 20), encoding="utf-8")
    here, _ = timed(tmp_path, settings=IngestSettings(readers=0), clock=SteppingClock())
    both, _ = timed(tmp_path, settings=IngestSettings(readers=1), clock=SteppingClock())

    (tmp_path / "large.md").write_text("x" * (40 * LARGE_BYTES), encoding="utf-8")
    _, report = timed(tmp_path, settings=IngestSettings(readers=1, reader_memory_mb=64), clock=SteppingClock())

    assert here.documents == both.documents
    assert [("large.md", "reader_crashed")] == [(entry.path, entry.reason) for entry in report.skipped]


@pytest.mark.parametrize("max_s", [60, None])
def test_an_ingest_that_shares_the_base_locks_it_for_commits_alone(tmp_path: Path, max_s: int | None) -> None:
    with connect(tmp_path / "base", init=True):
        pass
    (tmp_path / "base" / "evidentia.toml").write_text("[storage]\nwriter_wait_ms = 1\n[embedding]\nencoder = 'none'\n", encoding="utf-8")
    (tmp_path / "a.md").write_text("a good file", encoding="utf-8")
    parts = open_base(tmp_path / "base")
    turns: list[str] = []

    def look(progress: IngestProgress) -> None:
        try:
            with closing(parts.writer()):
                turns.append(f"{progress.current} free")
        except BaseBusyError:
            turns.append(f"{progress.current} locked")

    with closing(parts):
        report = ingest_into(
            parts,
            [tmp_path / "a.md"],
            IngestOptions(),
            is_embedding=False,
            on_progress=look,
            on_embedding=None,
            is_stopped=lambda: False,
            max_s=max_s,
        )

    assert 1 == report.added
    assert (["a.md free", " free"] if max_s else ["a.md locked", " locked"]) == turns
