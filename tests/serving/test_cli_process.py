"""What only a real process shows: its cost, its pipes, its terminal, and what a signal does to it."""

from __future__ import annotations

import json
import os
import pty
import resource
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from evidentia.serving.cli import main

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = [sys.executable, "-c", "import sys; from evidentia.serving.cli import main; sys.exit(main())"]
HELP_BUDGET_MS = 150
HEAVY = {"numpy", "rich", "msgspec", "sqlite3", "asyncio"}


def test_help_costs_less_than_150_ms_of_cpu() -> None:
    spent = []
    for _ in range(6):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*COMMAND, "--help"], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000)

    assert min(spent) < HELP_BUDGET_MS


def test_help_imports_nothing_heavy() -> None:
    commands = "main(['ingest', '--help']); main(['search', '--help']); main(['eval', 'run', '--help'])"
    program = f"import sys; from evidentia.serving.cli import main; {commands}; print(*sys.modules, file=sys.stderr)"
    ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)

    assert set() == HEAVY & set(ran.stderr.split())


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a base whose list of documents is longer than a pipe holds; nobody changes it."""
    directory = tmp_path_factory.mktemp("crowded")
    big = directory / "big.jsonl"
    big.write_text("".join(json.dumps({"_id": f"d{n:06}", "text": "x"}) + "\n" for n in range(3_000)), encoding="utf-8")
    base = directory / "base"
    assert 0 == main(["--base", str(base), "--quiet", "init"]) == main(["--base", str(base), "ingest", "--no-embed", str(big)])
    return base


@pytest.mark.parametrize("is_unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("form", ["text", "json"])
def test_closed_pipe_is_silent(crowded: Path, is_unbuffered: str, form: str) -> None:
    environment = {**os.environ, "EVIDENTIA_BASE": str(crowded), "PYTHONUNBUFFERED": is_unbuffered}
    arguments = [*COMMAND, "documents", *(["--json"] if form == "json" else [])]

    with subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        complaint = process.stderr.read()

    assert b"" == complaint
    assert 141 == process.returncode


def test_interrupt_leaves_at_once_with_130_and_an_intact_base(tmp_path: Path) -> None:
    documents = tmp_path / "docs"
    documents.mkdir()
    environment = {**os.environ, "EVIDENTIA_BASE": str(tmp_path / "base")}
    big = documents / "big.jsonl"
    big.write_text("".join(json.dumps({"_id": f"d{n}", "text": f"word{n} " * 40}) + "\n" for n in range(60_000)), encoding="utf-8")
    assert 0 == main(["--base", str(tmp_path / "base"), "--quiet", "init"])

    with subprocess.Popen([*COMMAND, "ingest", str(big)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        _wait_for_a_segment(tmp_path / "base" / "segments")
        process.send_signal(signal.SIGINT)
        out, complaint = _output_soon(process)

    assert (130, b"", b"") == (process.returncode, out, complaint)
    assert 0 == main(["--base", str(tmp_path / "base"), "verify"])


def test_watch_goes_on_until_it_is_interrupted(base: Path, prepared: Path) -> None:
    arguments = [*COMMAND, "ingest", str(prepared / "docs"), "--watch", "--json", "--base", str(base)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        _, remarks = _output_soon(process)

    assert 3 == first["unchanged"]
    assert process.returncode == 130
    assert remarks in {b"", b"note: watching; press Ctrl-C to stop\n"}


def _output_soon(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """Return what a process printed, which has ten seconds to end; one that goes on is killed, so that nobody waits for it."""
    try:
        return process.communicate(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        raise


def _wait_for_a_segment(directory: Path) -> None:
    for _ in range(500):
        if any(directory.iterdir()):
            return
        time.sleep(0.02)
    pytest.fail("the ingest has not begun to write")


def test_terminal_gets_a_drawn_table_without_escapes_from_names(base: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "EVIDENTIA_BASE": str(base), "TERM": "dumb", "NO_COLOR": "1", "COLUMNS": "120"}
    (tmp_path / "x\x1b[31m.md").write_text("# Odd\n", encoding="utf-8")
    assert 0 == main(["--base", str(base), "ingest", str(tmp_path / "x\x1b[31m.md")])

    shown = _on_a_terminal([*COMMAND, "documents"], environment)

    assert "─" in shown
    assert "documents:x\\x1b[31m.md" in shown
    assert "\x1b[31m" not in shown


def test_terminal_gets_marked_words_in_a_drawn_answer(base: Path) -> None:
    environment = {**os.environ, "EVIDENTIA_BASE": str(base), "TERM": "xterm", "COLUMNS": "120"}
    environment.pop("NO_COLOR", None)

    shown = _on_a_terminal([*COMMAND, "search", "when do keys expire", "--facet", "source_id"], environment)
    plain = _on_a_terminal([*COMMAND, "search", "when do keys expire"], {**environment, "TERM": "dumb"})

    assert "─" in shown
    assert "\x1b[1mexpire\x1b[0m" in shown
    assert "\x1b[1m" not in plain


def test_terminal_gets_a_table_of_measures(tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "text": "word"}\n', encoding="utf-8")
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "word"}\n', encoding="utf-8")
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\ta\t1\n", encoding="utf-8")
    environment = {**os.environ, "TERM": "dumb", "COLUMNS": "120"}

    shown = _on_a_terminal([*COMMAND, "eval", "run", str(tmp_path)], environment)

    assert "nDCG@10" in shown
    assert "1.0000" in shown
    assert "{" not in shown


def _on_a_terminal(arguments: list[str], environment: dict[str, str]) -> str:
    ours, theirs = pty.openpty()
    with subprocess.Popen(arguments, env=environment, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        pieces = []
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # what Linux says when the other end is gone
                break
            if not piece:
                break
            pieces.append(piece)
    os.close(ours)
    assert process.returncode == 0
    return b"".join(pieces).decode()


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("redirection", [">&-", "> /dev/full"])
def test_stdout_that_cannot_be_written_is_no_stack_trace(prepared: Path, redirection: str, unbuffered: str) -> None:
    script = f'"$@" {redirection}'
    ran = subprocess.run(
        ["bash", "-c", script, "bash", *COMMAND, "documents", "--base", str(prepared / "base")],
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        check=False,
        capture_output=True,
        text=True,
    )

    assert "Traceback" not in ran.stderr
    assert (0 if redirection == ">&-" else 2) == ran.returncode
