"""Kills an ingest with SIGKILL at random moments and checks what is left; run as a program by test_kill.py.

Prints one JSON line: how many kills, how many fell into the work, how many documents were acknowledged in all.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

from evidentia import connect
from evidentia.ingest import ingest_pipeline  # noqa: F401 - imported before the fork, so that children start at once
from evidentia.text import term_table  # noqa: F401 - likewise

RECORDS = int(sys.argv[4])
BATCH = 20


def main(work: Path, *, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    batch_s = _time_one_batch(work)
    acknowledged_in_all = interrupted = 0
    base = work / "base"
    for number in range(kills):
        if number % 20 == 0:
            shutil.rmtree(base, ignore_errors=True)
            _make(base)
        corpus = _write_corpus(work, edition=number)
        acknowledged, was_running = _kill_one(
            base, corpus, after_batches=chance.randrange(RECORDS // BATCH), delay_s=chance.uniform(0, batch_s)
        )
        interrupted += was_running
        acknowledged_in_all += len(acknowledged)
        _check(base, acknowledged, number=number)
    print(json.dumps({"kills": kills, "interrupted": interrupted, "acknowledged": acknowledged_in_all}))  # noqa: T201


def _make(directory: Path) -> None:
    connect(directory, init=True).close()
    (directory / "evidentia.toml").write_text(f"[ingest]\nbatch_documents = {BATCH}\n", encoding="utf-8")


def _write_corpus(work: Path, *, edition: int) -> Path:
    """The same ids in every edition and other texts, so that later rounds change what earlier ones added."""
    path = work / "corpus.jsonl"
    lines = [json.dumps({"_id": str(number), "title": f"Title {number}", "text": _text(number, edition)}) for number in range(RECORDS)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _text(number: int, edition: int) -> str:
    return f"Record {number} of edition {edition}. " + " ".join(f"word{(number * 7 + each) % 997}" for each in range(60))


def _time_one_batch(work: Path) -> float:
    started = time.perf_counter()
    _make(work / "timing")
    _ingest(work / "timing", _write_corpus(work, edition=-1), ready=None)
    return (time.perf_counter() - started) * BATCH / RECORDS


def _ingest(directory: Path, corpus: Path, *, ready: int | None) -> None:
    with connect(directory) as base:
        base.ingest(
            [corpus],
            source="kill",
            embed=False,
            on_progress=None if ready is None else lambda progress: _acknowledge(progress.document_ids, ready),
        )


def _acknowledge(document_ids: tuple[str, ...], pipe: int) -> None:
    if document_ids:
        os.write(pipe, ("\n".join(document_ids) + "\n").encode())


def _kill_one(base: Path, corpus: Path, *, after_batches: int, delay_s: float) -> tuple[set[str], bool]:
    """The moment is counted in batches and not only in seconds, so that it falls into the work on a busy machine too."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        _ingest(base, corpus, ready=write_end)
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        told = [line for _ in range(after_batches * BATCH) if (line := pipe.readline())]
        time.sleep(delay_s)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        told += pipe.readlines()
    return {line.decode().strip() for line in told if line.endswith(b"\n")}, os.WIFSIGNALED(status)


def _check(directory: Path, acknowledged: set[str], *, number: int) -> None:
    with connect(directory) as base:
        report = base.verify()
        live = {document_id for document_id, _, _ in base.documents()}
    if not report.ok:
        sys.exit(f"kill {number}: {report.first_broken}")
    if missing := acknowledged - live:
        sys.exit(f"kill {number}: {len(missing)} acknowledged documents are missing, such as {sorted(missing)[:3]}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), kills=int(sys.argv[2]), seed=int(sys.argv[3]))
