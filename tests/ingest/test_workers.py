"""A reader process that hangs, dies or runs out of memory costs only its file."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from ingest_rig import DictStore, Ingest, skipped_beside
from ingest_samples import make_docx, make_pdf

from evidentia.contracts.documents import IngestOptions
from evidentia.contracts.errors import DocumentUnreadableError
from evidentia.contracts.settings import IngestSettings
from evidentia.ingest.batches import Batches, IngestCounts
from evidentia.ingest.file_ingest import FileIngest
from evidentia.ingest.reader_pool import ReaderPool
from evidentia.ingest.recipe import Recipe
from evidentia.ingest.walk import walk_paths
from evidentia.testing.determinism import SteppingClock

if TYPE_CHECKING:
    from pathlib import Path

FINE = b"<p>fine</p>"
SLOW = b"<div>" * 1_900 + b"<p>x" * 600_000
"""Each paragraph looks through every open element before it begins, which takes some seconds in all."""
CRASHED = "made its reader crash or run out of memory; save it again, simplify it, or raise ingest.reader_memory_mb"


def test_a_file_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    settings = IngestSettings(readers=1, reader_timeout_s=1)

    assert (
        "reader_timeout",
        "'slow.html' could not be read within 1 s; simplify it, or raise ingest.reader_timeout_s",
    ) == skipped_beside(tmp_path, "slow.html", SLOW, settings=settings)


def test_a_file_that_needs_too_much_memory_is_given_up(tmp_path: Path) -> None:
    settings = IngestSettings(readers=1, reader_memory_mb=128)

    assert (
        "reader_crashed",
        "'fat.html' needs more memory to read than there is",
    ) == skipped_beside(tmp_path, "fat.html", b"<p>x" * 2_000_000, settings=settings)


def test_a_process_that_dies_is_replaced() -> None:
    with ReaderPool(IngestSettings(readers=1)) as pool:
        assert pool.submit(FINE, name="a.html").result().text == "fine"
        doomed = pool.submit(SLOW, name="b.html")
        pool._all[0]._process.kill()
        after = pool.submit(FINE, name="c.html")
        with pytest.raises(DocumentUnreadableError) as caught:
            doomed.result()

        assert (caught.value.reason, caught.value.problem) == ("reader_crashed", CRASHED)
        assert after.result().text == "fine"
        assert len(pool._all) == 2


def test_no_process_is_started_for_text(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("text")
    settings, tally, store = IngestSettings(readers=2), IngestCounts(), DictStore()
    recipe = Recipe(IngestOptions(), settings, "en")
    batches = Batches(store, settings, tally, total=1, on_progress=None)
    with ReaderPool(settings) as pool:
        files = FileIngest(recipe, writer=store, clock=SteppingClock(), batches=batches, tally=tally, pool=pool)
        files.ingest(walk_paths([tmp_path]).files, {})

        assert (1, []) == (tally.seen, pool._all)


def test_processes_and_the_calling_process_read_the_same(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"{number}.pdf").write_bytes(make_pdf(f"Page {number}"))
        (tmp_path / f"{number}.docx").write_bytes(make_docx(title=f"Document {number}"))
    alone, together = Ingest(), Ingest()
    alone(tmp_path, settings=IngestSettings(readers=0))
    together(tmp_path, settings=IngestSettings(readers=3))

    assert alone.store.documents == together.store.documents
    assert list(alone.store.documents) == list(together.store.documents)


def test_a_script_without_a_main_guard_runs_once(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(make_pdf("x"))
    script = tmp_path / "script.py"
    script.write_text(
        "from evidentia.contracts.settings import IngestSettings\n"
        "from evidentia.ingest.reader_pool import ReaderPool\n"
        "print('once')\n"
        "with ReaderPool(IngestSettings(readers=1)) as pool:\n"
        f"    print(pool.submit(open({str(tmp_path / 'a.pdf')!r}, 'rb').read(), name='a.pdf').result().text)\n"
    )
    ran = subprocess.run([sys.executable, str(script)], check=True, capture_output=True, text=True)

    assert ran.stdout == "once\nx\n"


def test_a_module_in_the_working_directory_is_not_imported_by_a_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pypdf.py").write_text("raise SystemExit('hijacked')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    with ReaderPool(IngestSettings(readers=1)) as pool:
        assert pool.submit(make_pdf("x"), name="a.pdf").result().text == "x"
