"""`evidentia embed` and what `ingest` does about vectors, as typed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from evidentia.contracts.vectors import EmbedProgress
from evidentia.serving.cli.progress import EmbedBar, IngestBar, pace

if TYPE_CHECKING:
    from pathlib import Path

    from serving.cli_runs import Run


COMMAND = [sys.executable, "-c", "import sys; from evidentia.serving.cli import main; sys.exit(main())"]


@pytest.fixture
def unembedded(run: Run, tmp_path: Path) -> Path:
    """Return a base of two documents with the same text and one with another, without vectors."""
    (tmp_path / "docs").mkdir()
    for name, text in {"a": "Keys expire.", "b": "Keys expire.", "c": "The rota changes."}.items():
        (tmp_path / "docs" / f"{name}.md").write_text(text, encoding="utf-8")
    assert run("init", "base").exit_code == 0
    assert run("ingest", "docs", "--no-embed", "--base", "base").exit_code == 0
    return tmp_path / "base"


def test_embed_finishes_and_says_what_it_did(run: Run, unembedded: Path) -> None:
    first = run("embed", "--base", unembedded)
    second = run("embed", "--base", unembedded, "--json")

    assert (0, "", 0) == (first.exit_code, first.err, second.exit_code)
    facts = dict(line.split(maxsplit=1) for line in first.out.splitlines())
    assert {"embedded": "3", "reused": "1", "remaining": "0"}.items() <= facts.items()
    report = json.loads(second.out)
    assert (0, 0, facts["evidence_state"]) == (report["embedded"], report["remaining"], report["evidence_state"])
    assert facts["encoder"] == report["identity"]["name"]


def test_ingest_embeds_unless_told_not_to(run: Run, unembedded: Path, tmp_path: Path) -> None:
    (tmp_path / "docs" / "d.md").write_text("Another page.", encoding="utf-8")
    run("ingest", "docs", "--no-embed", "--base", unembedded)
    without = json.loads(run("doctor", "--base", unembedded, "--json").out)
    report = json.loads(run("ingest", "docs", "--base", unembedded, "--json").out)
    after = json.loads(run("doctor", "--base", unembedded, "--json").out)

    assert [False, True] == [each["ok"] for each in (without, after)]
    assert ["vectors"] == [finding["check"] for finding in without["findings"] if not finding["ok"]]
    assert (4, 0) == (report["unchanged"], report["added"])
    assert json.loads(run("embed", "--base", unembedded, "--json").out)["evidence_state"] == report["evidence_state"]


@pytest.mark.slow
def test_watching_embeds_what_changed(run: Run, unembedded: Path, tmp_path: Path) -> None:
    with subprocess.Popen([*COMMAND, "ingest", "docs", "--watch", "--json", "--base", "base"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        (tmp_path / "docs" / "d.md").write_text("Another page.", encoding="utf-8")
        second = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        process.wait()
    after = json.loads(run("embed", "--base", unembedded, "--json").out)

    assert (3, 1) == (first["unchanged"], second["added"])
    assert (0, 0, second["evidence_state"]) == (after["embedded"], after["remaining"], after["evidence_state"])


def test_doctor_says_to_embed(run: Run, unembedded: Path) -> None:
    outcome = run("doctor", "--base", unembedded)

    assert 1 == outcome.exit_code
    assert "0 of 3 chunks embedded" in outcome.out
    assert "evidentia embed" in outcome.err


def test_embed_without_an_encoder_exits_2_and_names_the_setting(run: Run, unembedded: Path) -> None:
    (unembedded / "evidentia.toml").write_text('[embedding]\nencoder = "none"\n', encoding="utf-8")
    outcome = run("embed", "--base", unembedded, "--json")

    assert (2, "invalid_field") == (outcome.exit_code, json.loads(outcome.out)["error"]["code"])
    assert "embedding.encoder" in outcome.err


def test_embed_without_a_base_exits_3(run: Run) -> None:
    assert 3 == run("embed", "--base", "nowhere").exit_code


@pytest.mark.parametrize(
    ("done", "left", "seconds", "shown"),
    [
        (0, 10, 5.0, ""),
        (100, 200, 2.0, "50.0/s, 0:00:04 left"),
        (1, 3_700, 1.0, "1.0/s, 1:01:40 left"),
        (10, 0, 1.0, "10.0/s, 0:00:00 left"),
    ],
)
def test_pace_is_the_rate_and_the_time_left(done: int, left: int, seconds: float, shown: str) -> None:
    assert shown == pace(done, left=left, seconds=seconds)


class Terminal:
    """Stands for a terminal and remembers what it was shown."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self.shown = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.shown += text
        return len(text)

    def flush(self) -> None:
        pass


def test_the_bar_counts_what_was_done_before_but_not_in_the_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    ticks = iter([0.0, 0.0, 0.0, 0.0, 2.0, 2.0])
    monkeypatch.setattr("evidentia.serving.cli.progress.time", SimpleNamespace(perf_counter=lambda: next(ticks)))
    with EmbedBar(is_wanted=True) as bar:
        bar.update(EmbedProgress(embedded=500, chunks=1_000))
        bar.update(EmbedProgress(embedded=600, chunks=1_000))

    assert "embedding" in terminal.shown
    assert "600/1000" in terminal.shown
    assert "50.0/s, 0:00:08 left" in terminal.shown


def test_a_finished_bar_does_not_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with IngestBar(is_wanted=True) as bar:
        bar.finish()
        monkeypatch.setattr("evidentia.serving.cli.progress.PATIENCE_S", -1.0)
        bar.move(1, 2)

    assert "" == terminal.shown
